"""Writes the attention kernel: at the call that loads the model, else where TRL gets it for a model given by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lintfit.documents import python_edits
from lintfit.sources.script.interpreter.values import Value

if TYPE_CHECKING:
    from lintfit.sources.script.writing.edits import Writer
    from lintfit.sources.script.writing.file_edits import Edits


def attend(writer: Writer, kernel: str) -> Edits | None:
    """``attn_implementation`` of the load; of a model that TRL loads itself, the flag, the key of a file or the entry
    of ``model_init_kwargs`` that says it."""
    home = writer.source.reading.homes.get("attention")
    if writer.found.trained_load is not None or home is None:
        return writer.load_argument("attn_implementation", kernel)
    node = home.origin if isinstance(home.origin, cst.SimpleString) else None
    code = python_edits.quote(writer.calls.document_of(node), kernel) if node is not None else f'"{kernel}"'
    return writer.replace_value(Value(home.origin), node, kernel, code)
