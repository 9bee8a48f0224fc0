"""A launch command taken apart: the launcher, its own options, the script, and the script's flags.

Only words are looked at here, not where they stand in the file or what the options mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, cast

from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.shell_words import Word
from lintfit.frozen import frozen, replace, word_set
from lintfit.sources.launchers.grammars import GRAMMARS, Grammar
from lintfit.sources.recipes import front_ends
from lintfit.sources.recipes.front_ends import FrontEnd

Launcher = Literal["torchrun", "torch.distributed.launch", "deepspeed", "accelerate", "fabric", "python"] | FrontEnd


@frozen(eq=False)
class Option:
    """``--name``, ``--name value`` or ``--name=value``.

    ``name`` is without dashes, with ``-`` as ``_``. ``values`` are the texts of its values (None where one cannot be
    told), ``words`` the words that they stand in; ``glued`` says that the value stands behind a ``=``.
    """

    name: str
    flag: Word
    values: tuple[str | None, ...] = ()
    words: tuple[Word, ...] = ()
    glued: bool = False

    @property
    def value(self) -> str | None:
        """The first value; None for a bare flag and for a value that is not statically known."""
        return self.values[0] if self.values else None

    @property
    def bare(self) -> bool:
        return not self.values


@frozen(eq=False)
class Invocation:
    """A launch command by its parts. ``module`` says that ``script`` is a module's name (``-m``).

    ``positional`` are the words between the script and its first flag, ``loose`` those behind a flag whose value is
    glued to it. ``opaque`` says that among the launcher's own options are words that could not be expanded, so that
    any of its options may be set without being listed.
    ``action`` is what a front end that trains from a recipe is asked for (``finetune_lora``); it has no script.
    ``machines`` is the option by which a submitting script in front of ``--`` is told on how many it runs the command.
    """

    launcher: Launcher
    program: Word
    options: Mapping[str, Option]
    script: Word | None
    module: bool
    arguments: tuple[Option, ...]
    positional: tuple[Word, ...] = ()
    loose: tuple[Word, ...] = ()
    opaque: bool = False
    prefix: tuple[Word, ...] = ()
    action: str | None = None
    machines: Option | None = None


# What trl hands on to accelerate launch: options that no config of TRL's and no TrainingArguments has.
_ACCELERATE_BY_TRL = word_set("""
    accelerate_config config_file deepspeed_config_file fsdp_offload_params fsdp_reshard_after_forward
    fsdp_sharding_strategy fsdp_version gpu_ids machine_rank main_process_ip main_process_port mixed_precision
    multi_gpu num_machines num_processes offload_optimizer_device offload_param_device use_deepspeed use_fsdp
    zero3_init_flag zero_stage
    """)

_PYTHON = lazy_pattern(r"(?:python|pypy)[\d.]*$")
_WRAPPERS = word_set("""
    apptainer bash conda coverage docker env eval exec gosu horovodrun ionice mpirun mpiexec nice nohup nsys numactl
    pipenv poetry podman ray setsid sh singularity srun stdbuf sudo taskset time timeout unbuffer uv xvfb-run
    """)
"""Commands that run another command, which stands further right on their line."""

_CONTAINERS = word_set("apptainer docker podman singularity")
_ON_IMAGES = word_set("build builder buildx commit cp image images inspect load login logs pull push rm rmi save tag")
"""Commands of containers that start nothing in one: an image may be called ``deepspeed``."""

_MACHINES = word_set("nnodes nodes num_machines num_nodes replicas")
"""What submitting scripts call the number of machines."""

_MODULES: Mapping[str, Launcher] = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torch.distributed.launch",
    "deepspeed.launcher.runner": "deepspeed",
    "accelerate.commands.launch": "accelerate",
}
_NEGATIVE = lazy_pattern(r"-\.?\d")


def take_apart(words: Sequence[Word]) -> Invocation | None:
    """The parts of a command that starts a Python script, None for any other command."""
    start = program_of(words)
    if start is None:
        return None
    launcher, program, rest = start
    words = _one_command(words, rest)
    if launcher == "python":
        return _python(words, program, rest)
    if front_ends.is_front_end(launcher):
        return _front_end(launcher, words, program, rest)
    return _launched(launcher, words, program, rest)


def _one_command(words: Sequence[Word], rest: int) -> Sequence[Word]:
    """The words up to the end of the command that begins in front of ``rest``, of those in a string that is run.

    What a submitting script takes behind ``--`` may hold several commands and is left whole.
    """
    for index, word in enumerate(words[rest:], rest):
        if word.text == "--":
            return words
        if word.text in (";", "&&"):
            return words[:index]
    return words


def program_of(words: Sequence[Word]) -> tuple[Launcher, int, int] | None:
    """The launcher, the index of its word, and the index where its own options begin."""
    wrapped = False
    for index, word in enumerate(words):
        name = _base(word)
        if name in ("torchrun", "torchrun.exe"):
            return "torchrun", index, index + 1
        if name in ("deepspeed", "deepspeed.pt", "ds"):
            return "deepspeed", index, index + 1
        if name == "accelerate-launch":
            return "accelerate", index, index + 1
        following = words[index + 1].value if index + 1 < len(words) else None
        if name == "accelerate":
            return ("accelerate", index, index + 2) if following == "launch" else None
        if name == "fabric":
            return ("fabric", index, index + 2) if following in ("run", "run model") else None
        if name == "lightning":
            # lightning/fabric/cli.py up to 2.2
            model = words[index + 2].value if index + 2 < len(words) else None
            return ("fabric", index, index + 3) if (following, model) == ("run", "model") else None
        front_end = front_ends.of_command(name)
        if front_end is not None:
            return front_end, index, index + 1
        if _PYTHON.fullmatch(name):
            return "python", index, index + 1
        if name.endswith(".py") and (wrapped or index == 0):
            return "python", index, index
        wrapped = wrapped or name in _WRAPPERS
        if name in _CONTAINERS and following in _ON_IMAGES:
            return None
        if not wrapped or (name in ("bash", "sh") and _runs_a_file(words[index + 1 :])):
            return None
    return None


def _runs_a_file(words: Sequence[Word]) -> bool:
    """Whether a shell with these words behind it runs a script, not a string (``-c``): the rest is that script's."""
    first = next((word for word in words if not word.text.startswith("-") or word.text.endswith("c")), None)
    return first is not None and _base(first).endswith((".sh", ".bash"))


def _base(word: Word) -> str:
    return word.text.rsplit("/", 1)[-1]


def _python(words: Sequence[Word], program: int, rest: int) -> Invocation | None:
    index = rest
    while index < len(words):
        text = words[index].value
        if text == "-m" and index + 1 < len(words):
            module = words[index + 1].value or ""
            launcher = _MODULES.get(module)
            if launcher is not None:
                return _launched(launcher, words, program, index + 2)
            front_end = front_ends.of_module(module)
            if front_end is not None:
                return _front_end(front_end, words, program, index + 2)
            return _with_script("python", words, program, {}, index + 1, module=True)
        if text == "-c":
            return None
        if text in ("-W", "-X"):
            index += 1
        elif text is None or not text.startswith("-"):
            return _with_script("python", words, program, {}, index, module=False)
        index += 1
    return None


def _front_end(launcher: Launcher, words: Sequence[Word], program: int, rest: int) -> Invocation | None:
    found = front_ends.action(cast("FrontEnd", launcher), words[rest:])
    if found is None:
        return None
    action, taken = found
    if launcher == "torchtune":
        return _by_torchtune(words, program, rest + taken)
    return _by_recipe(launcher, action, words, program, rest + taken)


def _by_recipe(launcher: Launcher, action: str, words: Sequence[Word], program: int, rest: int) -> Invocation:
    """A front end's command that trains, whose own options and recipe begin at ``rest``."""
    own = words[rest:]
    flags = arguments(own)
    handed_on = _ACCELERATE_BY_TRL if launcher == "trl" else frozenset()
    return Invocation(
        launcher=launcher,
        program=words[program],
        options={option.name: option for option in flags if option.name in handed_on},
        script=None,
        module=False,
        arguments=tuple(option for option in flags if option.name not in handed_on),
        positional=_positional(own),
        prefix=tuple(words[:program]),
        action=action,
    )


def _by_torchtune(words: Sequence[Word], program: int, rest: int) -> Invocation | None:
    """``tune run [torchrun's options] RECIPE --config CONFIG key=value``."""
    options, index, opaque = _own_options(GRAMMARS["torchrun"], words, rest)
    if index >= len(words) or not front_ends.trains_by_recipe(words[index].value):
        return None
    return Invocation(
        launcher="torchtune",
        program=words[program],
        options=options,
        script=None,
        module=False,
        arguments=arguments(words[index + 1 :]),
        positional=_positional(words[index + 1 :]),
        opaque=opaque,
        prefix=tuple(words[:program]),
        action=f"run {words[index].text}",
    )


def _launched(launcher: Launcher, words: Sequence[Word], program: int, rest: int) -> Invocation | None:
    options, index, opaque = _own_options(GRAMMARS[launcher], words, rest)
    return _with_script(launcher, words, program, options, index, module="module" in options, opaque=opaque)


def _with_script(
    launcher: Launcher,
    words: Sequence[Word],
    program: int,
    options: Mapping[str, Option],
    index: int,
    *,
    module: bool,
    opaque: bool = False,
) -> Invocation | None:
    if index >= len(words):
        return None
    script, own = words[index], arguments(words[index + 1 :])
    if launcher == "fabric":
        # Click takes an option of its own from anywhere on the line.
        mine = {option.name: option for option in own if option.name in GRAMMARS["fabric"].valued}
        options, own = {**options, **mine}, tuple(option for option in own if option.name not in mine)
    inner = _separator(words, index) if launcher == "python" else None
    if inner is not None:
        submitted = take_apart(words[inner:])
        machines = next((option for option in arguments(words[index + 1 : inner]) if option.name in _MACHINES), None)
        return replace(submitted, machines=machines) if submitted is not None and machines is not None else submitted
    first = words[index + 1].value if index + 1 < len(words) else None
    trains = front_ends.training_module(script.value) if module else front_ends.training_script(script.value, first)
    if trains is not None:
        return replace(_by_recipe(*trains, words, program, index + 1), options=options, opaque=opaque)
    return Invocation(
        launcher=launcher,
        program=words[program],
        options=options,
        script=script,
        module=module,
        arguments=own,
        positional=_positional(words[index + 1 :]),
        loose=_loose(words[index + 1 :]),
        opaque=opaque,
        prefix=tuple(words[:program]),
    )


def _separator(words: Sequence[Word], index: int) -> int | None:
    """Where the last command begins that a submitting script takes behind ``--``.

    ``submit.py … -- setup.sh \\&\\& torchrun …`` is how several of them are joined.
    """
    found: int | None = None
    behind = False
    for position in range(index, len(words) - 1):
        text = words[position].value
        behind = behind or text == "--"
        if behind and text in ("--", "&&", ";") and take_apart(words[position + 1 :]) is not None:
            found = position + 1
    return found


def _own_options(grammar: Grammar, words: Sequence[Word], index: int) -> tuple[dict[str, Option], int, bool]:
    """A launcher's own options, the index of the script behind them, and whether a word could not be expanded."""
    options: dict[str, Option] = {}
    opaque = False
    while index < len(words):
        word = words[index]
        if word.value is None and not word.text.startswith("-"):
            if not _script_follows(words, index + 1):
                break
            opaque = True
            index += 1
            continue
        text = word.text
        if not text.startswith("-") or text == "-":
            break
        if text == "--":
            index += 1
            break
        name, glued = _option_name(grammar, text)
        if word.value is None and name in grammar.bare:
            opaque = True  # a switch that a branch may have added
            index += 1
            continue
        listed = name in grammar.valued or index + 1 >= len(words) or not words[index + 1].text.endswith(".py")
        taken = 1 if glued is None and name not in grammar.bare and listed else 0
        following = words[index + 1 : index + 1 + taken]
        known = glued if word.value is not None else None
        values = (known,) if glued is not None else tuple(value.value for value in following)
        places = (word,) if glued is not None else tuple(following)
        options[name] = Option(name, word, values, places, glued is not None)
        index += 1 + taken
    return options, index, opaque


def _option_name(grammar: Grammar, text: str) -> tuple[str, str | None]:
    """The full name of an option as written, and its value where one is glued to it."""
    written, equals, value = text.partition("=")
    name = written.lstrip("-").replace("-", "_")
    if not written.startswith("--") and name in grammar.short:
        name = grammar.short[name]
    elif grammar.abbreviations and name not in grammar.valued | grammar.bare:
        matching = [known for known in sorted(grammar.valued | grammar.bare) if known.startswith(name)]
        name = matching[0] if len(matching) == 1 else name
    return name, value if equals else None


def _script_follows(words: Sequence[Word], index: int) -> bool:
    """Whether a word that could not be expanded is followed by the script, so that it must hold options."""
    for word in words[index:]:
        text = word.text
        if text.startswith("-"):
            continue
        if text.endswith(".py"):
            return True
        if word.value is not None and not text.isdigit():
            return False
    return False


def arguments(words: Sequence[Word]) -> tuple[Option, ...]:
    """The flags of a script, each with its values: all words up to the next flag."""
    found: list[Option] = []
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if not _is_flag(word):
            continue
        written, equals, value = word.text.partition("=")
        name = written.lstrip("-").replace("-", "_")
        if equals:
            found.append(Option(name, word, (value if word.value is not None else None,), (word,), glued=True))
            continue
        end = index
        while end < len(words) and not _is_flag(words[end]):
            end += 1
        values = words[index:end]
        found.append(Option(name, word, tuple(value.value for value in values), tuple(values)))
        index = end
    return tuple(found)


def _positional(words: Sequence[Word]) -> tuple[Word, ...]:
    """The words in front of a script's first flag (a recipe's file, Hydra's ``key=value``)."""
    count = next((index for index, word in enumerate(words) if _is_flag(word)), len(words))
    return tuple(words[:count])


def _loose(words: Sequence[Word]) -> tuple[Word, ...]:
    """The words that stand behind a ``--name=value``."""
    found: list[Word] = []
    glued = False
    for word in words:
        if _is_flag(word):
            glued = "=" in word.text
        elif glued:
            found.append(word)
    return tuple(found)


def _is_flag(word: Word) -> bool:
    text = word.text
    return text.startswith("-") and len(text) > 1 and not _NEGATIVE.match(text) and text != "--"
