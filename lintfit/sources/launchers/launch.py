"""One command that starts a training, as settings, and the edits that make it say something else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.documents.model import Edit, FileEdit
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.shell_document import Command, ShellDocument
from lintfit.documents.shell_words import Word
from lintfit.frozen import frozen
from lintfit.settings.model import AUTO, UNKNOWN, Place, Provenance, Setting, Special
from lintfit.sources.launchers import launcher_settings
from lintfit.sources.launchers.command_line import Invocation, Option
from lintfit.sources.launchers.flag_order import behind
from lintfit.sources.launchers.flags import Flag

_NO_RANK = {"deepspeed": "no_local_rank", "torch.distributed.launch": "use_env"}
"""Launchers that hand each process ``--local_rank=N``, and their option to leave it out (DeepSpeed 0.19.8
``launcher/launch.py``, torch 2.13 ``distributed/launch.py``)."""

_LEFT_OUT = frozenset({"...", "…", "[...]", "[…]", "<...>"})
"""How a docstring or a page tells that a command has more flags."""


@frozen(eq=False)
class Launch:
    """One command that starts a training, read as settings.

    ``script`` is its path as the command says it, None where that is not statically known; ``module`` says that it
    was given as a module (``-m``). ``flags`` are the script's own, ``launcher_flags`` those in front of it. A flag
    whose value is not statically known keeps it as written, with its ``$``. ``environment`` holds the variables that
    the command sees and whose values are known. ``positional`` are the words between the script and its first flag,
    ``overrides`` the ``key=value`` words anywhere behind it. ``action`` is what a front end that trains from a recipe
    is asked for; such a launch has no script. ``seen_gpus`` are the GPUs of a node that the command can use, where it
    or its batch job says so. ``sure`` is False where only the script can tell whether it trains.
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
    seen_gpus: Setting | None = None
    sure: bool = True
    assumed: bool = False
    """Whether it is the usual command of a recipe that stands alone: there is no line to edit."""
    dialect: str = "launcher"

    @property
    def fixed(self) -> bool:
        """Whether there is no line of a shell to edit."""
        return self.assumed or self.command.listed

    @property
    def line(self) -> int:
        """The 1-based line that the command begins on."""
        return self.document.position(self.place.span.start).line

    @property
    def command_text(self) -> str:
        """The command as it is written, on one line."""
        span = self.command.span
        return self.document.text[span.start : span.end].replace("\\\n", " ")

    @property
    def by_mpi(self) -> bool:
        """Whether ``mpirun`` starts it, as often as nobody can tell here."""
        return any(word.text.rpartition("/")[2] in ("mpirun", "mpiexec") for word in self.invocation.prefix)

    @property
    def bare_switches(self) -> bool:
        """Whether the command says its switches by flags that stand alone (``--push_to_hub``), none as ``True``."""
        values = [flag.value for flag in self.flags]
        return None in values and not any(value.lower() in ("true", "false") for value in values if value is not None)

    def written(self, name: str, value: str) -> str:
        """A value as the script's own flag of this name has it, a variable's name where it is handed one."""
        flag = self.flag(name)
        if flag is None or flag.value != value or flag.value_place is None:
            return value
        option = next((each for each in reversed(self.invocation.arguments) if each.name == name), None)
        word = option.words[-1] if option is not None and option.words and not option.glued else None
        return self.document.text[word.at.start : word.at.end] if word is not None and word.moved else value

    @property
    def rank_flags(self) -> tuple[Flag, ...]:
        """What the launcher adds to the script's own flags for its first process."""
        without = _NO_RANK.get(self.launcher)
        if without is None or without in self.invocation.options or self.flag("local_rank") is not None:
            return ()
        runner = self.invocation.options.get("launcher")
        if runner is not None and (runner.value or "").lower() != "pdsh":
            return ()  # mpirun or srun start the script itself (DeepSpeed, launcher/multinode_runner.py)
        return (Flag("local_rank", "0", self.script_place or self.place),)

    @property
    def hides_flags(self) -> bool:
        """Whether a command substitution stands among the script's flags (``train.py $(arguments)``), or it is told in
        part: who knows which flags it comes to."""
        made = any(word.value is None and ("$(" in word.text or "`" in word.text) for word in self._beside)
        return made or self.is_told_in_part

    @property
    def is_told_in_part(self) -> bool:
        """Whether flags are left out of it: ``train.py --model m ...`` of a docstring or a page."""
        return any(word.text in _LEFT_OUT for word in self._beside)

    @property
    def _beside(self) -> tuple[Word, ...]:
        """The words that stand for themselves, and the values of flags."""
        made = self.invocation
        return (*made.positional, *made.loose, *(word for option in made.arguments for word in option.words[1:]))

    def flag(self, name: str) -> Flag | None:
        """The last flag of the script with this name (without dashes), or None."""
        return next((flag for flag in reversed(self.flags) if flag.name == name), None)

    def write(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """The edits that make the command say ``name = value``; None where no option of it says that."""
        if self.fixed or (isinstance(value, Special) and value is not AUTO):
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
        return set_flag(self.document, self.command, self.invocation, flag, value) if not self.fixed else None

    def drop_flag(self, flag: str) -> tuple[FileEdit, ...] | None:
        """The edits that take a flag of the script out; None where it comes from a variable of other words, too."""
        from lintfit.documents.shell_edits import remove_flag

        present = next((option for option in reversed(self.invocation.arguments) if option.name == flag), None)
        if present is None or self.fixed:
            return ()
        written = present.flag.text.partition("=")[0]
        try:
            edits = remove_flag(self.document, self.command, written, 0 if present.glued else len(present.words))
        except ValueError:
            return None
        return tuple(FileEdit(self.document.path, edit, self.document) for edit in edits)

    def option(self, name: str) -> Setting | None:
        """What an option of the launcher itself states, in capitals; None where it is not given."""
        found = self.invocation.options.get(name)
        if found is None:
            return None
        value = UNKNOWN if found.value is None else found.value.upper()
        return Setting(name, value, Provenance.at(self.document, found.flag.span))

    def set_option(self, option: str, value: str) -> tuple[FileEdit, ...] | None:
        """The edits that give the launcher itself an option, in front of the script."""
        from lintfit.documents.shell_edits import with_value

        found = self.invocation.options.get(option)
        if self.fixed or found is None or not found.words:
            return self.add_options({option: value})
        glued_to = found.flag.text.partition("=")[0] if found.glued else None
        edit = with_value(self.document, found.words[-1], value, glued_to)
        return (FileEdit(self.document.path, edit, self.document),) if edit is not None else None

    def add_options(self, options: Mapping[str, str]) -> tuple[FileEdit, ...] | None:
        """The edit that gives the launcher itself options which it does not have, in front of the script."""
        if self.fixed or self.invocation.script is None:
            return None
        words = " ".join(f"--{name} {self.written(name, value)}" for name, value in options.items())
        edit = self._before_script(self.invocation.script, words)
        return (FileEdit(self.document.path, edit, self.document),)

    def _before_script(self, script: Word, text: str) -> Edit:
        """The edit that puts words in front of the script: of ``-m`` where that is a module."""
        from lintfit.documents.shell_edits import add_before

        words = self.command.words
        index = words.index(script)
        behind = self.module and index and words[index - 1].text in ("-m", "--module")
        return add_before(self.document, words[index - 1] if behind else script, text)

    def set_variable(self, name: str, value: str) -> tuple[FileEdit, ...] | None:
        """The edit that sets a variable of the environment right in front of the command's program: on a line of its
        own where those before it stand so."""
        program = self.invocation.program
        if self.fixed or program.moved or not program.editable or name in self.environment:
            return None
        first = self.invocation.prefix[0] if self.invocation.prefix else program
        start = first.at.start
        line = self.document.text.rfind("\n", 0, start) + 1
        indent, before = self.document.text[line:start], self.document.text[:line]
        alone = before.endswith("\\\n") and not indent.strip()
        text = f"{name}={value} \\\n{indent}" if alone else f"{name}={value} "
        return (FileEdit(self.document.path, Edit.insert(start, text), self.document),)

    def asks_for(self, before: int, after: int) -> tuple[FileEdit, ...]:
        """The edits that make the batch job ask for ``after`` GPUs on each node where it asks for ``before``, and
        for as many tasks where each of them is a process of the training."""
        from lintfit.sources.launchers.slurm import asked_cards

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
        policy = self.option("fsdp_auto_wrap_policy")
        if value.auto_wrap and (policy is None or policy.value == "NO_WRAP"):
            return self.set_option("fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP")
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


def set_flag(
    document: ShellDocument, command: Command, invocation: Invocation, flag: str, value: str | None
) -> tuple[FileEdit, ...] | None:
    """The edits that give a command's script a flag; None where the value would need quotes inside a variable's."""
    from lintfit.documents import shell_edits

    name = flag.lstrip("-").replace("-", "_")
    present = next((option for option in reversed(invocation.arguments) if option.name == name), None)
    if present is None and name in invocation.options:
        # The same flag in front of the script is the launcher's own.
        return None
    written = present.flag.text.partition("=")[0] if present is not None else f"--{flag.lstrip('-')}"
    if value is not None and value.lower() in _BOOLEANS:
        value = _as_others(value, invocation, present)
    if present is None and value is not None and _is_behind_yaml(invocation) and _ONE_WORD.fullmatch(value):
        written, value = f"{written}={value}", None
    try:
        follower, after = _follower(written, present, value), behind(invocation, name)
        edits = shell_edits.set_flag(document, command, written, value, after, follower)
    except ValueError:
        return None
    return tuple(FileEdit(document.path, edit, document) for edit in edits)


def _follower(flag: str, present: Option | None, value: str | None) -> str:
    """The flag of the evaluation's batch for that of the training's, which gets smaller: who has one variable for both
    wants both to change."""
    old = present.value if present is not None else None
    if "batch" not in flag or old is None or value is None or not (old.isdigit() and value.isdigit()):
        return ""
    of_evaluation = flag.replace("train", "eval") if "train" in flag else flag.replace("batch", "eval_batch")
    return of_evaluation if int(value) < int(old) else ""


_ONE_WORD = lazy_pattern(r"[\w./,:@+-]+")


def _is_behind_yaml(invocation: Invocation) -> bool:
    """Whether the script's first word is a YAML of arguments: H4ArgumentParser splits each flag behind it at its ``=``
    (alignment-handbook, ``configs.py:parse_yaml_and_args``), and other parsers take that form, too."""
    first = invocation.positional[:1]
    return bool(first) and (first[0].value or "").endswith((".yaml", ".yml"))


_BOOLEANS = ("true", "false")


def _as_others(value: str, invocation: Invocation, present: Option | None) -> str:
    """A boolean as the flag itself, or most of the command's other flags, spell theirs: ``true`` or ``True``."""
    options = (present,) if present is not None else ()
    for said in (options, invocation.arguments):
        words = [each.value for each in said if each.value is not None and each.value.lower() in _BOOLEANS]
        if words:
            lower = 2 * sum(word.islower() for word in words) >= len(words)
            return value.lower() if lower else value.capitalize()
    return value.lower() if invocation.launcher in _LOWER else value


_LOWER = ("swift", "llamafactory")
"""Front ends whose own examples write ``true``."""
