"""A setting is written where it lives, in the file's own style, and nothing else of the run changes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lintfit.commands.check import load_runs
from lintfit.documents.workspace import Workspace
from lintfit.fit.applying import Applied, apply_changes
from lintfit.options.model import Options
from lintfit.run.model import Run
from tests.support import lintfit

HOMES = ("keyword", "default", "flag", "config")
"""Where the two sizes of the batch are stated: a keyword in the script, a dataclass's default, a flag, the JSON."""

DATACLASS = """\
import dataclasses
from dataclasses import dataclass, field

import transformers
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer


@dataclass
class Arguments(transformers.TrainingArguments):
    # how the run is cut into steps
    per_device_train_batch_size: int = field(default={micro}, metadata={{"help": "per GPU"}})
    gradient_accumulation_steps: int = {steps}
    model_max_length: int = field(
        default=512,
    )


def main():
    (args,) = HfArgumentParser(Arguments).parse_args_into_dataclasses()
    model = AutoModelForCausalLM.from_pretrained({quote}Qwen/Qwen2.5-0.5B{quote}, torch_dtype="auto")
    Trainer(model=model, args=args).train()


main()
"""

KEYWORDS = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

args = TrainingArguments(
{indent}output_dir={quote}out{quote},{batch}
{indent}num_train_epochs=3,  # enough
{indent}bf16=True,
{indent}deepspeed={quote}ds.json{quote},
)
model = AutoModelForCausalLM.from_pretrained({quote}Qwen/Qwen2.5-0.5B{quote}, torch_dtype={quote}auto{quote})
Trainer(model=model, args=args).train()
"""

styles = st.fixed_dictionaries(
    {
        "home": st.sampled_from(HOMES),
        "newline": st.sampled_from(["\n", "\r\n"]),
        "bom": st.booleans(),
        "quote": st.sampled_from(["'", '"']),
        "indent": st.sampled_from(["  ", "    ", "\t"]),
        "json_indent": st.sampled_from([2, 4, "\t", None]),
        "micro": st.sampled_from([2, 4, 8]),
        "steps": st.sampled_from([1, 2, 3]),
        "equals": st.booleans(),
        "stage": st.sampled_from([1, 2, 3]),
    }
)
asked = st.fixed_dictionaries(
    {},
    optional={
        "batch": st.just(None),
        "gradient_checkpointing": st.just(True),
        "zero_stage": st.sampled_from([1, 2, 3]),
        "offload_optimizer": st.just("cpu"),
        "optimizer": st.just("adafactor"),
    },
).filter(lambda wanted: wanted and not {"offload_optimizer", "optimizer"} <= wanted.keys())
"""Offloading puts DeepSpeedCPUAdam in the place of any other optimizer: the two are not asked for together."""


def _project(folder: Path, style: Mapping[str, Any]) -> None:
    home, micro, steps = style["home"], style["micro"], style["steps"]
    batch = {"train_micro_batch_size_per_gpu": micro, "gradient_accumulation_steps": steps}
    config = {
        "bf16": {"enabled": True},
        **(batch if home == "config" else dict.fromkeys(batch, "auto")),
        "zero_optimization": {"stage": style["stage"], "overlap_comm": False},
    }
    _write(folder / "ds.json", json.dumps(config, indent=style["json_indent"]) + "\n", style)
    flags = ""
    if home in ("keyword", "config"):
        lines = [f"per_device_train_batch_size={micro}", f"gradient_accumulation_steps={steps}"]
        stated = "".join(f"\n{style['indent']}{line}," for line in lines)
        script = KEYWORDS.format(batch=stated, indent=style["indent"], quote=style["quote"])
    else:
        defaults = (micro, steps) if home == "default" else (1, 1)
        script = DATACLASS.format(micro=defaults[0], steps=defaults[1], quote=style["quote"])
        flags = " \\\n  --output_dir out --bf16 True --deepspeed ds.json"
        if home == "flag":
            mark = "=" if style["equals"] else " "
            flags += f" \\\n  --per_device_train_batch_size{mark}{micro} --gradient_accumulation_steps{mark}{steps}"
    _write(folder / "train.py", script, style)
    (folder / "run.sh").write_text(f"#!/bin/bash\n# the small one\ntorchrun --nproc_per_node 2 train.py{flags}\n")


def _write(path: Path, text: str, style: Mapping[str, Any]) -> None:
    data = text.replace("\n", style["newline"]).encode()
    path.write_bytes((b"\xef\xbb\xbf" if style["bom"] and path.suffix == ".py" else b"") + data)


def _changes(run: Run, wanted: Mapping[str, Any]) -> dict[str, Any]:
    changes = dict(wanted)
    if "batch" in changes:
        del changes["batch"]
        assert run.spec is not None
        changes["micro_batch_size"] = run.spec.micro_batch_size // 2
        changes["gradient_accumulation_steps"] = run.spec.gradient_accumulation_steps * 2
    return changes


def _settings(run: Run) -> dict[str, Any]:
    return {name: setting.value for name, setting in run.settings.items()}


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(styles, asked)
def test_what_is_asked_is_written_where_it_lives_and_nothing_else_changes(
    style: dict[str, Any], wanted: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _project(folder, style)
        options = Options(gpu="A100-SXM4-80GB", gpus=2, isolated=True, origins={"gpu": "--gpu", "gpus": "--gpus"})
        (judged,) = load_runs([folder], options)[1]
        run = judged.run
        assert run.spec is not None
        changes = _changes(run, wanted)
        carried = apply_changes(run, changes, Workspace(), options)
        assert isinstance(carried, Applied)
        after = carried.run.spec
        assert after is not None
        for key, value in changes.items():
            assert getattr(after, key) == value, key
        before_settings, after_settings = _settings(run), _settings(carried.run)
        changed = {key for key in after_settings if after_settings[key] != before_settings.get(key)}
        # What follows by a library's default (use_reentrant once there is checkpointing) is nobody's value.
        stated = {key for key in changed if carried.run.settings[key].provenance.kind == "file"}
        assert stated <= changes.keys()
        assert before_settings.keys() <= after_settings.keys()
        for path, text in carried.texts.items():
            original = Workspace().file(path).text
            if "\r\n" in original:
                assert text.count("\n") == text.count("\r\n")
            if original.count("\n") > 1:
                kept = [line for line in original.splitlines() if line in text.splitlines()]
                assert len(kept) >= len(original.splitlines()) - 2 * len(changes)
        homes = {carried.places[key].name for key in ("micro_batch_size",) if key in carried.places}
        expected = {"keyword": "train.py", "default": "run.sh", "flag": "run.sh", "config": "ds.json"}
        assert homes <= {expected[style["home"]]}


SWITCHES = """\
torchrun --nproc_per_node 8 train.py \\
    --output_dir out \\
    {bf16} \\
    --do_train \\
    --per_device_train_batch_size 1
"""
PARSED = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B", torch_dtype="bfloat16")
Trainer(model=model, args=args).train()
"""


@pytest.mark.parametrize(
    ("bf16", "written"),
    [("--bf16", "--gradient_checkpointing \\\n"), ("--bf16 True", "--gradient_checkpointing True \\\n")],
)
def test_a_switch_is_given_as_the_launch_gives_its_others(tmp_path: Path, bf16: str, written: str) -> None:
    (tmp_path / "train.py").write_text(PARSED)
    (tmp_path / "run.sh").write_text(SWITCHES.format(bf16=bf16))
    lintfit("check", "run.sh", "--fix", "--unsafe-fixes", "--gpu", "3090", "--seq-len", "4096", cwd=tmp_path)
    assert written in (tmp_path / "run.sh").read_text()


def test_the_main_of_another_module_is_no_caller(tmp_path: Path) -> None:
    train = """\
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

from data import prepare


def main():
    model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype="bfloat16")
    model = get_peft_model(model, LoraConfig(r=8, target_modules=["q_proj", "v_proj"]))
    args = TrainingArguments(output_dir="out", bf16=True, per_device_train_batch_size=1)
    Trainer(model=model, args=args, train_dataset=prepare()).train()


if __name__ == "__main__":
    main()
"""
    data = """\
def prepare():
    return []


def main():
    prepare()


if __name__ == "__main__":
    main()
"""
    for name, text in (("train.py", train), ("data.py", data), ("run.sh", "python train.py\n")):
        (tmp_path / name).write_text(text)
    lintfit("check", "run.sh", "--fix", "--unsafe-fixes", "--gpu", "3090", "--seq-len", "2048", cwd=tmp_path)
    after = (tmp_path / "train.py").read_text()
    assert "model.enable_input_require_grads()" in after
    assert "gradient_checkpointing=True" in after
