from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.readers import one_load
from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.python_walk import walk
from lintfit.findings.model import Severity
from lintfit.run.model import Run
from lintfit.sources.launchers.launch import Launch
from lintfit.sources.script.model import Call
from lintfit.sources.script.reading.loops import around
from lintfit.sources.script.source import ScriptSource

_WRAPPERS = ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel")
_OWN_CLASS = "transformers.PreTrainedModel.from_pretrained"
"""A load by a class of the script's own, of which only the base class is known."""
_WHY = "it copies the model in every step and gathers all logits on the first GPU"


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.script is None or not run.script.facts.trains:
        return
    yield from _wrapped(run, run.script)
    yield from _by_the_trainer(run)


def _wrapped(run: Run, script: ScriptSource) -> Iterator[Report]:
    """``nn.DataParallel(model)`` in the script, where there is no other way to use several GPUs in it."""
    if script.calls("DistributedDataParallel", "DDP", "initialize", "prepare", "init_process_group"):
        return
    if run.launch is not None and (run.launch.launcher != "python" or _shows_one(run.launch)):
        return
    if not _of_language(run, script):
        return
    for index, call in enumerate(script.calls("DataParallel")):
        if call.function not in _WRAPPERS or _in_a_trainers_copy(script, call):
            continue
        if not (index < _LOOKED_AT and _only_unwrapped(script, call)):
            yield Report(
                call.place,
                f"nn.DataParallel: {_WHY}",
                severity=Severity.INFO if _is_switched(run, script, call) else Severity.WARNING,
                help="DistributedDataParallel, one process for each GPU (torchrun)",
            )


def _shows_one(launch: Launch) -> bool:
    """Whether a launch shows its script one GPU: on one the wrapper calls the model itself, and copies nothing
    (``torch/nn/parallel/data_parallel.py:DataParallel.forward``)."""
    return launch.seen_gpus is not None and launch.seen_gpus.value == 1


_SWITCH = re.compile(r"(?i)n_?gpus?\b|num_gpus?|gpu_num|gpu_count|device_count|device_ids|data_?parallel|multi_?gpu")
"""What a test asks for that wraps the model only where there are several GPUs."""


def _is_switched(run: Run, script: ScriptSource, call: Call) -> bool:
    """Whether a test for several GPUs stands before it, and no launch says that there are."""
    seen = run.launch.seen_gpus if run.launch is not None else None
    if seen is not None and isinstance(seen.value, int) and seen.value > 1:
        return False
    record = script.reading.calls.records[id(call)]
    document = script.reading.calls.document_of(record.node)
    tests = (each.test for each in around(document, record.node) if isinstance(each, (cst.If, cst.IfExp)))
    return any(_SWITCH.search(document.slice(document.span(test))) for test in tests)


_LOOKED_AT = 5
"""Wrappers of one script whose uses are looked for."""


def _in_a_trainers_copy(script: ScriptSource, call: Call) -> bool:
    """Whether a copy of transformers' Trainer wraps, in its ``_wrap_model``: as the library does, only where one
    process sees several GPUs."""
    record = script.reading.calls.records[id(call)]
    home = _function(script.reading.calls.document_of(record.node), record.node)
    return isinstance(home, cst.FunctionDef) and home.name.value == "_wrap_model"


def _only_unwrapped(script: ScriptSource, call: Call) -> bool:
    """Whether nothing is asked of the wrapped model but the model in it (``model.module``), so that the wrapper, which
    copies it in its own ``forward``, never runs."""
    record = script.reading.calls.records[id(call)]
    document = script.reading.calls.document_of(record.node)
    name, home = call.assigned_to, _function(document, record.node)
    around = home if home is not None else document.module
    if name is None or around is None:
        return False
    made, unwrapped = document.span(record.node).end, False
    for node in _uses(document, around, name):
        if document.span(node).start < made and _function(document, node) is home:
            continue
        if (made_anew := _made_anew(document, node, around)) is not None:
            last = [_unwraps(document, each) for each in _uses(document, made_anew, name)]
            return all(last) and (unwrapped or bool(last))
        if _unwraps(document, node):
            unwrapped = True
        elif not _is_asked_beside(document, node):
            return False
    return unwrapped


_BESIDE = ("generate", "parameters", "named_parameters", "state_dict", "load_state_dict", "config")
"""What is asked of a model beside its ``forward``, and gives back something else than the model; what the wrapper has
not (``generate``) ends in an AttributeError, or is asked before the model is wrapped."""


def _is_asked_beside(document: PythonDocument, node: cst.Name) -> bool:
    asked = document.parent(node)
    return isinstance(asked, cst.Attribute) and asked.value is node and asked.attr.value in _BESIDE


def _uses(document: PythonDocument, around: cst.CSTNode, name: str) -> Iterator[cst.Name]:
    """The places of a variable, in the order of the text; what has its name beside it is left out."""
    for node in walk(around):
        if isinstance(node, cst.Name) and node.value == name:
            parent = document.parent(node)
            keyword = isinstance(parent, cst.Arg) and parent.keyword is node
            if not keyword and not (isinstance(parent, cst.Attribute) and parent.attr is node):
                yield node


def _function(document: PythonDocument, node: cst.CSTNode) -> cst.CSTNode | None:
    """The innermost function around a node."""
    current = document.parent(node)
    while current is not None and not isinstance(current, (cst.FunctionDef, cst.Lambda)):
        current = document.parent(current)
    return current


def _made_anew(document: PythonDocument, node: cst.Name, around: cst.CSTNode) -> cst.BaseExpression | None:
    """What a name stands for from here on, where a statement of the function's or module's own block sets it."""
    target = document.parent(node)
    assign = document.parent(target) if isinstance(target, cst.AssignTarget) else None
    line = document.parent(assign) if isinstance(assign, cst.Assign) else None
    block = document.parent(line) if line is not None else None
    if isinstance(block, cst.IndentedBlock):
        block = document.parent(block)
    return assign.value if isinstance(assign, cst.Assign) and block is around else None


def _unwraps(document: PythonDocument, node: cst.Name) -> bool:
    """Whether a name is asked for its ``.module``, or whether it has one: ``m.module if isinstance(m, …) else m``."""
    around = document.parent(node)
    if isinstance(around, cst.Attribute) and around.value is node:
        return around.attr.value == "module"
    if isinstance(around, cst.IfExp) and around.orelse is node:
        return isinstance(around.body, cst.Attribute) and around.body.attr.value == "module"
    call = document.parent(around) if isinstance(around, cst.Arg) else None
    return (
        isinstance(call, cst.Call) and isinstance(call.func, cst.Name) and call.func.value in ("isinstance", "hasattr")
    )


def _of_language(run: Run, script: ScriptSource) -> bool:
    """Whether the script trains a language model, as far as is known: of a small net of its own nothing is large."""
    loads = (load for load in script.facts.loads if load.taken is not False)
    return run.facts is not None or any(load.function != _OWN_CLASS for load in loads)


def _by_the_trainer(run: Run) -> Iterator[Report]:
    """A Trainer in one plain process that sees several GPUs."""
    launch = run.launch
    if launch is None or launch.launcher != "python" or run.script is None or run.script.facts.trainer is None:
        return
    visible = launch.settings.get("visible_devices")
    if visible is None or not isinstance(visible.value, str) or run.value("engine") != "single":
        return
    cards = [part for part in visible.value.split(",") if part.strip()]
    if len(cards) < 2 or not all(part.strip().isdecimal() for part in cards) or not _one_device(run):
        return
    yield Report(
        visible.provenance.place or launch.place,
        f"one process that sees {len(cards)} GPUs makes the Trainer use nn.DataParallel: {_WHY}",
        help=f"torchrun --nproc_per_node {len(cards)}",
    )


def _one_device(run: Run) -> bool:
    """Whether the model is certainly not spread over the GPUs, and the Trainer is transformers' own or TRL's."""
    assert run.script is not None and run.script.facts.trainer is not None
    if not run.script.facts.trainer.function.startswith(("transformers.", "trl.")):
        return False
    handed = run.script.facts.trainer.argument("model")
    if handed is not None and isinstance(handed.value, str):
        return False  # TRL's trainer loads it, from 0.26 on over all GPUs (``create_model_from_path``)
    load = one_load(run)
    if load is None or load.spreads or not load.function.startswith("transformers."):
        return False
    spread = load.argument("device_map")
    return (spread is None or spread.value is None) and "parallel" not in run.script.document.text
