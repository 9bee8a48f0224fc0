"""Recipes that nobody trains by: all commands of the tree that name one do something else with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from lintfit.documents.model import DataDocument, Document, Kind
from lintfit.documents.workspace import Workspace
from lintfit.sources.launchers.idle_commands import maybe_idle, trains_by


def untrained(
    recipes: Sequence[DataDocument], documents: Sequence[Document], workspace: Workspace
) -> Mapping[Path, str]:
    """By a recipe's path the file with the command that is given it, of those that no command trains by.

    A command names a recipe by its path, or by its name alone where the path leads to none of the tree's: it may be
    made in a checkout of the front end. Code that names the file may train by it.
    """
    found: dict[Path, str] = {}
    for recipe in recipes:
        told = [*_told(recipe, recipes, documents)]
        idle = next((where for where, trains in told if not trains), None)
        if idle is not None and not any(trains for _, trains in told) and not _in_code(recipe, documents, workspace):
            found[recipe.path] = idle
    return found


def _told(
    recipe: DataDocument, recipes: Sequence[DataDocument], documents: Sequence[Document]
) -> Iterator[tuple[str, bool]]:
    """The files whose commands name a recipe, and whether these may train by it."""
    from lintfit.documents.shell_document import ShellDocument

    name = recipe.path.name
    for document in documents:
        if not isinstance(document, ShellDocument) or name not in document.text:
            continue
        for command in document.commands:
            for word in command.words:
                if name in word.text and _is_of(word.text, recipe, recipes):
                    trains = trains_by(command.words)
                    if trains is not None:
                        yield document.path.as_posix(), trains
                    break


def _is_of(word: str, recipe: DataDocument, recipes: Sequence[DataDocument]) -> bool:
    """Whether a word of a command is this recipe's path, or the name of no other one."""
    said = PurePosixPath(word.rpartition("=")[2].removeprefix("@")).as_posix().lstrip("./")
    named = [each for each in recipes if f"/{each.path.as_posix()}".endswith(f"/{said}")]
    if named:
        return recipe in named
    alike = [each for each in recipes if each.path.name == PurePosixPath(said).name]
    return alike == [recipe]


def _in_code(recipe: DataDocument, documents: Sequence[Document], workspace: Workspace) -> bool:
    from lintfit.run.key_reads import key_reads

    read = {workspace.located(document.path) for document in documents if document.kind is Kind.SHELL}
    return key_reads(workspace).named_in_code(recipe.path, read)


def any_idle(documents: Sequence[Document]) -> bool:
    """Whether some file may hold such a command: a cheap look before anything is parsed."""
    return any(maybe_idle(each.text) for each in documents if each.kind is Kind.SHELL)
