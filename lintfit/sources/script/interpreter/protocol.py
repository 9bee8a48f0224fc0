"""What the functions that lintfit knows may ask of the interpreter that calls them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import libcst as cst

from lintfit.sources.script.interpreter.scope import Scope
from lintfit.sources.script.interpreter.state import Walk
from lintfit.sources.script.interpreter.values import Function, Object, Record, Value


class Evaluator(Protocol):
    """The interpreter (:class:`.interpreter.Interpreter`) as what it calls sees it."""

    walk: Walk
    globals: Scope

    def attribute(self, holder: Value, name: str, node: cst.CSTNode) -> Value:
        """An attribute of a value."""

    def store(self, table: dict[str, Value], key: str, value: Value) -> None:
        """Set an item of something that other branches see, too."""

    def follow(self, function: Function, record: Record) -> Value:
        """Run one of the script's own functions with the arguments of a call."""

    def enter(self, function: Function, words: Sequence[str] = ()) -> Value:
        """Run a function that nobody calls with arguments: its parameters are filled by flags or defaults.

        ``words`` are positional ones of the command line, which Fire hands over in order.
        """

    def post_init(self, made: Object) -> None:
        """What a dataclass does to its fields once they are filled."""

    def run_file(self, name: str) -> None:
        """Run the statements of another file as the module's own."""

    def exported(self, module: str) -> dict[str, Value]:
        """The public names of a module of the project; none where it is not at hand."""

    def is_unread(self, name: str) -> bool:
        """Whether a dotted name is of a module of the project that is at hand but not parsed."""

    def environment(self, name: str, default: Value | None, node: cst.CSTNode) -> Value:
        """A variable of the environment, or the default that the script gives."""

    def field_default(self, holder: Object, name: str, node: cst.CSTNode) -> Value | None:
        """The library's default of a field that nobody has set."""
