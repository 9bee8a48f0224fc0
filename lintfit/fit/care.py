"""What a fix would take along with what it mends: comments, and keys that code of the tree reads.

Every fix and every plan passes here before it is offered, so that no rule has to think of it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from lintfit.documents.comments import comments, lost_comments
from lintfit.documents.data_edits import read_again
from lintfit.documents.edits import apply
from lintfit.documents.files import is_notebook
from lintfit.documents.lines import line_end, line_start
from lintfit.documents.model import DataDocument, Document, Edit, Entry, FileEdit, KeyPath, Kind, Node, Span
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.workspace import Workspace, reader
from lintfit.findings.model import Applicability, Fix
from lintfit.frozen import frozen, replace
from lintfit.settings.model import Place

if TYPE_CHECKING:
    from lintfit.run.key_reads import Read

_DIRECTIVE = lazy_pattern(r"(?:#|//|/\*)[ \t]*lintfit:")
_WORDS_BEHIND = lazy_pattern(r"(?:.*[-_])?(?:comments?|notes?|remarks?)", re.IGNORECASE)
_MOST = 4
"""Lines that are named one by one."""
_GO, _SPEAK = ("go", "goes"), ("speak", "speaks")


@frozen
class Taken:
    """What some edits take along: comments, those that speak of a key which goes, and code that reads a key which goes.

    ``key`` is the key that ``read`` reads. ``unsearched``: the edits delete a key, and the tree has more code than is
    searched for it.
    """

    comments: tuple[str, ...] = ()
    speaking: tuple[str, ...] = ()
    read: Read | None = None
    key: str = ""
    unsearched: bool = False


class Care:
    """Looks at what edits take along, against the files of a workspace and the code around them."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def weighed(self, fix: Fix, about: Place | None = None) -> Fix:
        """The fix as it may be offered: unsafe where it loses a comment, only shown where code reads what it deletes.

        A comment for lintfit that the finding at ``about`` speaks of is what the fix is for.
        """
        if not fix.edits or fix.applicability is Applicability.DISPLAY:
            return fix
        if why := _spoken_against(fix.edits):
            return replace(fix, applicability=Applicability.DISPLAY, message=f"{fix.message} ({why})", caution=why)
        taken = self.of(fix.edits, () if about is None else (about,))
        if taken.read is not None and taken.read.sure:
            why = f'{taken.read.where} reads "{taken.key}"'
            message = f"{fix.message} ({why})"
            return replace(
                fix, applicability=Applicability.DISPLAY, message=message, caution=f"{why}, which goes with it"
            )
        note, caution = _why_unsafe(taken)
        if not caution:
            return fix
        if fix.applicability is Applicability.UNSAFE:
            caution = f"{fix.why_unsafe}, {caution}"
        return replace(fix, applicability=Applicability.UNSAFE, message=f"{fix.message}{note}", caution=caution)

    def of(self, edits: Iterable[FileEdit], about: Sequence[Place] = ()) -> Taken:
        """What the edits take along. Raises ValueError where two of them collide.

        Comments for lintfit that findings at the places ``about`` speak of are what the edits are for.
        """
        from lintfit.run.key_reads import key_reads

        reads = key_reads(self._workspace)
        lost: list[str] = []
        speaking: list[str] = []
        read: Read | None = None
        key = ""
        unsearched = False
        for document, own in _by_document(edits):
            meant = sorted(place.span.start for place in about if place.document.path == document.path)
            name = "" if meant else f" of {document.path.as_posix()}"
            if is_notebook(document.path):
                lost += _placed(self._lost_in_cells(document, own, meant), name)
            else:
                lost += _placed(self._lost(document, apply(document.text, own), meant), name)
            text = apply(document.text, own)
            if not isinstance(document, DataDocument) or document.root is None:
                continue
            after = read_again(document, text)
            speaking += _placed(self._speaking(document, after), name)
            for path in _lost_keys(document.root, after.root):
                found = reads.of(document.path, path)
                if found is not None and (read is None or (found.sure and not read.sure)):
                    read, key = found, str(path[-1])
                unsearched = unsearched or (found is None and not reads.whole(document.path))
        return Taken(tuple(lost), tuple(speaking), read, key, unsearched)

    def _lost(self, document: Document, text: str, meant: Sequence[int]) -> Iterator[int]:
        """The lines of the comments that are there no longer."""
        file = self._file(document)
        if not comments(file):
            return
        after = self._changed(file, text)
        lost = [span for span in lost_comments(file, after) if not _is_meant(file, span, meant)]
        was, now = (_but_for_numbers(each) if lost else Counter() for each in (file, after))
        for span in lost:
            words = _DIGITS.sub("0", file.slice(span))
            if was[words] != now[words]:  # else it is there with another number (said_anew)
                yield document.position(span.start).line

    def _lost_in_cells(self, document: Document, edits: Sequence[Edit], meant: Sequence[int]) -> Iterator[int]:
        """The same of the Python in a notebook, whatever of it the edits are in."""
        path = document.path
        before = self._workspace.read(path, Kind.PYTHON)
        text = apply(document.whole, map(document.edit_in_file, edits))
        after = self._workspace.with_overlay({path: text}).read(path, Kind.PYTHON)
        for span in lost_comments(before, after):
            if not _is_meant(before, span, meant):
                yield before.position(span.start).line

    def _speaking(self, document: DataDocument, after: DataDocument) -> Iterator[int]:
        """The lines of the comments that lose what they speak of."""
        assert document.root is not None
        for mapping, key in _deleted(document.root, after.root):
            yield from _beside(self._file(document), mapping, key)

    def _file(self, document: Document) -> Document:
        """The whole file: a document that a shell script writes has the comments of the script around it."""
        if isinstance(document, DataDocument) and document.reader is not None:
            return self._workspace.read(document.path, Kind.SHELL if document.file.within is not None else None)
        return document

    def _changed(self, file: Document, text: str) -> Document:
        """The file with another text, read as far as its comments need it."""
        if isinstance(file, DataDocument):
            return read_again(file, text)
        if file.kind is Kind.PYTHON:
            return Document(replace(file.file, text=text), file.kind)
        if file.file.within is not None:
            return reader(file.kind)(replace(file.file, text=text))
        return self._workspace.with_overlay({file.path: text}).read(file.path, file.kind)


_MEANT = lazy_pattern(
    r"\b(?:same|fair|equal|compar\w*|match\w*|must|never|keep|don'?t|do not)\b|必须|保持|不要|相同|一致|公平",
    re.IGNORECASE,
)
"""Words of a comment that says that a number is meant as it stands, in English and in Chinese (must, keep, do not,
same, consistent, fair)."""
_DIRECTIVE_OF_JOB = re.compile(r"#(?:SBATCH|PBS|BSUB)\b")
_NUMBER = re.compile(r"[\"']?(?P<digits>\d+)[\"']?")


_AGAINST = lazy_pattern(
    r"\b(?:errors?|issues?|bugs?|breaks?|broken|crash\w*|fails?|failed|failures?|corrupt\w*|incompatib\w*|conflicts?"
    r"|unstable|nans?|hangs?|slow\w*|must|never|don'?t|do not)\b"
    r"|\b(?:not|isn'?t|doesn'?t|does not) (?:work\w*|support\w*|compatible)"
    r"|报错|错误|不支持|不兼容|冲突|太慢|不要|必须",
    re.IGNORECASE,
)
"""Words of a comment that says why a switch stands as it does, in English and in Chinese (error, not supported, not
compatible, conflict, too slow, do not, must). That another value saves memory is no reason against it."""
_SWITCH = re.compile(r"[\"']?(?P<word>[A-Za-z_]\w*)[\"']?")
_SWITCHED = re.compile(r"(?P<name>[A-Za-z_][\w-]*)[\"']?[ \t]*(?::[ \t]*[\w.\[\] ]+)?[=: \t][ \t]*$")
"""What stands in front of a switch's value: ``fp16=``, ``"fp16": ``, ``--fp16 ``, ``fp16: bool = ``."""


def spoken_of(edits: Iterable[FileEdit]) -> str:
    """Where a comment beside or right above a number that would change speaks of that number, or says that it is meant,
    or one of a switch says what breaks by the other value: afterwards it would not be true any more. Empty where none
    does."""
    edits = tuple(edits)
    if why := _spoken_against(edits):
        return why
    for document, own in _by_document(edits):
        if is_notebook(document.path) or document.file.within is not None:
            continue
        for edit in own:
            number = _NUMBER.fullmatch(document.slice(edit.span))
            if number is None:
                continue
            said = _said(number["digits"])
            for span in _around(document, edit.span):
                comment = document.slice(span)
                if any(span.start <= other.span.start < span.end for other in own):
                    continue  # it says the new one
                if said.search(comment) or _MEANT.search(comment):
                    return f"{Place(document, span)} says why it is {number['digits']}"
    return ""


def _spoken_against(edits: Iterable[FileEdit]) -> str:
    """Where a comment says why a switch is not as an edit makes it; empty where none does."""
    for document, own in _by_document(edits):
        if not is_notebook(document.path) and document.file.within is None:
            for edit in own:
                if why := _against(document, edit):
                    return why
    return ""


_LONGEST_NAME = 500
"""Characters in front of a switch in which its name is looked for."""


def _against(document: Document, edit: Edit) -> str:
    """Where a comment says why a switch is not as an edit makes it: behind it, or right above it and by its name."""
    switch = _SWITCH.fullmatch(document.slice(edit.span))
    if switch is None:
        return ""
    line = max(line_start(document.text, edit.span.start), edit.span.start - _LONGEST_NAME)
    named = _SWITCHED.search(document.text[line : edit.span.start])
    if named is None:
        return ""
    for span in _around(document, edit.span):
        comment = document.slice(span)
        is_of_it = span.start > edit.span.start or _plain(named["name"]) in _plain(comment)
        if is_of_it and _AGAINST.search(comment):
            return f"{Place(document, span)} says why {named['name'].lstrip('-')} is {switch['word']}"
    return ""


def _plain(words: str) -> str:
    return words.lower().replace("_", " ").replace("-", " ").strip()


def _said(digits: str) -> re.Pattern[str]:
    """A number in a sentence: Chinese and Japanese have no space between a word and it; a full stop may end that."""
    return re.compile(rf"(?<![\w.]){digits}(?!\w|\.\d)", re.ASCII)


_OF_VALUE = re.compile(r"[#/ \t]*(?P<digits>\d+)(?=[ \t]+(?:for|per|with)\b|[ \t]*$)", re.IGNORECASE)
"""A comment that begins with the number beside it: ``batch_size=16,  # 16 for 8B, 2 for 70B``."""


_GENERATED = lazy_pattern(
    r"^[\s#/*;=-]*(?:(?:this|the) (?:file|script|config\w*|recipe)\b[^.]{0,40}?\b)?"
    r"(?:@?(?:auto(?:matically)?[-_ ]?)generated\b|@?generated (?:by|from)\b)"
    r"|\bdo not (?:edit|modify)\b(?!\s+(?:above|below|beyond|after|anything|this line))",
    re.IGNORECASE,
)
"""How the head of a file says that a program writes it: ``# auto-generated by sweep.py, DO NOT EDIT``."""


def generated(document: Document) -> str:
    """The line among a file's first comments that says that a program writes the file; empty where none does."""
    end = 0
    for span in comments(document) if not is_notebook(document.path) else ():
        if document.text[end : span.start].strip("\ufeff \t\r\n-"):
            return ""
        if _GENERATED.search(document.slice(span)):
            return str(Place(document, span))
        end = span.end
    return ""


def said_anew(edits: Iterable[FileEdit]) -> Iterator[FileEdit]:
    """The numbers of comments that only say again the number on their line, where that changes: with it."""
    for document, own in _by_document(edits):
        if is_notebook(document.path) or document.file.within is not None:
            continue
        for edit in own:
            number, new = _NUMBER.fullmatch(document.slice(edit.span)), _NUMBER.fullmatch(edit.text)
            if number is None or new is None:
                continue
            line = line_end(document.text, edit.span.end)
            for span in _around(document, edit.span):
                comment, behind = document.slice(span), edit.span.end <= span.start < line
                again = _OF_VALUE.match(comment)
                if not behind or again is None or again["digits"] != number["digits"] or _MEANT.search(comment):
                    continue
                if len(_said(number["digits"]).findall(comment)) == 1:
                    start = span.start + again.start("digits")
                    there = Span(start, start + len(again["digits"]))
                    yield FileEdit(document.path, Edit(there, new["digits"]), document)


def _but_for_numbers(document: Document) -> Counter[str]:
    """The comments, whatever numbers they have, and how often each is there."""
    return Counter(_DIGITS.sub("0", document.slice(span)) for span in comments(document))


_DIGITS = re.compile(r"\d+")


def _around(document: Document, span: Span) -> Iterator[Span]:
    """The comments on the line of a place, and those on lines of their own right above it."""
    text, line = document.text, line_start(document.text, span.start)
    above = line
    for comment in reversed(comments(document)):
        start = line_start(text, comment.start)
        if _DIRECTIVE_OF_JOB.match(text, comment.start):
            continue
        if line <= comment.start < line_end(text, span.end):
            yield comment
        elif comment.start < line and not text[start : comment.start].strip() and line_end(text, comment.end) == above:
            yield comment
            above = start


def _why_unsafe(taken: Taken) -> tuple[str, str]:
    """What the message says of what goes along, and why the fix is unsafe for it; both empty where nothing does."""
    notes: list[str] = []
    reasons: list[str] = []
    if taken.comments:
        notes.append(f", with {_listed(taken.comments)}")
        reasons.append(f"{_clause(taken.comments, _GO)} with it")
    elif taken.speaking:
        notes.append(f", of which {_clause(taken.speaking, _SPEAK)}")
        reasons.append(f"{_clause(taken.speaking, _SPEAK)} of what goes")
    if taken.read is not None:
        notes.append(f' ({taken.read.where} names "{taken.key}")')
        reasons.append(f'{taken.read.where} may read "{taken.key}", which goes with it')
    elif taken.unsearched:
        reasons.append("the tree has too much code to tell whether any of it reads what goes")
    return "".join(notes), ", ".join(reasons)


def _by_document(edits: Iterable[FileEdit]) -> Iterator[tuple[Document, list[Edit]]]:
    """The edits of each document that is there already."""
    documents: dict[int, Document] = {}
    grouped: dict[int, list[Edit]] = {}
    for edit in edits:
        if edit.document is not None:
            documents[id(edit.document)] = edit.document
            grouped.setdefault(id(edit.document), []).append(edit.edit)
    return ((documents[key], own) for key, own in grouped.items())


def _is_meant(document: Document, comment: Span, meant: Sequence[int]) -> bool:
    """Whether a comment speaks to lintfit and a finding is about it; ``meant`` is where those of the file are, in
    order."""
    index = bisect_left(meant, comment.start)
    if index == len(meant) or meant[index] >= comment.end:
        return False
    return _DIRECTIVE.search(document.slice(comment)) is not None


def _lost_keys(before: Node, after: Node | None) -> Iterator[KeyPath]:
    """The paths of keys that are there no longer; of a section that is gone its own alone."""
    left = {path for path, _ in after.walk()} if after is not None else {()}
    gone: set[KeyPath] = set()
    for path, _ in before.walk():
        if path not in left:
            gone.add(path)
            if path[:-1] not in gone and isinstance(path[-1], str):
                yield path


def _deleted(before: Node, after: Node | None) -> Iterator[tuple[Node, str]]:
    """The keys that are taken out, not renamed, each with the mapping that held it."""
    if after is None or before.shape != "mapping":
        return
    left = {entry.key: entry.value for entry in after.entries}
    keys = {entry.key for entry in before.entries}
    if len(left) < len(keys):
        yield from ((before, key) for key in sorted(keys - left.keys()))
    for entry in before.entries:
        if entry.key in left:
            yield from _deleted(entry.value, left[entry.key])


def _beside(file: Document, mapping: Node, key: str) -> Iterator[int]:
    """The comments that stand by a key: right above it, or as a text under a key of their own, beside or within it."""
    entry = mapping.entry(key)
    assert entry is not None
    yield from _above(file, entry)
    order = [each.key for each in mapping.entries]
    at = order.index(key)
    near = [each for each in mapping.entries[max(0, at - 1) : at + 2] if each is not entry]
    for other in (*near, *(inner for _, node in entry.value.walk() for inner in node.entries)):
        if isinstance(other.value.value, str) and _is_words(other.key):
            yield file.position(other.span.start).line


def _above(file: Document, entry: Entry) -> Iterator[int]:
    text, line = file.text, line_start(file.text, entry.span.start)
    if text[line : entry.span.start].strip():
        return
    for span in comments(file):
        alone = not text[line_start(text, span.start) : span.start].strip()
        if alone and span.end < line == line_end(text, span.end):
            yield file.position(span.start).line


def _is_words(key: str) -> bool:
    """Whether a key stands for a comment: ``_comment``, ``//``, ``#1``, ``note``, ``stage_comment``."""
    return key.startswith(("#", "//", "_")) or _WORDS_BEHIND.fullmatch(key) is not None


def _placed(lines: Iterable[int], name: str) -> list[str]:
    """Comments of one file by their lines: ``the comments on lines 7 and 9``; empty where there is none."""
    found = sorted(set(lines))
    if not found:
        return []
    if len(found) > _MOST:
        return [f"{len(found)} comments (lines {found[0]} to {found[-1]}{name})"]
    plural = "s" if len(found) > 1 else ""
    return [f"the comment{plural} on line{plural} {_listed([str(line) for line in found])}{name}"]


def _clause(words: Sequence[str], verb: tuple[str, str]) -> str:
    one = len(words) == 1 and words[0].startswith("the comment ")
    return f"{_listed(words)} {verb[one]}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
