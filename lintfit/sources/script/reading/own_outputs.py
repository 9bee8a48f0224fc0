"""What a training loop of the script's own does with the model's outputs: whether a name holds them, and how long.

``outputs = model(**batch)`` holds logits and cache through the backward pass and, in the loop's own body, until the
next batch has outputs; ``loss = model(**batch).loss`` holds neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from lintfit.documents.patterns import occurs
from lintfit.sources.script.reading import loops
from lintfit.sources.script.reading.collector import Reading
from lintfit.sources.script.reading.own_pass import Pass, own, passes

_CACHE = re.compile(r"\buse_cache\b")


class Held(NamedTuple):
    """The call of the model, the name that holds what it gives, how long, and whether that is all of it."""

    forward: cst.Call
    name: str
    until: str
    whole: bool
    one: Pass
    """The backward pass beside which it is held."""


def read(reading: Reading) -> None:
    """Note what the loop holds. The cache is on by the model's config, where nobody says anything of it."""
    document, found = reading.calls.script, reading.found
    if not own(reading) or next(passes(reading), None) is None:
        return
    # DeepSpeed's engine and torch.autocast hand on what they have made.
    copied = found.accelerator is not None or any(record.name == "Fabric" for record in reading.records)
    reading.derive("upcast_outputs", copied, "Accelerate and Fabric copy outputs to fp32")
    held = next(holders(reading), None)
    if held is None:
        reading.derive("loop_outputs", "dropped", "no name holds what the model gives")
    else:
        reading.state("loop_outputs", held.until, held.forward, f"{held.name} holds what the model gives")
    if "use_cache" in reading.settings:
        return
    if occurs(_CACHE, document.text):
        reading.derive("use_cache", False, "the script says something of it")
    elif held is not None and not held.whole:
        reading.derive("use_cache", False, "only the logits have a name")


def holders(reading: Reading) -> Iterator[Held]:
    """The names that hold the outputs whose loss runs backward, in the order of the text."""
    for one in passes(reading):
        found = _Trace(one).holder()
        if found is not None:
            yield found


class _Trace:
    """The way back from a loss to the outputs that it was taken from."""

    def __init__(self, one: Pass) -> None:
        self.one = one
        self.bound = list(loops.assignments(one.scope.body))
        self.seen: set[tuple[str, int]] = set()
        """Names that have been followed, with where they were given what they hold."""

    def holder(self) -> Held | None:
        """The name that holds what the loss was made of; None where nothing but the loss is held."""
        followed = (self._follow(name, self.one.at) for name in loops.sources(self.one.backward))
        return next((held for held in followed if held is not None), None)

    def _follow(self, name: str, before: int) -> Held | None:
        """What a name holds at a place of the text, or what that was made of."""
        given = [(self.one.start(node), value) for each, value, node in self.bound if each == name]
        start, value = max((item for item in given if item[0] < before), key=lambda item: item[0], default=(0, None))
        if value is None or (name, start) in self.seen:
            return None
        self.seen.add((name, start))
        logits = isinstance(value, cst.Attribute) and value.attr.value == "logits"
        whole = value.value if isinstance(value, cst.Attribute) and logits else value
        if isinstance(whole, cst.Call) and self.one.is_forward(whole):
            if self._is_cut(whole):
                return None
            until = self._until(name, whole)
            return None if until is None else Held(whole, name, until, not logits, self.one)
        followed = (self._follow(each, start) for each in loops.names(value))
        return next((held for held in followed if held is not None), None)

    def _is_cut(self, forward: cst.Call) -> bool:
        """Whether the model is handed so many of a batch's rows or tokens (``ids[:, :10]``), not the batch."""
        waiting = [each.value for each in forward.args if each.keyword is None or each.keyword.value != "labels"]
        seen: set[str] = set()
        while waiting:
            value = waiting.pop()
            if any(_cuts(node) for node in (value, *loops.inside(value))):
                return True
            for name in set(loops.names(value)) - seen:
                seen.add(name)
                given = (
                    (each, made) for each, made, node in self.bound if self.one.start(node) < self.one.start(forward)
                )
                waiting += [made for each, made in given if each == name and made is not None]
        return False

    def _until(self, name: str, forward: cst.Call) -> str | None:
        """How long a name holds what it was given; None where it is let go of before the backward pass."""
        start, at = self.one.start, self.one.at
        gone = [start(node) for node in loops.inside(self.one.scope.body) if _deletes(node, name)]
        gone += [start(node) for each, _, node in self.bound if each == name]
        if any(start(forward) < place < at for place in gone):
            return None
        lets_go = any(place > at for place in gone)
        return "backward" if lets_go or isinstance(self.one.scope, cst.FunctionDef) else "held"


def _deletes(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Del) and name in loops.names(node.target)


def _cuts(node: cst.CSTNode) -> bool:
    """Whether a slice ends at a number that is written out, counted from the front."""
    return isinstance(node, cst.Slice) and isinstance(node.upper, cst.Integer)
