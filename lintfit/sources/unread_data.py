"""What a YAML or JSON file is that no run has read, by the keys in its text: a recipe, arguments, a job, or neither."""

from __future__ import annotations

import re

from lintfit.documents.model import Kind
from lintfit.schema.megatron import MEGATRON
from lintfit.sources.recipes.forms import (
    AMOUNT,
    LANGUAGE,
    MODEL,
    NOT_NAMED,
    NOT_YET,
    RATE,
    Keys,
    form_of,
    keys_of,
)
from lintfit.sources.recipes.front_ends import READERS

_MEGATRON_KEYS = 2
"""From this many of their own keys on a file is a config of GPT-NeoX or Megatron; hyphens count as underscores."""

_LAUNCHES = re.compile(
    r"\b(?:torchrun|accelerate[ -]launch|llamafactory-cli train|axolotl train|swift (?:sft|pt|rlhf)|tune run"
    r"|torch\.distributed\.(?:run|launch)|deepspeed +(?:-|\S+\.py))"
)


def unread_data(text: str, kind: Kind) -> str | None:
    """What a YAML or JSON file looks like, with why it is not understood; None where it looks like no part of a run."""
    keys = keys_of(text, kind)
    return (_front_end(text, keys) or _job(text, keys) or _own(keys)) if keys is not None else None


def _front_end(text: str, keys: Keys) -> str | None:
    form = form_of(text, keys)
    if form is not None:
        return f"{form.what}, {NOT_NAMED if form.front_end in READERS else form.why}"
    plain = {key.replace("-", "_") for key in keys.top}
    return f"a GPT-NeoX or Megatron config, {NOT_YET}" if len(plain & MEGATRON) >= _MEGATRON_KEYS else None


def _job(text: str, keys: Keys) -> str | None:
    """A job of a cluster whose command trains; what a CI or docker-compose runs is none."""
    if _LAUNCHES.search(text) is None:
        return None
    if {"apiVersion", "kind"} <= keys.top:
        return f"a Kubernetes job that launches a training, {NOT_YET}"
    runs, where = {"command", "entrypoint", "run"} & keys.top, {"cluster", "compute", "resources"} & keys.top
    return f"a job file that launches a training, {NOT_YET}" if runs and where else None


def _own(keys: Keys) -> str | None:
    """A recipe by what every recipe says: a learning rate, how much is trained on, and which language model."""
    whole = all(keys.all & group for group in (RATE, AMOUNT, MODEL, LANGUAGE))
    return f"a recipe of an unknown front end, {NOT_NAMED}" if whole else None
