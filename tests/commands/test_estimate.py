"""``lintfit estimate``: specs, flags and files in; estimates out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lintfit.cli import flags as cli_flags
from lintfit.cli.flags import HARDWARE
from lintfit.commands import estimate as estimating
from lintfit.commands.specs import Estimated, estimate_mapping
from lintfit.memory.reading.keys import READERS, SPECIAL
from lintfit.options.config_values import KEYS
from lintfit.report import View
from tests.support import lintfit

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
}
SPEC: dict[str, Any] = {"model_config": CONFIG, "gpu_memory_gib": 16, "seq_len": 128, "micro_batch_size": 2}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    return tmp_path


def test_a_spec_gives_an_estimate(folder: Path) -> None:
    outcome = lintfit("estimate", "--spec", "spec.json", cwd=folder)
    assert (outcome.status, outcome.err) == (0, "")
    estimate = outcome.json
    assert list(estimate) == [
        *("peak_bytes", "peak_phase", "capacity_bytes", "host_bytes", "nvme_bytes", "components", "phases"),
        *("allocated_bytes", "verdict", "assumptions"),
    ]
    assert estimate["capacity_bytes"] == 16 * 2**30
    assert sum(estimate["components"].values()) == estimate["peak_bytes"]["likely"]


def test_an_array_gives_an_array_with_errors_in_place(folder: Path) -> None:
    specs = [SPEC, {**SPEC, "zero_stagee": 2}, 3, {**SPEC, "seq_len": 256}]
    outcome = lintfit("estimate", "--spec", "-", cwd=folder, stdin=json.dumps(specs).encode())
    first, second, third, fourth = outcome.json
    assert outcome.status == 2
    assert list(second) == ["error"] and "zero_stagee" in second["error"]
    assert third == {"error": "spec: 3 must be a JSON object"}
    assert fourth["components"]["activations"] > first["components"]["activations"]
    assert [line.split(":")[1] for line in outcome.err.splitlines()] == [" spec 2", " spec 3"]


def test_a_spec_that_comes_again_is_estimated_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    estimated: list[object] = []

    def counting(mapping: object) -> Estimated:
        estimated.append(mapping)
        return estimate_mapping(mapping)

    monkeypatch.setattr(estimating, "estimate_mapping", counting)
    longer, wrong = {**SPEC, "seq_len": 256}, {**SPEC, "gpus": 0}
    (folder / "specs.json").write_text(json.dumps([SPEC, longer, SPEC, wrong, wrong, longer]))
    done = estimating.of_specs(str(folder / "specs.json"), estimating.Shown("json", False, View()))
    first, second, third, *errors, last = json.loads(done.text)
    assert (first, second) == (third, last) and first != second
    assert [list(error) for error in errors] == [["error"], ["error"]]
    assert [error.split(":")[0] for error in done.errors] == ["spec 4", "spec 5"]
    assert estimated == [SPEC, longer, wrong, wrong]


def test_a_key_that_is_there_twice_costs_its_spec_alone(folder: Path) -> None:
    twice = b'{"model": "gpt2", "deepspeed_config": {"optimizer": [{"type": "Adam", "type": "Lion"}]}}'
    outcome = lintfit("estimate", "--spec", "-", cwd=folder, stdin=b"[%b, %b]" % (twice, json.dumps(SPEC).encode()))
    first, second = outcome.json
    assert first == {"error": "'type' is stated twice, the second time as 'Lion'; state it once"}
    assert (outcome.status, "verdict" in second) == (2, True)


def test_an_empty_array(folder: Path) -> None:
    outcome = lintfit("estimate", "--spec", "-", cwd=folder, stdin=b"[]")
    assert (outcome.status, outcome.json) == (0, [])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "standard input: empty; a spec is a JSON object, or an array of them"),
        (b"{}\n{}", "standard input:2:1: not JSON: Extra data; several specs stand in an array"),
        (b'{"gpus": ' + b"9" * 5000 + b"}", "standard input: not JSON that can be read: a number has more than"),
        (b"{", "standard input:1:2: not JSON"),
        (b'"text"', "standard input: a spec is a JSON object, or an array of them"),
        (b"\xff\xfe\x00", "standard input: not UTF-8"),
        (b"[" * 100_000, "standard input: not JSON that can be read: nested too deeply"),
        (
            b'{"model": "gpt2", "gpus": 1, "gpus": 8}',
            "standard input: 'gpus' is stated twice, the second time as 8; state it once",
        ),
    ],
)
def test_what_is_no_spec(folder: Path, content: bytes, message: str) -> None:
    outcome = lintfit("estimate", "--spec", "-", cwd=folder, stdin=content)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(f"lintfit: {message}")
    assert outcome.err.count("\n") == 1


def test_a_host_without_the_memory_for_what_is_offloaded_does_not_fit(folder: Path) -> None:
    """LLaMA 33B whole with everything offloaded died on a host of 600 GB and ran in 750 to 800 (DeepSpeed#3448)."""
    spec: dict[str, Any] = {"model": "huggyllama/llama-30b", "gpu": "A100-40GB", "gpus": 8, "mixed_precision": "bf16"}
    spec |= {"zero_stage": 3, "offload_optimizer": "cpu", "offload_param": "cpu", "gradient_checkpointing": True}
    spec |= {"micro_batch_size": 1, "seq_len": 2048}
    specs = [{**spec, "host_memory_gib": 600 * 10**9 / 2**30}, {**spec, "host_memory_gib": 1000}]
    outcome = lintfit("estimate", "--spec", "-", cwd=folder, stdin=json.dumps(specs).encode())
    short, enough = outcome.json
    assert (short["verdict"], enough["verdict"]) == ("does-not-fit", "fits")
    assert any("the host decides the verdict" in line for line in short["assumptions"])
    assert short["components"] == enough["components"]
    unsaid = [{name: value for name, value in each.items() if name != "gpu"} for each in specs]
    unknown = {**unsaid[0], "sequence_parallel": 8}
    outcome = lintfit("estimate", "--spec", "-", cwd=folder, stdin=json.dumps([*unsaid, unknown]).encode())
    assert [found["verdict"] for found in outcome.json] == ["does-not-fit", "unknown", "unknown"]


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no endless file")
def test_an_endless_file_ends(folder: Path) -> None:
    outcome = lintfit("estimate", "--spec", "/dev/zero", cwd=folder)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == "lintfit: /dev/zero: more than 64 MiB; give the specs in several files\n"


def test_flags_beat_the_deepspeed_file(folder: Path) -> None:
    (folder / "ds.json").write_text('{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}}')
    flags = ("--model", "gpt2", "--gpus", "2", "--deepspeed-config", "ds.json")
    flags += ("--zero-stage", "2", "--offload-optimizer", "none", "--output-format", "json")
    asked = lintfit("estimate", *flags, cwd=folder)
    assert asked.status == 0, asked.err
    spec = {"model": "gpt2", "gpus": 2, "zero_stage": 2, "offload_optimizer": "none"}
    wanted = lintfit("estimate", "--spec", "-", cwd=folder, stdin=json.dumps(spec).encode())
    assert asked.json["components"] == wanted.json["components"]


def test_flags_say_the_same_as_a_spec(folder: Path) -> None:
    flags = ("--model", "model", "--gpu-memory", "16GiB", "--seq-len", "128", "--micro-batch-size", "2")
    by_flags = lintfit("estimate", *flags, "--output-format", "json", cwd=folder)
    assert by_flags.status == 0
    assert by_flags.json == lintfit("estimate", "--spec", "spec.json", cwd=folder).json


def test_a_length_for_each_half_of_a_model(folder: Path) -> None:
    flags = ("--model", "google/flan-t5-small", "--seq-len", "512", "--decoder-seq-len", "64")
    by_flags = lintfit("estimate", *flags, "--output-format", "json", cwd=folder)
    spec = {"model": "google/flan-t5-small", "seq_len": 512, "decoder_seq_len": 64}
    assert by_flags.status == 0, by_flags.err
    assert by_flags.json == lintfit("estimate", "--spec", "-", cwd=folder, stdin=json.dumps(spec).encode()).json
    assert "512 tokens, 64 for the decoder" in lintfit("estimate", *flags, cwd=folder).out


def test_flags_of_the_hardware_are_keys_of_the_config() -> None:
    assert set(HARDWARE) <= set(KEYS)


def test_text(folder: Path) -> None:
    text = lintfit("estimate", "--spec", "spec.json", "--output-format", "text", cwd=folder).out
    assert "memory of one GPU: " in text
    assert "torch sees (allocated)" in text
    assert "the optimizer step" in text


def test_a_wrong_flag(folder: Path) -> None:
    outcome = lintfit("estimate", "--model", "model", "--zero-stage", "7", cwd=folder)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("lintfit: --zero-stage: 7")


def test_a_model_config_that_is_none(folder: Path) -> None:
    (folder / "list.json").write_text("[]")
    outcome = lintfit("estimate", "--model-config", "list.json", cwd=folder)
    assert outcome.err == "lintfit: list.json: expected a JSON object, as a model's config.json is\n"


def test_a_folder_without_runs(tmp_path: Path) -> None:
    outcome = lintfit("estimate", cwd=tmp_path)
    assert (outcome.status, outcome.out) == (0, "No runs found.\n")


@pytest.mark.parametrize(
    ("flags", "start"),
    [
        (
            ("--model", "meta-llama/Lama-2-7b-hf"),
            "--model: 'meta-llama/Lama-2-7b-hf' is not known (did you mean 'meta-",
        ),
        (
            ("--model", "gpt2", "--gpu", "RTX 309O"),
            "--gpu: 'RTX 309O' is not known (did you mean 'NVIDIA GeForce RTX 3090",
        ),
        (("--model", "gpt2", "--zero-stage", "3", "--gpus", "0"), "--gpus 0: expected a whole number of 1 or more"),
        (("--model", "gpt2", "--micro-batch-size", "-1"), "--micro-batch-size: -1 must be a whole number from 1"),
        (("--model", "gpt2", "--lora-rank", "0"), "--lora-rank: 0 must be a whole number from 1"),
        (("--model", "gpt2", "--zero-stage", "3", "--engine", "ddp"), "--zero-stage: 3 needs engine 'deepspeed'"),
        (("--model", "gpt2", "--versions", "4.48"), "--versions 4.48: expected name=version pairs"),
        (("--model", "gpt2", "--fsdp", '{"version":'), '--fsdp {"version":: not JSON'),
        (("--model", "gpt2", "--fsdp", "SHARDED"), "fsdp.strategy: 'SHARDED' must be one of 'FULL_SHARD'"),
        (("--model", "gpt2", "--deepspeed-config", "no.json"), "no.json: cannot be read"),
        (("--model", "gpt2", "--gpus", "2", "--gpus", "4"), "--gpus 2 and --gpus 4: two values for one setting"),
        (("--model", "gpt2", "--lora-targets", "qproj"), "--lora-targets: qproj names no module of gpt2; its linear"),
        (("--model", "gpt2", "--sweep", "micro-batch,seq-len,gpus"), "--sweep micro-batch,seq-len,gpus: one setting"),
        (("--model", "gpt2", "--sweep", "sequences"), "--sweep sequences: no setting 'sequences'"),
    ],
)
def test_bad_flags_get_one_line(folder: Path, flags: tuple[str, ...], start: str) -> None:
    outcome = lintfit("estimate", *flags, cwd=folder)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(f"lintfit: {start}")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"hidden_size": -1}, "hidden_size is -1, must be a whole number from 1"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000, must be a whole number from 1 to"),
        ({"vocab_size": "many"}, "vocab_size is 'many', must be a whole number"),
        ({"num_key_value_heads": 3}, "num_key_value_heads is 3, must divide num_attention_heads (4)"),
    ],
)
def test_a_model_config_with_missing_or_absurd_numbers(folder: Path, change: dict[str, Any], message: str) -> None:
    config = {key: value for key, value in {**CONFIG, **change}.items() if value is not None}
    (folder / "model" / "config.json").write_text(json.dumps(config))
    outcome = lintfit("estimate", "--model", "model", cwd=folder)
    assert (outcome.status, outcome.out) == (2, "")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1


def test_flags_may_be_written_like_the_keys_of_a_spec(folder: Path) -> None:
    dashes = lintfit("estimate", "--model", "model", "--zero-stage", "3", "--output-format", "json", cwd=folder)
    scores = lintfit("estimate", "--model", "model", "--zero_stage", "3", "--output-format", "json", cwd=folder)
    assert dashes.status == 0
    assert dashes.json == scores.json


def test_flags_that_are_more_than_a_word(folder: Path) -> None:
    (folder / "ds.json").write_text(json.dumps({"zero_optimization": {"stage": 2, "reduce_bucket_size": 1000}}))
    flags = ("--lora-targets", "q_proj,v_proj", "--versions", "transformers=4.48.1", "--deepspeed-config", "ds.json")
    by_flags = lintfit("estimate", "--model", "model", *flags, "--output-format", "json", cwd=folder)
    spec = {
        "model_config": CONFIG,
        "method": "lora",
        "lora_targets": ["q_proj", "v_proj"],
        "versions": {"transformers": "4.48.1"},
        "deepspeed_config": {"zero_optimization": {"stage": 2, "reduce_bucket_size": 1000}},
    }
    by_spec = lintfit("estimate", "--spec", "-", cwd=folder, stdin=json.dumps(spec).encode())
    assert by_flags.json == by_spec.json


def test_every_key_of_a_spec_is_a_flag() -> None:
    """The GPU's and the host's memory are flags with units: --gpu-memory 23.7GiB."""
    flags = {name.replace("-", "_") for name in (*cli_flags.SPEC, *cli_flags.HARDWARE)}
    assert {*READERS, *SPECIAL} - flags == {"gpu_memory_gib", "host_memory_gib"}


@pytest.mark.parametrize(
    ("flag", "models"),
    [
        ("gpt2,gpt2-xl", [{"model": "gpt2"}, {"model": "gpt2-xl"}]),
        ('[{"model": "gpt2", "weights_dtype": "fp32"}]', [{"model": "gpt2", "weights_dtype": "fp32"}]),
    ],
)
def test_models_that_are_only_asked(folder: Path, flag: str, models: list[dict[str, str]]) -> None:
    flags = ("--frozen-models", flag, "--own-loss", "true")
    by_flags = lintfit("estimate", "--model", "model", *flags, "--output-format", "json", cwd=folder)
    spec = {"model_config": CONFIG, "frozen_models": models, "own_loss": True}
    by_spec = lintfit("estimate", "--spec", "-", cwd=folder, stdin=json.dumps(spec).encode())
    assert by_flags.json == by_spec.json
    broken = lintfit("estimate", "--model", "model", "--frozen-models", "[{", cwd=folder)
    assert broken.status == 2 and broken.err.startswith("lintfit: --frozen-models [{: not JSON")


def test_a_rollout_and_kernels_by_flags(folder: Path) -> None:
    flags = ("--trainer", "grpo", "--generation", '{"completion_len": 64}', "--fused-kernels", "rms_norm,rope")
    by_flags = lintfit("estimate", "--model", "model", *flags, "--output-format", "json", cwd=folder)
    spec = {
        "model_config": CONFIG,
        "trainer": "grpo",
        "generation": {"completion_len": 64},
        "fused_kernels": ["rms_norm", "rope"],
    }
    by_spec = lintfit("estimate", "--spec", "-", cwd=folder, stdin=json.dumps(spec).encode())
    assert by_flags.status == 0
    assert by_flags.json == by_spec.json


def test_the_config_of_the_project_names_the_card(folder: Path) -> None:
    (folder / "lintfit.toml").write_text('gpu = "RTX 3090"\n')
    own = lintfit("estimate", "--model", "model", "--output-format", "json", cwd=folder)
    isolated = lintfit("estimate", "--model", "model", "--output-format", "json", "--isolated", cwd=folder)
    assert 23 * 2**30 < own.json["capacity_bytes"] < 24 * 2**30
    assert isolated.json["capacity_bytes"] is None


def test_explain_prints_formulas(folder: Path) -> None:
    text = lintfit("estimate", "--spec", "spec.json", "--explain", cwd=folder).out
    assert "where the bytes come from, at the peak" in text
    assert "2 bytes × " in text and " parameters = " in text
    assert "larger at another moment" in text


def test_explain_in_json_adds_up(folder: Path) -> None:
    estimate = lintfit("estimate", "--spec", "spec.json", "--explain", "--output-format", "json", cwd=folder).json
    terms = {
        part["component"]: sum(term["bytes"] for term in part["terms"]) for part in estimate["explanation"]["peak"]
    }
    assert terms == {name: size for name, size in estimate["components"].items() if size}
    assert sum(term["bytes"] for term in estimate["explanation"]["host"]) == estimate["host_bytes"]


def test_an_unknown_model_of_files_is_said_and_the_rest_is_checked(tmp_path: Path) -> None:
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}},
    }
    (tmp_path / "ds.json").write_text(json.dumps(config, indent=2))
    (tmp_path / "train.py").write_text(
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        'model = AutoModelForCausalLM.from_pretrained("nobody/knows-this-one")\n'
        'Trainer(model, TrainingArguments("out", deepspeed="ds.json", per_device_train_batch_size=1)).train()\n'
    )
    (tmp_path / "run.sh").write_text("deepspeed --num_gpus 4 train.py\n")
    flags = ("--gpu", "RTX 3090", "--isolated", "--output-format", "json")
    outcome = lintfit("check", *flags, "run.sh", cwd=tmp_path)
    assert outcome.status == 1
    (run,) = outcome.json["runs"]
    assert (run["verdict"], run["estimate"], run["plan"]) == ("unknown", None, None)
    rules = {finding["rule"] for finding in outcome.json["findings"]}
    assert "key-inactive-at-stage" in rules
    text = lintfit("estimate", "--gpu", "RTX 3090", "--isolated", "run.sh", cwd=tmp_path)
    assert text.status == 0
    assert "memory unknown: add the shape of" in text.out and "--model-config FILE" in text.out
