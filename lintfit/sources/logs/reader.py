"""A log, read line by line: its first death by memory, the traceback before it, and what else it says of memory."""

from __future__ import annotations

import re
from collections import deque

from lintfit.sources.logs import frames, messages
from lintfit.sources.logs.model import Death, Log, Where

_ESCAPES = re.compile(r"\x1b\[[0-9;?]{0,12}[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
_TRACEBACK = "Traceback (most recent call last)"
_STEP = re.compile(r"\b([0-9]{1,9})/[0-9]{1,9} \[[0-9:]{4,12}<")
_CERTAIN = {"gpu": 3, "shared-memory": 2, "host": 2, "other": 1}
"""How much a message says: a launcher that reports a killed process knows less than the process itself."""


def read(text: str, above: int = 0) -> Log:
    """What the text of a log says; the first of the messages that say most is the death. ``above``: lines before it."""
    found: Death | None = None
    place = last = Where()
    same = 0
    host: tuple[int, int] | None = None
    step: int | None = None
    stack: deque[frames.Frame] = deque(maxlen=frames.MOST)
    for number, raw in enumerate(text.splitlines(), above + 1):
        line = raw if raw.isprintable() else _ESCAPES.sub("", raw)
        if _TRACEBACK in line:
            stack.clear()
        one = frames.frame(line)
        if one is not None:
            stack.append(one)
        elif stack and not (stack[-1].code and stack[-1].function):
            stack[-1] = frames.completed(stack[-1], line)
        host = messages.host_memory(line) or host
        last = frames.doing(line) or last
        if found is None and "<" in line and (counted := _STEP.search(line[: messages.LONGEST])):
            step = int(counted[1])
        death = messages.death(line, number)
        if death is None:
            continue
        if found is None or _CERTAIN[death.of] > _CERTAIN[found.of]:
            found, place = death, frames.where(tuple(stack)) if stack else last
        else:
            same += 1
        stack.clear()
    used, total = host or (None, None)
    return Log(found, place, same, host_total=total, host_used=used, step=step)
