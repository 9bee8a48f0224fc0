"""What nobody stated and the estimate rests on, as short sentences."""

from __future__ import annotations

from lintfit.memory.activations.recipe import attention_of
from lintfit.memory.loss.preference import loss_path
from lintfit.memory.result import Components
from lintfit.memory.spec import GIB, Spec

WORTH = 0.02
"""Share of the peak from which an assumption is worth a line."""


def assumptions(spec: Spec, peak: Components) -> tuple[str, ...]:
    """The catalogue's notes, and one sentence for every field that was not stated and moves the peak."""
    said = spec.stated
    lines = list(spec.facts.notes)
    total = sum(peak.values()) or 1
    moving = (peak.get("activations", 0) + peak.get("logits", 0) + peak.get("temporaries", 0)) / total > WORTH
    if moving:
        logits = peak.get("logits", 0)
        if "seq_len" not in said:
            cost = f"; {logits / GIB:.1f} GiB of it are logits" if logits / total > WORTH else ""
            lines.append(f"sequence length {spec.seq_len} (not stated{cost})")
        if "micro_batch_size" not in said:
            lines.append(f"micro-batch {spec.micro_batch_size} (not stated)")
        if "gradient_checkpointing" not in said and spec.gradient_checkpointing is False:
            lines.append("gradient checkpointing off (not stated; the libraries' default)")
        if "gradient_checkpointing" not in said and spec.gradient_checkpointing is True and "trainer" in said:
            lines.append("gradient checkpointing on (not stated; TRL's default since 0.22)")
        if "attention" not in said:
            lines.append(f"attention {attention_of(spec)} (not stated; transformers' default)")
        if "transformers" not in spec.versions and loss_path(spec) != "tempered" and logits / total > WORTH:
            lines.append("the loss of transformers 5 (version not stated; 4.45 to 4.48 hold up to 17 % more logits)")
    if "weights_dtype" not in said:
        lines.append(f"weights loaded in {spec.weights_dtype} (not stated)")
    if "optimizer" not in said:
        lines.append(f"optimizer {spec.optimizer} (not stated)")
    stored = spec.facts.stored
    if stored is not None and spec.quantization is not None and "quantization" not in said:
        lines.append(
            f"weights that are {stored.kind} already, as {spec.quantization} (not stated; the checkpoint says so)"
        )
    if spec.method == "lora":
        if stored is not None and "method" not in said:
            lines.append("adapters beside them (method not stated; quantised weights are not trained)")
        if "lora_rank" not in said:
            lines.append(f"LoRA rank {spec.lora_rank} (not stated)")
        if "lora_targets" not in said:
            every = spec.lora_targets == "all-linear"
            which = "all linear layers" if every else "the modules that PEFT picks for this model"
            lines.append(f"LoRA on {which} (not stated)")
    return tuple(lines)
