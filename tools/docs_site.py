"""Build the documents and the rules' pages as a site, in ``build/site``, with Zensical.

    pip install -e '.[docs]' && python tools/docs_site.py

The pages are those of this repository: ``README.md``, ``CHANGELOG.md``, ``CONTRIBUTING.md``, ``docs/``,
``examples/README.md`` and ``rules/``, whose metadata becomes a heading and a line below it. ``--pages`` only gathers
them, in ``build/site-pages``, for another generator.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from lintfit.options.rules_catalog import load_rules  # noqa: E402

PAGES = ROOT / "build" / "site-pages"
SITE = ROOT / "build" / "site"
CONFIG = ROOT / "build" / "zensical.toml"

_CONFIG = """\
[project]
site_name = "lintfit"
site_description = "Will this training run fit its GPUs?"
docs_dir = "site-pages"
site_dir = "site"
use_directory_urls = false
"""


def gather(target: Path) -> list[Path]:
    """Copy every page to where the site expects it, the links between them unchanged; the pages' paths below it."""
    shutil.rmtree(target, ignore_errors=True)
    sources = {Path("index.md"): ROOT / "README.md", Path("examples/README.md"): ROOT / "examples" / "README.md"}
    sources |= {Path(name): ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")}
    for folder in ("docs", "rules"):
        sources |= {Path(folder) / page.name: page for page in sorted((ROOT / folder).glob("*.md"))}
    rules = load_rules()
    for path, source in sources.items():
        text = source.read_text("utf-8")
        if path.parent.name == "rules" and path.stem in rules:
            text = rule_page(path.stem, text)
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_text(text, "utf-8")
    return list(sources)


def rule_page(name: str, text: str) -> str:
    """A rule's page with its metadata as a heading, and the files of its cases told in front of them."""
    rule = load_rules()[name]
    _, _, body = text.removeprefix("---\n").partition("\n---\n")
    lines = [line if not _names_a_file(line) else _titled(line) for line in body.split("\n")]
    summary = rule.summary[:1].upper() + rule.summary[1:]
    return f"# {name}\n\n{summary}.\n\n`{rule.code}` · {rule.severity} · fix: {rule.fix}\n" + "\n".join(lines)


def _names_a_file(line: str) -> bool:
    return line.startswith("```") and len(line.split()) > 1


def _titled(line: str) -> str:
    """``python train.py`` behind a fence is our cases' way; renderers want ``python title="train.py"``."""
    language, *name = line.split()
    return f'{language} title="{" ".join(name)}"'


def main() -> int:
    gather(PAGES)
    if "--pages" in sys.argv[1:]:
        return 0
    CONFIG.write_text(_CONFIG, "utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "--config-file", str(CONFIG)]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
