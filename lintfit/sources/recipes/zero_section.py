"""What a DeepSpeed config that is no file of the project, written in the recipe or packaged, says of ZeRO."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lintfit.settings.model import AUTO, Setting

if TYPE_CHECKING:
    from lintfit.sources.recipes.keys import Stated


def of_zero(found: Stated, content: Mapping[str, Any]) -> Iterator[Setting]:
    """The stage and the offload of a config's content; ``found`` is the key that names the config."""
    zero = content.get("zero_optimization")
    zero = zero if isinstance(zero, Mapping) else {}
    yield found.setting("zero_stage", zero.get("stage", 0))
    for name in ("offload_optimizer", "offload_param"):
        section = zero.get(name)
        device = section.get("device", "none") if isinstance(section, Mapping) else "none"
        yield found.setting(name, AUTO if device == "auto" else device)
