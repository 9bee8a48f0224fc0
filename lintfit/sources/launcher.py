"""The training launches of a shell script: which script they start, on what, and with which flags."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

from lintfit.documents.model import Document, Edit, Span
from lintfit.documents.shell_document import Command, ShellDocument
from lintfit.documents.shell_words import Word
from lintfit.findings import FileEdit
from lintfit.settings import AUTO, UNKNOWN, Place, Provenance, Setting, Special
from lintfit.sources import launcher_settings
from lintfit.sources.command_line import Invocation, Option, take_apart
from lintfit.sources.flags import Flag
from lintfit.sources.hostfile import read_hosts
from lintfit.sources.processes import process_settings, visible_devices
from lintfit.sources.slurm import read_slurm
from lintfit.sources.surroundings import Surroundings

Writer = Callable[[str], tuple[FileEdit, ...] | None]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NAME = re.compile(r"[^a-z]+")
_TRAINS = _names("""
    clm cpt distill dpo finetune finetuning grpo kto mlm orpo posttrain ppo pretrain pretraining reinforce rlhf rloo
    sft train trainer training tune
    """)
"""Words in the name of a script that trains."""

_MAY_TRAIN = _names("fine ft lora qlora reward rm tune")
"""Words that do so only where nothing else is said."""

_DOES_NOT = _names("""
    api app benchmark benchmarking chat chatbot check cli convert conversion data dataset demo download embed eval
    evaluate evaluation export filter gather generate generation gradio infer inference merge plot predict prepare
    preprocess process push quantize sample score serve server setup submit test tests tokenize upload vllm web webui
    """)
"""Words in the name of a script that does something else."""

_PREPARES = _names("convert download merge prepare preprocess submit tokenize")
"""First words of such a name that say so whatever the flags are."""

_TRAINING_FLAGS = _names("""
    do_train gradient_accumulation_steps gradient_checkpointing learning_rate lr num_train_epochs
    per_device_train_batch_size train_batch_size train_micro_batch_size_per_gpu
    """)

_EVALUATES = _names("do_eval do_predict")


@dataclass(frozen=True, slots=True, eq=False)
class Launch:
    """One command that starts a training, read as settings.

    ``script`` is its path as the command says it, None where that cannot be told; ``module`` says that it was given
    as a module (``-m``). ``flags`` are the script's own, ``launcher_flags`` those in front of it. A flag whose value
    cannot be told keeps it as written, with its ``$``. ``environment`` holds the variables that the command sees and
    whose values are known. ``positional`` are the words between the script and its first flag, ``overrides`` the
    ``key=value`` words anywhere behind it. ``action`` is what a front end that trains from a recipe is asked for; such
    a launch has no script. ``sure`` is False where only the script can tell whether it trains.
    """

    document: ShellDocument
    place: Place
    launcher: str
    script: str | None
    script_place: Place | None
    flags: tuple[Flag, ...]
    launcher_flags: tuple[Flag, ...]
    settings: Mapping[str, Setting]
    environment: Mapping[str, str]
    invocation: Invocation
    command: Command
    module: bool = False
    positional: tuple[str, ...] = ()
    overrides: tuple[Flag, ...] = ()
    conditional: bool = False
    action: str | None = None
    sure: bool = True
    dialect: str = field(default="launcher")

    @property
    def line(self) -> int:
        """The 1-based line that the command begins on."""
        return self.document.position(self.place.span.start).line

    @property
    def by_mpi(self) -> bool:
        """Whether ``mpirun`` starts it, as often as nobody can tell here."""
        return any(word.text.rpartition("/")[2] in ("mpirun", "mpiexec") for word in self.invocation.prefix)

    def flag(self, name: str) -> Flag | None:
        """The last flag of the script with this name (without dashes), or None."""
        return next((flag for flag in reversed(self.flags) if flag.name == name), None)

    def write(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """The edits that make the command say ``name = value``; None where no option of it says that."""
        if isinstance(value, Special) and value is not AUTO:
            return None
        if name == "deepspeed":
            return self.set_flag("deepspeed", str(value))
        if name == "gpus":
            return self._write_gpus(value)
        if name == "engine":
            return self._write_engine(value)
        if name == "fsdp":
            return self._write_fsdp(value)
        option = launcher_settings.option_for(self.invocation.launcher, name)
        return self.set_option(option, launcher_settings.spelled(value)) if option is not None else None

    def set_flag(self, flag: str, value: str | None) -> tuple[FileEdit, ...] | None:
        """The edits that give the script a flag (``--flag value``), or another value where it has it.

        None where the value would need quotes inside a variable's string.
        """
        return _set_flag(self.document, self.command, self.invocation, flag, value)

    def drop_flag(self, flag: str) -> tuple[FileEdit, ...] | None:
        """The edits that take a flag of the script out; None where it comes from a variable of other words, too."""
        from lintfit.documents.shell_edits import remove_flag

        present = next((option for option in reversed(self.invocation.arguments) if option.name == flag), None)
        if present is None:
            return ()
        written = present.flag.text.partition("=")[0]
        try:
            edits = remove_flag(self.document, self.command, written, 0 if present.glued else len(present.words))
        except ValueError:
            return None
        return tuple(FileEdit(self.document.path, edit, self.document) for edit in edits)

    def set_option(self, option: str, value: str) -> tuple[FileEdit, ...] | None:
        """The edits that give the launcher itself an option, in front of the script."""
        found = self.invocation.options.get(option)
        if found is not None and found.words:
            word = found.words[-1]
            text = f"{found.flag.text.partition('=')[0]}={value}" if found.glued else value
            edit = Edit(word.span, text)
        elif self.invocation.script is not None:
            edit = self._before_script(self.invocation.script, f"--{option} {value}")
        else:
            return None
        return (FileEdit(self.document.path, edit, self.document),)

    def _before_script(self, script: Word, text: str) -> Edit:
        """The edit that puts words in front of the script: of ``-m`` where that is a module."""
        from lintfit.documents.shell_edits import add_before

        words = self.command.words
        index = words.index(script)
        behind = self.module and index and words[index - 1].text in ("-m", "--module")
        return add_before(self.document, words[index - 1] if behind else script, text)

    def asks_for(self, before: int, after: int) -> tuple[FileEdit, ...]:
        """The edits that make the batch job ask for ``after`` cards on each node where it asks for ``before``, and
        for as many tasks where each of them is a process of the training."""
        from lintfit.sources.slurm import asked_cards

        counts = {"--gres", "--gpus-per-node", *(("--ntasks-per-node",) if self.launcher == "python" else ())}
        options = [(each.key, each.value_span) for each in self.document.directives if each.key in counts]
        return tuple(asked_cards(self.document, options, before, after))

    def _write_engine(self, value: Any) -> tuple[FileEdit, ...] | None:
        """Accelerate's switch for an engine, in the place of the one that is there; ``torchrun`` for plain python."""
        if self.launcher == "python":
            program, alone = self.invocation.program, not self.invocation.prefix and not self.invocation.options
            if value != "ddp" or not alone or program.moved or not program.editable:
                return None
            return (FileEdit(self.document.path, Edit(program.at, "torchrun"), self.document),)
        switches = launcher_settings.SWITCHES
        wanted = next((switch for switch, engine in switches.items() if engine == value), None)
        if wanted is None or self.invocation.launcher != "accelerate":
            return None
        found = next((o for name, o in self.invocation.options.items() if name in switches), None)
        if found is not None:
            edit = Edit(found.flag.span, f"--{wanted}")
        elif self.invocation.script is not None:
            edit = self._before_script(self.invocation.script, f"--{wanted}")
        else:
            return None
        return (FileEdit(self.document.path, edit, self.document),)

    def _write_fsdp(self, value: Any) -> tuple[FileEdit, ...] | None:
        """The next of Accelerate's options about FSDP that says something else; empty where none does."""
        stated = self.settings.get("fsdp")
        if stated is None or value is None:
            return None
        now = stated.value
        if value.version != now.version:
            return self.set_option("fsdp_version", str(value.version))
        if value.strategy != now.strategy:
            if value.version == 1:
                return self.set_option("fsdp_sharding_strategy", value.strategy)
            whole = {"FULL_SHARD": "true", "SHARD_GRAD_OP": "false"}.get(value.strategy)
            return self.set_option("fsdp_reshard_after_forward", whole) if whole is not None else None
        if value.cpu_offload != now.cpu_offload:
            return self.set_option("fsdp_offload_params", launcher_settings.spelled(value.cpu_offload))
        return ()

    def _write_gpus(self, value: Any) -> tuple[FileEdit, ...] | None:
        option = launcher_settings.GPUS.get(self.invocation.launcher)
        nodes = self.settings.get("nodes")
        count = nodes.value if nodes is not None else 1
        if option is None or not isinstance(count, int) or count < 1 or value % count:
            return None
        per_node = value if self.invocation.launcher == "accelerate" else value // count
        if self.invocation.launcher == "deepspeed" and "include" in self.invocation.options:
            return None
        return self.set_option(option, str(per_node))


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


def count_launches(document: Document) -> int:
    """How many :func:`read_launches` are."""
    return sum(1 for _ in _trainings(document)) if isinstance(document, ShellDocument) else 0


def _trainings(document: ShellDocument) -> Iterator[tuple[Command, Invocation, bool]]:
    """The commands that train or may, each with whether its words alone say so."""
    for command in document.commands:
        invocation = take_apart(command.words)
        trains = _trains(invocation) if invocation is not None else False
        if invocation is not None and trains is not False:
            yield command, invocation, trains is True


def _launch(
    document: ShellDocument, command: Command, invocation: Invocation, sure: bool, read_text: ReadText | None
) -> Launch:
    batch = {directive.key.lstrip("-"): (directive.value, directive.value_span) for directive in document.directives}
    around = _surroundings(document, command, invocation, batch)
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
            _flag(document, option, partial(_set_flag, document, command, invocation, option.name))
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
        sure=sure,
    )


_OVERRIDE = re.compile(r"\+{0,2}(?P<name>[A-Za-z_][\w./]*)=")


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


def _set_flag(
    document: ShellDocument, command: Command, invocation: Invocation, flag: str, value: str | None
) -> tuple[FileEdit, ...] | None:
    from lintfit.documents.shell_edits import set_flag

    name = flag.lstrip("-").replace("-", "_")
    present = next((option for option in reversed(invocation.arguments) if option.name == name), None)
    if present is None and name in invocation.options:
        # The same flag in front of the script is the launcher's own.
        return None
    written = present.flag.text.partition("=")[0] if present is not None else f"--{flag.lstrip('-')}"
    try:
        edits = set_flag(document, command, written, value)
    except ValueError:
        return None
    return tuple(FileEdit(document.path, edit, document) for edit in edits)


def _trains(invocation: Invocation) -> bool | None:
    """Whether a command looks like a training: by its flags, else by the first telling word of its script's name.

    Where neither tells, a distributed launcher counts; of plain python only the script can say (None).
    """
    if invocation.action is not None:
        return True
    flags = {option.name for option in invocation.arguments}
    name = (invocation.script.text if invocation.script is not None else "").rsplit("/", 1)[-1].lower()
    if invocation.module:
        name = name.rpartition(".")[2]
    parts = _NAME.split(name.removesuffix(".py"))
    if parts[0] in _PREPARES:
        return False
    if flags & _TRAINING_FLAGS:
        return True
    for part in parts:
        if part in _TRAINS or part in _DOES_NOT:
            return part in _TRAINS
    folders = (invocation.script.text if invocation.script is not None else "").split("/")[:-1]
    if folders and folders[-1] in _TRAINS and flags:
        return True
    if invocation.launcher != "python" or "deepspeed" in flags or not _MAY_TRAIN.isdisjoint(parts):
        return True
    return None if invocation.script is not None and not invocation.module and not flags & _EVALUATES else False


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
