"""What the calls of libraries and built-ins that matter here return. Everything else returns an opaque object."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lintfit.sources.python import operators, parsers
from lintfit.sources.python.values import (
    Choice,
    Class,
    Const,
    Field,
    Function,
    Items,
    Object,
    Record,
    Ref,
    Table,
    Unknown,
    Value,
    choice,
    objects,
    plain,
)

if TYPE_CHECKING:
    from lintfit.sources.python.interpreter import Interpreter

_LOADERS = frozenset(
    {"from_pretrained", "from_config", "_from_config", "load_from_checkpoint", "load_pretrained_model"}
)
_NOT_MODELS = re.compile(
    r"(tokeni[sz]er|config|processor|extractor|scheduler|pipeline|generationconfig|vocab|feature|dataset|sampler)",
    re.IGNORECASE,
)
_MODEL_CLASS = re.compile(r"(Model|LMHead|For[A-Z]\w*|AutoencoderKL|CausalLM|model_cls|model_class|model)")
_ARGUMENTS = re.compile(
    r"(TrainingArguments|(SFT|DPO|GRPO|KTO|ORPO|CPO|PPO|PPOv2|RLOO|Reward|PRM|BCO|XPO|OnlineDPO|NashMD|GKD|Iterative\w*)Config)$"
)
_DATACLASS_PARSER = re.compile(r"(Hf|H4)ArgumentParser$|TrlParser$|ArgumentParserPlus$")
_IN_PLACE = frozenset({
    "to", "cuda", "cpu", "half", "float", "double", "bfloat16", "type", "train", "eval", "requires_grad_",
    "compile", "share_memory", "apply",
})  # fmt: skip
"""Methods that return the module that they were called on."""
_WRAPPERS = frozenset({
    "get_peft_model", "prepare_model_for_kbit_training", "prepare_model_for_int8_training",
    "prepare_model_for_training", "compile", "DistributedDataParallel", "DataParallel", "FullyShardedDataParallel",
    "DDP", "FSDP", "DP", "patch_peft_model", "apply_liger_kernel", "fully_shard", "unwrap_model", "prepare_model",
    "add_adapter", "convert_sync_batchnorm", "PeftModel", "PeftModelForCausalLM",
})  # fmt: skip
_GROWS = frozenset({"append", "add", "extend", "update"})
_RUNNERS = frozenset({"Fire", "spawn", "notebook_launcher", "launch", "run", "elastic_launch", "Typer", "typer", "cli"})
_SHARDING = re.compile(r"(deepspeed\.zero\.Init|zero\.Init)$")

Handler = Callable[["Interpreter", Record], Value]


def is_arguments(name: str) -> bool:
    """Whether a dotted name is a ``TrainingArguments``-like class."""
    return bool(_ARGUMENTS.search(name))


def is_dataclass_parser(name: str) -> bool:
    """Whether a dotted name is a parser that fills dataclasses: HfArgumentParser or one of its children."""
    return bool(_DATACLASS_PARSER.search(name))


def is_model_load(record: Record) -> bool:
    """Whether a call makes a model from a checkpoint or a config (not a tokenizer, config or processor)."""
    if record.name not in _LOADERS:
        return False
    owner = record.function.rpartition(".")[0].rpartition(".")[2]
    if owner in ("PeftModel", "PeftModelForCausalLM"):
        return False
    return bool(_MODEL_CLASS.search(owner)) and not _NOT_MODELS.search(owner)


def is_model_constructor(record: Record) -> bool:
    """Whether a call builds a library's model class from a config (``LlamaForCausalLM(config)``)."""
    name = record.name
    library = record.function.partition(".")[0]
    return library in ("transformers", "diffusers", "timm") and bool(
        re.search(r"(Model|LMHeadModel|For[A-Z]\w+)$", name)
    )


def is_model(made: Object) -> bool:
    """Whether an object is a model or wraps one."""
    for each in objects(made):
        if each.call is not None and (is_model_load(each.call) or is_model_constructor(each.call)):
            return True
        if each.cls is not None and (each.cls.library or "").endswith(("nn.Module", ".Module", "PreTrainedModel")):
            return True
        if each.kind.rpartition(".")[2] in ("PeftModel", "create_model", "get_model", "load_model", "build_model"):
            return True
    return False


def constructed(made: Object, record: Record) -> None:
    """Note what an object of a class of the script wraps: the model that it was given."""
    for passed in record.passed:
        for each in objects(passed.value):
            if passed.name in ("model", None) and is_model(each) and made.base is None and made.cls is not None:
                if (made.cls.library or "").endswith("Module"):
                    made.base = passed.value
                return


def call(interpreter: Interpreter, record: Record, function: Value) -> Value:
    """What a call of something outside the script returns."""
    receiver = record.receiver
    if isinstance(function, Ref):
        handler = _FUNCTIONS.get(function.name)
        if handler is not None:
            return handler(interpreter, record)
        return _named(interpreter, record, function.name)
    if isinstance(receiver, Const | Items | Table | Choice):
        found = _method(receiver, record)
        if isinstance(receiver, Items) and record.name in _GROWS:
            receiver.open |= bool(interpreter.walk.loops or interpreter.walk.branch.undecided)
        if found is not None:
            return found
    if isinstance(receiver, Class):
        return _class_method(interpreter, record, receiver)
    return _object_method(interpreter, record)


def _named(interpreter: Interpreter, record: Record, name: str) -> Value:
    last = name.rpartition(".")[2]
    if is_dataclass_parser(name):
        return parsers.Parser(record.node, name, record, classes=parsers.classes_of(record.value(0, "dataclass_types")))
    if last == "ArgumentParser":
        return parsers.Parser(record.node, "argparse.ArgumentParser", record)
    if last == "add_config_arguments" and record.positional:
        return _deepspeed_arguments(record.positional[0], record)
    if last in _RUNNERS and record.positional:
        target = record.positional[0]
        if isinstance(target, Function) and id(target.node) not in interpreter.walk.entered:
            return interpreter.enter(target)
    if name in ("tyro.cli", "simple_parsing.parse") and record.positional:
        parser = parsers.Parser(record.node, name, record, classes=[record.positional[0]])
        return _dataclasses(interpreter, record, parser)[0]
    made = Object(record.node, name, record, open=record.spreads)
    if is_arguments(name):
        made.attributes |= {passed.name: passed.value for passed in record.passed if passed.name is not None}
        if record.positional:
            made.attributes.setdefault("output_dir", record.positional[0])
        return made
    if last in _WRAPPERS or last == "from_pretrained":
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


def _deepspeed_arguments(parser: Value, record: Record) -> Value:
    """The flags that ``deepspeed.add_config_arguments`` declares and a config is read from."""
    if isinstance(parser, parsers.Parser):
        parser.fields["deepspeed"] = Field("deepspeed", "flag", Const(record.node, False), record.node, constant=True)
        parser.fields["deepspeed_config"] = Field("deepspeed_config", "str", Const(record.node, None), record.node)
    return parser


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


def _object_method(interpreter: Interpreter, record: Record) -> Value:
    receiver, name = record.receiver, record.name
    if isinstance(receiver, parsers.Parser):
        return _parser_method(interpreter, record, receiver)
    if isinstance(receiver, Object):
        if name in ("prepare", "setup", "setup_module") and record.positional:
            values = record.positional
            return values[0] if len(values) == 1 else Items(record.node, list(values))
        if name in ("to_dict", "asdict", "copy", "items", "keys", "values") and receiver.parsed:
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
    if record.name in _WRAPPERS or record.name == "from_pretrained":
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


def _class_method(interpreter: Interpreter, record: Record, cls: Class) -> Value:
    made = Object(record.node, record.function, record, cls if cls.library is not None else None, open=record.spreads)
    made.base = _model_argument(record) if record.name == "from_pretrained" else None
    return made


def _parser_method(interpreter: Interpreter, record: Record, parser: parsers.Parser) -> Value:
    walk, name = interpreter.walk, record.name
    match name:
        case "add_argument":
            names = [str(value.value) for value in record.positional if isinstance(value, Const)]
            keywords = {passed.name: passed.value for passed in record.passed if passed.name is not None}
            entry = parsers.argument_field(names, keywords, record.node)
            if entry is not None and walk.branch.taken is not False:
                parser.fields[entry.name] = entry
                if entry.kind == "flag":
                    walk.switches.add(entry.name)
                long = [name.lstrip("-") for name in names if name.startswith("--")]
                if long and "-" in long[0]:
                    walk.spelling[entry.name] = long[0]
            return Unknown(record.node)
        case "add_argument_group" | "add_mutually_exclusive_group" | "add_subparsers" | "add_parser":
            return parser
        case "set_defaults":
            for passed in record.passed:
                if passed.name in parser.fields:
                    parser.fields[passed.name].default = passed.value
            return Const(record.node, None)
        case "parse_args" | "parse_known_args" if parser.classes:
            return _dataclasses(interpreter, record, parser)[0]
        case "parse_args" | "parse_known_args":
            walk.parses = True
            made = parsers.namespace(parser, walk.flags, walk.assume)
            made.call = record
            walk.parsed.append(made)
            return made if name == "parse_args" else Items(record.node, [made, Items(record.node, open=True)])
        case "parse_args_into_dataclasses" | "parse_args_and_config" | "parse":
            made_objects: list[Value] = list(_dataclasses(interpreter, record, parser))
            remaining = record.keyword("return_remaining_strings", "return_remaining_args")
            if remaining is not None and operators.truth(remaining) is not False:
                made_objects.append(Items(record.node, open=True))
            if name == "parse" and len(made_objects) == 1:
                return made_objects[0]
            return Items(record.node, made_objects)
        case "parse_json_file" | "parse_yaml_file":
            made_objects = [_opened(cls, record) for cls in parser.classes]
            return Items(record.node, made_objects)
        case "parse_dict" if isinstance(record.value(0, "args"), Table):
            table = record.value(0, "args")
            return Items(
                record.node,
                [parsers.table_object(cls, table, record.node) for cls in parser.classes if isinstance(table, Table)],
            )
    return Unknown(record.node)


def _opened(cls: Value, record: Record) -> Value:
    kind = cls.name if isinstance(cls, Ref | Class) else ""
    return Object(record.node, kind, record, cls if isinstance(cls, Class) else None, parsed=True, open=True)


def _dataclasses(interpreter: Interpreter, record: Record, parser: parsers.Parser) -> list[Object]:
    walk = interpreter.walk
    walk.parses = True
    made = parsers.dataclass_objects(parser, walk.flags, walk.assume, "config" in walk.flags, walk.defaults.names)
    for each in made:
        each.call = record
    walk.parsed += made
    return made


def _method(receiver: Value, record: Record) -> Value | None:
    name, positional = record.name, record.positional
    if isinstance(receiver, Const):
        if isinstance(receiver.value, str):
            return operators.string_method(receiver.value, name, positional, record.node)
        return Unknown(record.node)
    if isinstance(receiver, Items):
        return _list_method(receiver, record)
    if isinstance(receiver, Table):
        return _dict_method(receiver, record)
    mapped = name in ("get", "lower", "upper", "strip", "split", "startswith", "endswith", "copy", "items", "replace")
    if (
        isinstance(receiver, Choice)
        and mapped
        and all(isinstance(option, Const | Table) for option in receiver.options)
    ):
        return choice([_method(option, record) or Unknown(record.node) for option in receiver.options], record.node)
    return None


def _list_method(receiver: Items, record: Record) -> Value:
    match record.name:
        case "append" | "add" if record.positional:
            receiver.items.append(record.positional[0])
        case "extend" | "update" if record.positional and isinstance(record.positional[0], Items):
            receiver.items.extend(record.positional[0].items)
            receiver.open |= record.positional[0].open
        case "copy":
            return Items(record.node, list(receiver.items), receiver.open)
        case "remove" | "pop" | "insert" | "extend" | "update" | "clear" | "discard":
            receiver.open = True
        case _:
            return Unknown(record.node)
    if len(receiver.items) > operators.MAX_TEXT:
        receiver.items.clear()
        receiver.open = True
    return Const(record.node, None)


def _dict_method(receiver: Table, record: Record) -> Value:
    positional = record.positional
    key = positional[0].value if positional and isinstance(positional[0], Const) else None
    default = positional[1] if len(positional) > 1 else Const(record.node, None)
    match record.name:
        case "get" | "pop" | "setdefault":
            if not positional or not isinstance(positional[0], Const):
                return Unknown(record.node)
            found = receiver.items.get(key)
            if record.name == "pop":
                receiver.items.pop(key, None)
            if found is None and record.name == "setdefault":
                receiver.items[key] = default
            return found or (Unknown(record.node) if receiver.open else default)
        case "update":
            for value in positional:
                if isinstance(value, Table):
                    receiver.items |= value.items
                    receiver.open |= value.open
                else:
                    receiver.open = True
            receiver.items |= {passed.name: passed.value for passed in record.passed if passed.name is not None}
            return Const(record.node, None)
        case "copy":
            return Table(record.node, dict(receiver.items), receiver.open)
        case "items":
            pairs = [Items(record.node, [Const(record.node, k), v]) for k, v in receiver.items.items()]
            return Items(record.node, list(pairs), receiver.open)
        case "keys":
            return Items(record.node, [Const(record.node, k) for k in receiver.items], receiver.open)
        case "values":
            return Items(record.node, list(receiver.items.values()), receiver.open)
    return Unknown(record.node)


# -- functions by name ---------------------------------------------------------------------------------------


def _scalar(convert: Callable[[Any], Any]) -> Handler:
    def handle(interpreter: Interpreter, record: Record) -> Value:
        value = record.value(0)
        if value is None:
            return Const(record.node, convert(0)) if convert is not str else Const(record.node, "")
        if isinstance(value, Const):
            return Const(value.origin, convert(value.value))
        if isinstance(value, Choice) and all(isinstance(option, Const) for option in value.options):
            return choice(
                [Const(o.origin, convert(o.value)) for o in value.options if isinstance(o, Const)], record.node
            )
        return Unknown(value.origin)

    return handle


def _bool(interpreter: Interpreter, record: Record) -> Value:
    value = record.value(0)
    known = False if value is None else operators.truth(value)
    return Unknown(record.node) if known is None else Const(value.origin if value else record.node, known)


def _len(interpreter: Interpreter, record: Record) -> Value:
    value = record.value(0)
    if isinstance(value, Items | Table) and not value.open:
        return Const(record.node, len(value.items))
    if isinstance(value, Const) and isinstance(value.value, str):
        return Const(record.node, len(value.value))
    return Unknown(record.node)


def _extreme(pick: Callable[[list[Any]], Any]) -> Handler:
    def handle(interpreter: Interpreter, record: Record) -> Value:
        values = record.positional
        if len(values) == 1 and isinstance(values[0], Items) and not values[0].open:
            values = values[0].items
        known = [value.value for value in values if isinstance(value, Const)]
        return Const(record.node, pick(known)) if known and len(known) == len(values) else Unknown(record.node)

    return handle


def _sequence(interpreter: Interpreter, record: Record) -> Value:
    value = record.value(0)
    if value is None:
        return Items(record.node)
    if isinstance(value, Items):
        return Items(value.origin, list(value.items), value.open)
    if isinstance(value, Table):
        return Items(record.node, [Const(record.node, key) for key in value.items], value.open)
    return Items(record.node, open=True)


def _dict(interpreter: Interpreter, record: Record) -> Value:
    made = Table(record.node, open=record.spreads)
    for value in record.positional:
        if isinstance(value, Table):
            made.items |= value.items
            made.open |= value.open
        else:
            made.open = True
    made.items |= {passed.name: passed.value for passed in record.passed if passed.name is not None}
    return made


def _getattr(interpreter: Interpreter, record: Record) -> Value:
    holder, name = record.value(0), record.value(1)
    if holder is None or name is None:
        return Unknown(record.node)
    if isinstance(name, Choice):
        return choice([_attribute(interpreter, record, holder, option) for option in name.options], record.node)
    return _attribute(interpreter, record, holder, name)


def _attribute(interpreter: Interpreter, record: Record, holder: Value, name: Value) -> Value:
    if not isinstance(name, Const) or not isinstance(name.value, str):
        return Unknown(name.origin)
    if isinstance(holder, Object) and name.value not in holder.attributes and len(record.positional) > 2:
        found = interpreter.field_default(holder, name.value, record.node) if holder.parsed else None
        return found or (Unknown(record.node) if holder.open or not holder.parsed else record.positional[2])
    found = interpreter.attribute(holder, name.value, record.node)
    if isinstance(found, Ref):
        found.origin = name.origin
    return found


def _setattr(interpreter: Interpreter, record: Record) -> Value:
    holder, name, value = record.value(0), record.value(1), record.value(2)
    if isinstance(holder, Object) and isinstance(name, Const) and value is not None:
        interpreter._store(holder.attributes, str(name.value), value)
    return Const(record.node, None)


def _hasattr(interpreter: Interpreter, record: Record) -> Value:
    holder, name = record.value(0), record.value(1)
    if isinstance(holder, Object) and holder.parsed and isinstance(name, Const) and name.value in holder.attributes:
        return Const(record.node, True)
    return Unknown(record.node)


def _vars(interpreter: Interpreter, record: Record) -> Value:
    holder = record.value(0, "obj")
    if not isinstance(holder, Object):
        return Unknown(record.node)
    found = Table(record.node, dict(holder.attributes), open=holder.open or not holder.parsed)
    if not found.open:
        for name in interpreter.walk.defaults.names(holder.library) - found.items.keys():
            default = interpreter.field_default(holder, name, record.node)
            if default is not None:
                found.items[name] = default
    return found


def _environment(interpreter: Interpreter, record: Record) -> Value:
    name = record.value(0, "key")
    default = record.value(1, "default") or Const(record.node, None)
    if not isinstance(name, Const):
        return Unknown(record.node)
    return interpreter.environment(str(name.value), default, record.node)


def _join_path(interpreter: Interpreter, record: Record) -> Value:
    parts = [plain(value) for value in record.positional]
    if parts and all(isinstance(part, str) for part in parts):
        return Const(record.node, posixpath.join(*parts))
    return Unknown(record.node)


def _constant(value: Any) -> Handler:
    return lambda interpreter, record: Const(record.node, value)


def _unknown(interpreter: Interpreter, record: Record) -> Value:
    return Unknown(record.node)


def _first(interpreter: Interpreter, record: Record) -> Value:
    return record.value(0) or Unknown(record.node)


def _namespace(interpreter: Interpreter, record: Record) -> Value:
    attributes = {passed.name: passed.value for passed in record.passed if passed.name is not None}
    return Object(record.node, record.function, record, attributes=attributes, parsed=True, open=record.spreads)


def _device(interpreter: Interpreter, record: Record) -> Value:
    return Object(record.node, "torch.device", None, attributes={"type": record.value(0) or Unknown(record.node)})


_FUNCTIONS: dict[str, Handler] = {
    "int": _scalar(int),
    "float": _scalar(float),
    "str": _scalar(str),
    "bool": _bool,
    "len": _len,
    "max": _extreme(max),
    "min": _extreme(min),
    "list": _sequence,
    "tuple": _sequence,
    "set": _sequence,
    "sorted": _sequence,
    "dict": _dict,
    "getattr": _getattr,
    "setattr": _setattr,
    "hasattr": _hasattr,
    "vars": _vars,
    "isinstance": _unknown,
    "print": _constant(None),
    "dataclasses.asdict": _vars,
    "os.environ.get": _environment,
    "os.getenv": _environment,
    "os.path.join": _join_path,
    "os.path.expanduser": _first,
    "os.path.abspath": _first,
    "copy.copy": _first,
    "copy.deepcopy": _first,
    "typing.cast": lambda interpreter, record: record.value(1) or Unknown(record.node),
    "argparse.Namespace": _namespace,
    "types.SimpleNamespace": _namespace,
    "torch.cuda.is_available": _constant(True),
    "torch.backends.mps.is_available": _constant(False),
    "torch.xpu.is_available": _constant(False),
    "torch.npu.is_available": _constant(False),
    "transformers.utils.is_torch_npu_available": _constant(False),
    "transformers.utils.is_torch_xpu_available": _constant(False),
    "accelerate.utils.is_npu_available": _constant(False),
    "accelerate.utils.is_xpu_available": _constant(False),
    "torch.device": _device,
}
