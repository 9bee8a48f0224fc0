"""One run from its first file: what it names is read, source by source, and resolved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from lintfit.documents.files import ReadError
from lintfit.documents.model import DataDocument, Document, Kind, Span
from lintfit.documents.paths import is_below, resolved
from lintfit.documents.workspace import Workspace
from lintfit.options.config import config_for
from lintfit.options.model import Options
from lintfit.run.dating import dated_by
from lintfit.run.discover import SUFFIXES
from lintfit.run.examples import is_example
from lintfit.run.facts import find_model, with_checkpoint_dtype, with_checkpoint_quantization
from lintfit.run.hardware import find_hardware
from lintfit.run.lacking import SCRIPT, Lacking, handed, named_recipes
from lintfit.run.locate import Locator
from lintfit.run.missing import missing
from lintfit.run.model import OlderRun, Origin, Run
from lintfit.run.precedence import Sources, first
from lintfit.run.precision import on_card
from lintfit.run.processes import all_there_are, number_of_gpus
from lintfit.run.requirements import LIBRARIES
from lintfit.run.resolve import resolve
from lintfit.run.spec import Assembled, assemble, without_refused
from lintfit.run.versions import versions_of, with_transformers
from lintfit.settings.model import UNKNOWN, Place, Setting
from lintfit.sources import detect
from lintfit.sources.flag_grammars.refused import of_launch
from lintfit.sources.launchers.flags import Flag
from lintfit.sources.script.prefilter import maybe_training_script
from lintfit.versions import Versions

if TYPE_CHECKING:
    from lintfit.sources.accelerate import AccelerateSource
    from lintfit.sources.deepspeed import DeepSpeedSource
    from lintfit.sources.launchers.launch import Launch
    from lintfit.sources.recipes.base import Recipe
    from lintfit.sources.script.source import ScriptSource

_CONFIGS = (Kind.JSON, Kind.YAML)
_LONGEST_NAME = 500
_MOST_VERSIONS = 6
"""How often a run is read again as older versions would."""
_LONGEST_CONFIG = 60_000
"""Characters of a config that a script reads itself; what is longer is data."""

_CALLED: Mapping[str, str] = {"deepspeed": "the DeepSpeed config", "accelerate": "the Accelerate config"}
_KINDS: Mapping[str, Kind] = {"deepspeed": Kind.JSON, "accelerate": Kind.YAML}


def build(origin: Origin, workspace: Workspace, cli: Options) -> Run:
    """Read one run from its origin and resolve it. Files that cannot be read are left out of it."""
    options = _options(origin, cli)
    versions = versions_of(origin.path, workspace.root, options)
    run = _Builder(origin, workspace, options, versions).run()
    dated = with_transformers(dated_by(run, versions))
    if any(dated.get(library) != versions.get(library) for library in LIBRARIES):
        # With a floor alone the newest version, and with it the run, is the same.
        run = _Builder(origin, workspace, options, dated).run()
    versions, questions = dated, dated.open_questions
    return replace(
        run, versions=versions, older=cache(partial(_older, origin, workspace, options, versions, questions))
    )


def _older(
    origin: Origin, workspace: Workspace, options: Options, versions: Versions, questions: Sequence[tuple[str, str]]
) -> tuple[OlderRun, ...]:
    """The run on each side of the versions that its reading hangs on: the newest of them, where there are many."""
    found = []
    for library, bound in questions[-_MOST_VERSIONS:]:
        older = with_transformers(versions.with_bound(library, bound, ""))
        found.append(OlderRun(library, bound, _Builder(origin, workspace, options, older).run()))
    return tuple(found)


def _options(origin: Origin, cli: Options) -> Options:
    options = config_for(origin.path, cli)
    group = options.group_of(origin.path)
    return options.for_run(group, cli) if group is not None else options


def _states(document: Document, settings: Iterable[Setting]) -> bool:
    """Whether one of the settings, or one that it overrode, is written in a document."""
    for setting in settings:
        place = setting.provenance.place
        if (place is not None and place.document is document) or _states(document, setting.overrode):
            return True
    return False


def _config_kind(path: Path, role: Kind) -> Kind | None:
    """What a file that is named as a config is read as: by its suffix where that is a config's, else by its role."""
    return None if SUFFIXES.get(path.suffix) in _CONFIGS else role


class _Builder:
    """Collects the documents of one run, from its origin outwards."""

    def __init__(self, origin: Origin, workspace: Workspace, options: Options, versions: Versions) -> None:
        self.origin, self.workspace, self.options = origin, workspace, options
        self.locator = Locator(origin.path, workspace)
        self.versions = versions
        self.lacking = Lacking(self.locator)
        self.sources = Sources(options)
        self.documents: list[Document] = []
        self.opened: list[Document] = []
        """Data that the script opens itself."""
        self.usual_command: str | None = None
        self.written: dict[tuple[int, Kind], DataDocument] = {}
        """Files that the launch script writes, by their index and what they are read as."""

    def run(self) -> Run:
        if self.origin.kind == "recipe":
            self._recipe_alone()
            return self._resolved()
        launch = self._launch() if self.origin.kind == "launch" else None
        self.locator.launch = launch
        self.sources = replace(self.sources, launch=launch)
        self.sources = replace(self.sources, accelerate=self._accelerate())
        if launch is not None and launch.action is not None:
            self.sources = replace(self.sources, recipe=self._recipe(launch))
        elif launch is not None or self.origin.kind == "script":
            script = self._script(launch)
            self.sources = replace(self.sources, script=script)
        self.sources = replace(self.sources, deepspeed=self._deepspeed())
        return self._resolved()

    def _resolved(self) -> Run:
        sources = self.sources
        settings = resolve(sources)
        hardware = find_hardware(sources, settings)
        settings = on_card(settings, hardware.gpu)
        folders = (self.locator.base, self.origin.path.parent)
        model = find_model(sources, settings, folders)
        settings = with_checkpoint_quantization(with_checkpoint_dtype(settings, model.facts), model.facts)
        assembled = assemble(sources, settings, model, hardware, self.versions, folders)
        lacking = self.lacking.reasons()
        if lacking:
            others = [reason for reason in assembled.unknown if not reason.startswith(SCRIPT)]
            assembled = Assembled(None, (*lacking, *others), ())
        refused = of_launch(sources.launch, sources.script, sources.recipe, self.versions)
        assembled = without_refused(assembled, refused)
        opened = self._merely_opened()
        idle = [document for document in opened if not _states(document, settings.values())]
        return Run(
            id=self._id(),
            documents=tuple(document for document in self.documents if document not in idle),
            opened=opened,
            settings=settings,
            hardware=hardware,
            launch=sources.launch,
            script=sources.script,
            recipe=sources.recipe,
            deepspeed=sources.deepspeed,
            accelerate=sources.accelerate,
            facts=model.facts,
            spec=assembled.spec,
            unknown=assembled.unknown,
            lacks_model=assembled.lacks_model,
            usual_command=self.usual_command,
            all_gpus=all_there_are(sources, settings.get("gpus")),
            joined=self._joined(),
            doubtful=assembled.doubtful,
            missing=self.lacking.missing,
            broken=self.lacking.broken,
            refused=refused,
            versions=self.versions,
            options=self.options,
            origin=self.origin,
            base=self.locator.base,
        )

    def _id(self) -> str:
        path = self.origin.path.as_posix()
        return f"{path}:{self.sources.launch.line}" if self.sources.launch is not None else path

    def _read(self, path: Path, kind: Kind | None = None) -> Document | None:
        """A document of this run; ``kind`` where its role says more than its name (``stage3.conf``)."""
        if self.workspace.is_absent(path):
            return None
        try:
            document = self.workspace.read(path, kind)
        except ReadError:
            return None
        if document not in self.documents:
            self.documents.append(document)
        return document

    def _merely_opened(self) -> tuple[Document, ...]:
        """What the script opens that is no config of this run."""
        sources = (self.sources.deepspeed, self.sources.accelerate)
        configs = [source.document for source in sources if source is not None]
        return tuple(document for document in self.opened if document not in configs)

    def _is_near(self, path: Path) -> bool:
        """Whether a file is of the project: below its root or the run's first folder, or named by the user."""
        folder = resolved(self.workspace.root / self.origin.path.parent)
        file = resolved(self.workspace.root / path)
        named = [resolved(self.workspace.root / partner) for partner in self.origin.partners]
        return self.workspace.is_inside(path) or is_below(file, (folder,)) or file in named

    def _config(self, path: Path, kind: Kind | None) -> DataDocument | None:
        """A config by its name, parsed or not; from elsewhere only what is plainly one, whatever a launch line says."""
        if not self._is_near(path):
            try:
                found = self.workspace.read(path, kind)
            except ReadError:
                return None
            if not isinstance(found, DataDocument) or not detect.is_config(found):
                return None
        document = self._read(path, kind)
        return document if isinstance(document, DataDocument) else None

    def _launch(self) -> Launch | None:
        from lintfit.sources.launchers.launcher import read_launch

        # A Python script's launches stand in its docstring.
        document = self._read(self.origin.path, Kind.SHELL)
        return read_launch(document, self.origin.index, self._text) if document is not None else None

    def _text(self, name: str) -> str | None:
        """The text of a file that is none of the kinds that lintfit reads."""
        path = self.locator.find(name)
        try:
            return self.workspace.file(path).text if path is not None else None
        except ReadError:
            return None

    def _recipe_alone(self) -> None:
        """A recipe that no launch line names, as the usual command of its front end would run it."""
        from lintfit.sources.recipes.alone import usual_launch

        document = self._read(self.origin.path)
        launch = usual_launch(document) if isinstance(document, DataDocument) else None
        if launch is None:
            return
        self.usual_command = launch.document.text.strip()
        if launch.action is None:
            self.sources = replace(self.sources, script=self._script(launch))
        else:
            self.sources = replace(self.sources, recipe=self._recipe(launch))
        self.sources = replace(self.sources, deepspeed=self._deepspeed())

    def _recipe(self, launch: Launch) -> Recipe | None:
        from lintfit.sources.recipes.base import read_recipe

        world = partial(number_of_gpus, self.sources)
        recipe = read_recipe(launch, self._open, world, self.versions)
        for name, place in named_recipes(launch) if not launch.assumed else ():
            self._named_recipe(name, place)
        return recipe

    def _named_recipe(self, name: str, place: Place) -> None:
        path = self.locator.find(name)
        if path is None:
            self.lacking.lack("the recipe", name, place)
            return
        document = self._partner(path)
        if document is not None and document.root is None:
            self.lacking.cannot_parse("the recipe", document)
            self._read(path)

    def _launched(self, launch: Launch) -> Path | None:
        """The script that a launch line names; ``-m`` finds a package also where an installation takes it from."""
        if not launch.script:
            return None
        if self.origin.path.suffix == ".py" and Path(launch.script).name == self.origin.path.name:
            return self.origin.path
        package = f"{launch.script.removesuffix('.py')}/__main__.py"
        names = [launch.script, package] if launch.module else [launch.script]
        below = [f"src/{name}" for name in names] if launch.module else []
        found = (self.locator.find(name) for name in (*names, *below))
        return next((path for path in found if path is not None), None)

    def _script(self, launch: Launch | None) -> ScriptSource | None:
        from lintfit.documents.python_reader import PythonDocument
        from lintfit.sources.script.source import read_script

        if launch is None:
            path: Path | None = self.origin.path
        else:
            path = self._launched(launch)
            if path is None and launch.script and launch.script.endswith(".py") and not launch.module:
                self._not_there(launch, launch.script)
        document = self._read(path) if path is not None else None
        if not isinstance(document, PythonDocument):
            return None
        told = launch is None or launch.sure or maybe_training_script(document.text)
        if not told:
            return None
        if document.module is None:
            self.lacking.cannot_parse(SCRIPT, document)
            return None
        read = partial(
            read_script,
            document,
            versions=self.versions,
            open_file=self._read,
            open_data=self._data,
            open_arguments=self._arguments,
        )
        if launch is None:
            return self._alone(read)
        return read(
            flags=launch.flags,
            env={**launch.environment, **self._ranks(launch)},
            has_launch=True,
            add_flag=launch.set_flag,
            positional=launch.positional,
            overrides=launch.overrides,
        )

    def _not_there(self, launch: Launch, script: str) -> None:
        """Take a script that is not at hand for the example that a library publishes under its name, or note it."""
        from lintfit.sources.recipes.examples import read_example

        at_hand = missing(SCRIPT, script, launch.script_place, self.locator)
        elsewhere = at_hand.meant is None and at_hand.certainty != "sure"
        recipe = read_example(launch, self._open, self.versions) if elsewhere and is_example(script) else None
        if recipe is None:
            self.lacking.lack(SCRIPT, script, launch.script_place)
        else:
            self.lacking.know(at_hand)
        self.sources = replace(self.sources, recipe=recipe)

    def _open(self, name: str) -> Document | None:
        itself = self.origin.kind == "recipe" and name == self.origin.path.as_posix()
        path = self.origin.path if itself else self.locator.find(name)
        return self._read(path) if path is not None else None

    def _alone(self, read: Callable[..., ScriptSource]) -> ScriptSource:
        """A script that no launch line starts: handed the file of arguments that was named beside it, if it takes it.

        HfArgumentParser's scripts take a JSON as their only word, TrlParser's a YAML by ``--config``, others' as their
        first word.
        """
        arguments = self._arguments_beside()
        if arguments is not None:
            path = arguments.path.absolute()
            name = path.as_posix()
            config = Flag("config", name, Place(arguments, Span(0, 0)))
            for words in ({"positional": (name,)}, {"flags": (config,)}):
                before = len(self.documents)
                script = read(has_launch=True, **words)
                if any(taken.path.absolute() == path for taken in self.documents):
                    return script
                del self.documents[before:]
        return read()

    def _arguments_beside(self) -> DataDocument | None:
        """The one file of arguments that the user named beside the script."""
        found = [document for path in self.origin.partners if (document := self._partner(path)) is not None]
        handed = [document for document in found if detect.is_arguments(document)]
        return handed[0] if len(handed) == 1 else None

    def _ranks(self, launch: Launch) -> dict[str, str]:
        """What the launcher sets for its first process, which needs no less memory than the others."""
        if launch.launcher == "python":
            started = launch.settings.get("gpus")
            alone = started is not None and started.provenance.kind == "default" and not launch.by_mpi
            return {"WORLD_SIZE": ""} if alone else {}
        world, nodes = number_of_gpus(self.sources, None), self.sources.said("launch", "nodes")
        found = dict.fromkeys(("RANK", "LOCAL_RANK", "GROUP_RANK"), "0")
        if world is None or not isinstance(world.value, int):
            return found
        found["WORLD_SIZE"] = str(world.value)
        machines = nodes.value if nodes is not None else 1
        if isinstance(machines, int) and machines > 0:
            found["LOCAL_WORLD_SIZE"] = str(world.value // machines)
        return found

    def _arguments(self, name: str) -> Document | None:
        """A file of words that add to the command line."""
        path = self.locator.find(name)
        if path is None and (place := handed(self.sources.launch, f"@{name}")) is not None:
            self.lacking.lack("the file of arguments", name, place)
        return self._read(path, Kind.SHELL) if path is not None and self._is_near(path) else None

    def _data(self, name: str, kind: Kind) -> DataDocument | None:
        """A JSON or YAML file that the script reads itself."""
        here = self._here(name, kind)
        if here is not None:
            return here
        path = self.locator.find(name) if len(name) < _LONGEST_NAME and name.isprintable() else None
        place = handed(self.sources.launch, name)
        if path is None and place is not None:
            self.lacking.lack("the config", name, place)
        try:
            if path is None or not self._is_near(path) or len(self.workspace.file(path, kind).text) > _LONGEST_CONFIG:
                return None
        except ReadError:
            return None
        document = self._read(path, kind)
        if not isinstance(document, DataDocument):
            return None
        if place is not None and document.root is None:
            self.lacking.cannot_parse("the config", document)
        if document not in self.opened and document.path != self.origin.path:
            self.opened.append(document)
        return document

    def _here(self, name: str, kind: Kind) -> DataDocument | None:
        """A file that the launch script itself writes above its launch line."""
        launch = self.sources.launch
        if launch is None or not launch.document.files:
            return None
        from lintfit.documents.here_documents import find_here, read_here

        index = find_here(launch.document, name, launch.place.span.start)
        if index is None:
            return None
        if (index, kind) not in self.written:
            self.written[index, kind] = read_here(launch.document, index, kind)
            self.documents.append(self.written[index, kind])
        return self.written[index, kind]

    def _accelerate(self) -> AccelerateSource | None:
        from lintfit.sources.accelerate import read_accelerate

        named = self.sources.said("launch", "accelerate_config")
        here = self._named_here(named, Kind.YAML)
        if here is not None:
            return self._as_launched(read_accelerate(here))
        for path in self._config_paths("accelerate", named):
            document = self._config(path, _config_kind(path, Kind.YAML))
            if document is not None and document.root is not None:
                return self._as_launched(read_accelerate(document))
            self._unparsed("accelerate", named, document)
        return None

    def _as_launched(self, source: AccelerateSource) -> AccelerateSource:
        """The file as it counts where the command line chooses the engine (``--use_deepspeed``, ``--multi_gpu``)."""
        chosen = self.sources.said("launch", "engine")
        if chosen is None or not isinstance(chosen.value, str) or chosen.value == source.engine:
            return source
        return source.under(chosen.value)

    def _deepspeed(self) -> DeepSpeedSource | None:
        from lintfit.sources.deepspeed import read_deepspeed

        named = first(
            "deepspeed",
            self.sources.said("script", "deepspeed"),
            self.sources.said("launch", "deepspeed"),
            self.sources.said("launch", "deepspeed_config_file"),
            self.sources.said("accelerate", "deepspeed_config_file"),
        )
        own = self._read_by_script(named) or self._named_here(named, Kind.JSON)
        if own is not None:
            return self._in_all_branches(read_deepspeed(own), named)
        for path in self._config_paths("deepspeed", named):
            document = self._config(path, _config_kind(path, Kind.JSON))
            if document is not None and document.root is not None:
                return read_deepspeed(document)
            self._unparsed("deepspeed", named, document)
        return None

    def _in_all_branches(self, source: DeepSpeedSource, named: Setting | None) -> DeepSpeedSource:
        """The file that a launch script writes in one of several branches: what they say differently is not known."""
        from lintfit.documents.here_documents import find_all_here, read_here
        from lintfit.sources.deepspeed import read_deepspeed

        launch = self.sources.launch
        if launch is None or named is None or not isinstance(named.value, str):
            return source
        settings = dict(source.settings)
        for index in find_all_here(launch.document, named.value, launch.place.span.start)[1:]:
            other = read_deepspeed(read_here(launch.document, index, Kind.JSON)).settings
            for name in settings.keys() | other.keys():
                mine, its = settings.get(name), other.get(name)
                if (mine.value if mine is not None else None) != (its.value if its is not None else None):
                    place = (mine or its or named).provenance
                    settings[name] = Setting(name, UNKNOWN, place)
        return replace(source, settings=settings)

    def _named_here(self, named: Setting | None, kind: Kind) -> DataDocument | None:
        value = named.value if named is not None else None
        found = self._here(value, kind) if isinstance(value, str) and value else None
        return found if found is not None and found.root is not None else None

    @staticmethod
    def _read_by_script(named: Setting | None) -> DataDocument | None:
        """The file that a script reads itself and hands on as it is (``config=json.load(open(path))``)."""
        place = named.provenance.place if named is not None else None
        document = place.document if place is not None else None
        if named is None or not isinstance(document, DataDocument) or document.root is None:
            return None
        whole = isinstance(named.value, dict) and document.root.plain() == named.value
        return document if whole and detect.dialect(document) == "deepspeed" else None

    def _config_paths(self, dialect: str, named: Setting | None) -> list[Path]:
        """Where a config of a dialect may be: the file that is named, else partners, else the origin itself."""
        if named is not None and isinstance(named.value, str) and named.value:
            found = self.locator.find(named.value)
            here = self._here(named.value, _KINDS[dialect]) if found is None else None
            if here is not None:
                self._unparsed(dialect, named, here)
            elif found is None:
                self.lacking.lack(_CALLED[dialect], named.value, named.provenance.place)
            return [found] if found is not None else []
        own = [self.origin.path] if self.origin.kind == "config" else []
        beside = [self.origin.beside] if self.origin.beside is not None else []
        return [path for path in (*self.origin.partners, *beside, *own) if self._dialect(path) == dialect]

    def _joined(self) -> str | None:
        """Says that the config that lies beside the script was taken for its own; None where it was not."""
        from lintfit.run.beside import said

        beside = self.origin.beside
        taken = (document for document in self.documents if document.path == beside)
        return next((said(document) for document in taken), None) if beside is not None else None

    def _unparsed(self, dialect: str, named: Setting | None, document: Document | None) -> None:
        """Note a config that a run names and that cannot be parsed."""
        if named is not None and document is not None:
            self.lacking.cannot_parse(_CALLED[dialect], document)

    def _dialect(self, path: Path) -> str | None:
        document = self._partner(path)
        return detect.dialect(document) if document is not None else None

    def _partner(self, path: Path) -> DataDocument | None:
        try:
            document = self.workspace.read(path)
        except ReadError:
            return None
        return document if isinstance(document, DataDocument) else None
