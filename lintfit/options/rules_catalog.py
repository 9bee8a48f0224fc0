"""The rules' metadata and prose, read from their pages in ``rules/``; nothing here imports a check."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from lintfit.documents.patterns import lazy_pattern
from lintfit.errors import LintfitError
from lintfit.frozen import frozen
from lintfit.resources import packaged, packaged_files, packaged_head, resource_dir
from lintfit.severity import Severity

# Enough for any front matter: a page's prose and cases are only read when somebody asks for them.
_HEAD_BYTES = 2048

INDEX = "README.md"
"""The list of the rules beside their pages."""

_KEYS = ("name", "code", "summary", "severity", "files", "fix", "since")
_CODE = lazy_pattern(r"LF[0-9]{3}")


@frozen
class Rule:
    """One rule as its page's front matter describes it.

    ``files`` are the dialects that must be there for the rule to run (``any`` where a run is enough, ``training`` where
    a script or a recipe is). ``fix`` says in
    words whether the rule has a fix (``none``, ``safe``, ``unsafe``, ``sometimes safe``, ``display``).
    """

    name: str
    code: str
    summary: str
    severity: Severity
    files: tuple[str, ...]
    fix: str
    since: str
    page: Path

    @property
    def module(self) -> str:
        """The name of the module below ``lintfit.checks``."""
        return self.name.replace("-", "_")

    @property
    def fixable(self) -> bool:
        """Whether ``--fix`` (or ``--unsafe-fixes``) may mend some of its findings."""
        return self.fix not in ("none", "display")

    def text(self) -> str:
        """The whole page below the front matter, cases included."""
        return _split(self.page)[1]

    def explanation(self) -> str:
        """The page's prose without its cases."""
        return re.split(r"^## Cases\b", self.text(), maxsplit=1, flags=re.MULTILINE)[0].strip() + "\n"


@cache
def load_rules(folder: Path | None = None) -> Mapping[str, Rule]:
    """All rules by name, in the order of their codes. Raises LintfitError for a page whose metadata is wrong."""
    pages = (page for page in packaged_files(folder or resource_dir("rules"), "*.md") if page.name != INDEX)
    rules = sorted(map(_read, pages), key=lambda rule: rule.code)
    codes: dict[str, Rule] = {}
    for rule in rules:
        other = codes.setdefault(rule.code, rule)
        if other is not rule:
            raise LintfitError(f"rules/{rule.page.name}: {rule.code} is the code of {other.name}, too")
    return {rule.name: rule for rule in rules}


@cache
def rule_names() -> Mapping[str, str]:
    """The rule by its name and by its code, both in lower case."""
    rules = load_rules().values()
    return {text: rule.name for rule in rules for text in (rule.name, rule.code.casefold())}


def find(name_or_code: str) -> Rule:
    """The rule of this name or code, in any case. Raises LintfitError with a suggestion where there is none."""
    rules = load_rules()
    wanted = name_or_code.strip().casefold().replace("_", "-")
    for rule in rules.values():
        if wanted in (rule.name, rule.code.casefold()):
            return rule
    from lintfit.suggest import did_you_mean

    names = [text for rule in rules.values() for text in (rule.name, rule.code)]
    hint = did_you_mean(name_or_code, names) or "; `lintfit rule` lists them"
    raise LintfitError(f'there is no rule "{name_or_code}"{hint}')


def _read(page: Path) -> Rule:
    fields = _front_matter(packaged_head(page, _HEAD_BYTES), page)
    if (missing := [key for key in _KEYS if key not in fields]) or (extra := set(fields) - set(_KEYS)):
        wrong = f"{missing[0]} is missing" if missing else f"{sorted(extra)[0]} is not a key"
        raise LintfitError(f"rules/{page.name}: {wrong} in the front matter")
    if fields["name"] != page.stem or not _CODE.fullmatch(fields["code"]):
        raise LintfitError(f"rules/{page.name}: name must be {page.stem}, code LF and three digits")
    try:
        severity = Severity[fields["severity"].upper()]
    except KeyError:
        raise LintfitError(f"rules/{page.name}: severity must be error, warning or info") from None
    return Rule(
        name=fields["name"],
        code=fields["code"],
        summary=fields["summary"],
        severity=severity,
        files=tuple(item.strip() for item in fields["files"].strip("[]").split(",") if item.strip()),
        fix=fields["fix"],
        since=fields["since"],
        page=page,
    )


def _front_matter(text: str, page: Path) -> dict[str, str]:
    """The ``key: value`` lines between the first two ``---`` lines; values as text, lists still in brackets."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != "---":
        raise LintfitError(f"rules/{page.name}:1: expected --- and the front matter")
    fields: dict[str, str] = {}
    for number, line in enumerate(lines[1:], 2):
        if line.strip() == "---":
            return fields
        key, colon, value = line.partition(":")
        if not colon or not key.strip().isidentifier():
            raise LintfitError(f"rules/{page.name}:{number}: expected key: value")
        value = value.strip()
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        fields[key.strip()] = value[1:-1] if quoted else value
    raise LintfitError(f"rules/{page.name}: the front matter does not end within {_HEAD_BYTES} bytes")


def _split(page: Path) -> tuple[str, str]:
    """Front matter and the text below it."""
    _, head, body = packaged(page).split("---\n", 2)
    return head, body.lstrip("\n")
