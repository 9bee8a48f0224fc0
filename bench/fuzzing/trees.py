"""The trees that mutants are made of: the examples, the test projects, and the corpus of real configs where it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT.parent / "shared" / "corpus"

Tree = dict[str, bytes]
"""The files of a tree by their paths in it."""

_LARGEST = 60_000
"""Bytes of a file that is taken along: a mutant is small enough to be read by a person."""
_MOST = 25
"""Files of one tree."""


def trees(more: Path | None = None) -> list[Tree]:
    """All that mutants may begin with, in the same order each time; ``more`` is a folder of further trees."""
    folders = [*_below(ROOT / "examples"), *_below(ROOT / "tests" / "projects"), *(_below(more) if more else ())]
    found = [tree for folder in folders if (tree := _tree(folder))]
    return [*found, *_configs(CORPUS)]


def _below(folder: Path) -> Iterator[Path]:
    yield from sorted(each for each in folder.iterdir() if each.is_dir()) if folder.is_dir() else ()


def _tree(folder: Path) -> Tree:
    files = sorted(each for each in folder.rglob("*") if each.is_file() and not each.is_symlink())
    small = [each for each in files if each.stat().st_size <= _LARGEST and ".git" not in each.parts]
    return {each.relative_to(folder).as_posix(): each.read_bytes() for each in small[:_MOST]}


def _configs(corpus: Path) -> Iterator[Tree]:
    """Each config of the corpus as a tree of its own, with a launch line that names it."""
    for name, flag in (("deepspeed", "--deepspeed"), ("accelerate", "--config_file"), ("neox", "--deepspeed")):
        for path in sorted(corpus.glob(f"{name}/**/*"))[:400]:
            if path.is_file() and path.stat().st_size <= _LARGEST:
                launcher = "accelerate launch" if flag == "--config_file" else "deepspeed train.py"
                line = f"{launcher} {flag} {path.name} --output_dir out\n"
                yield {path.name: path.read_bytes(), "run.sh": line.encode()}
