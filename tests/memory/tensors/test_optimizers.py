"""Bytes of optimizer states and of the step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lintfit.catalog.facts import ModelFacts
from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Verdict
from lintfit.memory.spec import DTYPE_BYTES, GIB, Dtype, Spec
from lintfit.memory.tensors.optimizers import TABLE, optimizer, resident_bytes, state_bytes, step_temporaries
from lintfit.memory.tensors.parameters import Inventory, Weight, inventory


def weight(*shape: int, dtype: Dtype = "fp32", role: str = "linear") -> Weight:
    numel = 1
    for size in shape:
        numel *= size
    return Weight("w", shape, 1, dtype, True, numel * DTYPE_BYTES[dtype], role, "layer")


SQUARE = weight(1024, 1024)
MI = 2**20


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("adamw_torch", 8 * MI),
        ("adamw_torch_fused", 8 * MI + 512),
        ("sgd", 0),
        ("adamw_8bit", 2 * MI + 8 * (MI // 256)),
        ("lion_32bit", 4 * MI),
        ("lion_8bit", MI + 4 * (MI // 256)),
        ("adafactor", 8192),
        ("muon", 4 * MI),
        ("paged_adamw_32bit", 8 * MI),
        ("adamw_anyprecision", 6 * MI),
        ("lomo", 0),
        ("adam_mini", 4 * MI),
    ],
)
def test_states_of_a_square_in_fp32(name: str, expected: int) -> None:
    assert state_bytes(optimizer(name, {})[0], [SQUARE]) == expected


def test_torch_optimizers_follow_the_parameters_dtype_and_bitsandbytes_does_not() -> None:
    half = weight(1024, 1024, dtype="bf16")
    assert state_bytes(TABLE["adamw_torch"], [half]) == 4 * MI
    assert state_bytes(TABLE["paged_adamw_32bit"], [half]) == 8 * MI


def test_small_tensors_and_embeddings_keep_32_bit_states() -> None:
    assert state_bytes(TABLE["adamw_8bit"], [weight(4095)]) == 2 * 16_384
    assert state_bytes(TABLE["adamw_8bit"], [weight(1024, 1024, role="embedding")]) == 8 * MI


def test_paged_states_of_large_tensors_may_leave_the_gpu() -> None:
    assert resident_bytes(TABLE["paged_adamw_32bit"], [SQUARE, weight(1024)]) == 2 * 4096


def test_an_embedding_is_not_for_muon() -> None:
    assert state_bytes(TABLE["muon"], [weight(1024, 1024, role="embedding")]) == 8 * MI


def test_the_step(small: ModelFacts) -> None:
    held: Inventory = inventory(Spec(small, weights_dtype="bf16"))
    decayed = sum(w.bytes for w in held.weights if w.decays)
    assert step_temporaries(TABLE["adamw_torch"], held.weights) == decayed
    assert step_temporaries(TABLE["adamw_torch_fused"], held.weights) == 0
    down = next(w for w in held.weights if w.name.endswith("down_proj.weight"))
    assert step_temporaries(TABLE["adafactor"], held.weights) == 4 * 4 * 2048 * 256 + 4 * down.numel


@pytest.mark.parametrize(("torch", "roots"), [("1.13.1", 2), ("2.0.1", 6), ("2.1.0", 3), (None, 3)])
def test_torch_1_takes_one_tensor_after_the_other(torch: str | None, roots: int) -> None:
    """``foreach`` is off before torch 2.0 where nobody asks for it: ``denom`` of one tensor, not of all; 2.0 has the
    roots twice."""
    entry, _ = optimizer("adamw_torch", {} if torch is None else {"torch": torch})
    assert step_temporaries(entry, [SQUARE] * 3) == roots * SQUARE.bytes
    entry, _ = optimizer("rmsprop", {"torch": "1.13.1"})
    assert step_temporaries(entry, [SQUARE] * 3) == SQUARE.bytes


@pytest.mark.parametrize("name", ["galore_adamw", "shampoo"])
def test_what_is_not_modelled_is_counted_as_adamw_and_said(name: str) -> None:
    entry, notes = optimizer(name, {})
    assert state_bytes(entry, [SQUARE]) == 8 * MI
    assert name in notes[0]


def test_an_optimizer_that_nobody_knows_has_no_verdict(small: ModelFacts) -> None:
    spec = Spec(small, capacity_bytes=80 * GIB, optimizer="lbfgs")
    assert estimate(spec).verdict is Verdict.UNKNOWN
    assert estimate(replace(spec, capacity_bytes=GIB // 100)).verdict is Verdict.DOES_NOT_FIT
    assert estimate(replace(spec, optimizer="adamw_torch")).verdict is Verdict.FITS


def test_low_rank_states_are_anything_up_to_those_of_adamw(small: ModelFacts) -> None:
    low_rank, adamw = (estimate(Spec(small, optimizer=name)) for name in ("galore_adamw", "adamw_torch"))
    assert low_rank.peak.high == adamw.peak.high
    assert low_rank.peak.low < adamw.peak.low


def test_one_block_after_the_other_has_neither_gradients_nor_states_of_all() -> None:
    """BAdam's authors train Llama 3 8B on one RTX 3090 in 23.5 GB (arXiv 2404.02827, table 2)."""
    stated = {"model": "meta-llama/Meta-Llama-3-8B", "gpu": "RTX 3090", "weights_dtype": "bf16", "seq_len": 1024}
    run = {**stated, "gradient_checkpointing": True, "micro_batch_size": 1}
    badam, adamw = (estimate(spec_from_mapping({**run, "optimizer": name})) for name in ("badam", "adamw_torch"))
    assert adamw.verdict is Verdict.DOES_NOT_FIT
    assert badam.verdict is Verdict.TIGHT
    assert badam.peak.low < 23.5e9 < badam.peak.high == adamw.peak.high
    assert any("one block's gradients" in line for line in badam.not_modelled)


def test_low_rank_states_in_eight_bits_are_no_more_than_full_ones() -> None:
    """Measured: LLaMA-7B in 22.8 GB on one RTX 4090 (GaLore's ``llama_7b_checkpointing.sh``)."""
    assert state_bytes(optimizer("galore_adamw_8bit", {})[0], [SQUARE]) == state_bytes(TABLE["adamw_8bit"], [SQUARE])
    stated = {"model": "huggyllama/llama-7b", "gpu": "RTX 4090", "weights_dtype": "bf16", "mixed_precision": "no"}
    run = {**stated, "optimizer": "galore_adamw_8bit_layerwise", "micro_batch_size": 16, "seq_len": 256}
    guess = estimate(spec_from_mapping({**run, "gradient_checkpointing": True, "padded_batches": True}))
    assert guess.peak.low < 22.8e9 < guess.peak.high


def test_neither_states_nor_temporaries_of_an_unknown_step_need_be(small: ModelFacts) -> None:
    unknown, sgd = (
        estimate(Spec(small, optimizer=name, micro_batch_size=1, seq_len=16)) for name in ("galore_adamw", "sgd")
    )
    assert unknown.peak_moment.phase == "step"
    assert unknown.peak_moment.components["temporaries"] > 0
    assert unknown.peak.low == pytest.approx(sgd.peak.low, rel=0.001)


@pytest.mark.parametrize("name", ["lomo", "adalomo", "galore_adamw_8bit_layerwise", "apollo_adamw_layerwise"])
def test_some_optimizers_update_in_the_backward_and_keep_no_gradients(name: str) -> None:
    """``lomo_optim/lomo.py``, ``trainer_optimizer.py``; LOMO's paper: LLaMA-7B in 14.58 GB on one RTX 3090."""
    stated = {"model": "huggyllama/llama-7b", "gpu": "RTX 3090", "weights_dtype": "bf16", "mixed_precision": "no"}
    run = {**stated, "micro_batch_size": 1, "seq_len": 512, "gradient_checkpointing": True, "optimizer": name}
    guess = estimate(spec_from_mapping(run))
    assert guess.peak_moment.components["gradients"] == pytest.approx(2 * 32_000 * 4096, rel=0.1)
    assert guess.peak.low < 14.58 * GIB
    for told in ({"optimizer_in_backward": False}, {"gpus": 2}):
        assert estimate(spec_from_mapping({**run, **told})).peak.low > 2 * 6.7e9 * 2


def test_adagrad_holds_roots_and_scaled_gradients_at_once() -> None:
    """``std`` and ``numerator`` of torch's ``_multi_tensor_adagrad``; RMSprop divides the gradients in place."""
    assert step_temporaries(TABLE["adagrad"], [SQUARE]) == 2 * SQUARE.bytes
    assert step_temporaries(TABLE["rmsprop"], [SQUARE]) == SQUARE.bytes
