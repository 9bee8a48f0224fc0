"""The files of one invocation, each read once, and the same files as they would be after a fix."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lintfit.documents import seen
from lintfit.documents.data_edits import reader_of
from lintfit.documents.door import is_file, walk
from lintfit.documents.files import ReadError, is_notebook, kind_of, read_text, write_files
from lintfit.documents.here_files import HereFiles
from lintfit.documents.model import Document, FileText, Kind
from lintfit.documents.paths import is_below, located, resolved
from lintfit.documents.steps import Steps, Work, of_tree
from lintfit.frozen import replace

if TYPE_CHECKING:
    from lintfit.documents.later import Expected
    from lintfit.documents.shell_document import ShellDocument

_MOST_FOLDERS = 5000
"""Folders in which a file is looked for by its name."""
_MOST_CALLERS = 1000
"""Scripts and pages that are searched for the lines that start a script."""
ANY_SHELL = Path("/any shell script or page")
"""Stands, with a script below it, among what is asked for where every shell script and page of the tree is: one may
start the script."""
_NOT_OWN = frozenset({"site-packages", "node_modules", "__pycache__", "venv", "env", "build", "dist"})


class Workspace:
    """Reads documents relative to ``root``, from memory where ``overlay`` holds a text for the path.

    ``below`` are the folders (resolved) below which it writes; None: anywhere. ``staged`` are texts that are read
    in the place of files that hold others, which are therefore not written. ``trusted`` are files that the user named:
    no other is read that is a link which leads out of ``below``.
    """

    def __init__(
        self,
        root: Path | None = None,
        overlay: Mapping[Path, str] | None = None,
        below: Sequence[Path] | None = None,
        staged: Mapping[Path, str] | None = None,
        trusted: Sequence[Path] = (),
    ) -> None:
        self.root = root if root is not None else Path.cwd()
        self.below = below
        self._trusted = frozenset(resolved(self.root / path) for path in trusted)
        self._documents: dict[tuple[Path, Kind], Document] = {}
        self.here = HereFiles()
        """What shell scripts write themselves."""
        self._roles: dict[Path, Kind] = {}
        """As what a run has read a file whose name does not tell (``--config_file fsdp.conf``)."""
        self._files: dict[Path, FileText] = {}
        self._stored_files: dict[Path, FileText] = {}
        """Files as they lie on the disk, each as it was first read: all overlays share them."""
        self._absent: dict[Path, str] = {}
        """Why there is no file at a resolved path: a run looks for the modules that it imports in many places."""
        self._resolved: dict[Path, Path] = {}
        self._stands: dict[Path, Path] = {}
        """Where a path stands, links to its folder followed and one at its end not."""
        self.work = of_tree()
        """What all readings together may take, whatever texts the files have."""
        self._names: dict[str, list[Path]] | None = None
        """Where files lie below the root, by their names; asked for only where a name leads nowhere."""
        self._callers_first: Sequence[Path] | None = None
        """Of these, what may start a shell script, in the order in which it is looked into."""
        self._overlay = {self._resolve(path): text for path, text in (overlay or {}).items()}
        self._handed = frozenset(self._overlay)
        """Texts that came from elsewhere and go back there."""
        self._staged = {self._resolve(path): text for path, text in (staged or {}).items()}
        self._overlay = {**self._staged, **self._overlay}
        self._callees: set[Path] = set()
        """Scripts of which is being asked what starts them."""
        self.circular = False
        """Whether scripts may start each other: what is read of these hangs on which of them is read first."""
        self._asked: list[set[Path]] = []
        """What is asked for inside of :meth:`asked`, the innermost last."""
        self._asked_by: dict[tuple[Path, Kind], frozenset[Path]] = {}
        """What a document asked for when it was parsed (files that a shell script sources)."""
        self._expected: Mapping[tuple[Path, Kind], Expected] = {}
        """What is known of documents before they are parsed."""
        self._told: dict[Path, dict[str, str]] = {}
        """What the texts of files alone tell, by the path that a file was asked for by, and by question."""
        self._unread: dict[Path, Path] = {}
        """Where files lie that were asked for and need not be read for the answer: the path that each goes by."""
        self._settled: frozenset[Path] = frozenset()
        self.ambiguous: set[Path] = set()
        """Files that were asked for under several names, or whose kind is told by who has asked for them first: what
        is made of them hangs on the order of the questions."""

    @property
    def overlay(self) -> Mapping[Path, str]:
        """The texts held in memory, by resolved path."""
        return self._overlay

    @contextmanager
    def asked(self) -> Iterator[set[Path]]:
        """The paths that are read or looked for meanwhile, found or not: where they lead, and where they stand."""
        found: set[Path] = set()
        self._asked.append(found)
        try:
            yield found
        finally:
            self._asked.pop()
            if self._asked:
                self._asked[-1].update(found)

    @contextmanager
    def asking(self, found: set[Path]) -> Iterator[None]:
        """The same, added to what somebody has asked for before."""
        with self.asked() as asked:
            yield
        found |= asked

    def ask(self, paths: Iterable[Path]) -> None:
        """Note what was asked for when something was made that is now taken again."""
        if self._asked:
            self._asked[-1].update(paths)

    def expect(self, documents: Mapping[tuple[Path, Kind], Expected]) -> None:
        """Parse these documents when somebody looks into them, not before: their text is as it was."""
        self._expected = documents

    def know(self, told: Mapping[Path, Mapping[str, str]]) -> None:
        """Take what these files tell (:meth:`told`) as it was: their texts are as they were."""
        self._told = {path: {**answers} for path, answers in told.items()}

    def all_told(self) -> Iterator[tuple[Path, Path, Mapping[str, str]]]:
        """Whatever files have told: the path that they were asked for by, where that leads, and the answers."""
        for path, answers in self._told.items():
            yield path, self._resolve(path), answers

    def told(self, path: Path, question: str, of_text: Callable[[str], str]) -> str:
        """What a file's text alone tells, which is asked of it once. Raises ReadError."""
        resolved = self._resolve(path)
        if resolved in self._overlay:
            return of_text(self.file(path).text)
        known = self._told.get(path, {}).get(question)
        if known is None:
            known = of_text(self.file(path).text)
            self._told.setdefault(path, {})[question] = known
        else:
            self._note(path, resolved)
            if resolved not in self._files:
                self._unread.setdefault(resolved, path)
        return known

    def documents(self) -> Iterator[tuple[Path, Kind, Document, frozenset[Path]]]:
        """Every document so far: where it leads, its kind, and what it asked for."""
        for key, document in self._documents.items():
            yield *key, document, self._asked_by.get(key, frozenset())

    def hangs_on(self, document: Document) -> frozenset[Path]:
        """The files that a document is read from."""
        resolved = self._resolve(document.path)
        kind = document.kind if self.here.name_of(document) is None else Kind.SHELL
        return self._asked_by.get((resolved, kind), frozenset()) | {resolved}

    def holds(self, document: Document) -> bool:
        """Whether this is the document of its path here, as it lies on the disk."""
        resolved = self._resolve(document.path)
        return resolved not in self._overlay and self._documents.get((resolved, document.kind)) is document

    def _note(self, path: Path, resolved: Path) -> None:
        if self._asked:
            stands = self._stands.get(path)
            if stands is None:
                stands = self._stands[path] = self._resolve(path.parent) / path.name
            self._asked[-1].update((resolved, stands))

    def exists(self, path: Path) -> bool:
        """Whether there is a file (not a folder) to read at this path."""
        resolved = self._resolve(path)
        self._note(path, resolved)
        return resolved in self._overlay or is_file(resolved)

    def file(self, path: Path, kind: Kind | None = None) -> FileText:
        """The text of a file, read once. Raises :class:`~lintfit.documents.files.ReadError`."""
        resolved = self._resolve(path)
        self._note(path, resolved)
        file = self._files.get(resolved)
        if file is None:
            if resolved in self._overlay:
                file = self._overlaid(path, resolved, kind)
            else:
                first = self._unread.get(resolved)
                file = self._stored(first or path, resolved, kind if first is None else None)
            self._files[resolved] = file
        if file.path != path and resolved not in self._settled:
            self.ambiguous.add(resolved)
        return file

    def settle(self) -> None:
        """Say that the files read so far go by the names that they have now, whoever asks for them later."""
        self._settled = frozenset((*self._files, *self._unread))

    def read(self, path: Path, kind: Kind | None = None) -> Document:
        """The document at a path, parsed once for each kind it is asked for as.

        ``kind`` is what the file's role in a run says. It defaults to what the suffix or the shebang says; where they
        say nothing, to the role in which the file has been read before. ``Document.path`` is the path as first given.
        Raises :class:`~lintfit.documents.files.ReadError`, also where the kind is not statically known.
        """
        resolved = self._resolve(path)
        try:
            file = self.file(path, kind)
        except ReadError as error:
            raise ReadError(path, error.reason) from None
        named = kind_of(path, file.text)
        if kind is not None and named is None:
            self._roles.setdefault(resolved, kind)
            self.ambiguous.add(resolved)
        kind = kind or named or self._roles.get(resolved)
        if kind is None:
            raise ReadError(path, "is neither JSON, YAML, Python nor a shell script by its name or first line")
        key = (resolved, kind)
        document = self._documents.get(key)
        if document is None:
            if is_notebook(path) and kind in (Kind.PYTHON, Kind.SHELL):
                file = _cells(path, file, kind)
            expected = self._expected.get(key)
            if expected is not None and expected.path != file.path:
                self.ambiguous.add(resolved)
            elif expected is not None:
                document = self._documents[key] = expected.document(file, kind, lambda: self._parsed(file, kind))
                asked: Collection[Path] = expected.asked
                self.ask(asked)
            if document is None:
                with self.asked() as asked:
                    document = self._documents[key] = self._parsed(file, kind)
            if asked:
                self._asked_by[key] = frozenset(asked)
        elif self._asked and key in self._asked_by:
            self._asked[-1].update(self._asked_by[key])
        return document

    def _parsed(self, file: FileText, kind: Kind) -> Document:
        return self._shell(file) if kind is Kind.SHELL else reader(kind)(file)

    def _shell(self, file: FileText) -> Document:
        from lintfit.documents.shell_callers import asks, given_to
        from lintfit.documents.shell_reader import read_shell

        document = read_shell(file, self._sourced, None, self.work.shells)
        if self.work.shells.spent:  # what others have spent hangs on their order
            self.ambiguous.add(self._resolve(file.path))
        if document.open_text is None or file.within is not None or not asks(document):
            return document
        self.ask((ANY_SHELL / file.path,))
        same = (path for path in self.named(file.path.name) if path != file.path)
        given = given_to(file.path, file.text, self._callers(file.path), same)
        return document if given is None else read_shell(file, self._sourced, given, self.work.shells)

    def jobs(self, script: Path) -> Iterator[ShellDocument]:
        """The scripts of the tree that say how a batch system is to run them, and start another one."""
        from lintfit.documents.shell_callers import starts

        yield from (each for each in self._callers(script) if each.directives and starts(each, script))

    def _callers(self, script: Path) -> Iterator[ShellDocument]:
        """The scripts and pages of the tree that may start a script, but for those of which that is being asked."""
        from lintfit.documents.markdown import is_page
        from lintfit.documents.shell_callers import mentions, page_as_script
        from lintfit.documents.shell_document import ShellDocument
        from lintfit.documents.shell_reader import read_shell

        if script in self._callees or script.is_absolute():
            self.circular |= script in self._callees
            return
        self._callees.add(script)
        try:
            for path in self._shells():
                try:
                    if path == script or not mentions(self._unnoted(path), script):
                        continue
                    if path in self._callees:
                        self.circular = True
                        continue
                    if is_page(path):
                        yield read_shell(page_as_script(self.file(path), script), None, None, self.work.shells)
                        continue
                    document = self.read(path, Kind.SHELL)
                    if isinstance(document, ShellDocument):
                        yield document
                except ReadError:
                    continue
        finally:
            self._callees.discard(script)

    def _unnoted(self, path: Path) -> str:
        """A file's text, of which no run has anything yet."""
        asked, self._asked = self._asked, []
        try:
            return self.file(path).text
        finally:
            self._asked = asked

    def _shells(self) -> Sequence[Path]:
        """The shell scripts and pages below the root, those that lie highest first."""
        if self._callers_first is None:
            self.named("")
            paths = (path for paths in (self._names or {}).values() for path in paths if kind_of(path) is Kind.SHELL)
            self._callers_first = sorted(paths, key=lambda path: (len(path.parts), path))[:_MOST_CALLERS]
        return self._callers_first

    def _sourced(self, path: Path) -> FileText | None:
        """The text of a file that a shell script sources; None where it cannot be read, or lies outside: a report would
        show what it sets."""
        try:
            return self.file(path, Kind.SHELL) if self.exists(path) and self.is_inside(path) else None
        except ReadError:
            return None

    def named(self, name: str) -> tuple[Path, ...]:
        """The files of this name below the root, but for those in hidden folders and installed packages."""
        if self._names is None:
            self._names = {}
            for index, (here, folders, names) in enumerate(walk(self.root)):
                if index > _MOST_FOLDERS:
                    break
                folders[:] = sorted(each for each in folders if each[:1] != "." and each not in _NOT_OWN)
                for each in names:
                    self._names.setdefault(each, []).append((here / each).relative_to(self.root))
        return tuple(self._names.get(name, ()))

    def is_absent(self, path: Path) -> bool:
        """Whether this path has been asked for and is no file; False says nothing."""
        resolved = self._resolve(path)
        self._note(path, resolved)
        return resolved in self._absent and resolved not in self._overlay

    def with_overlay(self, texts: Mapping[Path, str]) -> Workspace:
        """A workspace in which these paths hold these texts; all other documents are shared, not read again."""
        other = Workspace(self.root, below=self.below)
        other._trusted = self._trusted
        other._overlay = {**self._overlay, **{self._resolve(path): text for path, text in texts.items()}}
        changed = {path for path, text in other._overlay.items() if self._overlay.get(path) != text}
        other._documents = {
            key: document
            for key, document in self._documents.items()
            if key[0] not in changed and changed.isdisjoint(self._asked_by.get(key, ()))
        }
        other._absent, other._resolved, other._handed = dict(self._absent), self._resolved, self._handed
        other._roles, other._staged, other._asked_by = self._roles, self._staged, self._asked_by
        other._files = {path: file for path, file in self._files.items() if path not in changed}
        other._stands, other._asked = self._stands, self._asked
        other._settled, other.ambiguous = self._settled, self.ambiguous
        other._told, other._unread = self._told, self._unread
        other._stored_files, other._names, other._callers_first = self._stored_files, self._names, self._callers_first
        other.work = self.work
        return other

    def work_on(self, path: Path, most: int, what: str) -> Steps:
        """The one counter that all readings of a file draw from, with changes of it in memory."""
        return self.work.on(self._resolve(path), most, what)

    @contextmanager
    def apart(self, work: Work) -> Iterator[None]:
        """Have what is read meanwhile drawn from another counter: what is spent there leaves the rest as it is."""
        own, self.work = self.work, work
        try:
            yield
        finally:
            self.work = own

    def located(self, path: Path) -> Path:
        """Where a path leads, as it was when it was first asked for."""
        return self._resolve(path)

    def is_inside(self, path: Path) -> bool:
        """Whether a path leads, links and ``..`` followed, to a place below which this workspace writes."""
        return self.below is None or is_below(self._resolve(path), self.below)

    def _leads_out(self, path: Path, resolved: Path) -> bool:
        """Whether a link of the tree leads to what is none of it: whoever wrote the tree need not be let read that."""
        if self.below is None or resolved in self._trusted or is_below(resolved, self.below):
            return False
        written = Path(os.path.normpath(path if path.is_absolute() else self._resolve(Path()) / path))
        return is_below(written, self.below)

    def why_not_changed(self, path: Path) -> str:
        """Why a change of this file is not written; empty where it is, or goes back to where the text came from."""
        if self._resolve(path) in self._staged:
            return f"{path.as_posix()}: is staged otherwise than it lies here, so that it is not written"
        if self._resolve(path) in self._handed or self.is_inside(path):
            return ""
        folders = " and ".join(map(str, self.below or ()))
        return f"{path.as_posix()}: lies outside of {folders}, below which lintfit writes"

    def write(self, texts: Mapping[Path, str]) -> None:
        """Write all texts or none, if the files are still as they were read.

        Raises :class:`~lintfit.documents.files.WriteError`.
        """
        changes: dict[FileText | Path, str] = {
            self.file(path) if self.exists(path) else path: text for path, text in texts.items()
        }
        write_files(changes, self.root, self.below)

    def _stored(self, path: Path, resolved: Path, kind: Kind | None) -> FileText:
        if resolved in self._absent:
            raise ReadError(path, self._absent[resolved])
        if self._leads_out(path, resolved):
            raise ReadError(path, "is a link that leads out of what is checked")
        found = self._stored_files.get(resolved)
        if found is not None:
            return replace(found, path=path)
        try:
            seen.reading_for = str(resolved)
            file = self._stored_files[resolved] = replace(read_text(self.root / path, kind), path=path)
            return file
        except ReadError as error:
            if not self.exists(path):
                self._absent[resolved] = error.reason
            raise ReadError(path, error.reason) from None
        finally:
            seen.reading_for = None

    def text_of(self, resolved: Path) -> str:
        """The text of a file by where it lies, of which no run has anything yet. Raises ReadError."""
        return self._stored(resolved, resolved, None).text

    def _overlaid(self, path: Path, resolved: Path, kind: Kind | None) -> FileText:
        text = self._overlay[resolved]
        # The original bytes' encoding, mode and digest still belong to the file that the new text will replace.
        try:
            return replace(self._stored(path, resolved, kind), text=text)
        except ReadError:
            return FileText(path, text)

    def _resolve(self, path: Path) -> Path:
        found = self._resolved.get(path)
        if found is None:
            found = self._resolved[path] = located(self.root / path)
        return found


def _cells(path: Path, file: FileText, kind: Kind) -> FileText:
    """What a notebook holds of Python or of shell. Raises ReadError where it is none."""
    from lintfit.documents.notebook import NotNotebook, read_notebook
    from lintfit.documents.notebook_code import as_python
    from lintfit.documents.notebook_shell import as_shell

    try:
        notebook = read_notebook(file.text)
    except NotNotebook as error:
        raise ReadError(path, str(error)) from None
    return as_shell(file, notebook) if kind is Kind.SHELL else as_python(file, notebook)


def reader(kind: Kind) -> Callable[[FileText], Document]:
    """The function that reads text of this kind. Its module is imported only now: the parsers are heavy."""
    match kind:
        case Kind.JSON | Kind.YAML:
            return reader_of(kind)
        case Kind.PYTHON:
            from lintfit.documents import python_nodes

            python_nodes.load()
            from lintfit.documents.python_reader import read_python

            return read_python
        case Kind.SHELL:
            from lintfit.documents.shell_reader import read_shell

            return read_shell
