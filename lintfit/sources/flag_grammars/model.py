"""A flag of a launch, or a key of a file of arguments, that a parser refuses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import frozen, replace
from lintfit.settings.model import Place
from lintfit.sources.flag_grammars.options import Given, Refusal

if TYPE_CHECKING:
    from lintfit.documents.model import DataDocument
    from lintfit.sources.flag_grammars.grammar import Grammar
    from lintfit.sources.launchers.command_line import Option
    from lintfit.sources.launchers.launch import Launch

HUGGING_FACE = frozenset({"HfArgumentParser", "TrlParser"})
_OWN_WORDS = {
    "click": "No such option",
    "fire": "Could not consume arg",
    "typer": "No such option",
    "tyro": "Unrecognized options",
}
"""What parsers say of a flag that they do not know, where that is not what argparse says."""
_NAME = lazy_pattern(r"--?[A-Za-z][\w.-]*")
_DECIDES = lazy_pattern(
    r"accum|adapter|attn|attention|batch|beta|bf16|bit|checkpointing?$|cutoff|deepspeed|dora|dtype|flash|fp16|fp32|fsdp|"
    r"gpu|gradient_check|layers|len|liger|lora|model|nnodes|nproc|num_generations|num_machines|num_nodes|num_processes|offload|"
    r"optim|packing|peft|precision|quant|rank|seq|target_modules|tokens|vllm|zero"
)
"""Words in the names of flags that decide a run's memory."""
_IDLE = lazy_pattern(r"resume|save_|output|logging|logs|eval_steps|hub|from_checkpoint|report_to|log_")
"""Words in the names of flags that hold one of these and decide nothing of it."""


@frozen(eq=False)
class Refused:
    """A flag or a key that a parser refuses: where it stands, as it is written, who refuses it, and why.

    ``key`` says that it is a key of a file of arguments, ``ignored`` that the parser passes over it, up to the release
    ``until`` where the project may have that or a later one, too. ``stops`` is False
    where the error comes only when the script has run. ``history`` says which release takes it; ``decided_by`` are the
    libraries of which a version takes it that the project does not have; ``added_by`` is the launcher that adds it.
    ``lacking`` are required options that the command leaves out, ``twice`` says that two dataclasses, or two lines of a
    script, declare the flag.
    ``unmade`` is the keyword that ``add_argument`` does not take for it, whatever the command line says.
    ``blanks`` are the flags of a command whose values are to be filled in, of which the parser stops at this one.
    ``newer`` are the libraries whose newer releases refuse it, where the project may have an older one as well.
    ``fork`` is the library of which the project has somebody's own copy, which may take it.
    """

    place: Place
    name: str
    parser: str
    refusal: Refusal
    key: bool = False
    ignored: bool = False
    until: str | None = None
    stops: bool = True
    history: str | None = None
    decided_by: tuple[str, ...] = ()
    added_by: str | None = None
    lacking: tuple[str, ...] = ()
    twice: bool = False
    unmade: str = ""
    blanks: tuple[str, ...] = ()
    newer: tuple[str, ...] = ()
    fork: str = ""

    @property
    def error(self) -> str:
        """The error that comes, in the parser's own words."""
        refusal = self.refusal
        if refusal.unrecognized and self.lacking:
            # argparse looks for them in ``_parse_known_args``, before ``parse_args`` has words left over (Python 3.13).
            return f"the following arguments are required: {', '.join(self.lacking)}"
        if refusal.unrecognized and self.parser in HUGGING_FACE:
            what = "keys" if self.key else "specified arguments"
            if self.key and self.parser == "TrlParser":
                return f"Unknown arguments from config file: ['--{self.name}', …]"
            return f"Some {what} are not used by the HfArgumentParser: {list(refusal.unrecognized)}"
        if refusal.unrecognized and self.parser == "ms-swift":
            return f"remaining_argv: {list(refusal.unrecognized)}"
        if refusal.unrecognized and self.parser in _OWN_WORDS:
            return f"{_OWN_WORDS[self.parser]}: {refusal.unrecognized[0]}"
        if refusal.unrecognized:
            return f"unrecognized arguments: {' '.join(refusal.unrecognized)}"
        return f"argument {refusal.known_as}: {refusal.message}" if refusal.by_value else refusal.message

    @property
    def decides(self) -> bool:
        """Whether the run stops for a flag that decides how much memory it needs, or whose likeness does."""
        if (
            self.added_by is not None
            or self.refusal.plain
            or self.newer
            or self.fork
            or (self.ignored and self.parser in HUGGING_FACE)
        ):
            return False
        names = (self.name, self.refusal.known_as, self.refusal.meant or "", *self.blanks)
        plain = [name.lstrip("-").replace("-", "_").lower() for name in names]
        return any(_DECIDES.search(name) and not _IDLE.search(name) for name in plain)


def but_for_set(refused: Refused) -> Refused:
    """The same of a key without what was meant where the file has that, too: then it is no slip of the pen.

    What is passed over then decides nothing (``plain``).
    """
    document, meant = refused.place.document, refused.refusal.meant
    root = getattr(document, "root", None) if refused.key else None
    if root is None or meant is None or root.get(meant) is None:
        return refused
    return replace(
        refused, refusal=replace(refused.refusal, meant=None, plain=refused.ignored or refused.refusal.plain)
    )


def given_flags(launch: Launch) -> Iterator[tuple[Place, Given]]:
    """The flags of a launch as its script's parser gets them, up to a ``--``, behind which none are."""
    options = launch.invocation.arguments
    if not options:
        return
    following = [given_by(option) for option in options[1:]]
    for option, flag, after in zip(options, launch.flags, [*following, Given("--")], strict=True):
        given = given_by(option)
        if given is not None and after is not None:  # else its value may be a text that begins like a flag
            yield flag.place, given
        if "--" in option.values:
            return


def given_by(option: Option) -> Given | None:
    """A flag as it is written; None where that is not known."""
    name = option.flag.text.partition("=")[0]
    if not _NAME.fullmatch(name):
        return None
    return Given(name, _words(option.values), option.glued)


def _words(values: Sequence[str | None]) -> tuple[str, ...]:
    """The words behind a flag, up to the first that is not known and may be another flag, of which those behind it are
    the values; quotes among them are gone after an ``eval``, with who knows which words between."""
    known = list(values).index(None) + 1 if None in values[1:] else len(values)
    words = tuple("$" if value is None else value for value in values[:known])
    if any("'" in word or '"' in word for word in words):
        return ("$",)
    return words[: words.index("--")] if "--" in words else words


def of_file(
    parser: str, grammar: Grammar, document: DataDocument, ignored: bool = False, until: str | None = None
) -> Iterator[Refused]:
    """The keys of a file of arguments that no dataclass of a parser has."""
    root = document.root
    for entry in root.entries if root is not None and root.shape == "mapping" else ():
        if grammar.lacks(entry.key):
            refusal = Refusal("unused keys", grammar.suggested_key(entry.key), (entry.key,))
            place = Place(document, entry.key_span)
            yield Refused(place, entry.key, parser, refusal, key=True, ignored=ignored, until=until)
