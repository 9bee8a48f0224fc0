"""What tensor parallelism leaves whole on every rank, and what it cannot split."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lintfit.catalog import models
from lintfit.memory import estimate
from lintfit.memory.engines.model_states import states
from lintfit.memory.recording import record
from lintfit.memory.result import Verdict
from lintfit.memory.spec import GIB, Spec
from lintfit.memory.tensors.tensor_parallel import local
from lintfit.memory.tensors.weights import local_tensors
from tests.memory.conftest import llama


def two_ranks(**changes: object) -> Spec:
    return Spec(facts=llama(), engine="ddp", gpus=2, tensor_parallel=2, seq_len=64, **changes)  # type: ignore[arg-type]


def elements(spec: Spec, role: str) -> int:
    return sum(tensor.numel for tensor, _ in local_tensors(spec) if tensor.role == role)


def test_transformers_splits_the_embedding_since_5_21() -> None:
    spec = two_ranks()
    whole = llama().vocab * llama().hidden
    assert elements(spec, "embedding") == whole // 2
    assert elements(replace(spec, versions={"transformers": "5.20.0"}), "embedding") == whole


def test_every_rank_holds_all_logits() -> None:
    spec = two_ranks()
    alone = replace(spec, gpus=1, tensor_parallel=1, engine="single")
    assert record(spec, states(spec)).head.saved.logits == record(alone, states(alone)).head.saved.logits


def test_a_head_that_is_not_gathered_leaves_a_part_of_the_logits() -> None:
    config = {"tensor_parallel": {"autotp_size": 2, "vocab_parallel_lm_head": True}}
    gathered = two_ranks(deepspeed_config={"tensor_parallel": {"autotp_size": 2}})
    gathered = replace(gathered, engine="deepspeed", zero_stage=1, mixed_precision="bf16")
    kept = replace(gathered, deepspeed_config=config)
    logits = [record(spec, states(spec)).head.saved.logits for spec in (gathered, kept)]
    assert logits[0] == 2 * logits[1]


def test_ranks_of_one_replica_need_no_buckets() -> None:
    assert "communication_buffers" not in states(two_ranks()).forward
    assert states(replace(two_ranks(), gpus=4)).forward["communication_buffers"]


def test_plans_that_gather_divide_neither_heads_nor_mlp() -> None:
    phi = replace(llama(), model_type="phi3")
    assert local(phi, 2).heads == phi.heads and local(phi, 2).intermediate == phi.intermediate
    olmo = replace(llama(), model_type="olmo2")
    assert local(olmo, 2).heads == olmo.heads and local(olmo, 2).intermediate == olmo.intermediate // 2


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"facts": llama(kv_heads=1)}, "transformers cannot split 1 key and value heads over 2 ranks"),
        ({"gpus": 3, "tensor_parallel": 3}, "transformers cannot split 8 heads over 3 ranks"),
        ({"facts": replace(llama(), model_type="gpt2")}, "transformers has no plan to split gpt2"),
        ({"method": "lora", "lora_targets": "all-linear"}, "adapters on down_proj, o_proj fail in the forward"),
        ({"method": "lora", "quantization": "nf4"}, "of a quantised base"),
        ({"method": "lora", "engine": "fsdp"}, "adapters fail in the forward with tensor parallelism and FSDP 2"),
        ({"method": "lora", "engine": "deepspeed"}, "AutoTP puts its own layers in the place of those with adapters"),
        ({"method": "lora", "facts": replace(llama(), model_type="phi3")}, "whose plan gathers"),
        ({"engine": "deepspeed", "facts": replace(llama(), model_type="olmo2")}, "AutoTP refuses transformers' plan"),
        ({"engine": "deepspeed", "facts": replace(llama(), model_type="opt")}, "AutoTP has no plan to split opt"),
    ],
)
def test_what_transformers_cannot_split_is_not_said_to_fit(changes: dict[str, object], line: str) -> None:
    spec = replace(two_ranks(), capacity_bytes=80 * GIB, **changes)  # type: ignore[arg-type]
    found = estimate(spec)
    assert found.verdict is Verdict.UNKNOWN
    assert any(line in each for each in found.not_modelled)
    assert estimate(replace(spec, capacity_bytes=2**20)).verdict is Verdict.DOES_NOT_FIT


@pytest.mark.parametrize("targets", [("q_proj", "v_proj"), ("gate_proj", "up_proj", "k_proj")])
def test_adapters_on_matrices_that_are_split_by_columns_run(targets: tuple[str, ...]) -> None:
    spec = two_ranks(method="lora", lora_targets=targets, capacity_bytes=80 * GIB)
    assert estimate(spec).verdict is Verdict.FITS


@pytest.mark.parametrize("engine", ["ddp", "deepspeed"])
def test_heads_that_do_not_divide_are_refused_only_where_they_fail(engine: str) -> None:
    spec = two_ranks(capacity_bytes=80 * GIB)
    spec = replace(spec, engine=engine, gpus=3, tensor_parallel=3)  # type: ignore[arg-type]
    assert estimate(replace(spec, facts=replace(llama(), model_type="olmo2"))).verdict is (
        Verdict.FITS if engine == "ddp" else Verdict.UNKNOWN
    )
    assert estimate(spec).verdict is (Verdict.UNKNOWN if engine == "ddp" else Verdict.FITS)


def test_a_plan_that_gathers_multiplies_slices() -> None:
    phi = replace(two_ranks(attention="eager"), facts=replace(llama(), model_type="phi3"))
    alone = replace(phi, gpus=1, tensor_parallel=1, engine="single")
    saved = [record(spec, states(spec)).layers[1].saved.total for spec in (alone, phi)]
    widths = llama().heads * llama().head_dim + llama().intermediate
    assert saved[0] - saved[1] == 2 * 64 * widths // 2


def test_what_autotp_leaves_whole_stays_shared_by_all_ranks() -> None:
    spec = Spec(facts=llama(), engine="deepspeed", zero_stage=3, gpus=4, tensor_parallel=2, mixed_precision="bf16")
    whole = states(replace(spec, zero3_init=False)).step["master_weights"]
    embedding = llama().vocab * llama().hidden
    assert whole - states(spec).step["master_weights"] == pytest.approx(4 * embedding / 4, rel=0.01)


def test_ppo_is_not_split() -> None:
    found = estimate(replace(two_ranks(), trainer="ppo", capacity_bytes=80 * GIB))
    assert found.verdict is Verdict.UNKNOWN
    assert any("PPO" in line for line in found.not_modelled)


def test_image_encoders_stay_whole() -> None:
    facts = models.find("llava-hf/llava-1.5-7b-hf")
    assert facts is not None
    alone, split = Spec(facts=facts), Spec(facts=facts, engine="ddp", gpus=2, tensor_parallel=2)
    sizes = [sum(t.total for t, _ in local_tensors(spec) if t.where == "vision") for spec in (alone, split)]
    assert sizes[0] == sizes[1] > 0


def test_autotp_splits_few_key_heads_unevenly() -> None:
    spec = Spec(
        facts=llama(kv_heads=1), engine="deepspeed", zero_stage=1, gpus=2, tensor_parallel=2, capacity_bytes=80 * GIB
    )
    assert estimate(spec).verdict is Verdict.FITS
    assert elements(spec, "linear") > elements(replace(spec, facts=llama(kv_heads=2)), "linear")
