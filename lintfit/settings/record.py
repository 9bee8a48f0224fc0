"""The record of a setting: the columns of :mod:`.registry`."""

from __future__ import annotations

from typing import Any, Literal

from lintfit.frozen import frozen
from lintfit.settings.kinds import OF_FILES, ValueKind, metavar
from lintfit.settings.said import SAID, Said

By = Literal["", "script", "script-or-deepspeed", "zero", "zero-section", "split"]
"""Who decides a setting where one rule serves for several: a script (with the flags of its launch line) or a recipe;
that or the DeepSpeed JSON; the engine, of ZeRO's stage and offload; the ``zero_optimization`` of a DeepSpeed JSON; what
splits a model or a sequence over ranks. Others have a rule of their own in :mod:`lintfit.run.resolve`."""

_NOTHING = object()


@frozen(eq=False)
class Record:
    """One setting."""

    name: str
    """Also its key in a spec and, with ``-`` for ``_``, its flag."""
    kind: ValueKind = OF_FILES
    help: str = ""
    """One sentence, as ``lintfit estimate --help`` has it."""
    values: str = ""
    """What the reference page says of its values, where its kind does not say it all."""
    metavar: str = ""
    """What stands for a value in a command's help, where its kind has no word for it."""
    flag: Literal["", "spec", "hardware"] = ""
    """Whether it is a flag: of ``estimate`` alone, or also of ``check`` and ``fit``."""
    aliases: tuple[str, ...] = ()
    """What else people call its flag, without the dashes."""
    as_it_is: bool = False
    """Whether what a run has of it becomes the spec's field of the same name."""
    by: By = ""
    lower_bound: Any = _NOTHING
    """The value that needs least memory, taken where one is written that is not statically known."""
    default: Any = _NOTHING
    """What it is where nobody states it: of the field of the memory model's ``Spec`` and of the key of a spec."""
    default_by: str = ""
    """As the reference page says it, where versions or other settings decide: computed in
    :mod:`lintfit.memory.reading`, and ``default`` is what is left where these have no say. None as a default says that
    nobody knows, or that there is none; this says which."""
    evaluation: str = ""
    """The part of a spec's ``evaluation`` that it is."""
    bits: int = 1
    """After how many edits, each read again, a change of it has to be there."""

    @property
    def in_spec(self) -> bool:
        """Whether a spec has it as a key."""
        return self.kind is not OF_FILES

    @property
    def has_lower_bound(self) -> bool:
        return self.lower_bound is not _NOTHING

    @property
    def has_default(self) -> bool:
        return self.default is not _NOTHING

    @property
    def said(self) -> Said | None:
        """How a change of it is said; None where no plan changes it."""
        return SAID.get(self.name)

    @property
    def option(self) -> str:
        """Its flag, without the dashes."""
        return self.name.replace("_", "-")

    @property
    def placeholder(self) -> str:
        """What stands for a value in a command's help."""
        return self.metavar or metavar(self.kind)
