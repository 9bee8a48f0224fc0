"""Names for findings that stay the same while lines move around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from hashlib import sha256

from lintfit.findings.model import Finding
from lintfit.report import shown_path


def fingerprints(findings: Iterable[Finding]) -> list[str]:
    """One per finding: from its rule, its file, the text it points at and which of several such it is.

    Neither line numbers nor the figures of the message count, so that an edit elsewhere keeps the name.
    """
    seen: Counter[str] = Counter()
    names = []
    for finding in findings:
        parts = finding.rule, shown_path(finding.place.document.path), " ".join(finding.place.text.split())
        base = sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
        seen[base] += 1
        names.append(sha256(f"{base}:{seen[base]}".encode()).hexdigest()[:32])
    return names
