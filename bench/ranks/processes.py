"""What the measurements with real processes share: ranks with gloo on one CPU, and the counting of bytes.

A worker is a function of a rank and a case; it returns what JSON can hold. Ranks are forked, so that whatever is
imported before :func:`run` is imported once.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

from bench import recordings

Worker = Callable[[int, dict[str, Any]], Any]

PRELOADED = ("deepspeed", "transformers.models.llama.modeling_llama", "accelerate")
"""Imported once, before the ranks are forked."""


def prepare() -> None:
    """One thread a rank, and DeepSpeed on the CPU; to be called before anything imports torch."""
    os.environ |= {"DS_ACCELERATOR": "cpu", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


def run(worker: Worker, case: dict[str, Any], ranks: int, name: str) -> list[Any]:
    """What the worker returns on each rank. Raises :class:`RuntimeError` with the end of a failed rank's output."""
    port = _free_port()
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            context.Process(target=_rank, args=(worker, rank, ranks, case, port, Path(folder) / str(rank)))
            for rank in range(ranks)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        _discard_buffers(port)
        failed = [rank for rank, process in enumerate(processes) if process.exitcode]
        if failed:
            raise RuntimeError(f"{name}: {(Path(folder) / f'{failed[0]}.err').read_text()[-3000:]}")
        return [json.loads((Path(folder) / str(rank)).read_text()) for rank in range(ranks)]


def _discard_buffers(port: int) -> None:
    """Remove the shared memory that DeepSpeed makes for a port and never unlinks, 66 MiB a rank (``shm.cpp``)."""
    for left in Path("/dev/shm").glob(f"deepspeed_allreduce_buffer_*_{port}_*"):
        left.unlink(missing_ok=True)


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def _rank(worker: Worker, rank: int, ranks: int, case: dict[str, Any], port: int, out: Path) -> None:
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "LOCAL_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    with Path(f"{out}.err").open("w") as errors:
        os.dup2(errors.fileno(), 1)
        os.dup2(errors.fileno(), 2)
        out.write_text(json.dumps(worker(rank, case)))


# --- a program that records ---------------------------------------------------------------------------------------


def program(
    about: str, model: Mapping[str, Any], cases: Sequence[dict[str, Any]], worker: Worker, packages: Sequence[str]
) -> None:
    """The command line of a measurement: ``--out`` records its cases, ``--compare`` holds a recording to lintfit.

    A case has a ``name``, lintfit's ``spec`` of it, and what the worker wants to know.
    """

    def measure(case: dict[str, Any]) -> dict[str, Any]:
        return {"ranks": run(worker, case, case["spec"]["gpus"], case["name"])}

    def record(out: Path, only: str) -> int:
        prepare()
        for module in ("torch", *PRELOADED):
            import_module(module)
        return recordings.record(out, only, cases, measure, packages, compact=True, model=model)

    def table(recording: dict[str, Any]) -> str:
        from bench.ranks.compare import table

        return table(recording)

    sys.exit(recordings.program(about, record, table))


# --- counting ---------------------------------------------------------------------------------------------------


def local(tensor: Any) -> Any:
    """What this rank holds of a tensor: of a DTensor its own part."""
    return getattr(tensor, "_local_tensor", tensor)


def held(tensors: Iterable[Any]) -> int:
    """Bytes of the tensors' elements on this rank, each tensor once; ``None`` counts nothing.

    Not of their storages: on the CPU a loaded shard may be a view of the file's whole tensor, a GPU's is a copy.
    """
    own = {part.data_ptr(): part.nbytes for part in (local(tensor) for tensor in tensors if tensor is not None)}
    return sum(own.values())


def optimizer_states(optimizer: Any) -> int:
    """Bytes of the optimizer's states on this rank without its step counters."""
    values = (value for state in optimizer.state.values() for value in state.values())
    return held(value for value in values if hasattr(value, "numel") and value.numel() > 1)


@contextmanager
def packed(own: Iterable[Any]) -> Iterator[dict[int, Any]]:
    """The local tensors that autograd saves meanwhile, one for each storage, but for those of ``own`` tensors.

    Parameters and views of them never count: engines gather them into storages that come and go.
    """
    import torch

    known = {local(tensor).untyped_storage().data_ptr() for tensor in own}
    kept: dict[int, Any] = {}

    def pack(tensor: Any) -> Any:
        part = local(tensor)
        storage = part.untyped_storage()
        weight = isinstance(tensor if tensor._base is None else tensor._base, torch.nn.Parameter)
        if not weight and storage.data_ptr() not in known:
            kept[storage.data_ptr()] = part
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield kept


@contextmanager
def saved_by(model: Any, vocabulary: Iterable[int]) -> Iterator[dict[str, int]]:
    """Bytes that autograd saves in one forward pass: in the second decoder layer, and of logits.

    Filled when the block is left. Logits are what has one of ``vocabulary`` as its last dimension.
    """
    found: dict[str, int] = {}
    layers = getattr(model, "get_base_model", lambda: model)().model.layers
    marks: list[int] = []
    with packed(model.parameters()) as kept:
        hooks = [
            layers[index].register_forward_pre_hook(lambda *_: marks.append(_bytes(kept.values()))) for index in (1, 2)
        ]
        yield found
    for hook in hooks:
        hook.remove()
    wide = set(vocabulary)
    found["layer"] = marks[1] - marks[0]
    found["logits"] = _bytes(part for part in kept.values() if part.dim() > 1 and part.shape[-1] in wide)
    kept.clear()


def _bytes(parts: Iterable[Any]) -> int:
    return sum(part.untyped_storage().nbytes() for part in parts)


def transformers_steps(case: Mapping[str, Any], vocabulary: Iterable[int], **how: Any) -> dict[str, dict[str, int]]:
    """Two steps with torch's AdamW of a model that transformers splits while it loads it, as ``how`` says."""
    import torch.distributed as dist
    from transformers import AutoModelForCausalLM

    from bench.ranks.small_llama import adapted, batch_of, made

    dist.init_process_group("gloo")
    with tempfile.TemporaryDirectory() as folder:
        folders = [folder]
        dist.broadcast_object_list(folders)
        if dist.get_rank() == 0:
            made(case).save_pretrained(folders[0])
        dist.barrier()
        attention = case["spec"]["attention"]
        load = AutoModelForCausalLM.from_pretrained
        model = load(folders[0], dtype="auto", attn_implementation=attention, **how).train()
        dist.barrier()
    if case["spec"].get("method") == "lora":
        model = adapted(model, case["spec"])
    ids = batch_of(case)
    return torch_steps(model, vocabulary, {"input_ids": ids, "labels": ids})


def torch_steps(
    model: Any, vocabulary: Iterable[int], batch: Mapping[str, Any], around: Callable[[], Any] = nullcontext
) -> dict[str, dict[str, int]]:
    """Two steps of torch's AdamW on ``batch``, each inside ``around``: live bytes by phase, and what autograd saves."""
    import torch

    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-3, foreach=False)
    phases = {"initialize": {"parameters": held(model.parameters())}}
    for _ in range(2):
        with around():
            with saved_by(model, vocabulary) as found:
                loss = model(**batch, use_cache=False).loss
            loss.backward()
        phases["backward"] = {
            "parameters": held(model.parameters()),
            "gradients": held(parameter.grad for parameter in model.parameters()),
        }
        optimizer.step()
        optimizer.zero_grad()
    phases["step"] = {"parameters": held(model.parameters()), "optimizer_states": optimizer_states(optimizer)}
    return {**phases, "saved": found}


def engine_steps(
    case: Mapping[str, Any], model: Any, vocabulary: Iterable[int], batch: Mapping[str, Any], mpu: Any = None
) -> dict[str, dict[str, int]]:
    """Two steps of DeepSpeed's engine on ``batch``: live bytes by phase, and what autograd saves."""
    import deepspeed

    from bench.ranks.zero_live import live

    config = case["spec"]["deepspeed_config"]
    deepspeed.init_distributed(dist_backend="gloo", verbose=False)
    engine, *_ = deepspeed.initialize(model=model, config=config, model_parameters=model.parameters(), mpu=mpu)
    phases = {"initialize": live(engine)}
    for _ in range(2):
        with saved_by(engine.module, vocabulary) as found:
            loss = engine(**batch, use_cache=False).loss
        engine.backward(loss)
        del loss
        phases["backward"] = live(engine)
        engine.step()
    return {**phases, "step": live(engine), "saved": found}
