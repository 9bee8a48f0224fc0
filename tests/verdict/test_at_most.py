"""A run of which a part is open fits where one that takes no less fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import lintfit

RECIPE = """\
base_model: Qwen/Qwen2.5-0.5B
datasets: [{path: tatsu-lab/alpaca, type: alpaca}]
sequence_len: 1024
micro_batch_size: 1
optimizer: adamw_torch
bf16: true
gradient_checkpointing: true
"""


def judged(folder: Path, recipe: str, gpu: str) -> dict[str, Any]:
    (folder / "recipe.yml").write_text(recipe)
    command = ("check", "recipe.yml", "--gpu", gpu, "--gpus", "1", "--output-format", "json")
    found: dict[str, Any] = lintfit(*command, cwd=folder).json["runs"][0]
    return found


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ("attn_implementation: xformers\n", "writes its scores out"),
        ("adapter: lora\nlora_r: 8\nlora_target_linear: true\ngptq: true\n", "weights of eight bits"),
    ],
    ids=["attention", "quantization"],
)
def test_what_is_open_does_not_hide_that_a_run_fits(tmp_path: Path, added: str, said: str) -> None:
    found = judged(tmp_path, RECIPE + added, "a100-80gb")
    assert found["verdict"] == "fits"
    assert any(said in line for line in found["estimate"]["assumptions"])


def test_what_may_not_fit_stays_unknown(tmp_path: Path) -> None:
    """The scores of 8192 tokens take more than the GPU has; another kernel makes none."""
    large = RECIPE.replace("sequence_len: 1024", "sequence_len: 8192")
    found = judged(tmp_path, large + "attn_implementation: xformers\npad_to_sequence_len: true\n", "rtx3090")
    assert found["verdict"] == "unknown"


OFT = """\
model_name_or_path: Qwen/Qwen2.5-0.5B
stage: {stage}
do_train: true
finetuning_type: {method}
dataset: alpaca_en_demo
template: qwen
cutoff_len: 1024
output_dir: out
per_device_train_batch_size: 1
bf16: true
"""
SWIFT = "swift sft --model Qwen/Qwen2.5-0.5B --dataset d --max_length 2048 --output_dir out "
SEES = SWIFT.replace("2.5-0.5B", "2.5-VL-3B-Instruct")
TUNE = """\
output_dir: /tmp/out
tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer, path: /tmp/m/tokenizer.model, max_seq_len: 1024}
dataset: {_component_: torchtune.datasets.alpaca_dataset, packed: true}
model: {_component_: torchtune.models.llama3_2.llama3_2_1b}
checkpointer: {_component_: torchtune.training.FullModelHFCheckpointer, checkpoint_dir: /tmp/Llama-3.2-1B-Instruct/}
optimizer: {_component_: torch.optim.AdamW, lr: 2.0e-5}
loss: {_component_: torchtune.modules.loss.LinearCrossEntropyLoss}
batch_size: 2
gradient_accumulation_steps: 1
enable_activation_checkpointing: false
dtype: bf16
quantizer: {_component_: torchtune.training.quantization.Int8DynActInt4WeightQATQuantizer, groupsize: 256}
"""


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("train.sh", f"llamafactory-cli train {OFT.format(stage='sft', method='oft')}", "OFT in blocks of 32"),
        ("train.sh", f"llamafactory-cli train {OFT.format(stage='rm', method='lora')}", "a language model's loss of"),
        ("train.sh", SWIFT + "--tuner_type reft", "LoRA of rank 4"),
        ("train.sh", f"MAX_PIXELS=1003520 {SEES} --tuner_type lora_llm", "the whole model is"),
        ("train.sh", "NPROC_PER_NODE=2 " + SWIFT + "--tuner_type lora --sequence_parallel_size 2", "whole sequences"),
        ("train.sh", "tune run --nproc_per_node 2 qat_distributed --config qat.yaml", "fake-quantized copies"),
    ],
    ids=["oft", "reward", "reft", "lora_llm", "sequence parallelism", "qat"],
)
def test_what_nobody_has_counted_is_bounded(tmp_path: Path, name: str, text: str, said: str) -> None:
    command, _, rest = text.partition("llamafactory-cli train ")
    if rest:
        (tmp_path / "lf.yaml").write_text(rest)
        command = "llamafactory-cli train lf.yaml"
    (tmp_path / "qat.yaml").write_text(TUNE)
    (tmp_path / name).write_text(command + "\n")

    def found(*hardware: str) -> dict[str, Any]:
        run: dict[str, Any] = lintfit("check", name, *hardware, "--output-format", "json", cwd=tmp_path).json["runs"][0]
        return run

    run = found("--gpu", "a100-80gb", "--gpus", "2")
    assert run["verdict"] == "fits"
    assert any(said in line for line in run["estimate"]["assumptions"])
    assert run["estimate"]["capacity_bytes"] > 78 * 2**30  # all of it, whatever was set aside for what comes on top


SPREAD = """\
import torch
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", torch_dtype=torch.bfloat16, device_map="auto")
Trainer(model=model, args=args, train_dataset=load()).train()
"""
PLAIN = "python train.py --bf16 --per_device_train_batch_size 1 --gradient_checkpointing --optim adamw_8bit\n"


@pytest.mark.parametrize(
    ("before", "gpu", "gpus", "verdict"),
    [
        ("", "rtx3090", "8", "fits"),  # eight GPUs share what one has not room for
        ("CUDA_VISIBLE_DEVICES=2,3 ", "rtx3090", "8", "unknown"),
        ("CUDA_VISIBLE_DEVICES=0 ", "rtx3090", "8", "does-not-fit"),
        ("", "rtx3090", "1", "does-not-fit"),
        ("", "h200", "8", "fits"),  # on one of them already
    ],
)
def test_a_model_that_one_process_spreads_is_not_on_one_gpu(
    tmp_path: Path, before: str, gpu: str, gpus: str, verdict: str
) -> None:
    (tmp_path / "train.py").write_text(SPREAD)
    (tmp_path / "run.sh").write_text(before + PLAIN)
    flags = ("--gpu", gpu, "--gpus", gpus, "--seq-len", "512", "--output-format", "json")
    (run,) = lintfit("check", "run.sh", *flags, cwd=tmp_path).json["runs"]
    assert run["verdict"] == verdict
    if verdict == "unknown":
        assert any("device_map" in reason for reason in run["unknown"])


def test_a_model_that_is_spread_is_said_to_be_of_one_process(tmp_path: Path) -> None:
    code = SPREAD.replace('"auto"', '"balanced"').replace("TrainingArguments)", "TrainingArguments,)")
    made = 'args = TrainingArguments("out", bf16=True, gradient_checkpointing=True, optim="adamw_8bit")'
    code = "\n".join(made if line.startswith("(args,)") else line for line in code.split("\n"))
    (tmp_path / "train.py").write_text(code)
    told = lintfit("check", "train.py", "--gpu", "h100-80gb", "--gpus", "8", "--seq-len", "512", cwd=tmp_path).out
    assert "one process on 8 × H100" in told and "pipeline" not in told and "DDP" not in told


PAIRS = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


class PairTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):
        pair = both(inputs)
        logits = model(pair["concatenated_input_ids"]).logits
        return loss_of(logits)


model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", torch_dtype="bfloat16")
args = TrainingArguments("out", per_device_train_batch_size=3, bf16=True, gradient_checkpointing=True)
PairTrainer(model=model, args=args, train_dataset=data, max_length=512).train()
"""


def test_pairs_of_answers_take_no_more_than_trls_own_step(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PAIRS)
    command = ("check", "train.py", "--gpus", "1", "--seq-len", "512", "--output-format", "json")
    fits = lintfit(*command, "--gpu", "a100-80gb", cwd=tmp_path).json["runs"][0]
    assert fits["verdict"] == "fits"
    assert any("both answers" in line for line in fits["estimate"]["assumptions"])
    open_still = lintfit(*command, "--gpu", "rtx3060", cwd=tmp_path).json["runs"][0]
    assert open_still["verdict"] == "unknown"


NAMED_REFERENCE = """\
from transformers import AutoModelForCausalLM
from trl import DPOConfig, DPOTrainer

args = DPOConfig("out", bf16=True, max_length=512)
DPOTrainer("Qwen/Qwen2.5-0.5B", {reference}, args=args, train_dataset=data).train()
"""


@pytest.mark.parametrize("reference", ['"Qwen/Qwen2.5-0.5B"', "reference_of(args)"])
def test_a_reference_that_may_be_there_counts(tmp_path: Path, reference: str) -> None:
    (tmp_path / "train.py").write_text(NAMED_REFERENCE.format(reference=reference))
    command = ("check", "train.py", "--gpu", "a100-80gb", "--gpus", "1", "--output-format", "json")
    found = lintfit(*command, cwd=tmp_path).json["runs"][0]
    assert found["verdict"] == "fits"
    (tmp_path / "train.py").write_text(NAMED_REFERENCE.format(reference="None"))
    own = lintfit(*command, cwd=tmp_path).json["runs"][0]
    assert found["estimate"]["peak_bytes"]["likely"] == pytest.approx(own["estimate"]["peak_bytes"]["likely"], rel=0.01)


SWITCHED = """\
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-{size}B", {load})
if asked_for():
    model = get_peft_model(model, LoraConfig(r={rank}, target_modules="all-linear"))
args = TrainingArguments("out", per_device_train_batch_size=1, bf16={bf16}, gradient_checkpointing=True)
Trainer(model=model, args=args, train_dataset=data).train()
"""


@pytest.mark.parametrize(
    ("load", "rank", "bf16", "said"),
    [
        ('torch_dtype="bfloat16"', "8", "True", "or adapters, whichever"),
        ("torch_dtype=dtype_of(model)", "8", "True", "weights in fp32 or in 16 bits"),
        ('torch_dtype="bfloat16"', "8", "can_bf16()", "whichever mixed precision"),
    ],
)
def test_every_value_of_what_is_open_has_to_fit(tmp_path: Path, load: str, rank: str, bf16: str, said: str) -> None:
    command = ("check", "train.py", "--gpu", "a100-80gb", "--gpus", "1", "--seq-len", "512", "--output-format", "json")
    (tmp_path / "train.py").write_text(SWITCHED.format(size="0.5", load=load, rank=rank, bf16=bf16))
    small = lintfit(*command, cwd=tmp_path).json["runs"][0]
    assert small["verdict"] == "fits"
    assert any(said in line for line in small["estimate"]["assumptions"])
    (tmp_path / "train.py").write_text(SWITCHED.format(size="14", load=load, rank=rank, bf16=bf16))
    assert lintfit(*command, cwd=tmp_path).json["runs"][0]["verdict"] == "unknown"


def test_a_rank_that_nobody_knows_has_no_bound(tmp_path: Path) -> None:
    command = ("check", "train.py", "--gpu", "a100-80gb", "--gpus", "1", "--seq-len", "512", "--output-format", "json")
    text = SWITCHED.format(size="0.5", load='torch_dtype="bfloat16"', rank="rank_of(model)", bf16="True")
    (tmp_path / "train.py").write_text(text)
    assert lintfit(*command, cwd=tmp_path).json["runs"][0]["verdict"] == "unknown"


@pytest.mark.parametrize(("more", "verdict"), [("", "fits"), ("pair = inputs.repeat(8)\n        ", "unknown")])
def test_passes_of_one_batch_are_no_more_than_a_batch_of_so_many_times(tmp_path: Path, more: str, verdict: str) -> None:
    lines = 'logits = model(inputs["first"]).logits, model(inputs["second"]).logits'
    text = PAIRS.replace("pair = both(inputs)", f"{more}{lines}").replace(
        '        logits = model(pair["concatenated_input_ids"]).logits\n', ""
    )
    (tmp_path / "train.py").write_text(text)
    command = ("check", "train.py", "--gpu", "a100-80gb", "--gpus", "1", "--seq-len", "512", "--output-format", "json")
    assert lintfit(*command, cwd=tmp_path).json["runs"][0]["verdict"] == verdict


KEPT = """\
import torch
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("gpt2-large").to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
state = torch.load("last.pt", map_location="cuda")
model.load_state_dict(state["model"])
optimizer.load_state_dict(state["optimizer"])
for x, y in torch.utils.data.DataLoader(data, batch_size=1):
    model(x, labels=y).loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("gpu", "torch", "verdict"),
    [
        ("rtx3060", "2.0.1", "does-not-fit"),
        ("v100-32gb", "2.0.1", "tight"),
        ("a100-40gb", "2.0.1", "fits"),
        ("v100-32gb", "2.5.1", "fits"),
    ],
)
def test_a_checkpoint_that_stays_on_the_gpu_has_to_fit_beside(
    tmp_path: Path, gpu: str, torch: str, verdict: str
) -> None:
    (tmp_path / "train.py").write_text(KEPT)
    (tmp_path / "requirements.txt").write_text(f"torch=={torch}\n")
    command = ("check", "train.py", "--gpu", gpu, "--gpus", "1", "--seq-len", "1024", "--output-format", "json")
    assert lintfit(*command, cwd=tmp_path).json["runs"][0]["verdict"] == verdict


PROJECTOR = """\
import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("{model}", torch_dtype=torch.bfloat16)
model.get_model().add_encoder("clip")
model.requires_grad_(False)
for parameter in model.{part}.parameters():
    parameter.requires_grad = True
args = TrainingArguments("out", per_device_train_batch_size=4, bf16=True, gradient_checkpointing=True)
trainer = Trainer(model=model, args=args, train_dataset=None)
trainer.train()
"""


@pytest.mark.parametrize(
    ("model", "part", "verdict"),
    [
        ("Qwen/Qwen2.5-7B", "mm_projector", "fits"),
        ("Qwen/Qwen2.5-14B", "own_blocks[-1]", "unknown"),
        ("Qwen/Qwen2.5-32B", "mm_projector", "unknown"),
        ("Qwen/Qwen2.5-72B", "mm_projector", "does-not-fit"),
    ],
)
def test_parts_of_its_own_beside_a_frozen_model_are_bounded(
    tmp_path: Path, model: str, part: str, verdict: str
) -> None:
    (tmp_path / "train.py").write_text(PROJECTOR.format(model=model, part=part))
    command = ("check", "train.py", "--gpu", "a100-80gb", "--gpus", "1", "--seq-len", "512", "--output-format", "json")
    found = lintfit(*command, cwd=tmp_path).json["runs"][0]
    assert found["verdict"] == verdict
    if verdict == "fits":
        assert any("500 M parameters" in line for line in found["estimate"]["assumptions"])
        assert found["estimate"]["peak_bytes"]["high"] > 20 * 500_000_000
