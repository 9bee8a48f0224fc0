"""Small arithmetic on components: bytes by name."""

from __future__ import annotations

from lintfit.memory.result import COMPONENTS, Components


def components(**sizes: int) -> Components:
    """Components from keyword arguments; those of zero bytes are left out, unknown names are an error."""
    unknown = set(sizes) - set(COMPONENTS)
    if unknown:
        raise ValueError(f"no such component: {', '.join(sorted(unknown))}")
    return {name: size for name, size in sizes.items() if size}


def plus(first: Components, second: Components) -> Components:
    """The sum of two, component by component."""
    return {name: first.get(name, 0) + second.get(name, 0) for name in {**first, **second}}


def total(parts: Components) -> int:
    return sum(parts.values())


def larger(*candidates: Components) -> Components:
    """The candidate with the most bytes; the first of equals."""
    return max(candidates, key=total)
