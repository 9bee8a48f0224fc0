"""The flags and keys that ms-swift does not take: ``ValueError: remaining_argv`` (``swift/pipelines/base.py``)."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.catalog import arguments as libraries
from lintfit.catalog import swift
from lintfit.settings.model import Place
from lintfit.sources.flag_grammars.model import Refused, given_flags
from lintfit.sources.flag_grammars.options import HELP, Given, Option, of_kind, refusal, unknown
from lintfit.sources.recipes.swift_arguments import ENVIRONMENT, SEQ2SEQ, SwiftArguments

PARSER = "ms-swift"


def refused_by(arguments: SwiftArguments) -> Iterator[Refused]:
    """What the command's parser refuses, each flag and key once.

    A value counts only where every version that takes its flag refuses it.
    """
    told = arguments.keys.get("ignore_args_error")
    ignored = told is not None and told.value is not False
    options = _options(arguments, arguments.at)
    seen: set[int] = set()
    for place, given in given_flags(arguments.keys.launch):
        if given.name.lstrip("-") == "config" or place.span.start in seen:
            continue
        seen.add(place.span.start)
        found = refusal(given, options)
        if found is None or (found.by_value and _taken_elsewhere(arguments, given)):
            continue
        history = _history(arguments, given.name.lstrip("-")) if not found.by_value else None
        passed = ignored and not found.by_value
        yield Refused(place, given.name, PARSER, found, ignored=passed, history=history)
    yield from _keys(arguments, options, ignored)


def _keys(arguments: SwiftArguments, options: tuple[Option, ...], ignored: bool) -> Iterator[Refused]:
    """The keys of the file, which become flags."""
    document = arguments.keys.config
    root = document.root if document is not None else None
    if document is None or root is None:
        return
    for entry in root.entries:
        found = unknown(Given(f"--{entry.key}"), options) if entry.key != ENVIRONMENT else None
        if found is not None:
            place, name = Place(document, entry.key_span), f"--{entry.key}"
            history = _history(arguments, entry.key)
            yield Refused(place, name, PARSER, found, key=True, ignored=ignored, history=history)


def _history(arguments: SwiftArguments, name: str) -> str | None:
    return swift.history(arguments.command, name, arguments.at, {*SEQ2SEQ, *_of_transformers(arguments)})


def _taken_elsewhere(arguments: SwiftArguments, given: Given) -> bool:
    stated = arguments.versions.get(swift.PACKAGE)
    if stated is not None and not stated.startswith("<"):
        return False
    return any(refusal(given, _options(arguments, at)) is None for at in range(len(swift.versions())))


def _options(arguments: SwiftArguments, at: int) -> tuple[Option, ...]:
    """The options of the command at a version; those of transformers at all versions that the project may have."""
    kinds = {name: each.kind for name, each in swift.fields(arguments.command, at).items()}
    inherited = swift.inherits(arguments.command, at)
    if inherited is not None:
        kinds = {**dict.fromkeys(SEQ2SEQ, "any"), **_of_transformers(arguments), **kinds}
    return (HELP, *(option for name, kind in kinds.items() for option in of_kind(name, kind, True)))


def _of_transformers(arguments: SwiftArguments) -> dict[str, str]:
    versions = arguments.versions
    studied = libraries.studied("transformers", versions.get("transformers"), versions.get("transformers>="))
    if studied is None:
        studied = libraries.studied("transformers", None, None)
    found: dict[str, str] = {}
    for at in studied.possible if studied is not None else ():
        found |= libraries.fields_at("transformers.TrainingArguments", {"transformers": at}) or {}
    return found
