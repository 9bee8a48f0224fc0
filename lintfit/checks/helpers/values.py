"""What the two rules about values share: the mistakes of a document and what its library makes of them."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import FileContext
from lintfit.checks.helpers.readers import installed, may_checkpoint_by_deepspeed, overwrites, written_by_script
from lintfit.checks.helpers.trees import data_of, dotted
from lintfit.documents.model import DataDocument, KeyPath, Node
from lintfit.findings.model import Severity
from lintfit.frozen import frozen
from lintfit.schema.sections import SchemaName, load
from lintfit.schema.values import Mistake, mistakes, shown

_DIALECTS: tuple[SchemaName, ...] = ("deepspeed", "accelerate")
_NAMES = {"deepspeed": "DeepSpeed", "accelerate": "accelerate"}
_LONGEST = 60
"""Characters of a value that a message shows."""


@frozen(eq=False)
class FoundMistake:
    """A mistake with its document and the library that reads it."""

    document: DataDocument
    root: Node
    dialect: SchemaName
    mistake: Mistake

    @property
    def library(self) -> str:
        return _NAMES[self.dialect]

    @property
    def statement(self) -> str:
        """``"zero_optimization.stage": 4``, a long value cut short."""
        value = shown(self.mistake.node.plain())
        return f'"{dotted(self.mistake.path)}": {value if len(value) <= _LONGEST else value[: _LONGEST - 1] + "…"}'

    @property
    def severity(self) -> Severity:
        return Severity.ERROR if self.mistake.refused and not self.tuned else Severity.WARNING

    @property
    def fails_later(self) -> bool:
        """Whether what nobody checks is surely an error where it is used: a word or a list in the place of a number."""
        number = isinstance(self.mistake.node.value, int | float)
        return not self.mistake.refused and bool(self.mistake.schema.get("x-calculated")) and not number

    @property
    def tuned(self) -> bool:
        """Whether DeepSpeed's autotuner takes one of the values of a list before any run reads the file."""
        enabled = self.root.get("autotuning", "enabled")
        return self.mistake.node.shape == "sequence" and enabled is not None and enabled.value is True

    @property
    def consequence(self) -> str:
        """What the library does with the value."""
        if self.tuned:
            return "only the autotuner takes a list; a run without it stops with a ValidationError"
        value = self.mistake.node.value
        if self.mistake.coerced and isinstance(value, bool):
            return f"{self.library} reads it as {int(value)}"
        if self.mistake.coerced:
            return f"{self.library} reads it as meant, transformers and accelerate compare it as it stands"
        if self.mistake.schema.get("x-warned"):
            return f"{self.library} warns of it, and takes {shown(self.mistake.schema['default'])}"
        if not self.mistake.refused:
            return f"{self.library} takes it unchecked" + (", and stops where it calculates with it" * self.fails_later)
        stops = "stops with a ValidationError" if self._model else "stops when it reads the file"
        return f"{self.library} {stops}"

    @property
    def _model(self) -> bool:
        return self.dialect == "deepspeed" and len(self.mistake.path) > 1 and not self.mistake.schema.get("x-checked")


def found_in(context: FileContext) -> Iterator[FoundMistake]:
    """The mistakes of a DeepSpeed JSON or an Accelerate YAML, in document order."""
    for dialect in _DIALECTS:
        data = data_of(context, dialect)
        if data is not None:
            document, root = data
            # What the library does not even read is told as that.
            unread = {problem.span for problem in document.problems if problem.code == "syntax-error"}
            for mistake in mistakes(root, load(dialect), installed(context.runs, dialect)):
                replaced = overwrites(context.runs, mistake.schema, mistake.node.value) or (
                    _is_launched_with(mistake.path, context)
                    if dialect == "accelerate"
                    else written_by_script(context.runs, mistake.path)
                )
                if mistake.node.span not in unread and not replaced and not _is_idle(mistake.path, root, context):
                    yield FoundMistake(document, root, dialect, mistake)


def _is_launched_with(path: KeyPath, context: FileContext) -> bool:
    """Whether every launch that takes an Accelerate file says the same by a flag, which comes before the file."""
    launches = [run.launch for run in context.runs]
    return (
        len(path) == 1
        and bool(launches)
        and all(each is not None and any(flag.name == path[0] for flag in each.launcher_flags) for each in launches)
    )


def _is_idle(path: KeyPath, root: Node, context: FileContext) -> bool:
    """Whether nothing reads a value of DeepSpeed's ``activation_checkpointing``: ``checkpointing.configure`` alone asks
    for the section, and for the number only beside contiguous memory (``checkpointing.py`` of DeepSpeed 0.19.8)."""
    if path[:1] != ("activation_checkpointing",) or len(path) < 2:
        return False
    contiguous = root.get("activation_checkpointing", "contiguous_memory_optimization")
    if path[1] == "number_checkpoints" and (contiguous is None or contiguous.value is False):
        return True
    scripts = [run for run in context.runs if run.script is not None]
    return bool(scripts) and not any(map(may_checkpoint_by_deepspeed, scripts))
