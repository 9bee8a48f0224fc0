"""The framework's share and the host's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lintfit.catalog.facts import Gpu, ModelFacts
from lintfit.frozen import replace
from lintfit.memory.engines.host import pinned
from lintfit.memory.engines.model_states import states
from lintfit.memory.engines.states import States
from lintfit.memory.framework import (
    CONTEXT,
    CUBLAS,
    CUBLAS_HOPPER,
    NCCL,
    SIDE_STREAM,
    cached,
    idle_logits,
    side_streams,
)
from lintfit.memory.framework import framework as beside
from lintfit.memory.moments import at_the_loss
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Moment, Phase, Range
from lintfit.memory.spec import GIB, Spec
from lintfit.settings.values import Fsdp
from tests.memory.conftest import llama


def gpu(major: int) -> Gpu:
    return Gpu("a GPU", 80 * GIB, 80.0, (major, 0), True, True)


def framework(spec: Spec, allocated: int, held: States | None = None) -> tuple[Range, tuple[str, ...]]:
    return beside(spec, allocated, held or states(spec))


def test_one_process_has_no_nccl(small: ModelFacts) -> None:
    alone, _ = framework(Spec(small, gpu=gpu(8)), 10 * GIB)
    many, _ = framework(Spec(small, gpu=gpu(8), gpus=8, engine="ddp"), 10 * GIB)
    assert alone.low == CONTEXT.low + CUBLAS
    assert many.low - alone.low == NCCL.low


def test_hopper_has_larger_workspaces(small: ModelFacts) -> None:
    ampere, hopper = (framework(Spec(small, gpu=gpu(major)), 10 * GIB)[0] for major in (8, 9))
    assert hopper.low - ampere.low >= CUBLAS_HOPPER - CUBLAS


def test_an_unknown_card_is_an_assumption(small: ModelFacts) -> None:
    assert framework(Spec(small), GIB)[1]
    assert not framework(Spec(small, gpu=gpu(8)), GIB)[1]


def test_cached_blocks_end_where_the_card_does(small: ModelFacts) -> None:
    allocated = 78 * GIB
    roomy, _ = framework(Spec(small, gpu=gpu(8), capacity_bytes=200 * GIB), allocated)
    full, _ = framework(Spec(small, gpu=gpu(8), capacity_bytes=80 * GIB), allocated)
    assert full.likely < roomy.likely
    # What the allocator cannot do without stays.
    assert full.likely >= CONTEXT.likely + int(0.03 * allocated)


def test_a_shifted_copy_of_the_logits_leaves_a_block_that_nothing_fits(small: ModelFacts) -> None:
    """Bytes an entry: the copies that the loss makes one after the other, each into a free block that it fits."""
    entries = 4 * 512 * small.vocab
    run = {"micro_batch_size": 4, "seq_len": 512}
    for version, precision, expected in (
        ("5.0", "bf16", 2), ("4.48.1", "bf16", 4), ("4.45.2", "bf16", 6), ("4.48.1", "fp32", 4), ("5.0", "fp32", 0),
    ):  # fmt: skip
        spec = Spec(small, weights_dtype=precision, versions={"transformers": version}, **run)  # type: ignore[arg-type]
        assert idle_logits(spec) == expected * entries
    assert idle_logits(Spec(small, loss="liger", **run)) == 0


def test_gathering_in_a_second_stream_keeps_more(small: ModelFacts) -> None:
    sharded = Spec(small, engine="fsdp", gpus=2, fsdp=Fsdp(2, "FULL_SHARD"))
    whole = Spec(small, engine="fsdp", gpus=2, fsdp=Fsdp(2, "NO_SHARD"))
    held = states(whole)
    difference = framework(sharded, 10 * GIB, held)[0].likely - framework(whole, 10 * GIB, held)[0].likely
    assert difference == SIDE_STREAM


def moment(name: str, phase: Phase, **parts: int) -> Moment:
    return Moment(name, phase, parts)


def test_what_lies_idle_around_the_loss_serves_the_layers() -> None:
    """Only what the loss with its idle blocks needs beyond the peak comes on top of a peak in a layer's backward."""
    loss = moment("loss, backward", "backward", activations=10 * GIB)
    layer = moment("layer 0, backward", "backward", activations=11 * GIB)
    step = moment("optimizer step", "step", temporaries=12 * GIB)
    assert at_the_loss((loss, layer), layer) == 10 * GIB
    assert at_the_loss((loss, layer), loss) is None
    assert at_the_loss((loss, layer, step), step) is None
    spec = spec_from_mapping(
        {"model": "meta-llama/Meta-Llama-3-8B", "micro_batch_size": 4, "seq_len": 4096, "loss": "full",
         "weights_dtype": "bf16", "versions": {"transformers": "4.48.1"}}
    )  # fmt: skip
    idle = dict(cached(spec, 11 * GIB, states(spec), 0))
    shared = dict(cached(spec, 11 * GIB, states(spec), 0, 10 * GIB))
    assert sum(idle.values()) - sum(shared.values()) == GIB


def test_streams_of_fsdp_keep_their_own_pools(small: ModelFacts) -> None:
    """A100, 4 GPUs, Llama-3-8B whole with Liger (fms): nvidia-smi shows 53.4 GiB where 37.4 are allocated."""
    sharded = Spec(small, engine="fsdp", gpus=4, fsdp=Fsdp(1, "FULL_SHARD"))
    end = moment("end of backward", "backward", communication_buffers=2, gradients=8, temporaries=4)
    layer = moment("layer 0, backward", "backward", communication_buffers=3, gradients=1)
    long = moment("layer 0, backward", "backward", communication_buffers=3, gradients=1, activations=20)
    step = moment("optimizer step", "step", gradients=8, temporaries=8)
    assert side_streams(sharded, (long, end, step), long) == 0 + 11
    assert side_streams(sharded, (layer, end, step), step) == 3 + 4
    assert side_streams(Spec(small, gpus=4, engine="ddp"), (layer, end, step), step) is None


def test_idle_pools_may_make_a_smaller_moment_the_one_that_needs_most(small: ModelFacts) -> None:
    sharded = Spec(small, engine="fsdp", gpus=4, fsdp=Fsdp(1, "FULL_SHARD"))
    load = moment("model loaded", "load", parameters=40)
    layer = moment("layer 0, backward", "backward", communication_buffers=6, parameters=10, activations=10)
    end = moment("end of backward", "backward", parameters=10, gradients=2)
    save = moment("checkpoint saved", "save", parameters=10, gradients=2, temporaries=12)
    points = (layer, end, save)
    assert layer.allocated > save.allocated
    assert layer.allocated + (side_streams(sharded, points, layer) or 0) == save.allocated + 6
    assert side_streams(sharded, (load, layer, end), load) == 0  # no stream had anything yet
    resume = moment("checkpoint read", "resume", parameters=10, temporaries=30)
    assert side_streams(sharded, (resume, layer, end), resume) == 0


@given(st.integers(0, 200 * GIB), st.sampled_from((1, 8)), st.sampled_from((None, 24 * GIB, 80 * GIB)))
def test_the_range_is_in_order(allocated: int, gpus: int, capacity: int | None) -> None:
    spec = Spec(llama(), gpus=gpus, engine="ddp" if gpus > 1 else "single", capacity_bytes=capacity)
    found, _ = framework(spec, allocated)
    assert 0 < found.low <= found.likely <= found.high


@pytest.mark.parametrize(("size", "expected"), [(0, 0), (1, 1), (512, 512), (513, 1024), (3 * GIB, 4 * GIB)])
def test_page_locked_blocks_are_powers_of_two(size: int, expected: int) -> None:
    assert pinned(size) == expected


def test_every_rank_of_a_node_loads_a_copy(baichuan_7b: ModelFacts) -> None:
    copy = 2 * baichuan_7b.parameters
    ddp = Spec(baichuan_7b, engine="ddp", gpus=16, nodes=2)
    assert states(ddp).host.load_peak == 8 * copy
    zero3 = Spec(baichuan_7b, engine="deepspeed", zero_stage=3, gpus=8, mixed_precision="bf16")
    assert states(zero3).host.load_peak == copy
    assert states(replace(zero3, versions={"transformers": "4.57.0"})).host.load_peak == 5 * 10**9
    stored = replace(baichuan_7b, checkpoint_dtype="bf16")
    newest = replace(zero3, facts=stored, weights_dtype="fp32", versions={"transformers": "5.1.0"})
    assert states(newest).host.load_peak == copy
    late = Spec(baichuan_7b, engine="deepspeed", zero_stage=3, gpus=8, mixed_precision="bf16", zero3_init=False)
    assert states(late).host.load_peak == 8 * copy
