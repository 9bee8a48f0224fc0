"""Small arithmetic on components: bytes by name."""

from __future__ import annotations

from lintfit.memory.result import COMPONENTS, Components

_NAMES = frozenset(COMPONENTS)


def components(**sizes: int) -> Components:
    """Components from keyword arguments; those of zero bytes are left out, unknown names are an error."""
    if not sizes.keys() <= _NAMES:
        raise ValueError(f"no such component: {', '.join(sorted(sizes.keys() - _NAMES))}")
    return {name: size for name, size in sizes.items() if size}


def plus(first: Components, second: Components) -> Components:
    """The sum of two, component by component."""
    return {name: first.get(name, 0) + second.get(name, 0) for name in {**first, **second}}


def total(parts: Components) -> int:
    return sum(parts.values())


def larger(*candidates: Components) -> Components:
    """The candidate with the most bytes; the first of equals."""
    return max(candidates, key=total)
