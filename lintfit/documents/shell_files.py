"""Texts within a script: what a here-document gives to a variable, and the files that a script writes itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from lintfit.documents.model import Span
from lintfit.documents.shell_document import Command, Filled, HereFile
from lintfit.documents.shell_expansion import expand, words
from lintfit.documents.shell_words import Fragment, Scope, Variable, Word

if TYPE_CHECKING:
    import tree_sitter

    from lintfit.documents.shell_source import Source

_READ_ALL = re.compile(r"read(?:\s+-[a-z]+)*\s+-(?:r?d)\s*(?:''|\"\")(?:\s+-[a-z]+)*\s+(?P<name>[A-Za-z_]\w*)")
"""A ``read`` that takes everything up to the end of its input."""
_REFERENCE = re.compile(r"\$(?:\{[^{}\n]*\}|\w+)|`[^`\n]*`|\$\([^()\n]*\)")

_TEE = re.compile(r"\btee((?:[ \t]+[^\s|;&>]+)+)")


def read_variable(statement: tree_sitter.Node, command: tree_sitter.Node, source: Source) -> Variable | None:
    """``read -r -d '' NAME <<EOF``: the variable holds the text, in which quotes are letters like all others."""
    read = _READ_ALL.fullmatch(source.of(command).strip())
    text = _part(_parts(statement), "heredoc_body") if read is not None else None
    if read is None or text is None:
        return None
    body, name = source.span(text), read["name"]
    known = not re.search(r"[$`]", source.of(text))
    fragment = Fragment(source.of(text), body if known else None, known=known)
    return Variable(name, ((fragment,),), source.span(command), body)


def written_file(
    statement: tree_sitter.Node, command: tree_sitter.Node, source: Source, scope: Scope
) -> HereFile | None:
    """``cat > NAME <<EOF``, ``tee NAME <<EOF``, ``echo '…' > NAME``: a file that the script writes."""
    parts = _parts(statement)
    target = _target(command, parts, source, scope)
    if target is None:
        return None
    body, start = _part(parts, "heredoc_body"), _part(parts, "heredoc_start")
    given = command.children_by_field_name("argument")
    if body is None and len(given) == 1 and given[0].type == "raw_string":
        text = source.span(given[0])
        return HereFile(target.text, Span(text.start + 1, text.end - 1))
    if body is None or start is None:
        return None
    quoted = source.of(start)[:1] in ('"', "'", "\\")
    return HereFile(target.text, source.span(body), () if quoted else _expansions(body, source, scope))


def filled(statement: tree_sitter.Node, command: tree_sitter.Node, source: Source, scope: Scope) -> Filled | None:
    """``envsubst < FROM > NAME``: a file that is another one, with variables filled in."""
    program = command.child_by_field_name("name")
    if program is None or source.of(program) != "envsubst":
        return None
    ends: dict[str, str] = {}
    for part in _parts(statement):
        mark = source.of(part)[:1]
        for each in part.children_by_field_name("destination")[:1] if part.type == "file_redirect" else ():
            ends[mark] = "".join(word.text for word, _ in words(source.text, source.span(each), scope))
    if set(ends) != {"<", ">"}:
        return None
    return Filled(ends[">"], ends["<"], source.span(command).start)


def copies(commands: Iterable[Command]) -> Iterator[Filled]:
    """The files that ``cp FROM NAME`` makes."""
    for command in commands:
        words = [word.text for word in command.words if not word.text.startswith("-")]
        if len(words) == 3 and words[0] == "cp":
            yield Filled(words[2], words[1], command.span.start)


def redirections(statement: tree_sitter.Node, source: Source, scope: Scope) -> list[str]:
    """The names of the files that the output of a statement goes to."""
    outward = [part for part in _parts(statement) if part.type == "file_redirect" and ">" in source.of(part)]
    spans = [source.span(each) for part in outward for each in part.children_by_field_name("destination")[:1]]
    piped = (source.span(part) for part in _parts(statement) if part.type == "pipeline")
    spans += [Span(*tee.span(1)) for span in piped for tee in _TEE.finditer(source.text, span.start, span.end)]
    return [word.text for span in spans for word, _ in words(source.text, span, scope)]


def _parts(statement: tree_sitter.Node) -> list[tree_sitter.Node]:
    """The redirects of a statement, and what belongs to the here-document among them."""
    here = _part(statement.named_children, "heredoc_redirect")
    return [*statement.named_children, *(here.named_children if here is not None else ())]


def _part(nodes: list[tree_sitter.Node], kind: str) -> tree_sitter.Node | None:
    return next((node for node in nodes if node.type == kind), None)


def _expansions(body: tree_sitter.Node, source: Source, scope: Scope) -> tuple[tuple[Span, str | None], ...]:
    """Where the shell fills something in, and with what."""
    span = source.span(body)
    found: list[tuple[Span, str | None]] = []
    for match in _REFERENCE.finditer(source.text, span.start, span.end):
        place = Span(*match.span())
        lists = expand(source.text, place, scope, quoted=True)
        known = len(lists) == 1 and all(fragment.known for fragment in lists[0])
        found.append((place, "".join(fragment.text for fragment in lists[0]) if known else None))
    return tuple(found)


def _target(command: tree_sitter.Node, parts: list[tree_sitter.Node], source: Source, scope: Scope) -> Word | None:
    """The file that ``cat`` or ``echo`` is redirected to, or that ``tee`` is given."""
    name = command.child_by_field_name("name")
    program = source.of(name) if name is not None else ""
    if program not in ("tee", "cat", "echo") or _part(parts, "pipeline") is not None:
        return None
    if program == "tee":
        given = [source.span(child) for child in command.children_by_field_name("argument")]
        spans = [span for span in given if source.text[span.start] != "-"]
    else:
        redirects = [child for child in parts if child.type == "file_redirect"]
        spans = [source.span(c) for each in redirects for c in each.children_by_field_name("destination")[:1]]
    found = words(source.text, spans[0], scope) if spans else []
    return found[0][0] if len(found) == 1 else None
