"""SmolVLM: Idefics 3 with small parts."""

from lintfit.catalog.architectures.idefics3 import DEFAULTS, REQUIRED, language, shape, tensors

__all__ = ["DEFAULTS", "REQUIRED", "language", "shape", "tensors"]
