"""The encoder and the decoder of a model that has both, each as a model of its own."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import replace
from lintfit.memo import Memo
from lintfit.memory.activations.families import traits
from lintfit.memory.spec import Encoded, Spec

_HALVES: Memo[tuple[ModelFacts, ModelFacts]] = Memo()


def halves(facts: ModelFacts) -> tuple[ModelFacts, ModelFacts] | None:
    """The encoder and the decoder as models of their own, each with all of the parameters; None for any other model."""
    both = traits(facts).halves
    if both is None:
        return None

    def made() -> tuple[ModelFacts, ModelFacts]:
        encoder, decoder = (
            replace(facts, layers=layers, config={**facts.config, "is_decoder": decodes})
            for layers, decodes in zip(both.layers(facts), (False, True), strict=True)
        )
        return encoder, decoder

    return _HALVES.get(facts, "", made)


def of_decoder(spec: Spec) -> Spec:
    """What the decoder of an encoder and a decoder runs; any other model's spec as it is.

    Its own tokens come without a mask; the encoder's are in ``Spec.encoded``.
    """
    found = halves(spec.facts) if spec.encoded is None else None
    if found is None:
        return spec
    read = Encoded(spec.seq_len, spec.padded_batches)
    own = spec.decoder_seq_len or spec.seq_len
    return replace(spec, facts=found[1], encoded=read, seq_len=own, decoder_seq_len=None, padded_batches=False)
