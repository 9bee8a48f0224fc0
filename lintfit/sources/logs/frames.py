"""Where in a run a traceback ends: the phase of a step, and what was about to be made.

Frames are looked at from the innermost outwards: what is nearest to the allocation says what it was for, what is
further out in which phase. Names are those of transformers, accelerate, DeepSpeed, torch, PEFT, TRL and bitsandbytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lintfit.frozen import frozen
from lintfit.sources.logs.model import Where

_FRAME = re.compile(r'File "([^"\n]{1,400})", line ([0-9]{1,7}), in ([\w<>.]{1,120})')
MOST = 200
"""Frames of one traceback that are kept: the last."""


@frozen
class Frame:
    """One frame of a traceback, with the line of code below it."""

    file: str
    function: str
    code: str = ""

    def says(self, pattern: re.Pattern[str]) -> bool:
        return bool(pattern.search(f"{self.file}: {self.function}: {self.code}"))

    @property
    def name(self) -> str:
        """``trainer.py: evaluation_loop``"""
        return f"{self.file.replace(chr(92), '/').rpartition('/')[2]}: {self.function}"


def frame(line: str) -> Frame | None:
    """The frame that a line of a log begins."""
    found = _FRAME.search(line[:1000]) if 'File "' in line else None
    return Frame(found[1], found[3]) if found else None


def where(frames: Sequence[Frame]) -> Where:
    """Phase and component by the frames of one traceback, the outermost first."""
    phase = next((each for each in _PHASES if any(one.says(each[0]) for one in reversed(frames))), None)
    within = list(reversed(frames))
    component, by = "", None
    for one in within:
        component = next((name for pattern, name in _COMPONENTS if one.says(pattern)), "")
        if component:
            by = one
            break
    if phase is None:
        return Where(None, component, by.name if by else "")
    telling = next(one for one in within if one.says(phase[0]))
    return Where(phase[1], component, telling.name)  # type: ignore[arg-type]


_PHASES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), phase)
    for pattern, phase in (
        (
            r"save_(?:pretrained|model|checkpoint|16bit_model)|_save_checkpoint|_zero3_consolidated|_consolidated_16bit|"
            r"get_state_dict|full_state_dict|_full_post_state_dict|state_dict_hook|save_fsdp_model|gather.*state_dict",
            "save",
        ),
        (
            r"load_checkpoint|_load_optimizer_and_scheduler|_load_from_checkpoint|load_(?:fsdp_)?optimizer|"
            r"load_accelerator_state|resume_from_checkpoint|_load_rng_state|load_universal",
            "resume",
        ),
        (
            r"evaluation_loop|prediction_step|: evaluate:|: predict:|nested_concat|pad_across_processes|: metrics",
            "evaluate",
        ),
        (
            r": generate:|_generate_and_score|_generate_single_turn|batch_generation|unwrap_model_for_generation",
            "generate",
        ),
        (
            r"from_pretrained|_load_state_dict_into|_load_pretrained_model|load_state_dict|set_module_tensor_to_device|"
            r"load_checkpoint_in_model|dispatch_model|_load_parameter_into_model|materialize|convert_and_load_state_dict",
            "load",
        ),
        (
            r"initialize_optimizer_states|_initialize_parameters|_configure_zero_optimizer|_configure_optimizer|"
            r": prepare:|_prepare_deepspeed|deepspeed.*: initialize:|_create_fp(?:16|32)_partitions|fully_shard|"
            r"fully_sharded_data_parallel.py: __init__|: _move_model_to_device:|place_model_on_device|"
            r": cuda:|: to:|: _apply:",
            "initialize",
        ),
        (
            r"loss\.backward|: backward:|_engine_run_backward|autograd/function|reduce_ipg_grads|: _post_backward",
            "backward",
        ),
        (r"optim(?:izer)?/|: step:|_take_model_step|_optimizer_step|cpu_adam|fused_adam|adamw?\.py", "step"),
        (r": forward:|compute_loss|training_step|: _forward", "forward"),
    )
)
"""By the first that any frame is of: a checkpoint is saved within the loop of training, not the other way round."""

_COMPONENTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), component)
    for pattern, component in (
        (r"cross_entropy|lm_head|logits|log_softmax|ForCausalLMLoss|logprobs|logsumexp|loss_utils", "logits"),
        (
            r"state_sums|exp_avg|init_group|_init_group|init_state|initialize_optimizer_states|optim/adam|torch/optim|adamw|adam\.py",
            "optimizer_states",
        ),
        (
            r"fp32_groups_flat|single_partition_of_fp32|_create_fp32_partitions|fp32_partitioned|clone\(\)\.float\(\)\.detach",
            "master_weights",
        ),
        (
            r"ipg_buffer|ipg_bucket|allreduce|all_reduce|reduce_scatter|all_gather|allgather|_flatten_dense|flatten_dense|reduce_bucket",
            "communication_buffers",
        ),
        (
            r"scaled_dot_product|attn_weights|attention_scores|baddbmm|softmax|flash_attn|sdpa|attention\.py|self_attn",
            "activations",
        ),
        (
            r"mlp|gate_proj|up_proj|down_proj|act_fn|fc1|fc2|rotary|layer_?norm|rmsnorm|functional\.py: linear",
            "activations",
        ),
        (r"Params4bit|Int8Params|quantize_4bit|bnb|bitsandbytes", "parameters"),
        (r"set_module_tensor|_load_state_dict_into|: convert:|: cuda:|: to:|_apply|from_pretrained", "parameters"),
    )
)
