"""What every dialect's reader returns: the settings that one document states, and how to restate them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from lintfit.documents.model import Document, FileEdit
from lintfit.settings.model import Setting


class Source(Protocol):
    """One document, read as one dialect."""

    @property
    def document(self) -> Document: ...

    @property
    def dialect(self) -> str:
        """``deepspeed``, ``accelerate``, ``script``, ``launcher``, or a recipe's name."""

    @property
    def settings(self) -> Mapping[str, Setting]:
        """What this document states, by setting name; what it does not mention is absent."""

    def write(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """The edits that make this document say ``name = value``; None where it cannot say it.

        Adds the statement where it is absent and replaces it where it is there. Touches nothing else.
        """
