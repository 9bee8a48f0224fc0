"""Loops in plain PyTorch: models of the project's own, DDP and FSDP by hand, autocast, accumulation."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from lintfit.settings.model import UNKNOWN
from lintfit.settings.values import Fsdp
from tests.sources.script.test_packages import project
from tests.sources.scripts import script, values

LOOP = """
import argparse, os
import torch
import torch.distributed as dist
from contextlib import nullcontext
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, MixedPrecision
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=4)
parser.add_argument("--accumulation_steps", type=int, default=8)
parser.add_argument("--dtype", default="bfloat16")
args = parser.parse_args()
if int(os.environ.get("RANK", -1)) != -1:
    dist.init_process_group("nccl")
device_type = "cuda" if torch.cuda.is_available() else "cpu"
dtype = torch.bfloat16 if args.dtype == "bfloat16" else torch.float16
"""
DDP = """
context = nullcontext() if device_type == "cpu" else torch.cuda.amp.autocast(dtype=dtype)
scaler = torch.cuda.amp.GradScaler(enabled=args.dtype == "float16")
model = Net(128).to("cuda")
optimizer = optim.AdamW(model.parameters(), lr=1e-4)
if dist.is_initialized():
    model = DistributedDataParallel(model)
for step, batch in enumerate(DataLoader([], batch_size=args.batch_size)):
    with context:
        loss = model(batch)
    scaler.scale(loss).backward()
    if step % args.accumulation_steps == 0:
        scaler.step(optimizer)
"""
RANKS = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "4"}


SLICED = """
model = Net(128).to("cuda")
optimizer = optim.AdamW(model.parameters(), lr=1e-4)
for batch in DataLoader([], batch_size=64):
    for start in range(0, 64, STRIDE):
        loss = model(batch[start : start + STRIDE])
        loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("stride", "micro"), [("args.batch_size", 4), ("args.accumulation_steps", UNKNOWN), ("512", UNKNOWN)]
)
def test_slices_of_a_batch_are_the_micro_batch(stride: str, micro: object) -> None:
    found = script(LOOP + SLICED.replace("STRIDE", stride), "", env=RANKS).settings["micro_batch_size"]
    assert found.value == micro, "what is sliced may be the length of its sequences"


@pytest.mark.parametrize(("name", "batch"), [("rollout_batch_size", UNKNOWN), ("train_batch_size", 4)])
def test_what_a_model_generates_from_is_no_micro_batch(name: str, batch: object) -> None:
    text = (LOOP + DDP).replace("args.batch_size", f"args.{name}").replace("--batch_size", f"--{name}")
    assert values(script(text, "", env=RANKS))["micro_batch_size"] == batch


def test_a_loop_in_plain_pytorch_is_read() -> None:
    said = values(script(LOOP + DDP, "--batch_size 2", env=RANKS))
    assert said["engine"] == "ddp"
    assert said["mixed_precision"] == "bf16"
    assert said["weights_dtype"] == "fp32"
    assert (said["micro_batch_size"], said["gradient_accumulation_steps"]) == (2, 8)
    assert said["method"] == "full"


def test_python_alone_wraps_nothing() -> None:
    said = values(script(LOOP + DDP, "--dtype float16", env={"WORLD_SIZE": ""}))
    assert "engine" not in said
    assert said["mixed_precision"] == "fp16"


@pytest.mark.parametrize(
    ("region", "expected"),
    [
        ("torch.autocast('cuda', torch.bfloat16)", "bf16"),
        ("torch.autocast(device_type='cuda')", "fp16"),
        ("torch.amp.autocast('cuda', dtype=torch.float16, enabled=False)", "no"),
        ("torch.amp.autocast('cuda', dtype=unknown())", UNKNOWN),
        ("torch.cuda.amp.autocast(True, torch.bfloat16)", "bf16"),
    ],
)
def test_autocast_in_its_spellings(region: str, expected: object) -> None:
    text = f"""
import torch
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters())
for batch in data:
    with {region}:
        loss = model(batch)
    loss.backward()
    optimizer.step()
"""
    assert values(script(text, ""))["mixed_precision"] == expected


def test_autocast_on_the_cpu_is_none_on_the_card() -> None:
    region = "import torch\nwith torch.autocast('cpu', torch.bfloat16):\n    loss = f()\n"
    text = f"{region}loss.backward()\noptimizer.step()\n"
    assert values(script(text, ""))["mixed_precision"] is UNKNOWN


FSDP1 = """
policy = MixedPrecision(param_dtype=torch.bfloat16)
model = FSDP(Net(128), sharding_strategy="SHARD_GRAD_OP", mixed_precision=policy)
"""
STEPS = """
optimizer = optim.AdamW(model.parameters())
for batch in DataLoader([], batch_size=1):
    model(batch).backward()
    optimizer.step()
"""


def test_fsdp_by_hand() -> None:
    said = values(script(LOOP + FSDP1 + STEPS, "", env=RANKS))
    assert (said["engine"], said["fsdp"]) == ("fsdp", Fsdp(1, "SHARD_GRAD_OP", False))
    assert said["mixed_precision"] == "bf16"
    assert said["gradient_accumulation_steps"] == 1


@pytest.mark.parametrize(("dtype", "precision"), [("torch.bfloat16", "no"), ("torch.float32", "bf16")])
def test_torch_s_own_fsdp_keeps_what_is_loaded_in_16_bits(dtype: str, precision: str) -> None:
    load = f"""
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("some/model", torch_dtype={dtype})
model = FSDP(model, mixed_precision=MixedPrecision(param_dtype=torch.bfloat16))
"""
    assert values(script(LOOP + load + STEPS, "", env=RANKS))["mixed_precision"] == precision


def test_fsdp_2_by_hand() -> None:
    said = values(script(LOOP + "model = Net(128)\nfully_shard(model)\n" + STEPS, "", env=RANKS))
    assert (said["engine"], said["fsdp"]) == ("fsdp", Fsdp(2, "FULL_SHARD", False))


ACCUMULATED = """
model = Net(128)
optimizer = optim.AdamW(model.parameters())
for batch in DataLoader([], batch_size=1):
    for micro in {inner}:
        model(micro).backward()
    optimizer.step()
"""


@pytest.mark.parametrize("inner", ["range(4)", "range(args.accumulation_steps)", "batch"])
def test_a_loop_within_the_loop_accumulates(inner: str) -> None:
    assert values(script(LOOP + ACCUMULATED.format(inner=inner), "")).get("gradient_accumulation_steps") != 1


SKIPPED = """
model = Net(128)
optimizer = optim.AdamW(model.parameters())
step = 0
for batch in DataLoader(Batches(batch_size=args.batch_size), batch_size=None):
    step += 1
    model(batch).backward()
    if step % args.accumulation_steps != 0:
        continue
    optimizer.step()
"""


def test_steps_that_are_skipped() -> None:
    batches = "class Batches:\n    def __init__(self, batch_size):\n        self.batch_size = batch_size\n"
    said = values(script(LOOP + batches + SKIPPED, "--accumulation_steps 16"))
    assert said["gradient_accumulation_steps"] == 16
    assert said["micro_batch_size"] == 4


def test_the_batch_of_a_batch_sampler() -> None:
    text = """
import torch
from torch.utils.data import BatchSampler, DataLoader
model = torch.nn.Linear(2, 2)
loader = DataLoader(data, batch_sampler=BatchSampler(sampler, 6, False))
for batch in loader:
    model(batch).backward()
"""
    assert values(script(text, ""))["micro_batch_size"] == 6


MODEL = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
class Tiny(nn.Module):
    def forward(self, x):
        return checkpoint(self.block, x)
"""
TRAIN = """
import torch
from nets.tiny import Tiny
model = Tiny()
optimizer = torch.optim.AdamW(model.parameters())
for batch in data:
    model(batch).backward()
    optimizer.step()
"""


def test_a_model_class_in_a_long_module_is_told_by_its_bases(tmp_path: Path) -> None:
    long = MODEL.replace("return checkpoint(self.block, x)", "return self.block(x)") + "# filler\n" * 1000
    said = values(project(tmp_path, {"train.py": TRAIN, "nets/tiny.py": long}))
    assert (said["weights_dtype"], said["method"]) == ("fp32", "full")


def test_a_model_that_recomputes_by_itself_may_do_so_or_not(tmp_path: Path) -> None:
    said = values(project(tmp_path, {"train.py": TRAIN, "nets/tiny.py": MODEL + "# filler\n" * 1000}))
    assert said["gradient_checkpointing"] is UNKNOWN


def test_a_checkpoint_that_a_module_of_the_project_holds() -> None:
    text = """
import torch
from torch import nn
from transformers import AutoModel
class Ranker(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.model = AutoModel.from_pretrained(name, dtype=torch.bfloat16)
        self.head = nn.Linear(8, 1)
ranker = Ranker("some/model")
optimizer = torch.optim.AdamW(ranker.parameters())
for batch in data:
    ranker(batch).backward()
    optimizer.step()
"""
    said = values(script(text, ""))
    assert (said["model"], said["weights_dtype"]) == ("some/model", "bf16")


def test_an_engine_of_another_package_is_not_known() -> None:
    text = """
import colossalai
from colossalai.booster import Booster
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("some/model").half()
booster = Booster(plugin=plugin)
model, optimizer, _, _, _ = booster.boost(model, optimizer)
for batch in data:
    booster.backward(model(batch), optimizer)
    optimizer.step()
"""
    said = values(script(text, ""))
    assert said["weights_dtype"] == "fp16"
    for name in ("engine", "zero_stage", "offload_optimizer", "offload_param", "mixed_precision"):
        assert said[name] is UNKNOWN, name


BMTRAIN = """
import torch
import bmtrain as bmt
from transformers import AutoModelForCausalLM
{start}
model = AutoModelForCausalLM.from_pretrained("some/model").half()
{wrap}
optimizer = bmt.optim.AdamOffloadOptimizer(model.parameters())
for batch in data:
    model(batch).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("start", "wrap"),
    [("bmt.init_distributed(seed=0)", ""), ("", "model = bmt.BMTrainModelWrapper(model)")],
)
def test_bmtrain_shards_in_ways_of_its_own(start: str, wrap: str) -> None:
    found = values(script(BMTRAIN.format(start=start, wrap=wrap), ""))
    for name in ("engine", "zero_stage", "offload_optimizer", "mixed_precision", "gradient_checkpointing"):
        assert found[name] is UNKNOWN, name


def test_torchs_own_start_of_processes_leaves_the_engine_alone() -> None:
    start = "torch.distributed.init_process_group()"
    assert "engine" not in values(script(BMTRAIN.format(start=start, wrap=""), ""))


def test_a_loader_and_a_length_of_a_helper_module(tmp_path: Path) -> None:
    data = """
    from torch.utils.data import DataLoader
    def encode(tokenizer, config, text):
        length = config["length"]
        size = len(tokenizer(text, max_length=length // 2, truncation=True).input_ids)
        return tokenizer(text, max_length=length, truncation=True), size
    def loader(tokenizer, config):
        rows = [encode(tokenizer, config, text) for text in texts()]
        return DataLoader(rows, batch_size=config["batch"])
    """
    train = """
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from data import loader
    config = {"length": 1024, "batch": 8}
    model = AutoModelForCausalLM.from_pretrained("m")
    for batch in loader(AutoTokenizer.from_pretrained("m"), config):
        model(**batch).loss.backward()
    """
    filler = "".join(f"# {'-' * 100}\n" for _ in range(100))
    found = values(project(tmp_path, {"train.py": train, "data.py": dedent(data) + filler}))
    assert (found["micro_batch_size"], found["seq_len"]) == (8, 1024)


@pytest.mark.parametrize(
    ("code", "view"),
    [
        ("DistributedDataParallel(net, gradient_as_bucket_view=True)", True),
        ("DistributedDataParallel(net, gradient_as_bucket_view=False)", None),
        ("DistributedDataParallel(net)", None),
        ("DistributedDataParallel(net, gradient_as_bucket_view=chosen())", None),
        ("Accelerator(kwargs_handlers=[DistributedDataParallelKwargs(gradient_as_bucket_view=True)])", True),
        ("Mine(gradient_as_bucket_view=True)", None),
    ],
)
def test_gradients_that_are_views_of_ddps_buckets(code: str, view: bool | None) -> None:
    imports = "from accelerate import Accelerator, DistributedDataParallelKwargs\n"
    found = values(script(f"{imports}{LOOP}net = Net(8)\nmodel = {code}\n", ""))
    assert found.get("gradient_as_bucket_view") is view
