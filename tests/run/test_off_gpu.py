"""Runs that train on the CPU or on a TPU: no verdict on the GPU, whatever else they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.commands.check import load_runs
from lintfit.options.model import Options

SCRIPT = """import os

import torch_xla.core.xla_model as xm
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

{head}
model = AutoModelForCausalLM.from_pretrained("huggyllama/llama-7b")
args = TrainingArguments("out", bf16=True, per_device_train_batch_size=1{more})
Trainer(model=model, args=args).train()
"""
FILE = "distributed_type: {kind}\nnum_processes: {n}\nnum_machines: 1\nmixed_precision: bf16\nuse_cpu: {cpu}\n"
NO_CPU = FILE.format(kind="'NO'", n=1, cpu="false")


@pytest.mark.parametrize(
    ("launch", "file", "head", "more", "device"),
    [
        ("python train.py", "", "", "", None),
        ("python train.py", "", "", ", use_cpu=True", "CPU"),
        ("python train.py", "", "", ", no_cuda=True", "CPU"),
        ("python train.py", "", "", ", use_cpu=False", None),
        ("python train.py --device cpu", "", "", "", "CPU"),
        ("python train.py --device mps", "", "", "", "Mac"),
        ("python train.py --use-mlx", "", "", "", "Mac"),
        ("python train.py --use_mlx false", "", "", "", None),
        ("python train.py --no_cuda", "", "", "", "CPU"),
        ("python train.py --use_cpu true", "", "", "", "CPU"),
        ("python train.py --use_cpu false", "", "", "", None),
        ('export CUDA_VISIBLE_DEVICES=""\npython train.py', "", "", "", "CPU"),
        ("CUDA_VISIBLE_DEVICES=-1 python train.py", "", "", "", "CPU"),
        ("CUDA_VISIBLE_DEVICES=none python train.py", "", "", "", "CPU"),
        ("CUDA_VISIBLE_DEVICES=0 python train.py", "", "", "", None),
        ("CUDA_VISIBLE_DEVICES=$1 python train.py", "", "", "", None),
        ("GPU=\nCUDA_VISIBLE_DEVICES=$GPU python train.py", "", "", "", None),
        ("CUDA_VISIBLE_DEVICES= deepspeed train.py", "", "", "", None),
        ("python train.py --device cuda", "", "", "", None),
        ("python train.py --offload_device cpu", "", "", "", None),
        ("accelerate launch --cpu train.py", "", "", "", "CPU"),
        ("accelerate launch --config_file a.yaml train.py", NO_CPU, "", "", None),
        ("accelerate launch --config_file a.yaml train.py", NO_CPU.replace("false", "true"), "", "", "CPU"),
        (
            "accelerate launch --config_file a.yaml train.py",
            FILE.format(kind="MULTI_CPU", n=2, cpu="true"),
            "",
            "",
            "CPU",
        ),
        (
            "accelerate launch --config_file a.yaml train.py",
            FILE.format(kind="MULTI_GPU", n=2, cpu="true"),
            "",
            "",
            None,
        ),
        ("accelerate launch --config_file a.yaml train.py", FILE.format(kind="XLA", n=8, cpu="false"), "", "", "TPU"),
        ("accelerate launch --tpu --num_processes 8 train.py", "", "", "", "TPU"),
        ("PJRT_DEVICE=TPU python train.py", "", "", "", "TPU"),
        ("PJRT_DEVICE=CUDA python train.py", "", "", "", None),
        ("python train.py --distribution_device tpu", "", "", "", "TPU"),
        ("python train.py --tpu true", "", "", "", "TPU"),
        ("python train.py --tpu false", "", "", "", None),
        ("python train.py", "", 'os.environ["PJRT_DEVICE"] = "TPU"', "", "TPU"),
        ("python train.py", "", "device = xm.xla_device()", "", "TPU"),
        ("python train.py", "", "if USES_TPU:\n    device = xm.xla_device()", "", None),
    ],
)
def test_runs_without_a_gpu(tmp_path: Path, launch: str, file: str, head: str, more: str, device: str | None) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.format(head=head, more=more))
    (tmp_path / "a.yaml").write_text(file) if file else None
    (tmp_path / "run.sh").write_text(launch + "\n")
    _, results = load_runs([tmp_path], Options(gpu="RTX 3090", seq_len=512))
    (found,) = [result for result in results if result.run.launch is not None]
    the = "the" if device == "CPU" else "a"
    reasons = [reason for reason in found.run.unknown if reason.startswith("a GPU: it trains on ")]
    assert [f"on {the} {device}" in reason for reason in reasons] == [True] * (device is not None)
    assert (found.run.spec is None) is (device is not None)


MAPPED = """from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("huggyllama/llama-7b", device_map={map})
{more}
Trainer(model=model, args=TrainingArguments("out")).train()
"""


@pytest.mark.parametrize(
    ("launch", "place", "more", "off"),
    [
        ("", '{"": "cpu"}', "", True),
        ("python train.py", '"cpu"', "", True),
        ("python train.py", '"auto"', "", False),
        ("python train.py", '"cpu"', 'model.to("cuda")', False),
        ("torchrun --nproc_per_node 2 train.py", '"cpu"', "", False),
    ],
)
def test_a_model_that_is_loaded_onto_the_cpu_trains_there(
    launch: str, place: str, more: str, off: bool, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(MAPPED.format(map=place, more=more))
    if launch:
        (tmp_path / "run.sh").write_text(f"{launch}\n")
    _, results = load_runs([tmp_path], Options())
    assert any("trains on the CPU" in reason for result in results for reason in result.run.unknown) is off
