"""Precedence: the matrix of what DeepSpeed's JSON, the trainer's arguments and Accelerate's YAML come to together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lintfit.commands.check import load_runs
from lintfit.documents.json_reader import read_json
from lintfit.documents.model import FileText
from lintfit.documents.workspace import Workspace
from lintfit.documents.yaml_reader import read_yaml
from lintfit.options.model import Options
from lintfit.run.build import build
from lintfit.run.model import OF_THE_MACHINE, Origin
from lintfit.run.precedence import Sources, first
from lintfit.run.processes import number_of_gpus
from lintfit.run.resolve import resolve
from lintfit.settings.model import AUTO, UNKNOWN, Provenance, Setting
from lintfit.sources.accelerate import read_accelerate
from lintfit.sources.deepspeed import read_deepspeed

BATCH = {"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"}


def _settings(values: Mapping[str, Any], kind: str = "file") -> dict[str, Setting]:
    return {name: Setting(name, value, Provenance(kind, "test")) for name, value in values.items()}  # type: ignore[arg-type]


def _trainer(defaults: Mapping[str, Any] = {}, **stated: Any) -> Any:
    """A script that hands TrainingArguments to a Trainer."""
    library = {"bf16": False, "fp16": False, "micro_batch_size": 8, "gradient_accumulation_steps": 1, **defaults}
    settings = _settings(library, "default") | _settings(stated)
    return SimpleNamespace(
        settings=settings,
        uses_trainer=True,
        facts=SimpleNamespace(
            training_arguments=object(), initialize=None, trained_load=None, partitioning=(), batches_out_of_sight=False
        ),
    )


def _loop(**stated: Any) -> Any:
    """A hand-written loop around Accelerator()."""
    return SimpleNamespace(
        settings=_settings(stated),
        uses_trainer=False,
        facts=SimpleNamespace(
            training_arguments=None, initialize=None, trained_load=None, partitioning=(), batches_out_of_sight=False
        ),
    )


def _deepspeed(**config: Any) -> Any:
    return read_deepspeed(read_json(FileText(Path("ds.json"), json.dumps(config))))


def _accelerate(text: str) -> Any:
    return read_accelerate(read_yaml(FileText(Path("acc.yaml"), text)))


def _value(name: str, **sources: Any) -> Any:
    setting = resolve(Sources(Options(), **sources)).get(name)
    return setting.value if setting is not None else None


YAML = "distributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_processes: 4\ndeepspeed_config:\n  zero_stage: 3\n"


@pytest.mark.parametrize(
    ("sources", "precision"),
    [
        ({"script": _trainer(), "deepspeed": _deepspeed(bf16={"enabled": "auto"}, **BATCH)}, "no"),
        ({"script": _trainer(bf16=True), "deepspeed": _deepspeed(bf16={"enabled": "auto"}, **BATCH)}, "bf16"),
        ({"script": _trainer(bf16=True), "deepspeed": _deepspeed(**BATCH)}, "bf16"),
        ({"script": _trainer(bf16=True), "deepspeed": _deepspeed(bf16={"enabled": False}, **BATCH)}, "no"),
        ({"script": _trainer(), "deepspeed": _deepspeed(fp16={"enabled": True}, **BATCH)}, "fp16"),
        ({"script": _trainer(bf16=True), "accelerate": _accelerate(YAML.replace("bf16", "'no'"))}, "bf16"),
        ({"script": _trainer(), "accelerate": _accelerate(YAML)}, "bf16"),
        ({"script": _trainer(bf16=UNKNOWN)}, UNKNOWN),
        ({"script": _trainer()}, "no"),
        ({"script": _loop(mixed_precision="fp16"), "accelerate": _accelerate(YAML)}, "fp16"),
        ({"script": _loop(), "accelerate": _accelerate(YAML)}, "bf16"),
        ({"deepspeed": _deepspeed(bf16={"enabled": "auto"}, train_micro_batch_size_per_gpu=1)}, "no"),
    ],
)
def test_precision(sources: dict[str, Any], precision: Any) -> None:
    assert _value("mixed_precision", **sources) == precision


def test_environment_does_not_fill_auto_of_a_deepspeed_file() -> None:
    yaml = _accelerate(
        "distributed_type: DEEPSPEED\nmixed_precision: bf16\ndeepspeed_config:\n  zero3_init_flag: true\n"
    )
    deepspeed = _deepspeed(bf16={"enabled": "auto"}, **BATCH)
    assert _value("mixed_precision", script=_trainer(), accelerate=yaml, deepspeed=deepspeed) == "no"


@pytest.mark.parametrize(
    ("sources", "stage"),
    [
        ({"deepspeed": _deepspeed(zero_optimization={"stage": 2})}, 2),
        ({"deepspeed": _deepspeed(train_batch_size=8)}, 0),
        ({"accelerate": _accelerate(YAML)}, 3),
        ({"accelerate": _accelerate("distributed_type: DEEPSPEED\n")}, 2),
        ({"accelerate": _accelerate(YAML), "deepspeed": _deepspeed(zero_optimization={"stage": 1})}, 1),
        ({"script": _trainer(deepspeed="missing.json")}, UNKNOWN),
        ({"script": _trainer()}, None),
    ],
)
def test_zero_stage(sources: dict[str, Any], stage: object) -> None:
    assert _value("zero_stage", **sources) == stage


def test_micro_batch_is_the_trainers_and_remembers_the_json() -> None:
    deepspeed = _deepspeed(train_micro_batch_size_per_gpu=1)
    setting = resolve(Sources(Options(), script=_trainer(), deepspeed=deepspeed))["micro_batch_size"]
    assert setting.value == 8
    assert [beaten.value for beaten in setting.overrode] == [1]


def test_a_loop_accumulates_what_the_json_says_or_once() -> None:
    script = _loop(gradient_accumulation_steps=4, micro_batch_size=2)
    assert (
        _value("gradient_accumulation_steps", script=script, deepspeed=_deepspeed(gradient_accumulation_steps=8)) == 8
    )
    assert _value("gradient_accumulation_steps", script=script, deepspeed=_deepspeed(zero_optimization={})) == 1


def test_deepspeed_works_out_accumulation_from_the_other_two() -> None:
    deepspeed = _deepspeed(train_batch_size=64, train_micro_batch_size_per_gpu=2)
    options = Options(gpus=8, origins={"gpus": "--gpus"})
    assert resolve(Sources(options, deepspeed=deepspeed))["gradient_accumulation_steps"].value == 4


@pytest.mark.parametrize(("total", "gpus"), [(1, 2), (12, 8)])
def test_a_batch_that_deepspeed_cannot_share_out_gives_no_accumulation(total: int, gpus: int) -> None:
    deepspeed = _deepspeed(train_batch_size=total, train_micro_batch_size_per_gpu=1)
    options = Options(gpus=gpus, origins={"gpus": "--gpus"})
    assert resolve(Sources(options, deepspeed=deepspeed))["gradient_accumulation_steps"].value is UNKNOWN


@pytest.mark.parametrize(("nodes", "gpus"), [(None, 8), (2, 16), (UNKNOWN, None)])
def test_the_name_of_the_cards_states_their_number_where_nothing_else_does(nodes: object, gpus: int | None) -> None:
    options = Options(gpu="8x3090", origins={"gpu": "--gpu"})
    launch = SimpleNamespace(
        document=SimpleNamespace(path=Path("run.sh")),
        launcher="deepspeed",
        seen_gpus=None,
        by_mpi=False,
        settings={} if nodes is None else _settings({"nodes": nodes}),
    )
    found = number_of_gpus(Sources(options, launch=launch), None)  # type: ignore[arg-type]
    assert (found.value if found is not None else None) == gpus


@pytest.mark.parametrize(("kind", "gpus"), [("assumed", UNKNOWN), ("file", 5)])
def test_processes_that_the_script_starts_are_not_one_on_each_node(kind: str, gpus: object) -> None:
    launch = SimpleNamespace(
        document=SimpleNamespace(path=Path("run.sh")),
        launcher="python",
        seen_gpus=None,
        by_mpi=False,
        settings=_settings({"gpus": 5}, kind) | _settings({"nodes": 5}),
    )
    sources = Sources(Options(), script=_loop(gpus=UNKNOWN), launch=launch)  # type: ignore[arg-type]
    found = number_of_gpus(sources, None)
    assert found is not None and found.value == gpus


def test_an_offloaded_optimizer_is_cpu_adam() -> None:
    deepspeed = _deepspeed(zero_optimization={"stage": 2, "offload_optimizer": {"device": "cpu"}})
    setting = resolve(Sources(Options(), script=_trainer(optimizer="adamw_8bit"), deepspeed=deepspeed))["optimizer"]
    assert setting.value == "deepspeed_cpu_adam"
    assert [beaten.value for beaten in setting.overrode] == ["adamw_8bit"]


def test_flags_beat_files_and_files_beat_lintfits_config() -> None:
    script = _trainer(model="from-script")
    flag = Options(model="from-flag", origins={"model": "--model"})
    config = Options(model="from-config", origins={"model": "model in lintfit.toml"})
    assert resolve(Sources(flag, script=script))["model"].value == "from-flag"
    assert resolve(Sources(config, script=script))["model"].value == "from-script"
    assert resolve(Sources(config))["model"].value == "from-config"


def test_auto_says_nothing_and_unknown_wins() -> None:
    auto, unknown, stated = (Setting("x", value, Provenance("file")) for value in (AUTO, UNKNOWN, 1))
    assert first("x", auto, stated).value == 1  # type: ignore[union-attr]
    assert first("x", unknown, stated).value is UNKNOWN  # type: ignore[union-attr]
    assert first("x", auto, None) is None


def test_the_assumed_length_is_no_more_than_the_model_has_positions(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments\n"
        'model = AutoModelForSequenceClassification.from_pretrained("bert-base-cased")\n'
        'Trainer(model=model, args=TrainingArguments("out")).train()\n'
    )
    run = build(Origin("script", script), Workspace(), Options())
    assert run.spec is not None
    assert run.spec.seq_len == 512
    assert "seq_len" not in run.spec.stated


@pytest.mark.parametrize(("prepared", "expected"), [(True, "all"), (False, None)])
def test_a_prepared_model_keeps_embeddings_and_head_in_fp32(
    tmp_path: Path, prepared: bool, expected: str | None
) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n"
        "from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training\n"
        "from transformers import AutoModelForCausalLM, BitsAndBytesConfig, Trainer, TrainingArguments\n"
        "quantized = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type='nf4')\n"
        'model = AutoModelForCausalLM.from_pretrained("mistralai/Mistral-7B-v0.1", quantization_config=quantized)\n'
        + ("model = prepare_model_for_kbit_training(model)\n" if prepared else "")
        + "model = get_peft_model(model, LoraConfig(r=8))\n"
        'Trainer(model=model, args=TrainingArguments("out", bf16=True)).train()\n'
    )
    run = build(Origin("script", script), Workspace(), Options())
    assert run.spec is not None
    assert run.spec.quantization == "nf4"
    assert run.spec.kbit_upcast == expected
    assert run.spec.front_end == "transformers"


TRAIN = """
import os
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
steps = 64 // int(os.environ.get("WORLD_SIZE", 1))
model = AutoModelForCausalLM.from_pretrained("gpt2")
Trainer(model=model, args=TrainingArguments("out", gradient_accumulation_steps=steps)).train()
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("torchrun --nproc_per_node 4 train.py", 16),
        ("torchrun --nnodes 2 --nproc_per_node 4 train.py", 8),
        ("accelerate launch --num_processes 2 train.py", 32),
        ("python train.py", 64),
        ("mpirun -np 8 python train.py", UNKNOWN),
        ("torchrun --nproc_per_node $GPUS train.py", UNKNOWN),
    ],
)
def test_the_number_of_ranks_that_a_script_sees(tmp_path: Path, line: str, expected: object) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "run.sh").write_text(line + "\n")
    _, results = load_runs([tmp_path], Options())
    assert results[0].run.settings["gradient_accumulation_steps"].value == expected


@pytest.mark.parametrize(
    ("line", "script"),
    [
        ("cd src && torchrun --nproc_per_node 4 train.py", "src/train.py"),
        ("torchrun --nproc_per_node 4 ${ROOT:-/workspace/project}/src/train.py", "src/train.py"),
        ("torchrun --nproc_per_node 4 -m src.pkg", "src/pkg/__main__.py"),
        ("torchrun --nproc_per_node 4 -m kit.run", "src/kit/run.py"),
        ("torchrun --nproc_per_node 4 -m kit", "src/kit/__main__.py"),
    ],
)
def test_where_a_script_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, script: str) -> None:
    (tmp_path / script).parent.mkdir(parents=True)
    (tmp_path / script).write_text(TRAIN)
    (tmp_path / "train.py").write_text("# another of that name\n")
    (tmp_path / "run.sh").write_text(line + "\n")
    monkeypatch.chdir(tmp_path)
    _, results = load_runs([Path("run.sh")], Options())
    assert results[0].run.settings["gradient_accumulation_steps"].value == 16


def test_a_name_alone_is_not_looked_for_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "run.sh").write_text("torchrun /somewhere/else/train.py\n")
    _, results = load_runs([tmp_path / "run.sh"], Options())
    assert results[0].run.script is None


def test_auto_of_a_training_that_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from elsewhere import main\nmain()\n")
    (tmp_path / "ds.json").write_text(json.dumps({"bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 0}}))
    (tmp_path / "run.sh").write_text("torchrun train.py --bf16 --deepspeed ds.json\n")
    _, results = load_runs([tmp_path / "run.sh"], Options())
    assert results[0].run.settings["mixed_precision"].value is UNKNOWN


@pytest.mark.parametrize(("handed", "expected"), [("training_data=data", 4), ("model_parameters=None", 1)])
def test_deepspeeds_own_loader(tmp_path: Path, handed: str, expected: int) -> None:
    (tmp_path / "train.py").write_text(
        "import deepspeed\nfrom torch.utils.data import DataLoader\n"
        "loader = DataLoader(data, batch_size=1)\n"
        f"engine, *_ = deepspeed.initialize(model=model, {handed}, config='ds.json')\n"
        "engine.backward(loss)\n"
    )
    (tmp_path / "ds.json").write_text(json.dumps({"train_micro_batch_size_per_gpu": 4}))
    (tmp_path / "run.sh").write_text("deepspeed --num_gpus 1 train.py\n")
    _, results = load_runs([tmp_path / "run.sh"], Options())
    script = results[0].run.script
    assert script is not None
    assert ("micro_batch_size" in script.settings) is (expected == 1)


def test_a_script_beside_files_that_are_found_by_their_place_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "kit" / "configs").mkdir(parents=True)
    (tmp_path / "kit" / "scripts").mkdir()
    (tmp_path / "kit" / "train.py").write_text(TRAIN)
    (tmp_path / "train.py").write_text("# another of that name\n")
    (tmp_path / "kit" / "configs" / "zero2.json").write_text('{"zero_optimization": {"stage": 2}}')
    line = "torchrun --nproc_per_node 4 /home/me/kit2/train.py --deepspeed_config /home/me/kit2/configs/zero2.json\n"
    (tmp_path / "kit" / "scripts" / "run.sh").write_text(line)
    _, results = load_runs([tmp_path / "kit" / "scripts" / "run.sh"], Options())
    assert results[0].run.settings["gradient_accumulation_steps"].value == 16


def test_a_batch_in_a_file_whose_reader_is_not_at_hand_is_an_assumption(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1}')
    (tmp_path / "run.sh").write_text("deepspeed --num_gpus 4 finetune.py --deepspeed_config ds.json\n")
    _, results = load_runs([tmp_path / "run.sh"], Options())
    for name in ("micro_batch_size", "gradient_accumulation_steps"):
        assert results[0].run.settings[name].provenance.kind == "assumed"


@pytest.mark.parametrize(
    ("line", "gpus", "engine"),
    [
        ("python train.py", 1, "single"),
        ("torchrun --nproc_per_node 2 train.py", 2, "ddp"),
        ("mpirun -np 4 python train.py", 4, "ddp"),
    ],
)
def test_plain_python_starts_one_process_on_however_many_gpus(
    tmp_path: Path, line: str, gpus: int, engine: str
) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "run.sh").write_text(line + "\n")
    options = Options(gpus=4, origins={"gpus": "--gpus"})
    _, results = load_runs([tmp_path / "run.sh"], options)
    settings = results[0].run.settings
    assert (settings["gpus"].value, settings["engine"].value) == (gpus, engine)
    assert (settings["gpus"].provenance.kind == "assumed") == (engine == "single")


ENGINE = """
import deepspeed
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("a/b")
engine, *_ = deepspeed.initialize(model=model, config="ds.json", training_data=data)
engine.backward(engine(batch).loss)
engine.step()
"""


@pytest.mark.parametrize(
    ("config", "batch", "steps"),
    [
        ({"train_batch_size": 8}, 4, 1),
        ({"train_batch_size": 8, "gradient_accumulation_steps": 2}, 2, 2),
        ({"train_batch_size": 9}, UNKNOWN, 1),
        ({"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1}, 1, 4),
    ],
)
def test_the_engine_shares_a_batch_out(tmp_path: Path, config: dict[str, int], batch: object, steps: int) -> None:
    (tmp_path / "train.py").write_text(ENGINE)
    (tmp_path / "ds.json").write_text(json.dumps(config))
    (tmp_path / "run.sh").write_text("deepspeed --num_gpus 2 train.py\n")
    settings = load_runs([tmp_path / "run.sh"], Options())[1][0].run.settings
    assert (settings["micro_batch_size"].value, settings["gradient_accumulation_steps"].value) == (batch, steps)


@pytest.mark.parametrize(("stage", "device"), [(1, "none"), (2, "none"), (3, "cpu")])
def test_parameters_are_offloaded_at_stage_3_alone(stage: int, device: str) -> None:
    offload = {"stage": stage, "offload_param": {"device": "cpu"}}
    setting = resolve(Sources(Options(), deepspeed=_deepspeed(zero_optimization=offload)))["offload_param"]
    assert setting.value == device
    assert any(beaten.value == "cpu" for beaten in setting.overrode) == (stage < 3)


LOOP = """
import torch
from accelerate import Accelerator
from transformers import AutoModelForCausalLM
accelerator = Accelerator()
model = AutoModelForCausalLM.from_pretrained("a/b")
optimizer = torch.optim.AdamW(model.parameters())
model, optimizer = accelerator.prepare(model, optimizer)
for batch in loader:
    accelerator.backward(model(**batch).loss)
    optimizer.step()
"""


@pytest.mark.parametrize(("file", "precision", "steps"), [("acc.yaml", "bf16", 1), ("other.yaml", UNKNOWN, UNKNOWN)])
def test_an_accelerate_yaml_that_is_not_there(tmp_path: Path, file: str, precision: object, steps: object) -> None:
    (tmp_path / "train.py").write_text(LOOP)
    (tmp_path / "acc.yaml").write_text("distributed_type: MULTI_GPU\nmixed_precision: bf16\nnum_processes: 2\n")
    (tmp_path / "run.sh").write_text(f"accelerate launch --config_file {file} --num_processes 2 train.py\n")
    settings = load_runs([tmp_path / "run.sh"], Options())[1][0].run.settings
    assert settings["mixed_precision"].value == precision
    assert settings["gradient_accumulation_steps"].value == steps


@pytest.mark.parametrize(
    ("line", "engine"),
    [
        ("deepspeed --num_gpus 2 train.py --config_path zero3.json", UNKNOWN),
        ("deepspeed --num_gpus 2 train.py --deepspeed_config_path here/engine.json", UNKNOWN),
        ("deepspeed --num_gpus 2 train.py --data deepspeed/train_ds.json", "ddp"),
        ("torchrun --nproc_per_node 2 train.py --config_path zero3.json", "ddp"),
    ],
)
def test_a_deepspeed_file_that_a_script_is_not_seen_to_hand_on(tmp_path: Path, line: str, engine: object) -> None:
    (tmp_path / "train.py").write_text(
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        "from elsewhere import given\n"
        "Trainer(AutoModelForCausalLM.from_pretrained('a/b'), TrainingArguments(**given())).train()\n"
    )
    (tmp_path / "run.sh").write_text(line + "\n")
    assert load_runs([tmp_path / "run.sh"], Options())[1][0].run.settings["engine"].value == engine


@pytest.mark.parametrize(
    ("line", "engine", "stage"),
    [
        ("ACCELERATE_USE_DEEPSPEED=true torchrun --nproc_per_node 2 train.py", "deepspeed", 2),
        ("ACCELERATE_USE_DEEPSPEED=true accelerate launch --num_processes 2 train.py", "deepspeed", UNKNOWN),
        ("accelerate launch --use_deepspeed --num_processes 2 train.py", "deepspeed", 2),
        ("torchrun --nproc_per_node 2 train.py", "ddp", None),
    ],
)
def test_accelerates_variables_choose_the_engine(tmp_path: Path, line: str, engine: str, stage: object) -> None:
    (tmp_path / "train.py").write_text(LOOP)
    (tmp_path / "run.sh").write_text(line + "\n")
    settings = load_runs([tmp_path / "run.sh"], Options())[1][0].run.settings
    assert settings["engine"].value == engine
    assert (settings["zero_stage"].value if "zero_stage" in settings else None) == stage


@pytest.mark.parametrize(
    ("optimizer", "engine"),
    [
        ("DummyOptim(model.parameters())", UNKNOWN),
        ("torch.optim.AdamW(model.parameters()) if plugin is None else DummyOptim(model.parameters())", "ddp"),
    ],
)
def test_a_dummy_of_accelerates_is_an_optimizer_under_deepspeed_alone(
    tmp_path: Path, optimizer: str, engine: object
) -> None:
    script = LOOP.replace("torch.optim.AdamW(model.parameters())", optimizer)
    (tmp_path / "train.py").write_text(script.replace("import Accelerator", "import Accelerator, DummyOptim"))
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 2 train.py\n")
    assert load_runs([tmp_path / "run.sh"], Options())[1][0].run.settings["engine"].value == engine


@pytest.mark.parametrize(("asked", "ranks"), [("all", 4), (2, 2), (3, UNKNOWN), (1, None), (UNKNOWN, UNKNOWN)])
def test_matrices_are_split_over_ranks_that_divide_the_processes(asked: object, ranks: object) -> None:
    options = Options(gpus=4, origins={"gpus": "--gpus"})
    found = resolve(Sources(options, script=_trainer(tensor_parallel=asked))).get("tensor_parallel")
    assert (found.value if found is not None else None) == ranks


def test_each_engine_has_its_own_way_of_sharing_a_sequence() -> None:
    yaml = _accelerate(
        "distributed_type: FSDP\nnum_processes: 4\n"
        "parallelism_config:\n  parallelism_config_cp_size: 2\n  parallelism_config_tp_size: 2\n"
    )
    assert _value("sequence_parallel", script=_trainer(), accelerate=yaml) == 2
    assert _value("tensor_parallel", script=_trainer(), accelerate=yaml) == 2
    ulysses = _deepspeed(sequence_parallel_size=2, tensor_parallel={"autotp_size": 2})
    assert _value("sequence_parallel", script=_trainer(), deepspeed=ulysses) == 2
    assert _value("tensor_parallel", script=_trainer(), deepspeed=ulysses) == 2


def test_a_model_that_transformers_splits_is_not_known_under_deepspeed() -> None:
    assert _value("tensor_parallel", script=_trainer(tensor_parallel=2), deepspeed=_deepspeed()) is UNKNOWN


def test_batches_that_come_from_out_of_sight() -> None:
    """A loop without a ``DataLoader`` may have any batch, unless DeepSpeed's JSON states one."""
    script = _loop()
    script.facts.batches_out_of_sight = True
    assert resolve(Sources(Options(), script=script))["micro_batch_size"].value is UNKNOWN
    stated = resolve(Sources(Options(), script=script, deepspeed=_deepspeed(train_micro_batch_size_per_gpu=4)))
    assert stated["micro_batch_size"].value == 4
    assert "micro_batch_size" not in resolve(Sources(Options(), script=_loop()))


@pytest.mark.parametrize(
    ("flags", "engine"),
    [
        ("--use_deepspeed --num_processes 4 --deepspeed_config_file ds.json", "deepspeed"),
        ("--config_file acc.yaml --num_processes 4 --deepspeed_config_file ds.json", "deepspeed"),
        ("--multi_gpu --num_processes 4 --deepspeed_config_file ds.json", "ddp"),
        ("--config_file ddp.yaml --num_processes 4 --deepspeed_config_file ds.json", "ddp"),
        ("--config_file elsewhere.yaml --num_processes 4 --deepspeed_config_file ds.json", "deepspeed"),
        ("--num_processes 4 --deepspeed_config_file ds.json", None),
    ],
)
def test_a_deepspeed_file_on_the_launch_line_needs_the_engine(
    flags: str, engine: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ds.json").write_text('{"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": 1}')
    Path("acc.yaml").write_text("distributed_type: DEEPSPEED\nmachine_rank: 0\n")
    Path("ddp.yaml").write_text("distributed_type: MULTI_GPU\nmachine_rank: 0\n")
    Path("train.py").write_text(
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        "model = AutoModelForCausalLM.from_pretrained('gpt2')\n"
        "Trainer(model=model, args=TrainingArguments('out'), train_dataset=data()).train()\n"
    )
    Path("run.sh").write_text(f"accelerate launch {flags} train.py\n")
    run = build(Origin("launch", Path("run.sh"), 0), Workspace(tmp_path), Options())
    if engine is None:  # the machine's own config decides, which nobody sees
        assert run.deepspeed is None and run.settings["engine"].provenance is OF_THE_MACHINE
    else:
        assert run.value("engine") == engine


_OWN_PARSER = """\
import argparse
import torch
from transformers import AutoModelForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--deepspeed", default="ds.json")
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained("gpt2")
{engine}
for batch in loader():
    model(**batch).loss.backward()
    optimizer.step()
"""
_WRAPPED = "model = torch.nn.parallel.DistributedDataParallel(model)\noptimizer = torch.optim.AdamW(model.parameters())"
_HANDED_ON = "import deepspeed\nmodel, optimizer, _, _ = deepspeed.initialize(model=model, config=args.deepspeed)"


@pytest.mark.parametrize(("engine", "used"), [(_WRAPPED, False), (_HANDED_ON, True)])
def test_a_json_is_no_config_of_a_run_whose_script_wraps_the_model_by_itself(
    engine: str, used: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ds.json").write_text('{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 3}')
    Path("train.py").write_text(_OWN_PARSER.format(engine=engine))
    Path("run.sh").write_text("torchrun --nproc_per_node 2 train.py --deepspeed ds.json\n")
    run = build(Origin("launch", Path("run.sh"), 0), Workspace(tmp_path), Options())
    assert run.value("engine") == ("deepspeed" if used else "ddp")
    assert (run.deepspeed is not None) is used
    assert any(document.path.name == "ds.json" for document in run.documents) is used
    assert (run.value("micro_batch_size") == 3) is used


_BY_FILE = """\
import sys
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

def helper(text):
    return text

def main():
    (args,) = HfArgumentParser(TrainingArguments).{parse}
    Trainer(model=AutoModelForCausalLM.from_pretrained("gpt2"), args=args).train()

def _mp_fn(index):
    main()

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("parse", "engine"),
    [("parse_json_file(sys.argv[1])", "ddp"), ("parse_args_into_dataclasses()", "deepspeed")],
)
def test_flags_behind_the_file_that_all_arguments_come_from(tmp_path: Path, parse: str, engine: str) -> None:
    (tmp_path / "train.py").write_text(_BY_FILE.format(parse=parse))
    (tmp_path / "args.json").write_text('{"output_dir": "out", "lr_scheduler_type": "cosine"}')
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}, "scheduler": {"type": "WarmupDecayLR"}}')
    (tmp_path / "run.sh").write_text("deepspeed --num_gpus 2 train.py args.json --deepspeed ds.json\n")
    run = load_runs([tmp_path / "run.sh"], Options())[1][0].run
    assert run.value("engine") == engine
    assert (run.deepspeed is not None) is (engine == "deepspeed")


@pytest.mark.parametrize(
    ("given", "later", "engine"),
    [
        ("deepspeed={'zero_optimization': {'stage': 2}}", "None", "deepspeed"),
        ("bf16=True", "None", "ddp"),
    ],
)
def test_an_argument_that_is_taken_back_after_it_was_used(tmp_path: Path, given: str, later: str, engine: str) -> None:
    (tmp_path / "train.py").write_text(
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        f"args = TrainingArguments('out', {given})\nargs.deepspeed = {later}\n"
        "Trainer(model=AutoModelForCausalLM.from_pretrained('gpt2'), args=args).train()\n"
    )
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 2 train.py\n")
    run = load_runs([tmp_path / "run.sh"], Options())[1][0].run
    assert (run.value("engine"), run.value("zero_stage")) == (engine, 2 if engine == "deepspeed" else None)


_UNHANDED = """\
import argparse
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--deepspeed", default=None)
options = parser.parse_args()
args = TrainingArguments("out", bf16=True{handed})
Trainer(model=AutoModelForCausalLM.from_pretrained("gpt2"), args=args).train()
"""


@pytest.mark.parametrize(
    ("handed", "engine"),
    [("", "ddp"), (", deepspeed=options.deepspeed", "deepspeed"), (", **options.more", "deepspeed")],
)
def test_a_config_that_a_script_s_own_parser_takes_and_hands_to_nobody(
    tmp_path: Path, handed: str, engine: str
) -> None:
    (tmp_path / "train.py").write_text(_UNHANDED.format(handed=handed))
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 3}}')
    (tmp_path / "run.sh").write_text("deepspeed --num_gpus 2 train.py --deepspeed ds.json\n")
    run = load_runs([tmp_path / "run.sh"], Options())[1][0].run
    assert run.value("engine") == engine
    assert (run.deepspeed is not None) is (engine == "deepspeed")
