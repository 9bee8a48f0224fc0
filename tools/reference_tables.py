"""Write the table of a spec's keys in ``docs/reference.md`` anew, from the registry of settings.

python tools/reference_tables.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lintfit.settings.record import Record

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference.md"
BEGIN, END = "<!-- spec keys: python tools/reference_tables.py writes them -->\n", "<!-- spec keys end -->"

sys.path.insert(0, str(ROOT))


def table() -> str:
    """The keys of a spec and what each may be, in the order of the registry."""
    from lintfit.settings.kinds import in_words
    from lintfit.settings.registry import SETTINGS

    rows = ["| key | values | where it is not stated |", "| --- | --- | --- |"]
    for record in SETTINGS.values():
        if record.in_spec:
            rows.append(f"| `{record.name}` | {record.values or in_words(record.kind)} | {otherwise(record)} |")
    return "\n".join(rows) + "\n"


def otherwise(record: Record) -> str:
    """What a key is where a spec does not state it; nothing where it has no default."""
    if record.default_by or not record.has_default:
        return record.default_by
    value = record.default
    return f"{value:g}" if type(value) in (int, float) else f"`{json.dumps(value).strip(chr(34))}`"


def page(text: str) -> str:
    """The reference page with the table of today."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
