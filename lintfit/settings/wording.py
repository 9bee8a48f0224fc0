"""What a change of settings is in a person's words: "lower the micro-batch from 8 to 2", from the settings' records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lintfit.frozen import frozen
from lintfit.settings.model import spoken
from lintfit.settings.registry import SETTINGS
from lintfit.settings.said import Said

_OF_LAYERS = ".layers.{}."
_PLACES = {"cpu": "on the host", "nvme": "on NVMe"}


@frozen
class Phrase:
    """What to do, as a sentence without its end, and the settings that change by it."""

    text: str
    settings: tuple[str, ...]


def phrases(changes: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[Phrase]:
    """Each thing to do for some changes, in their order; ``before`` has the settings as they are now."""
    for name, after in changes.items():
        if _said(name).within not in changes:
            together = (name, *(other for other in changes if _said(other).within == name))
            yield Phrase(phrase(name, after, before, changes), together)


def phrase(name: str, after: Any, before: Mapping[str, Any], changes: Mapping[str, Any]) -> str:
    """What to do for one change of a setting, among others."""
    said, was = _said(name), before.get(name)
    text = _own(said.by, after) or said.text
    if text == said.text and said.less and _is_number(was) and _is_number(after) and after < was:
        text = said.less
    behind = {**before, **changes}
    named = {other: _in_words(other, value) for other, value in behind.items() if f"{{{other}}}" in text}
    return text.format(before=_in_words(name, was), after=_in_words(name, after), zero=zero(behind), **named)


def zero(settings: Mapping[str, Any]) -> str:
    """How ZeRO shards: ``ZeRO-3``, ``ZeRO-3 with the optimizer and the parameters on the host``."""
    devices = {"the optimizer": settings.get("offload_optimizer"), "the parameters": settings.get("offload_param")}
    offloaded = [
        f"{' and '.join(what for what, at in devices.items() if at == device)} {place}"
        for device, place in _PLACES.items()
        if device in devices.values()
    ]
    return f"ZeRO-{settings.get('zero_stage')}" + (f" with {', '.join(offloaded)}" if offloaded else "")


def _said(name: str) -> Said:
    said = SETTINGS[name].said
    assert said is not None, f"nobody says how {name} is changed"
    return said


def _own(words: Mapping[Any, str], value: Any) -> str:
    """A value's words, of its own type: ``True`` is no 1."""
    return next((text for key, text in words.items() if key == value and type(key) is type(value)), "")


def _in_words(name: str, value: Any) -> str:
    said = SETTINGS[name].said if name in SETTINGS else None
    return (_own(said.values, value) if said is not None else "") or _modules(value) or spoken(value)


def _modules(value: Any) -> str:
    """Modules of the same layers by their last names: ``q_proj and v_proj in the layers of model.language_model``."""
    if not isinstance(value, tuple) or not all(isinstance(each, str) and _OF_LAYERS in each for each in value):
        return ""
    owners = {each.partition(_OF_LAYERS)[0] for each in value}
    if len(owners) != 1:
        return ""
    *names, last = dict.fromkeys(each.rpartition(".")[2] for each in value)
    listed = f"{', '.join(names)} and {last}" if names else last
    return f"{listed} in the layers of {owners.pop()}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
