"""A loop in plain PyTorch: what the model is wrapped in, autocast, how often the optimizer steps.

Read in torch 2.13 (``torch.amp.autocast_mode``, ``torch.distributed.fsdp``).
"""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from lintfit.documents.patterns import occurs
from lintfit.settings.model import UNKNOWN
from lintfit.settings.registry import ZERO
from lintfit.sources.script.interpreter import models, operators
from lintfit.sources.script.interpreter.values import Const, Object, Record, Value, objects, plain
from lintfit.sources.script.reading import engines, facts
from lintfit.sources.script.reading.collector import Reading, dtype_name, sure_none

_AUTOCAST = re.compile(r"\bautocast\b")
_RECOMPUTES = re.compile(r"\butils\.checkpoint\b|\bcheckpoint_sequential\b|\bcheckpoint_wrapper\b")
_WRAPS = re.compile(r"\bapply_activation_checkpointing\(|\bcheckpoint_wrapper\(|\.gradient_checkpointing_enable\(")
"""What has the layers of a model recomputed that somebody else made."""
_FSDP = frozenset({"FullyShardedDataParallel", "FSDP"})
_DDP = frozenset({"DistributedDataParallel", "DDP"})
_FOREIGN = re.compile(r"^(alpa|bmtrain|colossalai|fairscale|horovod|megatron|nemo|oneflow|paddle)\b")
"""Packages that train by engines of their own."""
_TAKES_OVER = frozenset({"boost", "initialize", "Booster", "init_distributed", "BMTrainModelWrapper"})
"""What starts them. BMTrain shards parameters and gradients as each ``Block`` says, recomputes its layers unless told
not to (``zero_level``, ``use_checkpoint``), and ``AdamOffloadOptimizer`` keeps the states in the memory of the host
(``bmtrain/block_layer.py``, ``wrapper.py``, ``optim/adam_offload.py``, 1.0.1)."""


def engine(reading: Reading) -> None:
    """FSDP and DDP by the classes that a script wraps its model in; engines of packages that lintfit knows not."""
    for record in reading.records:
        if record.taken is False or record.guarded:
            continue
        if record.name in _FSDP and record.function.startswith("torch."):
            _sharded(reading, record, version=1)
        elif record.name == "fully_shard" and record.function.startswith("torch."):
            _sharded(reading, record, version=2)
        elif record.name in _DDP and record.function.startswith("torch.") and "engine" not in reading.settings:
            if record.taken:
                reading.state("engine", "ddp", record.node)
        elif _FOREIGN.match(record.function) and record.name in _TAKES_OVER:
            _foreign(reading, record)
            return


def bucket_views(reading: Reading) -> None:
    """``gradient_as_bucket_view``, of torch's DDP and of Accelerate's handler that makes one."""
    for record in reading.called(*_DDP, "DistributedDataParallelKwargs"):
        value = record.keyword("gradient_as_bucket_view") if record.taken else None
        if value is not None and plain(value) is True and record.function.startswith(("torch.", "accelerate.")):
            reading.put("gradient_as_bucket_view", value, record)


def started_by_ray(reading: Reading) -> None:
    """Ray starts the processes that train, so that what python starts says nothing of their number."""
    for record in reading.records:
        if record.function in ("ray.init", "ray.remote", "ray.get") and record.taken is not False:
            why = "Ray starts the processes that train"
            reading.state("gpus", UNKNOWN, record.node, why)
            if "engine" not in reading.settings and "deepspeed" not in reading.settings:
                reading.state("engine", UNKNOWN, record.node, why)
            return


def plays_launcher(reading: Reading) -> None:
    """``os.environ["WORLD_SIZE"] = "1"``: the script tells the libraries what a launcher of one process would; or it
    shows them one GPU."""
    value, seen = (reading.constants.get(f"os.environ[{name}]") for name in ("WORLD_SIZE", "CUDA_VISIBLE_DEVICES"))
    if "gpus" not in reading.settings and isinstance(value, Const) and str(value.value) == "1":
        reading.put("gpus", value, to=1)
    elif "gpus" not in reading.settings and isinstance(seen, Const) and str(seen.value).strip().isdecimal():
        reading.put("gpus", seen, to=1)


def _foreign(reading: Reading, record: Record) -> None:
    why = f"{record.function.partition('.')[0]} shards and casts in ways of its own"
    for name in ("engine", *ZERO, "mixed_precision"):
        reading.state(name, UNKNOWN, record.node, why)
    if record.function.startswith("bmtrain.") and "gradient_checkpointing" not in reading.settings:
        why = "BMTrain's blocks recompute their layers unless they are told not to"
        reading.state("gradient_checkpointing", UNKNOWN, record.node, why)


def _sharded(reading: Reading, record: Record, version: int) -> None:
    known = reading.settings.get("engine")
    if known is not None and known.value == "fsdp":
        return
    reading.state("engine", "fsdp" if record.taken else UNKNOWN, record.node)
    asked = {passed.name: passed.value for passed in record.passed if passed.name is not None}
    engines.shards(reading, record, asked, version)
    engines.wraps(reading, record)
    policy = asked.get("mixed_precision", asked.get("mp_policy"))
    if policy is None or sure_none(policy):
        return
    precision_asked, loaded = engines.policy_precision(policy), reading.settings.get("weights_dtype")
    if loaded is not None and loaded.value == precision_asked and precision_asked in ("bf16", "fp16"):
        # Accelerate casts what it shards to fp32, torch keeps it, with its gradients and states, as it was loaded.
        reading.derive("mixed_precision", "no", "torch's own FSDP keeps the weights in the 16 bits they are loaded in")
        return
    reading.put("mixed_precision", policy, record, to=precision_asked)


def precision(reading: Reading) -> None:
    """``torch.autocast``: the dtype that all regions agree on; float16 on CUDA where none is asked for."""
    if "mixed_precision" in reading.settings:
        return
    regions = (r for r in reading.called("autocast") if r.function.startswith("torch.") and not r.guarded)
    found = [(record, known) for record in regions if (known := _region(record)) is not None]
    if found:
        answers = {known for _, known in found}
        reading.state("mixed_precision", answers.pop() if len(answers) == 1 else UNKNOWN, found[0][0].node)
    elif _switched_off(reading):
        reading.default("mixed_precision", "no", "what is called autocast does nothing in this run")
    elif reading.calls.say(_AUTOCAST):
        reading.derive("mixed_precision", UNKNOWN, "autocast is named where this run may come by")


def _switched_off(reading: Reading) -> bool:
    """Whether whatever is called under the name of autocast is a context that does nothing."""
    called = [record for record in reading.records if _written(record) == "autocast" and record.taken is not False]
    return bool(called) and all(record.name == "nullcontext" for record in called)


def _written(record: Record) -> str:
    function = record.node.func
    name = function.attr if isinstance(function, cst.Attribute) else function
    return name.value if isinstance(name, cst.Name) else ""


def _region(record: Record) -> Any:
    """The precision of one region: ``bf16``, ``fp16``, ``no``, ``UNKNOWN``; None where it is not for CUDA."""
    of_cuda = record.function.startswith("torch.cuda.")
    device = None if of_cuda else record.value(0, "device_type")
    if device is not None and plain(device) in ("cpu", "mps"):
        return None
    enabled = record.value(0 if of_cuda else 2, "enabled")
    on = True if enabled is None else operators.truth(enabled)
    if on is not True:
        return "no" if on is False else UNKNOWN
    dtype = record.value(1, "dtype")
    return "fp16" if dtype is None or sure_none(dtype) else engines.named_precision(dtype_name(dtype))


def steps(reading: Reading) -> None:
    """An optimizer that steps wherever a backward pass runs: nothing is accumulated."""
    if "gradient_accumulation_steps" in reading.settings:
        return
    stepping = [record for record in reading.records if steps_optimizer(record)]
    backward = [*reading.called("backward")]
    if not stepping or not backward:
        return
    tests = {id(test) for record in backward for test in record.tests}
    together = {record.loops for record in backward} == {record.loops for record in stepping}
    if together and all(id(test) in tests for record in stepping for test in record.tests):
        reading.derive("gradient_accumulation_steps", 1, "the optimizer steps after every backward pass")


def named(reading: Reading) -> None:
    """``if step % args.gradient_accumulation != 0: continue``: a divisor that is named for what it does."""
    known = {plain(value) for value in reading.walk.accumulations}
    if "gradient_accumulation_steps" not in reading.settings and len(known) == 1 and isinstance(known.pop(), int):
        reading.put("gradient_accumulation_steps", reading.walk.accumulations[0])


def steps_optimizer(record: Record) -> bool:
    """``optimizer.step()``, ``scaler.step(optimizer)``."""
    if record.name != "step" or record.taken is False:
        return False
    receiver = (record.receiver_name or "").lower()
    return "optim" in receiver or ("scaler" in receiver and bool(record.passed))


def recomputing(reading: Reading) -> None:
    """What ``torch.utils.checkpoint`` does where it is not followed: within models of the script's own, which decide
    themselves whether they call it, and in functions of modules that are not read and get the model."""
    if "gradient_checkpointing" in reading.settings:
        return
    own = any(models.is_own_model(each) for each in objects(reading.found.trained))
    texts = (text for text in reading.calls.texts() if "gradient_checkpointing" not in text)
    if own and any(occurs(_RECOMPUTES, text) for text in texts):
        reading.derive("gradient_checkpointing", UNKNOWN, "torch.utils.checkpoint is called by code of the project")
        return
    for record in reading.records:
        text = reading.calls.unread(record.function.rpartition(".")[0]) if record.taken is not False else ""
        if occurs(_WRAPS, text) and any(facts.is_trained(reading.found, passed.value) for passed in record.passed):
            why = f"{record.name} is handed the model, and may have its layers recomputed"
            reading.state("gradient_checkpointing", UNKNOWN, record.node, why)
            return


def batch(loader: Record) -> Value | None:
    """The micro-batch of a ``DataLoader``: its own argument, else that of the batch sampler that it is handed."""
    value = loader.value(1, "batch_size")
    sampler = loader.keyword("batch_sampler")
    if value is not None or sampler is None or sure_none(sampler):
        return value
    for each in objects(sampler):
        made = _of_sampler(each)
        if made is not None:
            return made
    return Const(loader.node, UNKNOWN)


_BATCHES = ("micro_batch_size", "device_batch_size", "train_batch_size", "batch_size")
"""What a script calls its micro-batch."""


def batch_by_name(reading: Reading) -> None:
    """A constant of that name, where the script makes its batches itself."""
    loads = any(record.name.endswith("DataLoader") for record in reading.records)
    if "micro_batch_size" in reading.settings or loads:
        return
    for name in _BATCHES:
        value = reading.constants.get(name)
        if value is not None and type(plain(value)) is int:
            reading.put("micro_batch_size", value)
            reading.suppose("micro_batch_size", f"{name} is taken for the micro-batch")
            return


def asks_engine(value: Value) -> bool:
    """``engine.train_micro_batch_size_per_gpu()``: the engine's own config says it."""
    return any(each.call is not None and each.call.name == "train_micro_batch_size_per_gpu" for each in objects(value))


def of_data_set(loader: Record) -> Value | None:
    """``DataLoader(data, batch_size=None)``: the batch of a data set that makes its batches itself."""
    made = (each.attributes for each in objects(loader.value(0, "dataset")))
    return next((attributes["batch_size"] for attributes in made if "batch_size" in attributes), None)


def _of_sampler(made: Object) -> Value | None:
    if "batch_size" in made.attributes:
        return made.attributes["batch_size"]
    return made.call.value(1, "batch_size") if made.call is not None else None
