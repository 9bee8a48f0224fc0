"""A whole state dict that is gathered on the host, not as a copy of the model on each GPU."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.fit.options import Option, Subject


def options(subject: Subject) -> Iterator[Option]:
    """Only where the script takes it as it is from a model that FSDP shards."""
    spec = subject.spec
    if spec.engine == "fsdp" and spec.saves_on_gpu:
        yield Option("the state dict saved from the host", {"whole_state_dict": False})
