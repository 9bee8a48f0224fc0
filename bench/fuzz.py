"""Whole commands on mutated trees, each in a process of its own with 10 s of processor time and 1 GiB of memory.

    python -m bench.fuzz --minutes 10
    python -m bench.fuzz --minutes 10 --seed 7 --out /tmp/found

A seeded mutator changes files of the examples, the test projects and, where it lies beside the checkout, the corpus of
real configs. Nothing may end in a traceback, an internal error, a signal, or take longer or more; a check that only
looks may change no file; JSON and SARIF must be JSON; no line of any format but ``github`` may begin a workflow
command. What is found is kept as a tree with the command that does it.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random, SystemRandom

from bench.fuzzing import child
from bench.fuzzing.mutate import mutated
from bench.fuzzing.trees import ROOT, Tree, trees

_GPUS = ["--gpu", "3090", "--gpus", "2"]
_COMMANDS: list[tuple[int, list[str]]] = [
    (40, ["check", ".", *_GPUS]),
    (10, ["check", "."]),
    (10, ["check", ".", *_GPUS, "--fix", "--unsafe-fixes"]),
    (6, ["check", ".", *_GPUS, "--fix", "--unsafe-fixes", "--diff"]),
    (6, ["check", ".", "--gpu", "V100-SXM2-16GB", "--gpus", "8", "--show-plans", "--verbose"]),
    (3, ["check", ".", *_GPUS, "--add-ignores"]),
    *((2, ["check", ".", *_GPUS, "--output-format", name]) for name in
      ("json", "sarif", "github", "gitlab", "rdjson", "junit", "markdown", "github-review", "concise")),
]  # fmt: skip
_COMMANDS_OF_LOGS = re.compile(r"^[ \t]*::(?!: )|##\[", re.MULTILINE)
_CHANGING = ("--fix", "--add-ignores")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(1 << 32))
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--more", type=Path, help="a folder of further trees to begin with")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    child.preload(ROOT / "examples")
    most = Most()
    counts = fuzz(Random(options.seed), trees(options.more), options.minutes * 60, options.out, most)
    inputs = counts.pop("inputs")
    print(f"{inputs} inputs in {options.minutes:g} minutes, seed {options.seed}: {sum(counts.values())} findings")
    print(f"the slowest took {most.seconds:.1f} s of processor time, the largest {most.peak_bytes >> 20} MiB")
    for wrong, count in counts.most_common():
        print(f"{count:6} {wrong}")
    return 1 if counts else 0


@dataclass
class Most:
    """The most that any input took: seconds of processor time, and bytes of memory."""

    seconds: float = 0.0
    peak_bytes: int = 0

    def note(self, ended: child.Ended) -> None:
        """Count an input in."""
        self.seconds = max(self.seconds, ended.seconds)
        self.peak_bytes = max(self.peak_bytes, ended.peak_bytes)


def fuzz(random: Random, begin_with: list[Tree], seconds: float, out: Path, most: Most) -> Counter[str]:
    """Go on for so many seconds; what was wrong, by how it was, and the number of inputs."""
    counts: Counter[str] = Counter(inputs=0)
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="lintfit-fuzz-") as scratch:
        while time.monotonic() < end:
            arguments = random.choices([each for _, each in _COMMANDS], [weight for weight, _ in _COMMANDS])[0]
            tree, folder = mutated(random, begin_with), Path(scratch, "tree")
            _lay_out(tree, folder)
            ended = child.run(arguments, folder, Path(scratch, "said"))
            most.note(ended)
            wrong = ended.wrong or _broken(arguments, ended.output, tree, folder)
            counts["inputs"] += 1
            if wrong:
                counts[_kind(wrong, ended.output)] += 1
                _keep(out / f"{counts['inputs']:06}", tree, arguments, wrong, ended.output)
            shutil.rmtree(folder, ignore_errors=True)
    return counts


def _lay_out(tree: Tree, folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, content in tree.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError:
            continue  # a file where another needs a folder


def _broken(arguments: list[str], output: str, tree: Tree, folder: Path) -> str:
    """What is wrong with a command that ended as it should; empty where nothing is."""
    looks = not any(flag in arguments for flag in _CHANGING) or "--diff" in arguments
    if looks and any((folder / name).is_file() and (folder / name).read_bytes() != tree[name] for name in tree):
        return "changed a file that it was only to look at"
    if _left_over(folder):
        return "left a temporary file"
    form = arguments[arguments.index("--output-format") + 1] if "--output-format" in arguments else "text"
    if form in ("json", "sarif", "gitlab", "rdjson") and not _is_json(output):
        return "no JSON"
    if form != "github" and "--diff" not in arguments and _COMMANDS_OF_LOGS.search(output):
        return "a line begins a workflow command"
    return ""


def _is_json(output: str) -> bool:
    """Whether there is JSON among the lines for the user, which go the same way here."""
    lines = [line for line in output.splitlines() if not line.startswith("lintfit: ")]
    try:
        json.loads("\n".join(lines) or "0")
    except ValueError:
        return False
    return True


def _left_over(folder: Path) -> bool:
    return any(True for _ in folder.rglob(".*.tmp"))


def _kind(wrong: str, output: str) -> str:
    """Findings that are alike have one name: what was raised, without what it was raised over."""
    said = re.search(r"internal error: (\w+)", output)
    return f"{re.sub(r'[0-9.]+ ', 'N ', wrong)}{f' ({said[1]})' if said else ''}"


def _keep(folder: Path, tree: Tree, arguments: list[str], wrong: str, output: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    _lay_out(tree, folder / "tree")
    (folder / "command.txt").write_text(f"lintfit {' '.join(arguments)}\n{wrong}\n\n{output[-20_000:]}", "utf-8")
    print(f"{folder}: {wrong}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
