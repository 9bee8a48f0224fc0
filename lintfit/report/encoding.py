"""How JSON is printed."""

from __future__ import annotations

import json

SCHEMA_VERSION = 1


def dumps(value: object) -> str:
    """JSON text, indented, in ASCII so that no terminal or pipe can fail to encode it.

    What GitHub's runner would obey in a log (:func:`lintfit.errors.defused`) is spelt with an escape.
    """
    return _escaped(json.dumps(value, indent=2)) + "\n"


def compact(value: object) -> str:
    """The same in one line: json's own encoder is many times as slow where it indents."""
    return _escaped(json.dumps(value))


def _escaped(text: str) -> str:
    return text.replace("##[", r"##\u005b")
