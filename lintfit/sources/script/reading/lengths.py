"""How long a script's sequences are, in tokens: an argument, a limit where samples are tokenized, a name."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import libcst as cst

from lintfit.catalog.dating import LENGTH_RENAMED, OLDER_LENGTH
from lintfit.documents.model import Span
from lintfit.settings.model import UNKNOWN, Place, Provenance, Setting
from lintfit.sources.script.interpreter.expressions import dotted
from lintfit.sources.script.interpreter.modules import LIBRARIES
from lintfit.sources.script.interpreter.state import LENGTHS
from lintfit.sources.script.interpreter.values import Bounded, Const, Function, Object, Record, Value, plain
from lintfit.sources.script.reading import data_sets, preference_lengths, unsloth
from lintfit.sources.script.reading.collector import Reading, sure_none
from lintfit.sources.script.reading.data_sets import A_LENGTH, OF_A_PART
from lintfit.sources.script.reading.facts import is_of
from lintfit.sources.script.reading.loops import around

PARTS = (
    ("max_source_length", "max_target_length"),
    ("max_source_len", "max_target_len"),
    ("source_max_len", "target_max_len"),
    ("source_max_length", "target_max_length"),
    ("max_input_length", "max_output_length"),
    ("max_input_length", "max_target_length"),
    ("max_prompt_length", "max_response_length"),
    ("max_prompt_length", "max_answer_length"),
    ("max_prompt_len", "max_response_len"),
    ("max_prompt_len", "max_answer_len"),
    ("max_prompt_len", "max_ans_len"),
    ("max_prompt_seq_len", "max_answer_seq_len"),
)
"""Fields that limit a prompt and its answer, which a causal language model gets in one sequence, and an encoder and a
decoder one each."""
_TWO_HALVES = re.compile(
    r"Seq2SeqLM|EncoderDecoderModel|MarianMTModel|\b(Bart|BigBirdPegasus|Blenderbot|BlenderbotSmall|FSMT|LED|LongT5|M2M100|"
    r"MBart|MT5|Mvp|NllbMoe|Pegasus|PegasusX|PLBart|ProphetNet|SwitchTransformers|T5|T5Gemma|T5Gemma2|UMT5|XLMProphetNet)"
    r"ForConditionalGeneration"
)
"""Classes of an encoder of text and a decoder: those of ``MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES`` (transformers
4.57 and 5.0, ``modeling_auto.py``) that hear nothing."""
_HANDED = frozenset({"max_seq_length", "max_seq_len", "seq_length", "sequence_length", "seq_len", "cutoff_len"})
_MAX = "max_length"
_OF_DATA = re.compile(r"data|tokeni[sz]e(?!r)|preproc|prepar|collat", re.IGNORECASE)
"""Names of a script's own functions that make what is trained on: a ``max_length`` that they get is no answer's."""
_TOGETHER = re.compile(r"\w*(source|prompt|input)\w*(\[.input_ids.\])? \+ \w*(target|answer|output|label)\w*")
"""The tokens of a prompt and those of its answer, put together: ``tokenized_source + tokenized_target``."""
_LAST_CUT = re.compile(r"""input_ids["']?\]\s*\[\s*:\s*-\s*1\s*\]""")
"""``tokenizer(…, max_length=limit + 1)["input_ids"][:-1]``, as scripts after alpaca-lora have it."""
_LENGTH = re.compile(
    rf"^[ \t]*(?P<name>{'|'.join(LENGTHS)}) = (?P<value>[1-9]\d{{1,5}})[ \t]*(?:#.*)?$", re.MULTILINE | re.IGNORECASE
)
_CUTS = re.compile(
    r"truncation\s*=\s*(?!False)|(?<!\w)max_len(gth)?\b|tokeni[sz]er\w*\.model_max_length(?!\s*=[^=])|\[\s*:\s*[\w.]*(max|len)"
)
"""What pads or cuts by a tokenizer's limit, or by a length of the script's own."""
_CUTS_SAMPLES = re.compile(r"truncation\s*=\s*(True|[\"'](longest_first|only_first|only_second)[\"'])")
_PADS_BATCH = re.compile(
    r"\bpad_sequence\(|(?<!\w)padding\s*=\s*(True\b|[\"']longest[\"'])|\bDataCollator(ForSeq2Seq|WithPadding)\("
)
"""What pads samples to the longest of their batch: torch's function, a tokenizer that is told so, and transformers'
collators, which do by default."""
_FILLS = re.compile(
    r"pack(s|ed|ing|er)?\b|pack_|concat_texts|group_texts|group_by_block|concatenat|block_size|chain\(|"
    r"chunk_?(size|len|text|sample|token|seq|doc|example|data)|(text|token|data)_?chunk|def chunk|chunked|"
    r"ConstantLength|total_length|padding\s*=\s*(?!True\b|False\b|[\"']longest[\"'])|pad_to_max|pad_to_length",
    re.I,
)
"""What may fill a sequence up to its length: samples put together, or padding to more than the longest of a batch."""
_BLOCKS = re.compile(r"\[\s*(\w+)\s*:\s*\1\s*\+\s*block_size\s*\]\s*for\s+\1\s+in\s+range\(")
"""Blocks of texts that are put together, as ``group_texts`` of ``run_clm.py`` makes them."""
_GROUPS = re.compile(r"group_(texts|by_block|into_blocks)|concat(enate)?_(texts|tokens|samples)|pack_\w+")
"""Names of functions that put texts together to blocks: ``group_texts`` of transformers' ``run_clm.py`` and others."""
_TOKENIZER = re.compile(r"tokeni[sz]er")
_ANSWERS = re.compile(r"y(_(train|val|test|dev))?|(batch_)?(targets?|labels?)(_texts?)?|target_(texts?|sentences?)")
"""Names of texts that a decoder is to make: those of ``run_summarization.py`` and of tables of samples."""
_LABELS = re.compile(r"""(?:\w+\[["'])?(?:\w+_)?(?:labels|targets?|decoder_input_ids)(?:_\w+)?(?:["']\])?""")
"""What a decoder's tokens are called: ``labels``, ``tokenized_targets``, ``inputs["labels"]``."""
_TOKENIZES = re.compile(r"\btokeni[sz]er\w*\(|\.(batch_)?encode(_plus)?\(")
_UNCUT = "nothing in sight pads or cuts to the tokenizer's limit; it is taken for the length of a sequence"
_UNPREPARED = "the trainer leaves the data as it is (skip_prepare_dataset), and cuts no sample at this length"
_SLICED = re.compile(
    r"(?<![\w.])(?:self\.)?(?:input_?ids?|token_?ids|(?:all|full|token)_(?:ids|tokens)|ids|tokens)\s*\[\s*:\s*([A-Za-z_][\w.]*)\s*\]"
)
"""Tokens of a whole sample that are cut at a length: ``input_ids[: args.max_total_length]``."""
_WEIGHED = "the script only weighs this field against others; it is taken for the length of a sequence"
_COMPARES = r"(?:[<>]=?|[=!]=)"
_WEIGHS = re.compile(r"[<>/]|[=!]=")
_UNREAD = "nothing in sight reads this field; it is taken for the length of a sequence"


_OF_SFT = 1024
"""Tokens that TRL's SFTTrainer cuts texts to where it is handed bare TrainingArguments, or what the tokenizer's
``model_max_length`` allows if that is less (TRL 0.4, ``SFTTrainer.__init__``; since 0.16 ``SFTConfig.max_length``)."""


def read(reading: Reading) -> None:
    load = reading.found.trained_load
    if load is not None and load.function.startswith("diffusers."):
        return  # a tokenizer's limit there is that of the prompts, not of what is trained
    _length_of_text(reading)
    _merely_cut(reading)
    if _has_two_halves(reading) and "decoder_seq_len" not in reading.settings:
        _of_answers(reading)


def _has_two_halves(reading: Reading) -> bool:
    """Whether the model reads with an encoder and writes with a decoder, each with a length of its own."""
    load = reading.found.trained_load
    return load is not None and _TWO_HALVES.search(load.function) is not None


def _merely_cut(reading: Reading) -> None:
    """Whether samples are cut at the length and nothing in sight fills them up to it."""
    if "seq_len" not in reading.settings or "packing" in reading.settings:
        return
    if _puts_texts_together(reading):
        reading.derive("pads_to_length", True, "texts are put together up to the length before they are trained on")
        return
    if _pads_all(reading):
        reading.derive("pads_to_length", True, 'the tokenizer fills samples up to the length (padding="max_length")')
        return
    cut = reading.calls.say(_CUTS_SAMPLES) or reading.calls.say(_PADS_BATCH)
    if cut and not reading.calls.say(_FILLS):
        reading.derive("pads_to_length", False, "samples are cut at the length, and padded to the longest of a batch")


def _pads_all(reading: Reading) -> bool:
    """Whether every call of a tokenizer that cuts or pads surely runs and fills samples up to the stated length."""
    calls = [each for each in reading.called("tokenizer") if each.keyword("padding", "truncation") is not None]
    lengths = [each.keyword("max_length") for each in calls]
    stated = reading.settings["seq_len"].value
    return (
        bool(calls)
        and all(each.taken is True and not each.spreads for each in calls)
        and all((padding := each.keyword("padding")) is not None and plain(padding) == "max_length" for each in calls)
        and all(given is None or (isinstance(stated, int) and plain(given) == stated) for given in lengths)
    )


def _puts_texts_together(reading: Reading) -> bool:
    """Whether a data set surely goes through a function that fills blocks with texts: ``map(group_texts)``."""
    return any(
        isinstance(each.value, Function) and _GROUPS.fullmatch(each.value.name or "") is not None
        for record in reading.called("map")
        if record.taken is True
        for each in record.passed
        if each.name in (None, "function")
    )


def _of_answers(reading: Reading) -> None:
    """Tokens of what a decoder is to make: those that a tokenizer leaves of the labels."""
    for record in reading.records:
        made = record.taken is not False and _makes_answers(reading, record)
        length = record.keyword("max_length") if made else None
        if length is not None:
            reading.put("decoder_seq_len", length, record)
            return


def _makes_answers(reading: Reading, record: Record) -> bool:
    """Whether a call tokenizes labels alone: ``tokenizer(text_target=…)``, what is called the targets, or, for a model
    with a decoder of its own, what becomes the labels."""
    if record.keyword("text_target") is not None:
        return not record.positional and record.keyword("text") is None
    if record.keyword("max_length") is None or _TOKENIZER.search(record.function.lower()) is None:
        return False
    first = next((each.value for each in record.node.args if each.keyword is None and not each.star), None)
    if isinstance(first, cst.Name) and _ANSWERS.fullmatch(first.value) is not None:
        return True
    return _has_two_halves(reading) and _becomes_labels(reading, record)


def _becomes_labels(reading: Reading, record: Record) -> bool:
    """Whether a call's result is called the labels: ``inputs["labels"] = tokenizer(…)["input_ids"]``."""
    document = reading.calls.document_of(record.node)
    statement = next((each for each in around(document, record.node) if isinstance(each, cst.Assign)), None)
    targets = (
        [document.slice(document.span(each.target)) for each in statement.targets] if statement is not None else ()
    )
    return any(_LABELS.fullmatch(target) for target in targets)


def _length_of_text(reading: Reading) -> None:
    """Tokens of a sequence: the trainer's config, else the tokenizer's limit, else a field of that name."""
    if _of_trainer(reading) or unsloth.length(reading) or preference_lengths.read(reading) or _of_config(reading):
        return
    made, trainer = reading.found.arguments, reading.found.trainer
    if made is not None and any(kind in made.library for kind in ("GRPO", "RLOO", "PPO")):
        return
    if trainer is not None and trainer.function.startswith("trl.") and trainer.name == "PPOTrainer":
        return  # what is generated comes on top of the prompts that are cut
    declared = _declared(reading)
    if _of_blocks(reading) or _first_known(reading, _tokenized(reading)):
        return
    if _first_known(reading, [(value, where) for value, where in declared if _is_read(reading, value)]):
        return
    if not _first_known(reading, _sliced(reading)) and not data_sets.is_cut(reading):
        _in_parts(reading)
    if "seq_len" in reading.settings or data_sets.longer_are_left_out(reading) or _first_known(reading, declared):
        return
    _handed_on(reading)
    if "seq_len" not in reading.settings and not any(not sure_none(value) for value, _ in _tokenized(reading)):
        _by_name(reading)
    if "seq_len" not in reading.settings and _cut_by_sft(reading):
        reading.default("seq_len", _OF_SFT, "SFTTrainer's default where the tokenizer allows it")


def _cut_by_sft(reading: Reading) -> bool:
    """Whether TRL's own SFTTrainer, not a class of that name, has arguments that say nothing of a length."""
    trainer, made = reading.found.trainer, reading.found.arguments
    if trainer is None or not trainer.function.startswith("trl.") or trainer.name != "SFTTrainer" or trainer.spreads:
        return False
    return made is not None and not made.open and "SFT" not in made.library


def _of_trainer(reading: Reading) -> bool:
    """The trainer's own keyword: ``SFTTrainer(max_seq_length=1024)``."""
    record = reading.found.trainer
    value = record.keyword("max_seq_length", "max_length") if record is not None else None
    if value is None:
        return False
    reading.put("seq_len", value, record)
    return True


def _of_config(reading: Reading) -> bool:
    """A field of the trainer's config, TRL's or the script's own."""
    made = reading.found.arguments
    if made is None or any(kind in made.library for kind in ("GRPO", "RLOO")):
        return False
    if not made.library.endswith("Config") and (made.cls is None or not made.cls.name.endswith("Config")):
        return False
    version = reading.version("trl") if made.parsed and made.library.endswith("SFTConfig") else None
    older = version is not None and version < LENGTH_RENAMED
    value = reading.attribute(made, *(("max_seq_length",) if older else ("max_length", "max_seq_length")))
    if value is None or (made.open and plain(value) is UNKNOWN):
        return False
    if older and plain(value) is None:
        why = f"trl {reading.versions['trl']} default"
        reading.settings["seq_len"] = Setting("seq_len", OLDER_LENGTH, Provenance.default(why))
        return True
    reading.put("seq_len", value, made.call if not made.parsed else None)
    own = "max_length" not in made.attributes and "max_seq_length" not in reading.walk.defaults.names(made.library)
    if own and made.attributes.get("max_seq_length") is value and not _is_read(reading, value):
        reading.suppose("seq_len", _UNREAD)
    handed = made.attributes.get("dataset_kwargs")
    kwargs = plain(handed) if handed is not None else None
    if isinstance(kwargs, Mapping) and kwargs.get("skip_prepare_dataset") is True:
        reading.suppose("seq_len", _UNPREPARED)
    return True


def _of_blocks(reading: Reading) -> bool:
    """The block that texts are put together and cut to, where the script computes it: its tokenizer's limit is then
    that of a document."""
    known = {size for value in reading.walk.lengths if type(size := plain(value)) is int}
    if len(known) != 1 or not reading.calls.say(_BLOCKS):
        return False
    reading.put("seq_len", next(value for value in reading.walk.lengths if plain(value) in known))
    return True


def _first_known(reading: Reading, lengths: Sequence[tuple[Value, Record | None]]) -> bool:
    """The first of several lengths that is known: those that a tokenizer gets, or fields with such a name."""
    for value, where in lengths:
        known = plain(value.most if isinstance(value, Bounded) and value.most is not None else value)
        if isinstance(known, int) and not isinstance(known, bool) and 1 < known < 10_000_000:
            _take(reading, value, where, known)
            if _merely_a_limit(reading, value, where):
                reading.suppose("seq_len", _UNCUT)
            return True
    return False


def _merely_a_limit(reading: Reading, value: Value, where: Record | None) -> bool:
    """Whether a length is what a tokenizer allows (``model_max_length``), and samples are tokenized without a cut."""
    named = any(made.attributes.get("model_max_length") is value for made in reading.walk.parsed)
    limits = where.name == "from_pretrained" if where is not None else named
    if not limits:
        return False
    return reading.calls.say(_TOKENIZES) and not reading.calls.say(_CUTS)


def _take(reading: Reading, value: Value, where: Record | None, known: int) -> None:
    """Put a length down, with what is supposed in taking it: of ``length + 1``, where its last token goes."""
    made = value.origin if isinstance(value.origin, cst.BinaryOperation) else None
    if made is not None and isinstance(made.operator, cst.Multiply) and isinstance(made.right, cst.Integer):
        _of_multiple(reading, value, where, known, made)
        return
    by_one = made is not None and isinstance(made.right, cst.Integer)
    cut = by_one and where is not None and _LAST_CUT.search(reading.calls.script.text) is not None
    reading.put("seq_len", value, where, to=known - cut)
    if isinstance(value, Bounded):
        reading.suppose("seq_len", "the smallest of several limits, of which one is not known")
    elif where is None and not _is_read(reading, value):
        reading.suppose("seq_len", _UNREAD)
    elif where is None and _is_only_weighed(reading, value):
        reading.suppose("seq_len", _WEIGHED)
    elif by_one:
        kept = "be cut off again" if cut else "stay in the sequence that is trained on"
        reading.suppose("seq_len", f"a token more or less is taken to {kept}")


def _of_multiple(reading: Reading, value: Value, where: Record | None, known: int, made: cst.BinaryOperation) -> None:
    """``max_length=limit * 5``: tokens that are cut again where the script goes by the limit itself elsewhere."""
    name, factor = dotted(made.left).rpartition(".")[2], int(cst.ensure_type(made.right, cst.Integer).evaluated_value)
    again = re.compile(
        rf"\bmin\((?:[^()]|\([^()]{{0,100}}\)){{0,200}}\b{re.escape(name)}\b"
        rf"|\[[^\[\]:]{{0,200}}:[^\[\]]{{0,200}}\b{re.escape(name)}\]"
    )
    cut = name != "" and factor > 0 and any(map(again.search, reading.calls.texts()))
    reading.put("seq_len", value, where, to=known // factor if cut else known)
    kept = f"be cut to {name} again" if cut else "stay in the sequence that is trained on"
    reading.suppose("seq_len", f"tokens beyond {name or 'the limit'} are taken to {kept}")


def _handed_on(reading: Reading) -> None:
    """The one length that calls of data sets get under one of its names (``data.connect(max_seq_length=1024)``)."""
    found: list[tuple[Value, Record, str]] = []
    for record in reading.records:
        own = record.function.partition(".")[0] not in LIBRARIES and _OF_DATA.search(record.name) is not None
        name = next((each.name for each in record.passed if each.name in _HANDED or (own and each.name == _MAX)), None)
        if name is not None and record.taken is not False and isinstance(plain(record.keyword(name) or Const()), int):
            found.append((record.keyword(name) or Const(), record, name))
    if len({plain(value) for value, _, _ in found}) == 1:
        value, record, name = found[0]
        reading.put("seq_len", value, record)
        reading.suppose("seq_len", f"{name} is taken for the length of a sequence")


def _by_name(reading: Reading) -> None:
    """The one number that the script calls a length, where it pads and cuts by hand."""
    document = reading.calls.script
    found = list(_LENGTH.finditer(document.text))
    if len({match["value"] for match in found}) == 1:
        why = f"{found[0]['name']} is taken for the length of a sequence"
        place: Place | None = Place(document, Span(*found[0].span("value")))
        changed = reading.constants.get(found[0]["name"])
        length = plain(changed) if changed is not None else None
        if changed is not None and type(length) is int:
            place = reading.place_of(changed.origin) or place
        else:
            length = int(found[0]["value"])
        reading.settings["seq_len"] = Setting("seq_len", length, Provenance("assumed", why, place))


def _is_read(reading: Reading, value: Value) -> bool:
    """Whether the script asks for the field that holds a value anywhere that the walk came by."""
    return any(
        made.attributes.get(name) is value for made in _filled(reading) for name in reading.walk.read.get(id(made), ())
    )


def _is_only_weighed(reading: Reading, value: Value) -> bool:
    """Whether all that a script does with a field is to compare it or to divide by another (to scale positions)."""
    names = {name for made in _filled(reading) for name, each in made.attributes.items() if each is value}
    uses = [use for name in names for text in reading.calls.texts() for use in _uses(text, name)]
    return bool(uses) and all(_WEIGHS.search(use) for use in uses)


@lru_cache(maxsize=4096)
def _uses(text: str, name: str) -> tuple[str, ...]:
    """Every place where a text asks for a field, with what compares or divides it; asked again for each launch."""
    pattern = rf"(?:{_COMPARES}\s*+)?(?<![\w.])[\w.]*\.{re.escape(name)}\b(?:\s*+(?:{_COMPARES}|/))?"
    return tuple(use[0] for use in re.finditer(pattern, text)) if f".{name}" in text else ()


def _in_parts(reading: Reading) -> None:
    """Prompt and answer with a limit of their own: what the script puts them together to, else their sum."""
    if reading.walk.lengths:
        sizes = [known for value in reading.walk.lengths if isinstance(known := plain(value), int)]
        longest = next((v for v in reading.walk.lengths if sizes and plain(v) == max(sizes)), reading.walk.lengths[-1])
        reading.put("seq_len", longest)
        if len(set(sizes)) > 1:
            reading.suppose("seq_len", "the longest of several lengths that the script computes, some for evaluation")
        return
    for first, second in PARTS:
        for made in _filled(reading):
            lengths = [plain(made.attributes[name]) for name in (first, second) if name in made.attributes]
            if len(lengths) == 2 and all(isinstance(length, int) for length in lengths):
                if _has_two_halves(reading):
                    reading.put("seq_len", made.attributes[first])
                    reading.put("decoder_seq_len", made.attributes[second])
                    return
                why = f"{first} and {second} are taken to make up one sequence"
                place = reading.place_of(made.attributes[second].origin)
                cut = all(_cuts_at(reading, name) for name in (first, second)) and _puts_together(reading)
                how = Provenance("file", f"{first} + {second}", place) if cut else Provenance("assumed", why, place)
                reading.settings["seq_len"] = Setting("seq_len", sum(lengths), how)
                return


def _cuts_at(reading: Reading, name: str) -> bool:
    """Whether a tokenizer cuts at a limit that has a field's name (``max_length=self.source_max_len``)."""
    return any(
        passed.name == "max_length" and dotted(passed.node.value).rpartition(".")[2] == name
        for record in reading.records
        if record.taken is not False and plain(record.keyword("truncation") or Const()) is True
        for passed in record.passed
    )


def _puts_together(reading: Reading) -> bool:
    """Whether a prompt's tokens and its answer's are added up (``prompt_ids + answer_ids``) in the script."""
    return reading.calls.say(_TOGETHER)


def _tokenized(reading: Reading) -> list[tuple[Value, Record]]:
    """Lengths handed to tokenizers, calls before constructors."""
    calls: list[tuple[Value, Record]] = []
    loads: list[tuple[Value, Record]] = []
    parts = {id(made.attributes.get(name)) for made in _filled(reading) for names in PARTS for name in names}
    trained = _trained(reading)
    for record in reading.records:
        if record.taken is False or record.name in ("generate", "GenerationConfig", "SamplingParams"):
            continue
        if _makes_answers(reading, record) or _of_generation(reading, record):
            continue
        if record.taken is True and record.order > trained:
            continue  # what is tokenized then is tried out, or tested
        owner = f"{record.function}.{record.receiver_name or ''}".lower()
        if _TOKENIZER.search(owner) or record.name in ("encode_plus", "batch_encode_plus"):
            length = record.keyword("model_max_length", "max_length")
            if length is not None and id(length) not in parts:
                (loads if record.name == "from_pretrained" else calls).append((length, record))
    return sorted(calls, key=lambda each: _is_share(each[0])) + loads


@lru_cache(maxsize=1024)
def _cuts(text: str) -> tuple[str, ...]:
    """The last names of what a text cuts tokens at; asked again for each launch."""
    return tuple(match[1].rpartition(".")[2] for match in _SLICED.finditer(text))


def _trained(reading: Reading) -> float:
    """The order of the last call that surely has the trainer train."""
    trainer = reading.found.trainer
    calls = (each for each in reading.records if each.name == "train" and each.taken) if trainer is not None else ()
    return max((each.order for each in calls if is_of(each, trainer)), default=math.inf)


def _of_generation(reading: Reading, record: Record) -> bool:
    """Whether a call stands in a class's method that generates, and cuts nothing (a callback's ``on_evaluate``).

    A ``max_length`` without ``truncation`` cuts where no ``padding`` is asked for, and only there (transformers 5.24,
    ``_get_padding_truncation_strategies``).
    """
    padding = record.keyword("padding")
    if padding is None or plain(padding) is False or record.keyword("truncation") is not None:
        return False
    return in_generation(reading, record)


def in_generation(reading: Reading, record: Record) -> bool:
    """Whether a call stands in a class's method that generates (a callback's ``on_evaluate``): what it tokenizes there
    is no sample of the training."""
    document = reading.calls.document_of(record.node)
    holders = (each for each in around(document, record.node) if isinstance(each, cst.FunctionDef | cst.ClassDef))
    method, cls = next(holders, None), next(holders, None)
    if not isinstance(method, cst.FunctionDef) or not isinstance(cls, cst.ClassDef):
        return False
    return ".generate(" in document.slice(document.span(method))


def _sliced(reading: Reading) -> list[tuple[Value, Record | None]]:
    """The one field at which a script cuts the tokens of a whole sample, whatever it is called."""
    names = {name for text in reading.calls.texts() for name in _cuts(text)}
    cut = {name for name in names if A_LENGTH.search(name) and not OF_A_PART.search(name)}
    found = [
        value
        for made in _filled(reading)
        for key, value in made.attributes.items()
        if key.rpartition(".")[2] in cut and isinstance(plain(value), int)
    ]
    return [(found[0], None)] if len({plain(value) for value in found}) == 1 else []


def _filled(reading: Reading) -> list[Object]:
    """What the command line or a config file fills."""
    return [*reading.walk.parsed, *reading.walk.namespaces]


def _is_share(length: Value) -> bool:
    """``max_length // 2``: the limit of a part of what is trained on."""
    made = length.origin
    return isinstance(made, cst.BinaryOperation) and isinstance(made.operator, cst.FloorDivide | cst.Divide)


def _declared(reading: Reading) -> list[tuple[Value, Record | None]]:
    """Fields of the script's own command line that are named like a sequence length."""
    return [
        (value, None)
        for made in _filled(reading)
        for name in LENGTHS
        for key, value in made.attributes.items()
        if key.rpartition(".")[2] == name
    ]
