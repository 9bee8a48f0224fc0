"""Which commands train, as far as their words tell."""

from __future__ import annotations

from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import word_set
from lintfit.sources.launchers.command_line import Invocation, Option

_NAME = lazy_pattern(r"[^a-z]+")
_TRAINS = word_set("""
    clm cpo cpt dapo distill dpo finetune finetuning gkd grpo gspo kto mlm orpo posttrain ppo pretrain pretraining
    reinforce rlhf rloo sft simpo train trainer training tune
    """)
"""Words in the name of a script that trains."""

_MAY_TRAIN = word_set("fine ft lora qlora reward rm tune")
"""Words that do so only where nothing else is said."""

_DOES_NOT = word_set("""
    api app bench benchmark benchmarking chat chatbot check cli convert conversion data dataset demo download embed eval
    evaluate evaluation export filter gather generate generation gradio infer inference merge plot predict prepare
    preprocess process push quantize sample score serve server setup submit test tests tokenize upload vllm web webui
    """)
"""Words in the name of a script that does something else."""

_PREPARES = word_set("convert download merge prepare preprocess submit tokenize")
"""First words of such a name that say so whatever the flags are."""

_TRAINING_FLAGS = word_set("""
    do_train gradient_accumulation_steps gradient_checkpointing learning_rate lr num_train_epochs
    per_device_train_batch_size train_batch_size train_micro_batch_size_per_gpu
    """)

_HELP = word_set("help h helpfull")
"""Flags by which a parser prints what it takes, and ends (argparse; ``absl`` has the last)."""
_EVALUATES = word_set("do_eval do_predict")
_OF_AXOLOTL = word_set("gradio inference merge_lora prepare_ds_only shard")
"""Flags with which axolotl's script of up to 0.7 does something else (``scripts/finetune.py``, 0.3)."""
_OFF = word_set("0 false no off")


def _parts(name: str) -> list[str]:
    return _NAME.split(name.removesuffix(".py"))


def name_trains(name: str) -> bool | None:
    """Whether a script of this name trains, by the first telling word of it; None where there is none."""
    return next((part in _TRAINS for part in _parts(name.lower()) if part in _TRAINS or part in _DOES_NOT), None)


def trains(invocation: Invocation) -> bool | None:
    """Whether a command looks like a training: by its flags, else by the first telling word of its script's name.

    Where neither tells, a distributed launcher counts; of plain python only the script can say (None), and of any
    launcher where the flags ask for an evaluation and for no training.
    """
    if any(option.name in _HELP or _trains_no_epoch(option) for option in invocation.arguments):
        return False
    flags = {option.name for option in invocation.arguments if not _is_off(option)}
    if invocation.action is not None:
        return invocation.launcher != "axolotl" or _OF_AXOLOTL.isdisjoint(flags)
    name = (invocation.script.text if invocation.script is not None else "").rsplit("/", 1)[-1].lower()
    if invocation.module:
        name = name.rpartition(".")[2]
    parts = _parts(name)
    if parts[0] in _PREPARES:
        return False
    if only_evaluates(invocation):
        doubtful = invocation.launcher != "python" or bool(flags & _TRAINING_FLAGS) or name_trains(name) is True
        return None if doubtful and invocation.script is not None else False
    if flags & _TRAINING_FLAGS:
        return True
    told = name_trains(name)
    if told is not None:
        return told
    folders = (invocation.script.text if invocation.script is not None else "").split("/")[:-1]
    if folders and folders[-1] in _TRAINS and flags:
        return True
    if invocation.launcher != "python" or "deepspeed" in flags or not _MAY_TRAIN.isdisjoint(parts):
        return True
    return None if invocation.script is not None and not invocation.module else False


def _trains_no_epoch(option: Option) -> bool:
    """``--num_train_epochs 0``: a Trainer makes no step, and wraps or saves the model at most."""
    return option.name == "num_train_epochs" and option.value in ("0", "0.0")


def only_evaluates(invocation: Invocation) -> bool:
    """Whether the flags are those of transformers' scripts for an evaluation or a prediction without a training."""
    flags = {option.name for option in invocation.arguments if not _is_off(option)}
    from_file = any(word.text.endswith(".json") for word in invocation.positional)
    return bool(flags & _EVALUATES) and "do_train" not in flags and not from_file


def _is_off(option: Option) -> bool:
    """Whether a flag says no (``--do_train False``)."""
    return (option.value or "").lower() in _OFF
