"""Fields of a mapping, also where a flag is given it as JSON (``--gradient_checkpointing_kwargs '{"use_reentrant":
false}'``), which ``TrainingArguments`` parses (``_convert_str_dict``)."""

from __future__ import annotations

import json

from lintfit.sources.script.interpreter.values import Const, Table, Value


def flag_in(value: Value | None, *path: str) -> bool | None:
    """What a mapping, or its JSON, says at a path where that is true or false; None for anything else."""
    if isinstance(value, Table):
        inner = value.items.get(path[0])
        if len(path) > 1:
            return flag_in(inner, *path[1:])
        return inner.value if isinstance(inner, Const) and isinstance(inner.value, bool) else None
    if not isinstance(value, Const) or not isinstance(value.value, str):
        return None
    try:
        found = json.loads(value.value)
    except (ValueError, RecursionError):
        return None
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, bool) else None
