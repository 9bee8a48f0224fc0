"""Records that nothing changes once they are made, at the price of records that may.

``@dataclass(frozen=True)`` sets every field through ``object.__setattr__``, which takes four times as long. Here the
type checker alone sees to it that nobody assigns to a field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

Record = TypeVar("Record")


@dataclass_transform(frozen_default=True)
def frozen(cls: type[Record]) -> type[Record]:
    """A dataclass with slots, a hash over all fields, and no assignment that mypy lets pass."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
