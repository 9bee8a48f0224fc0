"""A flag of a launch line, as the script that it starts sees it."""

from __future__ import annotations

from collections.abc import Callable

from lintfit.documents.model import Document, FileEdit
from lintfit.frozen import frozen
from lintfit.settings.model import Place
from lintfit.sources.values import truth


@frozen(eq=False)
class Flag:
    """One ``--name value`` handed to a script.

    ``name`` is without dashes and with ``-`` as ``_``. ``value`` is None for a bare flag. ``place`` covers the
    flag with its value, ``value_place`` the value alone. ``words`` are all the values of a flag that takes
    several (``--targets q_proj v_proj``). ``write`` makes the edits that give it another value, where the
    launch line can be edited. ``doubtful`` is a flag that may not be there at all (a branch adds it).
    """

    name: str
    value: str | None
    place: Place
    value_place: Place | None = None
    words: tuple[str, ...] = ()
    write: Callable[[str], tuple[FileEdit, ...] | None] | None = None
    doubtful: bool = False

    @property
    def is_on(self) -> bool:
        """Whether it switches something on: it stands alone, or its value is a word for true."""
        return self.value is None or truth(self.value) is True

    @property
    def document(self) -> Document:
        return self.place.document

    @property
    def origin(self) -> Place:
        """What a message points at: the value where there is one."""
        return self.value_place or self.place
