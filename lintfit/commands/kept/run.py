"""A run as an earlier check has read it: what it said then is taken from there, all else from the files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from lintfit.commands.kept.codec import Decoder, Encoder, NotKept
from lintfit.documents.model import Kind
from lintfit.documents.workspace import Workspace
from lintfit.frozen import names
from lintfit.run.model import Origin, Run

_AT_ONCE = ("id", "documents", "opened")
_NEVER = frozenset({"origin", "told", "launch", "script", "recipe", "facts", "older"})
"""What is not written: where it begins is known, the others are read from the files where somebody asks for them."""
_LATER = tuple(name for name in names(Run) if name not in _AT_ONCE and name not in _NEVER)


_PATHS = "looked_for"
"""The field of many paths, which are written as numbers: most of them stand in many runs."""


def written(
    run: Run, workspace: Workspace, numbers: Callable[[Iterable[Path]], list[int]], base: Run | None = None
) -> Mapping[str, Any]:
    """A run as JSON; of one that was made of another (``base``) what it has of its own. Raises NotKept."""
    if isinstance(run, KeptRun) and run.content is not None:
        return {**run.content, "told": run.told}
    python = [document for document in (*run.documents, *run.opened) if document.kind is Kind.PYTHON]
    if any(document.problems for document in python):
        raise NotKept("what a parser says of a file may hang on what was looked at")
    encoder = Encoder(workspace)
    at_once = [encoder.plain(getattr(run, name)) for name in _AT_ONCE]
    own = [name for name in _LATER if base is None or getattr(run, name) is not getattr(base, name)]
    later: dict[str, Any] = {name: _field(run, name, workspace) for name in own if name != _PATHS}
    if _PATHS in own:
        later[_PATHS] = numbers(run.looked_for)
    return {"at_once": at_once, "later": later, "told": run.told}


def _field(run: Run, name: str, workspace: Workspace) -> str | None:
    """A field as JSON; None for one that has no form there."""
    try:
        return json.dumps(Encoder(workspace).plain(getattr(run, name)), separators=(",", ":"))
    except NotKept:
        return None


class KeptRun(Run):
    """A run that is read from its files only where somebody asks for what is not written of it."""

    __slots__ = ("_base", "_build", "_path", "_workspace", "content")

    def __init__(
        self,
        content: Mapping[str, Any],
        origin: Origin,
        workspace: Workspace,
        path: Callable[[int], Path],
        build: Callable[[], Run],
        base: KeptRun | None = None,
    ) -> None:
        self.content: Mapping[str, Any] | None = content
        """What is written of it; None once it is read from its files."""
        self._workspace, self._path, self._build, self._base = workspace, path, build, base
        decoder = Decoder(workspace)
        at_once = dict(zip(_AT_ONCE, map(decoder.value, content["at_once"]), strict=True))
        for name, value in {"origin": origin, "told": dict(content["told"]), **at_once}.items():
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        """A field that is not set yet: slots that are come by themselves."""
        if name not in _FIELDS or self.content is None:
            raise AttributeError(name)
        if not self._take(name):
            run = self._build()
            self.content = None
            for each in names(Run):
                if each != "told":
                    setattr(self, each, getattr(run, each))
        return getattr(self, name)

    def _take(self, name: str) -> bool:
        """Take a field from what is written; False where it is not."""
        assert self.content is not None
        later, base = self.content["later"], self._base
        if name not in later and base is not None and (base.content is None or base.content["later"].get(name)):
            setattr(self, name, getattr(base, name))
            return True
        written = later.get(name)
        if written is None:
            return False
        try:
            found = map(self._path, written) if name == _PATHS else Decoder(self._workspace).value(json.loads(written))
            setattr(self, name, frozenset(found) if name == _PATHS else found)
        except Exception:  # of somebody else's making
            return False
        return True


_FIELDS = frozenset(names(Run))
