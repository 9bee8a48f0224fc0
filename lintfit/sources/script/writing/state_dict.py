"""The whole state dict by Accelerate, which gathers it on the host of the first rank, in the place of the model's own.

``Accelerator.get_state_dict`` takes FSDP's with ``FullStateDictConfig(offload_to_cpu=True, rank0_only=True)`` from
0.25 on (``accelerator.py``), gathers DeepSpeed's of an engine, and unwraps every other model, so that launches without
FSDP save as before. The Trainer has what is wrapped in ``model_wrapped``; ``model`` is the bare one under DeepSpeed.
"""

from __future__ import annotations

import libcst as cst

from lintfit.documents.model import Edit, FileEdit
from lintfit.errors import CannotWrite
from lintfit.sources.script.reading.saving import whole
from lintfit.sources.script.writing.file_edits import Edits, Script

_OF_FSDP = (0, 25)
"""The first accelerate that does so of FSDP."""
HAS_ACCELERATOR = (4, 31)
"""The first transformers whose Trainer shards by an Accelerator of its own (``trainer.py``)."""


def from_host(source: Script) -> Edits:
    """``trainer.accelerator.get_state_dict(trainer.model_wrapped)`` for ``trainer.model.state_dict()``."""
    record = whole(source.reading)
    if record is None:
        return ()
    function = record.node.func
    model = function.value if isinstance(function, cst.Attribute) else None
    trainer = model.value if isinstance(model, cst.Attribute) else None
    ours = isinstance(model, cst.Attribute) and model.attr.value in ("model", "model_wrapped")
    if model is None or trainer is None or not ours or record.node.args:
        raise CannotWrite("the state dict is to be taken by accelerator.get_state_dict(model)")
    asked = (("transformers", HAS_ACCELERATOR), ("accelerate", _OF_FSDP))
    versions = [(source.reading.version(library), least) for library, least in asked]
    if any(version is not None and version < least for version, least in versions):
        raise CannotWrite("the state dict is to be taken within FSDP.state_dict_type, on the host of the first rank")
    code = cst.Module(()).code_for_node(trainer)
    document = source.reading.calls.document_of(record.node)
    if "state_dict_type(" in document.text:
        raise CannotWrite("state_dict() is to be taken inside of the block with FSDP.state_dict_type, not before it")
    span = document.span(record.node)
    edit = Edit(span, f"{code}.accelerator.get_state_dict({code}.model_wrapped)")
    return (FileEdit(document.path, edit, document),)
