"""A model that cannot be counted: the other findings come, the verdict is unknown, and it is said what would help."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import Outcome, lintfit

NEW: dict[str, object] = {
    "model_type": "brand_new",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "num_experts": 64,
}
WHY = "model_type is 'brand_new', which is not known, and its 64 experts (num_experts) cannot be counted"
OTHER = "key-inactive-at-stage"
HARDWARE = ("--isolated", "--gpu", "H100")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    zero = {"stage": 2, "offload_param": {"device": "cpu"}}
    (tmp_path / "ds.json").write_text(json.dumps({"train_micro_batch_size_per_gpu": 1, "zero_optimization": zero}))
    _train(tmp_path, "someone/new")
    (tmp_path / "run.sh").write_text("deepspeed --num_gpus 8 train.py --deepspeed ds.json\n")
    (tmp_path / "new.json").write_text(json.dumps(NEW))
    return tmp_path


def _train(folder: Path, model: str) -> None:
    (folder / "train.py").write_text(
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        f'model = AutoModelForCausalLM.from_pretrained("{model}")\n'
        'args = TrainingArguments("out", per_device_train_batch_size=1, deepspeed="ds.json")\n'
        "Trainer(model, args).train()\n"
    )


def _unknown(outcome: Outcome) -> None:
    assert outcome.err == ""
    found = {finding["rule"]: finding["message"] for finding in outcome.json["findings"]}
    assert OTHER in found
    assert [run["verdict"] for run in outcome.json["runs"]] == ["unknown"]
    assert "a config.json of a model_type that lintfit can count" in found["memory-unknown"]
    assert WHY in found["memory-unknown"]


def test_a_config_given_by_hand(project: Path) -> None:
    check = ("check", "run.sh", *HARDWARE, "--output-format", "json")
    _unknown(lintfit(*check, "--model-config", "new.json", cwd=project))


def test_a_folder_that_the_script_names(project: Path) -> None:
    (project / "local").mkdir()
    (project / "new.json").rename(project / "local" / "config.json")
    _train(project, "./local")
    _unknown(lintfit("check", "run.sh", *HARDWARE, "--output-format", "json", cwd=project))


def test_fit_says_what_is_missing(project: Path) -> None:
    outcome = lintfit("fit", "run.sh", *HARDWARE, "--model-config", "new.json", cwd=project)
    assert (outcome.status, outcome.err) == (1, "")
    assert "memory unknown: add a config.json of a model_type" in outcome.out


@pytest.mark.parametrize("what", [("run.sh",), ()])
def test_an_estimate_is_refused_in_one_line(project: Path, what: tuple[str, ...]) -> None:
    outcome = lintfit("estimate", *what, *HARDWARE, "--model-config", "new.json", cwd=project)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1
    assert WHY in outcome.err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        ("{", "not valid JSON"),
        ('{"model_type": "llama"}', "is missing"),
        (json.dumps({**NEW, "model_type": "llama", "hidden_size": -1}), "hidden_size is -1"),
        (json.dumps({**NEW, "model_type": None}), "model_type is missing, and its 64 experts"),
    ],
)
def test_a_config_that_is_not_in_order_is_a_slip_of_the_user(project: Path, content: str | None, said: str) -> None:
    if content is not None:
        (project / "bad.json").write_text(content)
    outcome = lintfit("check", "run.sh", *HARDWARE, "--model-config", "bad.json", cwd=project)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1
    assert "bad.json" in outcome.err
    assert said in outcome.err


PREFIX = """\
from transformers import AutoConfig, AutoModel, Seq2SeqTrainer, Seq2SeqTrainingArguments
config = AutoConfig.from_pretrained("THUDM/chatglm2-6b", trust_remote_code=True)
config.pre_seq_len = 128
model = AutoModel.from_pretrained("THUDM/chatglm2-6b", config=config, trust_remote_code=True)
args = Seq2SeqTrainingArguments("out", per_device_train_batch_size=1)
Seq2SeqTrainer(model=model, args=args, train_dataset=tokenizer(texts, max_length=64, truncation=True)).train()
"""


@pytest.mark.parametrize(("gpu", "verdict"), [("A100 80GB", "fits"), ("RTX 4090", "unknown")])
def test_a_prefix_is_bound_by_full_fine_tuning(gpu: str, verdict: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PREFIX)
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 1 train.py\n")
    result = lintfit("check", "--isolated", "--gpu", gpu, "--output-format", "json", ".", cwd=tmp_path)
    assert [run["verdict"] for run in json.loads(result.out)["runs"]] == [verdict]
