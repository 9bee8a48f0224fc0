"""Reading a file as text and writing text as the same file again: all files of a change, or none."""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lintfit.documents.attributes import CannotKeep, hand_on
from lintfit.documents.door import opened
from lintfit.documents.limits import MAX_BYTES, MAX_NOTEBOOK, too_large
from lintfit.documents.markdown import is_page
from lintfit.documents.model import FileText, Kind
from lintfit.documents.paths import is_below, resolved
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.signals import held
from lintfit.errors import LintfitError

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SUFFIXES = {
    Kind.JSON: (".json", ".jsonc", ".hjson"),
    Kind.YAML: (".yaml", ".yml"),
    Kind.PYTHON: (".py", ".ipynb"),
    Kind.SHELL: (".sh", ".bash", ".slurm", ".sbatch", ".job", ".args", ".mk", ".just", ".md", ".markdown", ".mdx"),
}
_KINDS = {suffix: kind for kind, suffixes in _SUFFIXES.items() for suffix in suffixes}
NOTEBOOK = ".ipynb"
_SHELL_NAMES = frozenset({"Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", ".justfile"})
_WORKFLOWS = (".github", "workflows")
"""Where GitHub keeps its workflows, whose steps are shell commands."""
_SHEBANG = lazy_pattern(r"#![^\n]*?\b(?:(python)[0-9.]*|(?:ba|da|z|k)?(sh))\b")
ONLY_POINTER = "only a Git LFS pointer to it is here (git lfs pull brings the file)"
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_LONGEST_POINTER = 1024
"""What stands in the place of a file that Git LFS has not brought: a text that begins so and has fewer bytes
(git-lfs, ``docs/spec.md``)."""
_REASONS = {
    errno.ENOENT: "no such file",
    errno.ENOTDIR: "no such file",
    errno.EISDIR: "is a directory, not a file",
    errno.EACCES: "no permission to read it",
    errno.EPERM: "no permission to read it",
    errno.ELOOP: "its symbolic links lead in a circle",
    errno.ENAMETOOLONG: "the name is too long for a file",
}


class ReadError(LintfitError):
    """A file that cannot be read as text: the path as it was given, and why."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path.as_posix()}: {reason}")
        self.path = path
        self.reason = reason


class WriteError(LintfitError):
    """A change that was not written; no file of it was, but for those ``left`` that could not be put back."""

    def __init__(self, path: Path, reason: str, left: Sequence[Path] = ()) -> None:
        names = ", ".join(each.as_posix() for each in left)
        outcome = f"what was written is taken back, but not in {names}" if left else "nothing was written"
        super().__init__(f"{path.as_posix()}: {reason}; {outcome}")
        self.path = path
        self.reason = reason


def is_notebook(path: Path) -> bool:
    """Whether a path is that of a notebook."""
    return path.suffix.lower() == NOTEBOOK


def kind_of(path: Path, text: str = "") -> Kind | None:
    """The kind of a file by its suffix, else by the shebang of its text; None where neither tells."""
    if path.name in _SHELL_NAMES or path.parts[-3:-1] == _WORKFLOWS:
        return Kind.SHELL
    kind = _KINDS.get(path.suffix.lower())
    if kind is None and text.startswith("#!"):
        shebang = _SHEBANG.match(text)
        if shebang:
            kind = Kind.PYTHON if shebang[1] else Kind.SHELL
    return kind


def read_text(path: Path, kind: Kind | None = None) -> FileText:
    """Read and decode a file, keeping all that is needed to write the same bytes again.

    ``kind`` (default: by the suffix) decides how it may be encoded: JSON and YAML are UTF-8 (or UTF-16 with its
    byte-order mark), Python follows its coding cookie (PEP 263), a shell script that is not UTF-8 is latin-1. Python
    refuses UTF-16 (``Non-UTF-8 code starting with '\\xff'``), bash as a binary file, and nbformat reads UTF-8 alone.
    Raises :class:`ReadError` with one line for a file that is missing, no file, not readable, too large or not text, or
    that is only a pointer of Git LFS.
    """
    kind = _encoded_as(path, kind or kind_of(path))
    limit = max(MAX_BYTES.values()) if kind is None else MAX_BYTES[kind]
    limit = MAX_NOTEBOOK if is_notebook(path) else limit
    try:
        data, mode = opened(path, limit)
    except OSError as error:
        large = f"larger than {limit >> 20} MiB" if is_notebook(path) else too_large(kind or Kind.PYTHON)
        reason = large if error.errno == errno.EFBIG else _reason(error)
        raise ReadError(path, reason) from None
    except ValueError:
        raise ReadError(path, "its name holds a NUL character") from None
    text, encoding, bom = _decode(path, data, kind)
    return FileText(path, text, encoding, bom, stat.S_IMODE(mode), hash(data))


def encode(file: FileText, text: str) -> bytes:
    """The bytes of ``text`` in the file's own encoding and with its byte-order mark: the inverse of :func:`read_text`.

    Raises LintfitError where the encoding lacks a character of the text.
    """
    try:
        return file.bom + text.encode(file.encoding)
    except UnicodeEncodeError as error:
        character = text[error.start]
        reason = f"its encoding {file.encoding} has no {character!r}"
        raise WriteError(file.path, reason) from None


def _reason(error: OSError) -> str:
    return _REASONS.get(error.errno or 0) or (error.strerror or "cannot be read").lower()


def decode(path: Path, data: bytes, kind: Kind | None = None) -> FileText:
    """Text that did not come from a file, read as one at this path would be. Raises :class:`ReadError`."""
    text, encoding, bom = _decode(path, data, _encoded_as(path, kind or kind_of(path)))
    return FileText(path, text, encoding, bom)


def _encoded_as(path: Path, kind: Kind | None) -> Kind | None:
    """What a file of a kind is written in: a notebook's code stands in JSON."""
    return Kind.JSON if is_notebook(path) else kind


def _decode(path: Path, data: bytes, kind: Kind | None) -> tuple[str, str, bytes]:
    if len(data) < _LONGEST_POINTER and data.startswith(_LFS_POINTER):
        raise ReadError(path, ONLY_POINTER)
    bom, encoding = next((found for found in _BOMS if data.startswith(found[0])), (b"", "utf-8"))
    if not bom:
        if b"\0" in data:
            raise ReadError(path, "is binary, not text")
        if kind is Kind.PYTHON:
            encoding = _cookie(path, data)
    elif encoding != "utf-8" and (kind in (Kind.PYTHON, Kind.SHELL) or is_notebook(path)) and not is_page(path):
        raise ReadError(path, f"its text is {encoding.upper()}, which what runs it does not read: save it as UTF-8")
    body = data[len(bom) :]
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        if kind is Kind.SHELL and not bom:
            return body.decode("latin-1"), "latin-1", bom
        raise ReadError(path, _undecodable(body, encoding, error.start, kind)) from None
    except (LookupError, UnicodeError):  # a cookie may name any codec of Python's, such as hex or punycode
        raise ReadError(path, f"its coding cookie names {encoding}, which does not read it: save it as UTF-8") from None
    if "\0" in text:
        raise ReadError(path, "is binary, not text")
    if not _writes_back(text, encoding, body):
        raise ReadError(path, f"its {encoding} text cannot be written back byte for byte")
    return text, encoding, bom


def _writes_back(text: str, encoding: str, body: bytes) -> bool:
    try:
        return text.encode(encoding) == body
    except UnicodeError:
        return False


def _cookie(path: Path, data: bytes) -> str:
    if b"coding" not in data:
        return "utf-8"
    import tokenize

    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        if "unknown encoding" in str(error):
            raise ReadError(path, f"its coding cookie names an {error.msg}") from None
        return "utf-8"
    return encoding


def _undecodable(body: bytes, encoding: str, at: int, kind: Kind | None) -> str:
    line = len(re.findall(rb"\r\n|\r|\n", body[:at])) + 1
    remedy = {
        Kind.JSON: "JSON must be UTF-8",
        Kind.YAML: "YAML must be UTF-8",
        Kind.PYTHON: "save it as UTF-8 or declare its encoding (# -*- coding: latin-1 -*-)",
    }
    advice = remedy.get(kind, "save it as UTF-8") if kind else "save it as UTF-8"
    return f"line {line}: byte 0x{body[at]:02x} is not {encoding}: {advice}"


@dataclass(slots=True)
class _Target:
    """One file of a change: what it shall hold, and what it held."""

    shown: Path
    path: Path
    data: bytes
    mode: int | None
    old: bytes | None
    digest: int | None = None
    """Of what it must still hold when it is replaced; None where that does not matter."""
    new: bool = False
    """It must not exist yet."""
    temporary: Path | None = None
    written: tuple[int, int] | None = None
    """Device and inode of the file that has taken its place."""


def write_files(
    changes: Mapping[FileText | Path, str], root: Path | None = None, below: Sequence[Path] | None = None
) -> None:
    """Write new texts: a FileText is a file as it was read, a bare Path a file that must not exist yet.

    Relative paths are relative to ``root`` (default: the working directory). Nothing is written outside of the folders
    ``below`` (resolved; None: anywhere), wherever links and ``..`` lead.

    All or none, as far as a file system allows: every text is first written to a temporary file beside its target
    (with its owner, mode bits, extended attributes, encoding and byte-order mark), then each replaces its target at
    once; a failure puts the earlier ones back, unless somebody else has changed them since. A signal that ends the
    process waits until then. A symbolic link stays a link. Raises :class:`WriteError`, and has written nothing, where a
    file has changed since it was read or may not be written, a new file exists already, or a folder cannot be written
    to.
    """
    targets = [_target(root or Path(), file, text, below) for file, text in changes.items()]
    with held() as waiting:
        _write(targets, waiting)


def write_whole(path: Path, text: str, below: Sequence[Path] | None = None) -> None:
    """Give a file this text, whatever it held, all of it at once. Raises LintfitError where that cannot be."""
    try:
        _write_whole(path, text, below)
    except WriteError as error:
        raise LintfitError(f"{path}: cannot be written: {error.reason}") from None


def _write_whole(path: Path, text: str, below: Sequence[Path] | None) -> None:
    target = _Target(path, _allowed(path, path, below), text.encode("utf-8", "backslashreplace"), None, None)
    try:
        status = target.path.stat() if target.path.exists() else None
    except OSError as error:
        raise WriteError(path, _reason(error)) from None
    if status is not None:
        if not stat.S_ISREG(status.st_mode):
            raise WriteError(path, "is not a regular file")
        if not os.access(target.path, os.W_OK):
            raise WriteError(path, "no permission to write it")
        target.mode = stat.S_IMODE(status.st_mode)
    with held() as waiting:
        _write([target], waiting)


def _write(targets: Sequence[_Target], waiting: Callable[[], str]) -> None:
    try:
        for target in targets:
            _prepare(target)
            if name := waiting():
                raise WriteError(target.shown, f"stopped by {name}")
        for target in targets:
            _replace(target)
    except OSError as error:
        left = _roll_back(targets)
        failed = next((target.shown for target in targets if target.written is None), targets[-1].shown)
        raise WriteError(failed, (error.strerror or str(error)).lower(), left) from None
    except WriteError as error:
        raise WriteError(error.path, error.reason, _roll_back(targets)) from None
    except BaseException:
        _roll_back(targets)
        raise
    finally:
        for target in targets:
            _remove_temporary(target)


def _target(root: Path, file: FileText | Path, text: str, below: Sequence[Path] | None) -> _Target:
    if isinstance(file, Path):
        path = root / file
        if path.exists() or path.is_symlink():
            raise WriteError(file, "exists already")
        return _Target(file, _allowed(file, path, below), text.encode("utf-8"), None, None, new=True)
    data = encode(file, text)
    try:
        path = (root / file.path).resolve(strict=True)
    except (OSError, RuntimeError):
        raise WriteError(file.path, "is gone since it was read") from None
    _allowed(file.path, path, below)
    if not os.access(path, os.W_OK):  # replacing it would only ask its folder
        raise WriteError(file.path, "no permission to write it")
    old = _bytes(file.path, path)
    digest = hash(old)
    if file.digest is not None and digest != file.digest:
        raise WriteError(file.path, _CHANGED)
    return _Target(file.path, path, data, file.mode, old, digest)


_CHANGED = "has changed since it was read"


def _allowed(shown: Path, path: Path, below: Sequence[Path] | None) -> Path:
    """Where a path leads, if something may be written there."""
    found = resolved(path)
    if below is not None and not is_below(found, below):
        raise WriteError(shown, f"lies outside of {' and '.join(map(str, below))}, below which lintfit writes")
    return found


def _bytes(shown: Path, path: Path) -> bytes:
    try:
        return opened(path, max(MAX_BYTES.values()))[0]
    except OSError as error:
        raise WriteError(shown, _reason(error)) from None


def _prepare(target: _Target) -> None:
    import tempfile

    descriptor, name = tempfile.mkstemp(prefix=f".{target.path.name[:40]}.", suffix=".tmp", dir=target.path.parent)
    target.temporary = Path(name)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(target.data)
        stream.flush()
        os.fsync(stream.fileno())
    if target.mode is None:
        target.temporary.chmod(_new_file_mode())
        return
    try:
        hand_on(target.path, target.temporary, target.mode)
    except CannotKeep as error:
        raise WriteError(target.shown, str(error)) from None


def _new_file_mode() -> int:
    # The process's mask can only be read by setting it.
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def _replace(target: _Target) -> None:
    assert target.temporary is not None
    if target.digest is not None and hash(_bytes(target.shown, target.path)) != target.digest:
        raise WriteError(target.shown, _CHANGED)  # while the others were prepared or replaced
    status = target.temporary.stat()
    if target.new:
        # A link fails where the file has come to be in the meantime; replacing would not.
        try:
            os.link(target.temporary, target.path)
        except FileExistsError:
            raise
        except OSError:
            target.temporary.replace(target.path)
    else:
        target.temporary.replace(target.path)
    target.written = status.st_dev, status.st_ino


def _roll_back(targets: Sequence[_Target]) -> tuple[Path, ...]:
    """Put back what this process has replaced; what somebody else has written over it since is left, and named."""
    written = [target for target in targets if target.written is not None]
    return tuple(target.shown for target in written if not _put_back(target))


def _put_back(target: _Target) -> bool:
    try:
        status = target.path.lstat()
        if (status.st_dev, status.st_ino) != target.written or _bytes(target.shown, target.path) != target.data:
            return False
        _remove_temporary(target)
        if target.new:
            target.path.unlink()
        elif target.old is not None:
            target.data = target.old
            _prepare(target)
            assert target.temporary is not None
            target.temporary.replace(target.path)
    except (OSError, WriteError):
        return False
    return True


def _remove_temporary(target: _Target) -> None:
    if target.temporary is not None:
        with contextlib.suppress(OSError):
            target.temporary.unlink(missing_ok=True)
