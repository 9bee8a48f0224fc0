"""Torch's own count of an evaluation between training steps under fake tensors, against lintfit. No GPU is needed.

    python -m bench.fake_evaluation --out bench/results/fake_evaluation.json      # record (needs the bench extra)
    python -m bench.fake_evaluation --compare bench/results/fake_evaluation.json  # against lintfit, no torch

A training step as in :mod:`bench.fake_tensors`, then batches as the Trainer's ``evaluation_loop`` runs them: the model
in evaluation mode under ``no_grad``, the loss kept, the logits dropped, or put into transformers' own
``EvalLoopContainer`` where metrics want them. The figure is the peak of all batches but the first, whose copies of
weights autocast makes anew.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from bench import recordings  # noqa: E402
from bench.fake_cases import EVERY, GC, spec_of  # noqa: E402
from bench.fake_cases import MODELS as LARGE  # noqa: E402
from bench.fake_vlm_cases import MODELS as SEEING  # noqa: E402


def _evaluation(**keys: Any) -> dict[str, Any]:
    return {"evaluation": keys}


FEW = {
    "llama 8 B, few words": 4, "gpt-j 6.1 B": 4, "mixtral 46.7 B": 2, "gemma2 2.6 B, tied": 4, "olmoe 6.9 B": 4,
    "command r7b, few words": 4, "pythia 6.9 B, few words": 4,
}  # fmt: skip
"""Layers that are enough of a model: evaluation runs one after the other."""
CASES: tuple[tuple[str, str, int, int, dict[str, Any]], ...] = (
    ("llama 1.2 B, tied", "bf16", 4, 2048, {}),
    ("llama 1.2 B, tied", "fp32 + autocast", 4, 2048, {}),
    ("llama 1.2 B, tied", "bf16 + autocast", 8, 1024, {**EVERY, **GC}),
    ("llama 8 B, few words", "bf16", 8, 2048, {}),
    ("llama 8 B, few words", "bf16 + autocast", 8, 2048, EVERY),
    ("llama 8 B, few words", "bf16", 4, 2048, {"attention": "eager"}),
    ("llama 8 B, few words", "fp32", 2, 2048, {}),
    ("gemma2 2.6 B, tied", "bf16", 2, 2048, {"attention": "eager"}),
    ("gpt2 355 M, tied", "fp32 + autocast", 8, 1024, {}),
    ("gpt2 355 M, tied", "fp32", 8, 1024, {"attention": "eager"}),
    ("gpt-j 6.1 B", "bf16 + autocast", 4, 1024, {**EVERY, "attention": "eager"}),
    ("mixtral 46.7 B", "bf16", 2, 2048, {"optimizer": "sgd", **GC}),
    ("olmoe 6.9 B", "bf16", 4, 2048, {"optimizer": "sgd"}),
    ("olmoe 6.9 B", "bf16 + autocast", 4, 2048, EVERY),
    ("command r7b, few words", "fp32 + autocast", 4, 2048, GC),
    ("command r7b, few words", "bf16", 8, 2048, {**EVERY, **GC}),
    ("pythia 6.9 B, few words", "bf16", 4, 2048, {"attention": "eager", "optimizer": "sgd"}),
    ("phi3 3.8 B", "bf16 + autocast", 4, 2048, {**EVERY, **GC}),
    ("llama 1.2 B, tied", "bf16", 1, 2048, {**GC, **_evaluation(batch_size=8)}),
    ("llama 1.2 B, tied", "fp32 + autocast", 1, 2048, {**GC, **_evaluation(batch_size=8)}),
    ("llama 8 B, few words", "bf16 + autocast", 1, 1024, {**EVERY, **GC, **_evaluation(batch_size=16)}),
    ("gemma2 2.6 B, tied", "bf16", 1, 1024, {"attention": "eager", **GC, **_evaluation(batch_size=8)}),
    ("gpt2 355 M, tied", "fp32 + autocast", 2, 1024, {**_evaluation(batch_size=8)}),
    ("mixtral 46.7 B", "bf16", 1, 1024, {"optimizer": "sgd", **GC, **_evaluation(batch_size=8)}),
    ("llama 1.2 B, tied", "bf16", 8, 1024, {**GC, **_evaluation(batch_size=2)}),
    ("llama 1.2 B, tied", "bf16", 1, 1024, {**GC, **_evaluation(batch_size=4, predictions="kept", samples=32)}),
    (
        "llama 1.2 B, tied", "fp32 + autocast", 1, 1024,
        {**GC, **_evaluation(batch_size=4, predictions="kept", accumulation_steps=4)},
    ),
    (
        "phi3 3.8 B", "bf16 + autocast", 1, 2048,
        {**EVERY, **GC, **_evaluation(batch_size=8, predictions="kept", accumulation_steps=1)},
    ),
    (
        "llama 1.2 B, tied", "bf16", 1, 1024,
        {**GC, **_evaluation(batch_size=4, predictions="kept", accumulation_steps=6, concat_batches=False)},
    ),
    ("llama 1.2 B, tied", "bf16", 1, 2048, {"loss": "chunked", **GC, **_evaluation(batch_size=8)}),
    ("llama 1.2 B, tied", "fp32 + autocast", 1, 2048, {"loss": "chunked", **GC, **_evaluation(batch_size=8)}),
    (
        "llama 1.2 B, tied", "bf16", 1, 2048,
        {"loss": "chunked", **GC, **_evaluation(batch_size=8, predictions="dropped")},
    ),
    (
        "llama 1.2 B, tied", "fp32 + autocast", 1, 2048,
        {"loss": "chunked", **GC, **_evaluation(batch_size=8, predictions="dropped")},
    ),
    (
        "llava 1.5 7 B", "bf16", 2, 1024,
        {"images": 1, "frozen_modules": ["vision_tower"], "optimizer": "sgd", **_evaluation(batch_size=2)},
    ),
    ("llama 3.2 vision 11 B", "bf16", 1, 2048, {"images": 1, "optimizer": "sgd", **_evaluation(batch_size=1)}),
    ("llama 3.2 vision 11 B", "bf16 + autocast", 2, 256, {"images": 2, **EVERY, **_evaluation(batch_size=2)}),
    *(
        (model, precision, 1, 1024, {**more, **GC, **_evaluation(batch_size=4, predictions=held, graph=graph)})
        for model, precision, more in (
            ("llama 1.2 B, tied", "bf16", {}),
            ("llama 1.2 B, tied", "fp32 + autocast", {}),
            ("llama 8 B, few words", "bf16 + autocast", EVERY),
        )
        for held, graph in (("held", False), ("held", True), ("dropped", True))
    ),
    *(
        (model, precision, 1, 512, {**more, **GC, **_evaluation(batch_size=batch, generates="only", **asked)})
        for model, precision, batch, more, asked in (
            ("llama 1.2 B, tied", "bf16", 16, {}, {"prompt_len": 512, "new_tokens": 4}),
            ("llama 1.2 B, tied", "bf16", 1024, {}, {"prompt_len": 4, "new_tokens": 12}),
            ("llama 1.2 B, tied", "fp32 + autocast", 512, {}, {"prompt_len": 4, "new_tokens": 8}),
            ("llama 1.2 B, tied", "bf16", 1024, {"attention": "eager"}, {"prompt_len": 4, "new_tokens": 12}),
            ("llama 8 B, few words", "bf16 + autocast", 32, EVERY, {"prompt_len": 256, "new_tokens": 4}),
            ("llama 8 B, few words", "bf16 + autocast", 512, EVERY, {"prompt_len": 8, "new_tokens": 24}),
            ("gemma2 2.6 B, tied", "bf16", 512, {"attention": "eager"}, {"prompt_len": 4, "new_tokens": 12}),
            ("qwen3 4 B, tied", "bf16", 32, {}, {"prompt_len": 128, "new_tokens": 4}),
            ("mixtral 46.7 B", "bf16", 16, {"optimizer": "sgd"}, {"prompt_len": 256, "new_tokens": 4}),
            ("gpt2 355 M, tied", "fp32 + autocast", 512, {}, {"prompt_len": 8, "new_tokens": 24}),
        )
    ),
)  # fmt: skip


def cases() -> Iterator[dict[str, Any]]:
    """Every case: its name and lintfit's spec of it."""
    for model, precision, batch, seq, more in CASES:
        config = {**(LARGE | SEEING)[model]}
        if model in FEW:
            config["n_layer" if "n_layer" in config else "num_hidden_layers"] = FEW[model]
        words = ["LoRA"] if more.get("method") == "lora" else []
        words += ["checkpointing"] if more.get("gradient_checkpointing") else []
        words += [f"{more['images']} images" if more["images"] > 1 else "an image"] if "images" in more else []
        words += [more["attention"]] if "attention" in more else []
        words += ["TRL's loss"] if more.get("loss") == "chunked" else []
        words += [" ".join(f"{key} {value}" for key, value in more.get("evaluation", {}).items())]
        yield {
            "name": ", ".join([model, precision, f"{batch} × {seq}", *filter(None, words)]),
            "spec": spec_of(config, precision, batch, seq, more),
        }


def run(case: dict[str, Any]) -> dict[str, int]:
    """Peak bytes of the evaluation from its second batch on."""
    from bench import fake_device, fake_models
    from bench.fake_tensors import Log, train_step

    spec = case["spec"]
    with fake_device.machine() as mode, fake_device.Counter(log := Log()), contextlib.ExitStack() as stack:
        model = fake_models.build(spec, mode)
        for tensor in (*model.parameters(), *model.buffers()):
            log.see(tensor)
        optimizer = fake_models.make_optimizer(model, spec)
        if spec.get("images"):
            from bench import fake_vlm

            stack.enter_context(fake_vlm.features(model, fake_vlm.pictures(spec)))
        train_step(model, optimizer, spec, log, None, [], last=False)
        model.eval()
        by_itself = chosen(spec).get("graph") or chosen(spec).get("predictions") == "held"
        generates = chosen(spec).get("generates") == "only"
        (generate if generates else evaluate_by_itself if by_itself else evaluate)(model, spec, log)
    return {"allocated_bytes": log.replay()["evaluation"]}


def chosen(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec's evaluation."""
    found: dict[str, Any] = spec.get("evaluation", {})
    return found


def generate(model: Any, spec: dict[str, Any], log: Any) -> None:
    """A loop that asks for answers alone: batches of prompts through transformers' ``generate``, every answer to its
    full length."""
    import torch
    from accelerate.utils import convert_outputs_to_fp32

    from bench import fake_ppo
    from bench.fake_trl import _Values

    asked = chosen(spec)
    model.config.use_cache = model.generation_config.use_cache = True
    if spec["mixed_precision"] != "no":
        inner = getattr(model, "base_model", model)
        inner = getattr(inner, "model", model) if inner is not model else model
        inner.forward = convert_outputs_to_fp32(torch.autocast("cuda", dtype=torch.bfloat16)(inner.forward))
    for step in range(2):
        log.phase = "evaluation" if step else "first evaluation"
        ids = torch.empty(asked["batch_size"], asked["prompt_len"], dtype=torch.long, device="cuda:0")
        with fake_ppo.to_the_end(), _Values(0):
            model.generate(
                input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=asked["new_tokens"],
                num_beams=asked.get("beams", 1), do_sample=False, pad_token_id=0,
            )  # fmt: skip


def evaluate_by_itself(model: Any, spec: dict[str, Any], log: Any) -> None:
    """A loop like those of transformers' ``no_trainer`` examples, whose variable holds what a batch gave to the next;
    with ``graph`` nobody switches gradients off."""
    import torch

    asked = chosen(spec)
    losses, outputs = [], None
    for step in range(3):
        log.phase = "evaluation" if step > 1 else "first evaluations"
        inputs = torch.empty(asked["batch_size"], spec["seq_len"], dtype=torch.long, device="cuda:0")
        with contextlib.nullcontext() if asked["graph"] else torch.no_grad():
            outputs = _prepared(model, inputs, spec)
        losses.append(outputs.loss.detach())
        if asked["predictions"] == "dropped":
            outputs = None


def _prepared(model: Any, ids: Any, spec: dict[str, Any]) -> Any:
    """The forward of a model that Accelerate has prepared, which hands everything on in fp32."""
    import torch
    from accelerate.utils import convert_outputs_to_fp32

    from bench.fake_tensors import answers

    def forward() -> Any:
        return model(input_ids=ids, labels=answers(model, ids, spec))

    if spec["mixed_precision"] == "no":
        return forward()
    return convert_outputs_to_fp32(torch.autocast("cuda", dtype=torch.bfloat16)(forward))()


def evaluate(model: Any, spec: dict[str, Any], log: Any) -> None:
    """``Trainer.evaluation_loop`` on one rank: two batches, or as many as stay on the GPU together."""
    import torch
    from transformers.trainer_pt_utils import EvalLoopContainer

    from bench.fake_tensors import images_of

    asked = chosen(spec)
    size = asked.get("batch_size", spec["micro_batch_size"])
    keeps = asked.get("predictions") == "kept"
    window = asked.get("accumulation_steps") or asked.get("samples", 2 * size) // size

    if spec.get("loss") == "chunked":
        from bench import fake_trl

        fake_trl.prepare(model, spec)
    losses = EvalLoopContainer(asked.get("concat_batches", True))
    kept = EvalLoopContainer(asked.get("concat_batches", True))
    for step in range(max(2, window)):
        log.phase = "evaluation" if step else "first evaluation"
        inputs = torch.empty(size, spec["seq_len"], dtype=torch.long, device="cuda:0")
        images = images_of(model, inputs, spec)
        with torch.no_grad():
            loss, logits = _predict(model, inputs, images, spec, asked.get("predictions", "none") != "none")
            logits = logits if keeps else None
        losses.add(loss.repeat(size))
        if logits is not None:
            kept.add(logits)
        if asked.get("accumulation_steps") and (step + 1) % window == 0:
            losses.tensors = kept.tensors = None  # what ``to_cpu_and_numpy`` leaves
            del loss, logits, inputs, images


def _predict(model: Any, ids: Any, images: Any, spec: dict[str, Any], wanted: bool) -> tuple[Any, Any]:
    """``prediction_step`` of the Trainer, or of TRL's SFT trainer: the loss, and the logits where metrics want them."""
    import torch

    half = spec["mixed_precision"] != "no"

    def context() -> Any:
        return torch.autocast("cuda", dtype=torch.bfloat16) if half else contextlib.nullcontext()

    from bench.fake_tensors import answers

    if spec.get("loss") == "chunked":
        from bench import fake_trl

        return fake_trl.sft(model, ids, context, wanted)
    with context():
        labels = answers(model, ids, spec)
        outputs = model(input_ids=ids, labels=labels, num_items_in_batch=labels.numel(), **images)
    loss, logits = outputs.loss, outputs.logits
    if half:
        logits = logits.float()  # accelerate's convert_outputs_to_fp32
    del outputs
    return loss, logits if wanted else None


def record(out: Path, only: str) -> int:
    """Count the cases whose name contains ``only``; the others of the file stay."""
    return recordings.record(out, only, cases(), run, ("torch", "transformers", "peft"))


def rows(recording: dict[str, Any]) -> Iterator[tuple[str, int, int]]:
    """Case, torch's bytes, lintfit's bytes."""
    from lintfit.memory import estimate
    from lintfit.memory.reading.parse import spec_from_mapping

    versions = {"transformers": recording["versions"]["transformers"]}
    for case in recording["cases"]:
        moments = estimate(spec_from_mapping({**case["spec"], "versions": versions})).moments
        guess = max(moment.allocated for moment in moments if moment.phase == "evaluate")
        yield case["name"], case["allocated_bytes"], guess


def table(recording: dict[str, Any]) -> str:
    """A Markdown table of all cases with the difference in per cent."""
    return recordings.peaks_table(rows(recording), "evaluation")


if __name__ == "__main__":
    sys.exit(recordings.program(__doc__, record, table))
