"""What a project has already: the packages that its files name, and the engines that it shards with.

A plan that asks for a package which no file of the tree names does not run until somebody installs it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from lintfit.documents import door
from lintfit.documents.files import ReadError
from lintfit.documents.paths import resolved
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.workspace import Workspace
from lintfit.frozen import frozen
from lintfit.memo import Memo
from lintfit.run.discover import not_searched
from lintfit.run.key_reads import MAX_CHARACTERS, MAX_FILES, root_of
from lintfit.run.model import Run
from lintfit.run.offloaded_optimizer import is_bitsandbytes
from lintfit.versions import library_of

DEEPSPEED, LIGER, BITSANDBYTES, FLASH = "deepspeed", "liger-kernel", "bitsandbytes", "flash-attn"
PEFT = "peft"
FSDP = "fsdp"
"""No package: torch has it. It stands for a project that shards with it."""

_ASKS = (
    "requirement*.txt", "requirements*.in", "pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "*.lock",
    "env*.yml", "env*.yaml", "conda*.yml", "conda*.yaml", "Dockerfile*", "*.dockerfile", "*.def",
)  # fmt: skip
"""Files that say what a project installs."""
_SHELLS = frozenset({".sh", ".bash", ".slurm", ".sbatch", ".job", ".mk", ".md", ".ipynb"})
_DATA = frozenset({".yaml", ".yml"})

_COMMENT = lazy_pattern(r"(?:^|(?<=\s))#[^\n]*")
_INSTALLS = lazy_pattern(
    r"\b(?:pip3?|uv|conda|mamba|poetry|pipx)[ \t]+(?:pip[ \t]+)?(?:install|add)\b(?:\\\n|[^\n;&|`])*"
)
_NAMED: Mapping[str, re.Pattern[str]] = {
    DEEPSPEED: re.compile(r"(?<![\w.])deepspeed(?!\w)", re.IGNORECASE),
    LIGER: re.compile(r"(?<![\w.])liger(?:[-_]kernel)?(?!\w)", re.IGNORECASE),
    BITSANDBYTES: re.compile(r"(?<![\w.])bitsandbytes(?!\w)", re.IGNORECASE),
    FLASH: re.compile(r"(?<![\w.])flash[-_]attn(?!\w)", re.IGNORECASE),
    # Front ends and Unsloth require it.
    PEFT: re.compile(r"(?<![\w.])(?:peft|unsloth|axolotl|llamafactory|ms-swift)(?!\w)", re.IGNORECASE),
}
_IN_PYTHON: Mapping[str, re.Pattern[str]] = {
    DEEPSPEED: re.compile(r"^[ \t]*(?:import|from)[ \t]+deepspeed\b|\bdeepspeed[ \t]*=[ \t]*[\"']", re.MULTILINE),
    LIGER: re.compile(r"^[ \t]*(?:import|from)[ \t]+liger|\buse_liger\w*[ \t]*=[ \t]*True\b", re.MULTILINE),
    BITSANDBYTES: re.compile(
        r"^[ \t]*(?:import|from)[ \t]+bitsandbytes\b|[\"'](?:paged_\w+|\w+_(?:8bit|bnb_8bit))[\"']", re.MULTILINE
    ),  # no BitsAndBytesConfig, which scripts have for a switch that nobody needs to use
    FLASH: re.compile(r"^[ \t]*(?:import|from)[ \t]+flash_attn\b|[\"']flash_attention_2[\"']", re.MULTILINE),
    FSDP: re.compile(r"\bFullyShardedDataParallel\b|\bfully_shard\(|\bfsdp[ \t]*=[ \t]*[\"'][^\"']"),
    PEFT: re.compile(r"^[ \t]*(?:import|from)[ \t]+(?:peft|unsloth)\b", re.MULTILINE),
}
_IN_SHELL: Mapping[str, re.Pattern[str]] = {
    DEEPSPEED: re.compile(r"--(?:use_)?deepspeed\b|(?:^|[ \t])deepspeed[ \t]+\S", re.MULTILINE),
    LIGER: re.compile(r"--(?:use|enable)_liger\w*"),
    BITSANDBYTES: re.compile(
        r"--load_in_[48]bit\b|--quantization_bit\b|--optim\w*[ =]+[\"']?\w*(?:8bit|paged)\w*|--q_?lora\b"
    ),
    FLASH: re.compile(r"\bflash_attention_2\b"),
    FSDP: re.compile(r"--(?:use_)?fsdp\b"),
    PEFT: re.compile(r"--use_peft\b"),
}
_IN_DATA: Mapping[str, re.Pattern[str]] = {
    DEEPSPEED: re.compile(
        r"^[ \t]*deepspeed[ \t]*:[ \t]*[\"']?\w|^distributed_type:[ \t]*[\"']?DEEPSPEED", re.MULTILINE
    ),
    LIGER: re.compile(r"\bLigerPlugin\b|^[ \t]*\w*liger\w*[ \t]*:[ \t]*[Tt]rue", re.MULTILINE),
    BITSANDBYTES: re.compile(
        r"^[ \t]*load_in_[48]bit[ \t]*:[ \t]*[Tt]rue|^[ \t]*optim\w*[ \t]*:[ \t]*[\"']?\w*(?:8bit|paged)"
        r"|^[ \t]*quantization_bit[ \t]*:[ \t]*[48]",
        re.MULTILINE,
    ),
    FLASH: re.compile(r"\bflash_attention_2\b|^[ \t]*flash_attention[ \t]*:[ \t]*[Tt]rue", re.MULTILINE),
    FSDP: re.compile(
        r"^[ \t]*fsdp[ \t]*:[ \t]*[\"'\w]|^[ \t]*fsdp_config[ \t]*:|^distributed_type:[ \t]*[\"']?FSDP", re.MULTILINE
    ),
    PEFT: re.compile(r"^[ \t]*use_peft[ \t]*:[ \t]*[Tt]rue", re.MULTILINE),
}
_WORDS: Mapping[str, Collection[str]] = {
    DEEPSPEED: ("deepspeed", "DeepSpeed", "DEEPSPEED"),
    LIGER: ("liger", "Liger"),
    BITSANDBYTES: ("bitsandbytes", "BitsAndBytes", "8bit", "4bit", "paged", "quantization_bit", "lora"),
    FLASH: ("flash-attn", "flash_attn", "flash_attention"),
    FSDP: ("fsdp", "FSDP", "FullyShardedDataParallel", "fully_shard"),
    PEFT: ("peft", "PEFT", "unsloth", "axolotl", "llamafactory", "ms-swift"),
}
"""What a text has that may name one of them, for a search that costs little."""
_BROUGHT: Mapping[str, Collection[str]] = {"axolotl": (BITSANDBYTES, LIGER)}
"""What a front end's own requirements name (axolotl's ``requirements.txt``, 0.5 and later)."""


@frozen
class Packages:
    """What a project names. ``stated``: whether any file of it says what is installed, so that what none names is
    missing and not merely unsaid."""

    named: frozenset[str]
    stated: bool = False


def packages_of(run: Run, workspace: Workspace) -> Packages:
    """What the project of a run names, and what the run itself has."""
    root = root_of(resolved(workspace.root / run.base), resolved(workspace.root))
    found, asked = _OF_WORKSPACES.get(workspace, root, lambda: _noted(root, workspace))
    workspace.ask(asked)
    return Packages(found.named | frozenset(_own(run)), found.stated)


_OF_WORKSPACES: Memo[tuple[Packages, set[Path]]] = Memo(most=16)


def _own(run: Run) -> Iterator[str]:
    """What a run uses already, or is known to have installed."""
    spec = run.spec
    if spec is not None and spec.engine in (DEEPSPEED, FSDP):
        yield spec.engine
    if spec is not None and (spec.quantization is not None or is_bitsandbytes(spec.optimizer)):
        yield BITSANDBYTES
    if run.recipe is not None or (spec is not None and spec.method == "lora"):
        yield PEFT  # of front ends all that train adapters bring it, or make their own
    for name in run.versions:
        yield library_of(name)
    if run.recipe is not None:
        yield from _BROUGHT.get(run.recipe.dialect, ())


def _noted(root: Path, workspace: Workspace) -> tuple[Packages, set[Path]]:
    with workspace.asked() as asked:
        return _read(root, workspace), asked


def _read(root: Path, workspace: Workspace) -> Packages:
    top = resolved(workspace.root)
    named: set[str] = set()
    stated = False
    characters = 0
    for number, path in enumerate(_paths(root)):
        if number == MAX_FILES or characters > MAX_CHARACTERS or (stated and named == _WORDS.keys()):
            break
        try:
            text = workspace.file(path.relative_to(top) if path.is_relative_to(top) else path).text
        except ReadError:
            continue
        characters += len(text)
        open_still = {name for name, words in _WORDS.items() if name not in named and any(w in text for w in words)}
        named |= set(_named_in(path, text, open_still))
        stated = stated or _asks(path.name) or bool(_installs(path, text))
    return Packages(frozenset(named), stated)


def _named_in(path: Path, text: str, wanted: set[str]) -> Iterator[str]:
    """Which of some names a file has, in a place that says that the project uses them."""
    if not wanted:
        return
    if _asks(path.name):
        text = _COMMENT.sub("", text)
        yield from (name for name in wanted & _NAMED.keys() if _NAMED[name].search(text))
        return
    where = _IN_PYTHON if path.suffix == ".py" else _IN_DATA if path.suffix in _DATA else _IN_SHELL
    installs = _installs(path, text)
    code = "" if path.suffix != ".ipynb" else text.replace('\\"', "'").replace('"', "\n")
    text = text if path.suffix in (".md", ".ipynb") else _COMMENT.sub("", text)
    for name in wanted:
        in_code = bool(code) and name in _IN_PYTHON and _IN_PYTHON[name].search(code)
        if in_code or where[name].search(text) or (name in _NAMED and _NAMED[name].search(installs)):
            yield name


def _installs(path: Path, text: str) -> str:
    """The commands of a script or page that install something."""
    if path.suffix not in _SHELLS or ("install" not in text and " add " not in text):
        return ""
    return " ".join(_INSTALLS.findall(text))


def _asks(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in _ASKS)


def _paths(root: Path) -> Iterator[Path]:
    wanted = {".py", *_SHELLS, *_DATA}
    for here, folders, names in door.walk(root):
        folders[:] = sorted(name for name in folders if not not_searched(name))
        inside = here.name.startswith("requirements")
        for name in sorted(names):
            if Path(name).suffix in wanted or _asks(name) or (inside and name.endswith(".txt")):
                yield here / name
