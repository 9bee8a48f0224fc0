"""A run: one training launch with its documents, its resolved settings and its hardware."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from lintfit.catalog.facts import Gpu, ModelFacts
from lintfit.documents.files import is_notebook
from lintfit.documents.model import Document
from lintfit.frozen import field, frozen
from lintfit.memory.spec import Spec
from lintfit.options.model import Options
from lintfit.settings.model import BY_SCRIPT, Provenance, Setting
from lintfit.settings.registry import NUMERICS

if TYPE_CHECKING:
    from lintfit.run.missing import Missing
    from lintfit.sources.accelerate import AccelerateSource
    from lintfit.sources.deepspeed import DeepSpeedSource
    from lintfit.sources.flag_grammars.model import Refused
    from lintfit.sources.launchers.launch import Launch
    from lintfit.sources.recipes.base import Recipe
    from lintfit.sources.script.source import ScriptSource
    from lintfit.sources.training import Training


Answer = TypeVar("Answer")

_WITHOUT_BYTES = NUMERICS | {"warmup_ratio", "beta"}
"""Settings that change no byte of memory."""

UNPARSED = ", which cannot be parsed)"
"""What a reason ends with that a run's file gives for knowing nothing."""

UNREADABLE = ", which cannot be read: "
"""What such a reason holds where the file is there and nobody has its text."""

REFUSED = ", which decides memory and which its parser refuses"
"""What a reason ends with that names a flag or a key."""

ANY_OF_THE_CONFIG = Provenance("assumed", "what needs most of all that a config may say that is not there")
BY_NAME_OF_THE_CONFIG = Provenance("assumed", "the stage by the name of a config that is not there")
ANY_OF_THE_MACHINE = Provenance(
    "assumed", "what needs most of all that `accelerate config` may have written on the machine"
)
OF_THE_MACHINE = Provenance("assumed", "accelerate launch without a config: that of `accelerate config` may say more")
"""Where an engine comes from that a file outside of the project may replace."""


@frozen
class Skipped:
    """A file that looks like a launch, a recipe, a config or a training script and was not understood, and why.

    ``reason`` reads on after the file's name (``a LLaMA-Factory recipe, which is not read yet``) and is the same for
    all files that are skipped for it.
    """

    path: Path
    reason: str


@frozen
class Hardware:
    """What the run runs on; None where nobody said. Memory in bytes, ``gpus`` over all nodes.

    ``available`` are the GPUs that its machines have together, of which it uses ``gpus``.
    """

    gpu: Gpu | None = None
    gpus: int | None = None
    nodes: int = 1
    capacity_bytes: int | None = None
    host_memory_bytes: int | None = None
    available: int | None = None


@frozen
class Origin:
    """Where a run starts: the ``index``-th launch of a shell file, a script, a recipe, or a config on its own; of a
    notebook that trains several times the ``index``-th training.

    ``partners`` are files that the user put beside it by naming them together, ``beside`` is the config that can only
    be its own though no launch line says so (:mod:`lintfit.run.beside`). ``named`` says that the user gave a recipe
    or a script by its name.
    """

    kind: Literal["launch", "script", "recipe", "config"]
    path: Path
    index: int = 0
    partners: tuple[Path, ...] = ()
    beside: Path | None = None
    named: bool = False

    @property
    def in_notebook(self) -> bool:
        """Whether the cells of a notebook are what runs: one process, which no launch line starts."""
        return self.kind == "script" and is_notebook(self.path)


@frozen(eq=False)
class OlderRun:
    """The same run where a library is older than a version that its range goes across."""

    library: str
    bound: str
    """The version from which on the library does otherwise."""
    run: Run


@frozen(eq=False)
class Run:
    """One training launch, resolved.

    ``settings`` holds the effective value of every setting with its provenance and what it overrode.
    ``spec`` is the memory model's input, None where too much is unknown; ``unknown`` then names what to add.
    """

    id: str
    documents: tuple[Document, ...]
    """What the run is read from; of the data that its script opens, files that state a setting."""
    settings: Mapping[str, Setting]
    hardware: Hardware
    launch: Launch | None = None
    script: ScriptSource | None = None
    recipe: Recipe | None = None
    """What a front end that has no script trains from."""
    deepspeed: DeepSpeedSource | None = None
    accelerate: AccelerateSource | None = None
    facts: ModelFacts | None = None
    spec: Spec | None = None
    unknown: tuple[str, ...] = ()
    lacks_model: bool = False
    """Whether it is the model that is missing for a spec."""
    joined: str | None = None
    """Says that a config is taken to be the script's because of where it lies; None where files name it."""
    doubtful: tuple[str, ...] = ()
    """Settings that are written but were not statically known; ``spec`` takes what needs least memory for them."""
    usual_command: str | None = None
    """The command that a recipe on its own is taken to be started with."""
    all_gpus: str | None = None
    """Says that the run is taken to use every GPU that there is, or one by a file's name; None where its files tell how
    many."""
    missing: tuple[Missing, ...] = ()
    """The script or configs that it names and that were not found: without them nothing is known of its memory."""
    but_for_config: Run | None = None
    """The run with what is known of it where a config is missing, and nothing else; ``spec`` is None then."""
    broken: tuple[Document, ...] = ()
    """Those that were found and cannot be parsed."""
    refused: tuple[Refused, ...] = ()
    """Flags and keys of argument files that the parser which reads them refuses."""
    versions: Mapping[str, str] = field(default_factory=dict)
    older: Callable[[], tuple[OlderRun, ...]] = tuple
    """The run on older versions that may be installed, where its files mean something else to them."""
    options: Options = field(default_factory=Options)
    origin: Origin = field(default_factory=lambda: Origin("config", Path()))
    opened: tuple[Document, ...] = ()
    """Data that the script opens itself and hands on to no library as its config."""
    looked_for: frozenset[Path] = frozenset()
    """Absolute paths of all files that were read for it or looked for, found or not."""
    base: Path = field(default_factory=Path)
    """The folder that the launch line's relative paths start from."""
    told: dict[str, Any] = field(default_factory=dict, compare=False)
    """What it says to those who put the runs of a tree together, by the question: plain values."""

    def says(self, question: str, answer: Callable[[], Answer]) -> Answer:
        """What it says to a question that is asked again each time the tree is read: a plain value, as JSON has it."""
        if question not in self.told:
            self.told[question] = answer()
        return self.told[question]  # type: ignore[no-any-return]

    def value(self, name: str, default: Any = None) -> Any:
        """The effective value of a setting, ``default`` where it is absent or not known."""
        setting = self.settings.get(name)
        return setting.value if setting is not None and setting.known else default

    def mentions(self, *words: str) -> bool:
        """Whether any file of the run has one of these words: enough to keep a rule quiet, never to make it speak."""
        return any(word in document.text for document in self.documents for word in words)

    @property
    def training(self) -> Training | None:
        """What says how the run trains, its script or the recipe in its place; None where neither is read."""
        return self.script if self.script is not None else self.recipe

    @property
    def engine_open(self) -> bool:
        """Whether it stands for all engines that a file may ask for which is not among these."""
        return self._engine_is_by(ANY_OF_THE_MACHINE, ANY_OF_THE_CONFIG, BY_NAME_OF_THE_CONFIG)

    @property
    def engine_by_name(self) -> bool:
        """Whether only the name of a file that is not among these says ZeRO's stage."""
        return self._engine_is_by(BY_NAME_OF_THE_CONFIG)

    def _engine_is_by(self, *provenances: Provenance) -> bool:
        engine = self.settings.get("engine")
        return engine is not None and any(engine.provenance is each for each in provenances)

    @property
    def count_open(self) -> bool:
        """Whether the run has a rank on each of its GPUs, and nobody states how many they are."""
        return self.hardware.gpus is None and self.spec is not None and self.spec.engine != "single"

    @property
    def unlaunched(self) -> bool:
        """Whether no launch line starts the run's several processes, so that how they share it is what is usual, and no
        file says so: a script or a recipe on its own that names no engine."""
        engine = self.settings.get("engine")
        if self.launch is not None or self.origin.in_notebook or self.deepspeed is not None or engine is None:
            return False
        return engine.provenance.place is None and engine.value != "single"

    @property
    def nvme_path(self) -> str | None:
        """A folder that ZeRO may offload to: what the user says, else what the DeepSpeed JSON names already."""
        zero = self.deepspeed.config.get("zero_optimization") if self.deepspeed is not None else None
        blocks = zero.values() if isinstance(zero, Mapping) else ()
        paths = (block.get("nvme_path") for block in blocks if isinstance(block, Mapping))
        return self.options.nvme_path or next((path for path in paths if isinstance(path, str)), None)

    def by_default(self, name: str) -> bool:
        """Whether a setting is a default of the script's parser, which an unseen command line may change."""
        setting = self.settings.get(name)
        return setting is not None and setting.provenance.detail == BY_SCRIPT and name in self.unseen_flags

    @property
    def unseen_flags(self) -> tuple[str, ...]:
        """Settings that an unseen command line decides, of a script on its own that parses its arguments, or the config
        of the machine that runs ``accelerate launch``."""
        seen = self.launch is not None and not self.launch.hides_flags
        if seen or self.recipe is not None or self.origin.partners or self.origin.in_notebook:
            engine = self.settings.get("engine")
            return ("engine",) if engine is not None and engine.provenance is OF_THE_MACHINE else ()
        return tuple(
            setting.name
            for setting in self.settings.values()
            if setting.provenance.kind == "assumed" and setting.name not in _WITHOUT_BYTES
        )
