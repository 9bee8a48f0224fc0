"""The rules as a list, and one rule's page."""

from __future__ import annotations

from lintfit.options.rules_catalog import find, load_rules
from lintfit.report import View

_SILENCING = """\
## Silencing it

A comment `# lintfit: ignore[{name}] reason` behind the line or above it; `per-file-ignores`, `ignore`, `severity` and
`baseline` in lintfit.toml or below `[tool.lintfit]`.
"""


def listing() -> str:
    """One line per rule in the order of the codes: code, severity, ``[*]`` where it has a fix, name, summary."""
    rules = load_rules().values()
    wide = max((len(rule.name) for rule in rules), default=0)
    lines = [
        f"{rule.code}  {rule.severity!s:<7}  {'[*]' if rule.fixable else '   '}  {rule.name:<{wide}}  {rule.summary}"
        for rule in rules
    ]
    return "".join(f"{line}\n" for line in lines)


def page(name: str, view: View) -> str:
    """The page of one rule: as Markdown, or rendered where there are colours."""
    rule = find(name)
    fix = {"none": "no fix", "display": "the fix is shown, not applied"}.get(rule.fix, f"fix: {rule.fix}")
    head = f"# {rule.name} ({rule.code})\n\n{rule.summary}\n\n{rule.severity} · {fix} · since {rule.since}\n\n"
    text = f"{head}{rule.explanation()}\n{_SILENCING.format(name=rule.name)}"
    if not view.color:
        return text
    import io

    from rich.console import Console
    from rich.markdown import Markdown

    buffer = io.StringIO()
    Console(file=buffer, force_terminal=True, width=view.width).print(Markdown(text))
    return buffer.getvalue()
