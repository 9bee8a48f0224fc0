"""Data flows one way: what the modules of lintfit import of each other, wherever in a module the import stands."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support import ROOT

ROOMS = (
    "root",
    "documents",
    "settings",
    "catalog",
    "memory",
    "schema",
    "sources",
    "options",
    "run",
    "verdict",
    "findings",
    "fit",
    "checks",
    "suppression",
    "report",
    "commands",
    "cli",
)
"""From the ground up: a module imports of its own room and of those before it."""

WORDS = frozenset({"boundary", "errors", "frozen", "memo", "resources", "severity", "suggest", "versions"})
"""The modules beside the rooms, which all rooms use; ``__main__`` is the command line's."""

MOST_AT_THE_ROOT = 10


def test_imports_lead_down() -> None:
    wrong = [
        f"{module} imports {other}"
        for module, others in _imports(ROOT).items()
        for other in sorted(others)
        if ROOMS.index(_room(module)) < ROOMS.index(_room(other))
    ]
    assert not wrong


def test_every_module_is_in_a_room() -> None:
    assert {_room(module) for module in _modules(ROOT)} == set(ROOMS)
    assert len(list((ROOT / "lintfit").glob("*.py"))) <= MOST_AT_THE_ROOT


def test_modules_import_in_no_circle() -> None:
    assert _circles(_imports(ROOT)) == []


def test_arrow_upward_in_a_function_is_seen(tmp_path: Path) -> None:
    _write(tmp_path, "documents/door.py", "def open():\n    from lintfit.checks import rule\n")
    _write(tmp_path, "checks/rule.py", "")
    assert _imports(tmp_path)["lintfit.documents.door"] == {"lintfit.checks.rule"}


def test_arrow_of_types_alone_is_seen(tmp_path: Path) -> None:
    _write(tmp_path, "documents/door.py", "if TYPE_CHECKING:\n    from lintfit.run.model import Run\n")
    _write(tmp_path, "run/model.py", "")
    assert _imports(tmp_path)["lintfit.documents.door"] == {"lintfit.run.model"}


def test_circle_is_found(tmp_path: Path) -> None:
    _write(tmp_path, "run/a.py", "from lintfit.run.b import b")
    _write(tmp_path, "run/b.py", "import lintfit.run.c")
    _write(tmp_path, "run/c.py", "def f():\n    from lintfit.run import a")
    _write(tmp_path, "run/d.py", "from lintfit.run import a")
    assert _circles(_imports(tmp_path)) == [["lintfit.run.a", "lintfit.run.b", "lintfit.run.c"]]


def _write(root: Path, name: str, text: str) -> None:
    path = root / "lintfit" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _room(module: str) -> str:
    name = [*module.split("."), ""][1]
    if not name or name in WORDS:
        return "root"
    return "cli" if name == "__main__" else name


def _modules(root: Path) -> dict[str, Path]:
    return {_name(path.relative_to(root)): path for path in sorted((root / "lintfit").rglob("*.py"))}


def _name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(root: Path) -> dict[str, set[str]]:
    modules = _modules(root)
    return {module: set(_imported(path, modules)) - {module} for module, path in modules.items()}


def _imported(path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in modules)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            for name in node.names:
                either = (f"{node.module}.{name.name}", f"{node.module}")
                yield from [each for each in either if each in modules][:1]


def _circles(imports: Mapping[str, set[str]]) -> list[list[str]]:
    """The modules that reach themselves, those of one circle together."""
    reached = {module: _reached(module, imports) for module in imports}
    circles = {
        tuple(sorted(other for other in reached[module] if module in reached[other]))
        for module in imports
        if module in reached[module]
    }
    return sorted(map(list, circles))


def _reached(module: str, imports: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    left = [module]
    while left:
        new = imports[left.pop()] - found
        found |= new
        left += new
    return found
