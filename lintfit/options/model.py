"""What the user asks for, each value with where it was said: the shapes that every room may read.

Sizes are bytes. ``config.py`` fills them from flags, ``lintfit.toml`` and ``[tool.lintfit]``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from lintfit.documents.globs import compiled
from lintfit.frozen import field, frozen, replace
from lintfit.memo import Memo
from lintfit.settings.model import Provenance
from lintfit.severity import FailOn, Severity

MOST_GLOBS = 200
"""Patterns of a list of a config: each is compared with every file of the tree. Long lists that people write have some
dozens, those that programs write for them some hundred."""


@frozen
class Output:
    """One ``--output-format FORMAT[:FILE]``; ``file`` is None for standard output."""

    format: str
    file: Path | None = None


@frozen
class Margin:
    """Room that a plan is to leave on every GPU, beyond what its estimate already plans for: bytes, or a share."""

    size: int = 0
    share: float = 0.0

    def bytes_of(self, capacity: int) -> int:
        """The margin in bytes on a GPU of this size."""
        return self.size + int(self.share * capacity)

    def __str__(self) -> str:
        return f"{self.share:.0%}" if self.share else f"{self.size / 2**30:g} GiB"


@frozen
class Glob:
    """A gitignore-like pattern and the folder that it is relative to.

    Without a slash it matches a name at any depth; with one, a path below ``root``. ``**`` spans folders.
    """

    pattern: str
    root: Path

    def matches(self, path: Path) -> bool:
        """Whether the pattern matches this path or one of its parents below ``root``."""
        return any(True for _ in matching([self], path))


def matching(globs: Iterable[Glob], path: Path) -> Iterator[Glob]:
    """The globs that match a path. Where the path lies is worked out once for all that are relative to one folder."""
    absolute = Path(path).absolute()
    ways: dict[Path, str | None] = {}
    for glob in globs:
        if glob.root not in ways:
            ways[glob.root] = _way(absolute, glob.root)
        way = ways[glob.root]
        if way is None or _sure_part(glob.pattern) not in way:
            continue  # most are told by that, in a tenth of the time that comparing takes
        body = glob.pattern.strip("/")
        if compiled(body, "/" in glob.pattern.rstrip("/"), full=False).matches(way.split("/"), below=True):
            yield glob


def _way(path: Path, root: Path) -> str | None:
    """How a path is called from a folder, None where it lies elsewhere."""
    relative = os.path.relpath(path, root).replace(os.sep, "/")
    return None if relative == ".." or relative.startswith("../") else relative


@lru_cache(maxsize=2 * MOST_GLOBS)
def _sure_part(pattern: str) -> str:
    """What stands in all that a pattern matches: its longest part between stars and slashes."""
    return max(re.split(r"[*?/]", pattern), key=len)


@frozen
class RunGroup:
    """A ``[[run]]`` table: absolute paths of the files that are one run, and what the table says about it."""

    files: tuple[Path, ...]
    options: Options


@frozen
class Options:
    """Everything that the user asked for. ``origins`` names, by field, the flag or config key that stated it.

    A field that is missing from ``origins`` has its default. ``gpus`` is what there is: over all ``nodes`` where these
    are stated, else on each machine. Memory is in bytes, ``gpu_memory_bytes`` of one GPU, ``host_memory_bytes`` of
    one node; ``seq_len`` in tokens.
    """

    fix: bool = False
    unsafe_fixes: bool = False
    diff: bool = False
    isolated: bool = False
    what_if: bool = False
    """Whether flags replace what the files say of a run, rather than tell what there is (``estimate`` of files)."""
    show_plans: bool = False
    """List every kind of plan that makes a run fit, not only the best."""
    as_found: bool = False
    """Take files that are named as those that a search finds."""
    staged: bool = False
    """Check what the next commit changes, as it is staged."""
    changed_since: str | None = None
    """A commit of git: check what has changed since it."""
    stdin_filename: Path | None = None
    """With ``stdin``: the name under which the text on standard input is checked."""
    stdin: bytes | None = None
    outputs: tuple[Output, ...] = (Output("text"),)
    no_ignores: bool = False
    """Report also what a comment ignores."""
    add_ignores: str | None = None
    """Write comments that ignore what is left, with this reason; None: do not."""
    write_baseline: Path | None = None
    """Count what is left in this file."""

    select: tuple[str, ...] = ("all",)
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[Glob, tuple[str, ...]], ...] = ()
    exclude: tuple[Glob, ...] = ()
    fail_on: FailOn = FailOn(Severity.WARNING)
    severities: Mapping[str, Severity] = field(default_factory=dict)
    """By the rule's name: how bad its findings are here, whatever the rule says."""
    baseline: Path | None = None
    """Counts of findings that are known and not reported."""

    gpu: str | None = None
    gpus: int | None = None
    nodes: int | None = None
    gpu_memory_bytes: int | None = None
    host_memory_bytes: int | None = None
    model: str | None = None
    """A Hugging Face id, or a folder with a ``config.json``."""
    model_config: Path | None = None
    seq_len: int | None = None
    images: int | None = None
    """Images of a sample, for vision-language models."""
    nvme_path: str | None = None
    """A folder on the machines' own drives that offload may go to; None: only where a file names one."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """The libraries' versions by name, as the user states them."""
    margin: Margin = Margin()
    """What plans are to leave free on every GPU."""

    config_path: Path | None = None
    runs: tuple[RunGroup, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)

    def stated(self, name: str) -> bool:
        """Whether a flag or a config stated this field."""
        return name in self.origins

    @property
    def asks_machine(self) -> bool:
        """Whether the GPUs are those of the machine that lintfit runs on (:mod:`lintfit.options.machine`)."""
        return self.gpu is not None and self.gpu.casefold() == "auto"

    def provenance(self, name: str) -> Provenance:
        """Where a stated field was stated, as an ``option``."""
        return Provenance("option", self.origins[name])

    def over(self, other: Options) -> Options:
        """This, with the other's values for what this does not state."""
        taken = {name: getattr(other, name) for name in other.origins if name not in self.origins}
        if self.stated("versions"):
            taken["versions"] = {**other.versions, **self.versions}
        return replace(
            self,
            **taken,
            config_path=self.config_path or other.config_path,
            runs=self.runs or other.runs,
            origins={**other.origins, **self.origins},
        )

    def for_run(self, group: RunGroup, cli: Options) -> Options:
        """The options of one ``[[run]]``: flags first, then the table, then the rest of this config."""
        return cli.over(group.options.over(self))

    def group_of(self, path: Path) -> RunGroup | None:
        """The first ``[[run]]`` table that lists this file."""
        absolute = Path(os.path.normpath(Path(path).absolute()))
        return _GROUPS.get(self.runs, None, lambda: _by_file(self.runs)).get(absolute)

    def enabled(self, name: str, code: str, path: Path | None = None) -> bool:
        """Whether a rule is selected and not ignored, here and in this file."""
        if not selected(self.select, name, code) or selected(self.ignore, name, code):
            return False
        if path is None:
            return True
        return not selected(_IGNORED.get(self.per_file_ignores, path, lambda: self._ignored_in(path)), name, code)

    def _ignored_in(self, path: Path) -> tuple[str, ...]:
        """The rules that ``per-file-ignores`` names for this file."""
        fits = {id(glob) for glob in matching((glob for glob, _ in self.per_file_ignores), path)}
        return tuple(dict.fromkeys(name for glob, rules in self.per_file_ignores if id(glob) in fits for name in rules))

    def excluded(self, path: Path) -> bool:
        """Whether ``exclude`` names this file or a folder above it."""
        return any(True for _ in matching(self.exclude, path))


_IGNORED: Memo[tuple[str, ...]] = Memo()
"""By ``per_file_ignores`` and path: every finding of a file asks the same."""
_GROUPS: Memo[Mapping[Path, RunGroup]] = Memo(most=16)


def _by_file(groups: Sequence[RunGroup]) -> Mapping[Path, RunGroup]:
    return {file: group for group in reversed(groups) for file in group.files}


def selected(selectors: Iterable[str], name: str, code: str) -> bool:
    """Whether a rule is meant by its name, its code, the beginning of its code (``LF1``) or ``all``."""
    return any(
        selector in (name, code, "all") or (selector.startswith("LF") and code.startswith(selector))
        for selector in selectors
    )
