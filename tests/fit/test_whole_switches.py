"""A switch brings what belongs to it: the 16-bit type that the GPUs can do, the input that adapters need open."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.commands.check import load_runs
from lintfit.documents.workspace import Workspace
from lintfit.fit.applying import Applied, apply_changes
from lintfit.fit.axes import sharding
from lintfit.fit.options import Subject
from lintfit.options.model import Options
from lintfit.run.model import Run

TRAINER = """\
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-3.2-1B", torch_dtype="bfloat16")
{opened}model = {wrap}
args = TrainingArguments("out", bf16=True{more})
Trainer(model=model, args=args).train()
"""
PARSED = """\
from transformers import HfArgumentParser
(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()"""
WRAP = 'get_peft_model(model, LoraConfig(r=8, task_type="CAUSAL_LM"))'


def _run(folder: Path, script: str, gpu: str = "GeForce RTX 3090", transformers: str = "4.46.0") -> tuple[Run, Options]:
    (folder / "train.py").write_text(script)
    (folder / "run.sh").write_text("torchrun --nproc_per_node 4 train.py\n")
    (folder / "requirements.txt").write_text(f"transformers=={transformers}\n")
    options = Options(gpu=gpu, isolated=True, origins={"gpu": "--gpu"})
    (judged,) = load_runs([folder / "run.sh"], options)[1]
    return judged.run, options


@pytest.mark.parametrize(
    ("opened", "more", "transformers", "added"),
    [
        ("", "", "4.34.0", True),
        ("", "", "5.2.0", False),
        ("", ', gradient_checkpointing_kwargs={"use_reentrant": False}', "4.46.0", False),
        ("model.enable_input_require_grads()\n", "", "4.34.0", False),
    ],
)
def test_checkpointing_by_the_trainer_opens_the_input_of_the_scripts_own_adapters(
    opened: str, more: str, transformers: str, added: bool, tmp_path: Path
) -> None:
    script = TRAINER.format(opened=opened, wrap=WRAP, more=more)
    run, options = _run(tmp_path, script, transformers=transformers)
    applied = apply_changes(run, {"gradient_checkpointing": True}, Workspace(), options)
    assert isinstance(applied, Applied)
    after = applied.texts[tmp_path / "train.py"]
    assert "gradient_checkpointing=True" in after
    line = f"model.enable_input_require_grads()\nmodel = {WRAP}"
    assert (line in after) is (added or bool(opened))
    assert after.count("enable_input_require_grads") == (added or bool(opened))
    reenters = transformers.startswith("4") and not more
    assert ("ddp_find_unused_parameters=False" in after) is reenters, "DDP would meet the layers twice"


def test_adapters_under_ddp_are_checkpointed_without_reentering_where_the_release_can(tmp_path: Path) -> None:
    """One argument for what the input and DDP's search would need a line each for."""
    run, options = _run(tmp_path, TRAINER.format(opened="", wrap=WRAP, more=""))
    applied = apply_changes(run, {"gradient_checkpointing": True}, Workspace(), options)
    assert isinstance(applied, Applied)
    after = applied.texts[tmp_path / "train.py"]
    assert 'gradient_checkpointing_kwargs={"use_reentrant": False}' in after
    assert "gradient_checkpointing=True" in after
    assert "enable_input_require_grads" not in after and "find_unused" not in after


def test_a_script_that_nothing_launches_is_given_nothing_for_ddp(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINER.format(opened="", wrap=WRAP, more=""))
    (tmp_path / "requirements.txt").write_text("transformers==4.46.0\n")
    options = Options(gpu="GeForce RTX 3090", gpus=8, isolated=True, origins={"gpu": "--gpu", "gpus": "--gpus"})
    (judged,) = load_runs([tmp_path / "train.py"], options)[1]
    applied = apply_changes(judged.run, {"gradient_checkpointing": True}, Workspace(), options)
    assert isinstance(applied, Applied)
    after = applied.texts[tmp_path / "train.py"]
    assert f"model.enable_input_require_grads()\nmodel = {WRAP}" in after and "gradient_checkpointing=True)" in after


@pytest.mark.parametrize(
    ("load", "asked", "added"),
    [
        ("", "", True),
        (", load_in_4bit=True", "", False),
        (", load_in_4bit=True", ", use_gradient_checkpointing=False", True),
    ],
)
def test_preparing_for_low_bits_opens_the_input_of_a_quantised_base_alone(
    load: str, asked: str, added: bool, tmp_path: Path
) -> None:
    prepared = (
        f"from peft import prepare_model_for_kbit_training\nmodel = prepare_model_for_kbit_training(model{asked})\n"
    )
    script = TRAINER.format(opened=prepared, wrap=WRAP, more="")
    script = script.replace('torch_dtype="bfloat16")', f'torch_dtype="bfloat16"{load})')
    run, options = _run(tmp_path, script, transformers="4.34.0")
    applied = apply_changes(run, {"gradient_checkpointing": True}, Workspace(), options)
    assert isinstance(applied, Applied)
    after = applied.texts.get(tmp_path / "train.py", "")  # a quantised base is checkpointed already
    assert ("model.enable_input_require_grads()" in after) is added


def test_the_line_is_named_where_a_person_has_to_place_it(tmp_path: Path) -> None:
    script = TRAINER.format(opened="", wrap=WRAP.replace("(model,", "(prepared(model),"), more="")
    run, options = _run(tmp_path, script)
    applied = apply_changes(run, {"gradient_checkpointing": True}, Workspace(), options)
    assert isinstance(applied, str) and "enable_input_require_grads()" in applied


@pytest.mark.parametrize(("gpu", "precision"), [("Tesla V100-SXM2-32GB", "fp16"), ("GeForce RTX 3090", "bf16")])
def test_deepspeed_comes_with_the_type_that_the_gpus_can_do(gpu: str, precision: str, tmp_path: Path) -> None:
    script = TRAINER.format(opened="", wrap="model", more=", tf32=True").replace(', torch_dtype="bfloat16"', "")
    run, options = _run(tmp_path, script, gpu)
    assert run.spec is not None
    found = {option.name: option for option in sharding.options(Subject(run, run.spec))}
    changes = found["ZeRO-3"].changes
    assert changes["mixed_precision"] == precision
    applied = apply_changes(run, changes, Workspace(), options)
    assert isinstance(applied, Applied)
    after = applied.texts[tmp_path / "train.py"]
    assert f"{precision}=True" in after
    assert ("tf32" in after) is (gpu == "GeForce RTX 3090")
    assert applied.run.spec is not None and applied.run.spec.mixed_precision == precision


def test_flags_at_the_end_of_a_launch_leave_no_blank_line(tmp_path: Path) -> None:
    script = TRAINER.format(opened="", wrap="model", more="")
    script = script.replace('args = TrainingArguments("out", bf16=True)', PARSED).replace(
        ', torch_dtype="bfloat16"', ""
    )
    _run(tmp_path, script)
    launch = "torchrun --nproc_per_node 4 train.py \\\n  --bf16 True \\\n"
    flags = '  --fsdp "full_shard auto_wrap" \\\n'
    flags += "  --fsdp_transformer_layer_cls_to_wrap LlamaDecoderLayer \\\n  --tf32 True\n"
    (tmp_path / "run.sh").write_text(launch + flags)
    options = Options(gpu="Tesla V100-SXM2-32GB", isolated=True, origins={"gpu": "--gpu"})
    (judged,) = load_runs([tmp_path / "run.sh"], options)[1]
    assert judged.run.spec is not None
    found = {option.name: option for option in sharding.options(Subject(judged.run, judged.run.spec))}
    applied = apply_changes(judged.run, found["ZeRO-2"].changes, Workspace(), options)
    assert isinstance(applied, Applied)
    after = applied.texts[tmp_path / "run.sh"]
    assert after == launch.replace("bf16", "fp16") + "  --deepspeed ds_zero2.json\n"


@pytest.mark.parametrize("switch", ["args.gradient_checkpointing", "gradient_checkpointing"])
@pytest.mark.parametrize(("opened", "added"), [("    model.enable_input_require_grads()\n", False), ("", True)])
def test_a_switch_that_opens_the_input_itself_needs_no_further_line(
    opened: str, added: bool, switch: str, tmp_path: Path
) -> None:
    (tmp_path / "run.sh").write_text("python train.py\n")
    (tmp_path / "train.py").write_text(
        "import argparse\nimport torch\nfrom peft import LoraConfig, get_peft_model\n"
        "from transformers import AutoModelForCausalLM\n"
        "p = argparse.ArgumentParser()\np.add_argument('--gradient_checkpointing', action='store_true')\n"
        "args = p.parse_args()\ngradient_checkpointing = args.gradient_checkpointing\n"
        "model = AutoModelForCausalLM.from_pretrained('meta-llama/Llama-3.2-1B').cuda()\n"
        f"model = {WRAP}\nif {switch}:\n{opened}    model.gradient_checkpointing_enable()\n"
        "optimizer = torch.optim.AdamW(model.parameters())\nfor batch in loader:\n"
        "    model(**batch).loss.backward()\n    optimizer.step()\n"
    )
    (tmp_path / "requirements.txt").write_text("transformers==4.46.0\n")
    options = Options(gpu="GeForce RTX 3090", isolated=True, origins={"gpu": "--gpu"})
    (judged,) = load_runs([tmp_path / "run.sh"], options)[1]
    applied = apply_changes(judged.run, {"gradient_checkpointing": True}, Workspace(), options)
    assert isinstance(applied, Applied)
    assert "--gradient_checkpointing" in applied.texts[tmp_path / "run.sh"]
    after = applied.texts.get(tmp_path / "train.py", "")
    assert after.count("enable_input_require_grads()") == added


MAKES = """\
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments


def adapted(model, {parameter}):
    model = {wrap}
    return model


(parsed,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
base = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-3.2-1B", torch_dtype="bfloat16")
Trainer(model=adapted(base, {handed}), args=parsed).train()
"""


@pytest.mark.parametrize(
    ("parameter", "handed", "line"),
    [
        ("given", "parsed", "    if given.gradient_checkpointing:\n        model.enable_input_require_grads()\n"),
        ("given", "given=parsed", "    if given.gradient_checkpointing:\n        model.enable_input_require_grads()\n"),
        ("rank", "8", "\n    model.enable_input_require_grads()\n"),
    ],
)
def test_the_input_is_opened_for_launches_that_checkpoint(
    parameter: str, handed: str, line: str, tmp_path: Path
) -> None:
    run, options = _run(tmp_path, MAKES.format(parameter=parameter, handed=handed, wrap=WRAP), transformers="4.34.0")
    applied = apply_changes(run, {"gradient_checkpointing": True}, Workspace(), options)
    assert isinstance(applied, Applied)
    assert "--gradient_checkpointing True" in applied.texts[tmp_path / "run.sh"]
    assert f"{line}    model = {WRAP}" in applied.texts[tmp_path / "train.py"]


def test_the_input_is_opened_for_launches_that_checkpoint_where_the_script_makes_all(tmp_path: Path) -> None:
    args = 'args = TrainingArguments("out", bf16=True)\n'
    script = TRAINER.format(opened="", wrap=WRAP, more="").replace(args, "")
    script = script.replace("\nmodel = Auto", f"\n{PARSED}\nmodel = Auto")
    run, options = _run(tmp_path, script, transformers="4.34.0")
    applied = apply_changes(run, {"gradient_checkpointing": True}, Workspace(), options)
    assert isinstance(applied, Applied)
    line = f"if args.gradient_checkpointing:\n    model.enable_input_require_grads()\nmodel = {WRAP}"
    assert line in applied.texts[tmp_path / "train.py"]


def test_an_input_that_the_switch_opens_is_opened_once(tmp_path: Path) -> None:
    script = MAKES.format(parameter="given", handed="parsed", wrap=WRAP)
    opened = "if given.gradient_checkpointing:\n        model.enable_input_require_grads()\n    model = get_peft"
    run, options = _run(tmp_path, script.replace("model = get_peft", opened), transformers="4.34.0")
    applied = apply_changes(run, {"gradient_checkpointing": True}, Workspace(), options)
    assert isinstance(applied, Applied)
    assert {path.name for path in applied.texts} == {"run.sh"}


TRLS = """\
from peft import LoraConfig
from transformers import AutoModelForCausalLM
from trl import DPOConfig, DPOTrainer

args = DPOConfig(output_dir="out", bf16=True, gradient_checkpointing=False)
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype="bfloat16")
DPOTrainer(model, args=args, train_dataset=data{adapters}).train()
"""
ADAPTERS = ', peft_config=LoraConfig(r=8, target_modules=["q_proj", "v_proj"])'


@pytest.mark.parametrize(
    ("adapters", "trl", "told"), [(ADAPTERS, "0.9.6", True), (ADAPTERS, "0.27.0", False), ("", "0.9.6", False)]
)
def test_adapters_that_trl_puts_in_are_checkpointed_without_reentering(
    adapters: str, trl: str, told: bool, tmp_path: Path
) -> None:
    run, options = _run(tmp_path, TRLS.format(adapters=adapters), transformers=f"4.57.1\ntrl=={trl}")
    applied = apply_changes(run, {"gradient_checkpointing": True}, Workspace(), options)
    assert isinstance(applied, Applied)
    assert ('gradient_checkpointing_kwargs={"use_reentrant": False}' in applied.texts[tmp_path / "train.py"]) is told
