"""What built-in functions and those of the standard library and torch return that decide a run."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lintfit.documents import bounds
from lintfit.documents.model import Kind
from lintfit.documents.numerals import natural
from lintfit.sources.script.interpreter import config_files, named_tuples, omegaconf, operators
from lintfit.sources.script.interpreter.protocol import Evaluator
from lintfit.sources.script.interpreter.values import (
    Bounded,
    Choice,
    Class,
    Const,
    Function,
    Items,
    Object,
    Record,
    Ref,
    Table,
    Unknown,
    Value,
    alternatives,
    choice,
    dtype,
    plain,
)

Handler = Callable[[Evaluator, Record], Value]


def _scalar(convert: Callable[[Any], Any]) -> Handler:
    def handle(interpreter: Evaluator, record: Record) -> Value:
        value = record.value(0)
        if value is None:
            return Const(record.node, convert(0)) if convert is not str else Const(record.node, "")
        if len(record.passed) > 1:
            return Unknown(record.node)  # int(text, base)
        if isinstance(value, Const):
            return Const(value.origin, bounds.number(convert(value.value)))
        if isinstance(value, Choice) and all(isinstance(option, Const) for option in value.options):
            return choice(
                [Const(o.origin, convert(o.value)) for o in value.options if isinstance(o, Const)], record.node
            )
        return Unknown(value.origin)

    return handle


def _bool(interpreter: Evaluator, record: Record) -> Value:
    value = record.value(0)
    known = False if value is None else operators.truth(value)
    return Unknown(record.node) if known is None else Const(value.origin if value else record.node, known)


def _len(interpreter: Evaluator, record: Record) -> Value:
    value = record.value(0)
    if isinstance(value, Items | Table) and not value.open:
        return Const(record.node, len(value.items))
    if isinstance(value, Const) and isinstance(value.value, str):
        return Const(record.node, len(value.value))
    return Unknown(record.node)


def _extreme(pick: Callable[[list[Any]], Any]) -> Handler:
    def handle(interpreter: Evaluator, record: Record) -> Value:
        values = record.positional
        if len(values) == 1 and isinstance(values[0], Items) and not values[0].open:
            values = values[0].items
        known = [value.value for value in values if isinstance(value, Const)]
        if known and len(known) < len(values) and pick is min and all(type(each) is int for each in known):
            return Bounded(record.node, most=Const(record.node, min(known)))
        return Const(record.node, pick(known)) if known and len(known) == len(values) else Unknown(record.node)

    return handle


def _quantified(decides: bool) -> Handler:
    """``any([...])``, which one true part decides, and ``all([...])``, which one false part decides."""

    def handle(interpreter: Evaluator, record: Record) -> Value:
        value = record.value(0)
        if not isinstance(value, Items):
            return Unknown(record.node)
        answers = [operators.truth(item) for item in value.items]
        if decides in answers:
            return Const(record.node, decides)
        return Unknown(record.node) if None in answers or value.open else Const(record.node, not decides)

    return handle


def _type(interpreter: Evaluator, record: Record) -> Value:
    """``type(value)``, to be compared with; what is written as a sequence may be any of them."""
    known = [name for option in alternatives(record.value(0) or Unknown(record.node)) for name in _type_names(option)]
    return choice([Ref(record.node, name) for name in known], record.node) if all(known) else Unknown(record.node)


def _type_names(value: Value) -> tuple[str, ...]:
    match value:
        case Const(value=known):
            return (type(known).__name__,) if isinstance(known, (str, int, float, bytes, type(None))) else ("",)
        case Items():
            return ("list", "tuple", "set")
        case Table():
            return ("dict",)
    return ("",)


def _sequence(interpreter: Evaluator, record: Record) -> Value:
    value = record.value(0)
    if value is None:
        return Items(record.node)
    if isinstance(value, Items):
        return Items(value.origin, list(value.items), value.open)
    if isinstance(value, Table):
        return Items(record.node, [Const(record.node, key) for key in value.items], value.open)
    return Items(record.node, open=True)


def _dict(interpreter: Evaluator, record: Record) -> Value:
    made = Table(record.node, open=record.spreads)
    for value in record.positional:
        if isinstance(value, Table):
            made.items |= value.items
            made.open |= value.open
        else:
            made.open = True
    made.items |= {passed.name: passed.value for passed in record.passed if passed.name is not None}
    return made


def _getattr(interpreter: Evaluator, record: Record) -> Value:
    holder, name = record.value(0), record.value(1)
    if holder is None or name is None:
        return Unknown(record.node)
    if isinstance(name, Choice):
        return choice([_attribute(interpreter, record, holder, option) for option in name.options], record.node)
    return _attribute(interpreter, record, holder, name)


def _attribute(interpreter: Evaluator, record: Record, holder: Value, name: Value) -> Value:
    if not isinstance(name, Const) or not isinstance(name.value, str):
        return Unknown(name.origin)
    if isinstance(holder, Object) and name.value not in holder.attributes and len(record.positional) > 2:
        found = interpreter.field_default(holder, name.value, record.node) if holder.parsed else None
        return found or (Unknown(record.node) if holder.open or not holder.parsed else record.positional[2])
    found = interpreter.attribute(holder, name.value, record.node)
    if isinstance(found, Ref):
        found.origin = name.origin
    return found


def _setattr(interpreter: Evaluator, record: Record) -> Value:
    holder, name, value = record.value(0), record.value(1), record.value(2)
    if isinstance(holder, Object) and isinstance(name, Const) and value is not None:
        interpreter.store(holder.attributes, str(name.value), value)
    elif isinstance(holder, Class):
        _set_member(interpreter, holder, name, value)
    elif isinstance(holder, Object) and interpreter.walk.branch.taken is not False:
        # Any of its attributes may be another from here on.
        holder.open = True
        names = {str(plain(option)) for option in alternatives(name)} if isinstance(name, Choice) else holder.attributes
        holder.attributes |= {key: Unknown(record.node) for key in names if key in holder.attributes}
    return Const(record.node, None)


def _set_member(interpreter: Evaluator, cls: Class, name: Value | None, value: Value | None) -> None:
    """Set an attribute of a class itself, as projects do that keep their options in one (llama-recipes)."""
    if isinstance(name, Const) and value is not None:
        interpreter.store(cls.members, str(name.value), value)
    elif interpreter.walk.branch.taken is not False:
        cls.members |= {
            key: Unknown(cls.origin) for key, known in cls.members.items() if not isinstance(known, Function)
        }


def _hasattr(interpreter: Evaluator, record: Record) -> Value:
    holder, name = record.value(0), record.value(1)
    if isinstance(holder, Class) and isinstance(name, Const) and all(isinstance(base, Class) for base in holder.bases):
        return Const(record.node, holder.member(str(name.value)) is not None)
    if not isinstance(holder, Object) or not isinstance(name, Const):
        return Unknown(record.node)
    own = holder.cls is not None and holder.cls.library is None
    if name.value in holder.attributes and (holder.parsed or own):
        return Const(record.node, True)
    if holder.cls is not None and own and not holder.open and not holder.parsed:
        return Const(record.node, holder.cls.member(str(name.value)) is not None)
    return Unknown(record.node)


_TYPES: dict[str, type | tuple[type, ...]] = {"str": str, "int": int, "float": float, "bool": bool, "bytes": bytes}


def _isinstance(interpreter: Evaluator, record: Record) -> Value:
    value, kinds = record.value(0), record.value(1)
    wanted = kinds.items if isinstance(kinds, Items) else [kinds]
    answers = [_is_a(value, kind) for kind in wanted]
    if True in answers:
        return Const(record.node, True)
    return Unknown(record.node) if None in answers else Const(record.node, False)


def _is_a(value: Value | None, kind: Value | None) -> bool | None:
    """Whether a value is of a built-in type or a class of the script; None where that is not statically known."""
    if isinstance(kind, Class):
        return True if isinstance(value, Object) and value.cls is kind else False if isinstance(value, Class) else None
    if not isinstance(kind, Ref):
        return None
    if kind.name.endswith("PeftModel") and isinstance(value, Object) and value.call is not None:
        # A load of transformers gives its own class, also where it puts a saved adapter into it.
        return False if value.call.function.startswith("transformers.Auto") else None
    if isinstance(value, Ref) and dtype(value) is not None:
        return (
            kind.name == "torch.dtype"
            if kind.name in ("list", "tuple", "dict", "set", "torch.dtype", *_TYPES)
            else None
        )
    if isinstance(value, Const) and kind.name in _TYPES:
        return isinstance(value.value, _TYPES[kind.name])
    if isinstance(value, Class):
        return False if kind.name in ("dict", "list", "tuple", "set", *_TYPES) else None
    if isinstance(value, Const):
        return False if kind.name in ("list", "tuple", "dict", "set", "torch.dtype") else None
    if isinstance(value, Table):
        return kind.name == "dict" if kind.name in ("dict", "list", "tuple", "set", *_TYPES) else None
    if isinstance(value, Object) and value.cls is not None and value.cls.library is None:
        return False if kind.name in ("dict", "list", "tuple", "set", *_TYPES) else None
    if isinstance(value, Items):
        return False if kind.name in ("dict", *_TYPES) else (True if kind.name in ("list", "tuple") else None)
    return None


def _vars(interpreter: Evaluator, record: Record) -> Value:
    holder = record.value(0, "obj")
    if not isinstance(holder, Object):
        return Unknown(record.node)
    interpreter.walk.step(bounds.cost(items=len(holder.attributes)))
    found = Table(record.node, dict(holder.attributes), open=holder.open or not holder.parsed)
    if not found.open:
        for name in interpreter.walk.defaults.names(holder.library) - found.items.keys():
            default = interpreter.field_default(holder, name, record.node)
            if default is not None:
                found.items[name] = default
    return found


def _members(interpreter: Evaluator, record: Record) -> Value:
    """``inspect.getmembers(module)``, by which llama-recipes finds the config of a data set that a flag names."""
    module = record.value(0, "object")
    names = interpreter.exported(module.name) if isinstance(module, Ref) else {}
    interpreter.walk.step(bounds.cost(items=len(names)))
    pairs: list[Value] = [Items(record.node, [Const(record.node, name), value]) for name, value in names.items()]
    return Items(record.node, pairs) if pairs else Unknown(record.node)


def _signature(interpreter: Evaluator, record: Record) -> Value:
    """``inspect.signature(TrainingArguments.__init__)``, by which scripts leave out what their version does not take:
    the fields that any studied version has, and perhaps others."""
    asked = record.value(0, "obj")
    name = asked.name.removesuffix(".__init__") if isinstance(asked, Ref) else ""
    names = sorted(interpreter.walk.defaults.names(name)) if name else []
    interpreter.walk.step(bounds.cost(items=len(names)))
    fields: dict[Any, Value] = {each: Unknown(record.node) for each in names}
    return Object(record.node, "inspect.Signature", attributes={"parameters": Table(record.node, fields, open=True)})


def _environment(interpreter: Evaluator, record: Record) -> Value:
    name = record.value(0, "key")
    default = record.value(1, "default") or Const(record.node, None)
    if not isinstance(name, Const):
        return Unknown(record.node)
    return interpreter.environment(str(name.value), default, record.node)


def _join_path(interpreter: Evaluator, record: Record) -> Value:
    parts = [value.value for value in record.positional if isinstance(value, Const) and isinstance(value.value, str)]
    if parts and len(parts) == len(record.positional):
        origin = record.positional[0].origin if len(parts) == 1 else record.node
        bounds.fits(sum(map(len, parts)) + len(parts))
        return Const(origin, posixpath.join(*parts))
    return Unknown(record.node)


def _path(part: Callable[[str], str]) -> Handler:
    def handle(interpreter: Evaluator, record: Record) -> Value:
        value = record.value(0, "path", "p")
        known = isinstance(value, Const) and isinstance(value.value, str)
        return Const(record.node, part(value.value)) if known and isinstance(value, Const) else Unknown(record.node)

    return handle


def _constant(value: Any) -> Handler:
    return lambda interpreter, record: Const(record.node, value)


OF_UNSLOTH = ("unsloth.is_bfloat16_supported", "unsloth.is_bf16_supported")
"""What asks whether the GPU itself has bf16 (``unsloth/models/_utils.py``): torch's answer with emulation apart."""


def _bf16(interpreter: Evaluator, record: Record) -> Value:
    """``is_bf16_supported()``: true where a GPU only emulates it as well (torch/cuda/__init__.py since torch 2.1); with
    ``including_emulation=False`` where its compute capability is 8.0 or above."""
    if not record.passed:
        return Const(record.node, True)
    counts, own = record.value(0, "including_emulation"), interpreter.walk.capability
    if own is None or not isinstance(counts, Const):
        return Unknown(record.node)
    return Const(record.node, bool(counts.value) or own >= (8, 0))


def _capability(interpreter: Evaluator, record: Record) -> Value:
    """``torch.cuda.get_device_capability()``: the same for each of the GPUs, which are of one kind."""
    own = interpreter.walk.capability
    return Items(record.node, [Const(record.node, part) for part in own]) if own is not None else Unknown(record.node)


def _properties(interpreter: Evaluator, record: Record) -> Value:
    """``torch.cuda.get_device_properties(0)``, whose ``major`` and ``minor`` are the compute capability."""
    own = interpreter.walk.capability
    if own is None:
        return Unknown(record.node)
    parts: dict[str, Value] = {
        name: Const(record.node, part) for name, part in zip(("major", "minor"), own, strict=True)
    }
    return Object(record.node, record.function, record, attributes=parts, open=True)


def _unknown(interpreter: Evaluator, record: Record) -> Value:
    return Unknown(record.node)


def _first(interpreter: Evaluator, record: Record) -> Value:
    return record.value(0) or Unknown(record.node)


def _copied(interpreter: Evaluator, record: Record) -> Value:
    """A config is copied to be changed, and the first stays as it is; the copy of anything else is like the first."""
    first = _first(interpreter, record)
    if isinstance(first, Object) and first.kind.endswith("Config.from_pretrained"):
        return replace(first, attributes=dict(first.attributes))
    return first


def _namespace(interpreter: Evaluator, record: Record) -> Value:
    attributes = {passed.name: passed.value for passed in record.passed if passed.name is not None}
    made = Object(record.node, record.function, record, attributes=attributes, parsed=True, open=record.spreads)
    if any(argument.star == "**" for argument in record.node.args):
        interpreter.walk.namespaces.append(made)
    return made


def _device(interpreter: Evaluator, record: Record) -> Value:
    return Object(record.node, "torch.device", None, attributes={"type": record.value(0) or Unknown(record.node)})


def _is_initialized(interpreter: Evaluator, record: Record) -> Value:
    """Whether there is a process group: after a call that makes one; never where python starts a process alone."""
    made = interpreter.walk.initializers
    if any(known.taken is True for known in made):
        return Const(record.node, True)
    alone = interpreter.walk.environment.get("WORLD_SIZE") == ""
    return Const(record.node, False) if alone or not made else Unknown(record.node)


def _eval(interpreter: Evaluator, record: Record) -> Value:
    """``eval("torch.float16")``."""
    text = record.value(0)
    known = text.value if isinstance(text, Const) else None
    named = isinstance(known, str) and known.startswith("torch.") and known.replace(".", "").isalnum()
    return Ref(text.origin if text is not None else None, str(known)) if named else Unknown(record.node)


def _exec(interpreter: Evaluator, record: Record) -> Value:
    """``exec(open("config.py").read())``; an unknown file is taken for one that the command line names."""
    path = config_files.path_of(record.value(0))
    named = [word for word in interpreter.walk.positional if word.endswith(".py")] if path is None else [path.value]
    for name in named:
        interpreter.run_file(str(name))
    return Const(record.node, None)


def _globals(interpreter: Evaluator, record: Record) -> Value:
    names = interpreter.globals.names
    interpreter.walk.step(bounds.cost(items=len(names)))
    return Table(record.node, dict(names))


def _is_file(interpreter: Evaluator, record: Record) -> Value:
    """Whether a config file is there: known only where it is at hand."""
    path = record.value(0)
    known = path.value if isinstance(path, Const) else None
    opener = interpreter.walk.open_data
    kinds = {".json": Kind.JSON, ".yaml": Kind.YAML, ".yml": Kind.YAML}
    kind = kinds.get(posixpath.splitext(known)[1]) if isinstance(known, str) else None
    if kind is None or opener is None or opener(str(known), kind) is None:
        return Unknown(record.node)
    return Const(record.node, True)


def _rank(variable: str) -> Handler:
    """``get_rank()`` and ``get_world_size()``, which the launcher's environment decides."""

    def handle(interpreter: Evaluator, record: Record) -> Value:
        found = _scalar_of(interpreter.environment(variable, None, record.node))
        return found if found is not None else Unknown(record.node)

    return handle


def _scalar_of(value: Value) -> Value | None:
    known = value.value if isinstance(value, Const) else None
    number = natural(known) if isinstance(known, str) else None
    return Const(value.origin, number) if number is not None else None


def _reader(kind: Kind) -> Handler:
    return lambda interpreter, record: config_files.read(interpreter, record, kind)


GO_THROUGH = frozenset({
    "any", "all", "max", "min", "list", "tuple", "set", "sorted", "dict", "int", "float", "str", "isinstance",
    "pathlib.Path", "os.path.join", "os.path.dirname", "os.path.basename",
})  # fmt: skip
"""Those that go through the whole of what they are handed."""


def _downloaded(interpreter: Evaluator, record: Record) -> Value:
    """The folder of a model that was downloaded: its name says as much (huggingface_hub 0.34, ``snapshot_download``;
    modelscope 1.28, the same)."""
    return record.value(0, "repo_id", "model_id") or Unknown(record.node)


FUNCTIONS: dict[str, Handler] = {
    **omegaconf.FUNCTIONS,
    **dict.fromkeys(("json.load", "json.loads", "hjson.load", "json5.load", "commentjson.load"), _reader(Kind.JSON)),
    **dict.fromkeys(("yaml.safe_load", "yaml.load", "yaml.full_load", "yaml.unsafe_load"), _reader(Kind.YAML)),
    **dict.fromkeys(("easydict.EasyDict", "munch.munchify", "munch.Munch", "addict.Dict", "box.Box"), _first),
    **dict.fromkeys(
        (
            "huggingface_hub.snapshot_download",
            "modelscope.snapshot_download",
            "modelscope.hub.snapshot_download.snapshot_download",
        ),
        _downloaded,
    ),
    "pathlib.Path": _join_path,
    "os.path.dirname": _path(posixpath.dirname),
    "os.path.basename": _path(posixpath.basename),
    "os.path.realpath": _first,
    "int": _scalar(int),
    "float": _scalar(float),
    "str": _scalar(str),
    "bool": _bool,
    "len": _len,
    "any": _quantified(True),
    "all": _quantified(False),
    "type": _type,
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
    "inspect.getmembers": _members,
    "inspect.signature": _signature,
    "eval": _eval,
    "exec": _exec,
    "globals": _globals,
    "isinstance": _isinstance,
    "print": _constant(None),
    "dataclasses.asdict": _vars,
    "os.environ.get": _environment,
    "os.getenv": _environment,
    "os.path.join": _join_path,
    "os.path.expanduser": _first,
    "os.path.isfile": _is_file,
    "os.path.exists": _is_file,
    "os.path.abspath": _first,
    "collections.namedtuple": named_tuples.made,
    "copy.copy": _copied,
    "copy.deepcopy": _copied,
    "typing.cast": lambda interpreter, record: record.value(1) or Unknown(record.node),
    "argparse.Namespace": _namespace,
    "types.SimpleNamespace": _namespace,
    "torch.cuda.is_available": _constant(True),
    **dict.fromkeys(("torch.cuda.is_bf16_supported", *OF_UNSLOTH), _bf16),
    "torch.cuda.get_device_capability": _capability,
    "torch.cuda.get_device_properties": _properties,
    "torch.backends.mps.is_available": _constant(False),
    "torch.xpu.is_available": _constant(False),
    "torch.npu.is_available": _constant(False),
    "transformers.utils.is_torch_npu_available": _constant(False),
    "transformers.utils.is_torch_xpu_available": _constant(False),
    "accelerate.utils.is_npu_available": _constant(False),
    "accelerate.utils.is_xpu_available": _constant(False),
    "torch.device": _device,
    "torch.distributed.is_initialized": _is_initialized,
    "torch.distributed.get_rank": _rank("RANK"),
    "torch.distributed.get_world_size": _rank("WORLD_SIZE"),
}
