"""Writes ``rules/README.md``, the list of the rules, from their pages and from ``rules/catalogue.toml``.

python tools/rules_index.py            write it
python tools/rules_index.py --check    exit 1 where it is out of date
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from lintfit.options.rules_catalog import INDEX, Rule, load_rules  # noqa: E402

RULES = ROOT / "rules"
CATALOGUE = RULES / "catalogue.toml"

FAMILIES: Mapping[str, str] = {
    "LF0": "Syntax and schema",
    "LF09": "Comments for lintfit",
    "LF1": "Precision",
    "LF2": "Activations and checkpointing",
    "LF3": "ZeRO, sharding and offload",
    "LF4": "Batch and sequence",
    "LF5": "Optimizer and scheduler",
    "LF6": "Adapters and quantization",
    "LF7": "Training loops",
    "LF8": "Files that contradict each other",
    "LF9": "The memory verdict",
}
"""Title by the beginning of the code; the longest beginning decides."""

_SORTS: Mapping[str, str] = {
    "merged": "Part of another rule",
    "dropped": "Left out",
    "not-covered": "Not covered",
}

_HEAD = """\
# Rules

<!-- Written by tools/rules_index.py from the pages in this folder: change those, then run it. -->

One page per rule: what it reports, why that is bad, what to do, when it stays quiet, and cases, which are its tests.
`lintfit rule` lists them, `lintfit rule NAME` prints a page.

The severity is the rule's own; a rule about memory weighs it by the run: an **error** where it breaks the fit, a
**warning** where it costs an amount that matters, **information** where there is room. A *safe* fix keeps the effective
batch and the mathematics of training; an *unsafe* one may change them and waits for `--unsafe-fixes`; one that is only
*display* is shown and never applied. For every rule: a fix of what is only information waits, too, and so does one that
would delete a comment or the key that a comment stands by; one that would take away a key that code of the tree reads
is only shown. [docs/silencing.md](../docs/silencing.md) says how to silence a finding, a rule, or all that is there
today.
"""

_ASKS = """\
## What rules ask of a run

A rule about what a run does is asked of whatever trains it, a script or a front end's recipe (`files: [training]`); its
page has a case of each. A rule about Python is asked of scripts (`files: [script]`); its page says why a recipe has
nothing of the kind. A rule about one front end is asked of its recipes alone (`files: [swift]`, the recipe's dialect).
"""

_UNCOVERED = """\
## What is not a rule of its own

Codes that were planned and have no page, and why.
"""


@dataclass(frozen=True)
class Entry:
    """A planned rule without a page: its code and name, what became of it, and why."""

    code: str
    name: str
    sort: str
    into: str
    why: str


def entries(text: str) -> list[Entry]:
    """The entries of ``catalogue.toml``. Raises ValueError for one that is not whole."""
    found = []
    for key, table in tomllib.loads(text).items():
        code, _, name = key.partition(" ")
        sort, into, why = table.get("sort"), table.get("into", ""), table.get("why", "")
        if not (code.startswith("LF") and name and sort in _SORTS and why) or (sort == "merged") != bool(into):
            raise ValueError(f"rules/catalogue.toml: {key}: needs sort, why, and (where it is merged) into")
        found.append(Entry(code, name, sort, into, why))
    return sorted(found, key=lambda entry: entry.code)


def problems(rules: Mapping[str, Rule], planned: list[Entry]) -> Iterator[str]:
    """What in the catalogue contradicts the pages."""
    codes = {rule.code for rule in rules.values()}
    for entry in planned:
        if entry.code in codes:
            yield f"{entry.code} has a page and stands in catalogue.toml"
        if entry.into and entry.into not in rules:
            yield f"{entry.code} is merged into {entry.into}, which has no page"


def family(code: str) -> str:
    """The title of the family that a code belongs to."""
    return FAMILIES[max((start for start in FAMILIES if code.startswith(start)), key=len)]


def index(rules: Mapping[str, Rule], planned: list[Entry]) -> str:
    """The text of ``rules/README.md``."""
    parts = [_HEAD]
    for title in FAMILIES.values():
        own = [rule for rule in rules.values() if family(rule.code) == title]
        if own:
            parts.append(f"## {title}\n\n| code | rule | severity | fix | |\n| --- | --- | --- | --- | --- |\n")
            parts[-1] += "".join(map(_row, own))
    if of_runs(rules):
        parts.extend(_asks(rules))
    if planned:
        parts.append(_UNCOVERED)
        for sort, title in _SORTS.items():
            own_entries = [entry for entry in planned if entry.sort == sort]
            if own_entries:
                parts.append(f"### {title}\n\n" + "".join(map(_line, own_entries)))
    return "\n".join(parts)


def of_runs(rules: Mapping[str, Rule]) -> list[Rule]:
    """The rules about what a run does, which a script and a recipe answer alike."""
    return [rule for rule in rules.values() if "training" in rule.files]


def of_scripts(rules: Mapping[str, Rule]) -> dict[str, str]:
    """The rules about Python code by name, each with why no recipe is asked; empty where its page is silent."""
    return {rule.name: _why_not_of_recipes(rule) for rule in rules.values() if "script" in rule.files}


def _why_not_of_recipes(rule: Rule) -> str:
    _, _, quiet = rule.explanation().partition("\n## When it is quiet\n")
    found = re.search(r"^- A recipe: (.+(?:\n  .+)*)", quiet, re.MULTILINE)
    return " ".join(found[1].split()) if found is not None else ""


def _asks(rules: Mapping[str, Rule]) -> Iterator[str]:
    yield _ASKS
    yield "| what the run does |\n| --- |\n" + "".join(f"| {_link(rule)} |\n" for rule in of_runs(rules))
    scripts = of_scripts(rules)
    yield "| the script's code | a recipe |\n| --- | --- |\n" + "".join(
        f"| {_link(rules[name])} | {why} |\n" for name, why in scripts.items()
    )


def _link(rule: Rule) -> str:
    return f"[{rule.name}]({rule.page.name})"


def _row(rule: Rule) -> str:
    summary = rule.summary.replace("|", "\\|")
    return f"| {rule.code} | [{rule.name}]({rule.page.name}) | {rule.severity} | {rule.fix} | {summary} |\n"


def _line(entry: Entry) -> str:
    into = f" → [{entry.into}]({entry.into}.md)" if entry.into else ""
    return f"- {entry.code} {entry.name}{into}: {entry.why}\n"


def main(arguments: list[str]) -> int:
    """Write the index, or with ``--check`` say whether it is as it should be."""
    rules = load_rules(RULES)
    planned = entries(CATALOGUE.read_text("utf-8"))
    wrong = list(problems(rules, planned))
    for problem in wrong:
        print(problem, file=sys.stderr)
    text = index(rules, planned)
    file = RULES / INDEX
    if "--check" in arguments:
        same = file.is_file() and file.read_text("utf-8") == text
        if not same:
            print("rules/README.md is out of date: python tools/rules_index.py", file=sys.stderr)
        return int(bool(wrong) or not same)
    file.write_text(text, "utf-8", newline="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
