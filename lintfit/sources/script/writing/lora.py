"""Writes LoRA and QLoRA: flags where the script declares them, else the calls of PEFT and bitsandbytes.

TRL's trainers get a ``peft_config`` and wrap the model themselves; in front of transformers' Trainer the model is
wrapped where it is handed over, after everything else that the script does to it; a loop of the script's own gets the
wrapped model where it loads it, in front of the optimizer.

Each function writes the next thing that is missing and is asked again after the script was read with it, so that no
two edits meet at one place: nothing where nothing is missing, None where the next thing cannot be written, CannotWrite
where there is more to say of why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from lintfit.documents import python_edits
from lintfit.documents.model import Edit, FileEdit
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.python_imports import Imports
from lintfit.documents.python_walk import walk
from lintfit.errors import CannotWrite
from lintfit.sources.script.interpreter.models import is_model, owner_of
from lintfit.sources.script.interpreter.values import Record, objects
from lintfit.sources.script.reading.collector import sure_none
from lintfit.sources.script.writing.callers import for_one_caller
from lintfit.sources.script.writing.file_edits import Edits
from lintfit.sources.script.writing.opened_input import OPENS_INPUT
from lintfit.sources.script.writing.switches import BITS, FOUR_BITS, asked_for, fields, four_bits_on, holder, switch_on

if TYPE_CHECKING:
    from lintfit.documents.python_reader import PythonDocument
    from lintfit.sources.script.writing.edits import Writer

ALPHA = 2
"""``lora_alpha`` over the rank: 32 over 16 in TRL's ``ModelConfig``."""

_ALL_LINEAR = (0, 8)
"""The PEFT that first knows ``target_modules="all-linear"``."""
_PREPARES = "prepare_model_for_kbit_training"
_OF_ADAPTERS = lazy_pattern(
    r"^(?!(?:merge|save|print|has|is|count)_)(?:\w*_)?(?:q?lora(?:s)?(?:_\w*)?$|\w*(?:L[oO][rR]A|Lora)(?![a-z]))"
)
"""Names of functions that give a model adapters: ``get_lora_model``, ``mark_only_lora_as_trainable``."""
_NO_LOAD = "no one statement is known to load the model"
_TASKS: Mapping[str, str] = {
    "ForCausalLM": "CAUSAL_LM",
    "LMHeadModel": "CAUSAL_LM",
    "ForSeq2SeqLM": "SEQ_2_SEQ_LM",
    "ForSequenceClassification": "SEQ_CLS",
}
"""PEFT's ``TaskType`` by how the class of a model ends."""


def adapt(writer: Writer, rank: int, engine: str) -> Edits | None:
    """Train adapters of all linear layers in the place of the model.

    FSDP flattens what it wraps, which must be of one dtype: transformers' Trainer wraps adapters by themselves
    (``update_fsdp_plugin_peft``), a loop of the script's own does not.
    """
    held = holder(writer, "get_peft_config")
    if held is not None:
        return fields(writer, held, use_peft=True, lora_r=rank, lora_target_modules="all-linear")
    method = writer.source.settings.get("method")
    if method is None:
        raise CannotWrite("the script is not read to its end")
    if method.value == "lora":
        return ()
    made = [r for r in writer.source.reading.records if r.name in ("get_peft_model", "LoraConfig", "get_peft_config")]
    if made and writer.found.unused_peft is None:
        return switch_on(writer, asked_for(made))
    if (own := _own_adapters(writer)) is not None:
        raise CannotWrite(f"{own.name} gives the model adapters of its own")
    trainer = writer.found.trainer
    if not writer.source.reading.at_least("peft", *_ALL_LINEAR):
        raise CannotWrite("this PEFT does not know all-linear")
    if trainer and trainer.taken is not True:
        raise CannotWrite("the script may train with another trainer")
    if trainer is None and engine == "fsdp":
        raise CannotWrite("FSDP flattens adapters together with the frozen model in a loop of the script's own")
    if trainer is None:
        return _wrapped_after_load(writer, rank)
    return _handed_to_trl(writer, trainer, rank) if by_trl(writer) else _wrapped_for_trainer(writer, trainer, rank)


def _own_adapters(writer: Writer) -> Record | None:
    """The call of another library, or of the script, that by its name deals with adapters of the model that it gets:
    PEFT's on top would freeze those."""
    given = (each for each in writer.source.reading.records if _OF_ADAPTERS.search(each.name))
    return next((each for each in given if any(is_model(held) for p in each.passed for held in objects(p.value))), None)


def quantize(writer: Writer, value: str, ranks: int) -> Edits | None:
    """Load the frozen base in four bits (``nf4``, ``nf4-double``), on each of so many ranks' own GPU."""
    stated = writer.source.settings.get("quantization")
    if stated is not None and stated.value in ("nf4", "nf4-double"):
        return ()
    if value not in ("nf4", "nf4-double") or (stated is not None and stated.value is not None):
        raise CannotWrite("the script says already how the base is quantized")
    records = writer.source.reading.records
    held = holder(writer, "get_quantization_config")
    if held is not None:
        return fields(writer, held, use_bnb_nested_quant=value == "nf4-double", load_in_4bit=True)
    if any(r.name in ("BitsAndBytesConfig", "get_quantization_config") for r in records):
        return four_bits_on(writer)
    load = writer.found.trained_load
    return _by_name(writer, value) if load is None else _loaded(writer, load, value, ranks)


def prepare(writer: Writer) -> Edits | None:
    """PEFT's preparation of a quantized base, in front of what wraps it; TRL sees to that itself."""
    reading = writer.source.reading
    if by_trl(writer) or any(r.name == _PREPARES and r.taken is not False for r in reading.records):
        return ()
    wrap = next((r for r in reading.records if r.name == "get_peft_model" and r.taken is True), None)
    if wrap is None:
        return ()
    handed = next((p for p in wrap.passed if p.name in (None, "model")), None)
    if wrap.function.startswith("unsloth"):
        return ()
    if handed is None or not isinstance(handed.node.value, cst.Name) or not _is_line(writer, wrap):
        return None
    document, name = writer.calls.document_of(wrap.node), handed.node.value.value
    imports = Imports(document, document.span(wrap.node).start)
    function = imports.name("peft", _PREPARES)
    if function is None:
        return None
    again = "" if _checkpoints(writer) else ", use_gradient_checkpointing=False"
    assert wrap.statement is not None
    line = f"{name} = {function}({name}{again})"
    if (switch := _four_bits_by(writer, document)) is not None:
        line = f"if {switch}:\n{_indent(document)}{line}"
    edits = python_edits.insert_statement_before(document, wrap.statement, line)
    return _edits(document, edits, imports)


def _four_bits_by(writer: Writer, document: PythonDocument) -> str | None:
    """The test by which a load asks for four bits (``BitsAndBytesConfig(…) if args.qlora else None``): without them
    the preparation would make the whole base float32. None where it always does."""
    load = writer.found.trained_load
    given = next((p for p in load.passed if p.name == "quantization_config"), None) if load is not None else None
    choice = given.node.value if given is not None else None
    if load is None or not isinstance(choice, cst.IfExp):
        return None
    if writer.calls.document_of(load.node) is not document:
        raise CannotWrite("the base is in four bits by a switch, and prepared in another file")
    return cst.Module(()).code_for_node(choice.test)


def by_trl(writer: Writer) -> bool:
    """Whether the trainer is one of TRL's, or a class of the script that inherits from one."""
    trainer = writer.found.trainer
    if trainer is None:
        return False
    made = writer.found.arguments
    return trainer.function.startswith("trl.") or (made is not None and made.library.startswith("trl."))


# -- adapters --------------------------------------------------------------------------------------------------


def _handed_to_trl(writer: Writer, trainer: Record, rank: int) -> Edits | None:
    """``peft_config=LoraConfig(...)``; with a reference model beside it, TRL raises."""
    _sees_all(trainer)
    if not sure_none(trainer.keyword("ref_model")):
        raise CannotWrite("TRL takes no reference model beside adapters")
    document = writer.calls.document_of(trainer.node)
    imports = Imports(document, document.span(trainer.node).start)
    config = _lora_config(writer, document, imports, rank)
    if config is None:
        return None
    passed = next((p for p in trainer.passed if p.name == "peft_config"), None)
    if passed is not None and not (isinstance(passed.node.value, cst.Name) and passed.node.value.value == "None"):
        raise CannotWrite("the script computes the peft_config itself")
    edits = python_edits.set_keyword(document, trainer.node, "peft_config", config)
    return _edits(document, edits, imports)


def _wrapped_for_trainer(writer: Writer, trainer: Record, rank: int) -> Edits | None:
    """``model = get_peft_model(model, …)`` in front of the trainer. An optimizer that is made before it would go on
    with the parameters that are then frozen."""
    passed = next((p for p in trainer.passed if p.name == "model"), None)
    passed = passed or next((p for p in trainer.passed if p.name is None), None)
    if passed is None or not isinstance(passed.node.value, cst.Name) or not _is_line(writer, trainer):
        raise CannotWrite("the trainer's model is no variable that could be wrapped in front of it")
    _sees_all(trainer)
    if not sure_none(trainer.keyword("optimizers")):
        raise CannotWrite("the optimizer is made before the trainer, of the whole model")
    assert trainer.statement is not None
    return _wrapping(writer, trainer.node, trainer.statement, passed.node.value.value, rank, above=True)


def _sees_all(trainer: Record) -> None:
    if trainer.spreads:
        raise CannotWrite("the trainer gets **kwargs that cannot be read")


def _wrapped_after_load(writer: Writer, rank: int) -> Edits | None:
    """The same behind the load, where the script trains in a loop of its own."""
    load = writer.found.trained_load
    if load is None or load.taken is not True or load.statement is None or not _is_line(writer, load):
        raise CannotWrite(_NO_LOAD)
    first = load.statement.body[0]
    target = first.targets[0].target if isinstance(first, cst.Assign) and len(first.targets) == 1 else None
    if not isinstance(target, cst.Name):
        raise CannotWrite(_NO_LOAD)
    for_one_caller(writer.calls, load.statement)
    return _wrapping(writer, load.node, load.statement, target.value, rank, above=False)


def _wrapping(
    writer: Writer, node: cst.Call, line: cst.SimpleStatementLine, name: str, rank: int, above: bool
) -> Edits | None:
    document = writer.calls.document_of(node)
    imports = Imports(document, document.span(node).start)
    config, function = _lora_config(writer, document, imports, rank), imports.name("peft", "get_peft_model")
    if config is None or function is None:
        return None
    opened = f"{name}.enable_input_require_grads()\n" if _must_open_input(writer) else ""
    indent = document.row(document.span(line).start).column - 1
    call = f"{name} = {function}({name}, {config})"
    if indent + len(call) > python_edits.width(document):
        step = _indent(document)
        call = f"{name} = {function}(\n{step}{name},\n{step}{config},\n)"
    insert = python_edits.insert_statement_before if above else python_edits.insert_statement_after
    return _edits(document, insert(document, line, opened + call), imports)


def _lora_config(writer: Writer, document: PythonDocument, imports: Imports, rank: int) -> str | None:
    function, task = imports.name("peft", "LoraConfig"), _task(writer)
    if function is None or task is None:
        return None
    targets, kind = (python_edits.quote(document, text) for text in ("all-linear", task))
    return f"{function}(r={rank}, lora_alpha={ALPHA * rank}, target_modules={targets}, task_type={kind})"


def _task(writer: Writer) -> str | None:
    """What PEFT is told of the model; None for a model whose task it has no word for here."""
    load = writer.found.trained_load
    if load is None:
        reward = writer.source.settings.get("trainer")
        return "SEQ_CLS" if reward is not None and reward.value == "reward" else "CAUSAL_LM"
    owner = owner_of(load)
    return next((task for end, task in _TASKS.items() if owner.endswith(end)), None)


def _must_open_input(writer: Writer) -> bool:
    """Whether transformers 4 may be installed, whose checkpointing is reentrant where nobody says otherwise ("element 0
    of tensors does not require grad"). PEFT opens the input of a base that it prepares for four bits by itself."""
    stated, bits = (writer.source.settings.get(name) for name in ("use_reentrant", "quantization"))
    without = stated is not None and stated.value is False and stated.provenance.kind == "file"
    if not _checkpoints(writer) or without or (bits is not None and bits.value is not None):
        return False
    known = (writer.source.reading.version(name) for name in ("transformers", "transformers>="))
    return not any(version is not None and version >= (OPENS_INPUT,) for version in known)


def _checkpoints(writer: Writer) -> bool:
    setting = writer.source.settings.get("gradient_checkpointing")
    return setting is not None and setting.value is True


# -- four bits -------------------------------------------------------------------------------------------------


def _loaded(writer: Writer, load: Record, value: str, ranks: int) -> Edits | None:
    """``quantization_config=`` of the load. A quantized model can be neither cast nor moved afterwards."""
    if load.name != "from_pretrained" or load.taken is not True or load.spreads or not _is_line(writer, load):
        raise CannotWrite(_NO_LOAD)
    if writer.found.moves or any(record.taken is not False for record, _ in writer.found.casts):
        raise CannotWrite("the script moves or casts the model, which four bits do not allow")
    mapped = load.keyword("device_map")
    if load.keyword("quantization_config", "load_in_4bit", "load_in_8bit"):
        if not writer.parsed_fields((*FOUR_BITS, *BITS), lambda value: value in (False, 16, 32, None)):
            raise CannotWrite("the script says already how the base is quantized")
        return four_bits_on(writer)
    if ranks > 1 and not sure_none(mapped):
        raise CannotWrite("the load has a device_map of its own")
    document = writer.calls.document_of(load.node)
    imports = Imports(document, document.span(load.node).start)
    config = _four_bits(writer, document, imports, value)
    if config is None or _is_bound(document, _CONFIG):
        return None
    added = [f"{_CONFIG}={_CONFIG}"]
    if ranks > 1 and not _knows_card(writer, load):
        state = imports.name("accelerate", "PartialState")
        if state is None or mapped is not None:
            return None
        added.append(f"device_map={{{python_edits.quote(document, '')}: {state}().local_process_index}}")
    assert load.statement is not None
    edits = (
        *python_edits.insert_statement_before(document, load.statement, f"{_CONFIG} = {config}"),
        *python_edits.add_arguments(document, load.node, *added),
    )
    return _edits(document, edits, imports)


_CONFIG = "quantization_config"


def _by_name(writer: Writer, value: str) -> Edits | None:
    """``model_init_kwargs`` of TRL's config, by which its trainers load a model that is given by name."""
    made = writer.found.arguments
    if made is None or made.call is None or made.parsed or not by_trl(writer) or not _is_line(writer, made.call):
        return None
    document = writer.calls.document_of(made.call.node)
    imports = Imports(document, document.span(made.call.node).start)
    config = _four_bits(writer, document, imports, value)
    if config is None or _is_bound(document, _CONFIG):
        return None
    named = writer.init_argument(_CONFIG, _CONFIG)
    if named is None or any(edit.document is not document for edit in named):
        return None
    assert made.call.statement is not None
    above = python_edits.insert_statement_before(document, made.call.statement, f"{_CONFIG} = {config}")
    own = _edits(document, above, imports)
    return None if own is None else (*own, *named)


def _four_bits(writer: Writer, document: PythonDocument, imports: Imports, value: str) -> str | None:
    """``BitsAndBytesConfig(...)`` over several lines; the products are computed in the precision of the training."""
    function, step = imports.name("transformers", "BitsAndBytesConfig"), _indent(document)
    if function is None:
        return None
    dtype = "float16" if _is_on(writer, "fp16") else "bfloat16"
    lines = [
        "load_in_4bit=True",
        f"bnb_4bit_quant_type={python_edits.quote(document, 'nf4')}",
        *(["bnb_4bit_use_double_quant=True"] if value == "nf4-double" else []),
        f"bnb_4bit_compute_dtype={writer.torch_name(document, dtype)}",
    ]
    return "\n".join([f"{function}(", *(f"{step}{line}," for line in lines), ")"])


def _is_on(writer: Writer, name: str) -> bool:
    setting = writer.source.settings.get(name)
    return setting is not None and setting.value is True


def _knows_card(writer: Writer, load: Record) -> bool:
    """Whether the rank's own GPU is the current one when the model is loaded: transformers' arguments, Accelerate
    and DeepSpeed set it, and bitsandbytes' weights go there."""
    found = writer.found
    made = found.arguments.call if found.arguments is not None else None
    return any(record is not None and record.order < load.order for record in (made, found.accelerator))


# -- the file --------------------------------------------------------------------------------------------------


def _is_line(writer: Writer, record: Record) -> bool:
    """Whether a call stands in a statement that has its lines to itself."""
    line = record.statement
    return line is not None and len(line.body) == 1 and writer.calls.is_written(line)


def _is_bound(document: PythonDocument, name: str) -> bool:
    """Whether the file uses a name for something already."""
    module = document.module
    for node in walk(module) if module is not None else ():
        if isinstance(node, cst.Name) and node.value == name:
            parent = document.parent(node)
            if not (isinstance(parent, cst.Arg) and parent.keyword is node) and not isinstance(parent, cst.Attribute):
                return True
    return False


def _indent(document: PythonDocument) -> str:
    return document.module.default_indent if document.module is not None else "    "


def _edits(document: PythonDocument, edits: Iterable[Edit], imports: Imports) -> Edits | None:
    """Edits of one document with the imports that they need; None where it cannot be edited without loss.

    A line that stands right behind the imports is one edit with them: two insertions at one place have no order.
    """
    if not document.editable:
        return None
    rest = list(edits)
    for above in imports.edits():
        below = next((edit for edit in rest if edit.span == above.span), None)
        if below is None:
            rest.append(above)
        else:
            rest[rest.index(below)] = replace(below, text=above.text + below.text)
    return tuple(FileEdit(document.path, edit, document) for edit in rest)
