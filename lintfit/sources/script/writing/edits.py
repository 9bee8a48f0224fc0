"""The edits that a script's settings need, in the script itself or on its launch line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import libcst as cst

from lintfit.documents import python_edits
from lintfit.documents.model import Edit, FileEdit
from lintfit.documents.python_walk import walk
from lintfit.errors import CannotWrite
from lintfit.settings.model import UNKNOWN
from lintfit.sources import data_writer
from lintfit.sources.accelerate import SHARDING_STRATEGIES
from lintfit.sources.launchers.flags import Flag
from lintfit.sources.recipes.beside import beside_relatives
from lintfit.sources.script.interpreter.expressions import dotted
from lintfit.sources.script.interpreter.models import is_arguments
from lintfit.sources.script.interpreter.origins import Datum
from lintfit.sources.script.interpreter.parsers import Parser, assign, fill
from lintfit.sources.script.interpreter.values import Const, Object, Record, Table, Value, plain
from lintfit.sources.script.reading.collector import sure_none
from lintfit.sources.script.reading.engines import BY_PLUGIN
from lintfit.sources.script.reading.fabric import BY_STRATEGY
from lintfit.sources.script.reading.lengths import in_generation
from lintfit.sources.script.writing.callers import for_one_caller
from lintfit.sources.script.writing.file_edits import Edits, Script, edited, remove_statement
from lintfit.sources.script.writing.opened_input import opening, opens_input, opens_input_elsewhere
from lintfit.sources.script.writing.spread import data_of, dict_of, keywords_of
from lintfit.sources.training_arguments import TRAINING
from lintfit.sources.training_words import CHECKPOINTING, TORCH

if TYPE_CHECKING:
    from lintfit.documents.python_reader import PythonDocument
    from lintfit.settings.values import Fsdp


def _code(value: Any) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_code(key)}: {_code(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_code, value)) + "]"
    return repr(value)


def _string(node: cst.BaseExpression) -> Any:
    """What a plain string says; None of anything else."""
    return node.raw_value if isinstance(node, cst.SimpleString) else None


class Writer:
    """Makes the edits for one source."""

    def __init__(self, source: Script) -> None:
        self.source = source
        self.calls = source.reading.calls
        self.found = source.reading.found

    def setting(self, name: str, value: Any) -> Edits | None:
        """A field of the arguments object; without one, the argument of the hand-written loop that states it."""
        if self.found.arguments is not None:
            return self.argument(TRAINING[name], value)
        home = self.source.reading.homes.get(name)
        if home is None or home.record is None:
            if name == "gradient_accumulation_steps" and self.found.accelerator is not None:
                return self.keyword(self.found.accelerator, name, _code(value))
            return None
        passed = next((p for p in home.record.passed if p.value.origin is home.origin), None)
        node = passed.node.value if passed is not None else None
        return self.replace_value(Value(home.origin), node, value, _code(value))

    def length(self, value: int) -> Edits | None:
        """How long a sequence may be, where a file states it; a length that is only a guess is nobody's to change."""
        setting, home = self.source.settings.get("seq_len"), self.source.reading.homes.get("seq_len")
        if setting is None or setting.provenance.kind != "file" or home is None:
            return None
        if home.record is not None and in_generation(self.source.reading, home.record):
            raise CannotWrite("the length stands where the script generates, not where it tokenizes its samples")
        passed = home.record.passed if home.record is not None else ()
        node = next((p.node.value for p in passed if p.value.origin is home.origin and p.node.star == ""), None)
        return self.replace_value(Value(home.origin), node, value, _code(value))

    def zero(self, name: str, value: Any) -> Edits | None:
        """A setting of ZeRO that the script itself makes: in a plugin, a strategy, or a DeepSpeed dict."""
        setting = self.source.settings.get(name)
        stated = setting is not None and setting.provenance.kind == "file"
        if setting is not None and setting.value == value:
            return ()
        if not stated and value == "none":
            return ()
        plugin = self.source.reading.plugin
        keyword = _keyword(plugin, name)
        if plugin is not None and keyword is not None and "hf_ds_config" not in {p.name for p in plugin.passed}:
            code = (
                _code(value != "none") if plugin.name == "DeepSpeedStrategy" and name != "zero_stage" else _code(value)
            )
            passed = next((p for p in plugin.passed if p.name == keyword), None)
            if passed is None:
                return None if plugin.spreads else self.keyword(plugin, keyword, code)
            return self.replace_value(passed.value, passed.node.value if passed.node.star == "" else None, value, code)
        home = self.source.reading.homes.get(name)
        if stated and home is not None:
            written = self.replace_value(Value(home.origin), None, value, _code(value))
            return written if written is not None or value != "cpu" else self._offload_switch()
        return self._into_dict(name, value)

    def _offload_switch(self) -> Edits | None:
        """The one field of the command line that asks for offload, where the script works the device out from it.

        DeepSpeed-Chat's ``--offload``, which some of its copies take and then refuse with an assertion.
        """
        off = self.parsed_fields(_OFFLOADS, lambda value: value is False)
        if len(off) != 1:
            return None
        ((made, name),) = off.values()
        for document in self.calls.documents:
            nodes = walk(document.module) if document.module is not None and "assert" in document.text else ()
            if any(_speaks_of(node, name) for node in nodes if isinstance(node, cst.Assert)):
                raise CannotWrite(f"an assertion of the script speaks of --{name}")
        return self.for_this_run(made, name, True)

    def parsed_fields(self, names: Iterable[str], wanted: Callable[[Any], bool]) -> dict[str, tuple[Object, str]]:
        """Fields of the command line with one of these names and such a value, each once though a module may run
        twice."""
        chosen = set(names)
        return {
            name: (made, name)
            for made in self.source.walk.parsed
            for name, value in made.attributes.items()
            if name in chosen and isinstance(value, Const) and wanted(value.value)
        }

    def for_this_run(self, made: Object, name: str, value: Any) -> Edits | None:
        """A field's value for this run alone: a default is everybody's, a flag of the launch line is not."""
        stated = None if isinstance(made.attributes[name].origin, Flag) else self.source.new_flag(name, value)
        return stated or self.field(made, (name,), value)

    def zero_size(self, key: str, value: int) -> Edits | None:
        """A size of ``zero_optimization`` in a DeepSpeed dict of the script; None where there is no such dict."""
        table = self.source.reading.zero
        stated = table.items.get(key) if table is not None and not table.open else None
        if stated is not None:
            return self.replace_value(stated, None, value, _code(value))
        return self._entry(table, key, value)

    def _into_dict(self, name: str, value: Any) -> Edits | None:
        """A key that the ``zero_optimization`` of a DeepSpeed dict lacks."""
        key, entry = (name, {"device": value}) if name != "zero_stage" else ("stage", value)
        return self._entry(self.source.reading.zero, key, entry)

    def _entry(self, table: Table | None, key: str, entry: Any) -> Edits | None:
        """A new entry of a dict, of the script or of a file that it reads."""
        if table is None or table.open or key in table.items:
            return None
        if isinstance(table.origin, Datum):
            return data_writer.edits(table.origin.document, {(*table.origin.path, key): entry})
        if not isinstance(table.origin, cst.Dict):
            return None
        return edited(self.calls, table.origin, python_edits.add_entry, _code(key), json.dumps(entry))

    def argument(self, names: Sequence[str], value: Any) -> Edits | None:
        """A field of the arguments object: where its value comes from now, else added."""
        return self.field(self.found.arguments, names, value) if self.found.arguments is not None else None

    def field(self, made: Object, names: Sequence[str], value: Any) -> Edits | None:
        """The same of any object that a parser fills or the script constructs."""
        name = next((candidate for candidate in names if candidate in made.attributes), names[0])
        current = made.attributes.get(name)
        if current is not None:
            if _equal(plain(current), value):
                return ()
            if (written := self._existing(made, name, current, value)) is not None:
                return written
        return self._add(made, name, value)

    def _existing(self, made: Object, name: str, current: Value, value: Any) -> Edits | None:
        node = None
        if made.call is not None and not made.parsed:
            passed = next((p for p in made.call.passed if p.name == name and p.value is current), None)
            node = passed.node.value if passed is not None and passed.node.star == "" else None
        return self.replace_value(current, node, value, _code(value))

    def fsdp(self, value: Fsdp | None) -> Edits | None:
        """The trainer's ``fsdp``: sharding and offload in its words beside those that are there; None takes it away."""
        made = self.found.arguments
        current = made.attributes.get("fsdp") if made is not None else None
        if made is None or value is None:
            return self._without_fsdp(made) if made is not None else None
        known = plain(current) if current is not None else None
        words = known.split() if isinstance(known, str) else known if isinstance(known, list) else []
        kept = [word for word in words if word != "offload" and word.upper() not in SHARDING_STRATEGIES]
        wanted = [value.strategy.lower(), *(kept or ["auto_wrap"]), *(["offload"] if value.cpu_offload else [])]
        return self.argument(("fsdp",), wanted if isinstance(known, list) else " ".join(wanted))

    def _without_fsdp(self, made: Object) -> Edits | None:
        """Take the next of the arguments about FSDP away; None where it is no keyword."""
        call = made.call
        for name, current in made.attributes.items():
            if not name.startswith("fsdp") or not plain(current):
                continue
            if call is None or made.parsed or call.keyword(name) is None or call.node.args[-1].star == "**":
                return None
            return edited(self.calls, call.node, python_edits.remove_keyword, name)
        return ()

    def replace_value(self, current: Value, node: cst.BaseExpression | None, value: Any, code: str) -> Edits | None:
        """Change a value at its origin; ``node`` is the expression that stands for it in a call, where there is one.

        A literal is replaced where it is written, anything computed where it is used.
        """
        origin = current.origin
        if isinstance(origin, Flag):
            return self.write_flag(origin, value)
        if isinstance(origin, Datum):
            return data_writer.edits(origin.document, {origin.path: value})
        if isinstance(origin, cst.CSTNode) and (added := self._flag_for(origin, value)) is not None:
            return added
        if isinstance(origin, cst.CSTNode) and self._is_plain(origin):
            return self.replace(origin, code)
        if isinstance(node, cst.Attribute) and (made := self._holder(node.attr.value, current)) is not None:
            return self._by_its_flag(made, node.attr.value, current, value)
        if node is not None:
            return self.replace(node, code)
        return None

    def _holder(self, name: str, current: Value) -> Object | None:
        """What the command line filled and the script has gone on to put a value of its own into, under this name."""
        return next((made for made in self.source.walk.parsed if made.attributes.get(name) is current), None)

    def _by_its_flag(self, made: Object, name: str, current: Value, value: Any) -> Edits | None:
        """The flag of a number that the script divides among ranks or micro-batches before it uses it.

        Raises CannotWrite where it does anything else with it: with a number in the variable's place the flag would not
        count any more.
        """
        parser = made.call.receiver if made.call is not None else None
        entry = parser.fields.get(name) if isinstance(parser, Parser) else None
        now = plain(current)
        flag = assign([entry], self.source.walk.flags).get(name) if entry is not None else None
        given = plain(fill(entry, flag, assume=True)) if entry is not None else None
        if not all(isinstance(each, int) for each in (value, now, given)) or now < 1 or given % now:
            raise CannotWrite(f"the script works {name} out of its flags")
        wanted = value * (given // now)
        return self.write_flag(flag[0], wanted) if flag is not None else self.source.new_flag(name, wanted)

    def write_flag(self, flag: Flag, value: Any) -> Edits | None:
        """Give a flag of the launch line another value; a switch that is to be off is deleted."""
        if flag.name in self.source.walk.switches:
            return (FileEdit(flag.document.path, Edit(flag.place.span, ""), flag.document),) if value is False else None
        text = str(value)
        if flag.write is not None:
            return flag.write(text)
        if flag.value_place is not None:
            return (FileEdit(flag.document.path, Edit(flag.value_place.span, text), flag.document),)
        return None

    def _is_plain(self, node: cst.CSTNode) -> bool:
        """Whether an origin is a literal on its own: an argument, an assignment, a default, an item of a dict."""
        literal = isinstance(node, cst.Integer | cst.Float | cst.SimpleString | cst.UnaryOperation) or (
            isinstance(node, cst.Name) and node.value in ("True", "False", "None")
        )
        if not literal and not isinstance(node, cst.Attribute):
            return False
        try:
            document = self.calls.document_of(node)
        except KeyError:
            return False
        parent = document.parent(node)
        holders = cst.Arg | cst.Assign | cst.AnnAssign | cst.Param | cst.DictElement
        return isinstance(parent, holders)

    def _is_assigned(self, node: cst.CSTNode) -> bool:
        """Whether a value is put into the arguments when they are parsed already (``args.optim = "…"``)."""
        try:
            statement = self.calls.document_of(node).parent(node)
        except KeyError:
            return False
        return isinstance(statement, cst.Assign) and any(isinstance(t.target, cst.Attribute) for t in statement.targets)

    def _flag_for(self, node: cst.CSTNode, value: Any) -> Edits | None:
        """A new flag on the launch line for a field of the command line that has its default: that is everybody's."""
        if self._is_assigned(node):
            return None
        for made in self.source.walk.parsed:
            for name, current in made.attributes.items():
                if current.origin is node:
                    return self.source.new_flag(name, value)
        return None

    def _add(self, made: Object, name: str, value: Any) -> Edits | None:
        """State a field that nobody states: a keyword where the object is constructed, else a flag."""
        if made.home is not None:
            beside = beside_relatives(made.home.document, name, value) if not made.home.path else None
            return beside or data_writer.edits(made.home.document, {(*made.home.path, name): value})
        if made.parsed:
            return self.source.new_flag(name, value)
        if made.call is None or made.call.spreads:
            return None
        if _hands_on_all(made.call):
            return self.source.new_flag(name, value)
        if made.cls is not None and not is_arguments(made.library) and name not in made.attributes:
            return None
        if (section := data_of(made.call)) is not None:
            return data_writer.edits(section[0], {(*section[1], name): value})
        if (given := dict_of(self.calls, made.call)) is not None:
            key = python_edits.quote(self.calls.document_of(given), name)
            return edited(self.calls, given, python_edits.add_entry, key, _code(value))
        return self.keyword(made.call, name, _code(value))

    def keyword(self, record: Record, name: str, code: str) -> Edits:
        return edited(self.calls, record.node, python_edits.set_keyword, name, code)

    def replace(self, node: cst.CSTNode, code: str) -> Edits:
        return edited(self.calls, node, python_edits.replace, code)

    # -- the model -------------------------------------------------------------------------------------------

    def load_argument(self, name: str, value: Any, code: str | None = None) -> Edits | None:
        """An argument of the call that loads the trained model."""
        load = self.found.trained_load
        if load is None or load.name not in ("from_pretrained", "from_config"):
            return None
        passed = next((p for p in load.passed if p.name == name), None)
        text = code if code is not None else _code(value)
        if passed is None and not load.spreads and (made := keywords_of(self.calls, load)) is not None:
            return edited(self.calls, made, python_edits.set_keyword, name, text)
        if passed is None:
            return None if load.spreads else self.keyword(load, name, text)
        node = passed.node.value if passed.node.star == "" else None
        if isinstance(node, cst.IfExp):
            return self._by_its_switch(name, TORCH.get(value, value), node)
        if isinstance(passed.value.origin, cst.SimpleString):
            text = _code(TORCH.get(value, value))
        return self.replace_value(passed.value, node, TORCH.get(value, value), text)

    def _by_its_switch(self, name: str, value: Any, choice: cst.IfExp) -> Edits | None:
        """An argument that one field of the command line decides (``"eager" if not args.flash else …``), by that."""
        test, on = choice.test, True
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            test, on = test.expression, False
        sides = {_string(choice.body): on, _string(choice.orelse): not on}
        switch = dotted(test).rpartition(".")[2] if isinstance(test, cst.Attribute) else ""
        fields = self.parsed_fields((switch,), lambda value: isinstance(value, bool))
        if value not in sides or not fields:
            test_code = cst.Module(()).code_for_node(choice.test)
            raise CannotWrite(f"{test_code} decides {name} here, for other launches as well")
        made, _ = fields[switch]
        return self.for_this_run(made, switch, sides[value])

    def weights(self, value: str) -> Edits | None:
        """The dtype that the model is loaded in; casts to another one go."""
        load = self.found.trained_load
        if load is None:
            return self._weights_by_name(value)
        name = next((n for n in ("dtype", "torch_dtype") if load.keyword(n) is not None), None)
        if name is None:
            known = self.source.reading.version("transformers")  # 5 still takes the old name, 4.55 not yet the new one
            name = "dtype" if known is not None and known >= (5,) else "torch_dtype"
        setting = self.source.settings.get("weights_dtype")
        cast = any(record.taken is True and not record.guarded for record, _ in self.found.casts)
        loaded = setting.overrode[-1] if cast and setting is not None and setting.overrode else setting
        edits = self.drop_casts(*(other for other in TORCH if other != value))
        if loaded is not None and loaded.value == value and loaded.provenance.kind == "file":
            return edits
        written = self.load_argument(name, value, self.torch_name(self.calls.document_of(load.node), TORCH[value]))
        return None if written is None else (*edits, *written)

    def _weights_by_name(self, value: str) -> Edits | None:
        """TRL's own loading: where its dtype comes from, else ``model_init_kwargs`` of its config."""
        home = self.source.reading.homes.get("weights_dtype")
        if home is not None:
            node = home.origin if isinstance(home.origin, cst.Attribute) else None
            return self.replace_value(Value(home.origin), node, TORCH[value], _code(TORCH[value]))
        return self.init_argument("dtype", _code(TORCH[value]))

    def init_argument(self, name: str, code: str) -> Edits | None:
        """An argument by which TRL loads a model that is given by name: one of its config's ``model_init_kwargs``."""
        made = self.found.arguments
        if made is None or made.call is None or made.parsed:
            return None
        given = made.attributes.get("model_init_kwargs")
        if given is None or sure_none(given):
            return self.keyword(made.call, "model_init_kwargs", f'{{"{name}": {code}}}')
        if not isinstance(given, Table) or given.open or name in given.items or not isinstance(given.origin, cst.Dict):
            return None
        return edited(self.calls, given.origin, python_edits.add_entry, _code(name), code)

    def torch_name(self, document: PythonDocument, name: str) -> str:
        """``torch.bfloat16`` where a module imports torch, else its name as a string."""
        module = document.module
        for line in module.body if module is not None else ():
            if isinstance(line, cst.SimpleStatementLine):
                for small in line.body:
                    if isinstance(small, cst.Import):
                        for alias in small.names:
                            if alias.evaluated_name == "torch":
                                return f"{alias.evaluated_alias or 'torch'}.{name}"
        return python_edits.quote(document, name)

    def drop_casts(self, *targets: str) -> Edits:
        """Delete the casts of the whole model to these dtypes that this run makes."""
        edits: list[FileEdit] = []
        seen: set[int] = set()
        for record, target in self.found.casts:
            if target in targets and record.taken is True and not record.guarded and id(record.node) not in seen:
                seen.add(id(record.node))
                edits.extend(remove_statement(self.source, record))
        return tuple(edits)

    def checkpointing(self, value: Any) -> Edits | None:
        """Gradient checkpointing: the arguments' field, else a call on the model after it is loaded."""
        if self.found.arguments is not None:
            return self._with_opened_input(self.argument(self._checkpointing_names(), value), value)
        off = self.parsed_fields(_CHECKPOINTS, lambda given: given is False) if value is True else {}
        if len(off) == 1:
            edits = self.for_this_run(*next(iter(off.values())), True)
            # What the switch turns on may open the input itself.
            return edits if opens_input_elsewhere(self.source) else self._with_opened_input(edits, True)
        load = self.found.trained_load
        if value is not True or load is None or load.statement is None or load.assigned_to is None:
            return None
        line = load.statement
        if len(line.body) != 1 or not self.calls.is_written(line):
            return None
        for_one_caller(self.calls, line)
        code = f"{load.assigned_to}.gradient_checkpointing_enable()"
        if opens_input(self.source):
            code += f"\n{load.assigned_to}.enable_input_require_grads()"
        return edited(self.calls, line, python_edits.insert_statement_after, code)

    def _with_opened_input(self, edits: Edits | None, value: Any) -> Edits | None:
        """A switch with what the script's own adapters need of it, which only a wrap behind the switch sees to itself.

        PEFT opens the input where the base checkpoints when it is wrapped (``PeftModel.__init__``); a trainer switches
        checkpointing on later.
        """
        return edits if edits is None or value is not True else (*edits, *opening(self.source))

    def _checkpointing_names(self) -> tuple[str, ...]:
        """``gradient_checkpointing`` in every version below 6; its new name only where it is used already."""
        made = self.found.arguments
        if made is not None and CHECKPOINTING[0] in made.attributes:
            return CHECKPOINTING
        return tuple(reversed(CHECKPOINTING))


_CHECKPOINTS = frozenset(
    {
        "activation_checkpointing", "enable_gradient_checkpointing", "grad_checkpoint", "grad_checkpointing",
        "gradient_checkpoint", "gradient_checkpointing", "use_gradient_checkpointing",
    }
)  # fmt: skip
"""Fields by which scripts ask for gradient checkpointing."""
_OFFLOADS = frozenset({"adam_offload", "cpu_offload", "offload", "offload_optimizer", "optimizer_offload"})
"""Fields by which scripts ask for an optimizer on the host."""


def _speaks_of(node: cst.CSTNode, name: str) -> bool:
    return any(isinstance(part, cst.Attribute) and part.attr.value == name for part in walk(node))


def _keyword(plugin: Record | None, name: str) -> str | None:
    if plugin is None:
        return None
    return (BY_STRATEGY if plugin.name == "DeepSpeedStrategy" else BY_PLUGIN).get(name)


def _equal(left: Any, right: Any) -> bool:
    return left is not UNKNOWN and type(left) is type(right) and bool(left == right)


def _hands_on_all(call: Record) -> bool:
    """Whether a call spreads all fields of another object (``SFTConfig(**args.to_dict())``), of which it cannot be
    given one more by its name."""
    spread = (passed.node.value for passed in call.passed if passed.node.star == "**")
    return any(isinstance(each, cst.Call) and dotted(each.func).rpartition(".")[2] in _ALL_FIELDS for each in spread)


_ALL_FIELDS = frozenset({"to_dict", "asdict", "vars"})
