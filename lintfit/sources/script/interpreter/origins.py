"""Where a value of a script comes from, which every value says."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from lintfit.documents.model import DataDocument, KeyPath, Span
from lintfit.frozen import frozen
from lintfit.sources.launchers.flags import Flag


@frozen
class Library:
    """The origin of a value that a library filled in: whose default it is."""

    detail: str


@frozen
class Environment:
    """The origin of a value that an environment variable holds."""

    name: str


@frozen(eq=False)
class Datum:
    """The origin of a value that a JSON or YAML file holds, which the script reads."""

    document: DataDocument
    path: KeyPath
    span: Span


Origin = cst.CSTNode | Flag | Library | Environment | Datum | None


@dataclass(slots=True, eq=False)
class Value:
    """Anything at all; on its own: not known. ``over`` is what it beat: the default of a flag, a config's own value."""

    origin: Origin = None
    over: Value | None = field(default=None, kw_only=True)
