from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lintfit.documents.json_reader import read_json
from lintfit.documents.model import DataDocument, FileText
from lintfit.documents.yaml_reader import read_yaml
from lintfit.sources.detect import dialect, maybe_accelerate, maybe_deepspeed, maybe_launch
from lintfit.sources.recipes.front_ends import COMMANDS

Read = Callable[[str], DataDocument]

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"


@pytest.mark.parametrize(
    "text",
    [
        '{"zero_optimization": {"stage": 2}}',
        '{"zero_optimization": true}',
        '{"zero_optimisation": {"stage": 3}, "train_batch_size": 8}',
        '{"bf16": {"enabled": true}}',
        '{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4}',
        '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 1e-4}}}',
        '{"fp16": {"enabled": "auto"}, "optimizer": {"type": "AdamW", "params": {}}}',
        '// comment\n{"train_batch_size": 8, "steps_per_print": 10,}',
        '{"zero_optimization": {"stage": 2}, "fp16": {"enabled": true}',
    ],
)
def test_deepspeed(json_document: Read, text: str) -> None:
    assert dialect(json_document(text)) == "deepspeed"
    assert maybe_deepspeed(text)


NOT_DEEPSPEED = {
    "package.json": {"name": "x", "dependencies": {"a": "^1"}, "scripts": {"train": "deepspeed train.py"}},
    "tsconfig.json": {"compilerOptions": {"strict": True}, "include": ["src"]},
    "config.json": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16"},
    "trainer_state.json": {"global_step": 100, "log_history": [], "train_batch_size": 8, "max_steps": 100},
    "tokenizer.json": {"version": "1.0", "added_tokens": [], "model": {"type": "BPE"}},
    "training_args.json": {"output_dir": "out", "per_device_train_batch_size": 1, "fp16": True, "deepspeed": "ds.json"},
    "some optimizer": {"optimizer": {"type": "Adam", "lr": 0.1}, "epochs": 3},
    "data": {"train_batch_size": 8},
    "geo": {"type": "FeatureCollection", "features": []},
    "neox.json": {"num-layers": 12, "hidden-size": 768, "seq-length": 2048, "zero_optimization": {"stage": 1}},
    "megatron.json": {
        "num_layers": 12,
        "hidden_size": 768,
        "zero_optimization": {"stage": 1},
        "fp16": {"enabled": True},
    },
    "list": [{"zero_optimization": {"stage": 1}}],
}


@pytest.mark.parametrize("name", NOT_DEEPSPEED)
def test_not_deepspeed(json_document: Read, name: str) -> None:
    assert dialect(json_document(json.dumps(NOT_DEEPSPEED[name]))) is None


@pytest.mark.parametrize("text", ["", "not json", '{"a": ', "[1, 2", '{"num-layers": 1, "fp16": {'])
def test_broken_text_is_nobodys(json_document: Read, text: str) -> None:
    assert dialect(json_document(text)) is None


@pytest.mark.parametrize(
    "text",
    [
        "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\n",
        "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n",
        "distributed_type: NO\nmixed_precision: bf16\n",
        "num_processes: 8\nnum_machines: 1\nmachine_rank: 0\nmixed_precision: bf16\n",
    ],
)
def test_accelerate(yaml_document: Read, text: str) -> None:
    assert dialect(yaml_document(text)) == "accelerate"
    assert maybe_accelerate(text)


def test_accelerate_in_json(json_document: Read) -> None:
    text = '{"compute_environment": "LOCAL_MACHINE", "distributed_type": "MULTI_GPU", "fp16": true, "num_processes": 2}'
    assert dialect(json_document(text)) == "accelerate"


@pytest.mark.parametrize(
    "text",
    [
        "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n",
        "services:\n  db:\n    image: postgres\n",
        "model_name_or_path: x/y\nnum_processes: 8\nnum_machines: 1\nmixed_precision: bf16\n",
        "base_model: x/y\nfsdp_config:\n  fsdp_offload_params: true\n",
        "num_processes: 4\nqueue: default\n",
        "- distributed_type: DEEPSPEED\n",
        "",
    ],
)
def test_not_accelerate(yaml_document: Read, text: str) -> None:
    assert dialect(yaml_document(text)) is None


@pytest.mark.parametrize("word", ["torchrun", "deepspeed", "accelerate launch", "python3 -m torch.distributed.run"])
def test_maybe_launch(word: str) -> None:
    assert maybe_launch(f"{word} train.py")


def test_no_launch() -> None:
    assert not maybe_launch("#!/bin/sh\nmake test && npm run build\n")


@pytest.mark.parametrize("run", ['eval "$header" "$arguments"', "$LAUNCH --lr 1", '  exec "${LAUNCH}" train.py'])
def test_a_sourced_file_may_hold_the_launcher(run: str) -> None:
    assert maybe_launch(f"source scripts/common.sh\n{run}\n")
    assert not maybe_launch(f"{run}\n")


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real configs is not here")
def test_corpus() -> None:
    for line in (CORPUS / "index.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["kind"] == "deepspeed-broken":
            continue
        path = CORPUS / row["file"]
        file = FileText(path, path.read_text(encoding="utf-8-sig"))
        document = read_json(file) if path.suffix == ".json" else read_yaml(file)
        expected = None if row["kind"] == "neox-json" else row["kind"]
        assert dialect(document) == expected, row["file"]
        if expected == "deepspeed":
            assert maybe_deepspeed(file.text), row["file"]
        if expected == "accelerate":
            assert maybe_accelerate(file.text), row["file"]


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_front_ends_command_is_worth_reading(command: str) -> None:
    assert maybe_launch(f"{command} run x.yaml")
    assert not maybe_launch(f"echo un{command}ed")
