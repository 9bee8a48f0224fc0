"""Real pipeline parallelism on a CPU: torch's 1F1B schedule over stages of a small Llama, by stage.

    python -m bench.ranks.pipeline_parallel --out tests/memory/pipeline_parallel_cpu.json  # needs the bench extra
    python -m bench.ranks.pipeline_parallel --compare tests/memory/pipeline_parallel_cpu.json  # no torch

Counted are a stage's parameters, gradients and optimizer states, the most that autograd holds at once over all
micro-batches in flight, and the buffers of the exchange. transformers' own pipeline (``pp_size``) has no backward, and
DeepSpeed's ``PipelineModule`` takes no transformers model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from bench.ranks.processes import held, optimizer_states, program
from bench.ranks.small_llama import MODEL, batch_of, made

BATCH, SEQ = 2, 64


def cases() -> list[dict[str, Any]]:
    """The ends of two and of four stages; torch wants no fewer micro-batches than stages."""
    return [_case(stages, 2 * stages, which) for stages in (2, 4) for which in ("first", "last")]


def _case(stages: int, micro_batches: int, which: str) -> dict[str, Any]:
    spec = {
        "gpus": stages, "pipeline_parallel": stages, "gradient_accumulation_steps": micro_batches, "engine": "ddp",
        "weights_dtype": "bf16", "attention": "eager", "micro_batch_size": BATCH, "seq_len": SEQ,
        "optimizer": "adamw_torch",
    }  # fmt: skip
    return {
        "name": f"1F1B, {stages} stages, {micro_batches} micro-batches, {which} stage",
        "spec": spec,
        "stage": which,
    }


# --- one rank ---------------------------------------------------------------------------------------------------


def worker(rank: int, case: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Two steps of one stage; only the stage that the case is about says something."""
    import torch
    import torch.distributed as dist
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    spec = case["spec"]
    stages, parts = spec["gpus"], spec["gradient_accumulation_steps"]
    module = _stage(made(case), rank, stages)
    stage = PipelineStage(module, rank, stages, torch.device("cpu"))
    schedule = Schedule1F1B(stage, parts, loss_fn=_loss)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, foreach=False)
    ids = torch.cat([batch_of(case) for _ in range(parts)])
    phases = {}
    for _ in range(2):
        with _Alive(module.parameters()) as alive:
            if rank == 0:
                schedule.step(ids)
            elif rank == stages - 1:
                schedule.step(target=ids)
            else:
                schedule.step()
        phases["backward"] = {
            "parameters": held(module.parameters()),
            "gradients": held(parameter.grad for parameter in module.parameters()),
        }
        optimizer.step()
        optimizer.zero_grad()
    phases["step"] = {"parameters": held(module.parameters()), "optimizer_states": optimizer_states(optimizer)}
    own = rank == (0 if case["stage"] == "first" else stages - 1)
    phases["stage"] = {"in_flight": alive.most, "exchange": _exchanged(stage, parts)}
    return phases if own else {phase: dict.fromkeys(found, 0) for phase, found in phases.items()}


def _exchanged(stage: Any, parts: int) -> int:
    infos = [info for table in (stage.args_recv_info, stage.grad_recv_info) for info in table.values()]
    return held(each.buffer for info in infos for each in info if hasattr(each, "buffer"))


def _stage(model: Any, rank: int, stages: int) -> Any:
    """Embedding and first layers, layers, or last layers, norm and head."""
    import torch

    inner = model.model
    each = len(inner.layers) // stages

    class Stage(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = inner.embed_tokens if rank == 0 else None
            self.layers = torch.nn.ModuleList(inner.layers[rank * each : (rank + 1) * each])
            last = rank == stages - 1
            self.norm, self.head = (inner.norm, model.lm_head) if last else (None, None)
            self.rotary = inner.rotary_emb

        def forward(self, x: Any) -> Any:
            x = self.embedding(x) if self.embedding is not None else x
            positions = torch.arange(x.shape[1])[None]
            mask = torch.full((1, 1, x.shape[1], x.shape[1]), -1e9, dtype=x.dtype).triu(1)
            turned = self.rotary(x, positions)
            for layer in self.layers:
                x = layer(x, attention_mask=mask, position_embeddings=turned, position_ids=positions)
            return self.head(self.norm(x)) if self.norm is not None else x

    return Stage()


def _loss(logits: Any, ids: Any) -> Any:
    import torch

    return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), ids.flatten())


class _Alive:
    """The most bytes that autograd has saved at once, each storage once, without parameters."""

    def __init__(self, own: Iterable[Any]) -> None:
        self.known = {tensor.untyped_storage().data_ptr() for tensor in own}
        self.uses: Counter[int] = Counter()
        self.now = self.most = 0

    def __enter__(self) -> _Alive:
        import torch

        self.hooks = torch.autograd.graph.saved_tensors_hooks(lambda tensor: _Saved(self, tensor), lambda x: x.tensor)
        self.hooks.__enter__()
        return self

    def __exit__(self, *failure: Any) -> None:
        self.hooks.__exit__(*failure)

    def take(self, storage: Any) -> None:
        pointer = storage.data_ptr()
        if pointer in self.known:
            return
        self.uses[pointer] += 1
        if self.uses[pointer] == 1:
            self.now += storage.nbytes()
            self.most = max(self.most, self.now)

    def drop(self, storage: Any) -> None:
        pointer = storage.data_ptr()
        if pointer in self.known:
            return
        self.uses[pointer] -= 1
        if not self.uses[pointer]:
            self.now -= storage.nbytes()


class _Saved:
    """A saved tensor as long as its node holds it."""

    def __init__(self, alive: _Alive, tensor: Any) -> None:
        self.alive, self.tensor = alive, tensor
        alive.take(tensor.untyped_storage())

    def __del__(self) -> None:
        self.alive.drop(self.tensor.untyped_storage())


if __name__ == "__main__":
    program(__doc__, MODEL, cases(), worker, ("torch", "transformers"))
