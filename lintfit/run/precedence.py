"""What the files of one run say, document by document, and how one of several candidates wins.

The winner remembers what it beat (``overrode``). ``"auto"`` never wins: it gives way to the next in line, as the HF
integration of DeepSpeed has it. What is written but is not statically known (``UNKNOWN``) does win, because the run
will not use the next in line either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lintfit.frozen import field, frozen
from lintfit.options.model import Options
from lintfit.settings.model import AUTO, UNKNOWN, Provenance, Setting

if TYPE_CHECKING:
    from lintfit.sources.accelerate import AccelerateSource
    from lintfit.sources.deepspeed import DeepSpeedSource
    from lintfit.sources.launchers.launch import Launch
    from lintfit.sources.recipes.base import Recipe
    from lintfit.sources.script.source import ScriptSource

_TRAINERS = frozenset({"transformers", "trl", "lightning", "pytorch_lightning", "unsloth", "peft"})
"""Packages whose trainers' ways are known."""


@frozen(eq=False)
class Sources:
    """What is known of one run before anything is resolved."""

    options: Options
    launch: Launch | None = None
    script: ScriptSource | None = None
    recipe: Recipe | None = None
    deepspeed: DeepSpeedSource | None = None
    accelerate: AccelerateSource | None = None
    machine: Mapping[str, Setting] = field(default_factory=dict)
    """The GPUs that a notebook's metadata asks for, where the user names none."""

    kernel: bool = False
    """Whether the script is a notebook's cells, which the one process of its kernel runs."""

    def said(self, dialect: str, name: str) -> Setting | None:
        """What one of the documents says of a setting.

        ``dialect`` is ``launch``, ``script``, ``recipe``, ``deepspeed`` or ``accelerate``. A recipe takes the place of
        the script that its front end has no need of.
        """
        source = getattr(self, dialect)
        if source is None and dialect == "script":
            source = self.recipe
        return source.settings.get(name) if source is not None else None

    def first(self, name: str, *dialects: str) -> Setting | None:
        """What the first of these documents says that says something."""
        return first(name, *(self.said(dialect, name) for dialect in dialects))

    def flag(self, name: str) -> Setting | None:
        """What lintfit's own command line says."""
        return self._option(name, lambda origin: origin.startswith("--"))

    def config(self, name: str) -> Setting | None:
        """What lintfit's config file says."""
        return self._option(name, lambda origin: not origin.startswith("--"))

    def option(self, name: str) -> Setting | None:
        """What lintfit's command line says, else its config file."""
        return self.flag(name) or self.config(name)

    def what_if(self, name: str) -> Setting | None:
        """What a flag would have in the place of what the files say."""
        return self.flag(name) if self.options.what_if else None

    def _option(self, name: str, wanted: Callable[[str], bool]) -> Setting | None:
        options = self.options
        if not options.stated(name) or not wanted(options.origins[name]):
            return None
        return Setting(name, getattr(options, name), options.provenance(name))

    @property
    def named_yaml(self) -> Setting | None:
        """What names an Accelerate YAML: the launch line, or the recipe of a front end that starts Accelerate."""
        recipe = self.recipe.settings.get("accelerate_config") if self.recipe is not None else None
        return self.said("launch", "accelerate_config") or recipe

    @property
    def missing_yaml(self) -> Setting | None:
        """What names an Accelerate YAML that is not at hand, so that what it would say is not known."""
        return self.named_yaml if self.accelerate is None else None

    @property
    def launched_deepspeed_file(self) -> Setting | None:
        """``--deepspeed_config_file`` where ``accelerate launch`` reads it: beside ``--use_deepspeed``, or under a
        config file that says DEEPSPEED, or that nobody has read (1.15 ``commands/launch.py:launch_command``)."""
        chosen = self.said("launch", "engine")
        if chosen is not None:
            asked = chosen.value == "deepspeed"
        elif self.accelerate is not None:
            asked = self.accelerate.engine in ("deepspeed", UNKNOWN, None)
        else:
            asked = self.named_yaml is not None
        return self.said("launch", "deepspeed_config_file") if asked else None

    @property
    def training_is_read(self) -> bool:
        """Whether the training is in sight: a recipe, or a script with a trainer, an engine or a backward pass."""
        if self.script is None:
            return self.recipe is not None
        facts = self.script.facts
        if facts.training_arguments is not None or facts.initialize is not None or facts.accelerator is not None:
            return True
        # A trainer of a package that is out of sight hides how it trains; a loop of the script's own does not.
        return facts.trains and (facts.trainer is None or facts.trainer.function.partition(".")[0] in _TRAINERS)

    @property
    def uses_trainer(self) -> bool:
        """Whether an HF Trainer (or a subclass such as TRL's) runs the loop and reads the DeepSpeed JSON."""
        training = self.recipe or self.script
        return training is not None and training.uses_trainer


def first(name: str, *candidates: Setting | None) -> Setting | None:
    """The first candidate that says something, over all that come after it; "auto" says nothing."""
    said = [candidate for candidate in candidates if candidate is not None]
    for index, candidate in enumerate(said):
        if candidate.value is not AUTO:
            beaten = (*said[:index], *said[index + 1 :])
            return Setting(name, candidate.value, candidate.provenance, (*candidate.overrode, *beaten))
    return None


def derived(name: str, value: Any, why: str, *beaten: Setting | None) -> Setting:
    """A setting that follows from others."""
    return Setting(name, value, Provenance("derived", why), tuple(b for b in beaten if b is not None))


def default(name: str, value: Any, whose: str) -> Setting:
    """A library's default."""
    return Setting(name, value, Provenance.default(whose))
