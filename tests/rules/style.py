"""What a message must be: one line that says what is wrong, what it costs or breaks, and (with its help) what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lintfit.findings.model import Finding, Severity

LONGEST = 240
"""Characters of a message; the longest are those that list the components of a peak."""

_QUANTITY = re.compile(
    r"[0-9][0-9,.]*\s*(?:(?:GiB|MiB|B)\b|%|×|tokens|samples|completions|steps|elements|bytes)|[0-9.]+ of [0-9.]+"
)
_ERROR = re.compile(r"\b[A-Z]\w*(?:Error|Exception)\b|\bexit code\b|\bstops with\b")
_TWO_CLAUSES = re.compile(r"\w\S* \S+.*?(?:[:;,]| and) (?:\S+ )+\S*\w")
"""``what is wrong: what follows``: a message without figures and without an error has to have both."""
_REMEDY = re.compile(r"did you mean|\(--[a-z]|would do\b|is missing\b")
_FORBIDDEN = {
    r"\bhalv(?:es?|ing) (?:the |its |your )?(?:gpu )?memory": "16 bits halve what they store, never the memory",
    r"50 ?(?:[-–]|to) ?80 ?%": "checkpointing saves a share of the activations, not of the total",
    r"(?:lower|reduce|decrease)s? the global batch": "the global batch does not decide the peak",
    r"(?:use|start|with) fewer processes|fewer processes (?:lower|save|reduce)": "fewer ranks raise each share",
    r"delete \.float\(\)|remove \.float\(\)": "an upcast of logits is right; a fused loss is the remedy",
    r"(?:delete|remove) (?:the )?empty_cache|empty_cache\(\) (?:frees|saves|lowers)": "without it the peak may rise",
    r"\b(?:guarantee[ds]?|will definitely|always fits|never runs out)\b": "an estimate has a range",
}
"""Claims that studied advice makes and measurements refute, and why."""


def wrong_with(finding: Finding) -> Iterator[str]:
    """What the message of a finding lacks, one line each."""
    message = finding.message
    remedy = finding.help or (finding.fix.message if finding.fix is not None else "")
    for name, text in (("message", message), ("help", remedy)):
        if text and not (text.isprintable() and text == " ".join(text.split())):
            yield f"the {name} is not one line: {text!r}"
        if text.endswith((".", "!")) and not text.endswith("…"):
            yield f"the {name} ends like a sentence: {text}"
    if len(message) > LONGEST:
        yield f"the message has {len(message)} characters: {message}"
    if finding.severity > Severity.INFO and not any(part.search(message) for part in (_QUANTITY, _ERROR, _TWO_CLAUSES)):
        yield f"the message says neither what it costs nor what breaks: {message}"
    if finding.severity > Severity.INFO and not remedy and not _REMEDY.search(message):
        yield f"nothing says what to do: {message}"
    yield from forbidden(f"{message}\n{remedy}")


def forbidden(text: str) -> Iterator[str]:
    """The claims in a text that lintfit must not make."""
    for pattern, why in _FORBIDDEN.items():
        for found in re.finditer(pattern, text, re.IGNORECASE):
            yield f"{found.group()!r}: {why}"
