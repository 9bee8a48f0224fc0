"""Settings of a loop that the script writes itself: its batches, its steps and its optimizer."""

from __future__ import annotations

import re

import libcst as cst

from lintfit.documents.python_walk import code_of
from lintfit.memory.tensors.optimizers import PROJECTED
from lintfit.settings.model import UNKNOWN
from lintfit.sources.script.interpreter.expressions import dotted
from lintfit.sources.script.interpreter.values import Function, Object, Record, Value, plain
from lintfit.sources.script.reading import engines, fabric, loops, optimizer_classes, own_pass
from lintfit.sources.script.reading import plain as plain_loop
from lintfit.sources.script.reading.collector import Reading, something, sure_none

_STEPS = re.compile(r"\.step\(\s*\)")
_EVALUATES = re.compile(r"(eval|valid|test|dev)", re.IGNORECASE)
_PROMPTS = re.compile(r"(rollout|prompts?_(train_)?(data_?)?loader|generation_batch)", re.IGNORECASE)


def read(reading: Reading) -> None:
    """A loop written by hand: DataLoader, optimizer class, Accelerator."""
    if reading.found.first_ppo is not None:
        _first_ppo(reading, reading.found.first_ppo)
    accelerator, fabrics = reading.found.accelerator, [*reading.called("Fabric")]
    if accelerator is not None:
        for name, keyword in (("mixed_precision", "mixed_precision"), ("gradient_accumulation_steps",) * 2):
            value = accelerator.keyword(keyword)
            if something(value):
                reading.put(name, value, accelerator)
        engines.accumulation(reading, accelerator)
        engines.plugins(reading, accelerator)
        engines.dummies(reading)
    elif fabrics:
        fabric.read(reading, fabrics[-1])
    _loader(reading)
    _optimizer_class(reading)
    _in_backward(reading)
    engines.initialized(reading)
    by_libraries = (accelerator, *fabrics, reading.found.initialize, reading.found.trainer)
    if reading.found.trains and all(part is None for part in by_libraries):
        plain_loop.engine(reading)
        plain_loop.precision(reading)
        plain_loop.batch_by_name(reading)
    _accumulates(reading)


def _accumulates(reading: Reading) -> None:
    """``if (step + 1) % 8 == 0: optimizer.step()``: the divisor, where nothing else says how often a loop steps."""
    if "gradient_accumulation_steps" in reading.settings:
        return
    for record in reading.records:
        nodes: list[cst.CSTNode] = []
        if plain_loop.steps_optimizer(record):
            nodes = list(record.tests)
        elif record.name == "no_backward_sync" and (enabled := record.value(1, "enabled")) is not None:
            nodes = [enabled.origin] if isinstance(enabled.origin, cst.CSTNode) else []
        for node in nodes:
            found = reading.divisor(node)
            if found is not None and isinstance(plain(found), int):
                reading.put("gradient_accumulation_steps", found, record)
                return
    if reading.found.initialize is None or reading.found.initialize.name != "initialize":
        plain_loop.named(reading)
        plain_loop.steps(reading)


def _loader(reading: Reading) -> None:
    engine = reading.found.initialize
    if engine is not None and engine.name == "initialize" and not sure_none(engine.keyword("training_data")):
        # DeepSpeed then makes the loader, with the micro-batch of its own config.
        return
    loader = next((r for r in reading.called("DataLoader") if not _EVALUATES.search(r.assigned_to or "")), None)
    value = plain_loop.batch(loader) if loader is not None else None
    sliced = _slice(reading) if value is not None else None
    if sliced is not None:
        stride, of_rows = sliced
        reading.put("micro_batch_size", stride, to=None if of_rows and isinstance(plain(stride), int) else UNKNOWN)
    elif loader is not None and value is not None and not plain_loop.asks_engine(value):
        # None: the data set makes batches of its own.
        own = plain_loop.of_data_set(loader) if sure_none(value) else value
        unknown = own is None or _of_prompts(loader, own)
        reading.put("micro_batch_size", own or value, loader, to=UNKNOWN if unknown else None)


def _slice(reading: Reading) -> tuple[Value, bool] | None:
    """How much of a batch goes through the model at a time, where a loop around the backward pass takes slices of it
    (``for start in range(0, len(batch), micro_batch_size)``), and whether these are rows by its name."""
    if not reading.walk.strides:
        return None  # the backward passes need not be looked for, of which the places take long to find
    for one in own_pass.passes(reading):
        for each in loops.around(one.document, one.backward):
            stride = reading.walk.strides.get(id(each))
            if stride is not None and isinstance(each, cst.For) and isinstance(each.iter, cst.Call):
                return stride, "batch" in dotted(each.iter.args[-1].value)
    return None


def _of_prompts(loader: Record, batch: Value) -> bool:
    """Whether a loader's rows are what a model generates from: it trains on what it made of them, cut otherwise."""
    code = code_of
    made = code(batch.origin) if isinstance(batch.origin, cst.CSTNode) else ""
    return _PROMPTS.search(f"{loader.assigned_to or ''} {code(loader.node)} {made}") is not None


def _optimizer_class(reading: Reading) -> None:
    chosen: list[tuple[Record, str]] = []
    for record in reading.records:
        known = optimizer_classes.of_call(record)
        if known is not None and record.taken is not False:
            chosen.append((record, known))
    if not chosen:
        return
    projected = [entry for entry in chosen if entry[1].startswith(PROJECTED)]
    if projected:
        chosen = projected  # what is not projected has an optimizer of its own beside it
    names = {name for _, name in chosen}
    sure = [entry for entry in chosen if entry[0].taken is True] or chosen
    record, name = sure[0]
    reading.state("optimizer", name if len(names) == 1 or len(sure) == 1 else UNKNOWN, record.node)
    for setting, keyword in (("learning_rate", "lr"), ("weight_decay", "weight_decay"), ("adam_epsilon", "eps")):
        value = record.keyword(keyword)
        if value is not None:
            reading.put(setting, value, record)


def _in_backward(reading: Reading) -> None:
    """Hooks that step as soon as a gradient is made: ``p.register_post_accumulate_grad_hook(optimizer_hook)``."""
    code = code_of
    for record in reading.records:
        hook = record.value(0, "hook")
        if record.name != "register_post_accumulate_grad_hook" or not isinstance(hook, Function) or hook.node is None:
            continue
        sure = record.taken or (record.taken is None and record.tests and "requires_grad" in code(record.tests[-1]))
        if sure and _STEPS.search(code(hook.node)):
            reading.state("optimizer_in_backward", True, record.node, "a hook of every parameter steps its optimizer")
            return


def _first_ppo(reading: Reading, made: Object) -> None:
    """``PPOConfig`` up to TRL 0.11: ``mini_batch_size`` goes through the model at a time (``PPOTrainer.step``)."""
    for name, keyword in (("micro_batch_size", "mini_batch_size"), ("gradient_accumulation_steps",) * 2):
        value = made.attributes.get(keyword)
        if value is not None:
            reading.put(name, value, made.call)
    if "gradient_accumulation_steps" not in reading.settings and not made.open:
        reading.default("gradient_accumulation_steps", 1, "TRL's default up to 0.11")
