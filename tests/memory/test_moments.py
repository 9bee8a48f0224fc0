"""How the moments of a step hang together, engine by engine, on a small Llama."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lintfit.catalog import gpus, models
from lintfit.catalog.facts import Gpu, ModelFacts
from lintfit.memory import estimate
from lintfit.memory import moments as moments_module
from lintfit.memory.activations import recipe as recipe_module
from lintfit.memory.activations.recipe import evaluating
from lintfit.memory.engines import model_states as states_module
from lintfit.memory.engines.model_states import states
from lintfit.memory.micro_batch.kv_cache import checkpointed_states
from lintfit.memory.moments import layer_without_graph, moments, most_without_graph
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.recording import record
from lintfit.memory.result import Estimate, Moment, Range, Verdict
from lintfit.memory.spec import GIB, Generation, Spec
from lintfit.memory.verdict.bounds import judge
from lintfit.settings.values import Fsdp


def run(facts: ModelFacts, **settings: Any) -> Estimate:
    return estimate(Spec(facts=facts, **{"micro_batch_size": 4, "seq_len": 512, **settings}))


def at(guess: Estimate, name: str) -> Moment:
    return next(moment for moment in guess.moments if moment.name.startswith(name))


def test_the_peak_is_the_largest_moment(small: ModelFacts) -> None:
    guess = run(small)
    assert guess.allocated_bytes == max(moment.allocated for moment in guess.moments)
    assert guess.peak.likely == guess.peak_moment.total
    assert sum(guess.peak_moment.components.values()) == guess.peak.likely
    assert guess.peak.low <= guess.peak.likely <= guess.peak.high


def test_bf16_adamw_peaks_in_the_step_until_activations_pass_it(baichuan_7b: ModelFacts) -> None:
    short = run(baichuan_7b, optimizer="adamw_torch", micro_batch_size=1, gradient_checkpointing=True)
    assert short.peak_moment.phase == "step"
    assert short.allocated_bytes / baichuan_7b.parameters == pytest.approx(10, rel=1e-3)
    long = run(baichuan_7b, optimizer="adamw_torch", micro_batch_size=16, seq_len=4096, gradient_checkpointing=True)
    assert long.peak_moment.phase in ("forward", "backward")


def test_json_has_the_contracts_shape(small: ModelFacts) -> None:
    shape = run(small).to_json()
    assert sum(shape["components"].values()) == shape["peak_bytes"]["likely"]
    assert set(shape["phases"]) == {"load", "initialize", "forward", "backward", "step", "evaluate", "save"}
    assert shape["allocated_bytes"] == shape["peak_bytes"]["likely"] - shape["components"]["framework"]


def test_checkpointing_and_offloading_take_activations_away(small: ModelFacts) -> None:
    kept = at(run(small), "loss, backward").components["activations"]
    checkpointed = at(run(small, gradient_checkpointing=True), "loss, backward").components["activations"]
    selective = at(run(small, gradient_checkpointing="selective"), "loss, backward").components["activations"]
    offloaded = run(small, gradient_checkpointing=True, activation_offload=True)
    assert at(offloaded, "loss, backward").components["activations"] < checkpointed < selective < kept
    inputs = small.layers * 4 * 512 * small.hidden * 2
    assert checkpointed - at(offloaded, "loss, backward").components["activations"] == inputs


def test_selective_checkpointing_keeps_every_second_product_and_attention(small: ModelFacts) -> None:
    """torchtitan's option ``op``: of q, k, v, o, gate, up, down the first, third, fifth and seventh."""
    full, selective = (
        at(run(small, gradient_checkpointing=mode), "loss, backward").components["activations"]
        for mode in (True, "selective")
    )
    heads, kv, inner, hidden = 256, 128, 704, 256
    products = 2 * (heads + kv + inner + hidden)
    attention = 2 * heads + 4 * 8
    assert selective - full == small.layers * 4 * 512 * (products + attention)


def test_fsdp_gathers_in_half_precision_and_autocast_copies_nothing(small: ModelFacts) -> None:
    settings = {"weights_dtype": "fp32", "mixed_precision": "bf16", "gpus": 2}
    sharded = at(run(small, engine="fsdp", **settings), "loss, forward").components
    whole = at(run(small, engine="ddp", **settings), "loss, forward").components
    assert sharded.get("temporaries", 0) == 0 < whole["temporaries"]


def test_the_loss_by_version(small: ModelFacts) -> None:
    tokens = 4 * 512
    by_version = {
        version: at(run(small, versions={"transformers": version}), "loss, forward").components["logits"]
        for version in ("4.45.2", "4.48.1", "5.0.0")
    }
    assert by_version["4.45.2"] == 12 * tokens * small.vocab
    assert by_version["4.48.1"] == 14 * tokens * small.vocab
    assert by_version["5.0.0"] == 10 * tokens * small.vocab
    assert at(run(small), "loss, backward").components["logits"] == 12 * tokens * small.vocab


def test_remote_code_computes_its_loss_in_half_precision(small: ModelFacts) -> None:
    """``modeling_qwen.py``: logits, their shifted copy and its log-softmax, 6 bytes an entry without autocast."""
    settings = {"engine": "deepspeed", "zero_stage": 2, "mixed_precision": "bf16", "weights_dtype": "bf16"}
    for kind, size in (("qwen", 6), ("llama", 10)):
        guess = run(replace(small, model_type=kind), **settings)
        assert at(guess, "loss, forward").components["logits"] == size * 4 * 512 * small.vocab


def test_fused_losses_hold_no_full_logits(small: ModelFacts) -> None:
    for path in ("chunked", "liger"):
        guess = run(small, loss=path, micro_batch_size=64)
        full = run(small, micro_batch_size=64)
        assert guess.allocated_bytes < full.allocated_bytes


def test_autocast_caches_its_weight_copies_until_the_forward_ends(small: ModelFacts) -> None:
    mixed = {"weights_dtype": "fp32", "mixed_precision": "bf16", "gradient_checkpointing": True}
    guess = run(small, **mixed)
    matrices = small.parameters - small.vocab * small.hidden - (2 * small.layers + 1) * small.hidden
    copies = at(guess, "loss, forward").components["temporaries"]
    assert copies == pytest.approx(2 * matrices + 4 * 4 * 512 * small.hidden, rel=1e-3)


def test_fsdp_over_frozen_layers_keeps_inputs_with_reentrant_checkpointing(small: ModelFacts) -> None:
    settings = {
        "engine": "fsdp", "gpus": 2, "method": "lora", "lora_targets": ("q_proj",), "gradient_checkpointing": True,
        "micro_batch_size": 64,
    }  # fmt: skip
    guesses = [
        at(run(small, fsdp=Fsdp(version), use_reentrant=reentrant, **settings), "layer").allocated
        for version, reentrant in ((1, True), (1, False), (2, True))
    ]
    size = 64 * 512 * small.hidden * 2
    assert guesses[0] > guesses[1] + (small.layers - 2) * size
    assert guesses[1] < guesses[0] > guesses[2]
    # FSDP 2 holds each layer's input until its turn; FSDP 1 all of them at the last layer, with the gradients of all
    # but the first, one of which is the gradient that comes into it. FSDP 2 gathers one layer ahead; at the last layer
    # the adapters of those above have left their sharded gradients.
    layer = 2 * (2 * 256 * 256 + 2 * 128 * 256 + 3 * 704 * 256 + 2 * 256)
    adapters = 4 * 8 * (256 + 256)
    gradients = (small.layers - 1) * adapters // 2
    assert guesses[0] - guesses[2] == (small.layers - 2) * size - layer - adapters + gradients


def test_scaled_embeddings_are_kept_as_a_leaf(small: ModelFacts) -> None:
    """Measured: PowerLM-3b with LoRA on A100 holds 2h bytes a token more than Llama's layers say."""
    settings = {
        "method": "lora", "lora_targets": ("q_proj",), "gradient_checkpointing": True, "use_reentrant": True,
    }  # fmt: skip
    granite = replace(small, model_type="granite")
    extra = {
        name: at(run(granite, **changed), "loss").allocated - at(run(small, **changed), "loss").allocated
        for name, changed in (("lora", settings), ("full", {**settings, "method": "full"}))
    }
    assert extra == {"lora": 4 * 512 * small.hidden * 2, "full": 0}


def test_gptbigcode_caches_keys_and_values_although_it_checkpoints() -> None:
    """``modeling_gpt_bigcode.py`` of transformers 4.48: 24 layers of (2048 + 2 x 128) bf16 elements a token."""
    facts = models.find("bigcode/gpt_bigcode-santacoder")
    assert facts is not None
    settings = {"gradient_checkpointing": True, "micro_batch_size": 4, "seq_len": 2048}
    old, new, plain = (
        at(run(facts, **{**settings, **changed}), "loss, forward").components["activations"]
        for changed in (
            {"versions": {"transformers": "4.48.1"}},
            {},
            {"versions": {"transformers": "4.48.1"}, "gradient_checkpointing": False},
        )
    )
    assert old - new == 24 * 4 * 2048 * 2304 * 2
    assert plain > old


@pytest.mark.parametrize("more", [{"use_cache": False}, {"trainer": "dpo"}, {"versions": {"trl": "0.22.0"}}])
def test_gptbigcode_caches_nothing_where_the_script_or_its_trainer_turns_it_off(more: dict[str, Any]) -> None:
    """Measured: StarCoder with adapters on a quantised base in 24.2 GiB, 34 with the cache (``from_pretrained(…,
    use_cache=False)``; huggingface/blog personal-copilot)."""
    versions = {"transformers": "4.48.1", **more.get("versions", {})}
    stated = {"model": "bigcode/gpt_bigcode-santacoder", "seq_len": 2048, "gradient_checkpointing": True}
    plain, off = (spec_from_mapping({**stated, **given, "versions": versions}) for given in ({}, more))
    assert checkpointed_states(replace(plain, versions={"transformers": "4.48.1"}), 2048, 2) == 24 * 2048 * 2304 * 2
    assert checkpointed_states(off, 2048, 2) == 0


def test_accumulated_gradients_lie_under_the_loss(small: ModelFacts) -> None:
    once = at(run(small), "loss, backward")
    twice = at(run(small, gradient_accumulation_steps=2), "loss, backward")
    assert twice.allocated - once.allocated == pytest.approx(2 * small.parameters, rel=1e-3)


def test_preference_pairs_double_the_batch_and_bring_a_reference(small: ModelFacts) -> None:
    plain = run(small, micro_batch_size=8)
    pairs = run(small, micro_batch_size=4, trainer="dpo")
    kept = [at(guess, "loss, backward").components["activations"] for guess in (pairs, plain)]
    assert kept[0] == pytest.approx(kept[1], rel=0.02)
    reference = run(small, micro_batch_size=4, trainer="dpo", reference_model=True)
    parameters = [at(guess, "optimizer step").components["parameters"] for guess in (reference, pairs)]
    assert parameters[0] - parameters[1] == 2 * small.parameters
    adapters = run(small, trainer="dpo", reference_model=True, method="lora")
    alone = run(small, trainer="dpo", method="lora")
    assert adapters.allocated_bytes - alone.allocated_bytes == 2 * small.parameters


def test_rollouts(small: ModelFacts) -> None:
    grpo = {"trainer": "grpo", "seq_len": 512, "capacity_bytes": 80 * GIB}
    alone = run(small, generation=Generation(128), **grpo)
    assert at(alone, "generation").phase == "evaluate"
    whole = run(small, **{**grpo, "trainer": "causal-lm"})
    older = run(small, generation=Generation(128), versions={"trl": "1.13.0"}, **grpo)
    assert at(older, "loss, backward").components["logits"] < at(whole, "loss, backward").components["logits"] / 3
    assert "logits" not in at(alone, "loss, backward").components
    shared = run(small, generation=Generation(128, vllm_gpu_memory_utilization=0.3), **grpo)
    assert shared.peak.likely - alone.peak.likely == pytest.approx(0.3 * 80 * GIB, rel=0.01)
    gathered = run(
        small, generation=Generation(128, gather_weights=True), engine="deepspeed", zero_stage=3, gpus=4, **grpo
    )
    assert at(gathered, "generation").components["communication_buffers"] >= 2 * small.parameters


def test_adapters_are_merged_into_whole_weights_for_vllm(small: ModelFacts) -> None:
    """TRL gathers all of a ZeRO-3 model at once to merge its adapters, and sends one tensor after the other else."""
    grpo = {"trainer": "grpo", "seq_len": 512, "capacity_bytes": 80 * GIB, "gpus": 4, "engine": "deepspeed"}
    server = {**grpo, "generation": Generation(128, vllm_server=True), "method": "lora"}
    shards = run(small, zero_stage=3, **server)
    handed = at(shards, "weights handed to vLLM")
    assert handed.phase == "evaluate"
    assert handed.components["communication_buffers"] >= 2 * small.parameters
    colocated = {**server, "generation": Generation(128, vllm_gpu_memory_utilization=0.3)}
    assert at(run(small, zero_stage=3, **colocated), "weights handed").total > handed.total, "beside vLLM's share"
    quiet = (
        {**server, "zero_stage": 2}, {**server, "zero_stage": 3, "method": "full"},
        {**server, "zero_stage": 3, "gpus": 1}, {**server, "zero_stage": 3, "generation": Generation(128)},
    )  # fmt: skip
    for settings in quiet:
        assert not [each for each in run(small, **settings).moments if each.name.startswith("weights handed")]


def test_parallelism_divides_the_activations(small: ModelFacts) -> None:
    base = at(run(small, engine="ddp", gpus=4), "loss, backward").components["activations"]
    sequence = at(run(small, engine="deepspeed", gpus=4, sequence_parallel=4), "loss, backward")
    assert sequence.components["activations"] == pytest.approx(base / 4, rel=0.05)
    tensor = at(run(small, engine="ddp", gpus=4, tensor_parallel=4), "loss, backward").components["activations"]
    assert base / 4 < tensor < base


def test_assumptions_name_what_nobody_stated(small: ModelFacts) -> None:
    lines = run(small, seq_len=512).assumptions
    assert any(line.startswith("sequence length 512 (not stated") for line in lines)
    stated = run(small, stated=frozenset({"seq_len", "micro_batch_size", "attention", "gradient_checkpointing"}))
    assert not any("sequence length" in line for line in stated.assumptions)


@pytest.mark.parametrize(("model", "kernel"), [("EleutherAI/gpt-j-6b", "eager"), ("gpt2", "sdpa")])
def test_the_assumed_attention_is_the_one_that_the_model_runs(model: str, kernel: str) -> None:
    facts = models.find(model)
    assert facts is not None
    lines = estimate(Spec(facts=facts)).assumptions
    assert f"attention {kernel} (not stated; transformers' default)" in lines


@pytest.mark.parametrize(
    ("version", "stated", "kernel"),
    [("4.47.1", False, "eager"), ("4.57.1", False, "sdpa"), ("5.20.0", False, "sdpa"), ("5.23.0", False, "eager"),
     ("4.57.1", True, "sdpa"), ("4.47.1", True, "sdpa")],
)  # fmt: skip
def test_gemma_2_falls_back_to_eager_scores_in_some_versions(version: str, stated: bool, kernel: str) -> None:
    facts = models.find("google/gemma-2-2b")
    assert facts is not None
    named = frozenset({"attention"}) if stated else frozenset[str]()
    guess = estimate(Spec(facts=facts, versions={"transformers": version}, stated=named))
    scores = estimate(Spec(facts=facts, versions={"transformers": version}, attention="eager"))
    assert (guess.allocated_bytes == scores.allocated_bytes) is (kernel == "eager")


def test_verdicts() -> None:
    span = Range(10, 12, 15)
    assert judge(span, None) is Verdict.UNKNOWN
    assert judge(span, 15) is Verdict.FITS
    assert judge(span, 14) is Verdict.TIGHT
    assert judge(span, 9) is Verdict.DOES_NOT_FIT


def test_an_unseen_architecture_needs_twice_the_room(small: ModelFacts) -> None:
    known = run(small)
    unseen = run(replace(small, model_type="somebody-elses"))
    assert unseen.allocated_bytes == known.allocated_bytes
    assert unseen.peak.high >= 2 * unseen.allocated_bytes > known.peak.high - 2 * GIB
    assert any("nearest architecture" in line for line in unseen.not_modelled)


def test_the_step_of_one_process_leaves_smaller_gaps(small: ModelFacts) -> None:
    """Llama-3-8B whole, 74.8 GiB allocated in the step, runs on an A100 of 79.1 GiB (fms)."""
    facts = models.find("meta-llama/Meta-Llama-3-8B")
    assert facts is not None
    guess = run(facts, micro_batch_size=1, seq_len=512, optimizer="adamw_torch", gradient_checkpointing=True)
    assert guess.peak_moment.phase == "step"
    assert 1.06 <= guess.peak.high / guess.allocated_bytes <= 1.09


def test_a_quantised_base_may_be_cast_up() -> None:
    facts = models.find("mistralai/Mistral-7B-v0.1")
    assert facts is not None
    settings = {
        "method": "lora", "lora_targets": ("q_proj",), "micro_batch_size": 8, "seq_len": 4096,
        "gradient_checkpointing": True, "mixed_precision": "bf16",
    }  # fmt: skip
    plain, four_bit = (run(facts, quantization=quantization, **settings) for quantization in (None, "nf4"))
    inputs = 32 * 8 * 4096 * 4096 * 2
    assert four_bit.allocated_bytes < plain.allocated_bytes
    assert four_bit.peak.high - four_bit.allocated_bytes > plain.peak.high - plain.allocated_bytes + inputs


def test_very_long_sequences_leave_only_the_states_certain(small: ModelFacts) -> None:
    guess = run(small, micro_batch_size=1, seq_len=500_000, capacity_bytes=2 * GIB)
    assert guess.verdict is Verdict.TIGHT
    assert any("500000 tokens" in line for line in guess.assumptions)
    said = frozenset({"sequence_parallel"})
    split = run(small, micro_batch_size=1, seq_len=500_000, capacity_bytes=2 * GIB, stated=said)
    assert split.verdict is Verdict.DOES_NOT_FIT


def test_a_desktop_card_holds_back_room_for_the_screen(small: ModelFacts) -> None:
    card = Gpu("NVIDIA GeForce RTX 3090", 23 * GIB, 24, (8, 6), True, True)
    server = replace(card, name="NVIDIA A10")
    highs = [run(small, gpu=gpu, micro_batch_size=256).peak.high for gpu in (card, server)]
    assert highs[0] - highs[1] == GIB // 2


def test_adapters_peak_in_the_last_layers_forward_where_the_loss_is_small(small: ModelFacts) -> None:
    """PEFT casts the input of every adapted product to fp32; a fused loss holds next to nothing."""
    settings = {
        "method": "lora", "lora_targets": "all-linear", "weights_dtype": "bf16", "mixed_precision": "bf16",
        "loss": "liger", "micro_batch_size": 64,
    }  # fmt: skip
    guess = run(small, **settings)
    last = at(guess, f"layer {small.layers - 1}, forward")
    assert last.phase == "forward" and last.allocated > at(guess, "loss, forward").allocated
    # down_proj: its input once more in fp32 beside the product that is its input.
    tokens = 64 * 512
    assert last.components["temporaries"] >= tokens * small.intermediate * (4 + 2)
    checkpointed = run(small, **settings, gradient_checkpointing=True)
    assert not any(moment.name.startswith("layer") and moment.phase == "forward" for moment in checkpointed.moments)


def test_reentrant_checkpointing_recomputes_before_any_node_of_the_backward(small: ModelFacts) -> None:
    """Beside the layer that runs again only the gradient of its output is there, not yet that of the scaled adapter."""
    settings = {
        "method": "lora", "lora_targets": "all-linear", "weights_dtype": "bf16", "mixed_precision": "bf16",
        "gradient_checkpointing": True, "micro_batch_size": 64,
    }  # fmt: skip
    one, other = (at(run(small, use_reentrant=reentrant, **settings), "layer") for reentrant in (True, False))
    hidden = 64 * 512 * small.hidden * 2
    assert one.components["temporaries"] == hidden
    assert other.components["temporaries"] == 2 * hidden
    # The whole forward runs again, past the last saved tensor: the adapter's result and its scaled copy.
    assert one.components["activations"] - other.components["activations"] == 2 * hidden


RUNS: tuple[dict[str, Any], ...] = (
    {},
    {"gradient_checkpointing": True},
    {"gradient_checkpointing": True, "use_reentrant": True, "mixed_precision": "bf16", "weights_dtype": "fp32"},
    {"attention": "eager", "mixed_precision": "bf16", "weights_dtype": "fp32"},
    {"attention": "eager", "gradient_checkpointing": "selective"},
    {"method": "lora", "lora_rank": 64, "lora_targets": "all-linear", "lora_dropout": 0.1},
    {"method": "lora", "quantization": "nf4", "gradient_checkpointing": True, "mixed_precision": "bf16"},
    {"method": "lora", "quantization": "nf4-double", "kbit_upcast": "all", "mixed_precision": "bf16"},
    {"engine": "fsdp", "gpus": 8, "fsdp": Fsdp(), "mixed_precision": "bf16", "gradient_checkpointing": True},
    {"padded_batches": True, "loss": "chunked", "tensor_parallel": 2, "gpus": 2, "engine": "ddp"},
)


@pytest.mark.parametrize("settings", RUNS)
def test_what_a_layers_forward_does_not_exceed(settings: dict[str, Any]) -> None:
    """With a graph and without; where that is less than the loss, the pass is not followed. A model of every type."""
    for facts in {facts.model_type: facts for facts in map(models.find, models.ids()) if facts is not None}.values():
        spec = Spec(facts=facts, **{"micro_batch_size": 2, "seq_len": 640, **settings})
        step = record(spec, states(spec))
        recipe = evaluating(step.recipe)
        assert layer_without_graph(spec, step, recipe).total <= most_without_graph(step), facts.name
        assert layer_without_graph(spec, step, replace(recipe, lora=None)).total <= most_without_graph(step), facts.name
        assert all(layer.forward <= layer.ceiling for layer in step.layers), facts.name


def test_an_evaluated_layer_counts_where_it_takes_more_than_the_loss(small: ModelFacts) -> None:
    few_words = replace(small, vocab=128)
    assert any(moment.name == "evaluation, a layer" for moment in run(few_words).moments)
    many_words = replace(small, vocab=1_000_000)
    assert not any(moment.name == "evaluation, a layer" for moment in run(many_words).moments)


def on_card(facts: ModelFacts, name: str, **settings: Any) -> Spec:
    card = gpus.gpus()[name]
    return Spec(facts=facts, micro_batch_size=4, seq_len=512, gpu=card, capacity_bytes=card.usable_bytes, **settings)


def sizes(spec: Spec) -> list[tuple[str, object]]:
    return [(moment.name, moment.components) for moment in moments(spec, states(spec))[0]]


def test_moments_are_counted_once_for_gpus_that_differ_in_name_and_size(small: ModelFacts) -> None:
    large, little = (on_card(small, name) for name in ("NVIDIA L40S", "NVIDIA GeForce RTX 4090"))
    assert states(large) is states(little)
    assert moments(large, states(large)) is moments(little, states(little))


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "lora", "quantization": "int8", "saves": True, "versions": {"bitsandbytes": "0.38"}},
        {
            "generation": Generation(completion_len=256, vllm_gpu_memory_utilization=0.5, vllm_sleeps=True),
            "trainer": "grpo",
        },
    ],
    ids=["layouts of int8", "share of vLLM"],
)
def test_moments_that_hang_on_the_gpu_are_its_own(small: ModelFacts, settings: dict[str, Any]) -> None:
    cards = ("NVIDIA H200", "NVIDIA L40S", "NVIDIA GeForce RTX 3090", "Tesla V100-SXM2-16GB")
    specs = [on_card(small, name, **settings) for name in cards]
    after_others = [sizes(spec) for spec in specs]
    for memo in (moments_module._FOUND, states_module._FOUND, states_module._EQUAL, recipe_module._OF):
        memo._found.clear()
    assert [sizes(spec) for spec in reversed(specs)] == after_others[::-1]
    assert len(set(map(str, after_others))) > 1
