"""Models that look up in the data where tokens go: fake tensors have none, so that these are spread evenly.

Their own code runs but for the lines that ask.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import textwrap
from importlib import import_module
from typing import Any
from unittest import mock

import torch

_ASKING: dict[str, tuple[str, str, dict[str, str]]] = {
    "dbrx": (
        "DbrxExperts",
        "forward",
        {
            "expert_hit = torch.greater(expert_mask.sum(dim=(-1, -2)), 0).nonzero()": "expert_hit = ()",
            "for expert_idx in expert_hit:": "for expert_idx in range(self.num_experts):",
            "expert_idx = expert_idx[0]": "pass",
            "torch.where(expert_mask[expert_idx])": "_places(top_k_index, self.num_experts)",
        },
    ),
    "jetmoe": (
        "JetMoeTopKGating",
        "forward",
        {"expert_size.tolist()": "_counts(top_k_indices, self.num_experts)"},
    ),
}
"""By module: the class, its function, and what stands in for the lines that ask."""


def _counts(chosen: Any, experts: int) -> list[int]:
    """How many tokens each expert has."""
    each, more = divmod(chosen.numel(), experts)
    return [each + (number < more) for number in range(experts)]


def _places(chosen: Any, experts: int) -> tuple[Any, Any]:
    """Which choice of which token an expert is, for those that it has."""
    found = torch.empty(-(-chosen.numel() // experts), 2, dtype=torch.long, device=chosen.device)
    which, token = found.unbind(1)
    return which, token


def spread() -> contextlib.ExitStack:
    """Tokens of these models are spread evenly while this is open."""
    stack = contextlib.ExitStack()
    for kind, (name, function, lines) in _ASKING.items():
        module = import_module(f"transformers.models.{kind}.modeling_{kind}")
        owner = getattr(module, name)
        source = textwrap.dedent(inspect.getsource(getattr(owner, function)))
        for line, other in lines.items():
            if line not in source:
                sys.exit(f"{name}.{function} has no {line!r} any more")
            source = source.replace(line, other)
        found: dict[str, Any] = {**vars(module), "_counts": _counts, "_places": _places}
        exec(compile(source, f"{module.__file__}", "exec"), found)
        stack.enter_context(mock.patch.object(owner, function, found[function]))
    return stack
