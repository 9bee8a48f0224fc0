"""How JSON is printed."""

from __future__ import annotations

import json

SCHEMA_VERSION = 1


def dumps(value: object) -> str:
    """JSON text, indented, in ASCII so that no terminal or pipe can fail to encode it."""
    return json.dumps(value, indent=2) + "\n"
