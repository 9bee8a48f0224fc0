"""The training launches of a shell script: which script they start, on what, and with which flags."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice

from lintfit.documents.model import Document, FileEdit, Span
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.shell_document import Command, ShellDocument
from lintfit.frozen import replace
from lintfit.memo import Memo
from lintfit.settings.model import UNKNOWN, Place, Provenance, Setting
from lintfit.sources.launchers import launcher_settings
from lintfit.sources.launchers.command_line import Invocation, Option, take_apart
from lintfit.sources.launchers.flags import Flag
from lintfit.sources.launchers.hostfile import read_hosts
from lintfit.sources.launchers.launch import Launch, set_flag
from lintfit.sources.launchers.processes import process_settings, seen_gpus, visible_devices
from lintfit.sources.launchers.slurm import read_slurm
from lintfit.sources.launchers.surroundings import Surroundings
from lintfit.sources.launchers.training_commands import trains

Writer = Callable[[str], tuple[FileEdit, ...] | None]
ReadText = Callable[[str], str | None]
"""The text of a file that a command names; None where there is none."""


def read_launches(document: Document, read_text: ReadText | None = None) -> tuple[Launch, ...]:
    """The commands of a shell script that start a training or may, in order; none for a document of another kind.

    ``read_text`` opens the hostfiles that they name.
    """
    if not isinstance(document, ShellDocument):
        return ()
    return tuple(_launch(document, *found, read_text) for found in _trainings(document))


def read_launch(document: Document, index: int, read_text: ReadText | None = None) -> Launch | None:
    """One of :func:`read_launches`; None where there are not so many."""
    if not isinstance(document, ShellDocument):
        return None
    found = next(islice(_trainings(document), index, None), None)
    return _launch(document, *found, read_text) if found is not None else None


MOST_LAUNCHES = 120
"""Launches of one file that are followed. None of 6,363 scripts and pages of 180 public repositories has over 42."""


def count_launches(document: Document) -> int:
    """How many launches of a document are followed."""
    if not isinstance(document, ShellDocument):
        return 0
    if "launches" not in document.facts:
        document.facts["launches"] = min(len(_trainings(document)), MOST_LAUNCHES)
    return document.facts["launches"]  # type: ignore[no-any-return]


def not_followed(document: Document) -> str:
    """The line that says that a file has more launches than are followed; empty where it has not."""
    more = isinstance(document, ShellDocument) and len(_trainings(document)) > MOST_LAUNCHES
    return f"{document.path.as_posix()}: more than {MOST_LAUNCHES} launches: the others are not judged" if more else ""


_Training = tuple[Command, Invocation, bool]
_FOUND: Memo[tuple[_Training, ...]] = Memo()


def _trainings(document: ShellDocument) -> tuple[_Training, ...]:
    """The commands that train or may, each with whether its words alone say so; one more than are followed."""
    return _FOUND.get(document, None, lambda: tuple(islice(_found(document), MOST_LAUNCHES + 1)))


def _found(document: ShellDocument) -> Iterator[_Training]:
    for command in document.commands:
        invocation = take_apart(command.words)
        told = trains(invocation) if invocation is not None else False
        if invocation is not None and told is not False:
            yield command, invocation, told is True


def _launch(
    document: ShellDocument, command: Command, invocation: Invocation, sure: bool, read_text: ReadText | None
) -> Launch:
    batch = {directive.key.lstrip("-"): (directive.value, directive.value_span) for directive in document.directives}
    around = _surroundings(document, command, invocation, {**batch, **command.batch})
    hostfile = invocation.options.get("hostfile")
    if hostfile is not None and hostfile.value is not None and read_text is not None:
        text = read_text(hostfile.value)
        around = replace(around, hosts=read_hosts(text) if text is not None else None)
    script = invocation.script
    return Launch(
        document=document,
        place=Place(document, command.span),
        launcher=invocation.launcher,
        script=_script_path(invocation),
        script_place=Place(document, script.span) if script is not None else None,
        flags=tuple(
            _flag(document, option, partial(set_flag, document, command, invocation, option.name))
            for option in invocation.arguments
        ),
        launcher_flags=tuple(_flag(document, option) for option in invocation.options.values()),
        settings={setting.name: setting for setting in _settings(invocation, around)},
        environment={name: value for name, value in around.environment.items() if value is not None},
        invocation=invocation,
        command=command,
        module=invocation.module,
        positional=tuple(word.text for word in invocation.positional),
        overrides=tuple(_overrides(document, invocation)),
        conditional=command.conditional,
        action=invocation.action,
        seen_gpus=seen_gpus(around),
        sure=sure,
    )


_OVERRIDE = lazy_pattern(r"\+{0,2}(?P<name>[A-Za-z_][\w./]*)=")


def _overrides(document: ShellDocument, invocation: Invocation) -> Iterator[Flag]:
    """Words such as ``train.lr=1e-5``, which OmegaConf's ``from_cli`` takes."""
    words = (*invocation.positional, *(word for option in invocation.arguments for word in option.words))
    loose = invocation.loose if invocation.script is not None else ()
    for word in (*words, *loose):
        match = _OVERRIDE.match(word.text)
        if match is None:
            continue
        start = min(word.span.start + match.end(), word.span.end)
        value = _shown(word.value[match.end() :] if word.value is not None else None, word.text[match.end() :])
        at = Place(document, Span(start, word.span.end)) if word.editable else None
        yield Flag(match["name"], value, Place(document, word.span), at)


def _script_path(invocation: Invocation) -> str | None:
    script = invocation.script
    if script is None or not script.value:
        return None
    return script.value.replace(".", "/") + ".py" if invocation.module else script.value


def _flag(document: ShellDocument, option: Option, write: Writer | None = None) -> Flag:
    words = tuple(_shown(value, word.text) for value, word in zip(option.values, option.words, strict=False))
    if option.bare:
        span, value_place = option.flag.at, None
    else:
        span = Span(min(option.flag.at.start, option.words[0].at.start), option.words[-1].at.end)
        value_place = Place(document, _value_span(option))
    if option.glued:
        words = (_shown(option.value, option.flag.text.partition("=")[2]),)
    return Flag(
        name=option.name,
        value=words[0] if words else None,
        place=Place(document, span),
        value_place=value_place,
        words=words if len(words) > 1 else (),
        write=write,
        doubtful=option.flag.unknown and not option.glued,
    )


def _value_span(option: Option) -> Span:
    first, last = option.words[0].span, option.words[-1].span
    if option.glued and not option.words[0].moved:
        name = option.flag.text.partition("=")[0]
        return Span(min(first.start + len(name) + 1, first.end), first.end)
    return Span(first.start, last.end) if first.start <= last.start and first.end <= last.end else first


def _shown(value: str | None, written: str) -> str:
    """A value, or what is written for it; that always holds a ``$``, which tells it from a known value."""
    if value is not None:
        return value
    return written if "$" in written else f"$({written.strip('`')})"


def _surroundings(
    document: ShellDocument, command: Command, invocation: Invocation, batch: Mapping[str, tuple[str, Span]]
) -> Surroundings:
    environment: dict[str, str | None] = {}
    places: dict[str, Span] = {}
    for name, variable in command.environment.items():
        environment[name], places[name] = variable.value, variable.value_span
    for assignment in command.assignments:
        environment[assignment.name], places[assignment.name] = assignment.value, assignment.value_span
    for word in invocation.prefix:
        name, equals, value = word.text.partition("=")
        if equals and name.isidentifier():
            environment[name] = value if word.value is not None else None
            places[name] = Span(min(word.span.start + len(name) + 1, word.span.end), word.span.end)
    by_srun = any(word.text == "srun" for word in invocation.prefix)
    slurm = read_slurm(document, {**_long_names(batch), **_srun_options(invocation)})
    return Surroundings(document, command.span, environment, places, slurm, by_srun)


_SWITCHES = frozenset(("true", "false", "0", "1", "none", ""))
"""Values of ``--deepspeed`` where it is a switch and not a path."""

_SHORT = {"N": "nodes", "n": "ntasks", "G": "gpus", "C": "constraint"}


def _long_names(batch: Mapping[str, tuple[str | None, Span]]) -> dict[str, tuple[str | None, Span]]:
    return {_SHORT.get(name, name): found for name, found in batch.items()}


def _srun_options(invocation: Invocation) -> dict[str, tuple[str | None, Span]]:
    """The options that ``srun`` itself is given; they beat the job's."""
    prefix = list(invocation.prefix)
    names = [word.text for word in prefix]
    if "srun" not in names:
        return {}
    found: dict[str, tuple[str | None, Span]] = {}
    words = prefix[names.index("srun") + 1 :]
    for index, word in enumerate(words):
        name, equals, value = word.text.partition("=")
        if not name.startswith("-"):
            continue
        if equals:
            found[name.lstrip("-")] = (value if word.value is not None else None, word.span)
        elif index + 1 < len(words) and not words[index + 1].text.startswith("-"):
            found[name.lstrip("-")] = (words[index + 1].value, words[index + 1].span)
    return _long_names(found)


def _settings(invocation: Invocation, around: Surroundings) -> Iterator[Setting]:
    yield from process_settings(invocation, around)
    if around.slurm.gpu is not None:
        yield around.slurm.gpu
    visible = visible_devices(around)
    if visible is not None:
        yield visible
    yield from launcher_settings.read(invocation, around)
    yield from _deepspeed_flag(invocation, around)


def _deepspeed_flag(invocation: Invocation, around: Surroundings) -> Iterator[Setting]:
    """The DeepSpeed JSON that a script's flag names. ``--deepspeed`` alone only switches it on."""
    flags = {option.name: option for option in invocation.arguments}
    for name in ("deepspeed_config", "deepspeed", "ds_config", "deepspeed_config_file"):
        option = flags.get(name)
        if option is None or option.bare or (option.value is not None and option.value.lower() in _SWITCHES):
            continue
        path = option.value if option.value is not None and _is_path(option.value) else UNKNOWN
        yield Setting("deepspeed", path, Provenance.at(around.document, _value_span(option)))
        return


def _is_path(text: str) -> bool:
    return not text.lstrip().startswith("{") and ("/" in text or re.search(r"\.\w+$", text) is not None)
