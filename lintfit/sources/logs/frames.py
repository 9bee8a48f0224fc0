"""Where in a run a traceback ends: the phase of a step, and what was about to be made.

Frames are looked at from the innermost outwards: what is nearest to the allocation says what it was for, what is
further out in which phase. Names are those of transformers, accelerate, DeepSpeed, torch, PEFT, TRL and bitsandbytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lintfit.frozen import frozen, replace
from lintfit.sources.logs.model import Doing, Where

_DRAWN = re.compile(
    r"(?:^|[│|] )\s{0,4}(/[^│|\n]{1,400}?\.py):([0-9]{1,7})(?: in ([\w<>.]{1,120}))?\s{0,200}(?:[│|]|$)"
)
"""A frame in a box, as rich draws it (typer, axolotl, torchtune): a long path has its function on the next line."""
_CELL = re.compile(
    r"^(?:File )?(\S[^\n]{0,400}?\.py):([0-9]{1,7}), in ([\w<>.]{1,120})\(|^Cell In ?\[[0-9]{1,5}\], line ([0-9]{1,7})"
)
"""A frame as IPython prints it, and one of a cell."""
_NEXT = re.compile(r"^\s{0,4}[│|] in ([\w<>.]{1,120})\s")
_POINTED = re.compile(r"(?:❱|-{2,6}>) {0,4}[0-9]{1,7} ?[│|]? ?(.{1,300})")
_FRAME = re.compile(r'File "([^"\n]{1,400})", line ([0-9]{1,7}), in ([\w<>.]{1,120})')
MOST = 200
"""Frames of one traceback that are kept: the last."""


@frozen
class Frame:
    """One frame of a traceback, with the line of code below it."""

    file: str
    function: str
    code: str = ""
    drawn: bool = False
    """Whether its line of code is the one that an arrow points at, not the next."""

    def says(self, pattern: re.Pattern[str]) -> bool:
        return bool(pattern.search(f"{self.file}: {self.function}: {self.code}"))

    @property
    def name(self) -> str:
        """``trainer.py: evaluation_loop``"""
        return f"{self.file.replace(chr(92), '/').rpartition('/')[2]}: {self.function}"


def frame(line: str) -> Frame | None:
    """The frame that a line of a log begins."""
    if 'File "' in line:
        found = _FRAME.search(line[:1000])
        return Frame(found[1], found[3]) if found else None
    if ".py:" in line and (drawn := _DRAWN.search(line[:1000])):
        return Frame(drawn[1], drawn[3] or "", drawn=True)
    if ", in " in line or line.startswith("Cell In"):
        cell = _CELL.search(line[:1000])
        return Frame(cell[1] or "a cell", cell[3] or "", drawn=True) if cell else None
    return None


def completed(one: Frame, line: str) -> Frame:
    """A frame with what the next line of the log adds to it: its code, or its function where the path was long."""
    if not one.drawn:
        return one if one.code or not line.strip() else replace(one, code=line.strip()[:200])
    pointed = _POINTED.search(line[:1000]) if "❱" in line or "->" in line else None
    if pointed is not None and not one.code:
        return replace(one, code=pointed[1].strip("│ ")[:200])
    named = _NEXT.search(line[:300]) if not one.function else None
    return replace(one, function=named[1]) if named is not None else one


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


def doing(line: str) -> Where | None:
    """What a program says that it is about to do: all that a log without a traceback tells of the phase."""
    for word, pattern, phase in _DOING:
        if word in line and (found := pattern.search(line[:1000])) is not None:
            return Where(phase, "", " ".join(found[0].split())[:80])
    return None


_DOING: tuple[tuple[str, re.Pattern[str], Doing], ...] = (
    ("esum", re.compile(r"Attempting to resume from|Resuming (?:training|from)"), "resume"),
    ("Loading ", re.compile(r"Loading (?:model|optimizer|states|Optimizer) (?:state )?from"), "resume"),
    ("ZeRO state_dicts", re.compile(r"successfully read [0-9]+ ZeRO state_dicts"), "resume"),
    ("checkpoint shards", re.compile(r"Loading checkpoint shards"), "load"),
    ("loading weights file", re.compile(r"loading weights file"), "load"),
    (
        "aving",
        re.compile(r"Saving model checkpoint to|Saving (?:current state|FSDP model|model) to|Saving checkpoint"),
        "save",
    ),
    ("Running ", re.compile(r"\*{3,5} Running (?:Evaluation|Prediction)", re.IGNORECASE), "evaluate"),
    ("Running training", re.compile(r"\*{3,5} Running training"), "forward"),
)
"""Lines of transformers, accelerate and DeepSpeed, by a word that stands in each."""

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
