"""Engines that a script sets up: DeepSpeed dicts, Accelerate's plugins, Fabric's strategies, the Trainer's FSDP."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.documents.json_reader import read_json
from lintfit.documents.model import FileText
from lintfit.settings.model import AUTO, UNKNOWN
from lintfit.settings.values import Fsdp
from tests.sources.scripts import script, values

HEAD = """
import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("m", torch_dtype=torch.bfloat16)
"""
LOOP = """
optimizer = torch.optim.AdamW(model.parameters())
model, optimizer = {prepare}(model, optimizer)
for step, batch in enumerate([]):
    {backward}(model(**batch).loss)
"""


def trainer(arguments: str, versions: dict[str, str] | None = None) -> dict[str, object]:
    text = HEAD + f"Trainer(model=model, args=TrainingArguments('out', {arguments})).train()\n"
    return values(script(text, "", versions=versions))


def accelerate(made: str) -> dict[str, object]:
    head = "from accelerate import Accelerator, DeepSpeedPlugin, FullyShardedDataParallelPlugin\n"
    head += "from accelerate.utils import GradientAccumulationPlugin\n"
    loop = LOOP.format(prepare="accelerator.prepare", backward="accelerator.backward")
    return values(script(head + HEAD + f"accelerator = {made}\n" + loop, ""))


def fabric(made: str) -> dict[str, object]:
    head = "from lightning.fabric import Fabric\n"
    head += "from lightning.fabric.strategies import DeepSpeedStrategy, FSDPStrategy, ModelParallelStrategy\n"
    return values(
        script(head + HEAD + f"fabric = {made}\n" + LOOP.format(prepare="fabric.setup", backward="fabric.backward"), "")
    )


ZERO = '{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}, "bf16": {"enabled": "auto"}}'


def test_a_dict_handed_to_the_trainer() -> None:
    found = trainer(f"deepspeed={ZERO}")
    assert (found["zero_stage"], found["offload_optimizer"]) == (3, "cpu")
    assert found["bf16"] is False, "the Trainer's own arguments fill it"


def test_a_dict_whose_stage_is_automatic() -> None:
    assert trainer('deepspeed={"zero_optimization": {"stage": "auto"}}')["zero_stage"] is AUTO


def test_a_dict_that_is_changed_before_it_is_handed_over() -> None:
    text = HEAD + f"import deepspeed\nconfig = {ZERO}\nconfig['zero_optimization']['stage'] = 2\n"
    text += "config['gradient_accumulation_steps'] = 4\n"
    text += "engine, *_ = deepspeed.initialize(model=model, config=config)\nengine.backward(0)\n"
    found = values(script(text, ""))
    assert (found["zero_stage"], found["gradient_accumulation_steps"]) == (2, 4)


@pytest.mark.parametrize(
    ("config", "precision"),
    [
        ('{"bfloat16": {"enabled": "auto"}}', "bf16"),
        ('{"bf16": None, "bfloat16": {"enabled": True}}', "bf16"),
        ('{"bf16": {}, "bfloat16": {"enabled": True}}', "no"),
        ('{"bf16": {"enabled": False}, "bfloat16": {"enabled": True}}', "no"),
        ('{"bf16": None, "fp16": {"enabled": True}}', "fp16"),
    ],
)
def test_the_old_name_of_bf16_counts_where_the_new_one_says_nothing(config: str, precision: str) -> None:
    """DeepSpeed takes the word "auto" for true."""
    made = f"deepspeed.initialize(model=model, config={config})"
    text = f"{HEAD}import deepspeed\nengine, *_ = {made}\nengine.backward(0)\n"
    assert values(script(text, ""))["mixed_precision"] == precision


def test_the_stage_in_a_dict_is_mended_there() -> None:
    text = HEAD + f"Trainer(model=model, args=TrainingArguments('out', deepspeed={ZERO})).train()\n"
    source = script(text, "")
    edits = source.write("zero_stage", 2)
    assert edits is not None and [edit.edit.text for edit in edits] == ["2"]
    assert source.document.slice(edits[0].edit.span) == "3"


def test_accelerates_deepspeed_plugin() -> None:
    plugin = "DeepSpeedPlugin(zero_stage=3, gradient_accumulation_steps=4, offload_param_device='cpu')"
    found = accelerate(f"Accelerator(deepspeed_plugin={plugin})")
    assert (found["engine"], found["zero_stage"], found["offload_param"]) == ("deepspeed", 3, "cpu")
    assert found["gradient_accumulation_steps"] == found["plugin_accumulation"] == 4


def test_a_plugin_with_a_config_file() -> None:
    found = accelerate("Accelerator(deepspeed_plugin=DeepSpeedPlugin(hf_ds_config='ds.json'))")
    assert (found["engine"], found["deepspeed"]) == ("deepspeed", "ds.json")


def test_a_plugin_that_may_not_be_there() -> None:
    assert accelerate("Accelerator(deepspeed_plugin=DeepSpeedPlugin() if wanted() else None)")["engine"] is UNKNOWN


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("sharding_strategy='SHARD_GRAD_OP', cpu_offload=True", Fsdp(1, "SHARD_GRAD_OP", True)),
        ("sharding_strategy=torch.distributed.fsdp.ShardingStrategy.HYBRID_SHARD", Fsdp(1, "HYBRID_SHARD")),
        ("sharding_strategy='_HYBRID_SHARD_ZERO2'", Fsdp(1, "HYBRID_SHARD_ZERO2")),
        ("sharding_strategy=3", Fsdp(1, "NO_SHARD")),
        ("cpu_offload=torch.distributed.fsdp.CPUOffload(offload_params=True)", Fsdp(1, "FULL_SHARD", True)),
        ("fsdp_version=2, reshard_after_forward=False", Fsdp(2, "SHARD_GRAD_OP")),
    ],
)
def test_accelerates_fsdp_plugin(arguments: str, expected: Fsdp) -> None:
    found = accelerate(f"Accelerator(fsdp_plugin=FullyShardedDataParallelPlugin({arguments}))")
    assert (found["engine"], found["fsdp"]) == ("fsdp", expected)


def test_the_accumulation_plugin() -> None:
    found = accelerate("Accelerator(gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=6))")
    assert found["gradient_accumulation_steps"] == 6
    found = accelerate("Accelerator(gradient_accumulation_plugin=GradientAccumulationPlugin(6, sync_each_batch=True))")
    assert (found["gradient_accumulation_steps"], found["sync_each_batch"]) == (6, True)


@pytest.mark.parametrize(
    ("version", "heeded"), [("4.46.1", True), ("4.46.2", None), ("4.57.1", None), ("5.1.0", None), ("5.2.0", True)]
)
def test_the_trainer_reduces_every_micro_batch_in_some_versions(version: str, heeded: bool | None) -> None:
    """``accelerator.accumulate`` asks for ``sync_each_batch``, and so does the Trainer of transformers 5.2; between, it
    calls ``no_sync`` itself."""
    asked = "{'gradient_accumulation_kwargs': {'sync_each_batch': True}}"
    versions = {"transformers": version}
    assert trainer(f"accelerator_config={asked}", versions).get("sync_each_batch") is heeded
    flagged = script(
        HEAD.replace("import torch", "import torch\nfrom transformers import HfArgumentParser")
        + "args, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\n"
        + "Trainer(model=model, args=args).train()\n",
        """--output_dir out --accelerator_config '{"gradient_accumulation_kwargs": {"sync_each_batch": true}}'""",
        versions=versions,
    )
    assert values(flagged).get("sync_each_batch") is heeded
    assert "sync_each_batch" not in trainer("accelerator_config={'split_batches': True}", versions)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("devices=4", {"gpus": 4}),
        ("devices=[0, 2], num_nodes=2", {"gpus": 4, "nodes": 2}),
        ("devices='0,1,2'", {"gpus": 3}),
        ("", {"gpus": AUTO}),
        ("devices=-1", {"gpus": AUTO}),
        ("strategy='deepspeed'", {"engine": "deepspeed", "zero_stage": 2, "offload_optimizer": "none"}),
        ("strategy='deepspeed_stage_3_offload'", {"zero_stage": 3, "offload_optimizer": "cpu", "offload_param": "cpu"}),
        ("strategy='fsdp'", {"engine": "fsdp", "fsdp": Fsdp(1)}),
        ("strategy=DeepSpeedStrategy()", {"engine": "deepspeed", "zero_stage": 2, "offload_param": "none"}),
        ("strategy=DeepSpeedStrategy(stage=3, offload_parameters=True)", {"zero_stage": 3, "offload_param": "cpu"}),
        ("strategy=FSDPStrategy(cpu_offload=True)", {"engine": "fsdp", "fsdp": Fsdp(1, "FULL_SHARD", True)}),
        ("strategy=FSDPStrategy(activation_checkpointing_policy={Block})", {"gradient_checkpointing": True}),
        ("strategy=ModelParallelStrategy()", {"engine": UNKNOWN}),
        ("precision='bf16-true'", {"mixed_precision": "no", "weights_dtype": "bf16"}),
        ("precision='16-true'", {"mixed_precision": "no", "weights_dtype": "fp16"}),
        ("precision='bf16-true', strategy='deepspeed'", {"mixed_precision": "bf16"}),
    ],
)
def test_fabric(arguments: str, expected: dict[str, object]) -> None:
    found = fabric(f"Fabric({arguments})")
    assert {name: found.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    "loop",
    [
        "if (step + 1) % 8 == 0:\n        optimizer.step()",
        "if step % 8 != 0:\n        continue\n    optimizer.zero_grad()\nif 0 == count() % 8:\n    optimizer.step()",
    ],
)
def test_how_often_a_loop_steps(loop: str) -> None:
    text = HEAD + LOOP.format(prepare="fit", backward="run") + f"    model.loss.backward()\n    {loop}\n"
    assert values(script(text, ""))["gradient_accumulation_steps"] == 8


def test_how_often_fabric_synchronizes() -> None:
    text = "from lightning.fabric import Fabric\n" + HEAD + "fabric = Fabric()\n"
    text += LOOP.format(prepare="fabric.setup", backward="fabric.backward")
    text += "    going_on = (step + 1) % steps() != 0\n".replace("steps()", "4")
    text += "    with fabric.no_backward_sync(model, enabled=going_on):\n        fabric.backward(0)\n"
    assert values(script(text, ""))["gradient_accumulation_steps"] == 4


@pytest.mark.parametrize(
    ("arguments", "versions", "expected"),
    [
        ("fsdp='full_shard auto_wrap'", None, Fsdp(2)),
        ("fsdp=True, fsdp_config={'reshard_after_forward': False}", None, Fsdp(2, "SHARD_GRAD_OP")),
        ("fsdp='full_shard auto_wrap'", {"transformers": "4.48.0"}, Fsdp(1)),
        ("fsdp='shard_grad_op offload'", {"transformers": "4.48.0"}, Fsdp(1, "SHARD_GRAD_OP", True)),
        ("fsdp=['hybrid_shard'], fsdp_config={'fsdp_version': 1}", None, Fsdp(1, "HYBRID_SHARD")),
        ("fsdp=True, fsdp_config={'cpu_offload': True}", None, Fsdp(2, "FULL_SHARD", True)),
        ("fsdp='full_shard', fsdp_config={'xla': True}", {"transformers": "4.37.0"}, UNKNOWN),
    ],
)
def test_the_trainers_fsdp(arguments: str, versions: dict[str, str] | None, expected: Fsdp) -> None:
    assert trainer(arguments, versions)["fsdp"] == expected


def test_the_trainers_fsdp_from_a_file() -> None:
    file = read_json(FileText(Path("fsdp.json"), '{"version": 1, "activation_checkpointing": true}'))
    text = (
        HEAD
        + "Trainer(model=model, args=TrainingArguments('out', fsdp='full_shard', fsdp_config='fsdp.json')).train()\n"
    )
    found = values(script(text, "", open_data=lambda name, kind: file if name == "fsdp.json" else None))
    assert (found["fsdp"], found["gradient_checkpointing"]) == (Fsdp(1), True)


@pytest.mark.parametrize(
    ("handed", "used", "trains"),
    [
        ("batches", "model.generate(ids)", False),
        ("model, batches", "model(**batch)", False),
        ("model, optimizer, batches", "helper(model)", True),
        ("model, batches", "accelerator.backward(model(**batch).loss)", True),
    ],
)
def test_what_accelerate_spreads_for_an_evaluation_trains_nothing(handed: str, used: str, trains: bool) -> None:
    made = f"accelerator = Accelerator()\naccelerator.prepare({handed})\n{used}\n"
    text = f"from accelerate import Accelerator\n{HEAD}{made}"
    assert script(text, "").facts.trains is trains


def test_without_fsdp_its_config_says_nothing() -> None:
    assert trainer("fsdp_config={'activation_checkpointing': True}")["gradient_checkpointing"] is False


@pytest.mark.parametrize(("own", "expected"), [("gradient_checkpointing=True", False), ("bf16=True", True)])
def test_a_trainer_enables_checkpointing_anew(own: str, expected: bool) -> None:
    text = HEAD + "model.gradient_checkpointing_enable({'use_reentrant': True})\n"
    text += f"Trainer(model=model, args=TrainingArguments('out', {own})).train()\n"
    assert values(script(text, ""))["use_reentrant"] is expected


@pytest.mark.parametrize(
    ("made", "used", "trains"),
    [
        ("model=model, config=ZERO", "engine.module.generate(ids)", False),
        ("model=model, config=ZERO", "engine(ids).loss.backward()", True),
        ("model=model, config=ZERO", "engine.train_batch(ids)", True),
        ("model=model, config=ZERO, model_parameters=model.parameters()", "helper(engine)", True),
        ("args=args, model=model", "helper(engine)", True),
    ],
)
def test_an_engine_that_only_runs_a_model(made: str, used: str, trains: bool) -> None:
    text = f"import deepspeed\n{HEAD}engine = deepspeed.initialize({made})[0]\n{used}\n"
    assert script(text, "").facts.trains is trains


@pytest.mark.parametrize(
    ("call", "by_layer"),
    [
        ("FSDP(model)", False),
        ("FSDP(model, sharding_strategy=ShardingStrategy.FULL_SHARD)", False),
        ("FSDP(model, auto_wrap_policy=policy)", True),
        ("FSDP(model, policy)", True),
        ("FSDP(model, **options)", True),
        ("fully_shard(model)", False),
    ],
)
def test_who_makes_units_of_layers_in_a_loop(call: str, by_layer: bool) -> None:
    text = (
        "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, ShardingStrategy, fully_shard\n"
        "from transformers import AutoModelForCausalLM\nfrom elsewhere import policy, options\n"
        "model = AutoModelForCausalLM.from_pretrained('a/b')\n{}\n"
        "loss = model(**batch).loss\nloss.backward()\noptimizer.step()\n"
    )
    assert values(script(text.format(call)))["fsdp_auto_wrap"] is by_layer
    layers = f"for layer in model.layers:\n    {call.partition('(')[0]}(layer)\n{call}"
    assert values(script(text.format(layers)))["fsdp_auto_wrap"] is True


@pytest.mark.parametrize(
    ("arguments", "version", "by_layer"),
    [
        ("fsdp='full_shard'", "4.48.0", None),
        ("fsdp='full_shard auto_wrap'", "4.48.0", True),
        ("fsdp='full_shard'", "5.9.0", None),
        ("fsdp='full_shard'", "5.10.0", True),
        ("fsdp=True, fsdp_config={'auto_wrap_policy': 'NO_WRAP'}", "5.23.0", False),
    ],
)
def test_who_makes_units_of_layers_in_a_trainer(arguments: str, version: str, by_layer: bool | None) -> None:
    assert trainer(arguments, {"transformers": version}).get("fsdp_auto_wrap") is by_layer
