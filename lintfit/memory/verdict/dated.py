"""Models whose code lies in their repository, written for libraries of its time, beside which it still runs."""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.frozen import replace
from lintfit.memory.spec import Spec

OF_ITS_TIME: Mapping[str, Mapping[str, str]] = {
    "qwen": {"transformers": "4.37.2", "torch": "2.0.1", "deepspeed": "0.12.3"},
}
"""By model type: what its authors ran it with. QwenLM/Qwen 2df8e8a: ``requirements.txt`` has ``transformers<4.38.0``,
its tables were measured with PyTorch 2.0 (``README.md``), DeepSpeed was at 0.12.3 when they were made (December
2023)."""


def dated(spec: Spec) -> bool:
    """Whether the code of a model says of which time its libraries are, and the spec does not."""
    found = OF_ITS_TIME.get(spec.facts.model_type)
    return found is not None and "transformers" not in spec.versions and not spec.versions.keys() >= found.keys()


def of_its_time(spec: Spec) -> Spec:
    """The run with the libraries that its model was made for, where no others are stated."""
    return replace(spec, versions={**OF_ITS_TIME[spec.facts.model_type], **spec.versions})
