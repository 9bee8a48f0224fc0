"""Small projects in which one setting lives at one kind of place: what the planner's axes are written into."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lintfit.settings.values import Fsdp

KEYWORD, DEFAULT, FLAG, VARIABLE = "script keyword", "dataclass default", "launch line's flag", "shell variable"
ARGPARSE, OPTION, YAML = "argparse default", "launcher's own option", "Accelerate YAML"
JSON, NEW_FILE, RECIPE = "DeepSpeed JSON", "new DeepSpeed file", "LitGPT YAML"
PLACES = (KEYWORD, DEFAULT, FLAG, VARIABLE, ARGPARSE, OPTION, YAML, JSON, NEW_FILE, RECIPE)

Files = dict[str, str]


@dataclass(frozen=True)
class Axis:
    """One module of ``lintfit/fit/axes``: what it changes, and the arguments by which a script states it.

    ``arguments`` are names with their values before; ``tokens`` what a line must have to be one of the setting's.
    """

    title: str
    changes: Mapping[str, Any]
    arguments: Mapping[str, Any]
    tokens: tuple[str, ...]
    places: frozenset[str]


SCRIPT = frozenset({KEYWORD, DEFAULT, FLAG, VARIABLE, ARGPARSE})

LORA: dict[str, Any] = {"method": "lora", "lora_rank": 16, "lora_targets": "all-linear"}
ZERO_2: dict[str, Any] = {"zero_stage": 2, "offload_optimizer": "cpu", "offload_param": "none"}

AXES: Mapping[str, Axis] = {
    "forced_float32": Axis(
        "no forced float32",
        {"weights_dtype": "bf16"},
        {"upcast": True},
        (".float()",),
        frozenset({KEYWORD}),
    ),
    "loading": Axis(
        "dtype of the load",
        {"weights_dtype": "bf16"},
        {"torch_dtype": "float32"},
        ("dtype", "precision"),
        SCRIPT | {RECIPE},
    ),
    "partitioning": Axis(
        "ZeRO-3 before the load", {"zero3_init": True}, {}, ("args", "output_dir", "=", ")"), frozenset({KEYWORD})
    ),
    "precision": Axis(
        "mixed precision",
        {"mixed_precision": "bf16"},
        {"bf16": False},
        ("bf16", "precision", '"enabled"'),
        SCRIPT | {OPTION, YAML, JSON, RECIPE},
    ),
    "checkpointing": Axis(
        "gradient checkpointing",
        {"gradient_checkpointing": True},
        {"gradient_checkpointing": False},
        ("checkpointing",),
        SCRIPT,
    ),
    "micro_batch": Axis(
        "micro-batch with accumulation",
        {"micro_batch_size": 1, "gradient_accumulation_steps": 16},
        {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 4},
        ("micro_batch", "batch_size", "accumulation"),
        SCRIPT | {JSON, RECIPE},
    ),
    "evaluation": Axis(
        "evaluation's batch",
        {"eval_batch_size": 1},
        {"per_device_eval_batch_size": 8, "eval_strategy": "steps"},
        ("eval_batch_size",),
        SCRIPT,
    ),
    "predictions": Axis(
        "the evaluation's logits",
        {"eval_accumulation_steps": 1},
        {"eval_accumulation_steps": 16, "eval_strategy": "steps"},
        ("eval_accumulation_steps",),
        SCRIPT,
    ),
    "outputs": Axis("outputs that a loop holds", {"loop_outputs": "dropped"}, {}, ("outputs",), frozenset({KEYWORD})),
    "gradients": Axis("gradients that a loop holds", {"zero_grad": "step"}, {}, ("zero_grad",), frozenset({KEYWORD})),
    "loss": Axis("the loss's kernel", {"loss": "liger"}, {"use_liger_kernel": False}, ("use_liger_kernel",), SCRIPT),
    "attention": Axis(
        "attention's kernel", {"attention": "sdpa"}, {"attn_implementation": "eager"}, ("attn_implementation",), SCRIPT
    ),
    "sharding": Axis(
        "ZeRO stage and offload",
        {**ZERO_2, "zero_stage": 3},
        {},
        ("stage", "offload", "device"),
        frozenset({KEYWORD, OPTION, YAML, JSON}),
    ),
    "another engine": Axis(
        "DeepSpeed in the place of DDP",
        {"engine": "deepspeed", **ZERO_2, "mixed_precision": "bf16"},
        {},
        ("distributed_type", "--multi_gpu"),
        frozenset({FLAG, OPTION, YAML, NEW_FILE}),
    ),
    "FSDP for DDP": Axis(
        "FSDP in the place of DDP",
        {"engine": "fsdp", "fsdp": Fsdp(2, "FULL_SHARD", False)},
        {},
        ("distributed_type",),
        frozenset({KEYWORD, FLAG, OPTION, YAML}),
    ),
    "fsdp": Axis(
        "FSDP's sharding and offload",
        {"fsdp": Fsdp(2, "FULL_SHARD", True)},
        {"fsdp": "shard_grad_op auto_wrap"},
        ("fsdp",),
        SCRIPT | {OPTION, YAML},
    ),
    "buckets": Axis(
        "ZeRO's buckets",
        {"reduce_bucket_size": 50_000_000},
        {},
        ("reduce_bucket_size", "zero", "mixed_precision", "deepspeed"),
        frozenset({KEYWORD, OPTION, YAML, JSON}),
    ),
    "optimizer": Axis(
        "8-bit and paged AdamW", {"optimizer": "adamw_8bit"}, {"optim": "adamw_torch"}, ("optim",), SCRIPT | {JSON}
    ),
    "quantization": Axis(
        "four bits for a frozen base",
        {"quantization": "nf4"},
        {"load_in_4bit": False},
        ("load_in_4bit", "import"),
        SCRIPT | {RECIPE},
    ),
    "saving": Axis("the state dict from the host", {"whole_state_dict": False}, {}, (), frozenset()),
    "adapters": Axis(
        "LoRA", {**LORA, "weights_dtype": "bf16"}, {"use_peft": False}, ("use_peft", "Trainer(", "import"), SCRIPT
    ),
    "sequence": Axis(
        "shorter sequences",
        {"seq_len": 512},
        {"model_max_length": 1024},
        ("max_length", "max_seq_length"),
        SCRIPT | {RECIPE},
    ),
    "cards": Axis(
        "more GPUs",
        {"gpus": 4, "gradient_accumulation_steps": 2},
        {"gradient_accumulation_steps": 4},
        ("nproc_per_node", "num_processes", "accumulation", "devices"),
        frozenset({OPTION, VARIABLE, YAML, RECIPE}),
    ),
}
"""By the name of the module; ``sharding`` twice: within an engine, and another one."""

MODEL = "meta-llama/Llama-3.2-1B"
_OWN = frozenset({"torch_dtype", "attn_implementation", "model_max_length", "use_peft", "load_in_4bit"})
"""Arguments that no library declares: the script does."""
_BASE: Mapping[str, Any] = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 4, "bf16": True}


def project(axis: str, place: str) -> Files:
    """The files of a run on two GPUs whose setting of this axis is stated at this place."""
    match place:
        case "Accelerate YAML" | "launcher's own option" | "new DeepSpeed file":
            return _launched(axis, place)
        case "DeepSpeed JSON":
            return _by_json(axis)
        case "LitGPT YAML":
            return _recipe(axis)
    arguments = dict(AXES[axis].arguments)
    if axis == "cards":
        return _cards_by_variable()
    if axis == "outputs":
        lines = ("outputs = model(**batch)", "loss = outputs.loss", "accelerator.backward(loss)")
        script = _loop().replace("accelerator.backward(model(**batch).loss)", f"\n{8 * ' '}".join(lines))
        return {"train.py": script, "run.sh": "accelerate launch --num_processes 2 train.py\n"}
    if axis == "partitioning":
        return {"train.py": _late(), "run.sh": "torchrun --nproc_per_node 2 train.py  # kept\n"}
    if axis == "gradients":
        line = "optimizer.step()\n"
        script = _loop().replace(line, f"{line}        optimizer.zero_grad(set_to_none=False)\n")
        return {"train.py": script, "run.sh": "accelerate launch --num_processes 2 train.py\n"}
    if axis == "buckets":
        zero = '{"bf16": {"enabled": True}, "zero_optimization": {"stage": 2, "reduce_bucket_size": 500_000_000}}'
        passed = {**{name: _code(value) for name, value in _base(axis).items()}, "deepspeed": zero}
        script = _script("TrainingArguments", passed, {}, {})
        return {"train.py": script, "run.sh": "torchrun --nproc_per_node 2 train.py  # kept\n"}
    if axis == "sharding":
        return {"train.py": _plugin(), "run.sh": "accelerate launch --num_processes 2 train.py\n"}
    return _by_script(axis, place, {**_base(axis), **arguments})


def _base(axis: str) -> dict[str, Any]:
    base = dict(_BASE)
    return {**base, "bf16": False} if axis in ("precision", "loading", "forced_float32") else base


def _by_script(axis: str, place: str, values: dict[str, Any]) -> Files:
    stated = {name: values.pop(name) for name in AXES[axis].arguments}
    own = {name: value for name, value in stated.items() if name in _OWN}
    if place == KEYWORD:
        passed = {name: _code(value) for name, value in {**values, **stated}.items() if name not in {*_OWN, "upcast"}}
        script = _script("TrainingArguments", passed, {name: _code(value) for name, value in own.items()}, stated)
        return {"train.py": script, "run.sh": "torchrun --nproc_per_node 2 train.py  # kept\n"}
    if place == ARGPARSE:
        lines = [f'parser.add_argument("--{n}", default={_code(v)}{_kind(v)})  # {n}' for n, v in stated.items()]
        above = "import argparse\n\nparser = argparse.ArgumentParser()\n" + "\n".join(lines)
        above += "\noptions = parser.parse_args()\n"
        passed = {name: _code(value) for name, value in values.items()}
        passed |= {name: f"options.{name}" for name in stated if name not in _OWN}
        script = _script("TrainingArguments", passed, {name: f"options.{name}" for name in own}, stated, above)
        return {"train.py": script, "run.sh": "torchrun --nproc_per_node 2 train.py  # kept\n"}
    fields = {name: value if place == DEFAULT else None for name, value in stated.items()}
    declared = "".join(f"    {name}: {_type(stated[name])} = {_code(fields[name])}\n" for name in fields)
    above = f"\n@dataclass\nclass Arguments(TrainingArguments):\n    # the run's own\n{declared}    seed: int = 7\n"
    script = _script("Arguments", None, {name: f"args.{name}" for name in own}, stated, above)
    flags = dict(values)
    if place in (FLAG, VARIABLE):
        flags |= stated
    return {"train.py": script, "run.sh": _command(flags, stated if place == VARIABLE else {})}


def _command(flags: Mapping[str, Any], variables: Mapping[str, Any]) -> str:
    lines = [f"{name.upper()}={_word(value)}\n" for name, value in variables.items()]
    words = [f"    --{n} {_use(n, v) if n in variables else _word(v)} \\\n" for n, v in flags.items()]
    return f"{''.join(lines)}torchrun --nproc_per_node 2 train.py \\\n{''.join(words)}    --output_dir out\n"


def _script(
    made: str, passed: Mapping[str, str] | None, own: Mapping[str, str], stated: Mapping[str, Any], above: str = ""
) -> str:
    imports = ["AutoModelForCausalLM", "AutoTokenizer", "Trainer", "TrainingArguments"]
    imports += ["BitsAndBytesConfig"] if "load_in_4bit" in own and own["load_in_4bit"] != "load_in_4bit" else []
    if passed is None:
        imports.append("HfArgumentParser")
    lines = ["from dataclasses import dataclass", "", "import torch"]
    if {"use_peft", "load_in_4bit"} & stated.keys():
        lines.append("from peft import LoraConfig, get_peft_model")
    lines += ["from transformers import (", *(f"    {name}," for name in sorted(imports)), ")", above]
    if passed is None:
        lines.append(f"(args,) = HfArgumentParser({made}).parse_args_into_dataclasses()")
    else:
        lines += [f"args = {made}(", '    output_dir="out",', *(f"    {n}={c}," for n, c in passed.items()), ")"]
    length = own.get("model_max_length", "1024")
    lines.append(f'tokenizer = AutoTokenizer.from_pretrained("{MODEL}", model_max_length={length})')
    lines += _load(own, stated)
    evaluates = ", eval_dataset=held_out" if "eval_strategy" in stated else ""
    evaluates += ", compute_metrics=scores" if "eval_accumulation_steps" in stated else ""
    lines += [f"Trainer(model=model, args=args, processing_class=tokenizer{evaluates}).train()", ""]
    return "\n".join(lines)


def _load(own: Mapping[str, str], stated: Mapping[str, Any]) -> list[str]:
    dtype = own.get("torch_dtype", '"bfloat16"')
    dtype = f"getattr(torch, {dtype})" if "." in dtype else dtype
    lines = []
    if "load_in_4bit" in stated and own["load_in_4bit"] != "False":
        lines = ["quantized = None", f"if {own['load_in_4bit']}:"]
        lines.append('    quantized = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")')
    lines += ["model = AutoModelForCausalLM.from_pretrained(", f'    "{MODEL}",', f"    torch_dtype={dtype},"]
    if lines[0].startswith("quantized"):
        lines.append("    quantization_config=quantized,")
    if "attn_implementation" in own:
        lines.append(f"    attn_implementation={own['attn_implementation']},")
    lines.append(")")
    if "load_in_4bit" in stated:
        lines.append('model = get_peft_model(model, LoraConfig(r=16, target_modules="all-linear"))')
    if "use_peft" in stated and own["use_peft"] != "False":
        lines += [f"if {own['use_peft']}:", '    config = LoraConfig(r=16, target_modules="all-linear")']
        lines.append("    model = get_peft_model(model, config)")
    if "upcast" in stated:
        lines.append("model = model.float()")
    return lines


def _late() -> str:
    return f"""\
import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("{MODEL}", torch_dtype=torch.bfloat16)
args = TrainingArguments(
    output_dir="out",
    bf16=True,
    deepspeed={{"bf16": {{"enabled": True}}, "zero_optimization": {{"stage": 3}}}},
)
Trainer(model=model, args=args).train()
"""


def _plugin() -> str:
    return _loop(
        "from accelerate import Accelerator, DeepSpeedPlugin",
        'plugin = DeepSpeedPlugin(zero_stage=2, offload_optimizer_device="none")\n'
        'accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=4, deepspeed_plugin=plugin)',
    )


def _loop(imports: str = "from accelerate import Accelerator", made: str = "") -> str:
    made = made or "accelerator = Accelerator(gradient_accumulation_steps=4)"
    return f"""\
import torch
{imports}
from transformers import AutoModelForCausalLM

{made}
model = AutoModelForCausalLM.from_pretrained("{MODEL}", torch_dtype=torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
loader = torch.utils.data.DataLoader(dataset, batch_size=4)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for batch in loader:
    with accelerator.accumulate(model):
        accelerator.backward(model(**batch).loss)
        optimizer.step()
"""


def _launched(axis: str, place: str) -> Files:
    """A loop with Accelerate whose launcher says the rest."""
    sharded = axis in ("sharding", "buckets")
    precision = "no" if axis == "precision" else "bf16"
    script = _loop().replace("torch.bfloat16", "torch.float32") if axis == "precision" else _loop()
    if place == OPTION:
        words = f"--num_processes 2 --mixed_precision {precision}"
        sharded_by = "--use_fsdp --fsdp_version 2 --fsdp_reshard_after_forward false"
        wrapped = "--fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP"
        own = f"{sharded_by} {wrapped}" if axis == "fsdp" else "--multi_gpu"
        words += " --use_deepspeed --zero_stage 2" if sharded else f" {own}"
        return {"train.py": script, "run.sh": f"accelerate launch {words} train.py  # kept\n"}
    if place == NEW_FILE and axis != "buckets":
        arguments = {name: _code(value) for name, value in _BASE.items()}
        return {
            "train.py": _script("TrainingArguments", arguments, {}, {}),
            "run.sh": "torchrun --nproc_per_node 2 train.py  # kept\n",
        }
    kind = {"sharding": "DEEPSPEED", "buckets": "DEEPSPEED", "fsdp": "FSDP"}.get(axis, "MULTI_GPU")
    text = f"# one box\ncompute_environment: LOCAL_MACHINE\ndistributed_type: {kind}\n"
    if kind == "DEEPSPEED":
        text += "deepspeed_config:\n  zero_stage: 2  # enough\n"
    if kind == "FSDP":
        text += "fsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: false\n"
        text += "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
    text += f"mixed_precision: {precision}\nnum_machines: 1\nnum_processes: 2\n"
    command = "accelerate launch --config_file acc.yaml train.py  # kept\n"
    return {"train.py": script, "acc.yaml": text, "run.sh": command}


def _by_json(axis: str) -> Files:
    """A Trainer with a DeepSpeed JSON that says what it can."""
    config: dict[str, Any] = {
        "bf16": {"enabled": axis != "precision"},
        "zero_optimization": {"stage": 2, "reduce_bucket_size": 500_000_000},
        "train_micro_batch_size_per_gpu": 4,
        "gradient_accumulation_steps": 4,
    }
    if axis == "optimizer":
        config["optimizer"] = {"type": "AdamW", "params": {"lr": 1e-5}}
    values = {name: _code(value) for name, value in {**_base(axis), "deepspeed": "ds.json"}.items()}
    return {
        "train.py": _script(
            "TrainingArguments", values, {"torch_dtype": '"float32"'} if axis == "precision" else {}, {}
        ),
        "ds.json": json.dumps(config, indent=2) + "\n",
        "run.sh": "torchrun --nproc_per_node 2 train.py  # kept\n",
    }


def _cards_by_variable() -> Files:
    values = {name: _code(value) for name, value in _BASE.items()}
    script = _script("TrainingArguments", values, {}, {})
    return {"train.py": script, "run.sh": "NPROC=2  # nproc_per_node\ntorchrun --nproc_per_node $NPROC train.py\n"}


def _recipe(axis: str) -> Files:
    text = f"""\
checkpoint_dir: checkpoints/meta-llama/Llama-3.2-1B
precision: {"32-true" if axis in ("loading", "precision") else "bf16-true"}  # as it came
quantize:
devices: {1 if axis == "quantization" else 2}
lora_r: 16
train:
  global_batch_size: 32
  micro_batch_size: 4
  max_seq_length: 1024
"""
    return {"lora.yaml": text, "run.sh": "litgpt finetune_lora --config lora.yaml\n"}


def _code(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _word(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) and " " in value else str(value)


def _use(name: str, value: Any) -> str:
    return f'"${name.upper()}"' if " " in str(value) else f"${name.upper()}"


def _type(value: Any) -> str:
    return type(value).__name__


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return ', type=lambda text: text == "True"'
    return f", type={type(value).__name__}"
