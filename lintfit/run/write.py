"""Make a run say something else: which of its files state a setting, and the edits in every one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lintfit.documents.model import FileEdit, Span
from lintfit.errors import CannotWrite
from lintfit.frozen import replace
from lintfit.run.engine_location import has_trainer, in_launch_line
from lintfit.run.model import Run
from lintfit.run.new_config import handed_over, new_config_file
from lintfit.run.precision_switch import swapped
from lintfit.run.unused_search import ARGUMENT
from lintfit.settings.model import AUTO, Place
from lintfit.settings.registry import ZERO_SECTION
from lintfit.settings.values import InLauncherFile
from lintfit.sources.training_arguments import EVALUATION, TRAINING

if TYPE_CHECKING:
    from lintfit.settings.values import Fsdp
    from lintfit.sources.accelerate import AccelerateSource
    from lintfit.sources.deepspeed import DeepSpeedSource
    from lintfit.sources.launchers.launch import Launch
    from lintfit.sources.script.source import ScriptSource


def write(run: Run, changes: Mapping[str, Any]) -> tuple[FileEdit, ...] | None:
    """The edits for several changes at once; None where one of them cannot be written.

    All of them are made against the files as they are, so that changes at the same place collide when they are
    applied, but for what is added there one behind the other; ``lintfit.fit.applying`` makes them one after the other
    instead.
    """
    edits: list[FileEdit] = []
    for name, value in changes.items():
        written = write_one(run, name, value)
        if written is None:
            return None
        edits.extend(written)
    return tuple(_one_behind_the_other(edits))


def _one_behind_the_other(edits: Iterable[FileEdit]) -> Iterator[FileEdit]:
    """The edits with what several of them add at one place as one: arguments of a call, flags of a command."""
    added: dict[tuple[Path, Span], list[FileEdit]] = {}
    for each in edits:
        span = each.edit.span
        if span.start == span.end and each.document is not None:
            added.setdefault((each.path, span), []).append(each)
        else:
            yield each
    for first, *others in added.values():
        texts = dict.fromkeys(each.edit.text for each in (first, *others))
        yield replace(first, edit=replace(first.edit, text="".join(texts)))


def write_one(run: Run, name: str, value: Any) -> tuple[FileEdit, ...] | None:
    """The edits that change one thing about the run; empty where it is so already, None where they cannot be made.

    ``value`` may be one of the changes of :mod:`lintfit.settings.values`. Of ``deepspeed`` (a new file, handed to the
    script) and ``deepspeed_config_file`` (one beside an Accelerate YAML, which hands its ZeRO over) it is a mapping
    with ``zero_stage``, ``offload_optimizer`` and ``offload_param``.
    """
    try:
        return _written(run, name, value)
    except CannotWrite:
        return None


def why_not(run: Run, name: str, value: Any) -> str:
    """Why :func:`write_one` cannot make a change, in a few words; empty where it can."""
    try:
        written = _written(run, name, value)
    except CannotWrite as refusal:
        return str(refusal)
    return "" if written is not None else f"{_nobody(run)} sets {name.replace('_', ' ')} here"


def _nobody(run: Run) -> str:
    if run.recipe is not None:
        return "no key of the recipe"
    return "no file that lintfit can read" if run.script is None else "no flag, call or file that lintfit can edit"


OF_ARGUMENTS = re.compile(r"(?P<group>\w*(?:training|train)_?arg\w*)\.\w+")
"""A flag for a field of the trainer's arguments, as tyro calls it."""


def by_group(run: Run, name: str, value: Any) -> tuple[FileEdit, ...] | None:
    """The launch's flag for a field of the trainer's arguments, where it sets others by such flags
    (``--training_args.output_dir``); None where it does not."""
    if run.launch is None or run.script is None or not isinstance(value, bool | int):
        return None
    groups = (found["group"] for flag in run.launch.flags if (found := OF_ARGUMENTS.fullmatch(flag.name)) is not None)
    group = next(groups, None)
    if group is not None and name == ARGUMENT:
        return run.launch.set_flag(f"{group}.{name}", str(value))  # it may be None, and takes a word
    fields = {"gradient_checkpointing": ("gradient_checkpointing",), **TRAINING, **EVALUATION}
    if group is None or name not in fields:
        return None
    field = fields[name][0]
    if not isinstance(value, bool):
        return run.launch.set_flag(f"{group}.{field}", str(value))
    edits = run.launch.set_flag(f"{group}.{field}" if value else f"{group}.no_{field}", None)
    if edits is None or name != "gradient_checkpointing" or not value:
        return edits
    from lintfit.sources.script.writing.opened_input import opening

    return (*edits, *opening(run.script))


def _written(run: Run, name: str, value: Any) -> tuple[FileEdit, ...] | None:
    author = run.training
    if (flag := by_group(run, name, value)) is not None:
        return flag
    match name:
        case "mixed_precision":
            return _write_precision(run, value)
        case "deepspeed":
            return new_config_file(run, value)
        case "engine":
            return _write_engine(run, value)
        case "deepspeed_config_file":
            return handed_over(run, value)
        case "gradient_accumulation_steps" if isinstance(value, InLauncherFile):
            return _write_launched_accumulation(run, value.steps)
        case "offload_optimizer" | "offload_param" | "zero_stage":
            return _where_it_stands(run, name, value)
        case _ if name in ZERO_SECTION:
            return _write_size(run, name, value)
        case "fsdp":
            return _write_fsdp(run, value)
        case "gpus" | "nodes":
            return _write_processes(run, name, value)
        case "micro_batch_size" | "gradient_accumulation_steps":
            return _everywhere(run, name, value)
        case "loss":
            return _write_loss(run, value)
        case "eval_predictions":
            return _write_predictions(run, value)
        case "optimizer":
            return _write_optimizer(run, value)
        case "attention":
            return _write_attention(run, value)
        case _:
            return author.write(name, value) if author is not None else None


def _write_size(run: Run, name: str, value: int) -> tuple[FileEdit, ...] | None:
    if run.deepspeed is not None:
        return run.deepspeed.write(name, value)
    if run.script is None or not run.script.zero_in_dict:
        raise CannotWrite("the sizes of ZeRO's buffers stand in a DeepSpeed config, and there is none")
    return run.script.write(name, value)


def _write_attention(run: Run, value: str) -> tuple[FileEdit, ...] | None:
    """The launch's own flag, else the file that it starts, where that puts the kernel in, else what says it in code."""
    flags = () if run.launch is None else (run.launch.flag("attn_implementation"), run.launch.flag("attn_impl"))
    if value != "flash_attention_2" and not any(flags):
        from lintfit.run.plain_entry import plain_entry

        if (started := plain_entry(run)) is not None:
            return started
    return run.training.write("attention", value) if run.training is not None else None


def _write_optimizer(run: Run, value: str) -> tuple[FileEdit, ...] | None:
    if "optimizer" in (run.deepspeed.settings if run.deepspeed is not None else {}):
        raise CannotWrite("the DeepSpeed config names the optimizer")
    author = run.training
    written = author.write("optimizer", value) if author is not None else None
    if written is None and run.script is not None and not has_trainer(run):
        raise CannotWrite("the script makes its optimizer itself")
    return written


def _write_loss(run: Run, value: str) -> tuple[FileEdit, ...] | None:
    author = run.training
    if author is None:
        return None
    written = author.write("use_liger_kernel", True) if value == "liger" else author.write("loss", value)
    if written is None and run.script is not None and not has_trainer(run):
        raise CannotWrite("the script computes its loss itself")
    return written


def _write_predictions(run: Run, value: str) -> tuple[FileEdit, ...] | None:
    """No logits out of the evaluation: the loss alone."""
    author = run.training
    return author.write("prediction_loss_only", True) if author is not None and value == "none" else None


def _write_processes(run: Run, name: str, value: int) -> tuple[FileEdit, ...] | None:
    """The number of processes: on the launch line where one states it, else in the Accelerate YAML or the recipe.

    A batch job asks for as many GPUs. Nobody but the user knows the addresses of more machines, nor which other
    GPUs a command may see.
    """
    setting = run.settings.get(name)
    place = setting.provenance.place if setting is not None else None
    if run.recipe is not None:
        return run.recipe.write(name, value)
    sources = (run.launch, run.accelerate)
    if name == "nodes":
        raise CannotWrite("the addresses of more machines are not known")
    confined = next((s for s in sources if s is not None and "visible_devices" in s.settings), None)
    if confined is not None:
        key = "gpu_ids" if confined is run.accelerate else "CUDA_VISIBLE_DEVICES"
        raise CannotWrite(f"{key} says which GPUs the run may see")
    if run.spec is None:
        return None
    job = run.launch.asks_for(run.spec.gpus // run.spec.nodes, value // run.spec.nodes) if run.launch else ()
    if place is not None and any(edit.document is place.document and _inside(edit, place) for edit in job):
        return job
    if run.accelerate is not None and (place is None or place.document is run.accelerate.document):
        written = run.accelerate.write(name, value)
    else:
        written = run.launch.write(name, value) if run.launch is not None else None
    return None if written is None else (*written, *job)


def _inside(edit: FileEdit, place: Place) -> bool:
    return place.span.start <= edit.edit.span.start and edit.edit.span.end <= place.span.end


def _write_engine(run: Run, value: str) -> tuple[FileEdit, ...] | None:
    """Accelerate's option or ``distributed_type``; several processes of another launcher are DDP without a word."""
    if run.launch is not None and value == "deepspeed" and in_launch_line(run, value):
        return run.launch.write("engine", value)
    if run.accelerate is not None and "engine" in run.accelerate.settings:
        return run.accelerate.write("engine", value)
    launcher = run.launch.launcher if run.launch is not None else None
    if launcher == "python" and value == "ddp":
        return _write_torchrun(run)
    return () if value == "ddp" and launcher in ("torchrun", "torch.distributed.launch", "accelerate") else None


def _write_torchrun(run: Run) -> tuple[FileEdit, ...] | None:
    """One process for each GPU in the place of one, where the script's trainer or Accelerate makes DDP of that."""
    script, launch = run.script, run.launch
    if launch is None or script is None or not (has_trainer(run) or script.facts.accelerator is not None):
        return None
    if "visible_devices" in launch.settings:
        raise CannotWrite("CUDA_VISIBLE_DEVICES says which GPUs the run may see")
    if script.spreads_over_cards:
        raise CannotWrite("the script lays the model over all GPUs itself, or trains on one alone")
    return launch.write("engine", "ddp")


def _write_launched_accumulation(run: Run, value: int) -> tuple[FileEdit, ...] | None:
    """The accumulation of Accelerate's file, which beats a loop's own and must equal a Trainer's.

    Where it is silent, Accelerate before 0.26 hands on 1, which a Trainer refuses and a loop leaves alone.
    """
    if run.accelerate is None:
        launch = run.launch if has_trainer(run) and in_launch_line(run, "deepspeed") else None
        return launch.write("gradient_accumulation_steps", value) if launch is not None and value > 1 else ()
    stated = "gradient_accumulation_steps" in run.accelerate.settings
    return run.accelerate.write("gradient_accumulation_steps", value) if stated or has_trainer(run) else ()


def _write_fsdp(run: Run, value: Fsdp | None) -> tuple[FileEdit, ...] | None:
    """How FSDP shards, or None for no FSDP: Accelerate's file where that states it, else the trainer's arguments."""
    if run.accelerate is not None and run.accelerate.engine == "fsdp":
        return run.accelerate.write("fsdp", value)
    if run.recipe is not None and "fsdp" in run.recipe.adjustable:
        return run.recipe.write("fsdp", value)
    if run.launch is not None and "fsdp" in run.launch.settings and value is not None:
        return run.launch.write("fsdp", value)
    if run.training is None or not has_trainer(run):
        if value is not None and run.script is not None and run.launch is not None and run.accelerate is None:
            raise CannotWrite(
                "how FSDP wraps a loop of the script's own is said in an Accelerate YAML, and there is none"
            )
        return None
    if value is None and run.launch is not None:
        for name in FSDP_ARGUMENTS:
            if run.launch.flag(name) is not None:
                return run.launch.drop_flag(name)
    return run.training.write("fsdp", value)


GATHERING = (
    "stage3_gather_16bit_weights_on_model_save",
    "stage3_gather_fp16_weights_on_model_save",
    "gather_16bit_weights_on_model_save",
)
"""The key with its deprecated and its short name (``DeepSpeedZeroConfig.gather_16bit_weights_on_model_save``)."""

FSDP_ARGUMENTS = ("fsdp_config", "fsdp_min_num_params", "fsdp_transformer_layer_cls_to_wrap", "fsdp")
"""Fields of ``TrainingArguments`` about FSDP, the one that switches it on last."""


def _where_it_stands(run: Run, name: str, value: Any) -> tuple[FileEdit, ...] | None:
    """ZeRO's settings: an option of the launcher that states one, else the DeepSpeed JSON, else the Accelerate YAML.

    Where a recipe names a file that comes with its front end, another of these is named.
    """
    packaged = run.recipe.write(f"packaged_{name}", value) if run.recipe is not None else None
    if packaged is not None:
        return packaged
    setting = run.settings.get(name)
    place = setting.provenance.place if setting is not None else None
    own = run.launch.settings.get(name) if run.launch is not None else None
    if run.launch is not None and own is not None and place == own.provenance.place:
        by_accelerate = run.launch.launcher == "accelerate"
        return _launched_zero(run, run.launch, name, value) if by_accelerate else run.launch.write(name, value)
    if run.script is not None and run.deepspeed is None and _in_script(run.script, name):
        return run.script.write(name, value)
    if run.recipe is not None and run.deepspeed is None and name in run.recipe.adjustable:
        return run.recipe.write(name, value)
    if run.launch is not None and run.deepspeed is None and in_launch_line(run, "deepspeed"):
        return _launched_zero(run, run.launch, name, value)
    if value == "nvme":
        return run.deepspeed.write_offload(name, value, run.nvme_path) if run.deepspeed is not None else None
    for source in (run.deepspeed, run.accelerate):
        edits = source.write_all({name: value, **_saved(run, source, name, value)}) if source is not None else None
        if edits is not None:
            return edits
    return None


def _saved(run: Run, source: DeepSpeedSource | AccelerateSource, name: str, value: Any) -> dict[str, Any]:
    """What belongs to ZeRO-3 once it shards the weights: an Accelerate YAML of another stage that says no to a model
    which is sharded as it is made says yes, and a Trainer's checkpoints are gathered: where the file says no, it says
    so of a stage to which it is all the same."""
    if name != "zero_stage" or value != 3 or run.value("zero_stage") == 3:
        return {}
    flag = run.accelerate.settings.get("zero3_init_flag") if run.accelerate is not None else None
    made = {"zero3_init_flag": True} if source is run.accelerate and flag is not None and flag.value is False else {}
    if not _asks_for_whole(run):
        return made
    if source is run.accelerate:
        gathers = source.settings.get("zero3_save_16bit_model")
        return made if gathers is not None and gathers.value is not False else {**made, "zero3_save_16bit_model": True}
    found = [run.deepspeed.node("zero_optimization", key) if run.deepspeed is not None else None for key in GATHERING]
    stated = any(
        node is not None and (key != GATHERING[0] or node.value is not False)
        for key, node in zip(GATHERING, found, strict=True)
    )
    return {**_half(run), **({} if stated else {GATHERING[0]: True})}


def _asks_for_whole(run: Run) -> bool:
    """Whether what a run saves is gathered first, which ZeRO-3 has to be told to allow: a Trainer's checkpoints, and
    what a loop of its own asks Accelerate for (``save_model`` calls ``get_state_dict``; accelerate 1.15)."""
    return has_trainer(run) or run.mentions("get_state_dict", "accelerator.save_model(")


def _half(run: Run) -> dict[str, Any]:
    """The section of a Trainer's precision that a DeepSpeed file leaves out: ``zero.Init`` makes the shards by the file
    alone, in fp32 where it names no other (DeepSpeed 0.18 ``zero/partition_parameters.py:_set_dtype``), and a Trainer
    fills what is there (transformers 4.57 ``HfTrainerDeepSpeedConfig``), so that a stage below needs no section."""
    half = run.spec.mixed_precision if run.spec is not None and has_trainer(run) else "no"
    left_out = run.deepspeed is not None and half not in run.deepspeed.settings
    return {half: AUTO} if left_out and half in ("bf16", "fp16") else {}


_WHOLE = "zero3_save_16bit_model"
"""The option of ``accelerate launch`` for ``stage3_gather_16bit_weights_on_model_save``."""


def _launched_zero(run: Run, launch: Launch, name: str, value: Any) -> tuple[FileEdit, ...] | None:
    if value == "nvme":
        raise CannotWrite("accelerate launch hands no folder on NVMe on")
    if value == "none" and name not in launch.settings:
        return ()
    if name != "zero_stage" or value != 3 or run.value(name) == 3 or not _asks_for_whole(run):
        return launch.write(name, value)
    whole = {} if _WHOLE in launch.invocation.options else {_WHOLE: "true"}
    if name not in launch.settings:
        return launch.add_options({name: "3", **whole})
    written, added = launch.write(name, value), launch.add_options(whole) if whole else ()
    return None if written is None or added is None else (*written, *added)


def _in_script(script: ScriptSource, name: str) -> bool:
    """Whether the script itself states ZeRO: in a DeepSpeed dict, a plugin or a strategy."""
    handed = script.settings.get("deepspeed")
    inline = handed is not None and isinstance(handed.value, Mapping)
    return inline or not {name, "engine"}.isdisjoint(script.settings)


def _everywhere(run: Run, name: str, value: Any) -> tuple[FileEdit, ...] | None:
    """In the script or on its launch line, and in every config that states a number for it."""
    if name == "gradient_accumulation_steps" and run.script is not None and run.script.steps_every_batch:
        raise CannotWrite("the loop steps after every batch, without accelerator.accumulate")
    edits: list[FileEdit] = []
    states_it = False
    if run.deepspeed is not None and _leaves_accumulation_out(run, run.deepspeed, name, value):
        edits.extend(run.deepspeed.write(name, AUTO) or ())
    for source in (run.deepspeed, run.accelerate, run.launch):
        setting = source.settings.get(name) if source is not None else None
        if source is not None and setting is not None and setting.value is not AUTO:
            written = source.write(name, value)
            if written is None:
                return None
            edits.extend(written)
            states_it = True
    author = run.training
    if author is not None and not (states_it and _handed_on(run, name)):
        written = author.write(name, value)
        if written is None and not (states_it and name not in author.settings):
            return None
        edits.extend(written or ())
        states_it = True
    elif author is None and not states_it and run.deepspeed is not None:
        written = run.deepspeed.write(name, value)
        if written is None:
            return None
        edits.extend(written)
    return tuple(edits) if edits or states_it else None


def _leaves_accumulation_out(run: Run, source: DeepSpeedSource, name: str, value: Any) -> bool:
    """Whether a Trainer is to accumulate, which does not now, with a DeepSpeed JSON that says nothing of it: accelerate
    fills in 1 (``DeepSpeedPlugin.__post_init__``), and before 1.11 DeepSpeed steps after every micro-batch then."""
    if name != "gradient_accumulation_steps" or value == 1 or run.value(name) not in (None, 1) or not has_trainer(run):
        return False
    return name not in source.config and "train_batch_size" not in source.config


def _handed_on(run: Run, name: str) -> bool:
    """Whether ``accelerate launch`` hands its file's accumulation on to the Accelerator of a loop, which takes it in
    the place of its own argument (``ACCELERATE_GRADIENT_ACCUMULATION_STEPS``), and the launch says none."""
    if name != "gradient_accumulation_steps" or run.accelerate is None or has_trainer(run):
        return False
    launch = run.launch
    return launch is not None and launch.launcher == "accelerate" and launch.flag(name) is None


def _write_precision(run: Run, value: Literal["bf16", "fp16", "no"] | None) -> tuple[FileEdit, ...] | None:
    """16-bit training: the trainer's argument, and the DeepSpeed JSON where it states the contrary."""
    now = run.spec.mixed_precision if run.spec is not None else None
    if value is None or value == now:
        return ()
    if now in ("bf16", "fp16") and value in ("bf16", "fp16"):
        return swapped(run, value)
    edits: list[FileEdit] = []
    if run.deepspeed is not None:
        block, other = (run.deepspeed.settings.get(name) for name in (value, "fp16" if value == "bf16" else "bf16"))
        # Where one type is left to the arguments, both are: releases of their time ignore what has no block.
        beside = value != "no" and block is None and other is not None and other.value is AUTO
        if beside or (block is not None and block.value is False):
            edits.extend(run.deepspeed.write(value, AUTO if run.training is not None else True) or ())
    written = _precision_outside(run, value)
    if written is None and not edits:
        return None
    return (*edits, *(written or ()))


def _precision_outside(run: Run, value: str) -> tuple[FileEdit, ...] | None:
    if has_trainer(run) or run.recipe is not None:
        author = run.training
        return author.write(value, True) if author is not None else None
    if run.script is not None and "mixed_precision" in run.script.settings:
        return run.script.write("mixed_precision", value)
    launch = run.launch if run.launch is not None and run.launch.launcher == "accelerate" else None
    if launch is not None and ("mixed_precision" in launch.settings or run.accelerate is None):
        return launch.write("mixed_precision", value)
    return run.accelerate.write("mixed_precision", value) if run.accelerate is not None else None
