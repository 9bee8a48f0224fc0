from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.checks.helpers.fixes import spliced
from lintfit.checks.helpers.wording import gib
from lintfit.documents import python_edits
from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.python_walk import walk
from lintfit.findings.model import Applicability, Fix
from lintfit.memory.engines.model_states import states
from lintfit.memory.engines.resuming import COPIES_NOT
from lintfit.memory.spec import DTYPE_BYTES
from lintfit.memory.versions import since
from lintfit.sources.script.reading import loops
from lintfit.sources.script.reading.kept_checkpoints import bound_above, has_states, kept
from lintfit.sources.script.source import ScriptSource

_LOADER = re.compile(r"net|(?:^|_)(?:model|module|transformer|policy|actor|llm|optim)", re.IGNORECASE)
"""Names of what takes a checkpoint: a model, or its optimizer."""
_PART = re.compile(r"(model|net|state_?dict|module|optim)", re.IGNORECASE)
"""Keys of a checkpoint under which weights or an optimizer's states stand."""
_WORTH_IT = ("torch.load(", "load_state_dict(")
_ELSEWHERE = ("set_default_device", "torch_xla")
"""What a script says of where its tensors are: a TPU, or a device of its own choice."""


def _loads(name: str) -> bool:
    """Whether a call of this name loads a checkpoint: ``model.load_state_dict``."""
    owner, _, method = name.rpartition(".")
    return method == "load_state_dict" and _LOADER.search(owner.rpartition(".")[2]) is not None


def check_file(context: FileContext) -> Iterator[Report]:
    source = context.source
    if not isinstance(source, ScriptSource) or not source.facts.trains or source.document.module is None:
        return
    document = source.document
    if any(word in document.text for word in _ELSEWHERE) or not all(word in document.text for word in _WORTH_IT):
        return
    assert document.module is not None
    reported: set[int] = set()
    for node in walk(document.module):
        if isinstance(node, cst.Call) and _loads(loops.name_of(node.func) or "") and node.args:
            load = _loaded(document, node.args[0].value, node)
            if load is not None and id(load) not in reported:
                reported.add(id(load))
                yield _report(context, document, load, "optim" in (loops.name_of(node.func) or "").lower())
    for name, load in kept(document):
        if id(load) not in reported:
            yield _report_kept(context, document, name, load)


def _report_kept(context: FileContext, document: PythonDocument, name: str, load: cst.Call) -> Report:
    spec = next((run.spec for run in context.runs if run.spec is not None), None)
    copied = spec is not None and not since(spec, "torch", COPIES_NOT)
    with_states = copied and has_states(document, name)
    what = "weights and states" if with_states else "weights"
    size = None
    if spec is not None and spec.method == "full":
        size = spec.facts.parameters * DTYPE_BYTES[spec.weights_dtype]
        size += states(spec).forward.get("optimizer_states", 0) if with_states else 0
    cost = f"{gib(size)} of {what}" if size is not None else what
    return Report(
        loops.place(document, load),
        f"{name} keeps {cost} on the GPU for the whole run: torch.load has put them there beside the model's own",
        fix=_fix(document, load),
        help=f'map_location="cpu", or del {name} once it is loaded',
    )


def _loaded(document: PythonDocument, handed: cst.BaseExpression, user: cst.Call) -> cst.Call | None:
    """The ``torch.load`` without a place that a state dict comes from: handed over, or by the name bound just above."""
    handed = _whole(handed)
    if isinstance(handed, cst.Name):
        return _unplaced(bound_above(document, handed.value, user))
    return _unplaced(handed)


def _whole(handed: cst.BaseExpression) -> cst.BaseExpression:
    """The checkpoint that the state dict is a part of (``checkpoint["model"]``), or the state dict itself."""
    if not isinstance(handed, cst.Subscript) or len(handed.slice) != 1:
        return handed
    match handed.slice[0].slice:
        case cst.Index(value=cst.SimpleString(value=part)) if _PART.search(part):
            return handed.value
    return handed


def _unplaced(value: cst.BaseExpression | None) -> cst.Call | None:
    if not isinstance(value, cst.Call) or loops.name_of(value.func) != "torch.load" or not value.args:
        return None
    names = [argument.keyword.value if argument.keyword is not None else "" for argument in value.args]
    placed = any(name not in ("", "weights_only", "f") for name in names) or names.count("") != 1
    return value if not placed and not any(argument.star for argument in value.args) else None


def _report(context: FileContext, document: PythonDocument, load: cst.Call, states: bool) -> Report:
    spec = next((run.spec for run in context.runs if run.spec is not None), None)
    size = None
    whole = spec is not None and spec.method != "lora"  # else the file may hold the adapters alone
    if spec is not None and whole and not states:
        size = spec.facts.parameters * DTYPE_BYTES[spec.weights_dtype]
    what = "a second copy of the optimizer's states" if states else "a second copy"
    cost = f"{what} ({gib(size)})" if size is not None else what
    return Report(
        loops.place(document, load),
        f"torch.load without map_location puts {cost} on the GPU that the checkpoint was saved from, "
        "and that of every process on the same one",
        fix=_fix(document, load),
        help='map_location="cpu"',
    )


def _fix(document: PythonDocument, load: cst.Call) -> Fix | None:
    if not document.editable:
        return None
    edits = python_edits.set_keyword(document, load, "map_location", '"cpu"')
    return spliced(document, 'load it on the host (map_location="cpu")', Applicability.SAFE, edits)
