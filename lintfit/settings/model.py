"""Settings: the named values of a run, each with where it came from.

Names are the keys of the ``estimate --spec`` contract (``zero_stage``, ``micro_batch_size``, …) plus the few
that only the files know (``bf16``, ``fp16``, ``train_batch_size``, ``learning_rate``, …).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Literal, TypeGuard

from lintfit.documents.model import Document, Span
from lintfit.frozen import frozen, replace


class Special(Enum):
    """Values that are not values."""

    AUTO = "auto"
    """The word ``"auto"``: the library fills it from elsewhere."""
    UNKNOWN = "unknown"
    """Written in the file, but what it comes to is not statically known without running it."""

    def __repr__(self) -> str:
        return self.value


AUTO = Special.AUTO
UNKNOWN = Special.UNKNOWN

BY_SCRIPT = "the script's default; no launch line is known"
"""What a setting is taken from where a script that parses its arguments stands alone."""

BY_CARD = "unsloth takes bfloat16 wherever the GPU has it"
"""Why a script has a half precision that only the GPU decides."""

BY_UNSLOTH = "by unsloth"
"""Stands in ``own_attention`` for the model types that Unsloth has attention of its own for (``Code.unsloth``)."""


@frozen(eq=False)
class Place:
    """A span in a document: what a finding points at and a fix edits."""

    document: Document
    span: Span

    @property
    def text(self) -> str:
        return self.document.slice(self.span)

    def __str__(self) -> str:
        position = self.document.position(self.span.start)
        return f"{self.document.path.as_posix()}:{position.line}"

    def __repr__(self) -> str:
        return f"<{self}>"


class LatePlace(Place):
    """A place whose span is found when somebody asks for it: in a tree that takes long, and few are ever shown."""

    __slots__ = ("_find",)

    def __init__(self, document: Document, find: Callable[[], Span]) -> None:
        setattr(self, "document", document)  # noqa: B010  (a record's fields are the type checker's alone)
        self._find = find

    def __getattr__(self, name: str) -> Any:
        """The span, as long as its slot is empty."""
        if name != "span":
            raise AttributeError(name)
        found = self._find()
        super().__init__(self.document, found)
        return found


@frozen(eq=False)
class Provenance:
    """Where a value came from.

    ``file``: written at ``place``. ``default``: a library's default, ``detail`` says whose and which version.
    ``option``: a flag of lintfit or a key of its config, named in ``detail``. ``derived``: follows from other
    settings, ``detail`` says how. ``assumed``: nobody said; ``detail`` says what was taken and why.
    """

    kind: Literal["file", "default", "option", "derived", "assumed"]
    detail: str = ""
    place: Place | None = None

    @classmethod
    def at(cls, document: Document, span: Span, detail: str = "") -> Provenance:
        return cls("file", detail, Place(document, span))

    @classmethod
    def default(cls, detail: str) -> Provenance:
        return cls("default", detail)

    def __str__(self) -> str:
        return str(self.place) if self.place else self.detail


@frozen(eq=False)
class Setting:
    """One named value with its provenance, and the settings of the same name that it overrode."""

    name: str
    value: Any
    provenance: Provenance
    overrode: tuple[Setting, ...] = ()

    @property
    def known(self) -> bool:
        return not isinstance(self.value, Special)

    def over(self, *others: Setting | None) -> Setting:
        """This setting, remembering the ones it beats."""
        return replace(self, overrode=(*self.overrode, *(other for other in others if other is not None)))


def spoken(value: Any) -> str:
    """A setting's value in a sentence: ``on`` and ``off`` for switches, ``none`` for what is not set."""
    if isinstance(value, Special):
        return value.value
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(spoken, value))
    return "none" if value is None else str(value)


def in_words(names: Iterable[str]) -> str:
    """Names of settings in a sentence: ``micro batch size, seq len``."""
    return ", ".join([name.replace("_", " ") for name in names])


def is_count(value: object, most: int | None = None) -> TypeGuard[int]:
    """Whether a value is a whole number of things, at least one of them and at most ``most``."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0 and (most is None or value <= most)
