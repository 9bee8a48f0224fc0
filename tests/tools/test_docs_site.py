"""The site's pages: everything is there, and links between pages hold."""

from __future__ import annotations

import re
from pathlib import Path

from lintfit.options.rules_catalog import load_rules
from tools.docs_site import gather, rule_page

_LINK = re.compile(r"\]\((?!https?:|#)([^)#]+\.md)(?:#[^)]*)?\)")


def test_every_rule_has_a_page_and_every_link_leads_to_one(tmp_path: Path) -> None:
    pages = gather(tmp_path / "pages")
    assert {path.stem for path in pages if path.parent.name == "rules"} >= set(load_rules())
    for path in pages:
        page = tmp_path / "pages" / path
        for target in _LINK.findall(page.read_text("utf-8")):
            assert (page.parent / target).resolve().is_file(), f"{path}: {target}"


_ANCHOR = re.compile(r"\]\((?!https?:)([^)#\s]*\.md)?#([^)\s]+)\)")


def _anchors(page: Path) -> set[str]:
    """Headings as renderers make anchors of them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_to_a_heading_lead_to_one(tmp_path: Path) -> None:
    links = 0
    for path in gather(tmp_path / "pages"):
        page = tmp_path / "pages" / path
        for target, anchor in _ANCHOR.findall(page.read_text("utf-8")):
            assert anchor in _anchors(page.parent / target if target else page), f"{path}: {target}#{anchor}"
            links += 1
    assert links > 10


def test_a_rule_s_metadata_becomes_a_heading() -> None:
    text = "---\nname: forced-float32\n---\n\n## What it does\n\n```python train.py\nmodel.float()\n```\n"
    page = rule_page("forced-float32", text)
    assert page.startswith("# forced-float32\n\nThe model is cast to float32 before it trains.\n\n`LF101` · warning")
    assert '```python title="train.py"\nmodel.float()' in page
    assert "name: forced" not in page
