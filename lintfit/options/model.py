"""What the user asks for, each value with where it was said: the shapes that every room may read.

Sizes are bytes. ``config.py`` fills them from flags, ``lintfit.toml`` and ``[tool.lintfit]``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from lintfit.documents.globs import compiled
from lintfit.frozen import field, frozen, replace
from lintfit.settings.model import Provenance
from lintfit.severity import FailOn, Severity


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
        relative = os.path.relpath(Path(path).absolute(), self.root).replace(os.sep, "/")
        if relative == ".." or relative.startswith("../"):
            return False
        body = self.pattern.strip("/")
        return compiled(body, "/" in self.pattern.rstrip("/"), full=False).matches(relative.split("/"), below=True)


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
        return next((group for group in self.runs if absolute in group.files), None)

    def enabled(self, name: str, code: str, path: Path | None = None) -> bool:
        """Whether a rule is selected and not ignored, here and in this file."""
        if not selected(self.select, name, code) or selected(self.ignore, name, code):
            return False
        if path is None:
            return True
        return not any(selected(rules, name, code) and glob.matches(path) for glob, rules in self.per_file_ignores)

    def excluded(self, path: Path) -> bool:
        """Whether ``exclude`` names this file or a folder above it."""
        return any(glob.matches(path) for glob in self.exclude)


def selected(selectors: Iterable[str], name: str, code: str) -> bool:
    """Whether a rule is meant by its name, its code, the beginning of its code (``LF1``) or ``all``."""
    return any(
        selector in (name, code, "all") or (selector.startswith("LF") and code.startswith(selector))
        for selector in selectors
    )
