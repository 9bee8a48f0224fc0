"""TRL's YAML on its own, and the recipes of alignment-handbook and open-r1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lintfit.commands.check import load_runs
from lintfit.options.model import Options
from lintfit.run.model import Run
from lintfit.settings.values import Fsdp

ZERO3 = "accelerate launch --config_file recipes/accelerate_configs/zero3.yaml "
TRL = """\
model_name_or_path: Qwen/Qwen2.5-0.5B
dataset_name: trl-lib/Capybara
output_dir: out
learning_rate: 1.0e-5
per_device_train_batch_size: 4
"""
HANDBOOK = """\
model_name_or_path: mistralai/Mistral-7B-v0.1
torch_dtype: bfloat16
use_flash_attention_2: true
dataset_mixer:
  HuggingFaceH4/ultrachat_200k: 1.0
bf16: true
gradient_accumulation_steps: 2
gradient_checkpointing: true
max_seq_length: 2048
per_device_train_batch_size: 8
output_dir: data/zephyr
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def run_of(name: str, text: str, **others: str) -> Run:
        for path, content in {name: text, **others}.items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(content)
        ((result,),) = (load_runs([Path(name)], Options())[1],)
        return result.run

    return run_of


@pytest.mark.parametrize(("path", "text", "command"), [
    ("a.yaml", TRL, "trl sft --config a.yaml"),
    ("dpo/a.yaml", TRL, "trl dpo --config dpo/a.yaml"),
    ("a.yaml", TRL + "num_generations: 8\n", "trl grpo --config a.yaml"),
    ("zephyr/sft/full.yaml", HANDBOOK, ZERO3 + "scripts/sft.py --config zephyr/sft/full.yaml"),
    ("orpo/a.yaml", HANDBOOK, ZERO3 + "scripts/orpo.py --config orpo/a.yaml"),
    ("my file.yaml", TRL + "system_prompt: x\n", ZERO3 + "src/open_r1/sft.py --config 'my file.yaml'"),
])  # fmt: skip
def test_how_it_is_usually_started(run: Any, path: str, text: str, command: str) -> None:
    assert run(path, text).usual_command == command


def test_a_recipe_of_the_handbook(run: Any) -> None:
    found = run("zephyr/sft/full.yaml", HANDBOOK)
    names = ("model", "method", "weights_dtype", "attention", "micro_batch_size", "gradient_accumulation_steps")
    assert [found.value(name) for name in names] == [
        "mistralai/Mistral-7B-v0.1", "full", "bf16", "flash_attention_2", 8, 2,
    ]  # fmt: skip
    assert (found.value("seq_len"), found.value("gradient_checkpointing")) == (2048, True)
    assert (found.value("engine"), found.value("zero_stage"), found.value("gpus")) == ("deepspeed", 3, None)
    assert found.settings["engine"].provenance.kind == "assumed"
    assert found.refused == () and found.recipe.document.path == Path("zephyr/sft/full.yaml")


def test_its_dpo_script_loads_a_reference_model_for_adapters_too(run: Any) -> None:
    assert run("zephyr/dpo/lora.yaml", HANDBOOK + "use_peft: true\n").value("reference_model") is True
    assert run("dpo/lora.yaml", TRL + "use_peft: true\n").value("reference_model") is False


def test_keys_that_accelerate_gets(run: Any) -> None:
    found = run("a.yaml", TRL + "accelerate_config: zero3\nnum_processes: 4\n")
    assert (found.value("engine"), found.value("zero_stage"), found.value("gpus")) == ("deepspeed", 3, 4)
    found = run("a.yaml", TRL + "accelerate_config: fsdp2\nnum_processes: 2\n")
    assert (found.value("engine"), found.value("fsdp")) == ("fsdp", Fsdp(2, "FULL_SHARD", False))
    found = run("a.yaml", TRL + "num_processes: many\n")
    assert found.value("gpus") is None


def test_an_accelerate_file_that_it_names(run: Any) -> None:
    config = "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_processes: 6\nnum_machines: 1\n"
    found = run("a.yaml", TRL + "accelerate_config: acc.yaml\n", **{"acc.yaml": config})
    assert (found.value("engine"), found.value("gpus")) == ("ddp", 6)
    found = run("a.yaml", TRL + "accelerate_config: nowhere.yaml\n")
    assert found.value("engine") is None and [each.name for each in found.missing] == ["nowhere.yaml"]


def test_keys_of_a_file_without_its_launch_line_are_not_refused(run: Any, tmp_path: Path) -> None:
    assert run("a.yaml", TRL + "my_own_key: 1\n").refused == ()
    Path("go.sh").write_text("trl sft --config a.yaml\n")
    ((result,),) = (load_runs([Path("go.sh")], Options())[1],)
    assert [each.name for each in result.run.refused] == ["my_own_key"]


@pytest.mark.parametrize(("pin", "length"), [("0.15.2", 1024), ("0.16.0", 4096)])
def test_an_older_trl_reads_no_max_length(run: Any, pin: str, length: int) -> None:
    found = run("a.yaml", TRL + "max_length: 4096\n", **{"requirements.txt": f"trl=={pin}\n"})
    assert found.value("seq_len") == length
