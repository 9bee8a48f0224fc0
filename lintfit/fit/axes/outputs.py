"""Outputs of the model that a loop of the script's own holds beside the backward pass, let go of before: the loss alone
is needed, and it keeps what its backward needs."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.fit.options import Option, Subject


def options(subject: Subject) -> Iterator[Option]:
    """Only where a name holds them."""
    if subject.spec.loop_outputs != "dropped":
        yield Option("outputs freed before the backward pass", {"loop_outputs": "dropped"})
