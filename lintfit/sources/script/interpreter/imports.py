"""What a script imports from the modules of its own repository."""

from __future__ import annotations

import libcst as cst

from lintfit.sources.script.interpreter.modules import Modules
from lintfit.sources.script.interpreter.scope import Scope
from lintfit.sources.script.interpreter.state import MAX_DEPTH, Branch, Walk
from lintfit.sources.script.interpreter.statements import Statements
from lintfit.sources.script.interpreter.values import Class, Const, Ref, Value

_SURENESS: dict[bool | None, int] = {False: 0, None: 1, True: 2}
"""Of the ``taken`` of a branch."""
_MAX_BASES = 3
"""Classes that are not parsed and inherit from one another."""


class Imports(Statements):
    """Walks the modules that a script imports from, each once. What a call does is the subclass's."""

    def __init__(self, module: cst.Module, walk: Walk, modules: Modules | None) -> None:
        super().__init__(module, walk)
        self._modules = modules
        self._scopes: dict[str, Scope | None] = {}
        self._walked: dict[str, bool | None] = {}
        """Whether the statements of each of them were walked as those that run."""
        self._reached: dict[str, bool | None] = {}
        """Whether this run comes by an import of a module, or of a name in it."""

    def imported(self, ref: Ref) -> Value:
        """What a name imported from a module of the same repository stands for there."""
        if self._modules is None or len(self.walk.frames) >= MAX_DEPTH:
            return ref
        name, _, attribute = ref.name.rpartition(".")
        if not name or name in ("", "."):
            return ref
        library = self._modules.library(name)
        if library is not None:
            return Ref(ref.origin, f"{library}.{attribute}")
        scope = self._module_scope(name)
        found = scope.names.get(attribute) if scope is not None else self._outlined(name, attribute)
        if isinstance(found, Ref) and found.name != ref.name and isinstance(found.origin, cst.ImportAlias):
            return self.imported(found)
        return found if found is not None else ref

    def is_unread(self, name: str) -> bool:
        """Whether a dotted name is of a module of the project that is at hand but not parsed."""
        return self._modules is not None and name.rpartition(".")[0] in self._modules.unread

    def _outlined(self, module: str, name: str, depth: int = 0) -> Class | None:
        """A class of a module that is not parsed: its name and bases, by which a model is told."""
        bases = self._modules.bases(module, name) if self._modules is not None and depth < _MAX_BASES else None
        if not bases:
            return None
        known = (self._outlined(module, base, depth + 1) or Ref(None, base) for base in bases)
        return Class(None, name, bases=tuple(known))

    def _module_scope(self, name: str) -> Scope | None:
        """The names of a module, whose statements run as surely as an import of it does.

        They are walked once more where a surer import than the last one has come by since.
        """
        taken = self._imported_in(name)
        if name in self._scopes and _SURENESS[self._walked[name]] >= _SURENESS[taken]:
            return self._scopes[name]
        self._scopes[name] = None
        self._walked[name] = taken
        module = self._modules.find(name) if self._modules is not None else None
        if module is None:
            return None
        scope = Scope({"__name__": Const(None, name)})
        self._scopes[name] = scope
        walk, entry = self.walk, self.has_entry
        before = walk.branch, walk.statement, walk.assigned_to, walk.frames
        walk.branch, walk.statement, walk.assigned_to, walk.frames = Branch(taken), None, None, []
        try:
            self.block(module.body, scope)
        finally:
            walk.branch, walk.statement, walk.assigned_to, walk.frames = before
            self.has_entry = entry
        return scope

    def noted(self, name: str) -> None:
        known = self._reached.get(name, False)
        self._reached[name] = max(known, self.walk.branch.taken, key=_SURENESS.__getitem__)

    def _imported_in(self, name: str) -> bool | None:
        """Whether a module runs: as surely as the surest import of it, or of a name or module in it."""
        return self._reached.get(name, True)

    def package(self, scope: Scope, dots: int) -> str:
        root = scope
        while root.parent is not None:
            root = root.parent
        name = root.names.get("__name__")
        if root is self.globals or not isinstance(name, Const) or self._modules is None:
            return "." * dots
        own = str(name.value)
        leading = len(own) - len(own.lstrip("."))
        parts = own.lstrip(".").split(".")
        up = dots - 1 if self._modules.is_package(own) else dots
        beyond = max(0, up - len(parts)) if leading else 0
        kept = parts[: max(0, len(parts) - up)]
        return "." * (leading + beyond) + "".join(f"{part}." for part in kept)

    def exported(self, module: str) -> dict[str, Value]:
        scope = self._module_scope(module) if module else None
        if scope is None:
            return {}
        return {name: value for name, value in scope.names.items() if not name.startswith("_")}
