"""A sign of life on a terminal while a command takes longer than a moment."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import TextIO

from lintfit.documents.signals import not_here

DELAY = 1.0
"""Seconds before anything is shown, and between two signs."""
_CLEAR = "\r\x1b[K"


@contextmanager
def progress(what: str, stream: TextIO | None = None, delay: float = DELAY) -> Iterator[None]:
    """Show ``checking … 3 s`` on standard error from the first second on, and wipe it away at the end.

    Nothing where standard error is no terminal.
    """
    stream = sys.stderr if stream is None else stream
    if stream is None or not stream.isatty():  # None: started without one
        yield
        return
    done = Event()
    thread = Thread(target=_show, args=(what, stream, done, delay), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _show(what: str, stream: TextIO, done: Event, delay: float) -> None:
    not_here()
    start = monotonic()
    shown = False
    while not done.wait(delay):
        stream.write(f"{_CLEAR}{what} … {monotonic() - start:.0f} s")
        stream.flush()
        shown = True
    if shown:
        stream.write(_CLEAR)
        stream.flush()
