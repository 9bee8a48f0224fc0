"""Falcon Mamba: Mamba's layers, whose mixers have norms without weights."""

from __future__ import annotations

from lintfit.catalog.architectures.mamba import DEFAULTS, REQUIRED, mixer, shape, tensors

__all__ = ["DEFAULTS", "REQUIRED", "mixer", "shape", "tensors"]
