"""Model states moment by moment, against arithmetic that can be done by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.components import components, total
from lintfit.memory.engines.model_states import states
from lintfit.memory.engines.states import States
from lintfit.memory.result import Components
from lintfit.memory.spec import GIB, Spec
from lintfit.settings.values import Fsdp
from tests.memory.conftest import llama
from tests.memory.engines.held import MOMENTS, model_states, moment, zero


def per_parameter(parts: Components, facts: ModelFacts) -> float:
    return total(parts) / facts.parameters


@pytest.mark.parametrize(
    ("dtype", "mixed", "optimizer", "steady", "peak"),
    [
        ("bf16", "no", "adamw_torch_fused", 6, 8),
        ("bf16", "bf16", "adamw_torch", 6, 10),
        ("fp32", "bf16", "adamw_torch_fused", 12, 16),
        ("fp32", "no", "adamw_torch", 12, 20),
        ("bf16", "no", "sgd", 2, 4),
    ],
)
def test_one_process_bytes_a_parameter(
    baichuan_7b: ModelFacts, dtype: str, mixed: str, optimizer: str, steady: float, peak: float
) -> None:
    spec = Spec(baichuan_7b, weights_dtype=dtype, mixed_precision=mixed, optimizer=optimizer)  # type: ignore[arg-type]
    held = states(spec)
    assert per_parameter(held.forward, baichuan_7b) == pytest.approx(steady, rel=1e-4)
    assert per_parameter(held.step, baichuan_7b) == pytest.approx(peak, rel=1e-3)


def test_accumulated_gradients_live_through_the_forward(small: ModelFacts) -> None:
    once, twice = states(Spec(small)), states(Spec(small, gradient_accumulation_steps=2))
    assert once.forward.get("gradients", 0) == 0
    assert twice.forward["gradients"] == twice.reduced["gradients"] == once.reduced["gradients"]
    assert total(twice.backward_end) > total(once.backward_end)


def test_an_optimizer_in_the_backward_keeps_one_gradient(small: ModelFacts) -> None:
    held = states(Spec(small, optimizer_in_backward=True, gradient_accumulation_steps=4))
    assert held.backward_end["gradients"] == 2 * 2048 * 256
    assert "gradients" not in held.forward


def test_ddp_keeps_the_gradients_twice(small: ModelFacts) -> None:
    single, ddp = states(Spec(small)), states(Spec(small, engine="ddp", gpus=4))
    assert ddp.forward["communication_buffers"] == single.reduced["gradients"]
    assert total(ddp.reduced) - total(single.reduced) == single.reduced["gradients"]


def test_a_tied_gradient_waits(make_llama: Callable[..., ModelFacts]) -> None:
    tied = make_llama(tied=True)
    embedding = 2048 * 256
    assert states(Spec(tied)).backward_end["temporaries"] == 2 * 2 * embedding
    amp = Spec(tied, weights_dtype="fp32", mixed_precision="bf16")
    assert states(amp).backward_end["temporaries"] == 4 * embedding


# --- the five stories: arithmetic of the rules' reference ----------------------------------------------------------


def test_medicalgpt_zero_2_does_not_fit_eight_3090(baichuan_7b: ModelFacts) -> None:
    # 2P + 14P/8 = 13.04 + 11.41 GiB; the partition's gradients overhang by whole tensors.
    assert model_states(states(zero(baichuan_7b, 2, 8))) == pytest.approx(24.45, rel=0.02)
    offload = states(zero(baichuan_7b, 2, 8, offload_optimizer="cpu"))
    assert model_states(offload) == pytest.approx(13.04, rel=0.001)
    assert offload.host.steady >= 104 * GIB


def test_medicalgpt_zero_3_fits(baichuan_7b: ModelFacts) -> None:
    assert model_states(states(zero(baichuan_7b, 3, 8))) == pytest.approx(13.04, rel=0.005)


def test_medicalgpt_fp32_in_every_process(baichuan_7b: ModelFacts) -> None:
    held = states(Spec(baichuan_7b, engine="ddp", gpus=8, weights_dtype="fp32", mixed_precision="bf16"))
    assert model_states(held) == pytest.approx(104.3, rel=0.001)
    assert states(zero(baichuan_7b, 2, 8, weights_dtype="fp32")).host.load_peak == pytest.approx(209 * GIB, rel=0.01)


def minicpm() -> ModelFacts:
    """8.54e9 parameters in the shapes of a Llama-3-8B with a longer stack (MiniCPM-Llama3-V 2.5's total)."""
    return llama(4096, 34, 14336, 130_000, 32, 8)


@pytest.mark.parametrize(("stage", "factor"), [(2, 9), (3, 8)])
def test_minicpm_v_on_two_a100_40(stage: int, factor: int) -> None:
    facts = minicpm()
    expected = factor * facts.parameters / GIB
    # Of 8.54e9 parameters: 71.6 GiB at stage 2, 63.6 GiB at stage 3.
    assert 8.54e9 * factor / GIB == pytest.approx({2: 71.6, 3: 63.6}[stage], abs=0.05)
    assert model_states(states(zero(facts, stage, 2))) == pytest.approx(expected, rel=0.02)


def test_minicpm_v_with_the_optimizer_offloaded() -> None:
    facts = minicpm()
    assert model_states(states(zero(facts, 2, 2, offload_optimizer="cpu"))) == pytest.approx(
        2 * facts.parameters / GIB, rel=0.001
    )
    both = states(zero(facts, 3, 2, offload_optimizer="cpu", offload_param="cpu"))
    assert model_states(both) < 0.01
    # 18 bytes a parameter on the host and the flat 16-bit gradients, before rounding.
    assert 2 * both.rank_host.bytes == pytest.approx(20 * facts.parameters, rel=0.001)


def test_baichuan2_13b_dies_in_the_step_as_reported() -> None:
    # LlamaFactory#1158: ZeRO-2 on 4 ranks, fp32 accumulation, 77.65 GiB held and 12.94 GiB asked for: 2P + 20P/4.
    facts = llama(5120, 40, 13_696, 125_696, 40, 40)
    step = states(zero(facts, 2, 4)).step
    assert total(step) == pytest.approx(2 * facts.parameters + 20 * facts.parameters / 4, rel=0.02)


# --- what must hold of every run -------------------------------------------------------------------------------------

specs = st.builds(
    Spec,
    facts=st.sampled_from((llama(), llama(tied=True), llama(512, 3, 1408, 5000, 8, 8))),
    gpus=st.sampled_from((1, 2, 3, 8)),
    engine=st.sampled_from(("single", "ddp", "deepspeed", "fsdp")),
    zero_stage=st.sampled_from((0, 1, 2, 3)),
    offload_optimizer=st.sampled_from(("none", "cpu", "nvme")),
    offload_param=st.sampled_from(("none", "cpu", "nvme")),
    fsdp=st.sampled_from((None, Fsdp(2), Fsdp(1, "SHARD_GRAD_OP"), Fsdp(1, "NO_SHARD"), Fsdp(1, "FULL_SHARD", True))),
    weights_dtype=st.sampled_from(("fp32", "bf16", "fp16")),
    mixed_precision=st.sampled_from(("no", "bf16", "fp16")),
    method=st.sampled_from(("full", "lora")),
    quantization=st.sampled_from((None, "nf4", "int8", "gptq-int4")),
    optimizer=st.sampled_from(("adamw_torch", "adamw_torch_fused", "adamw_8bit", "adafactor", "paged_adamw_32bit")),
    gradient_accumulation_steps=st.sampled_from((1, 4)),
    gradient_checkpointing=st.booleans(),
    deepspeed_config=st.sampled_from(({}, {"data_types": {"grad_accum_dtype": "fp32"}})),
)


@given(specs)
def test_moments_are_consistent(spec: Spec) -> None:
    held = states(spec)
    for name in MOMENTS:
        parts = moment(held, name)
        assert all(size >= 0 for size in parts.values()), (name, parts)
        components(**parts)
    assert total(held.forward) <= total(held.backward_start)
    assert total(held.reduced) <= total(held.backward_end)
    assert total(held.reduced) <= total(held.step)
    if spec.engine != "fsdp":
        assert total(held.first_gradient) <= total(held.backward_end)
    assert held.host.steady >= 0
    assert held.host.load_peak > 0


@given(specs)
def test_more_ranks_never_need_more(spec: Spec) -> None:
    if spec.engine in ("single", "ddp") or spec.gpus == 1:
        return
    held, wider = states(spec), states(replace(spec, gpus=4 * spec.gpus))
    kinds = ("parameters", "gradients", "master_weights", "optimizer_states")
    # Shards are rounded up to whole elements and blocks.
    slack = 4096 * len(spec.facts.tensors) * 20

    def lasting(states: States) -> int:
        return sum(states.reduced.get(kind, 0) for kind in kinds)

    assert lasting(wider) <= lasting(held) + slack


def test_adapters_that_match_no_module_are_no_crash(baichuan_7b: ModelFacts) -> None:
    spec = Spec(
        baichuan_7b, engine="deepspeed", zero_stage=2, gpus=4, method="lora", mixed_precision="bf16",
        lora_targets=("no_such_module",),
    )  # fmt: skip
    assert "gradients" not in states(spec).backward_end
