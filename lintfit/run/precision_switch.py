"""One 16-bit type in the place of the other: every word of a run's files that says it, changed where it stands.

``--bf16`` becomes ``--fp16`` in place, and with it ``bf16_full_eval``, the dtypes of the base and of bitsandbytes'
products, ``mixed_precision`` of Accelerate and the blocks of a DeepSpeed JSON. TF32, which the GPUs without bf16 lack
as well, is switched off: transformers refuses it there (``TrainingArguments.__post_init__``: "--tf32 requires Ampere
or a newer GPU arch").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from lintfit.documents.model import DataDocument, Document, Edit, FileEdit, Kind, Span
from lintfit.errors import CannotWrite
from lintfit.frozen import replace
from lintfit.run.model import Run
from lintfit.settings.model import AUTO, Place, Setting
from lintfit.sources.data_writer import edits as edits_of_data
from lintfit.sources.data_writer import renamed

if TYPE_CHECKING:
    from lintfit.sources.launchers.flags import Flag
    from lintfit.sources.launchers.launch import Launch

Half = Literal["bf16", "fp16"]
Edits = tuple[FileEdit, ...]

_WORDS: Mapping[Half, tuple[str, ...]] = {"bf16": ("bfloat16", "bf16"), "fp16": ("float16", "fp16", "half")}
"""How files spell a type, each list in the same order."""
_OTHER: Mapping[Half, Half] = {"bf16": "fp16", "fp16": "bf16"}
_SWITCHES = ("", "_full_eval")
"""Ends of the switches of ``TrainingArguments``: ``bf16`` and ``bf16_full_eval``."""
_DTYPE = re.compile(r"dtype|precision", re.IGNORECASE)
"""What a flag or a key is named whose value is a type."""


_FIELD = re.compile(r"^[ \t]+tf32[ \t]*:", re.MULTILINE)
"""A dataclass field of that name."""


def swapped(run: Run, half: Half) -> Edits | None:
    """The edits that make the run train in ``half`` where it says the other one; empty where nothing says it.

    None where a part of it cannot be written. Raises CannotWrite where the weights' own type is in the way.
    """
    _check_weights(run, half)
    parts = (_arguments(run, half), _loading(run, half), _launcher(run, half), _config(run, half))
    if any(part is None for part in parts):
        return None
    found = dict.fromkeys(edit for part in parts if part is not None for edit in part)
    return tuple(_apart(found))


def _apart(edits: Mapping[FileEdit, None]) -> Iterator[FileEdit]:
    """Each place once, though a flag may be both a switch of the trainer and named elsewhere; what is added at one
    place as one edit."""
    found: dict[tuple[object, Span], FileEdit] = {}
    for edit in edits:
        key, span = (edit.path, edit.edit.span), edit.edit.span
        there = found.setdefault(key, edit)
        if there is not edit and span.start == span.end and edit.edit.text not in there.edit.text:
            found[key] = replace(edit, edit=Edit(span, there.edit.text + edit.edit.text))
    yield from found.values()


def _check_weights(run: Run, half: Half) -> None:
    """Torch's scaler takes neither fp16 nor bf16 gradients (``GradScaler.unscale_``: "Attempting to unscale FP16
    gradients"): where it scales, whole models are trained from fp32 weights, which is another run."""
    spec = run.spec
    if half != "fp16" or spec is None or spec.engine == "deepspeed" or spec.method != "full":
        return
    stated = run.settings.get("weights_dtype")
    if spec.weights_dtype != "fp32" and stated is not None and stated.provenance.kind == "file":
        raise CannotWrite("its weights are loaded in 16 bits, of which torch's GradScaler takes no gradients")


def _arguments(run: Run, half: Half) -> Edits | None:
    """The trainer's switches: on the launch line, in the script or in a recipe, each renamed where it stands."""
    if run.recipe is not None:
        return _recipe(run, half)
    found: list[FileEdit] = []
    flags = {flag.name: flag for flag in run.launch.flags} if run.launch is not None else {}
    made = run.script.facts.training_arguments if run.script is not None else None
    for end in _SWITCHES:
        for old, new in ((_OTHER[half] + end, half + end), (half + end, _OTHER[half] + end)):
            argument = made.argument(old) if made is not None else None
            in_file = _in_file(run, old, new, half) if old not in flags and new not in flags else ()
            if in_file:
                found += in_file
            elif old in flags:
                if new in flags or old != half + end or not flags[old].is_on:
                    found += _renamed(flags[old].place, old, new)
            elif old == _OTHER[half] + end and _on_by_itself(run, old):
                default_off = _by_script(run, half, end)
                if default_off is None:
                    return None
                found += default_off
            elif old == "bf16" and _on_unless_fp16(run):
                assert run.script is not None
                on = run.script.write_argument("fp16", True)
                if on is None:
                    return None
                found += on
            elif argument is not None and argument.provenance.place is not None:
                stated = argument.provenance.place
                if stated.document is argument.whole.document and _within(stated, argument.whole):
                    found += _renamed(argument.whole, old, new)
                elif old == _OTHER[half] and argument.value is True:
                    return _by_script(run, half, end)
    for flag in flags.values():
        found += _retyped_flag(flag, half)
        found += _other_kernel(run, flag)
    if made is not None and _lacks_tf32(run, half) and run.launch is not None and run.script is not None:
        argument = made.argument("tf32")
        if "tf32" in flags:
            found += _without_tf32(run, run.launch, flags["tf32"])
        elif _on_by_itself(run, "tf32"):
            found += run.script.write_argument("tf32", False) or ()
        elif argument is not None and argument.value is True:
            found += run.script.remove_argument(made, "tf32")
    return tuple(found)


def _in_file(run: Run, old: str, new: str, half: Half) -> Edits:
    """A switch in a file that the script takes its arguments from, renamed in place, with the types that stand beside
    it (``torch_dtype: bfloat16``); nothing where it stands elsewhere, or the other switch is there as well."""
    stated = run.script.argument(old) if run.script is not None and old.startswith(_OTHER[half]) else None
    place = stated.provenance.place if stated is not None else None
    document = place.document if place is not None else None
    root = document.root if isinstance(document, DataDocument) else None
    if place is None or root is None or not isinstance(document, DataDocument):
        return ()
    entry = root.entry(old)
    if entry is None or entry.value.value is not True or entry.value.span.start != place.span.start:
        return ()
    switch = renamed(document, old, new)
    return (*switch, *(_retyped_entries(document, half) if old == _OTHER[half] else ())) if switch else ()


def _retyped_entries(document: DataDocument, half: Half) -> Iterator[FileEdit]:
    """The keys of a file whose value is the other type."""
    assert document.root is not None
    for entry in document.root.entries:
        value = entry.value.value
        word = _retyped(value, half) if isinstance(value, str) and _DTYPE.search(entry.key) else None
        if word is not None:
            yield from edits_of_data(document, {(entry.key,): word}) or ()


def _without_tf32(run: Run, launch: Launch, flag: Flag) -> Edits:
    """The flag goes; where a field of the script's own may be on without it, it is switched off in place."""
    if not flag.is_on:
        return ()
    of_its_own = any(_FIELD.search(document.text) for document in run.documents if document.kind is Kind.PYTHON)
    off = flag.write("False") if of_its_own and flag.value is not None and flag.write is not None else None
    return off or launch.drop_flag("tf32") or ()


def _by_script(run: Run, half: Half, end: str) -> Edits | None:
    """The switches where the script takes them from: one off, and the other on where it is not."""
    assert run.script is not None
    flag = run.launch.flag(half + end) if run.launch is not None else None
    off = run.script.write_argument(_OTHER[half] + end, False)
    on = () if flag is not None and flag.is_on else run.script.write_argument(half + end, True)
    return (*off, *on) if off is not None and on is not None else None


def _on_by_itself(run: Run, name: str) -> bool:
    """Whether a switch that the launch does not name is on by the script's own default, a dataclass field's."""
    made = run.script.reading.found.arguments if run.script is not None else None
    if run.script is None or made is None or not made.parsed or (run.launch is not None and run.launch.flag(name)):
        return False
    setting = run.script.argument(name)
    return setting is not None and setting.value is True


def _on_unless_fp16(run: Run) -> bool:
    """Whether nobody names a switch and TRL's config has bf16 on, which it has unless fp16 is (TRL 0.16 and up)."""
    if run.script is None or not run.script.uses_trl or run.spec is None or run.spec.mixed_precision != "bf16":
        return False
    bf16, fp16 = run.script.argument("bf16"), run.script.argument("fp16")
    return bf16 is not None and bf16.value is None and fp16 is not None and fp16.value in (None, False)


def _renamed(place: Place, old: str, new: str) -> Edits:
    """A switch under its other name; nothing where another word stands there (a variable's)."""
    text = place.document.text[place.span.start : place.span.end]
    dashes = len(text) - len(text.lstrip("-"))
    start = place.span.start + dashes
    if text[dashes : dashes + len(old)].replace("-", "_") != old:
        return ()
    return (_edit(place.document, Span(start, start + len(old)), new),)


def _retyped_flag(flag: Flag, half: Half) -> Edits:
    """``--torch_dtype bfloat16`` with the other type for its value."""
    if flag.value is None or flag.write is None or not _DTYPE.search(flag.name):
        return ()
    word = _retyped(flag.value, half)
    return (flag.write(word) or ()) if word is not None else ()


def _other_kernel(run: Run, flag: Flag) -> Edits:
    """``--attn_implementation sdpa`` for FlashAttention 2, which GPUs without bf16 cannot run either, where nobody sees
    the script take the flag (where it does, the kernel is a change of its own)."""
    gpu = run.hardware.gpu
    asked = flag.name in ("attn_implementation", "attn_impl") and flag.value == "flash_attention_2"
    if not asked or gpu is None or gpu.flash_attention_2 is not False or run.settings.get("attention") is not None:
        return ()
    return (flag.write("sdpa") or ()) if flag.write is not None else ()


def _retyped(text: str, half: Half) -> str | None:
    """A word for the other type, spelled for this one; None where it is none."""
    lead, dot, word = text.rpartition(".")
    old, new = _WORDS[_OTHER[half]], _WORDS[half]
    if word not in old:
        return None
    return f"{lead}{dot}{new[min(old.index(word), len(new) - 1)]}"


def _lacks_tf32(run: Run, half: Half) -> bool:
    """Whether the GPUs have no TF32: those of a compute capability below 8.0, as for bf16."""
    gpu = run.hardware.gpu
    return half == "fp16" and gpu is not None and gpu.native_bf16 is False


def _recipe(run: Run, half: Half) -> Edits | None:
    """The front end's own word for the precision, or its switches, each of its own."""
    recipe = run.recipe
    assert recipe is not None
    other = _OTHER[half]
    flag = run.launch.flag(other) if run.launch is not None else None
    if flag is not None and flag.is_on and (run.launch is None or run.launch.flag(half) is None):
        return _renamed(flag.place, other, half)
    if _says(recipe.settings.get("mixed_precision"), other):
        return recipe.write(half, True)
    stated = recipe.settings.get(other)
    if stated is None or stated.value is not True:
        return ()
    place = stated.provenance.place
    document = place.document if place is not None else recipe.document
    root = document.root if isinstance(document, DataDocument) else None
    if flag is None and (root is None or root.get(other) is None):  # the switch follows from another word
        return recipe.write(half, True)
    if flag is None and isinstance(document, DataDocument) and (swap := _renamed_switch(run, document, half)):
        return swap
    off, on = recipe.write_argument(other, False), recipe.write_argument(half, True)
    return (*off, *on) if off is not None and on is not None else None


_OFF_UNSAID = frozenset({"llamafactory", "trl"})
"""Front ends that train without a 16-bit type that the recipe does not name, or where it names the other one
(``TrainingArguments.bf16`` is false; TRL 0.16 and up has ``bf16`` on only where ``fp16`` is not)."""


def _renamed_switch(run: Run, document: DataDocument, half: Half) -> Edits:
    """A recipe's switch in place, where the front end is without the type that nobody names."""
    from lintfit.sources.recipes.forms import front_end_of

    started_by = run.launch.launcher if run.launch is not None else None
    known = {started_by, front_end_of(document.text, document.kind)}
    return renamed(document, _OTHER[half], half) or () if known & _OFF_UNSAID else ()


def _loading(run: Run, half: Half) -> Edits | None:
    """The type in which the script loads the base, and in which bitsandbytes multiplies, where they are literals."""
    script = run.script
    if script is None:
        return ()
    found: list[FileEdit] = []
    for call in script.calls("BitsAndBytesConfig"):
        argument = call.argument("bnb_4bit_compute_dtype")
        if argument is not None and not _by_switch(argument.place, half):
            found += _retyped_code(argument.place, half)
    stated = script.settings.get("weights_dtype")
    if _says(stated, _OTHER[half]) and stated is not None and stated.provenance.place is not None:
        place = stated.provenance.place
        found += _retyped_code(place, half) if _in_code(place) and not _by_switch(place, half) else ()
    return tuple(found)


def _by_switch(place: Place, half: Half) -> bool:
    """Whether a type is what the code takes where the switch of the other one is on (``torch.bfloat16 if args.bf16
    else …``): it takes its own for this one as soon as the switches are changed."""
    text = place.document.text
    begin = text.rfind("\n", 0, place.span.start) + 1
    switch = re.compile(rf"\b(?:el)?if\b.{{0,300}}\b{_OTHER[half]}\b")
    line, above = text[begin:].partition("\n")[0], text[:begin].rstrip("\r\n").rpartition("\n")[2]
    is_block = above.rstrip().endswith(":") and len(above) - len(above.lstrip()) < len(line) - len(line.lstrip())
    return bool(switch.search(line) or (is_block and switch.search(above)))


def _in_code(place: Place) -> bool:
    return place.document.kind is Kind.PYTHON


def _retyped_code(place: Place, half: Half) -> Edits:
    text = place.document.text[place.span.start : place.span.end]
    quote = text[:1] if text[:1] in "\"'" else ""
    word = _retyped(text.strip("\"'"), half)
    return (_edit(place.document, place.span, f"{quote}{word}{quote}"),) if word is not None else ()


def _launcher(run: Run, half: Half) -> Edits | None:
    """Accelerate's own option or file, and an ``Accelerator`` of the script."""
    found: list[FileEdit] = []
    for source in (run.script, run.launch, run.accelerate):
        if source is not None and _says(source.settings.get("mixed_precision"), _OTHER[half]):
            written = source.write("mixed_precision", half)
            if written is None:
                return None
            found += written
    return tuple(found)


def _config(run: Run, half: Half) -> Edits | None:
    """The blocks of a DeepSpeed JSON: one off, the other on; what is left to the Trainer stays so."""
    config = run.deepspeed
    if config is None:
        return ()
    old, new = (config.settings.get(name) for name in (_OTHER[half], half))
    if new is None and (renamed := _renamed_block(config.document, half)):
        return renamed
    if old is not None and old.value is True:
        return config.write_all({_OTHER[half]: False, half: True})
    if new is not None and new.value is False:
        return config.write(half, AUTO if run.training is not None else True)
    if new is None and old is not None and old.value is AUTO:
        return config.write(half, AUTO)
    return ()


def _renamed_block(document: DataDocument, half: Half) -> Edits:
    """The block under its other name, where it says no more than ``enabled``: fp16's have a scale, bf16's none."""
    block = document.root.get(_OTHER[half]) if document.root is not None else None
    if block is None or [entry.key for entry in block.entries] != ["enabled"]:
        return ()
    if block.entries[0].value.value is not True:
        return ()  # "auto" is for whoever starts another training with this file
    return renamed(document, _OTHER[half], half) or ()


def _within(inner: Place, outer: Place) -> bool:
    return outer.span.start <= inner.span.start and inner.span.end <= outer.span.end


def _says(setting: Setting | None, value: object) -> bool:
    return setting is not None and setting.value == value


def _edit(document: Document, span: Span, text: str) -> FileEdit:
    return FileEdit(document.path, Edit(span, text), document)
