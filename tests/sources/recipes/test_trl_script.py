"""A recipe of TRL says what its script says: ``trl sft`` starts ``trl/scripts/sft.py``, read here as Python."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lintfit.documents.model import DataDocument, FileText, Kind
from lintfit.documents.python_reader import read_python
from lintfit.documents.shell_document import ShellDocument
from lintfit.documents.yaml_reader import read_yaml
from lintfit.settings.model import Setting
from lintfit.sources.launchers.launch import Launch
from lintfit.sources.launchers.launcher import read_launches
from lintfit.sources.recipes.trl import TRAINERS, read_recipe
from lintfit.sources.script.source import ScriptSource, read_script
from tests.support import ROOT

Read = Callable[[str], ShellDocument]

SCRIPT = """\
from trl import {kind}Config, {kind}Trainer, ModelConfig, ScriptArguments, TrlParser
from trl import get_peft_config, get_quantization_config

parser = TrlParser((ScriptArguments, {kind}Config, ModelConfig))
script_args, training_args, model_args = parser.parse_args_and_config()
trainer = {kind}Trainer(
    model=model_args.model_name_or_path,
    args=training_args,
    eval_dataset=dataset[script_args.dataset_test_split] if training_args.eval_strategy != "no" else None,
    model_init_kwargs=dict(attn_implementation=model_args.attn_implementation, dtype=model_args.{dtype}),
    quantization_config=get_quantization_config(model_args),
    peft_config=get_peft_config(model_args),
)
trainer.train()
trainer.save_model(training_args.output_dir)
"""
"""What the scripts of all commands have in common, as far as memory goes."""

PLAIN = ""
WIDE = """\
model_name_or_path: Qwen/Qwen2.5-7B
per_device_train_batch_size: 2
gradient_accumulation_steps: 8
bf16: true
gradient_checkpointing: true
gradient_checkpointing_kwargs: {use_reentrant: false}
attn_implementation: kernels-community/flash-attn2
use_peft: true
lora_r: 32
lora_target_modules: [q_proj, v_proj]
lora_modules_to_save: [lm_head]
load_in_4bit: true
use_bnb_nested_quant: true
eval_strategy: steps
per_device_eval_batch_size: 4
max_length: 4096
"""
SHARDED = """\
model_name_or_path: TheBloke/Llama-2-7B-AWQ
fsdp: shard_grad_op offload
fsdp_config:
  activation_checkpointing: true
  auto_wrap_policy: NO_WRAP
optim: adamw_8bit
use_liger_kernel: true
eval_strategy: "no"
torch_compile: true
"""
ZERO = """\
model_name_or_path: Qwen/Qwen2.5-7B
deepspeed:
  optimizer:
    type: AdamW
  zero_optimization:
    stage: 3
    offload_optimizer:
      device: cpu
    offload_param: auto
gradient_checkpointing: null
activation_offloading: true
beta: 0.1
"""
FLAGS = (
    "--model_name_or_path m",
    "--model_name_or_path m --fp16 true --per_device_train_batch_size 4 --max_length $LENGTH",
    "--per_device_train_batch_size 1 --use_peft --load_in_8bit --lora_target_modules q_proj k_proj --loss_type nll",
    "--beta 0.0 --use_vllm --vllm_mode colocate --eval_on_start --dtype bfloat16 --torch_dtype float16",
    "--no_gradient_checkpointing --attn_implementation $KERNEL --use_peft $ADAPT --load_in_4bit $BITS --deepspeed ''",
)
VERSIONS: tuple[Mapping[str, str], ...] = (
    {},
    {"trl": "0.12.0", "transformers": "4.44.0"},
    {"trl": "0.22.0", "transformers": "4.56.0"},
    {"trl": "<1.0", "transformers": "4.57.1"},
    {"trl": "1.9.0", "transformers": "5.2.0"},
    {"trl": "1.16.0", "transformers": "5.13.0"},
)


@pytest.mark.parametrize("versions", VERSIONS, ids=lambda versions: versions.get("trl", "newest"))
@pytest.mark.parametrize("action", TRAINERS)
def test_says_what_its_script_says(shell_document: Read, action: str, versions: Mapping[str, str]) -> None:
    for flags in FLAGS:
        for text in (None, PLAIN, WIDE, SHARDED, ZERO):
            config = read_yaml(FileText(Path("c.yaml"), text)) if text is not None else None
            command = f"trl {action} {flags}" + (" --config c.yaml" if config is not None else "")
            (launch,) = read_launches(shell_document(command))
            opened: dict[str, DataDocument] = {"c.yaml": config} if config is not None else {}
            recipe = read_recipe(launch, opened.get, lambda own: own, versions)
            assert recipe is not None
            script = of_script(launch, opened, versions)
            assert told(recipe.settings, launch, script) == told(script.settings, launch, script), (command, text)


def of_script(launch: Launch, opened: Mapping[str, DataDocument], versions: Mapping[str, str]) -> ScriptSource:
    renamed = not versions or tuple(map(int, versions["trl"].lstrip("<").split("."))) >= (0, 23)
    text = SCRIPT.format(kind=TRAINERS[launch.action or ""], dtype="dtype" if renamed else "torch_dtype")

    def open_data(name: str, kind: Kind) -> DataDocument | None:
        return opened.get(name)

    document = read_python(FileText(Path("script.py"), text))
    return read_script(document, launch.flags, launch.environment, versions, has_launch=True, open_data=open_data)


def told(settings: Mapping[str, Setting], launch: Launch, script: ScriptSource) -> dict[str, Any]:
    """Values, what they stand over, and the places in files of the user's; TRL's own script is none of them."""
    return {name: (setting.value, where(setting, script), [beaten.value for beaten in setting.overrode])
            for name, setting in settings.items()}  # fmt: skip


def where(setting: Setting, script: ScriptSource) -> Any:
    place = setting.provenance.place
    if setting.name == "quantization" and setting.provenance.kind != "default":
        return None  # the script's call decides; the recipe points at the switch
    if place is None or place.document is script.document:
        return setting.provenance.detail if setting.provenance.kind == "default" else None
    return place.document.path.name, place.text


def test_libcst_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("trl sft --config sft.yaml --num_processes 1\n")
    (tmp_path / "sft.yaml").write_text(WIDE)
    code = (
        "import sys; from lintfit.cli.main import lintfit;"
        f"lintfit(['check', {str(tmp_path)!r}, '--gpu', 'RTX 4090'], standalone_mode=False);"
        "print('libcst' in sys.modules, 'lintfit.sources.recipes.trl' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert "Qwen2.5-7B · LoRA" in ran.stdout
    assert ran.stdout.split()[-2:] == ["False", "True"]
