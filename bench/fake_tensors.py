"""Torch's own count of a real training step under fake tensors, against lintfit. No GPU is needed.

    python -m bench.fake_tensors --out bench/results/fake_tensors.json        # record (needs the bench extra)
    python -m bench.fake_tensors --compare bench/results/fake_tensors.json    # against lintfit, no torch

The model is made from its config on the meta device, and every parameter becomes a fake tensor on ``cuda:0``. Then the
real code of transformers, PEFT and torch runs two steps the way the Trainer does: forward under autocast, loss,
backward, clipping, optimizer, ``zero_grad``. A dispatch mode notes birth and death of every storage; replaying them in
blocks of 512 bytes gives what ``torch.cuda.max_memory_allocated`` would say.

Where a torch without CUDA takes another way than one with it, the count is put right:

* attention: flash for half precision without a mask, the memory-efficient kernel for fp32 or with a mask, the
  reference path for fp32 with grouped heads (``sdp_utils.cpp``);
* ``silu`` has one kernel forward and one backward on CUDA;
* the engine adds gradients in place where nobody else holds the buffer; under a dispatch mode it never does;
* FlashAttention 2 is torch's flash behind transformers' own code (``bench/fake_flash.py``);
* TRL's Triton kernels write in place (``bench/fake_trl.py``);
* the embedding's backward needs fp32 rows and sorted indices above 3072 tokens (``Embedding.cu``), that of fused
  attention fp32 sums of the queries' gradient (``flash_api.cpp``, ``attention_backward.cu``).

Not counted: kernels' own scratch elsewhere, cuBLAS workspaces, the CUDA context, gaps between blocks.
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from bench import recordings  # noqa: E402
from bench.fake_cases import cases  # noqa: E402
from lintfit.catalog import gpus  # noqa: E402

BLOCK = 512

# --- counting ---------------------------------------------------------------------------------------------------


class Log:
    """Births and deaths of storages, in order, with the phase in which they happen."""

    def __init__(self) -> None:
        self.events: list[tuple[int, int, str]] = []
        """(storage, bytes: negative for a death, phase)."""
        self.heirs: dict[int, int] = {}
        """A sum of gradients by the storage of its first term, which torch would have added into."""
        self.phase = "load"
        self._alive: dict[int, tuple[int, Any]] = {}
        self._next = 0

    def see(self, tensor: Any, size: int | None = None) -> int:
        """Note a tensor's storage if it is new; its number."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        known = self._alive.get(key)
        if known is not None:
            return known[0]
        number, self._next = self._next, self._next + 1
        nbytes = storage.nbytes() if size is None else size
        self._alive[key] = (number, weakref.ref(storage, lambda _: self._dies(key, nbytes)))
        self.events.append((number, nbytes, self.phase))
        return number

    def passing(self, *sizes: int) -> None:
        """Scratch that lives only inside a kernel, all at once."""
        numbers = range(self._next, self._next + len(sizes))
        self._next += len(sizes)
        self.events += [(number, size, self.phase) for number, size in zip(numbers, sizes, strict=True)]
        self.events += [(number, -size, self.phase) for number, size in zip(numbers, sizes, strict=True)]

    def _dies(self, key: int, nbytes: int) -> None:
        number, _ = self._alive.pop(key)
        self.events.append((number, -nbytes, self.phase))

    def in_place(self) -> Iterator[tuple[int, int, int, str]]:
        """The events with their index, every sum in the block of its first term, which torch adds into."""
        block: dict[int, int] = {}
        handed: set[int] = set()
        for index, (number, size, phase) in enumerate(self.events):
            term = self.heirs.get(number)
            if size > 0 and term is not None and self._dies_next(index, term):
                block[number] = block.pop(term, term)
                handed.add(term)
            elif size > 0 or number not in handed:
                yield index, block.get(number, number), size, phase

    def replay(self) -> dict[str, int]:
        """Peak of each phase in bytes, every storage rounded up to a block."""
        live = 0
        sizes: dict[int, int] = {}
        peaks: dict[str, int] = {}
        for _, number, size, phase in self.in_place():
            if size <= 0:
                live -= sizes.pop(number, 0)
                continue
            sizes[number] = rounded(size)
            live += sizes[number]
            peaks[phase] = max(peaks.get(phase, 0), live)
        return peaks

    def _dies_next(self, index: int, term: int) -> bool:
        """Whether the first term of a sum dies before anything else is born: nobody else held it."""
        for number, size, _ in self.events[index + 1 :]:
            if size > 0:
                return False
            if number == term:
                return True
        return False


def rounded(size: int) -> int:
    """Bytes of a block of torch's caching allocator."""
    return -(-size // BLOCK) * BLOCK


# --- one case ---------------------------------------------------------------------------------------------------


def run(case: dict[str, Any]) -> dict[str, Any]:
    """Two steps of a case: the peak, the peaks of the phases, and the bytes of what lasts."""
    from bench import fake_device, fake_flash, fake_models

    spec = case["spec"]
    padded = bool(spec.get("padded_batches")) and not spec.get("images")
    with (
        fake_device.machine(padded=padded, capability=capability(spec)) as mode,
        fake_device.Counter(log := Log()),
        contextlib.ExitStack() as stack,
    ):
        if spec["attention"] == "flash_attention_2":
            stack.enter_context(fake_flash.installed())
        model = fake_models.build(spec, mode)
        for tensor in (*model.parameters(), *model.buffers()):
            log.see(tensor)
        reference = fake_models.reference(spec, mode)
        for tensor in () if reference is None else reference.parameters():
            log.see(tensor)
        if spec.get("trainer") == "ppo":
            from bench import fake_ppo

            model, optimizer = fake_ppo.train(model, reference, spec, mode, log)
        else:
            optimizer = fake_models.make_optimizer(model, spec)
            if spec.get("images"):
                from bench import fake_vlm

                stack.enter_context(fake_vlm.features(model, fake_vlm.pictures(spec)))
            variable: list[Any] = []
            for step in range(2):
                train_step(model, optimizer, spec, log, reference, variable, last=step == 1)
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        parts = {
            "parameters": _bytes(model.parameters()),
            "gradients": _bytes(trained),
            "optimizer_states": _bytes(
                value for state in optimizer.state.values() for value in state.values() if hasattr(value, "device")
            ),
        }
    peaks = log.replay()
    return {
        "allocated_bytes": max(peaks.values()),
        "phases": peaks,
        "components": parts,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }


def capability(spec: dict[str, Any]) -> tuple[int, int]:
    """The compute capability of the spec's GPU; Ampere's where it names none."""
    gpu = gpus.lookup(spec["gpu"]) if "gpu" in spec else None
    return (gpu.compute_capability if gpu is not None else None) or (8, 0)


def _bytes(tensors: Any) -> int:
    seen: dict[int, int] = {}
    for tensor in tensors:
        if tensor.device.type == "cuda":
            seen[tensor.untyped_storage()._cdata] = rounded(tensor.untyped_storage().nbytes())
    return sum(seen.values())


def train_step(
    model: Any, optimizer: Any, spec: dict[str, Any], log: Log, reference: Any, variable: list[Any], *, last: bool
) -> None:
    """One optimizer step as transformers' Trainer and Accelerate run it.

    ``variable``: what a loop of the script's own calls ``outputs``, where the spec has one.
    """
    import torch

    prefix = "" if last else "first "
    batch, seq = spec["micro_batch_size"], spec["seq_len"]
    pairs = 2 if spec.get("trainer") in ("dpo", "orpo", "cpo", "reward") else 1
    zeroed = spec.get("zero_grad", "step")
    if zeroed == "forward":
        optimizer.zero_grad()
    for _ in range(spec.get("gradient_accumulation_steps", 1)):
        ids = torch.empty(pairs * batch, seq, dtype=torch.long, device="cuda:0")
        log.phase = f"{prefix}forward"
        images = images_of(model, ids, spec)  # the Trainer's loop holds the batch through the step
        loss = _forward(model, ids, spec, reference, images, variable)
        log.phase = f"{prefix}backward"
        if zeroed == "backward":
            optimizer.zero_grad()
        loss.backward()
        del loss, ids, images
    log.phase = f"{prefix}step"
    torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0, foreach=True)
    optimizer.step()
    if zeroed in ("step", "never"):
        optimizer.zero_grad(set_to_none=zeroed == "step")
    if spec.get("loop_outputs") == "backward":
        variable.clear()


def images_of(model: Any, ids: Any, spec: dict[str, Any]) -> dict[str, Any]:
    """The pictures of a batch as the model's inputs; none where the spec has none."""
    from bench import fake_vlm

    return fake_vlm.images(model.config, ids, spec) if spec.get("images") else {}


def answers(model: Any, ids: Any, spec: dict[str, Any]) -> Any:
    """The labels of a batch: the tokens themselves, or what a decoder is to make of what its encoder reads."""
    if not getattr(model.config, "is_encoder_decoder", False):
        return ids
    return ids.new_empty(ids.shape[0], spec.get("decoder_seq_len", ids.shape[1]))


def _forward(
    model: Any, ids: Any, spec: dict[str, Any], reference: Any, images: dict[str, Any], variable: list[Any]
) -> Any:
    import torch
    from accelerate.utils import convert_outputs_to_fp32

    from bench.fake_models import DTYPES

    half = spec["mixed_precision"] != "no"

    def context() -> Any:
        return torch.autocast("cuda", dtype=DTYPES[spec["mixed_precision"]]) if half else contextlib.nullcontext()

    if spec.get("trainer", "classification") != "classification":
        from bench import fake_trl

        match spec["trainer"]:
            case "dpo":
                return fake_trl.dpo(model, reference, ids, context)
            case "kto":
                return fake_trl.kto(model, reference, ids, context)
            case "orpo" | "cpo":
                return fake_trl.odds(spec["trainer"], model, ids, context)
            case "reward":
                return fake_trl.reward(model, ids, context)
        return fake_trl.grpo(model, reference, ids, spec["generation"]["completion_len"], context)
    padding = {"attention_mask": torch.ones_like(ids)} if spec.get("padded_batches") and not images else {}
    scores = spec.get("trainer") == "classification"
    words = answers(model, ids, spec)
    labels = {"labels": ids[:, 0].clone()} if scores else {"labels": words, "num_items_in_batch": words.numel()}

    def passed() -> Any:
        with context():
            return model(input_ids=ids, **labels, **images, **padding)

    outputs = convert_outputs_to_fp32(passed)() if half and spec.get("upcast_outputs", True) else passed()
    if spec.get("loop_outputs", "dropped") != "dropped":
        variable[:] = [outputs]
    return outputs.loss


# --- recording and comparing ------------------------------------------------------------------------------------

PACKAGES = ("torch", "transformers", "peft")


def record(out: Path, only: str) -> int:
    """Run the cases whose name contains ``only`` and write what torch counted; the others of a file stay."""
    return recordings.record(out, only, cases(), run, PACKAGES)


def rows(recording: dict[str, Any]) -> Iterator[tuple[str, int, int]]:
    """Case, torch's bytes, lintfit's bytes."""
    from lintfit.memory import estimate
    from lintfit.memory.reading.parse import spec_from_mapping

    versions = {"transformers": recording["versions"]["transformers"]}
    for case in recording["cases"]:
        guess = estimate(spec_from_mapping({**case["spec"], "versions": versions}))
        yield case["name"], case["allocated_bytes"], guess.allocated_bytes


def table(recording: dict[str, Any]) -> str:
    """A Markdown table of all cases with the difference in per cent."""
    return recordings.peaks_table(rows(recording), "case")


if __name__ == "__main__":
    sys.exit(recordings.program(__doc__, record, table))
