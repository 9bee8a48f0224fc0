"""Attention that a script puts in the place of transformers' own: ``LlamaAttention.forward = forward``."""

from __future__ import annotations

import re

import libcst as cst

from lintfit.documents.python_walk import walk
from lintfit.sources.script.interpreter.expressions import dotted
from lintfit.sources.script.interpreter.values import Function, Value, alternatives
from lintfit.sources.script.reading.collector import Reading

_CLASS = re.compile(r"transformers\.models\.(\w+)\.modeling_\w+\.(?!\w*(?:Vision|Cross|Sdpa))\w*Attention")
"""Classes that run where nobody asks for another kernel, by the folder, which has the model type's name."""

_KERNELS = (
    ("flash_attention_2", re.compile(r"_?flash_?(attn|attention)\w*|FlashAttention")),
    ("sdpa", re.compile(r"scaled_dot_product_attention|memory_efficient_attention")),
    ("eager", re.compile(r"softmax|Softmax")),
)
"""Kernels by what a function calls, the first that it does: softmax stands in the branch for generation beside one."""

_BY_NAME = re.compile(r"replace_(\w+?)_attn(?:_forward)?_with_(flash|xformers|sdpa?)(?:_attn|$)\w*")
"""Functions of packages that patch a model type's attention, by their names: ``replace_llama_attn_with_flash_attn`` of
FastChat (``fastchat/train/llama_flash_attn_monkey_patch.py``, ``llama2_flash_attn_monkey_patch.py``,
``llama_xformers_attn_monkey_patch.py``) and of LLaVA, whose files have the same names."""
_NAMED = {"flash": "flash_attention_2", "xformers": "sdpa", "sdp": "sdpa", "sdpa": "sdpa"}


def read(reading: Reading) -> None:
    """Note the kernel of each model type whose attention is a function of the project, and whether that is sure.

    A function that calls none of them may hand on to the one that it replaces.
    """
    kernels = _by_name(reading)
    names = [f"{kind.capitalize()}Attention" for kind in kernels]
    for replaced in reading.walk.replaced:
        match = _CLASS.fullmatch(replaced.cls)
        found = {_kernel(each) for each in alternatives(replaced.value)}
        if match is None or replaced.taken is False or None in found:
            continue
        kernel = next(name for name, _ in reversed(_KERNELS) if name in found)
        sure = replaced.taken is True and ("eager" not in found or len(found) == 1)
        kernels[match[1]] = kernel, sure
        names.append(replaced.cls.rpartition(".")[2])
    if kernels:
        reading.derive("own_attention", kernels, f"the project replaces {names[-1]}.forward")


def _by_name(reading: Reading) -> dict[str, tuple[str, bool]]:
    """The kernels that functions of packages put in, whose code is not read, and whether they surely run."""
    kernels: dict[str, tuple[str, bool]] = {}
    for record in reading.records:
        match = _BY_NAME.fullmatch(record.name) if record.callee is None and record.taken is not False else None
        if match is not None:
            kernels[match[1]] = _NAMED[match[2]], record.taken is True
    return kernels


def _kernel(value: Value) -> str | None:
    if not isinstance(value, Function) or value.node is None:
        return None
    called = {dotted(node.func).rpartition(".")[2] for node in walk(value.node) if isinstance(node, cst.Call)}
    return next((name for name, pattern in _KERNELS if any(pattern.fullmatch(each) for each in called)), None)
