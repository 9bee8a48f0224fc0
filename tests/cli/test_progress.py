"""The sign of life: on a terminal, after a moment, and gone at the end."""

from __future__ import annotations

import io
import time

import pytest

from lintfit.cli.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_takes_long_shows_that_it_goes_on() -> None:
    stream = Terminal()
    with progress("checking", stream, delay=0.01):
        deadline = time.monotonic() + 5
        while "checking … 0 s" not in stream.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "checking … 0 s" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_what_is_quick_shows_nothing() -> None:
    stream = Terminal()
    with progress("checking", stream, delay=60):
        pass
    assert stream.getvalue() == ""


def test_no_terminal_no_sign() -> None:
    stream = io.StringIO()
    with progress("checking", stream, delay=0.001):
        time.sleep(0.05)
    assert stream.getvalue() == ""


def test_it_ends_with_what_fails() -> None:
    stream = Terminal()
    with pytest.raises(ValueError, match="broken"), progress("checking", stream, delay=0.01):
        time.sleep(0.05)
        raise ValueError("broken")
    length = len(stream.getvalue())
    time.sleep(0.05)
    assert len(stream.getvalue()) == length
