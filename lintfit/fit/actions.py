"""A plan as what a person does, one action after the other, each with the lines that it changes.

Every edit of a plan belongs to one of its actions: who does all of them by hand has carried the plan out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lintfit.documents.line_changes import line_changes
from lintfit.documents.model import Document, FileEdit, Kind
from lintfit.findings.model import Action, ChangedLine
from lintfit.fit.applying import EXPANDS, VISIBLE, Applied, Written, uncasts
from lintfit.frozen import replace
from lintfit.run.engine_location import has_trainer
from lintfit.run.model import Run
from lintfit.settings.model import spoken
from lintfit.settings.registry import SETTINGS, ZERO, ZERO_SECTION
from lintfit.settings.values import AS_LOADED
from lintfit.settings.wording import Phrase, phrases, zero
from lintfit.sources.training_arguments import TRAINING

_LONGEST = 120
"""Characters of an edit that is shown as it is."""
_LINES = 4
"""Lines of one."""
_BY: Mapping[str, str] = {"deepspeed": "engine", "kbit_upcast": "quantization"}
"""Changes that carry out a part of a setting's, by that setting."""
_BESIDE: Mapping[str, str] = {
    VISIBLE: "show the one process one GPU",
    EXPANDS: "let torch's allocator grow its segments, which leaves fewer gaps",
}
"""What changes are for that are no setting's."""
_WORD = re.compile(r"[\w.-]")
_OPEN = ("(", "[", "{", ",", "\\")


def actions(run: Run, changes: Mapping[str, Any], applied: Applied | None) -> tuple[Action, ...]:
    """What a person does to make the changes: as they were written, else where the settings stand now."""
    assert run.spec is not None
    wanted = {name: value for name, value in changes.items() if getattr(run.spec, name, None) != value}
    if uncasts(run, changes) and "weights_dtype" in wanted:
        wanted["weights_dtype"] = AS_LOADED
    before = {name: getattr(run.spec, name) for name in SETTINGS if hasattr(run.spec, name)}
    said = [_with_reason(phrase, {**before, **changes}, before) for phrase in phrases(wanted, before)]
    if applied is None:
        return tuple(_by_hand(run, phrase) for phrase in said)
    lines = _Lines(applied)
    settings = {**before, **changes}
    found: list[Action] = []
    left = list(applied.written)
    makes_config = any(lines.made(each.edit.path) for each in left)
    for phrase in said:
        if not applied.refused.isdisjoint(phrase.settings):
            found.append(_by_hand(run, phrase))
            continue
        own = [each for each in left if _BY.get(each.change, each.change) in phrase.settings]
        left = [each for each in left if each not in own]
        if not own and makes_config and set(phrase.settings) <= set(ZERO):
            continue  # said of the new file, which another of these is written with
        found += _written(phrase, own, lines, settings)
    return (*found, *_without_words(left, lines, settings), *_following(run, changes, applied))


def _with_reason(phrase: Phrase, after: Mapping[str, Any], before: Mapping[str, Any]) -> Phrase:
    """Why a larger micro-batch is to save memory: FSDP reduces no gradient before the last of those it accumulates."""
    name = "gradient_accumulation_steps"
    if name not in phrase.settings or after["engine"] != "fsdp" or not after[name] == 1 < before[name]:
        return phrase
    return replace(phrase, text=f"{phrase.text} (FSDP keeps whole gradients while it accumulates)")


_OF_OTHERS = frozenset(
    {
        "deepspeed_config", "evaluation", "kbit_upcast", "lora_dropout", "lora_rank", "lora_targets", "quantization",
        "use_reentrant", "versions", "zero3_init", *ZERO, *ZERO_SECTION,
    }
)  # fmt: skip
"""Settings that are a part of what a plan changes by another name, are the script's own beside that, or are only known
better by what a plan writes (versions)."""
_ADAM = frozenset({"adamw_torch", "adamw_torch_fused", "adamw", "deepspeed_cpu_adam", "adam"})
"""One optimizer, whoever computes it."""


def _following(run: Run, changes: Mapping[str, Any], applied: Applied) -> Iterator[Action]:
    """What is otherwise afterwards though the plan does not speak of it: the script takes another way with it."""
    before, after = run.spec, applied.run.spec
    if before is None or after is None:
        return
    for name in SETTINGS:
        if name in changes or name in _OF_OTHERS or not hasattr(before, name):
            continue
        was, now = getattr(before, name), getattr(after, name)
        same = was == now or (name == "optimizer" and {str(was).lower(), str(now).lower()} <= _ADAM)
        if not same:
            said = SETTINGS[name].said
            text = next(phrases({name: now}, {name: was})).text if said is not None else ""
            yield Action(text or _otherwise(name, was, now), follows=True)


def _otherwise(name: str, was: Any, now: Any) -> str:
    """Of a setting that has no words of its own what it is afterwards, where a reader can take in its value."""
    what, values = name.replace("_", " "), (spoken(now), spoken(was))
    if max(map(len, values)) > _LONGEST:
        return f"change {what} along"
    return f"have {what} {values[0]} instead of {values[1]}"


def _by_hand(run: Run, phrase: Phrase) -> Action:
    """An action that nobody has carried out: where its setting stands, or by what name a trainer knows it."""
    name = phrase.settings[0]
    setting = run.settings.get(name)
    place = setting.provenance.place if setting is not None else None
    if place is not None:
        line = place.document.position(place.span.start).line
        return Action(phrase.text, (ChangedLine(place.document.path, line),))
    if name in TRAINING and run.script is not None and has_trainer(run):
        return Action(f"{phrase.text} ({TRAINING[name][0]})")
    if name == "weights_dtype" and run.script is not None:
        by_name = setting is not None and setting.provenance.detail.startswith("TRL")
        return Action(f"{phrase.text} ({'dtype in model_init_kwargs' if by_name else 'dtype of from_pretrained'})")
    return Action(phrase.text)


def _written(phrase: Phrase, own: Sequence[Written], lines: _Lines, settings: Mapping[str, Any]) -> Iterator[Action]:
    """The phrase with its lines; of a file that is made the file, and what hands it on by itself."""
    if any(lines.made(each.edit.path) for each in own):
        yield from _without_words(own, lines, settings)
        return
    changed = dict.fromkeys(lines.of(each.edit, phrase.text.split()) for each in own if not _is_layout(each.edit))
    yield Action(phrase.text, tuple(sorted(changed, key=_in_order)), follows=not changed)


def _without_words(written: Iterable[Written], lines: _Lines, settings: Mapping[str, Any]) -> Iterator[Action]:
    """Edits that say themselves what is to be done, a new file once."""
    for each in written:
        if each.edit.document is None:
            text = lines.text(each.edit)
            said = [_sharded(settings), *_sizes(text, settings)]
            why = f"; {lines.beside}" if lines.beside else ""
            yield Action(f"({', '.join(said)}{why})", creates=each.edit.path, content=text)
        elif not lines.made(each.edit.path) and not _is_layout(each.edit):
            yield Action(_BESIDE.get(each.change, ""), (lines.of(each.edit),))


def _sharded(settings: Mapping[str, Any]) -> str:
    """How a plan's new config has the run sharded."""
    fsdp = settings.get("fsdp")
    return str(fsdp) if settings.get("engine") == "fsdp" and fsdp is not None else zero(settings)


def _sizes(text: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """What a DeepSpeed JSON says beside the stage that decides memory: ``reduce_bucket_size auto``; a size like ``5e7``
    where it is the plan's own."""
    try:
        section = json.loads(text, parse_float=str).get("zero_optimization", {})
    except (ValueError, AttributeError):
        return
    for key, value in section.items():
        size = isinstance(value, int) and not isinstance(value, bool)
        size = size or (isinstance(value, str) and value != "auto" and key in ZERO_SECTION and key in settings)
        if key != "stage" and (size or (value == "auto" and key.endswith("bucket_size"))):
            yield f"{key} {value}"
        elif key == "overlap_comm" and value is False:
            yield f"{key} false"


class _Lines:
    """The lines of the files as they are that the edits of a plan change, though each was made behind others."""

    def __init__(self, applied: Applied) -> None:
        self._originals = {edit.path: edit.document for edit in applied.edits}
        self._texts = applied.texts
        self.beside = applied.beside

    def made(self, path: Path) -> bool:
        """Whether the plan makes this file."""
        return path in self._originals and self._originals[path] is None

    def text(self, edit: FileEdit) -> str:
        """What is to stand in a file in the end."""
        return self._texts.get(edit.path, edit.edit.text)

    def of(self, edit: FileEdit, said: Sequence[str] = ()) -> ChangedLine:
        """Where an edit changes a file, and what; not what, where it only writes one of the words that are ``said``."""
        document = edit.document
        assert document is not None
        start, old, new = _trimmed(document.text, edit.edit.span.start, edit.edit.span.end, edit.edit.text)
        line = document.position(start + len(old) - len(old.lstrip()) if old.strip() else start).line
        what = "" if old.strip() and _clean(new, document).strip("\"'") in said else _what(old, new, document)
        if not old.strip() and what:
            what = _with_place(what, document, start, new)
        original = self._originals.get(edit.path)
        return ChangedLine(edit.path, _line_before(original, document, line), what)


def _is_layout(edit: FileEdit) -> bool:
    """Whether an edit only moves what is there to lines of its own."""
    assert edit.document is not None
    old = edit.document.text[edit.edit.span.start : edit.edit.span.end]
    return not (_clean(old, edit.document) or _clean(edit.edit.text, edit.document))


def _in_order(changed: ChangedLine) -> tuple[str, int]:
    return changed.path.as_posix(), changed.line


def _line_before(original: Document | None, document: Document, line: int) -> int:
    """The line of the file as it is that a line of the changed file comes of, or stands at."""
    if original is None or original.whole == document.whole:
        return line
    old, new = original.whole.splitlines(), document.whole.splitlines()
    moved = 0  # by how many lines what comes behind the last change stands further down
    for first, last, begin, end in line_changes(old, new):
        if line <= begin:
            break
        if line <= end:
            return max(1, min(first + line - begin, last))
        moved = end - last
    return max(1, min(line - moved, len(old)))


def _trimmed(text: str, start: int, end: int, new: str) -> tuple[int, str, str]:
    """An edit without what both sides share at their ends, whole words kept: where, what goes, what comes."""
    old = text[start:end]
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    while head and _splits(old, head) | _splits(new, head):
        head -= 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[len(old) - 1 - tail] == new[len(new) - 1 - tail]:
        tail += 1
    while tail and _splits(old, len(old) - tail) | _splits(new, len(new) - tail):
        tail -= 1
    return start + head, old[head : len(old) - tail], new[head : len(new) - tail]


def _splits(text: str, at: int) -> bool:
    """Whether a place stands within a word."""
    return 0 < at < len(text) and bool(_WORD.match(text[at - 1]) and _WORD.match(text[at]))


def _what(old: str, new: str, document: Document) -> str:
    """``add --bf16 True``, ``delete model = model.float()``, ``write bf16=True for fp16=True``."""
    gone, come = _clean(old, document), _clean(new, document)
    if not come:
        return f"delete {_short(gone, old).replace('lines of code', 'lines from here on')}" if gone else ""
    if not gone:
        return f"add {_short(come, new)}"
    return f"write {_short(come, new)} for {_short(gone, old)}"


def _with_place(what: str, document: Document, start: int, new: str) -> str:
    """What is added, and where: ``… to KEY`` of a YAML mapping, ``above it …`` or ``below it …`` for a script's own
    lines."""
    if document.kind is Kind.YAML:
        key = _key_above(document, start, new)
        return f"{what} to {key}" if key else what
    if document.kind is not Kind.PYTHON or document.text[:start].rstrip().endswith(_OPEN):
        return what
    before, after = document.text[:start].rpartition("\n")[2], document.text[start:].partition("\n")[0]
    if not before.strip() and "\n" in new[len(new.rstrip()) :]:
        return f"above it {what}"
    return f"below it {what}" if not after.strip() and "\n" in new[: len(new) - len(new.lstrip())] else what


def _key_above(document: Document, start: int, new: str) -> str:
    """The key of a YAML mapping that gets what is added; nothing at the top."""
    line = next((each for each in new.splitlines() if each.strip()), "")
    depth = len(line) - len(line.lstrip())
    above = reversed(document.text[:start].splitlines())
    key = next((each for each in above if each.strip() and len(each) - len(each.lstrip()) < depth), "")
    return key.strip().partition(":")[0]


def _short(text: str, raw: str) -> str:
    lines = len([line for line in raw.splitlines() if line.strip()])
    return text if len(text) <= _LONGEST and lines <= _LINES else f"{lines} line{'s' if lines > 1 else ''} of code"


def _clean(text: str, document: Document) -> str:
    """An edit's text in one line, without the commas and line ends that only join it to its neighbours."""
    joined = ""
    for line in filter(None, (each.strip() for each in text.splitlines())):
        between = "; " if document.kind is Kind.PYTHON and joined and not joined.endswith((*_OPEN, ":")) else " "
        if document.kind is Kind.YAML and joined:
            between = " with " if joined.endswith(":") else ", "
        if line[0] in ")]}":
            joined, between = joined.rstrip(","), ""
        if joined.endswith(("(", "[", "{")):
            between = ""
        joined = f"{joined.rstrip(chr(92)).rstrip()}{between}{line}" if joined else line
    return joined.strip(" \t,\\")
