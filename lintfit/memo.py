"""What is counted once and asked for again and again, while a process estimates one run after the other."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Made = TypeVar("Made")


class Memo(Generic[Made]):
    """What was made for an owner (a model's facts, an inventory), and for a key where an owner has several.

    The owner is told by its identity: equal ones are the same object, and to compare them field by field may take
    longer than to count anew. An entry lives until there are ``most`` of them, when all go; as long as it lives it
    keeps its owner, whose identity therefore nobody else gets. A key must not hold the identity of anything that the
    owner or what was made does not keep as well.
    """

    __slots__ = ("_found", "_most")

    def __init__(self, most: int = 1024) -> None:
        self._found: dict[tuple[int, Hashable], tuple[object, Made]] = {}
        self._most = most

    def get(self, owner: object, key: Hashable, make: Callable[[], Made]) -> Made:
        """What is there, else what ``make`` gives."""
        found = self._found.get((id(owner), key))
        return found[1] if found is not None else self.keep(owner, key, make())

    def find(self, owner: object, key: Hashable) -> Made | None:
        """What is there, if anything is."""
        found = self._found.get((id(owner), key))
        return None if found is None else found[1]

    def keep(self, owner: object, key: Hashable, made: Made) -> Made:
        """Keep what was made, and give it back."""
        if len(self._found) >= self._most:
            self._found.clear()
        self._found[id(owner), key] = owner, made
        return made
