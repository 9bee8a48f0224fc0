"""The names of a module, class or function, by the scopes that they are in."""

from __future__ import annotations

from dataclasses import dataclass, field

from lintfit.sources.script.interpreter.origins import Value


@dataclass(slots=True, eq=False)
class Scope:
    """The names of a module, class or function."""

    names: dict[str, Value] = field(default_factory=dict)
    parent: Scope | None = None
    outer: set[str] = field(default_factory=set)
    """Names declared ``global`` or ``nonlocal``."""

    def get(self, name: str) -> Value | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None

    @property
    def root(self) -> Scope:
        """The scope of the module."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def set(self, name: str, value: Value) -> None:
        (self.root if name in self.outer else self).names[name] = value
