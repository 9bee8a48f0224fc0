"""Whether a run's model is partitioned while it loads, or gets whole onto every GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lintfit.commands.check import load_runs
from lintfit.memory.spec import Spec
from lintfit.options.model import Options
from lintfit.settings.model import UNKNOWN
from tests.support import lintfit

LOAD = 'model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf", torch_dtype=torch.bfloat16)'
ARGUMENTS = 'args = TrainingArguments("out", bf16=True{config})'
TRAIN = "Trainer(model=model, args=args, train_dataset=data).train()"
IMPORTS = """import deepspeed
import torch
from accelerate import Accelerator
from transformers import AutoModel, AutoModelForCausalLM, Trainer, TrainingArguments
from transformers.integrations import HfDeepSpeedConfig
"""
OWN = ', deepspeed="ds.json"'
ZERO_3 = json.dumps({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}, "zero_optimization": {"stage": 3}})
ACCELERATE = """compute_environment: LOCAL_MACHINE
distributed_type: DEEPSPEED
deepspeed_config:
  zero_stage: 3
  zero3_init_flag: {flag}
mixed_precision: bf16
num_processes: 8
"""


def _spec(folder: Path, script: tuple[str, ...], launch: str = "deepspeed --num_gpus 8 train.py", **files: str) -> Spec:
    (folder / "train.py").write_text(IMPORTS + "\n".join(script) + "\n")
    (folder / "run.sh").write_text(launch + "\n")
    (folder / "ds.json").write_text(ZERO_3)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    _, results = load_runs([folder], Options())
    (run,) = [result.run for result in results if result.run.launch is not None]
    assert run.spec is not None
    assert run.spec.zero_stage == 3
    return run.spec


@pytest.mark.parametrize(
    ("script", "partitioned"),
    [
        ((ARGUMENTS.format(config=OWN), LOAD, TRAIN), True),
        ((LOAD, ARGUMENTS.format(config=OWN), TRAIN), False),
        (('model = AutoModel.from_pretrained("bert-base-uncased")', ARGUMENTS.format(config=OWN), LOAD, TRAIN), True),
        (("accelerator = Accelerator()", LOAD, ARGUMENTS.format(config=OWN), TRAIN), False),
        (('alive = HfDeepSpeedConfig("ds.json")', LOAD, ARGUMENTS.format(config=OWN), TRAIN), True),
        ((LOAD, 'engine, *_ = deepspeed.initialize(model=model, config="ds.json")', "engine.step()"), False),
        (
            (
                'with deepspeed.zero.Init(config_dict_or_path="ds.json"):',
                "    " + LOAD,
                'engine, *_ = deepspeed.initialize(model=model, config="ds.json")',
                "engine.step()",
            ),
            True,
        ),
    ],
)
def test_what_comes_first_decides(tmp_path: Path, script: tuple[str, ...], partitioned: bool) -> None:
    assert _spec(tmp_path, script).zero3_init is partitioned


OWN_ARGUMENTS = """from dataclasses import dataclass
from transformers import HfArgumentParser
@dataclass
class Config(TrainingArguments):
    config: str = "ds.json"
parser = HfArgumentParser(Config)"""
"""Arguments of a class that extends the library's, which no trainer gets."""
PARSE = "args = parser.parse_args_into_dataclasses()[0]"
ENGINE = ("engine, *_ = deepspeed.initialize(model=model, config=args.config)", "engine.step()")


@pytest.mark.parametrize(
    ("script", "flags", "partitioned"),
    [
        ((OWN_ARGUMENTS, PARSE, LOAD, *ENGINE), " --output_dir out --deepspeed ds.json", True),
        ((OWN_ARGUMENTS, PARSE, LOAD, *ENGINE), " --output_dir out", False),
        ((OWN_ARGUMENTS, LOAD, PARSE, *ENGINE), " --output_dir out --deepspeed ds.json", False),
    ],
)
def test_parsed_arguments_partition_the_loads_after_them_whoever_gets_them(
    tmp_path: Path, script: tuple[str, ...], flags: str, partitioned: bool
) -> None:
    spec = _spec(tmp_path, script, "deepspeed --num_gpus 8 train.py" + flags)
    assert spec.zero3_init is partitioned


@pytest.mark.parametrize(("first", "whole"), [(True, False), (False, True)])
def test_a_partitioned_model_has_nothing_whole_to_move(tmp_path: Path, first: bool, whole: bool) -> None:
    arguments, load = ARGUMENTS.format(config=""), (LOAD, 'model.to("cuda")')
    script = (arguments, *load, TRAIN) if first else (*load, arguments, TRAIN)
    launch = "accelerate launch --config_file acc.yaml train.py"
    assert _spec(tmp_path, script, launch, acc_yaml=ACCELERATE.format(flag="true")).loaded_on_gpu is whole


@pytest.mark.parametrize(
    ("flag", "accelerate", "config", "partitioned"),
    [
        ("true", "0.34.2", "", True),
        ("false", "0.34.2", "", False),
        ("false", "1.2.0", "", True),
        ("false", "0.34.2", OWN, True),
    ],
)
def test_accelerate_was_told_not_to(tmp_path: Path, flag: str, accelerate: str, config: str, partitioned: bool) -> None:
    script = (ARGUMENTS.format(config=config), LOAD, TRAIN)
    launch = "accelerate launch --config_file acc.yaml train.py"
    files = {"acc_yaml": ACCELERATE.format(flag=flag), "requirements_txt": f"accelerate=={accelerate}\n"}
    assert _spec(tmp_path, script, launch, **files).zero3_init is partitioned


@pytest.mark.parametrize(
    ("place", "loaded"),
    [
        ('"cuda"', True),
        ('"cuda:1"', True),
        ("1", True),
        ('{"": 0}', True),
        ('{"": PartialState().process_index}', True),
        ('{"": "cpu"}', False),
        ('{"model": 0, "lm_head": 1}', False),
        ('"auto"', False),
        ("None", False),
        ("somewhere()", False),
    ],
)
def test_a_device_map_may_put_the_whole_model_on_a_ranks_own_gpu(tmp_path: Path, place: str, loaded: bool) -> None:
    script = (
        "from accelerate import PartialState",
        LOAD[:-1] + f", device_map={place})",
        ARGUMENTS.format(config=""),
        TRAIN,
    )
    assert _sharded(tmp_path, script).loaded_on_gpu is loaded


@pytest.mark.parametrize("place", ['"cuda"', '{"": PartialState().process_index}'])
def test_a_map_that_zero_3_refuses_puts_no_whole_model_on_a_gpu(tmp_path: Path, place: str) -> None:
    load = LOAD[:-1] + f", device_map={place})"
    script = ("from accelerate import PartialState", ARGUMENTS.format(config=OWN), load, TRAIN)
    spec = _spec(tmp_path, script, "torchrun --nproc_per_node 8 train.py")
    assert (spec.zero3_init, spec.loaded_on_gpu) == (True, False)


@pytest.mark.parametrize(
    ("place", "by_tensor"),
    [
        ('"cuda"', True),
        ('{"": 0}', True),
        ('{"": PartialState().process_index}', True),
        ("args.device", True),
        ('"auto"', True),
        ('"cpu"', False),
        ('{"": "cpu"}', False),
        ("None", False),
        ("somewhere()", False),
    ],
)
def test_by_a_device_map_each_tensor_goes_to_its_gpu(tmp_path: Path, place: str, by_tensor: bool) -> None:
    script = (
        "from accelerate import PartialState",
        LOAD[:-1] + f", device_map={place})",
        ARGUMENTS.format(config=""),
        TRAIN,
    )
    assert _sharded(tmp_path, script).placed_by_tensor is by_tensor


@pytest.mark.parametrize(
    ("launch", "loaded"),
    [
        ("deepspeed --include localhost:5 train.py", True),
        ("deepspeed --num_gpus 1 train.py", True),
        ("CUDA_VISIBLE_DEVICES=0 torchrun --nproc_per_node 1 train.py", True),
        ("torchrun --nproc_per_node 1 train.py", False),
        ("deepspeed --num_gpus 8 train.py", False),
    ],
)
def test_a_map_for_all_gpus_puts_the_whole_model_on_the_only_one(tmp_path: Path, launch: str, loaded: bool) -> None:
    zero_2 = ZERO_3.replace('"stage": 3', '"stage": 2')
    script = (LOAD[:-1] + ', device_map="auto")', ARGUMENTS.format(config=OWN.replace("ds", "zero2")), TRAIN)
    (tmp_path / "zero2.json").write_text(zero_2)
    (tmp_path / "train.py").write_text(IMPORTS + "\n".join(script) + "\n")
    (tmp_path / "run.sh").write_text(launch + "\n")
    _, results = load_runs([tmp_path / "run.sh"], Options(gpu="RTX 3090", gpus=8, isolated=True))
    (spec,) = [result.run.spec for result in results]
    assert spec is not None and spec.zero_stage == 2
    assert spec.loaded_on_gpu is loaded


def test_what_bitsandbytes_quantises_is_on_the_gpu_anyway(tmp_path: Path) -> None:
    script = (LOAD[:-1] + ', device_map={"": 0}, load_in_4bit=True)', ARGUMENTS.format(config=""), TRAIN)
    assert not _sharded(tmp_path, script).loaded_on_gpu


def _sharded(folder: Path, script: tuple[str, ...]) -> Spec:
    """The spec of a run under FSDP."""
    (folder / "train.py").write_text(IMPORTS + "\n".join(script) + "\n")
    (folder / "run.sh").write_text("accelerate launch --config_file fsdp.yaml train.py\n")
    (folder / "fsdp.yaml").write_text(ACCELERATE.partition("deepspeed_config")[0].replace("DEEPSPEED", "FSDP"))
    _, results = load_runs([folder], Options())
    (run,) = [result.run for result in results if result.run.launch is not None]
    assert run.spec is not None
    return run.spec


@pytest.mark.parametrize("place", ['{"": 0}', '{"": int(os.environ.get("LOCAL_RANK", 0))}', "[0]"])
def test_a_device_map_that_is_no_word_spreads_nothing(tmp_path: Path, place: str) -> None:
    script = (
        "import os\nfrom transformers import AutoModel, AutoModelForCausalLM, Trainer, TrainingArguments\n"
        f'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", device_map={place})\n'
        'Trainer(model=model, args=TrainingArguments("out", bf16=True)).train()\n'
    )
    (tmp_path / "train.py").write_text(script)
    (tmp_path / "run.sh").write_text("CUDA_VISIBLE_DEVICES=0,1 python train.py\n")
    (run,) = lintfit("check", "run.sh", "--gpu", "3090", "--output-format", "json", cwd=tmp_path).json["runs"]
    assert run["verdict"] == "does-not-fit"


def test_a_base_and_adapters_that_are_loaded_alike_are_spread(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "from peft import PeftModel\n"
        "from transformers import AutoModel, AutoModelForCausalLM, Trainer, TrainingArguments\n"
        'base = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-14B", device_map="auto", torch_dtype="bfloat16")\n'
        'model = PeftModel.from_pretrained(base, "me/adapters", is_trainable=True, device_map="auto")\n'
        'Trainer(model=model, args=TrainingArguments("out", bf16=True), train_dataset=data).train()\n'
    )
    flags = ("--gpu", "3090", "--gpus", "8", "--seq-len", "512", "--output-format", "json")
    (run,) = lintfit("check", "train.py", *flags, cwd=tmp_path).json["runs"]
    assert run["verdict"] == "unknown" and any("device_map" in reason for reason in run["unknown"])


@pytest.mark.parametrize(
    ("place", "verdict"),
    [
        ("CONFIG.model.device_map", "unknown"),
        ("CONFIG.device_map if torch.cuda.is_available() else None", "unknown"),
        ('"auto" if CONFIG.device != "cpu" else None', "unknown"),
        ('"auto" if CONFIG.local_rank < 0 else {"": CONFIG.local_rank}', "unknown"),
        ("get_kbit_device_map()", "does-not-fit"),
        ("torch.cuda.current_device()", "does-not-fit"),
        ("CONFIG.local_rank", "does-not-fit"),
        ("None", "does-not-fit"),
    ],
)
def test_a_device_map_that_nobody_can_tell_may_spread_one_process(tmp_path: Path, place: str, verdict: str) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\n"
        "from settings_elsewhere import CONFIG\n"
        "from transformers import AutoModel, AutoModelForCausalLM, Trainer, TrainingArguments\n"
        "from trl import get_kbit_device_map\n"
        f'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", device_map={place})\n'
        'Trainer(model=model, args=TrainingArguments("out", bf16=True)).train()\n'
    )
    (tmp_path / "run.sh").write_text("CUDA_VISIBLE_DEVICES=0,1 python train.py\n")
    flags = ("--gpu", "3090", "--gpus", "8", "--output-format", "json")
    (run,) = lintfit("check", "run.sh", *flags, cwd=tmp_path).json["runs"]
    assert run["verdict"] == verdict


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ('"auto"', '{"": CONFIG.device}', "unknown"),
        ('{"": CONFIG.device}', '"auto"', "unknown"),
        ("None", '"balanced"', "unknown"),
        ('{"": CONFIG.device}', "None", "does-not-fit"),
    ],
)
def test_the_load_that_is_made_may_be_the_one_that_spreads(
    tmp_path: Path, first: str, second: str, verdict: str
) -> None:
    (tmp_path / "train.py").write_text(
        "from settings_elsewhere import CONFIG, elsewhere\n"
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        "if elsewhere():\n"
        f'    model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", device_map={first})\n'
        "else:\n"
        f'    model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", device_map={second})\n'
        'Trainer(model=model, args=TrainingArguments("out", bf16=True)).train()\n'
    )
    (tmp_path / "run.sh").write_text("CUDA_VISIBLE_DEVICES=0,1 python train.py\n")
    flags = ("--gpu", "3090", "--gpus", "8", "--output-format", "json")
    (run,) = lintfit("check", "run.sh", *flags, cwd=tmp_path).json["runs"]
    assert run["verdict"] == verdict


BARE = ARGUMENTS.format(config="")


@pytest.mark.parametrize(
    ("script", "engine"),
    [
        (('alive = HfDeepSpeedConfig("ds.json")', BARE, LOAD, TRAIN), UNKNOWN),
        (('HfDeepSpeedConfig("ds.json")', BARE, LOAD, TRAIN), "ddp"),
        ((BARE, LOAD, 'alive = HfDeepSpeedConfig("ds.json")', TRAIN), "ddp"),
        ((BARE, LOAD, TRAIN), "ddp"),
        (('alive = HfDeepSpeedConfig("ds.json")', ARGUMENTS.format(config=OWN), LOAD, TRAIN), "deepspeed"),
    ],
)
def test_a_load_for_deepspeed_is_none_of_plain_processes(tmp_path: Path, script: tuple[str, ...], engine: Any) -> None:
    (tmp_path / "train.py").write_text(IMPORTS + "\n".join(script) + "\n")
    (tmp_path / "ds.json").write_text(ZERO_3)
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 8 train.py\n")
    _, (result,) = load_runs([tmp_path / "run.sh"], Options())
    assert result.run.settings["engine"].value == engine


UNSLOTH = """\
from trl import SFTConfig, SFTTrainer
from unsloth import FastLanguageModel

model, tokenizer = FastLanguageModel.from_pretrained("meta-llama/Llama-3.3-70B-Instruct", load_in_4bit=True{place})
model = FastLanguageModel.get_peft_model(model, r=16)
SFTTrainer(model=model, args=SFTConfig("out", bf16=True, max_seq_length=512), train_dataset=data).train()
"""


@pytest.mark.parametrize(
    ("version", "place", "gpus", "verdict"),
    [
        ("2025.11.1", "", 8, "unknown"),
        ("2025.11.1", "", 1, "does-not-fit"),
        ("2025.11.1", ', device_map={"": 0}', 8, "does-not-fit"),
        ("2025.2.15", "", 8, "does-not-fit"),
    ],
)
def test_unsloth_fills_one_gpu_after_the_other(
    tmp_path: Path, version: str, place: str, gpus: int, verdict: str
) -> None:
    (tmp_path / "train.py").write_text(UNSLOTH.format(place=place))
    (tmp_path / "run.sh").write_text("python train.py\n")
    (tmp_path / "requirements.txt").write_text(f"unsloth=={version}\n")
    flags = ("--gpu", "3090", "--gpus", str(gpus), "--output-format", "json")
    (run,) = lintfit("check", "run.sh", *flags, cwd=tmp_path).json["runs"]
    assert run["verdict"] == verdict
