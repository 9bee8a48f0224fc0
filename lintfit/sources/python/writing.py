"""Writes a setting back where it lives: the launch line's flag, the script's keyword, a dataclass default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lintfit.findings import FileEdit
    from lintfit.sources.script import ScriptSource


def write(source: ScriptSource, name: str, value: Any) -> tuple[FileEdit, ...] | None:
    return None
