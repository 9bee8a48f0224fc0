"""What a run is, in two lines: the model and how it is trained on what, and its batch."""

from __future__ import annotations

from lintfit.memory.spec import Spec
from lintfit.memory.tensors.frozen_models import name_of
from lintfit.memory.tensors.frozen_parts import frozen_parts, trained_parameters
from lintfit.report import Line, View
from lintfit.report.runs import engine, evaluates, flowed, what_runs
from lintfit.run.called import model_name
from lintfit.run.model import Run
from lintfit.settings.model import spoken

_ALGORITHMS = {"adamw": "AdamW", "lion": "Lion", "sgd": "SGD", "adafactor": "Adafactor", "rmsprop": "RMSprop"}
_LIBRARIES = frozenset({"torch", "bnb", "32bit", "hf"})
"""Parts of an optimizer's name that say whose it is, and nothing of its memory."""
_VENDORS = ("NVIDIA ", "GeForce ", "AMD ")


def header(run: Run, view: View) -> list[Line]:
    """Its name, and :func:`heading` below it."""
    return [[(run.id, "path")], *heading(run, view)]


def heading(run: Run, view: View, compact: bool = False) -> list[Line]:
    """``Baichuan-7B · full fine-tuning · fp32 weights under fp16 autocast · AdamW (fused) · DDP on 8 × RTX 3090``, and
    the batch below it, ``compact`` behind it; what is not known is left out."""
    what, batch = run_words(run), _batch(run, run.spec) if run.spec is not None else []
    parts = [[*what, *batch]] if compact else [what, *([batch] if batch else [])]
    return [line for part in parts for line in flowed(_plain(part), view.width, "  ", " · ")]


def run_words(run: Run) -> list[str]:
    """The model, what of it is trained in which precision by which optimizer, and on what."""
    spec = run.spec
    if spec is None:
        return [*what_runs(run), _started(run)]
    beside = [f"beside it {_short(name_of(each))} ({each.weights_dtype})" for each in spec.frozen_models]
    trained = [_method(run, spec), _weights(spec), _optimizer(run, spec), _on(run, spec)]
    return [_short(model_name(run)), *beside, _roles(spec), *trained, _started(run)]


def _roles(spec: Spec) -> str:
    """The further models that a trainer holds beside the one that it trains."""
    if spec.trainer == "ppo":
        reference = ["a reference"] if spec.reference_model else []
        return f"PPO with {', '.join([*reference, 'a reward'])} and a value model"
    if not spec.reference_model:
        return ""
    return "beside it a reference model" if spec.trainer in _WORDS else f"{spec.trainer.upper()} with a reference model"


_WORDS = frozenset({"causal-lm", "classification", "reward"})
"""Trainers whose names are no abbreviations; a loop of a script's own may hold a reference beside these."""


def gpu_name(name: str) -> str:
    """A GPU as people call it: ``RTX 3090``."""
    for vendor in _VENDORS:
        name = name.removeprefix(vendor)
    return name


def _plain(words: list[str]) -> list[Line]:
    return [[(word, "")] for word in words if word]


def _short(model: str) -> str:
    """A model's name without its owner's."""
    return model.rpartition("/")[2] or model


def _method(run: Run, spec: Spec) -> str:
    if "method" in run.doubtful:
        return "what is trained is not known"
    if spec.method == "lora":
        return f"LoRA r={spec.lora_rank}"
    trained = f" of {trained_parameters(spec) / 1e9:.2g} B" if frozen_parts(spec).of_text else ""
    return f"full fine-tuning{trained}"


def _weights(spec: Spec) -> str:
    weights = f"{spec.quantization or spec.weights_dtype} weights"
    if spec.mixed_precision == "no":
        return weights
    if spec.engine in ("single", "ddp"):
        return f"{weights} under {spec.mixed_precision} autocast"
    return f"{weights}, {spec.mixed_precision} mixed precision"


def _optimizer(run: Run, spec: Spec) -> str:
    """``AdamW (fused)``, ``AdamW (paged, 8bit)``; a name that is not transformers' as it is."""
    if run.value("optimizer") == "deepspeed_cpu_adam":
        return "DeepSpeedCPUAdam"
    parts = spec.optimizer.split("_")
    names = [_ALGORITHMS[part] for part in parts if part in _ALGORITHMS]
    if len(names) != 1:
        return spec.optimizer
    kinds = [part for part in parts if part not in _ALGORITHMS and part not in _LIBRARIES]
    return names[0] + (f" ({', '.join(kinds)})" if kinds else "")


def _on(run: Run, spec: Spec) -> str:
    """``DDP on 8 × RTX 3090``; a count that is only assumed is said to be."""
    hardware = run.hardware
    name = gpu_name(hardware.gpu.name) if hardware.gpu is not None else "a GPU" if hardware.gpus == 1 else "GPUs"
    if hardware.gpu is None and hardware.gpus is not None:
        name = name if hardware.gpus == 1 else f"{hardware.gpus} {name}"
    elif hardware.gpus is not None:
        there = run.all_gpus is not None and run.settings["gpus"].provenance.kind == "option"
        assumed = " (all there are)" if there else ""
        name = f"{hardware.gpus} × {name}{assumed}"
    elif hardware.gpu is None:
        return engine(spec)
    nodes = f" on {hardware.nodes} nodes" if hardware.nodes > 1 else ""
    return f"{'any engine' if run.engine_open and not run.engine_by_name else engine(spec)} on {name}{nodes}"


def _started(run: Run) -> str:
    """``by litgpt finetune_lora (assumed)`` for a recipe that no launch line names, and where a script says itself how
    it is started."""
    if run.launch is not None and run.origin.path.suffix == ".py" and run.script is not None:
        return "as its docstring starts it" if run.script.document.path == run.origin.path else ""
    words = (run.usual_command or "").replace(run.origin.path.as_posix(), "").split()
    words = [word for word in words if word != "--config"]
    return f"by {' '.join(words)} (assumed)" if words else ""


def _batch(run: Run, spec: Spec) -> list[str]:
    """``batch 32 = 4 × 1 × 8 ranks · 512 tokens · gradient checkpointing on``."""
    micro, accumulated, ranks = spec.micro_batch_size, spec.gradient_accumulation_steps, spec.data_parallel
    batch = f"batch {spec.effective_batch} = {micro} × {accumulated} × {ranks} rank{'' if ranks == 1 else 's'}"
    if run.count_open:
        batch = f"batch of a rank: {micro} × {accumulated}"
    made = f", {spec.decoder_seq_len} for the decoder" if spec.decoder_seq_len is not None else ""
    assumed = "" if "seq_len" in spec.stated else " (assumed)"
    checkpointing = spec.gradient_checkpointing
    state = checkpointing if isinstance(checkpointing, str) else spoken(checkpointing)
    return [batch, f"{spec.seq_len} tokens{made}{assumed}", f"gradient checkpointing {state}", *evaluates(spec)]
