"""Signals that end the process wait until a change is written as a whole or taken back as a whole."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")


def not_here() -> None:
    """Leave the signals that end the process to the thread that may hold them back: called by every other one."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {getattr(signal, name) for name in _ENDING if hasattr(signal, name)})


@contextmanager
def held() -> Iterator[Callable[[], str]]:
    """Hold SIGINT, SIGTERM and SIGHUP back; at the end the one that came does what it does elsewhere.

    Gives a function that tells the name of a signal that waits, or nothing. A signal that the process was told to
    ignore (``nohup``) is left alone. Where signals cannot be held back (Windows), none ever waits.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield lambda: ""
        return
    named = (getattr(signal, name) for name in _ENDING if hasattr(signal, name))
    ending = {each for each in named if signal.getsignal(each) is not signal.SIG_IGN}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())

    def waiting() -> str:
        return next((each.name for each in sorted(signal.sigpending() & ending - before)), "")

    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, ending)
        yield waiting
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
