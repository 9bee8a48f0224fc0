"""What the calls of libraries and built-ins that matter here return. Everything else returns an opaque object."""

from __future__ import annotations

from dataclasses import replace

from lintfit.documents.model import Kind
from lintfit.frozen import word_set
from lintfit.sources.script.interpreter import command_lines, config_files, operators, parsers
from lintfit.sources.script.interpreter.functions import FUNCTIONS, GO_THROUGH
from lintfit.sources.script.interpreter.methods import AT_ONCE, CHANGES, GROWS, method
from lintfit.sources.script.interpreter.models import is_adapted_class, is_arguments, is_dataclass_parser, is_model
from lintfit.sources.script.interpreter.protocol import Evaluator
from lintfit.sources.script.interpreter.values import (
    Choice,
    Class,
    Const,
    Function,
    Items,
    Object,
    Passed,
    Record,
    Ref,
    Table,
    Unknown,
    Value,
    choice,
    held,
    objects,
    size,
)

_IN_PLACE = word_set("to cuda cpu half float double bfloat16 type train eval requires_grad_ compile share_memory apply")
"""Methods that return the module that they were called on."""
_WRAPPERS = frozenset({
    "get_peft_model", "prepare_model_for_kbit_training", "prepare_model_for_int8_training",
    "prepare_model_for_training", "compile", "DistributedDataParallel", "DataParallel", "FullyShardedDataParallel",
    "DDP", "FSDP", "DP", "patch_peft_model", "apply_liger_kernel", "fully_shard", "unwrap_model", "prepare_model",
    "add_adapter", "convert_sync_batchnorm",
})  # fmt: skip
_RUNNERS = frozenset({"Fire", "spawn", "notebook_launcher", "launch", "run", "elastic_launch", "Typer", "typer", "cli"})


_PEFT_TYPES = {
    "LORA": "LoraConfig", "ADALORA": "AdaLoraConfig", "IA3": "IA3Config", "P_TUNING": "PromptEncoderConfig",
    "PREFIX_TUNING": "PrefixTuningConfig", "PROMPT_TUNING": "PromptTuningConfig",
}  # fmt: skip
_FILLS = frozenset({"tyro.cli", "simple_parsing.parse", "draccus.parse", "pyrallis.parse", "jsonargparse.CLI"})
"""Functions that fill a dataclass, or a function's parameters, from the command line."""


def constructed(made: Object, record: Record) -> None:
    """Note what an object of a class of the script wraps: the model that it was given."""
    for passed in record.passed:
        for each in objects(passed.value):
            if passed.name in ("model", None) and is_model(each) and made.base is None and made.cls is not None:
                if (made.cls.library or "").endswith("Module"):
                    made.base = passed.value
                return


def call(interpreter: Evaluator, record: Record, function: Value) -> Value:
    """What a call of something outside the script returns."""
    receiver = record.receiver
    if isinstance(function, Ref):
        handler = FUNCTIONS.get(function.name)
        if handler is not None:
            if function.name in GO_THROUGH:
                interpreter.walk.step(sum(map(size, record.positional)))
            return handler(interpreter, record)
        return _named(interpreter, record, function.name)
    if isinstance(receiver, Const | Items | Table | Choice):
        if record.name not in AT_ONCE:
            interpreter.walk.step(sum(map(size, (receiver, *record.positional))))
        found = _changed(interpreter, receiver, record) if record.name in CHANGES else method(receiver, record)
        interpreter.walk.step(size(found) if record.name not in AT_ONCE else 0)
        if isinstance(receiver, Items) and record.name in GROWS:
            receiver.open |= bool(interpreter.walk.loops or interpreter.walk.branch.undecided)
        if found is not None:
            return found
    if isinstance(receiver, Class):
        return _class_method(record, receiver)
    return _object_method(interpreter, record)


def _changed(interpreter: Evaluator, receiver: Value, record: Record) -> Value | None:
    """What a method returns that changes its receiver, which other branches see, too."""
    branch = interpreter.walk.branch
    if branch.taken is False:
        return Unknown(record.node)
    before = dict(receiver.items) if isinstance(receiver, Table) and branch.undecided else None
    interpreter.walk.step(size(receiver) if before is not None else 0)
    returned = method(receiver, record)
    if before is not None and isinstance(receiver, Table):
        for key in {**before, **receiver.items}:
            old, new = before.get(key), receiver.items.get(key)
            if old is not new:
                receiver.items[key] = choice([old or Unknown(record.node), new or Unknown(record.node)], record.node)
    return returned


def _handed_to_processes(record: Record, name: str) -> Record | None:
    """The call that a process makes which is started with ``args=(…)``; ``spawn`` puts the process's rank before them.

    That of the first process, as all of the script is read.
    """
    handed = record.keyword("args")
    if name not in ("spawn", "notebook_launcher") or not isinstance(handed, Items) or handed.open:
        return None
    rank: list[Value] = [Const(record.node, 0)] if name == "spawn" else []
    whole = next(passed for passed in record.passed if passed.name == "args")
    return replace(record, passed=[Passed(None, value, whole.node) for value in (*rank, *handed.items)], spreads=False)


def _named(interpreter: Evaluator, record: Record, name: str) -> Value:
    last = name.rpartition(".")[2]
    if is_dataclass_parser(name) and len(record.positional) > 1:
        return Unknown(record.node)  # its constructor takes the dataclasses in a tuple, and stops with TypeError
    if is_dataclass_parser(name):
        return parsers.Parser(record.node, name, record, classes=parsers.classes_of(record.value(0, "dataclass_types")))
    if last == "ArgumentParser":
        return parsers.Parser(record.node, "argparse.ArgumentParser", record)
    if last == "add_config_arguments" and record.positional:
        return command_lines.deepspeed_arguments(record.positional[0], record)
    if command_lines.is_fire(name, record) and record.taken is not False:
        return command_lines.fire(interpreter, record)
    if last in _RUNNERS and record.positional and record.taken is not False:
        target = record.positional[0]
        if isinstance(target, Function) and id(target.node) not in interpreter.walk.ran:
            if (handed := _handed_to_processes(record, last)) is not None:
                return interpreter.follow(target, handed)
            return interpreter.enter(target, interpreter.walk.positional if name == "typer.run" else ())
    if name in _FILLS and record.positional:
        return command_lines.filled(interpreter, record, record.positional[0])
    if name == "peft.get_peft_config" and isinstance(record.value(0, "config_dict"), Table):
        return _peft_config(interpreter, record)
    if last == "get_quantization_config":
        return _of_model_config(interpreter, record)
    if last == "get_peft_config" and name.startswith(("trl", "alignment")):
        holder = record.value(0, "model_args", "model_config") or Unknown(record.node)
        wanted = operators.truth(interpreter.attribute(holder, "use_peft", record.node))
        if wanted is not None:
            return Object(record.node, "peft.LoraConfig", record) if wanted else Const(record.node, None)
    if last == "is_adapter_model" and name.startswith("alignment") and _is_whole(record.value(0, "model_name_or_path")):
        return Const(record.node, False)
    made = Object(record.node, name, record, open=record.spreads)
    if is_arguments(name):
        made.attributes |= {passed.name: passed.value for passed in record.passed if passed.name is not None}
        if record.positional:
            made.attributes.setdefault("output_dir", record.positional[0])
        return made
    if last in ("ModelConfig", "ScriptArguments") and name.startswith("trl."):
        made.attributes |= {passed.name: passed.value for passed in record.passed if passed.name is not None}
    if last in _WRAPPERS or is_adapted_class(last) or last == "from_pretrained":
        made.base = _model_argument(record)
    if last in ("FastLanguageModel", "FastModel", "FastVisionModel"):
        return made
    if name.endswith(
        ("FastLanguageModel.from_pretrained", "FastModel.from_pretrained", "FastVisionModel.from_pretrained")
    ):
        return Items(record.node, [made, Unknown(record.node)])
    if last == "initialize" and name.startswith("deepspeed"):
        made.base = _model_argument(record)
        return Items(record.node, [made, *(Unknown(record.node) for _ in range(3))])
    if made.base is None and record.assigned_to is not None:
        made.base = _same_name(record)
    return made


def _is_whole(model: Value | None) -> bool:
    """Whether a name is surely that of a whole model, not of adapters (alignment-handbook's ``is_adapter_model`` asks
    the Hub for adapters' files): one of the catalogue itself, for adapters have names like their models'."""
    from lintfit.catalog.models import ids

    return isinstance(model, Const) and model.value in ids()


def _peft_config(interpreter: Evaluator, record: Record) -> Value:
    """peft's config of the class that a dict's ``peft_type`` names (``PEFT_TYPE_TO_CONFIG_MAPPING``, peft 0.19)."""
    table = record.value(0, "config_dict")
    kind = held(table, "peft_type") if isinstance(table, Table) else None
    cls = _PEFT_TYPES.get(kind.value) if isinstance(kind, Const) and isinstance(kind.value, str) else None
    if not isinstance(table, Table) or cls is None:
        return Object(record.node, record.function, record, open=True)
    node = record.passed[0].node
    passed = [Passed(str(key), held(table, key) or Unknown(record.node), node) for key in table.items]
    made = replace(
        record, function=f"peft.{cls}", passed=passed, spreads=table.open, order=len(interpreter.walk.records)
    )
    interpreter.walk.note(made)
    attributes: dict[str, Value] = {str(each.name): each.value for each in passed}
    attributes["peft_type"] = Object(record.node, "peft.PeftType", attributes={"name": kind or Unknown(record.node)})
    return Object(record.node, made.function, made, attributes=attributes, open=table.open)


def _of_model_config(interpreter: Evaluator, record: Record) -> Value:
    """What TRL's helper makes of ``ModelConfig``: None unless that says 4 or 8 bits."""
    holder = record.value(0, "model_args", "model_config") or Unknown(record.node)
    bits = [operators.truth(interpreter.attribute(holder, f"load_in_{n}bit", record.node)) for n in (4, 8)]
    if bits == [False, False]:
        return Const(record.node, None)
    return Object(record.node, "transformers.BitsAndBytesConfig" if True in bits else record.function, record)


def _model_argument(record: Record) -> Value | None:
    for value in (record.keyword("model"), *record.positional[:2]):
        if any(is_model(each) for each in objects(value)):
            return value
    return None


def _same_name(record: Record) -> Value | None:
    """A model that an unknown function takes and that its result replaces (``model = patch(model)``)."""
    for passed in record.passed:
        named = getattr(passed.node.value, "value", None) == record.assigned_to
        if named and any(is_model(each) for each in objects(passed.value)):
            return passed.value
    return None


def _object_method(interpreter: Evaluator, record: Record) -> Value:
    receiver, name = record.receiver, record.name
    if isinstance(receiver, parsers.Parser):
        return command_lines.parser_method(interpreter, record, receiver)
    if isinstance(receiver, Object) and receiver.kind == "ruamel.yaml.YAML" and name == "load":
        return config_files.load(interpreter, record.value(0, "stream"), record, Kind.YAML)
    if isinstance(receiver, Object):
        if name in ("prepare", "setup", "setup_module") and record.positional:
            values = record.positional
            return values[0] if len(values) == 1 else Items(record.node, list(values))
        if name in ("to_dict", "asdict", "copy", "items", "keys", "values") and receiver.parsed:
            interpreter.walk.step(len(receiver.attributes))
            return Table(record.node, dict(receiver.attributes), open=receiver.open)
        if name == "unwrap_model" and record.positional:
            return record.positional[0]
        if is_model(receiver) and name in _IN_PLACE:
            return receiver
        if name == "get" and receiver.attributes and record.positional and isinstance(record.positional[0], Const):
            found = receiver.attributes.get(str(record.positional[0].value))
            if found is not None:
                return found
    made = Object(record.node, record.function, record, open=record.spreads)
    if record.name in _WRAPPERS or is_adapted_class(record.name) or record.name == "from_pretrained":
        made.base = _model_argument(record)
    if (
        made.base is None
        and isinstance(receiver, Object)
        and is_model(receiver)
        and record.assigned_to == record.receiver_name
    ):
        made.base = receiver
    if isinstance(receiver, Choice) and name in _IN_PLACE and any(is_model(each) for each in objects(receiver)):
        return receiver
    return made


def _class_method(record: Record, cls: Class) -> Value:
    made = Object(record.node, record.function, record, cls if cls.library is not None else None, open=record.spreads)
    made.base = _model_argument(record) if record.name == "from_pretrained" else None
    return made
