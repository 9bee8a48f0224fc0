"""The files of one invocation, each read once, and the same files as they would be after a fix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from lintfit.documents.files import ReadError, kind_of, read_text
from lintfit.documents.model import Document, FileText, Kind


class Workspace:
    """Reads documents relative to ``root``, from memory where ``overlay`` holds a text for the path."""

    def __init__(self, root: Path | None = None, overlay: Mapping[Path, str] | None = None) -> None:
        self.root = root if root is not None else Path.cwd()
        self._documents: dict[tuple[Path, Kind], Document] = {}
        self._roles: dict[Path, Kind] = {}
        """As what a run has read a file whose name does not tell (``--config_file fsdp.conf``)."""
        self._files: dict[Path, FileText] = {}
        self._originals: dict[Path, FileText] = {}
        self._absent: dict[Path, str] = {}
        """Why there is no file at a resolved path: a run looks for the modules that it imports in many places."""
        self._resolved: dict[Path, Path] = {}
        self._overlay = {self._resolve(path): text for path, text in (overlay or {}).items()}

    @property
    def overlay(self) -> Mapping[Path, str]:
        """The texts held in memory, by resolved path."""
        return self._overlay

    def exists(self, path: Path) -> bool:
        """Whether there is a file (not a folder) to read at this path."""
        resolved = self._resolve(path)
        if resolved in self._overlay:
            return True
        try:
            return resolved.is_file()
        except (OSError, ValueError):  # no name of a file: a NUL, half a pair of surrogates
            return False

    def file(self, path: Path, kind: Kind | None = None) -> FileText:
        """The text of a file, read once. Raises :class:`~lintfit.documents.files.ReadError`."""
        resolved = self._resolve(path)
        file = self._files.get(resolved)
        if file is None:
            file = (
                self._overlaid(path, resolved, kind)
                if resolved in self._overlay
                else self._stored(path, resolved, kind)
            )
            self._files[resolved] = file
        return file

    def read(self, path: Path, kind: Kind | None = None) -> Document:
        """The document at a path, parsed once for each kind it is asked for as.

        ``kind`` is what the file's role in a run says. It defaults to what the suffix or the shebang says; where they
        say nothing, to the role in which the file has been read before. ``Document.path`` is the path as first given.
        Raises :class:`~lintfit.documents.files.ReadError`, also where the kind cannot be told.
        """
        resolved = self._resolve(path)
        try:
            file = self.file(path, kind)
        except ReadError as error:
            raise ReadError(path, error.reason) from None
        named = kind_of(path, file.text)
        if kind is not None and named is None:
            self._roles.setdefault(resolved, kind)
        kind = kind or named or self._roles.get(resolved)
        if kind is None:
            raise ReadError(path, "is neither JSON, YAML, Python nor a shell script by its name or first line")
        key = (resolved, kind)
        document = self._documents.get(key)
        if document is None:
            document = self._documents[key] = self._shell(file) if kind is Kind.SHELL else reader(kind)(file)
        return document

    def _shell(self, file: FileText) -> Document:
        from lintfit.documents.shell_reader import read_shell

        return read_shell(file, self._sourced)

    def _sourced(self, path: Path) -> FileText | None:
        """The text of a file that a shell script sources; None where it cannot be read."""
        try:
            return self.file(path, Kind.SHELL) if self.exists(path) else None
        except ReadError:
            return None

    def is_absent(self, path: Path) -> bool:
        """Whether this path has been asked for and is no file; False says nothing."""
        return self._resolve(path) in self._absent and self._resolve(path) not in self._overlay

    def with_overlay(self, texts: Mapping[Path, str]) -> Workspace:
        """A workspace in which these paths hold these texts; all other documents are shared, not read again."""
        other = Workspace(self.root)
        other._overlay = {**self._overlay, **{self._resolve(path): text for path, text in texts.items()}}
        changed = {path for path, text in other._overlay.items() if self._overlay.get(path) != text}
        other._documents = {key: document for key, document in self._documents.items() if key[0] not in changed}
        other._absent, other._resolved = dict(self._absent), self._resolved
        other._roles = self._roles
        other._files = {path: file for path, file in self._files.items() if path not in changed}
        # The original bytes' encoding, mode and digest still belong to the file that the new text will replace.
        other._originals = {**self._originals, **{path: self._files[path] for path in changed if path in self._files}}
        return other

    def _stored(self, path: Path, resolved: Path, kind: Kind | None) -> FileText:
        if resolved in self._absent:
            raise ReadError(path, self._absent[resolved])
        try:
            return replace(read_text(self.root / path, kind), path=path)
        except ReadError as error:
            if not self.exists(path):
                self._absent[resolved] = error.reason
            raise ReadError(path, error.reason) from None

    def _overlaid(self, path: Path, resolved: Path, kind: Kind | None) -> FileText:
        text = self._overlay[resolved]
        original = self._originals.get(resolved)
        if original is None:
            try:
                original = read_text(self.root / path, kind)
            except ReadError:
                return FileText(path, text)
        return replace(original, path=path, text=text)

    def _resolve(self, path: Path) -> Path:
        found = self._resolved.get(path)
        if found is None:
            try:
                found = (self.root / path).resolve()
            except (OSError, RuntimeError, ValueError):
                found = (self.root / path).absolute()
            self._resolved[path] = found
        return found


def reader(kind: Kind) -> Callable[[FileText], Document]:
    """The function that reads text of this kind. Its module is imported only now: the parsers are heavy."""
    match kind:
        case Kind.JSON:
            from lintfit.documents.json_reader import read_json

            return read_json
        case Kind.YAML:
            from lintfit.documents.yaml_reader import read_yaml

            return read_yaml
        case Kind.PYTHON:
            from lintfit.documents.python_reader import read_python

            return read_python
        case Kind.SHELL:
            from lintfit.documents.shell_reader import read_shell

            return read_shell
