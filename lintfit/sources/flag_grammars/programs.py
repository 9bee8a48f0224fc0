"""The parsers of programs: ``accelerate launch``, ``torchrun``, ``deepspeed``, and TRL's own command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from lintfit.catalog import arguments
from lintfit.frozen import replace
from lintfit.settings.model import Place
from lintfit.sources.flag_grammars.grammar import Grammar, ranges_of
from lintfit.sources.flag_grammars.kinds import CHOICE
from lintfit.sources.flag_grammars.model import Refused, given_by, given_flags, of_file
from lintfit.sources.flag_grammars.options import Option, refusal
from lintfit.sources.launchers.grammars import GRAMMARS

if TYPE_CHECKING:
    from lintfit.documents.model import DataDocument
    from lintfit.sources.launchers.launch import Launch

_STRICT = frozenset({"torchrun", "torch.distributed.launch", "deepspeed"})
"""Launchers whose options are all listed in :mod:`lintfit.sources.launchers.grammars`."""
_SCRIPT_ARGUMENTS: Mapping[str, str] = {
    "sft": "ScriptArguments",
    "dpo": "ScriptArguments",
    "kto": "ScriptArguments",
    "reward": "ScriptArguments",
    "grpo": "GRPOScriptArguments",
    "rloo": "RLOOScriptArguments",
}
"""The dataclass of each TRL command that names its data (``trl/scripts/*.py``, TRL 0.19 to 1.16)."""
_CONFIGS: Mapping[str, str] = {
    "sft": "SFTConfig",
    "dpo": "DPOConfig",
    "kto": "KTOConfig",
    "reward": "RewardConfig",
    "grpo": "GRPOConfig",
    "rloo": "RLOOConfig",
}


def of_launcher(launch: Launch, versions: Mapping[str, str]) -> Iterator[Refused]:
    """The launcher's own options that it refuses."""
    if launch.invocation.opaque or launch.action is not None:
        return
    options = _options(launch.launcher, versions)
    if options is None:
        return
    for option in launch.invocation.options.values():
        given = given_by(option)
        if given is None:
            continue
        refused = refusal(given, options, launch.launcher != "accelerate", positional=True)
        if refused is not None:
            yield Refused(Place(launch.document, option.flag.at), given.name, _called(launch.launcher), refused)


def _called(launcher: str) -> str:
    return "accelerate launch" if launcher == "accelerate" else launcher


def _options(launcher: str, versions: Mapping[str, str]) -> tuple[Option, ...] | None:
    """The options of a launcher in all versions that count; None where they are not known."""
    if launcher == "accelerate":
        return _of_accelerate(versions)
    if launcher not in _STRICT:
        return None
    return _listed(launcher)


@cache
def _listed(launcher: str) -> tuple[Option, ...]:
    """The options of a launcher of which all are listed: every launch by it asks for them."""
    grammar = GRAMMARS[launcher]
    short = {full: letter for letter, full in grammar.short.items()}
    return tuple(
        Option(_spellings(name, short.get(name)), nargs=None if name in grammar.valued else 0)
        for name in sorted(grammar.valued | grammar.bare)
    )


def _of_accelerate(versions: Mapping[str, str]) -> tuple[Option, ...] | None:
    found = arguments.studied("accelerate", versions.get("accelerate"), versions.get("accelerate>="))
    if found is None or "accelerate@" in versions:
        return None
    return _launch_options(tuple(found.possible))


@cache
def _launch_options(indices: tuple[int, ...]) -> tuple[Option, ...]:
    """The options of ``accelerate launch`` in these studied versions: every launch by it asks for them."""
    return tuple(
        Option(
            _spellings(name.lstrip("-")) if name.startswith("--") else (name,),
            nargs=0 if kind == "flag" else None,
            choices=tuple(kind[1:].split("|")) if kind.startswith(CHOICE) else (),
        )
        for name, kind in arguments.launch_options(indices).items()
    )


def _spellings(name: str, short: str | None = None) -> tuple[str, ...]:
    letter = (f"-{short}",) if short is not None else ()
    return (*letter, *dict.fromkeys((f"--{name}", f"--{name.replace('_', '-')}")))


def of_trl(launch: Launch, config: DataDocument | None, versions: Mapping[str, str]) -> Iterator[Refused]:
    """The flags of ``trl sft`` that neither its dataclasses nor ``accelerate launch``, which gets the rest, take.

    ``config`` is the file of its ``--config``, whose other keys it gets as flags, too.
    """
    command = launch.action or ""
    accelerate = _of_accelerate(versions)
    if command not in _CONFIGS or accelerate is None:
        return
    names = (_SCRIPT_ARGUMENTS[command], _CONFIGS[command], "ModelConfig", "DatasetMixtureConfig")
    classes = tuple(f"trl.{name}" for name in names)
    ranges = ranges_of(classes, versions)
    if ranges is None:
        return
    own = (Option(("--config",)), Option(("--accelerate_config",)), *accelerate)
    grammar = Grammar(own=own, classes=classes, ranges=ranges)
    for place, given in given_flags(launch):
        refused = grammar.refused(given)
        if refused is not None:
            yield Refused(place, given.name, "accelerate launch" if not refused.by_value else "trl", refused)
    if config is not None:
        yield from of_file("accelerate launch", replace(grammar, own=(*own, Option(("--env",)))), config)
