"""What a run may be besides what its spec is taken to mean: other versions, code that nobody has read, other images.

A spec leaves things open. Where one of them decides much, the range around the peak counts the other runs, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from lintfit.catalog.language import language
from lintfit.frozen import replace
from lintfit.memo import Memo
from lintfit.memory import litgpt
from lintfit.memory.activations.attention import GROUPED_SDPA
from lintfit.memory.activations.families import known, traits
from lintfit.memory.activations.gptq import AUTO_GPTQ
from lintfit.memory.activations.kinds import kinds
from lintfit.memory.activations.recipe import attention_of, of
from lintfit.memory.alike import alike
from lintfit.memory.engines.resuming import reads_on_gpu
from lintfit.memory.engines.saving import lays_out
from lintfit.memory.engines.zeroing import added_to
from lintfit.memory.loss.preference import FUSED, ODDS
from lintfit.memory.micro_batch.halves import halves
from lintfit.memory.micro_batch.layers import hooks_frozen
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.weights import ALWAYS_FUSED, keeps_upcast
from lintfit.memory.verdict.dated import dated, of_its_time
from lintfit.memory.versions import LAST_TRANSFORMERS_4, release, running
from lintfit.versions import RECENT

WHOLE_LOGITS = "1.13"
"""A TRL version whose trainers hold all logits of a micro-batch."""

WHOLE_SOFTMAX = "0.14"
"""A TRL version whose PPOTrainer holds a log-softmax of the whole response."""


LINEAR_EXPERTS = "4.57.0"
"""A transformers version whose experts are linear layers, which bitsandbytes quantises."""


ROW_BY_ROW = "5.16.1"
"""A transformers version that puts the inverse of the gated delta rule's systems together row by row."""

ZEROES = "1.13.1"
"""A torch version whose ``Module.zero_grad`` fills gradients with zeros."""

COPIES = "2.0.1"
"""A torch version whose ``Optimizer.load_state_dict`` copies what it is handed."""

REDUCES_EACH = "1.10.1"
"""An accelerate version that reduces the gradients of every micro-batch under FSDP 2."""

PACKAGES = {
    "gated_delta_rule": ("the gated delta rule", "flash-linear-attention"),
    "mamba_ssm": ("Mamba's scan", "mamba-ssm"),
    "causal_conv1d": ("the short convolutions", "causal-conv1d"),
}
"""Of each kernel that transformers takes where its package is installed: what it runs, and the package."""


class Alternative(NamedTuple):
    """A run that the spec may mean, what the estimate says of the assumption, bytes that it may do without, whether its
    model states are others than the spec's, and whether it may need less as well as more."""

    spec: Spec
    note: str = ""
    less: int = 0
    restated: bool = False
    either: bool = False


class Guess(NamedTuple):
    """One thing that a spec may leave open: whether it does (``left_open``), and the run that it then may mean
    (``other``). ``note`` and ``restated`` are the :class:`Alternative`'s; ``{spec}`` is the run as it is taken.
    ``by_batch``: whether that it is left open goes by the batch or its lengths."""

    left_open: Callable[[Spec], bool]
    other: Callable[[Spec], Spec]
    note: str = ""
    restated: bool = False
    by_batch: bool = False
    either: bool = False


def cheaper(spec: Spec) -> Iterator[Alternative]:
    """Runs that the spec may mean and that may need less: they bound the low end."""
    if spec.facts.vision is not None:
        yield from _text_alone(spec)
    yield from _with_packages(spec)
    yield from _others(spec, CHEAPER)


def dearer(spec: Spec) -> Iterator[Alternative]:
    """Runs that the spec may mean and that may need more: they bound the high end."""
    yield from _others(spec, DEARER)
    if spec.facts.vision is not None and spec.images != 0:
        yield from _with_images(spec)
    if "trl" not in spec.versions:
        yield from _others(_upcast(spec) if _may_upcast(spec) else spec, OLDER_TRL)


_OPEN: Memo[tuple[Guess, ...]] = Memo()


def _others(spec: Spec, guesses: tuple[Guess, ...]) -> Iterator[Alternative]:
    for guess in _OPEN.get(alike(spec), id(guesses), lambda: _perhaps_open(spec, guesses)):
        if not guess.by_batch or guess.left_open(spec):
            yield Alternative(guess.other(spec), guess.note.format(spec=spec), 0, guess.restated, guess.either)


def _perhaps_open(spec: Spec, guesses: tuple[Guess, ...]) -> tuple[Guess, ...]:
    """The guesses that a spec leaves open, with those of which its batch decides."""
    return tuple([guess for guess in guesses if guess.by_batch or guess.left_open(spec)])


WITH_REORDERING = ((4, 28), (4, 31))
"""The transformers versions from and before which people installed bitsandbytes 0.38 beside them (April to July
2023)."""


def _may_reorder(spec: Spec) -> bool:
    """Whether a bitsandbytes 0.38 may run, which copies int8 weights to save them."""
    stated = release(spec.versions.get("transformers"))
    if stated is None or "bitsandbytes" in spec.versions or spec.engine not in ("single", "ddp") or not spec.saves:
        return False
    return lays_out(spec) and WITH_REORDERING[0] <= stated < WITH_REORDERING[1]


WITH_COPIED_MASTERS = ((4, 40), (4, 53))
"""The transformers versions from and before which people installed DeepSpeed 0.14.1 to 0.16.9 (April 2024 to May
2025)."""


def _may_copy_masters(spec: Spec) -> bool:
    """Whether a DeepSpeed may run whose offloaded step puts the masters on the GPU."""
    stated = release(spec.versions.get("transformers"))
    if stated is None or "deepspeed" in spec.versions or spec.zero_stage not in (1, 2):
        return False
    return spec.offload_optimizer != "none" and WITH_COPIED_MASTERS[0] <= stated[:2] < WITH_COPIED_MASTERS[1]


TORCH_2 = (4, 27)
"""The transformers version of the month in which torch 2 came out (March 2023)."""


def _may_keep_gradients(spec: Spec) -> bool:
    """Whether a torch 1 may run, in a run that it leaves more gradients."""
    stated = release(spec.versions.get("transformers"))
    if stated is None or stated[:2] >= TORCH_2 or "torch" in spec.versions or spec.engine not in ("single", "ddp"):
        return False
    return not added_to(spec) and added_to(running(spec, "torch", ZEROES))


TORCH_2_1 = (4, 34)
"""The transformers version of the month in which torch 2.1 came out (October 2023)."""


def _may_copy_states(spec: Spec) -> bool:
    """Whether a torch of before 2.1 may run, which copies the states that it reads of a checkpoint onto the GPU."""
    stated = release(spec.versions.get("transformers"))
    if stated is None or stated[:2] >= TORCH_2_1 or "torch" in spec.versions or not spec.resumes:
        return False
    return spec.engine in ("single", "ddp") and reads_on_gpu(spec)


LARGE_RANK = 32
"""A rank from which adapters count beside a model whose layers are checkpointed: on all linear layers of LLaMA-13B they
take 1.9 GiB with their gradients and states, on PEFT's own choice 0.2."""


def _may_adapt_all(spec: Spec) -> bool:
    """Whether adapters may be on more than PEFT's own choice: LLaMA-Factory's ``lora_target`` is ``all`` by default.

    Where every layer is checkpointed, its activations are those of no more than one of them; of a small rank the
    weights and their states are little, too.
    """
    if spec.gradient_checkpointing is True and spec.lora_rank < LARGE_RANK:
        return False
    # Who names the modules, or whose code picks them, has left nothing open.
    return spec.method == "lora" and spec.stated.isdisjoint({"lora_targets", "front_end", "trainer"})


def _may_repeat_groups(spec: Spec) -> bool:
    """Whether keys and values of groups may be repeated, for a kernel that knows no groups but needs no scores."""
    recipe, facts = of(spec), language(spec.facts)
    if "padded_batches" in spec.stated or recipe.padded or facts.kv_heads >= facts.heads:
        return False
    if recipe.attention != "sdpa" or recipe.sdpa != "efficient" or recipe.transformers < GROUPED_SDPA:
        return False
    return any(kind.window is None or spec.seq_len < kind.window for kind in kinds(facts))


def _may_have_more_words(spec: Spec) -> bool:
    """Whether the model's name leaves its vocabulary open."""
    return spec.facts.larger is not None


def _with_more_words(spec: Spec) -> Spec:
    larger = spec.facts.larger
    assert larger is not None
    return replace(spec, facts=larger if larger.tied == spec.facts.tied else litgpt.as_built(larger))


def _may_decode_one(spec: Spec) -> bool:
    """Whether nobody says how long what a decoder writes is."""
    return halves(spec.facts) is not None and spec.decoder_seq_len is None and spec.seq_len > 1


def _may_ask_less(spec: Spec) -> bool:
    """Whether nobody says how long the prompts are that an evaluation only generates from."""
    asked = spec.evaluation
    return asked is not None and asked.generates == "only" and asked.prompt_len is None


def _asking_one_token(spec: Spec) -> Spec:
    assert spec.evaluation is not None
    return replace(spec, evaluation=replace(spec.evaluation, prompt_len=1))


def _without_auto_gptq(spec: Spec) -> Spec:
    return replace(spec, versions={name: found for name, found in spec.versions.items() if name not in AUTO_GPTQ})


def _may_go_row_by_row(spec: Spec) -> bool:
    """Whether plain torch may put the delta rule's systems together in the way that takes more."""
    return "transformers" not in spec.versions and "gated_delta_rule" in _missing(spec)


def _missing(spec: Spec) -> tuple[str, ...]:
    """Kernels that would run if their packages were installed, where nobody says whether they are."""
    if "fused_kernels" in spec.stated:
        return ()
    return tuple(name for name in traits(language(spec.facts)).packages if name not in spec.fused_kernels)


def _with_packages(spec: Spec) -> Iterator[Alternative]:
    """The packages' kernels in the place of plain torch."""
    names = _missing(spec)
    if not names:
        return
    what, packages = (" and ".join(PACKAGES[name][part] for name in names) for part in range(2))
    yield Alternative(
        replace(spec, fused_kernels=(*spec.fused_kernels, *names)),
        f"{what} in plain torch, as transformers runs them without {packages} (not stated; fused_kernels would say; "
        "the low end counts their kernels)",
    )


def _with(library: str, version: str) -> Callable[[Spec], Spec]:
    """The run with a library of this version."""
    return lambda spec: running(spec, library, version)


def _with_last_4(spec: Spec) -> Spec:
    return running(spec, "transformers", ".".join(map(str, LAST_TRANSFORMERS_4)))


def _with_oldest(spec: Spec) -> Spec:
    return running(spec, "transformers", RECENT["transformers"])


def _text_alone(spec: Spec) -> Iterator[Alternative]:
    from lintfit.memory.verdict.seeing import text_alone

    found = text_alone(spec)
    if found is not None:
        yield Alternative(*found)


def _with_images(spec: Spec) -> Iterator[Alternative]:
    from lintfit.memory.verdict.seeing import with_images

    found = with_images(spec)
    if found is not None:
        seen, note = found
        yield Alternative(seen if known(spec.facts) else _remote_code(seen), note)


CHECKPOINTED = frozenset({"electra", "led", "umt5"})
"""Uncounted types whose classes are transformers' own, which checkpoint where they are told to
(``supports_gradient_checkpointing``)."""


def _remote_code(spec: Spec) -> Spec:
    """A model whose own code nobody has counted may ignore gradient checkpointing and compute attention eagerly."""
    if spec.facts.model_type in CHECKPOINTED:
        return replace(spec, attention="eager")
    return replace(spec, gradient_checkpointing=False, attention="eager")


def _may_hold_inputs(spec: Spec) -> bool:
    """Whether a bitsandbytes of before 0.43.2 may run, whose 4-bit layers keep their inputs until the graph goes.

    Where layers are checkpointed, what was written for that version checkpoints reentrantly, which frees them.
    """
    unstated = "bitsandbytes" not in spec.versions and spec.gradient_checkpointing is False
    return unstated and (spec.quantization or "").startswith("nf4")


def _may_upcast(spec: Spec) -> bool:
    """Whether PEFT's ``prepare_model_for_kbit_training`` may have cast what is not quantised to fp32.

    bitsandbytes then gives its results in fp32, so that every activation takes twice its bytes: measured, 8.0 GiB
    for the inputs of Mistral's 32 layers (fms, ``baseline-peft-bnb``). LitGPT does without PEFT and casts nothing
    to fp32 (``finetune/lora.py``, 0.5.13: Fabric's ``BitsandbytesPrecision``).
    """
    return spec.kbit_upcast is None and keeps_upcast(spec) and spec.front_end != "litgpt"


def _upcast(spec: Spec) -> Spec:
    return replace(spec, kbit_upcast="all")


LAST_BEFORE = (4, 57)
"""The transformers version of the month in which accelerate 1.11 came out (October 2025)."""


def _may_reduce_each(spec: Spec) -> bool:
    """Whether an accelerate of before 1.11 may run, beside a transformers of that time, where it makes a difference."""
    stated = release(spec.versions.get("transformers"))
    if (stated is not None and stated[:2] > LAST_BEFORE) or "accelerate" in spec.versions:
        return False
    second = spec.engine == "fsdp" and spec.fsdp is not None and spec.fsdp.version == 2
    return second and spec.gradient_accumulation_steps > 1


def _may_be_reentrant(spec: Spec) -> bool:
    """Whether transformers 4 may run, which checkpoints reentrantly, where FSDP 1 then holds every layer's input.

    FSDP's hooks hold on to the inputs of units that are frozen: adapters beside them, no more.
    """
    if "transformers" in spec.versions or "use_reentrant" in spec.stated or spec.front_end == "litgpt":
        return False
    checkpoints = spec.gradient_checkpointing is True and not spec.use_reentrant
    return checkpoints and spec.method == "lora" and hooks_frozen(_reentrant(spec))


def _reentrant(spec: Spec) -> Spec:
    return replace(spec, use_reentrant=True)


def _may_run_sdpa(spec: Spec) -> bool:
    """Whether transformers 4 may run, which takes SDPA unasked where the newest writes the scores out.

    Where every layer is checkpointed they are those of one.
    """
    if spec.gradient_checkpointing is True:
        return False
    return _open_attention(spec) == "eager" and attention_of(_with_last_4(spec)) == "sdpa"


def _may_write_scores(spec: Spec) -> bool:
    """Whether a transformers of before SDPA may run, which writes the scores out."""
    return _open_attention(spec) == "sdpa" and attention_of(_with_oldest(spec)) == "eager"


def _open_attention(spec: Spec) -> str | None:
    """The kernel that the newest transformers takes unasked; None where it is asked for one, or its version stated."""
    asked = "attention" in spec.stated or "transformers" in spec.versions or spec.front_end == "litgpt"
    return None if asked or spec.attention != "sdpa" else attention_of(spec)


def _may_quantise_experts(spec: Spec) -> bool:
    """Whether a transformers of before 5 may run, where bitsandbytes finds the experts among the linear layers."""
    if spec.facts.moe is None or "transformers" in spec.versions or spec.facts.model_type in ALWAYS_FUSED:
        return False
    said = spec.front_end == "litgpt" or "quantized_experts" in spec.stated
    return (spec.quantization or "").startswith(("nf4", "int8")) and not said


CHEAPER = (
    Guess(
        _may_decode_one,
        lambda spec: replace(spec, decoder_seq_len=1),
        "a decoder of {spec.seq_len} tokens, as many as the encoder reads (decoder_seq_len not stated; the low end has "
        "one)",
        by_batch=True,
    ),
    Guess(
        lambda spec: of(spec).unpacked is not None,
        _without_auto_gptq,
        "GPTQ weights that AutoGPTQ unpacks in plain torch (its Triton and exllama kernels do not: the low end)",
    ),
    Guess(
        _may_ask_less,
        _asking_one_token,
        "an evaluation of prompts of {spec.seq_len} tokens, as long as the training's sequences "
        "(evaluation.prompt_len not stated; the low end has one)",
    ),
    Guess(
        _may_repeat_groups,
        lambda spec: replace(spec, padded_batches=True),
        "attention in SDPA's reference path, with fp32 scores: transformers since 4.54 hands groups of heads on as "
        "they are, also to a GPU before Ampere (padded_batches not stated; a mask or an older version has them "
        "repeated: the low end)",
        by_batch=True,
    ),
    Guess(
        _may_reduce_each,
        _with("accelerate", REDUCES_EACH),
        "whole gradients of earlier micro-batches, as accelerate since 1.11 leaves them under FSDP 2 (version not "
        "stated; earlier ones reduce each: the low end)",
        restated=True,
    ),
    Guess(
        _may_quantise_experts,
        _with("transformers", LINEAR_EXPERTS),
        "experts in 16 bits, as transformers 5 has them (version not stated; before, bitsandbytes quantises them: the "
        "low end)",
        restated=True,
    ),
    Guess(
        _may_run_sdpa,
        _with_last_4,
        "attention in eager scores, as transformers 5 runs this model unasked (neither stated; transformers 4 takes "
        "SDPA: the low end)",
    ),
)
"""What may need less, beside what :func:`cheaper` finds in several ways."""

DEARER = (
    Guess(
        _may_have_more_words,
        _with_more_words,
        "a vocabulary of {spec.facts.vocab} (the model's name leaves it open; the high end has "
        "{spec.facts.larger.vocab})",
        restated=True,
    ),
    Guess(
        litgpt.possible,
        litgpt.as_litgpt,
        "a loss in chunks as transformers' models have it (whose code trains is not stated; front_end would say; the "
        "range counts LitGPT's, too)",
        restated=True,
        either=True,
    ),
    Guess(
        dated,
        of_its_time,
        "the newest libraries, which this model's own code is older than (versions not stated; those of its time: the "
        "high end)",
        restated=True,
    ),
    Guess(lambda spec: not known(spec.facts), _remote_code),
    Guess(_may_hold_inputs, _with("bitsandbytes", "0.43.1")),
    Guess(_may_upcast, _upcast, restated=True),
    Guess(
        _may_reorder,
        _with("bitsandbytes", "0.38.1"),
        "a bitsandbytes that saves int8 weights as they are (version not stated; 0.38, of the same months, copies them "
        "twice: the high end)",
        restated=True,
    ),
    Guess(
        _may_copy_masters,
        _with("deepspeed", "0.16.9"),
        "a DeepSpeed whose offloaded step casts on the host (version not stated; 0.14.1 to 0.16.9, of the same months "
        "as this transformers, put the fp32 masters on the GPU: the high end)",
        restated=True,
    ),
    Guess(
        _may_keep_gradients,
        _with("torch", ZEROES),
        "gradients that go behind the step, as torch 2 frees them (version not stated; torch 1, of the same "
        "months as this transformers, fills them with zeros: the high end)",
        restated=True,
    ),
    Guess(
        _may_copy_states,
        _with("torch", COPIES),
        "states of a checkpoint that go into their place as they are read (version not stated; torch before 2.1, of "
        "the same months as this transformers, copies them: the high end)",
        restated=True,
    ),
    Guess(
        _may_adapt_all,
        lambda spec: replace(spec, lora_targets="all-linear"),
        "whose code makes the adapters is not stated: the high end has them on all linear layers, as LLaMA-Factory",
        restated=True,
    ),
    Guess(
        _may_be_reentrant,
        _reentrant,
        "checkpointing that is not reentrant, as in transformers 5 (version not stated; reentrant as in transformers "
        "4, FSDP holds every layer's input: the high end)",
    ),
    Guess(
        _may_write_scores,
        _with_oldest,
        "attention in SDPA (neither it nor the version of transformers stated; of two years ago, it writes the scores "
        "of this model out: the high end)",
    ),
    Guess(_may_go_row_by_row, _with("transformers", ROW_BY_ROW)),
)
"""What may need more."""

OLDER_TRL = (
    Guess(
        lambda spec: spec.trainer in FUSED and spec.front_end != "torchtune",
        _with("trl", WHOLE_LOGITS),
        "the tiled loss of TRL 1.15 (version not stated; earlier ones hold whole logits)",
        restated=True,
    ),
    Guess(
        lambda spec: spec.trainer in ODDS,
        _with("trl", WHOLE_LOGITS),
        "the kernel for log-probabilities of TRL 1.14 (version not stated; earlier ones hold more copies)",
        restated=True,
    ),
    Guess(
        lambda spec: spec.trainer == "ppo",
        _with("trl", WHOLE_SOFTMAX),
        "the PPOTrainer of TRL 0.15 and later (version not stated; earlier ones hold a log-softmax more)",
        restated=True,
    ),
)
"""What may need more where TRL's version is not stated."""
