from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import offered
from lintfit.checks.helpers.readers import older
from lintfit.documents.patterns import lazy_pattern
from lintfit.findings.model import Applicability
from lintfit.run.model import Run
from lintfit.sources.launchers.flags import Flag

if TYPE_CHECKING:
    from lintfit.sources.script.interpreter.values import Field, Object

OF_THE_FILES_ALONE = True

_PARSERS = lazy_pattern(r"^(transformers|trl|alignment)\b.*\b(HfArgumentParser|TrlParser|H4ArgumentParser)$")
_ARGUMENTS = lazy_pattern(r"^(transformers|trl)\b.*\b(\w*TrainingArguments|(?P<kind>\w+)Config)$")
_WITHOUT_DEFAULT = frozenset(
    {"ddp_broadcast_buffers", "ddp_find_unused_parameters", "disable_tqdm", "greater_is_better", "tf32"}
)
"""Fields of ``TrainingArguments`` that are ``Optional[bool] = None`` in every version (read in 4.36 to 5.23)."""
_OF_SFT = frozenset({"completion_only_loss", "eval_packing"})
"""The same of TRL's ``SFTConfig`` and its child ``GKDConfig`` (0.8 to 1.16)."""
_TRL = frozenset(
    {"BCO", "CPO", "DPO", "GKD", "GRPO", "KTO", "NashMD", "ORPO", "OnlineDPO", "PPO", "PRM", "RLOO", "Reward", "SFT"}
    | {"XPO"}
)
_BF16_SINCE = "0.19"
"""The first TRL whose configs turn ``bf16`` from a ``bool`` into an ``Optional[bool] = None``."""
_OPTIONAL = lazy_pattern(r"^((typing\.)?(Optional\[bool\]|Union\[bool, *None\])|bool *\| *None|None *\| *bool)$")


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.recipe is not None and run.recipe.dialect == "trl":
        from lintfit.sources.recipes.trl_recipe import TrlRecipe

        assert isinstance(run.recipe, TrlRecipe)
        yield from _of_command(run, run.recipe.kind)
    for made in run.script.reading.walk.parsed if run.script is not None else ():
        if not _by_command_line(made):
            continue
        for name, value in made.attributes.items():
            flag = value.origin
            if isinstance(flag, Flag) and flag.value is None and flag.name == name and _needs_value(run, made, name):
                yield _report(flag)


def _of_command(run: Run, kind: str) -> Iterator[Report]:
    """The flags of TRL's own command, which fill the config of its trainer."""
    flags = {flag.name: flag for flag in run.launch.flags} if run.launch is not None else {}
    for name, flag in flags.items():
        if flag.value is None and _of_library(run, kind, name):
            yield _report(flag)


def _by_command_line(made: Object) -> bool:
    """Whether HfArgumentParser or a child of it certainly fills this from the process's own command line."""
    from lintfit.sources.script.interpreter.parsers import Parser

    call = made.call
    if call is None or call.taken is not True or call.value(0, "args") is not None:
        return False
    return isinstance(call.receiver, Parser) and _PARSERS.search(call.receiver.kind) is not None


def _needs_value(run: Run, made: Object, name: str) -> bool:
    """Whether the field is an ``Optional[bool]`` whose default is None, in the version that is installed."""
    own = made.cls.all_fields().get(name) if made.cls is not None else None
    if own is not None:
        return _is_optional(own)
    library = _ARGUMENTS.search(made.library)
    return library is not None and _of_library(run, library["kind"], name)


def _of_library(run: Run, kind: str | None, name: str) -> bool:
    """The same of a field of ``TrainingArguments``, or of TRL's config of this kind."""
    if kind is not None and kind not in _TRL:
        return False
    if name == "bf16":
        return kind is not None and older((run,), "trl", _BF16_SINCE) is False
    return name in _WITHOUT_DEFAULT or (kind in ("SFT", "GKD") and name in _OF_SFT)


def _is_optional(field: Field) -> bool:
    """The same of a field that a dataclass of the script declares."""
    import libcst as cst

    from lintfit.sources.script.interpreter.values import Const

    if not isinstance(field.node, cst.AnnAssign):
        return False
    if not isinstance(field.default, Const) or field.default.value is not None:
        return False
    return _OPTIONAL.search(cst.Module([]).code_for_node(field.node.annotation.annotation)) is not None


def _report(flag: Flag) -> Report:
    edits = flag.write("true") if flag.write is not None else None
    return Report(
        flag.place,
        f"--{flag.name} needs a value here: the parser stops with “expected one argument”",
        fix=offered("give it the value true", Applicability.SAFE, edits),
        help=f"--{flag.name} true",
    )
