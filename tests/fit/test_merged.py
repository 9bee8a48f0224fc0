"""Plans as the maintainer of a repository would write them: where, whole, and with what else belongs to it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support import lintfit

TRAINER = """from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser((TrainingArguments,)).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf")
trainer = Trainer(model=model, args=args, train_dataset=[])
trainer.train()
"""
STATE_DICT = TRAINER + "weights = trainer.model.state_dict()\ntrainer._save(args.output_dir, state_dict=weights)\n"
ON = ("--isolated", "--fix", "--unsafe-fixes", "--seq-len", "512")


def checked(folder: Path, name: str, gpu: str, gpus: int, *more: str) -> str:
    return lintfit("check", name, "--gpu", gpu, "--gpus", str(gpus), *ON, *more, cwd=folder).out


def config(folder: Path, name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / name).read_text())
    return found


def test_a_script_that_saves_its_state_dict_is_not_given_zero3(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(STATE_DICT)
    launch = "torchrun --nproc_per_node 8 train.py --output_dir out --bf16 True --gradient_checkpointing True\n"
    (tmp_path / "run.sh").write_text(launch)
    (tmp_path / "requirements.txt").write_text("transformers==4.29.2\ndeepspeed\n")
    checked(tmp_path, "run.sh", "rtx-3090", 8)
    written = (tmp_path / "run.sh").read_text()
    assert "--deepspeed ds_zero2_offload.json" in written
    assert (tmp_path / "train.py").read_text() == STATE_DICT


def test_the_state_dict_of_fsdp_is_taken_on_the_host_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(STATE_DICT)
    fsdp = "--fsdp 'full_shard auto_wrap' --fsdp_transformer_layer_cls_to_wrap LlamaDecoderLayer"
    launch = f"torchrun --nproc_per_node 8 train.py --output_dir out --bf16 True --gradient_checkpointing True {fsdp}\n"
    (tmp_path / "run.sh").write_text(launch)
    (tmp_path / "requirements.txt").write_text("transformers==4.45.2\n")
    checked(tmp_path, "run.sh", "rtx-3090", 8)
    gathered = "trainer.accelerator.get_state_dict(trainer.model_wrapped)"
    expected = STATE_DICT.replace("trainer.model.state_dict()", gathered)
    assert (tmp_path / "train.py").read_text() == expected
    assert "deepspeed" not in (tmp_path / "run.sh").read_text()


def test_weights_are_gathered_for_checkpoints_once_zero3_shards_them(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINER)
    (tmp_path / "zero2.json").write_text('{"zero_optimization": {"stage": 2}, "bf16": {"enabled": "auto"}}\n')
    launch = "deepspeed --num_gpus 4 train.py --output_dir out --bf16 True --deepspeed zero2.json\n"
    (tmp_path / "run.sh").write_text(launch + launch.replace("out", "other"))
    checked(tmp_path, "run.sh", "a100-40gb", 4)
    made = next(path for path in tmp_path.glob("*.json") if path.name != "zero2.json")
    assert made.name.startswith("zero3")
    zero = config(tmp_path, made.name)["zero_optimization"]
    assert isinstance(zero, dict) and zero["stage3_gather_16bit_weights_on_model_save"] is True


def test_a_documented_launch_of_a_recipe_is_the_recipe(tmp_path: Path) -> None:
    recipe = (
        "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\ndo_train: true\nfinetuning_type: full\ntemplate: qwen\n"
        "dataset: alpaca\ncutoff_len: 512\noutput_dir: out\nper_device_train_batch_size: 1\n"
        "gradient_accumulation_steps: 8\nbf16: true\n"
    )
    (tmp_path / "full.yaml").write_text(recipe)
    (tmp_path / "README.md").write_text("# Examples\n\n```bash\nllamafactory-cli train full.yaml\n```\n")
    folder = tmp_path / "examples/deepspeed"
    folder.mkdir(parents=True)
    zero3 = {"stage": 3, "stage3_gather_16bit_weights_on_model_save": True}
    offload = {name: {"device": "cpu"} for name in ("offload_optimizer", "offload_param")}
    for name, section in (("ds_z3_config", zero3), ("ds_z3_offload_config", {**zero3, **offload})):
        text = json.dumps({"bf16": {"enabled": "auto"}, "zero_optimization": section})
        (folder / f"{name}.json").write_text(text)
    checked(tmp_path, "full.yaml", "rtx-3090", 4)
    lines = (tmp_path / "full.yaml").read_text().splitlines()
    assert lines[lines.index("finetuning_type: full") + 1] == "deepspeed: examples/deepspeed/ds_z3_offload_config.json"


def test_a_plan_by_hand_shows_the_file_that_is_to_be_made(tmp_path: Path) -> None:
    script = TRAINER.replace(
        "parse_args_into_dataclasses()", "parse_args_into_dataclasses()\nargs.optim = 'adamw_torch'"
    )
    (tmp_path / "train.py").write_text(script + "weights = trainer.model.state_dict()\n")
    (tmp_path / "requirements.txt").write_text("transformers==4.29.2\n")
    launch = "torchrun --nproc_per_node 2 train.py --output_dir out --bf16 True --gradient_checkpointing True\n"
    (tmp_path / "run.sh").write_text(launch.replace("2 train", "4 train"))
    (tmp_path / "lintfit.toml").write_text("")
    shown = lintfit(
        "fit", "run.sh", "--gpu", "a100-40gb", "--gpus", "4", "--seq-len", "512", "--isolated", cwd=tmp_path
    ).out
    assert "saves state_dict() of the model, which ZeRO-3 shards" in " ".join(shown.split())
    assert '"stage": 3' in shown


def test_a_number_that_others_are_worked_out_from_is_edited_though_a_line_prints_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINER)
    script = (
        "GPUS=8\nMICRO=16\nTOTAL=128\nSTEPS=$(($TOTAL/$GPUS/$MICRO))\n"
        'echo "micro-batches of $MICRO, $STEPS of them"\n\n'
        "deepspeed --num_gpus $GPUS train.py --output_dir out --bf16 True --gradient_checkpointing True \\\n"
        "    --per_device_train_batch_size $MICRO --gradient_accumulation_steps $STEPS --deepspeed ds.json\n"
    )
    (tmp_path / "run.sh").write_text(script)
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 3}, "bf16": {"enabled": "auto"}}\n')
    options = ("--gpu", "rtx-3090", "--gpus", "8", "--isolated", "--fix", "--unsafe-fixes", "--seq-len", "4096")
    lintfit("check", "run.sh", *options, cwd=tmp_path)
    written = (tmp_path / "run.sh").read_text()
    assert "MICRO=16\n" not in written
    assert "$MICRO --gradient_accumulation_steps $STEPS" in written
