"""Which layers of a frozen model leave a graph."""

from __future__ import annotations

import pytest

from lintfit.memory.engines.model_states import states
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.recording import record


@pytest.mark.parametrize(
    ("model", "targets", "flows"),
    [
        ("facebook/opt-350m", ["fc2"], False),
        ("facebook/opt-350m", ["project_in", "fc2"], True),
        ("albert/albert-base-v2", ["ffn_output"], False),
        ("albert/albert-base-v2", ["embedding_hidden_mapping_in", "ffn_output"], True),
    ],
)
def test_an_adapter_between_embeddings_and_first_layer_gives_that_a_gradient(
    model: str, targets: list[str], flows: bool
) -> None:
    """As transformers 5.23 and PEFT have it: an adapter in front lets the first layer's input require a gradient."""
    spec = spec_from_mapping({"model": model, "method": "lora", "lora_targets": targets, "seq_len": 256})
    first, second = record(spec, states(spec)).layers[:2]
    assert (first.saved == second.saved) is flows
