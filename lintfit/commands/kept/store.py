"""What a check has made of each part of a tree, and what of an earlier check's holds still.

A *part* is a run with its verdict, plan and findings; the findings of a file; or the fixes of a file, confirmed. With
each goes every path that was read or looked for while it was made (:meth:`Workspace.asked`). The cache
(:mod:`lintfit.cli.cache`) says which files alone have changed since: nothing else that the earlier check asked of the
file system would be answered otherwise, neither a name, nor a folder, nor what is no document. A part holds that has
asked for none of these files. Which files there are hangs on names and pages, and is taken as it was unless a page has
changed. All that puts parts together (which launches count, what a comment silences, the report) is done anew each
time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lintfit.commands.kept.codec import Decoder, Encoder, NotKept
from lintfit.commands.kept.run import KeptRun, written
from lintfit.documents import seen
from lintfit.documents.files import kind_of
from lintfit.documents.later import Expected
from lintfit.documents.markdown import is_page
from lintfit.documents.model import Document, Kind
from lintfit.documents.shell_callers import mentions
from lintfit.documents.workspace import ANY_SHELL, Workspace
from lintfit.findings.model import Finding
from lintfit.findings.results import RunResult
from lintfit.frozen import names
from lintfit.options.model import Options
from lintfit.run.build import build
from lintfit.run.discover import FoundFiles
from lintfit.run.model import Origin, Run

_OF_RESULT = tuple(name for name in names(RunResult) if name != "run")


class Part:
    """One part: the paths that it hangs on, and what is written of it."""

    __slots__ = ("_asked", "_paths", "content", "numbers", "value")

    def __init__(self, asked: set[Path]) -> None:
        self._asked: set[Path] | None = asked
        self._paths: _Paths | None = None
        self.numbers: Sequence[int] | None = None
        """The paths by number; None once somebody has asked for them: more may come to them."""
        self.content: Any = None
        """As JSON; None for one that was made just now."""
        self.value: Any = None

    @classmethod
    def kept(cls, numbers: Sequence[int], paths: _Paths, content: Any) -> Part:
        """One of an earlier check. Its paths stay numbers as long as nobody asks for them: there are many thousands."""
        part = cls(set())
        part._asked, part._paths, part.numbers, part.content = None, paths, numbers, content
        return part

    @property
    def asked(self) -> set[Path]:
        if self._asked is None:
            assert self._paths is not None and self.numbers is not None
            self._asked, self.numbers = set(map(self._paths.path, self.numbers)), None
        return self._asked

    def paths(self) -> Iterator[Path]:
        """What it hangs on, worked out only where somebody goes through it."""
        yield from self.asked


class Keeping:
    """What is to be kept of a check, and what was kept of an earlier one of which only the files ``changed`` differ."""

    def __init__(self, earlier: Mapping[str, Any] | None = None, changed: Iterable[str] = ()) -> None:
        self.earlier, self._changed = earlier, frozenset(map(Path, changed))
        self._store: Store | None = None
        self._files: FoundFiles | None = None

    def store(self, workspace: Workspace) -> Store:
        """What a check of a workspace keeps, and takes from the earlier one. Raises what odd content makes go wrong."""
        self._store = Store(workspace, self.earlier, self._changed)
        return self._store

    def found(self, search: Callable[[], FoundFiles]) -> FoundFiles:
        """The files to look at, as they were. A search hangs on names, folders and what is no document, and of the
        documents on pages alone."""
        if self.earlier is None or any(map(is_page, self._changed)):
            self._files = search()
        else:
            files, named, errors = self.earlier["files"]
            self._files = FoundFiles(tuple(map(Path, files)), frozenset(map(Path, named)), tuple(errors))
        return self._files

    def written(self) -> Mapping[str, Any] | None:
        """What is to be kept as JSON."""
        found = self._files
        if self._store is None or found is None:
            return None
        files = [[*map(str, found.files)], sorted(map(str, found.named)), [*found.errors]]
        return {**self._store.written(), "files": files}


class Store:
    """The parts of one check. ``kept`` is what an earlier one has written, ``changed`` the files that have changed."""

    def __init__(
        self, workspace: Workspace, kept: Mapping[str, Any] | None = None, changed: Iterable[Path] = ()
    ) -> None:
        self._workspace = workspace
        self._changed = frozenset(changed)
        self._circular = False
        """Whether scripts of the earlier check may start each other."""
        self._parts: dict[str, Part] = {}
        self._earlier: dict[str, Part] = {}
        self._runs: dict[int, tuple[Run, str]] = {}
        """The runs by identity, each with the name of its part."""
        self._ambiguous: frozenset[Path] = frozenset()
        self._expected: dict[tuple[Path, Kind], Expected] = {}
        self._told: dict[Path, Mapping[str, str]] = {}
        self._paths = _Paths(())
        if kept is not None:
            self._read(kept)
            workspace.expect(self._expected)
            workspace.know(self._told)

    def _read(self, kept: Mapping[str, Any]) -> None:
        paths = self._paths = _Paths(kept["paths"])
        self._circular = kept["circular"]
        changed = {*paths.of_known(self._changed), *self._started_anew(paths)}
        self._ambiguous = frozenset(map(paths.path, kept["ambiguous"]))
        for name, (asked, content) in kept["parts"].items():
            if changed.isdisjoint(asked):
                self._earlier[name] = Part.kept(asked, paths, content)
        for where, kind, path, asked, facts in kept["documents"]:
            if where not in changed and changed.isdisjoint(asked):
                found = frozenset(map(paths.path, asked))
                self._expected[paths.path(where), Kind(kind)] = Expected(Path(path), found, facts)

        for where, path, answers in kept["told"]:
            if where not in changed:
                self._told[Path(path)] = dict(answers)

    def _started_anew(self, paths: _Paths) -> Iterator[int]:
        """The numbers of what stands for a script that a changed script or page starts now, as far as its text tells;
        what it has started hangs on it by name. Where scripts may start each other: of any script that has callers."""
        callers = [path for path in self._changed if kind_of(path) is Kind.SHELL]
        above = f"{ANY_SHELL}/"
        asking = [(number, text) for number, text in enumerate(paths.all) if text.startswith(above)] if callers else []
        texts = [self._workspace.text_of(path) for path in callers] if asking else []
        for number, text in asking:
            script = Path(text.removeprefix(above))
            if self._circular or any(mentions(each, script) for each in texts):
                yield number

    # Runs

    def build(self, origin: Origin, workspace: Workspace, cli: Options) -> Run:
        """The run that begins at an origin: as it was, else as its files say."""
        name = f"run {origin}"
        part = self._earlier.get(name)
        run: Run | None = None
        if part is not None:
            content, path = part.content["run"], self._paths.path
            run = KeptRun(content, origin, workspace, path, lambda: build(origin, workspace, cli))
            workspace.ask(part.paths())
        else:
            part = Part(set())
            with workspace.asking(part.asked):
                run = build(origin, workspace, cli)
            part.asked.update(run.looked_for)
        part.value = [run, None, None]
        self._parts[name] = part
        self._runs[id(run)] = (run, name)
        return run

    def judged(self, run: Run, make: Callable[[], RunResult]) -> RunResult:
        """A run with its verdict and its plan."""
        part = self._part_of(run)
        if part.content is not None and part.content["result"] is not None:
            values, findings = Decoder(self._workspace).value(json.loads(part.content["result"]))
            part.value[1] = RunResult(self._judged_run(part, run, lambda: make().run), *values)
            part.value[2] = findings
        else:
            with self._workspace.asking(part.asked):
                part.value[1] = make()
            part.content = None
        self._runs[id(part.value[1].run)] = (part.value[1].run, self._runs[id(run)][1])
        return part.value[1]  # type: ignore[no-any-return]

    def run_findings(self, judged: RunResult, make: Callable[[], Iterable[Finding]]) -> Sequence[Finding]:
        """What the rules say of a run."""
        part = self._part_of(judged.run)
        if part.value[2] is None:
            with self._workspace.asking(part.asked):
                part.value[2] = [*make()]
        return part.value[2]  # type: ignore[no-any-return]

    def _judged_run(self, part: Part, run: Run, make: Callable[[], Run]) -> Run:
        """The run as it was judged: its GPUs may be those that it needs, its engine what a machine may have."""
        content = part.content["judged"]
        if content is None:
            return run
        base = run if isinstance(run, KeptRun) else None
        return KeptRun(content, run.origin, self._workspace, self._paths.path, make, base)

    def _part_of(self, run: Run) -> Part:
        return self._parts[self._runs[id(run)][1]]

    # Files and fixes

    def findings(
        self,
        name: Sequence[object],
        runs: Sequence[Run],
        of: Iterable[Document],
        make: Callable[[], Iterable[Finding]],
        looked_at: Callable[[], Iterable[Run]] | None = None,
    ) -> Sequence[Finding]:
        """Findings that are made of some runs and documents: those of ``name``, which says all else that they hang on.

        ``looked_at`` says, once they are made, which of the runs they hang on; all of them without it.
        """
        own = [self._runs[id(run)][1] for run in runs]
        key = seen.digest(json.dumps([*map(str, name), own]).encode("ascii"))
        part = self._earlier.get(key)
        if part is not None:
            part.value = Decoder(self._workspace).value(json.loads(part.content))
            self._workspace.ask(part.paths())
        else:
            part = Part({path for document in of for path in self._workspace.hangs_on(document)})
            with self._workspace.asking(part.asked):
                part.value = [*make()]
            for run in runs if looked_at is None else looked_at():
                part.asked.update(self._part_of(run).asked)
        self._parts[key] = part
        return part.value  # type: ignore[no-any-return]

    def in_words(self, findings: Sequence[Finding]) -> str | None:
        """Findings as a part of a name; None where they have no form in JSON."""
        try:
            return json.dumps(Encoder(self._workspace, facts=False).plain([*findings]))
        except NotKept:
            return None

    # Writing

    @property
    def doubtful(self) -> bool:
        """Whether what was kept may be other than it would be now: something hangs on who asks first."""
        return not self._ambiguous >= self._workspace.ambiguous

    def written(self) -> Mapping[str, Any]:
        """All parts of this check as JSON."""
        paths = self._paths
        indices = paths.of(self._workspace.ambiguous | self._ambiguous)
        ambiguous = frozenset(indices)
        circular = self._circular or self._workspace.circular
        parts = {}
        for name, part in self._parts.items():
            asked = part.numbers if part.numbers is not None else paths.of(part.asked)
            if ambiguous.isdisjoint(asked):
                try:
                    parts[name] = [asked, self._content(part)]
                except NotKept:
                    continue
        documents = [
            [paths.of_one(where), str(kind), str(document.path), paths.of(asked), document.facts]
            for where, kind, document, asked in self._workspace.documents()
            if _is_plain(document) and not (circular and any(ANY_SHELL in path.parents for path in asked))
        ]
        parsed = {(where, kind) for where, kind, _, _ in self._workspace.documents()}
        documents += [
            [paths.of_one(where), str(kind), str(found.path), paths.of(found.asked), found.facts]
            for (where, kind), found in self._expected.items()
            if (where, kind) not in parsed
        ]
        told = [[paths.of_one(where), str(path), answers] for path, where, answers in self._workspace.all_told()]
        found = {"paths": paths.all, "ambiguous": indices, "circular": circular}
        return {**found, "parts": parts, "documents": documents, "told": told}

    def _content(self, part: Part) -> Any:
        if isinstance(part.value, list) and part.value and isinstance(part.value[0], Run):
            return self._of_run(part)
        if part.content is not None:
            return part.content
        return json.dumps(Encoder(self._workspace).plain(part.value), separators=(",", ":"))

    def _of_run(self, part: Part) -> Mapping[str, Any]:
        run, result, findings = part.value
        content: dict[str, Any] = {"run": written(run, self._workspace, self._paths.of), "judged": None, "result": None}
        if part.content is not None:
            return {**part.content, "run": content["run"]}
        if result is None or findings is None:
            return content
        if result.run is not run:
            content["judged"] = written(result.run, self._workspace, self._paths.of, run)
        fields = [getattr(result, name) for name in _OF_RESULT]
        content["result"] = json.dumps(Encoder(self._workspace).plain([fields, findings]), separators=(",", ":"))
        return content


def _is_plain(document: Document) -> bool:
    """Whether a document may be parsed late: nothing is wrong with it."""
    if document.kind is Kind.PYTHON:
        return "accepted" in document.facts
    return not document.problems


class _Paths:
    """Paths by their number: thousands of parts hang on the same ones. What an earlier check has numbered stays so."""

    def __init__(self, known: Iterable[str]) -> None:
        self.all = [*known]
        self._made: list[Path | None] = [None] * len(self.all)
        self._numbers = {path: number for number, path in enumerate(self.all)}

    def path(self, number: int) -> Path:
        found = self._made[number]
        if found is None:
            found = self._made[number] = Path(self.all[number])
        return found

    def of_one(self, path: Path) -> int:
        text = str(path)
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self.all)
            self.all.append(text)
            self._made.append(path)
        return number

    def of(self, paths: Iterable[Path]) -> list[int]:
        return [self.of_one(path) for path in paths]

    def of_known(self, paths: Iterable[Path]) -> Iterator[int]:
        """The numbers of those paths that have one."""
        return (self._numbers[text] for text in map(str, paths) if text in self._numbers)
