"""A check of one JSON file must not load the parsers of the other languages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"libcst", "ruamel", "tree_sitter", "tree_sitter_bash", "rich", "jsonschema", "yaml", "hjson"}


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        ("a.json", '{"zero_optimization": {"stage": 2,}}', set()),
        ("a.yaml", "a: 1\n", {"ruamel"}),
        ("a.sh", "torchrun a.py\n", {"tree_sitter", "tree_sitter_bash"}),
        ("a.py", "import torch\n", {"libcst", "yaml"}),
    ],
)
def test_a_document_loads_its_own_parser_only(tmp_path: Path, name: str, text: str, allowed: set[str]) -> None:
    (tmp_path / name).write_text(text)
    code = (
        "import sys; from pathlib import Path; from lintfit.documents.workspace import Workspace\n"
        f"document = Workspace(Path({str(tmp_path)!r})).read(Path({name!r})); document.problems\n"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & HEAVY <= allowed
