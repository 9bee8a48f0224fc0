from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import spliced
from lintfit.checks.helpers.readers import init_is_off
from lintfit.checks.helpers.script_calls import calls_of, knows_deepspeed, on_trained_model
from lintfit.documents.model import Edit
from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.python_walk import walk
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.settings.model import Place
from lintfit.sources.script.model import Call
from lintfit.sources.script.source import ScriptSource

_EMBEDDINGS = ("get_input_embeddings", "get_output_embeddings")
_GUARD = re.compile(r"zero|deepspeed|ds_|gather|is_main|stage", re.IGNORECASE)
"""Words of a test or a ``with`` that show that the script has thought of ZeRO-3 here."""


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.script is None or run.value("engine") != "deepspeed" or run.value("zero_stage") != 3:
        return
    whole = init_is_off(run)
    for call in calls_of(run.script, *_EMBEDDINGS):
        if call.taken is True and on_trained_model(run.script, call) and (not whole or _prepared(run.script, call)):
            yield from _shape(run.script, call)
    for call in calls_of(run.script, "save"):
        if call.function == "torch.save" and call.taken is True and _prepared(run.script, call):
            yield from _saved(run.script, call)


def _prepared(source: ScriptSource, call: Call) -> bool:
    """Whether the engine has taken the model over by then."""
    consumer = source.facts.initialize or source.facts.trainer
    return consumer is not None and consumer.taken is True and consumer.order < call.order


def _partitioned(source: ScriptSource, call: Call) -> bool:
    """Whether the model's parameters are partitioned when a call runs: since its load, or since the engine has it."""
    loads = [load for load in source.facts.loads if load.order < call.order and load.taken is True]
    known = bool(loads) and all(
        load.name == "from_pretrained" and knows_deepspeed(source, load) is True for load in loads
    )
    return known or _prepared(source, call)


def _shape(source: ScriptSource, call: Call) -> Iterator[Report]:
    record = source.reading.calls.records[id(call)]
    document = source.reading.calls.document_of(record.node)
    weight = document.parent(record.node)
    if not (isinstance(weight, cst.Attribute) and weight.attr.value == "weight" and weight.value is record.node):
        return
    read = document.parent(weight)
    if not (isinstance(read, cst.Attribute) and read.value is weight and read.attr.value in ("shape", "size")):
        return
    if _guarded(document, read) or _is_shown(document, read) or not _partitioned(source, call):
        return
    whole = _index(document, read)
    span = document.span(whole if whole is not None else read)
    text = " ".join(document.slice(span).split())
    if whole is not None and _only_resizes(document, whole):
        yield Report(
            Place(document, span),
            f"{text} is 0 under ZeRO-3: the embedding is partitioned here, and is resized to the tokenizer's length in "
            "any case, a longer one, too",
            severity=Severity.INFO,
            fix=_config_size(document, record.node, whole),
            help="use model.config.vocab_size, or read it inside deepspeed.zero.GatheredParameters",
        )
        return
    yield Report(
        Place(document, span),
        f"{text} is {'0' if whole is not None else 'torch.Size([0])'} under ZeRO-3: the embedding is partitioned here, "
        "and what is decided by its size goes wrong",
        severity=Severity.WARNING if _decides(document, whole or read) else Severity.INFO,
        fix=_config_size(document, record.node, whole),
        help="use model.config.vocab_size, or read it inside deepspeed.zero.GatheredParameters",
    )


def _decides(document: PythonDocument, read: cst.CSTNode) -> bool:
    """Whether a test of the code surely asks for a size, or for the one variable that holds it, and not only to resize
    to a tokenizer that has just got another token."""
    assert document.module is not None
    size = document.slice(document.span(read))
    around = document.parent(read)
    if isinstance(around, cst.Assign) and isinstance(around.targets[0].target, cst.Name):
        size = around.targets[0].target.value
    name = re.compile(rf"(?<![\w.]){re.escape(size)}(?!\w)")
    tests = [
        node
        for node in walk(document.module)
        if isinstance(node, (cst.If, cst.IfExp, cst.While, cst.Assert))
        and name.search(document.slice(document.span(node.test)))
    ]
    grown = _GROWN.search(document.text) is not None
    return any(
        not (grown and isinstance(node, cst.If) and _RESIZE in document.slice(document.span(node.body)))
        for node in tests
    )


_GROWN = re.compile(r"\.add_(?:special_)?tokens\(|smart_tokenizer_and_embedding_resize")
"""What makes a tokenizer longer, so that the embedding is resized whatever its size is."""
_RESIZE = "resize_token_embeddings"


def _index(document: PythonDocument, read: cst.Attribute) -> cst.CSTNode | None:
    """``….shape[0]`` or ``….size(0)`` around the attribute, None for anything else."""
    around = document.parent(read)
    text = document.slice(document.span(around)) if around is not None else ""
    return around if isinstance(around, (cst.Subscript, cst.Call)) and re.search(r"[\[(]\s*0\s*[\])]$", text) else None


def _only_resizes(document: PythonDocument, whole: cst.CSTNode) -> bool:
    """Whether the size, or the one variable that holds it, is only asked for whether the tokenizer is longer, before
    ``resize_token_embeddings``: as a rule it is, and the same comes of 0."""
    around, size = document.parent(whole), document.slice(document.span(whole))
    if isinstance(around, cst.Assign):
        target = around.targets[0].target
        if len(around.targets) > 1 or not isinstance(target, cst.Name):
            return False
        size = target.value
    assert document.module is not None
    tests = [node for node in walk(document.module) if isinstance(node, cst.If) and _resizes(document, node, size)]
    name = re.compile(rf"(?<![\w.]){re.escape(size)}(?!\w)")
    bound = re.compile(rf"(?<![\w.]){re.escape(size)}[ \t]*=(?!=)")
    asked = len(name.findall(document.text)) - len(bound.findall(document.text))
    return bool(tests) and asked == len(tests)


def _resizes(document: PythonDocument, node: cst.If, size: str) -> bool:
    """``if len(tokenizer) > size: model.resize_token_embeddings(…)`` and nothing more."""
    longer = re.compile(
        rf"len\([\w.]+\)\s*(?:>=?|!=)\s*{re.escape(size)}|{re.escape(size)}\s*(?:<=?|!=)\s*len\([\w.]+\)"
    )
    if node.orelse is not None or not longer.fullmatch(document.slice(document.span(node.test))):
        return False
    match node.body.body:
        case [cst.SimpleStatementLine(body=[cst.Expr(value=cst.Call(func=cst.Attribute(attr=cst.Name(value=name))))])]:
            return name == _RESIZE
    return False


def _config_size(document: PythonDocument, embedding: cst.Call, whole: cst.CSTNode | None) -> Fix | None:
    if whole is None or not isinstance(embedding.func, cst.Attribute):
        return None
    owner = document.slice(document.span(embedding.func.value))
    edit = Edit(document.span(whole), f"{owner}.config.vocab_size")
    return spliced(document, "read the size from the model's config", Applicability.UNSAFE, [edit])


def _guarded(document: PythonDocument, node: cst.CSTNode) -> bool:
    """Whether it stands under a test or a ``with`` that knows of ZeRO-3."""
    current: cst.CSTNode | None = node
    while current is not None:
        match current:
            case cst.If(test=test) | cst.IfExp(test=test):
                if _GUARD.search(document.slice(document.span(test))):
                    return True
            case cst.With(items=items):
                if any(_GUARD.search(document.slice(document.span(item.item))) for item in items):
                    return True
        current = document.parent(current)
    return False


_SHOWS = re.compile(
    r"(?:\w+\.)*(?:p?print|print_\w+|\w+_print)|(?:\w+\.)*log(?:s|ger|ging)?\.\w+(?:\(\w*\)\.\w+)?"
    r"|(?:self|accelerator|trainer|wandb|run)\.log"
)
"""What is called to show a value: ``print``, ``accelerator.print``, ``print_rank_0``, ``logger.info``, ``self.log``."""


def _is_shown(document: PythonDocument, node: cst.CSTNode) -> bool:
    """Whether a value stands within what is printed or logged, so that nothing is decided by it."""
    current: cst.CSTNode | None = node
    while current is not None and not isinstance(current, cst.BaseStatement):
        if isinstance(current, cst.Call) and _SHOWS.fullmatch(document.slice(document.span(current.func))):
            return True
        current = document.parent(current)
    return False


def _saved(source: ScriptSource, call: Call) -> Iterator[Report]:
    """``torch.save(model.state_dict(), …)`` of the engine's own model."""
    record = source.reading.calls.records[id(call)]
    document = source.reading.calls.document_of(record.node)
    first = record.node.args[0].value if record.node.args else None
    records = source.reading.calls.records
    inner = [taken for taken in calls_of(source, "state_dict") if records[id(taken)].node is first]
    if not inner or not on_trained_model(source, inner[0]) or _guarded(document, record.node):
        return
    yield Report(
        call.place,
        "torch.save of the model's state_dict under ZeRO-3 writes empty tensors: each rank holds only its shard",
        help="use save_checkpoint, save_16bit_model or the trainer's save_model",
    )
