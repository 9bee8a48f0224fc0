"""What a run trains from where lintfit has not read it: nothing can be said of its memory then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lintfit.run.precedence import Sources
from lintfit.settings.model import Setting
from lintfit.sources.recipes.front_ends import command_of
from lintfit.sources.training import TrainsElsewhere

if TYPE_CHECKING:
    from lintfit.sources.launchers.launch import Launch


def unread_training(sources: Sources) -> str | None:
    """What a launch trains from where lintfit has not read it: nothing can be said of its memory then."""
    launch, script = sources.launch, sources.script
    if sources.recipe is not None:
        return None
    if script is not None and script.not_followed:
        return f"all of {script.document.path.name} ({script.not_followed})"
    if launch is None:
        return _foreign_trainer(sources)
    if launch.action is None:
        return _unread_script(sources, launch)
    command = f"{command_of(launch.launcher)} {launch.action}"
    return f"the settings that `{command}` reads itself, which lintfit does not follow yet"


def unfollowed_trainer(settings: Mapping[str, Setting]) -> str | None:
    """Trainers whose settings are read and whose memory is not.

    The PPO of TRL up to 0.11, which the script steps, and which knows no reward model; Megatron's own loop.
    """
    trainer = settings.get("trainer")
    if trainer is not None and trainer.value == "megatron":
        return "Megatron's own model and engine, which lintfit does not follow"
    if trainer is None or trainer.value != "ppo" or "reward_model" in settings:
        return None
    return "the PPOTrainer of TRL up to 0.11, whose steps the script makes itself"


def own_steps(sources: Sources, settings: Mapping[str, Setting]) -> str | None:
    """Weights that a loop updates itself: DeepSpeed, without an optimizer and a step, keeps no states for it."""
    if sources.deepspeed is None or sources.said("script", "engine_steps") is None or "optimizer" in settings:
        return None
    return "how the script updates the weights itself, without an optimizer or a step of DeepSpeed's"


def own_split(sources: Sources) -> str | None:
    """What is not counted where a front end hands the training to somebody else."""
    recipe = sources.recipe
    return recipe.elsewhere if isinstance(recipe, TrainsElsewhere) else None


def _unread_script(sources: Sources, launch: Launch) -> str | None:
    if sources.script is None and launch.module and launch.script:
        module = launch.script.removesuffix(".py").replace("/", ".")
        return f"what the module {module} trains, which is not among these files (lintfit does not follow it)"
    if sources.script is None:
        return f"the script that is launched ({launch.script or 'its name cannot be told'}; not found or not Python)"
    if sources.training_is_read:
        return None
    from lintfit.sources.unread_code import front_end_of

    name, front_end = sources.script.document.path.name, front_end_of(sources.script.document.text)
    if front_end is not None and sources.script.facts.trainer is None:
        return f"the settings that {front_end} reads itself ({name} is its own), which lintfit does not follow yet"
    return _foreign_trainer(sources) or f"the training itself: {name} has no trainer, engine or backward pass"


def _foreign_trainer(sources: Sources) -> str | None:
    """A trainer of a package that lintfit does not follow."""
    trainer = sources.script.facts.trainer if sources.script is not None else None
    if sources.script is None or trainer is None or sources.training_is_read:
        return None
    return f"how {trainer.name} trains, which {sources.script.document.path.name} takes from a package of its own"
