"""What tells transformers of ZeRO-3 before the model is loaded, which is then partitioned as it is read."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.fit.options import Option, Subject


def options(subject: Subject) -> Iterator[Option]:
    """Only where a script loads the whole model first."""
    if subject.run.script is not None and not subject.spec.zero3_init:
        yield Option("ZeRO-3 configured before the load", {"zero3_init": True})
