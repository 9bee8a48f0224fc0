"""Models in folders that only the machine knows: ``$ROOT/models/Qwen2.5-7B-Instruct`` names the model all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import replace
from lintfit.settings.model import UNKNOWN, Provenance, Setting

if TYPE_CHECKING:
    from lintfit.sources.launchers.launch import Launch

_REFERENCE = lazy_pattern(r"\$(?:\{[^{}]*\}|\([^()]*\)|[A-Za-z_]\w*|[\d@*#?])|`[^`]*`")
_WHY = "in a folder that is not known; its name is taken for the published model's"


def with_name_in_folder(settings: dict[str, Setting], launch: Launch | None) -> dict[str, Setting]:
    """The settings with the model that a flag names at the end of a path of which the beginning is not known."""
    setting = settings.get("model")
    if launch is None or setting is None or setting.value is not UNKNOWN or setting.provenance.place is None:
        return settings
    for flag in (*launch.flags, *launch.overrides):
        if flag.value is None or "$" not in flag.value or flag.doubtful:
            continue
        if (
            setting.provenance.place in (flag.place, flag.value_place)
            and (name := named_at_end(flag.value)) is not None
        ):
            known = replace(setting, value=name, provenance=Provenance("assumed", _WHY, setting.provenance.place))
            return {**settings, "model": known}
    return settings


def named_at_end(text: str) -> str | None:
    """The model that a word names behind its last reference to a variable; None where that is none of the catalogue's.

    Right behind a reference, without a slash, only a published name counts: the variable is then a folder.
    """
    from lintfit.catalog.models import lookup

    references = [*_REFERENCE.finditer(text)]
    behind = text[references[-1].end() :].rstrip("/") if references else ""
    whole, slash, rest = behind.partition("/")
    name = rest if slash else whole
    facts = lookup(name) if name else None
    if facts is None:
        return None
    return name if slash or facts.name.rpartition("/")[2].lower() == name.lower() else None
