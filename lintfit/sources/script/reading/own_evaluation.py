"""What a loop of the script's own evaluates with: its batch, what it holds of the logits, and whether it makes graphs.

Only where everything is in sight: the loop, the call of the model that this run comes by, and its ``DataLoader``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from lintfit.documents.python_reader import PythonDocument
from lintfit.settings.model import UNKNOWN, is_count
from lintfit.sources.script.interpreter.values import Function, Record, Value, objects, plain
from lintfit.sources.script.reading import loops
from lintfit.sources.script.reading import plain as plain_loop
from lintfit.sources.script.reading.collector import Reading
from lintfit.sources.script.reading.evaluation_loops import Evaluation, generating, keeper, with_graphs, without_graphs

OWN = "a loop of the script's own"
_FOR_EVALUATION = re.compile(r"eval|valid|val_|test|dev", re.IGNORECASE)
_REDUCED = re.compile(
    r"arg(max|sort)|topk|\.(cpu|tolist|item|numpy)\(|\.to\([\"']cpu|\.gather\(-?\d|loss|cross_entropy"
)
"""What makes logits small, or takes them off the GPU."""
_SAME_FUNCTIONS = re.compile(
    r"(log_)?softmax|sigmoid|cat|concat|concatenate|stack|clone|reshape|list|tuple"
    r"|gather(_for_metrics|_from_all)?|pad_across_processes"
)
"""Functions whose result is as large as what they are handed."""
_SAME_METHODS = re.compile(
    r"bfloat16|clone|contiguous|cuda|detach|flatten|float|half|permute|reshape|sigmoid|(log_)?softmax"
    r"|transpose|(un)?squeeze|view"
)
"""A tensor's own methods of which the same is true."""
_NUMBER = re.compile(r"\.(item|tolist|numpy|detach)\(|float\(|int\(")
"""What leaves the graph behind."""
_LEVELS = {"dropped": 0, "held": 1, "listed": 2}


def read(reading: Reading) -> None:
    """Note the evaluation that needs most."""
    if not reading.found.trains or reading.found.trainer is not None:
        return
    document = reading.calls.script
    graphs = [(found, True) for found in with_graphs(document)]
    others = [(found, False) for found in without_graphs(document)]
    records = {id(record.node): record for record in reading.records}
    for found, graph in graphs + others:
        called = records.get(id(found.forward))
        if called is None or called.taken is False or not _sized(reading, found):
            continue
        _note(reading, found, graph)
    for found in generating(document):
        called = records.get(id(found.forward))
        new = _new_tokens(called) if called is not None and called.taken is not False else None
        if called is not None and new is not None and _sized(reading, found):
            _note_answers(reading, found, new, called)


def _sized(reading: Reading, found: Evaluation) -> bool:
    """Note the batch of a loop, where it is known and the largest so far."""
    batch = _batch(reading, found)
    if batch is None:
        return False
    value, loader = batch
    before = reading.settings.get("eval_batch_size")
    if before is None or before.value < plain(value):
        reading.put("eval_batch_size", value, loader)
    return True


def _note_answers(reading: Reading, found: Evaluation, new: Value, called: Record) -> None:
    """Answers of so many tokens, beside the loss of another loop, or alone."""
    alone = "eval_predictions" not in reading.settings
    reading.state("eval_generates", "only" if alone else "beside", found.forward, OWN)
    before = reading.settings.get("eval_new_tokens")
    if before is None or before.value < plain(new):
        reading.put("eval_new_tokens", new, called)
    beams = called.keyword("num_beams")
    if beams is not None:
        reading.put("generation_num_beams", beams, called)


def _new_tokens(called: Record) -> Value | None:
    """``max_new_tokens`` of a call of ``generate``; None where it is said elsewhere, or is not statically known."""
    value = called.keyword("max_new_tokens")
    return value if value is not None and is_count(plain(value)) else None


def _note(reading: Reading, found: Evaluation, graph: bool) -> None:
    becomes, node = _logits(reading, found)
    if graph and becomes == "dropped" and _holds_graph(reading.calls.script, found):
        becomes = "held"
    if graph and (kept := keeper(reading.calls.script, found)) is not None:
        becomes, node = "listed", kept[1]
    before = reading.settings.get("eval_predictions")
    if before is None or _LEVELS[before.value] < _LEVELS[becomes]:
        reading.state("eval_predictions", becomes, node, OWN)
    if graph:
        reading.state("eval_graph", True, found.forward, OWN)


def _batch(reading: Reading, found: Evaluation) -> tuple[Value, Record] | None:
    """The batch of the loader that a loop goes through: the one that it names, else those made for evaluation."""
    made = [*reading.called("DataLoader")]
    if not isinstance(found.loop.node, cst.For):
        return None
    over = (found.loop.node.iter, *loops.inside(found.loop.node.iter))
    names = {node.value for node in over if isinstance(node, cst.Name)}
    named = [record for record in made if record.assigned_to in names]
    chosen = named or [record for record in made if _FOR_EVALUATION.search(record.assigned_to or "")]
    sizes = {plain(value): (value, record) for record in chosen if (value := plain_loop.batch(record)) is not None}
    if len(sizes) != 1 or UNKNOWN in sizes:
        return None
    known, batch = sizes.popitem()
    return batch if is_count(known) else None


def is_small(reading: Reading, found: Evaluation) -> bool:
    """Whether a loop that builds graphs surely takes no more than a step of the training: it is over after one batch or
    has batches of one sample, or no larger ones than the training, and lets go what it makes of each.

    A variable that holds a batch's outputs keeps its graph beside that of the next one.
    """
    if keeper(reading.calls.script, found) is not None or _says(reading, "gradient_checkpointing") is True:
        return False
    if _ends_at_once(found.loop.node):
        return True
    size, trained = _known_batch(reading, found), _says(reading, "micro_batch_size")
    if size is None or size == 1:
        return size == 1
    held = any(value is found.forward for _, value, _ in loops.assignments(found.loop.node.body))
    held = held or _holds_graph(reading.calls.script, found)
    return is_count(trained) and size * (2 if held else 1) <= trained


def _says(reading: Reading, name: str) -> object:
    stated = reading.settings.get(name)
    return stated.value if stated is not None else None


def _ends_at_once(loop: cst.For | cst.While) -> bool:
    """Whether a loop breaks, or returns, at the end of its first turn."""
    body = loop.body.body if isinstance(loop.body, cst.IndentedBlock) else ()
    lines = (line for line in body if isinstance(line, cst.SimpleStatementLine))
    return any(isinstance(each, cst.Break | cst.Return) for line in lines for each in line.body)


def _known_batch(reading: Reading, found: Evaluation) -> int | None:
    """The batch of the loader that a loop names; one sample where its ``DataLoader`` says nothing of it."""
    if not isinstance(found.loop.node, cst.For):
        return None
    over = (found.loop.node.iter, *loops.inside(found.loop.node.iter))
    names = {node.value for node in over if isinstance(node, cst.Name)}
    named = [record for record in reading.called("DataLoader") if record.assigned_to in names]
    if len(named) != 1 or named[0].spreads or found.function is not None:
        return None
    value = plain_loop.batch(named[0])
    size = 1 if value is None else plain(value)
    return size if is_count(size) else None


def _logits(reading: Reading, found: Evaluation) -> tuple[str, cst.CSTNode]:
    """What becomes of the logits: nobody has them, the loop's variable does, or a list that grows."""
    document = reading.calls.script
    holders = {name for name, value, _ in loops.assignments(found.loop.node.body) if value is found.forward}
    if not holders:
        return "dropped", found.forward
    logits = {f"{holder}.logits" for holder in holders}
    if not _gives_its_own(reading):
        logits |= holders
    for name, value, _ in loops.assignments(found.loop.node.body):
        if value is None or value is found.forward:
            continue
        if _are(document, value, logits):
            logits.add(name)
            logits.discard(f"{name}.logits")  # a name for the outputs before
        elif name in holders:  # the name is given something less
            logits -= {name, f"{name}.logits"}
    for call in _appended(found):
        if _are(document, call.args[0].value, logits):
            return "listed", call
    return "held", found.forward


def _gives_its_own(reading: Reading) -> bool:
    """Whether a class of the project's has the ``forward``, which may give back scores and no logits."""
    made = [each.cls for each in objects(reading.found.trained) if each.cls is not None]
    return any(isinstance(cls.member("forward"), Function) for cls in made)


def _appended(found: Evaluation) -> Iterator[cst.Call]:
    """Calls in the loop that put something into a list."""
    for node in loops.inside(found.loop.node.body):
        if isinstance(node, cst.Call) and (loops.name_of(node.func) or "").endswith(".append") and node.args:
            yield node


def _holds_graph(document: PythonDocument, found: Evaluation) -> bool:
    """Whether a variable of the loop holds what was made of the forward, and its graph with it (``loss = …``)."""
    for _, value, _ in loops.assignments(found.loop.node.body):
        parts = (value, *loops.inside(value)) if value is not None else ()
        if found.forward in parts and value is not None and not _NUMBER.search(loops.text(document, value)):
            return True
    return False


def _are(document: PythonDocument, value: cst.CSTNode, logits: set[str]) -> bool:
    """Whether an expression comes to logits as they are: one of their names, with nothing that makes less of them."""
    if _REDUCED.search(loops.text(document, value)):
        return False
    return _of(value, logits)


def _of(value: cst.CSTNode, logits: set[str]) -> bool:
    match value:
        case cst.Name() | cst.Attribute():
            return loops.name_of(value) in logits
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=key)), *_]) if _is_output(
            value.value, logits
        ):
            return isinstance(key, cst.SimpleString) and key.evaluated_value == "logits"
        case cst.Subscript():
            return _of(value.value, logits)
        case cst.Tuple() | cst.List():
            return any(_of(element.value, logits) for element in value.elements)
        case cst.Dict():
            return any(isinstance(each, cst.DictElement) and _of(each.value, logits) for each in value.elements)
        case cst.BinaryOperation():
            return _of(value.left, logits) or _of(value.right, logits)
        case cst.IfExp():
            return _of(value.body, logits) or _of(value.orelse, logits)
        case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=name))) if _SAME_METHODS.fullmatch(name):
            return _of(receiver, logits) or _hands_on(value, name, logits)
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name)) | cst.Name(value=name)):
            return _hands_on(value, name, logits)
    return False


def _is_output(value: cst.CSTNode, logits: set[str]) -> bool:
    """Whether an expression is all that a model gives: its parts have names, and of numbers the first may be a loss."""
    return f"{loops.name_of(value)}.logits" in logits


def _hands_on(call: cst.Call, name: str, logits: set[str]) -> bool:
    """Whether a function gives back all of the logits that it is handed: what others make of them, a metric or what
    the script picks out, is not known to be as large."""
    return _SAME_FUNCTIONS.fullmatch(name) is not None and any(_of(argument.value, logits) for argument in call.args)
