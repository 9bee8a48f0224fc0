"""An evaluation on a batch of its own: what its size, its metrics and its generation take beside the training."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.explain import OTHER, at
from lintfit.memory.reading.contradictions import SpecError
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate, Moment, Verdict
from lintfit.memory.spec import GIB

BASE: dict[str, Any] = {
    "model": "Qwen/Qwen2.5-1.5B",
    "gpu": "RTX 4090",
    "weights_dtype": "bf16",
    "mixed_precision": "bf16",
    "micro_batch_size": 1,
    "seq_len": 2048,
    "gradient_checkpointing": True,
    "loss": "full",
    "fused_kernels": [],
}
LOGITS = 2048 * 151_936 * 4
"""Bytes of one sample's logits as autocast hands them on."""


def run(evaluation: dict[str, Any] | None = None, **more: Any) -> Estimate:
    return estimate(spec_from_mapping({**BASE, "evaluation": evaluation, **more}))


def moments(guess: Estimate) -> dict[str, Moment]:
    return {moment.name: moment for moment in guess.moments if moment.in_evaluation}


def test_nothing_said_is_a_batch_of_the_trainings_size() -> None:
    said, unsaid = moments(run({"batch_size": 1})), moments(run())
    assert {name: moment.components for name, moment in said.items()} == {
        name: moment.components for name, moment in unsaid.items()
    }


def test_a_batch_grows_with_its_samples_alone() -> None:
    one, two, eight = (moments(run({"batch_size": size}))["evaluation"].allocated for size in (1, 2, 8))
    assert eight - one == pytest.approx(7 * (two - one), rel=1e-6)
    assert eight - one > 7 * 10 / 4 * LOGITS * 0.99, "half, fp32, and the loss's log-softmax of every entry"


def test_the_default_is_the_librarys_and_decides_the_verdict() -> None:
    assert run(seq_len=4096).verdict is Verdict.FITS
    default = run({}, seq_len=4096)
    assert default.verdict is Verdict.DOES_NOT_FIT
    assert default.peaks_in_evaluation
    assert moments(default).keys() == moments(run({"batch_size": 8}, seq_len=4096)).keys()
    assert default.peak == run({"batch_size": 8}, seq_len=4096).peak


def test_a_run_that_never_evaluates_has_no_such_moment() -> None:
    assert moments(run({"batch_size": 0})) == {}
    assert run({"batch_size": 0}).peak == run().peak


def test_kept_logits_are_put_together_and_are_there_twice() -> None:
    guess = run({"batch_size": 2, "predictions": "kept", "accumulation_steps": 4})
    assert moments(guess)["evaluation, logits gathered"].components["logits"] == 2 * 4 * 2 * LOGITS
    apart = run({"batch_size": 2, "predictions": "kept", "accumulation_steps": 4, "concat_batches": False})
    assert moments(apart)["evaluation, logits gathered"].components["logits"] == 4 * 2 * LOGITS
    # Three batches are kept, and put together, the last one has a tensor of its own besides.
    more = (
        moments(guess)["evaluation"].components["logits"]
        - moments(run({"batch_size": 2}))["evaluation"].components["logits"]
    )
    assert more == 4 * 2 * LOGITS


def test_every_rank_gathers_the_logits_of_all() -> None:
    guess = run({"batch_size": 1, "predictions": "kept", "accumulation_steps": 1}, gpus=4)
    assert moments(guess)["evaluation, logits gathered"].components["logits"] == (4 + 1) * LOGITS


def test_metrics_of_each_batch_gather_it_and_let_it_go() -> None:
    guess = run({"batch_size": 1, "predictions": "gathered", "samples": 1000}, gpus=4)
    assert moments(guess)["evaluation, logits gathered"].components["logits"] == (4 + 1) * LOGITS
    assert guess.verdict is not Verdict.UNKNOWN
    assert guess.host == run({"batch_size": 1}, gpus=4).host


def test_half_precision_logits_stay_so_without_autocast() -> None:
    guess = run({"batch_size": 1, "predictions": "kept", "accumulation_steps": 1}, mixed_precision="no")
    assert moments(guess)["evaluation, logits gathered"].components["logits"] == LOGITS // 2
    upcast = run(
        {"batch_size": 1, "predictions": "kept", "accumulation_steps": 1},
        mixed_precision="no",
        versions={"transformers": "4.45.2"},
    )
    assert moments(upcast)["evaluation, logits gathered"].components["logits"] == LOGITS


def test_a_set_of_unknown_size_leaves_no_verdict_but_the_worst() -> None:
    guess = run({"batch_size": 1, "predictions": "kept"}, gpu="H100 80GB")
    assert guess.verdict is Verdict.UNKNOWN
    assert guess.not_modelled == (
        "the logits of all samples of the evaluation, which stay on the GPU until it is over: "
        f"{LOGITS / GIB:.1f} GiB each, and how many there are is not stated",
    )
    assert run({"batch_size": 1, "predictions": "kept"}, gpu="RTX 3060").verdict is Verdict.DOES_NOT_FIT


def test_a_set_of_known_size_is_counted_on_the_card_and_on_the_host() -> None:
    few = run({"batch_size": 2, "predictions": "kept", "samples": 8}, gpus=2)
    assert few.verdict is not Verdict.UNKNOWN
    assert moments(few)["evaluation, logits gathered"].components["logits"] == 2 * 8 * LOGITS
    none = run({"batch_size": 2}, gpus=2)
    assert few.host.steady - none.host.steady == 2 * 8 * LOGITS * 2
    many = run({"batch_size": 2, "predictions": "kept", "samples": 10_000, "accumulation_steps": 1})
    assert many.host.steady > 10_000 * LOGITS
    assert run({"batch_size": 2, "predictions": "kept", "samples": 500}).verdict is Verdict.DOES_NOT_FIT


def test_moved_to_the_host_the_estimate_says_what_it_leaves_out() -> None:
    guess = run({"batch_size": 1, "predictions": "kept", "accumulation_steps": 1})
    assert guess.verdict is Verdict.FITS
    assert "host memory without the evaluation's logits" in guess.assumptions[-1]
    assert run({"batch_size": 1, "predictions": "dropped"}).verdict is Verdict.FITS


@pytest.mark.parametrize(
    ("versions", "whole"),
    [
        ({}, False),
        ({"transformers": "5.15.0"}, False),
        ({"transformers": "5.14.1"}, True),
        ({"transformers": "4.57.3", "trl": "0.29.0"}, False),
        ({"transformers": "4.57.3", "trl": "0.28.0"}, True),
    ],
    ids=str,
)
def test_ligers_loss_is_in_the_evaluation_only_where_the_trainer_says_so(versions: dict[str, str], whole: bool) -> None:
    guess = moments(run({"batch_size": 4}, loss="liger", versions=versions))["evaluation"]
    assert (guess.components.get("logits", 0) > 4 * LOGITS) is whole
    asked = moments(run({"batch_size": 4, "predictions": "dropped"}, loss="liger", versions=versions))["evaluation"]
    assert asked.components["logits"] > 4 * LOGITS


def test_a_chunked_loss_makes_logits_apart_where_they_are_asked_for() -> None:
    assert "evaluation, logits" not in moments(run({"batch_size": 2}, loss="chunked"))
    asked = moments(run({"batch_size": 2, "predictions": "dropped"}, loss="chunked"))["evaluation, logits"]
    assert asked.components["logits"] == 2 * LOGITS * 6 // 4, "half precision, and fp32 as accelerate hands it on"


def test_answers_take_a_key_value_cache_for_every_beam() -> None:
    def cache(beams: int) -> int:
        chosen = {"batch_size": 2, "predictions": "kept", "generates": True, "beams": beams}
        return moments(run(chosen))["evaluation, generation"].components["activations"]

    each = (28 + 1) * 2 * 2 * 128 * 2 * 2 * 2048
    assert cache(4) - cache(1) == 3 * each
    assert run({"batch_size": 2, "predictions": "kept", "generates": True}).verdict is not Verdict.UNKNOWN


def test_fsdp_1_gathers_all_parameters_to_generate() -> None:
    chosen = {"batch_size": 1, "predictions": "kept", "generates": True}
    first = moments(run(chosen, gpus=2, engine="fsdp"))["evaluation, generation"].components
    second = moments(run(chosen, gpus=2, engine="fsdp", fsdp={"version": 2}))["evaluation, generation"].components
    assert first["communication_buffers"] - second.get("communication_buffers", 0) > 1.5e9 * 4


def test_grpo_generates_for_the_evaluations_batch() -> None:
    trained = {"trainer": "grpo", "generation": {"completion_len": 512}, "gradient_accumulation_steps": 1}
    guess = run({"batch_size": 8}, **trained)
    rolled = next(moment for moment in guess.moments if moment.name == "generation").components["activations"]
    assert moments(guess)["evaluation, generation"].components["activations"] == 8 * rolled


def test_ppo_evaluates_with_what_it_rolls_out() -> None:
    assert moments(run({"batch_size": 8}, trainer="ppo")) == {}


@pytest.mark.parametrize(
    ("evaluation", "line"),
    [
        ({"batch_size": -1}, "evaluation.batch_size: -1 must be a whole number from 0 to 1048576"),
        (
            {"predictions": "all"},
            "evaluation.predictions: 'all' must be one of 'none', 'dropped', 'gathered', 'kept', 'held', 'listed'",
        ),
        ({"batchsize": 1}, "evaluation.batchsize: unknown key (did you mean 'batch_size'?)"),
        (8, "evaluation: 8 must be a JSON object"),
        ({"accumulation_steps": 0}, "evaluation.accumulation_steps: 0 must be a whole number from 1 to 1048576"),
    ],
    ids=str,
)
def test_bad_values_get_one_line(evaluation: Any, line: str) -> None:
    with pytest.raises(SpecError) as error:
        run(evaluation)
    assert str(error.value) == line


def test_a_loop_of_its_own_holds_the_logits_of_the_batch_before() -> None:
    """Recorded: within 0.03 % in ``bench/fake_evaluation.py``."""
    dropped, held = (moments(run({"batch_size": 4, "predictions": word}))["evaluation"] for word in ("dropped", "held"))
    assert held.components["logits"] - dropped.components["logits"] == 4 * LOGITS


def test_a_list_of_logits_has_no_end_that_a_spec_says() -> None:
    listed = run({"batch_size": 1, "predictions": "listed"})
    assert listed.verdict is Verdict.UNKNOWN
    assert any("stay on the GPU until it is over" in line for line in listed.not_modelled)
    assert run({"batch_size": 1, "predictions": "held"}).verdict is Verdict.FITS


def test_gradients_make_an_evaluation_take_what_no_checkpointing_would() -> None:
    """Layers are checkpointed while they train alone, and a variable holds the graph of the batch before."""
    word = {"batch_size": 2, "predictions": "dropped"}
    alone, twice = run({**word, "graph": True}), run({**word, "predictions": "held", "graph": True})
    uncheckpointed = run({"batch_size": 0}, micro_batch_size=2, gradient_checkpointing=False)
    forward = next(moment for moment in uncheckpointed.moments if moment.name == "loss, forward")
    assert moments(alone)["evaluation, with its graph"].allocated == forward.allocated
    assert twice.peak.likely > alone.peak.likely > run(word).peak.likely
    assert twice.peaks_in_evaluation
    kept = moments(twice)["evaluation, with its graph"].components["activations"]
    assert kept > 1.9 * forward.components["activations"]
    spec = spec_from_mapping({**BASE, "evaluation": {**word, "predictions": "held", "graph": True}})
    explained = {part.component: part.terms for part in at(spec, twice, twice.peak_moment)}
    assert any("graph of the batch before" in term.what for term in explained["activations"])
    assert sum(term.size for term in explained["activations"] if term.what == OTHER) == 0
