"""What a file says in the wrong type is no value of a spec: it is left out, and nothing stops."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from lintfit.commands.check import load_runs
from lintfit.memory.spec import Generation, Spec
from lintfit.memory.verdict.bounds import Verdict
from lintfit.options.model import Options
from lintfit.run.model import Run


def _spec(folder: Path, arguments: str = "", lora: str = "") -> Spec:
    adapters = f"peft_config=LoraConfig({lora})" if lora else ""
    (folder / "train.py").write_text(
        "from peft import LoraConfig\nfrom transformers import AutoModelForCausalLM\n"
        "from trl import SFTConfig, SFTTrainer\n"
        "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B')\n"
        f"SFTTrainer(model=model, args=SFTConfig('out', {arguments}), {adapters}).train()\n"
    )
    _, (run,) = load_runs((folder / "train.py",), Options())
    assert run.run.spec is not None and run.estimate is not None
    return run.run.spec


DEFAULTS = {field.name: field.default for field in fields(Spec)}


@pytest.mark.parametrize(
    ("where", "text", "name"),
    [
        ("lora", "lora_dropout='8'", "lora_dropout"),
        ("lora", "lora_dropout={}", "lora_dropout"),
        ("lora", "lora_dropout=8", "lora_dropout"),
        ("lora", "modules_to_save=3", "lora_modules_to_save"),
        ("lora", "target_modules=['q_proj', 1]", "lora_targets"),
        ("arguments", "activation_offloading=[]", "activation_offload"),
        ("arguments", "max_grad_norm='no'", "max_grad_norm"),
    ],
)
def test_a_value_of_another_type_is_left_out(tmp_path: Path, where: str, text: str, name: str) -> None:
    spec = _spec(tmp_path, **{where: text})
    assert getattr(spec, name) == DEFAULTS[name]


def _run(folder: Path, arguments: str) -> Run:
    """A GRPO script with these arguments."""
    (folder / "train.py").write_text(
        "from trl import GRPOConfig, GRPOTrainer\n"
        f"args = GRPOConfig('out', {arguments})\n"
        "GRPOTrainer(model='Qwen/Qwen2.5-7B', args=args, reward_funcs=f).train()\n"
    )
    _, (run,) = load_runs((folder / "train.py",), Options())
    return run.run


def _generation(folder: Path, arguments: str) -> Generation:
    """What it generates."""
    spec = _run(folder, arguments).spec
    assert spec is not None and spec.generation is not None
    return spec.generation


@pytest.mark.parametrize(
    ("arguments", "tokens", "share"),
    [
        ("max_completion_length=None", 512, 0.3),
        ("max_completion_length='abc'", 512, 0.3),
        ("max_completion_length=64", 64, 0.3),
        ("vllm_gpu_memory_utilization='0.9'", 512, 0.3),
        ("vllm_gpu_memory_utilization=[1]", 512, 0.3),
        ("vllm_gpu_memory_utilization=7", 512, 0.3),
        ("vllm_gpu_memory_utilization=0.5", 512, 0.5),
    ],
)
def test_rollouts_take_what_can_be_meant(tmp_path: Path, arguments: str, tokens: int, share: float) -> None:
    generation = _generation(tmp_path, f"use_vllm=True, vllm_mode='colocate', {arguments}")
    assert (generation.completion_len, generation.vllm_gpu_memory_utilization) == (tokens, share)


@pytest.mark.parametrize(
    ("arguments", "trl", "server"),
    [
        ("use_vllm=True, vllm_mode='server'", "1.0", True),
        ("use_vllm=True", "1.0", False),
        ("use_vllm=True", "0.15", True),
        ("use_vllm=True, vllm_mode='colocate'", "0.21", False),
        ("use_vllm=False, vllm_mode='server'", "1.0", False),
    ],
)
def test_a_vllm_on_other_gpus_is_told_from_one_beside_the_trainer(
    tmp_path: Path, arguments: str, trl: str, server: bool
) -> None:
    (tmp_path / "requirements.txt").write_text(f"trl=={trl}.0\n")
    assert _generation(tmp_path, arguments).vllm_server is server


@pytest.mark.parametrize(
    ("requirement", "arguments", "open_mode"),
    [
        ("trl", "use_vllm=True", True),
        ("trl @ git+https://github.com/huggingface/trl@1bca49515ecd", "use_vllm=True", True),
        ("trl", "use_vllm=True, vllm_mode=mode", True),
        ("trl @ git+https://github.com/huggingface/trl@1bca49515ecd", "use_vllm=True, vllm_device='auto'", False),
        ("trl", "use_vllm=True, vllm_max_model_len=2048", False),
        ("trl<0.19", "use_vllm=True", False),
        ("trl", "use_vllm=True, vllm_mode='server'", False),
    ],
)
def test_no_vllm_beside_the_trainer_is_made_up(
    tmp_path: Path, requirement: str, arguments: str, open_mode: bool
) -> None:
    (tmp_path / "requirements.txt").write_text(f"{requirement}\n")
    run = _run(tmp_path, arguments)
    assert run.spec is not None and run.spec.generation is not None
    assert run.spec.generation.vllm_server and run.spec.generation.vllm_gpu_memory_utilization == 0
    assert ("vllm_mode" in run.doubtful) is open_mode


@pytest.mark.parametrize(("key", "version"), [("vllm_device: auto", "<0.18"), ("temperature: 0.7", None)])
def test_a_recipe_that_names_the_gpu_of_vllm_is_of_a_trl_without_a_mode(
    tmp_path: Path, key: str, version: str | None
) -> None:
    (tmp_path / "grpo.yaml").write_text(f"model_name_or_path: Qwen/Qwen2.5-0.5B\nuse_vllm: true\n{key}\n")
    (tmp_path / "run.sh").write_text("trl grpo --config grpo.yaml --num_processes 3\n")
    _, (run,) = load_runs((tmp_path / "run.sh",), Options())
    assert run.run.versions.get("trl") == version
    assert run.run.doubtful == (("vllm_mode",) if version is None else ())
    assert run.run.spec is not None and run.run.spec.generation is not None
    assert run.run.spec.generation.vllm_server


@pytest.mark.parametrize(("key", "bounds"), [("use_liger: true", ("<0.18", "0.16")), ("max_steps: 1", (None, "0.16"))])
def test_a_recipe_of_sft_is_dated_by_its_keys(tmp_path: Path, key: str, bounds: tuple[str | None, str | None]) -> None:
    (tmp_path / "requirements.txt").write_text("trl @ git+https://github.com/huggingface/trl@69ad852e5654\n")
    (tmp_path / "sft.yaml").write_text(f"model_name_or_path: Qwen/Qwen2.5-0.5B\nmax_length: 2048\n{key}\n")
    (tmp_path / "run.sh").write_text("trl sft --config sft.yaml --num_processes 3\n")
    _, (run,) = load_runs((tmp_path / "run.sh",), Options())
    assert (run.run.versions.get("trl"), run.run.versions.get("trl>=")) == bounds
    assert "seq_len" not in run.run.doubtful


@pytest.mark.parametrize(
    ("read", "version"), [("model_args.torch_dtype", "<0.23"), ("model_args.dtype", None), ("args.torch_dtype", None)]
)
def test_a_recipe_alone_is_dated_by_what_its_script_reads(tmp_path: Path, read: str, version: str | None) -> None:
    keys = "dataset_name: d\noutput_dir: o\nlearning_rate: 1e-5\nper_device_train_batch_size: 1\n"
    (tmp_path / "sft.yaml").write_text(f"model_name_or_path: Qwen/Qwen2.5-0.5B\n{keys}")
    script = f"parser = TrlParser((ScriptArguments, SFTConfig, ModelConfig))\nprint({read})\n"
    (tmp_path / "train_sft.py").write_text(script)
    _, (run,) = load_runs((tmp_path / "sft.yaml",), Options())
    assert run.run.recipe is not None and run.run.versions.get("trl") == version
    edits = run.run.recipe.write("weights_dtype", "bf16")
    assert edits and edits[0].edit.text.split(":")[0].strip() == ("torch_dtype" if version else "dtype")


@pytest.mark.parametrize(("number", "flag"), [("0", False), ("1", True)])
def test_a_number_is_a_flag(tmp_path: Path, number: str, flag: bool) -> None:
    assert _spec(tmp_path, f"gradient_checkpointing={number}").gradient_checkpointing is flag


def test_quantised_weights_without_adapters_are_not_trained(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "from transformers import AutoModelForCausalLM, BitsAndBytesConfig, Trainer, TrainingArguments\n"
        "how = BitsAndBytesConfig(load_in_4bit=True)\n"
        "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-0.5B', quantization_config=how)\n"
        "args = TrainingArguments('out', per_device_train_batch_size=1, gradient_checkpointing=True)\n"
        "Trainer(model=model, args=args).train()\n"
    )
    _, (run,) = load_runs((tmp_path / "train.py",), Options(gpu="H100", seq_len=512))
    assert run.estimate is not None and run.estimate.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("text", "targets"),
    [("target_modules=names_of(model)", "all-linear"), ("target_modules=['q_proj']", ("q_proj",)), ("r=4", None)],
)
def test_adapters_whose_places_cannot_be_told_are_everywhere(tmp_path: Path, text: str, targets: object) -> None:
    spec = _spec(tmp_path, lora=text)
    assert spec.lora_targets == (DEFAULTS["lora_targets"] if targets is None else targets)
    assert ("lora_targets" in spec.stated) is isinstance(targets, tuple)


def test_of_a_trainer_that_is_not_known_no_logits_are_counted(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(
        "llamafactory-cli train --stage ppo --do_train --model_name_or_path Qwen/Qwen2.5-0.5B --reward_model a/b "
        "--dataset a --template qwen --finetuning_type full --output_dir out --bf16\n"
    )
    _, (run,) = load_runs((tmp_path / "run.sh",), Options())
    assert not run.run.settings["trainer"].known
    assert run.run.spec is not None and run.run.spec.trainer == "classification"


@pytest.mark.parametrize(("model", "length"), [("google-bert/bert-large-uncased", 512), ("Qwen/Qwen2.5-0.5B", 1024)])
def test_a_sample_has_no_more_tokens_than_the_model_has_learned_positions(
    model: str, length: int, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(
        "from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments\n"
        f"tokenizer = AutoTokenizer.from_pretrained({model!r})\n"
        "data = data.map(lambda row: tokenizer(row['text'], truncation=True, max_length=1024))\n"
        f"model = AutoModelForSequenceClassification.from_pretrained({model!r})\n"
        "Trainer(model=model, args=TrainingArguments('out'), train_dataset=data).train()\n"
    )
    _, (run,) = load_runs((tmp_path / "train.py",), Options())
    assert run.run.spec is not None and run.run.spec.seq_len == length
