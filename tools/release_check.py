"""Everything that has to hold of a release, tried on what would be uploaded, in environments that have nothing else.

    python tools/release_check.py                 all of it (about ten minutes)
    python tools/release_check.py --quick         the same with the quick part of the tests
    python tools/release_check.py --only lowest   one part: wheel, sdist or lowest
    python tools/release_check.py --keep dist     and leave the wheel and the source archive in this folder

*wheel*: it is installed alone, and its commands are run outside the checkout. *sdist*: it is unpacked, and the README's
test command is run there. *lowest*: the same tests with the lowest version of every dependency that ``pyproject.toml``
allows. Packages come from the index that pip is configured with.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
QUICK = (
    "tests/test_packaging.py",
    "tests/test_examples.py",
    "tests/cli",
    "tests/documents",
    "tests/rules",
    "tests/schema",
)
"""Tests that come by every dependency: commands, readers and editors of every kind of file, schemas."""

COMMANDS: tuple[tuple[Sequence[str], int, str], ...] = (
    (("--version",), 0, "lintfit"),
    (("check", "medicalgpt"), 1, "does not fit"),
    (("check", "--fix", "--unsafe-fixes", "--diff", "medicalgpt"), 1, "+++"),
    (("estimate", "--model", "Qwen/Qwen2.5-7B", "--gpu", "RTX 4090", "--gpus", "2"), 0, "GiB"),
    (("rule", "forced-float32"), 0, "float32"),
    (("schema", "deepspeed"), 0, "zero_optimization"),
)
"""What an installed lintfit is asked beside a copy of ``examples/medicalgpt``: arguments, exit status, a part of the
answer."""


class Failed(Exception):
    """A check that did not hold, in one line."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="run only the quick part of the tests")
    parser.add_argument("--only", choices=[*PARTS], help="one part")
    parser.add_argument("--keep", type=Path, help="a folder for the wheel and the source archive")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lintfit-release-") as name:
        work = Path(name)
        try:
            wheel, sdist = build(work)
            for part in [options.only] if options.only else PARTS:
                say(f"== {part}")
                PARTS[part](work / part, wheel, sdist, options.quick)
        except Failed as failed:
            print(f"failed: {failed}", file=sys.stderr)
            return 1
        if options.keep:
            keep(options.keep, (wheel, sdist))
    say("== all of it holds")
    return 0


def build(work: Path) -> tuple[Path, Path]:
    """The wheel and the source archive, the wheel made from what the archive holds, as an index's users would."""
    backend = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    python = environment(work / "build", *backend)
    run(python, "-m", "hatchling", "build", "-t", "sdist", "-d", str(work / "dist"), cwd=ROOT)
    (sdist,) = (work / "dist").glob("*.tar.gz")
    run(
        python,
        "-m",
        "hatchling",
        "build",
        "-t",
        "wheel",
        "-d",
        str(work / "dist"),
        cwd=unpacked(sdist, work / "source"),
    )
    (wheel,) = (work / "dist").glob("*.whl")
    return wheel, sdist


def check_wheel(work: Path, wheel: Path, _sdist: Path, _quick: bool) -> None:
    """The wheel alone: what it says of itself and of an example."""
    python = environment(work / "venv", str(wheel))
    run(python, "-m", "pip", "check", cwd=work)
    shutil.copytree(ROOT / "examples" / "medicalgpt", work / "files" / "medicalgpt")
    for arguments, status, part in COMMANDS:
        said = run(python.with_name("lintfit"), *arguments, cwd=work / "files", status=status)
        if part not in said:
            raise Failed(f"lintfit {' '.join(arguments)} does not say {part!r}:\n{said}")


def check_sdist(work: Path, _wheel: Path, sdist: Path, quick: bool) -> None:
    """The tests, run from the unpacked source archive by the command that the README gives."""
    folder = unpacked(sdist, work / "source")
    python = environment(work / "venv")
    command = readme_command((folder / "README.md").read_text("utf-8"))
    if quick:
        command = f"{command} {' '.join(QUICK)}"
    activated = {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", "VIRTUAL_ENV": str(work / "venv")}
    run("bash", "-euo", "pipefail", "-c", command, cwd=folder, more=activated, shown=True)


def check_lowest(work: Path, _wheel: Path, sdist: Path, quick: bool) -> None:
    """The tests with the lowest version of every dependency, those of the tests included."""
    folder = unpacked(sdist, work / "source")
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    pins = lowest([*project["dependencies"], *project["optional-dependencies"]["test"]])
    say("   " + " ".join(pins))
    (work / "lowest.txt").write_text("\n".join(pins) + "\n", "utf-8")
    python = environment(work / "venv", "-c", str(work / "lowest.txt"), "-e", f"{folder}[test]")
    run(python, "-m", "pytest", "-n", "auto", *(QUICK if quick else ()), cwd=folder, shown=True)


PARTS: Mapping[str, Callable[[Path, Path, Path, bool], None]] = {
    "wheel": check_wheel,
    "sdist": check_sdist,
    "lowest": check_lowest,
}


def lowest(requirements: Iterable[str]) -> list[str]:
    """``name==version`` for every ``name>=version``. Raises Failed for one without a lowest version."""
    return [_pinned(requirement) for requirement in requirements]


def _pinned(requirement: str) -> str:
    found = re.fullmatch(r"([\w.-]+)\s*>=\s*([\w.]+)(?:\s*,.*)?", requirement)
    if found is None:
        raise Failed(f"pyproject.toml: {requirement!r} states no lowest version (NAME>=VERSION)")
    return f"{found[1]}=={found[2]}"


def readme_command(text: str) -> str:
    """The block of the README that installs lintfit and runs its tests."""
    found = re.search(r"<!-- install and test -->\n```bash\n(.*?)\n```", text, re.DOTALL)
    if found is None:
        raise Failed("README.md has no block to install and test")
    return found[1]


def environment(folder: Path, *packages: str) -> Path:
    """The Python of a new environment that has these packages and nothing else."""
    run(sys.executable, "-m", "venv", str(folder))
    python = folder / "bin" / "python"
    if packages:
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return python


def unpacked(archive: Path, folder: Path) -> Path:
    """The one folder of a source archive."""
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    (inner,) = folder.iterdir()
    return inner


def run(
    *command: str | Path,
    cwd: Path | None = None,
    status: int = 0,
    more: Mapping[str, str] | None = None,
    shown: bool = False,
) -> str:
    """What a command prints. Raises Failed where it ends with another status. What lies beside the caller is hidden."""
    hidden = {"PYTHONPATH", "VIRTUAL_ENV", "PYTEST_ADDOPTS"}
    env = {name: value for name, value in os.environ.items() if name not in hidden} | dict(more or {})
    say("   " + " ".join(map(str, command)))
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != status:
        raise Failed(f"exit status {done.returncode}, not {status}\n{done.stdout}")
    if shown:
        say("\n".join(done.stdout.splitlines()[-3:]))
    return done.stdout


def keep(folder: Path, files: Iterable[Path]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copy2(file, folder)


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
