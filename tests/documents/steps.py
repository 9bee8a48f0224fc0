"""A function that is interrupted at one of its steps, by whatever may come between two of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


class AtStep:
    """Calls ``then`` at one step of another function; counts them all where ``at`` is 0.

    A step is a line that runs, or a call into C or its return: bytes reach the disk there, so that before and after
    each of them is a point of its own.
    """

    def __init__(self, at: int, then: Callable[[], None]) -> None:
        self.at, self.then, self.steps = at, then, 0

    def run(self, function: Callable[[], None]) -> int:
        """How many steps there were."""
        profile, trace = sys.getprofile(), sys.gettrace()
        sys.setprofile(self._profile)
        sys.settrace(self._trace)
        try:
            function()
        finally:
            sys.settrace(trace)
            sys.setprofile(profile)
        return self.steps

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        self._step()
        return self._trace

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        if event in ("c_call", "c_return"):
            self._step()

    def _step(self) -> None:
        self.steps += 1
        if self.steps == self.at:
            self.then()
