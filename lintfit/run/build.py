"""One run from its first file: what it names is read, source by source, and resolved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from lintfit.documents.broken import is_refused
from lintfit.documents.files import ReadError
from lintfit.documents.markdown import is_page
from lintfit.documents.model import DataDocument, Document, Kind, Span
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.workspace import Workspace
from lintfit.frozen import replace
from lintfit.options.config import config_for
from lintfit.options.model import Options
from lintfit.run.configs import accelerate_of, deepspeed_of
from lintfit.run.dating import dated_by
from lintfit.run.discover import SUFFIXES
from lintfit.run.examples import is_example
from lintfit.run.facts import find_model, with_checkpoint_dtype, with_checkpoint_quantization
from lintfit.run.files import RunFiles
from lintfit.run.front_end_pins import of_front_end
from lintfit.run.hardware import find_hardware
from lintfit.run.in_unknown_folder import with_name_in_folder
from lintfit.run.lacking import SCRIPT, named_recipes
from lintfit.run.model import OlderRun, Origin, Run
from lintfit.run.notebooks import asked_by, machine_of
from lintfit.run.precedence import Sources
from lintfit.run.precision import on_card, without_overflow
from lintfit.run.processes import all_there_are, capability_of_gpu, number_of_gpus
from lintfit.run.refusals import refused_of
from lintfit.run.requirements import LIBRARIES
from lintfit.run.resolve import resolve
from lintfit.run.spec import Assembled, assemble, without_refused
from lintfit.run.versions import project_files, versions_of, with_peers, with_project_of
from lintfit.settings.model import UNKNOWN, Place, Setting
from lintfit.sources import detect
from lintfit.sources.launchers.flags import Flag
from lintfit.sources.script.prefilter import maybe_training_script
from lintfit.versions import Versions

if TYPE_CHECKING:
    from lintfit.sources.deepspeed import DeepSpeedSource
    from lintfit.sources.launchers.launch import Launch
    from lintfit.sources.recipes.base import Recipe
    from lintfit.sources.recipes.front_ends import FrontEnd
    from lintfit.sources.script.source import ScriptSource

_MOST_VERSIONS = 6
"""How often a run is read again as older versions would."""


def build(origin: Origin, workspace: Workspace, cli: Options) -> Run:
    """Read one run from its origin and resolve it. Files that cannot be read are left out of it."""
    options = _options(origin, cli)
    known = partial(versions_of, origin.path, workspace.root, options, asked_by(origin.path, workspace))
    versions = known()
    with workspace.asked() as looked_for:
        run = _Builder(origin, workspace, options, versions).run()
        if run.recipe is not None:
            run, versions = of_front_end(
                run, versions, known, lambda told: _Builder(origin, workspace, options, told).run()
            )
        told = versions
        for path in project_files(run):
            if path != origin.path:
                told = with_project_of(path, workspace.root, told)
        if told is not versions:
            run, versions = _Builder(origin, workspace, options, told).run(), told
        dated = with_peers(dated_by(run, versions, workspace))
        if any(dated.get(library) != versions.get(library) for library in LIBRARIES):
            # With a floor alone the newest version, and with it the run, is the same.
            run = _Builder(origin, workspace, options, dated).run()
        if run.refused and dated and _in_page(run):
            newest = with_peers(Versions({}, {}))
            other = _Builder(origin, workspace, options, newest).run()
            if not other.refused:
                run, dated = other, newest
    run = replace(run, versions=dated, looked_for=frozenset(looked_for))
    return replace(run, older=cache(partial(_older, origin, workspace, options, dated, questions_of(run))))


def questions_of(run: Run) -> Sequence[tuple[str, str]]:
    """The versions as which a run is read again: those that its reading hangs on, the newest where there are many."""
    if not isinstance(run.versions, Versions) or (run.script is not None and run.script.not_followed):
        return ()  # nothing will be known of it by another version either
    return run.versions.open_questions[-_MOST_VERSIONS:]


def _in_page(run: Run) -> bool:
    """Whether a launch stands in a page or a docstring: what the project pins does not take its flags, and the newest
    release does, so that it is written for that one."""
    path = run.launch.document.path if run.launch is not None else None
    return path is not None and (is_page(path) or path.suffix == ".py")


def _older(
    origin: Origin, workspace: Workspace, options: Options, versions: Versions, questions: Sequence[tuple[str, str]]
) -> tuple[OlderRun, ...]:
    """The run on each side of the versions that its reading hangs on."""
    found = []
    for library, bound in questions:
        older = with_peers(versions.with_bound(library, bound, ""))
        found.append(OlderRun(library, bound, _Builder(origin, workspace, options, older).run()))
    return tuple(found)


def _options(origin: Origin, cli: Options) -> Options:
    options = config_for(origin.path, cli)
    group = options.group_of(origin.path)
    options = options.for_run(group, cli) if group is not None else options
    if not options.asks_machine:
        return options
    from lintfit.options.machine import with_machine

    return with_machine(options)


def _states(document: Document, settings: Iterable[Setting]) -> bool:
    """Whether one of the settings, or one that it overrode, is written in a document."""
    for setting in settings:
        place = setting.provenance.place
        if (place is not None and place.document is document) or _states(document, setting.overrode):
            return True
    return False


_BY_FILE = ("parse_json_file", "parse_yaml_file")


def _reads_no_flags(script: ScriptSource) -> bool:
    """Whether a script takes all of its arguments from one file, whatever flags stand behind its name
    (``parse_json_file(sys.argv[1])``; transformers 5.24, ``HfArgumentParser.parse_json_file`` reads no others)."""
    made = script.reading.found.arguments
    if made is None or made.call is None or made.call.name not in _BY_FILE:
        return False
    return all(each.call is None or each.call.name in _BY_FILE for each in script.walk.parsed)


_HANDS_ON = lazy_pattern(
    r"(?:\.|\bget_)deepspeed\b|\bdeepspeed(?:\.|[ \t]*=(?!=))|[\[(]\s{0,20}[\"']deepspeed[\"']\s{0,20}[,\])]"
    r"|\bdeepspeed_config\b|\bvars\(|__dict__|\*\*(?!kwargs\b)\w|\bsetattr\(|add_config_arguments"
    r"|parse_args_into_dataclasses|[dD]eep[sS]peedPlugin"
)
"""What a script has that takes ``--deepspeed`` further than to its own parser."""


def _keeps_to_itself(script: ScriptSource) -> bool:
    """Whether a script's own parser takes ``--deepspeed``, and the script makes the trainer's arguments by hand and
    hands it to nobody: then nobody reads the config, whatever starts the script (the Trainer sets DeepSpeed up for
    ``args.deepspeed`` alone, transformers 5.24 ``TrainingArguments.__post_init__``)."""
    made = script.reading.found.arguments
    if made is None or made.parsed or made.call is None or made.call.keyword("deepspeed") is not None:
        return False
    texts = [*script.reading.calls.texts()]
    return any('"--deepspeed"' in text for text in texts) and not any(_HANDS_ON.search(text) for text in texts)


class _Builder:
    """Collects the documents of one run, from its origin outwards."""

    def __init__(self, origin: Origin, workspace: Workspace, options: Options, versions: Versions) -> None:
        self.origin, self.options, self.versions = origin, options, versions
        self.files = RunFiles(origin, workspace)
        self.sources = Sources(options, machine=machine_of(origin.path, workspace), kernel=origin.in_notebook)
        self.usual_command: str | None = None

    def run(self) -> Run:
        launch = self._launch() if self.origin.kind == "launch" else None
        self.files.locator.launch = launch
        self.sources = replace(self.sources, launch=launch)
        self.sources = replace(self.sources, accelerate=accelerate_of(self.files, self.sources))
        if self.origin.kind == "recipe":
            self.sources = replace(self.sources, recipe=self._recipe_alone())
        elif launch is not None and launch.action is not None:
            self.sources = replace(self.sources, recipe=self._recipe(launch))
        elif launch is not None and (own := self._of_front_end(launch)) is not None:
            self.sources = replace(self.sources, recipe=self._recipe(replace(launch, action=own[1]), own[0]))
        elif launch is not None or self.origin.kind == "script":
            script = self._script(launch)  # which may leave a recipe among the sources
            self.sources = replace(self.sources, script=script)
            if launch is not None and script is not None and (_reads_no_flags(script) or _keeps_to_itself(script)):
                heard = {name: each for name, each in launch.settings.items() if name != "deepspeed"}
                self.sources = replace(self.sources, launch=replace(launch, settings=heard))
            if self.files.workspace.work.all.spent:  # and what others have spent hangs on their order
                self.files.workspace.ambiguous.add(self.files.workspace.located(self.origin.path))
        if self.sources.accelerate is None and self.sources.recipe is not None:
            self.sources = replace(self.sources, accelerate=accelerate_of(self.files, self.sources))
        self.sources = replace(self.sources, deepspeed=deepspeed_of(self.files, self.sources))
        return self._resolved()

    def _resolved(self) -> Run:
        resolved = resolve(self.sources)
        if self.sources.deepspeed is not None and resolved["engine"].value not in ("deepspeed", UNKNOWN):
            resolved = resolve(self._without_deepspeed(self.sources.deepspeed))
        sources = self.sources
        settings = with_name_in_folder(resolved, sources.launch)
        hardware = find_hardware(sources, settings)
        settings = on_card(settings, hardware.gpu)
        folders = (self.files.locator.base, self.origin.path.parent)
        model = find_model(sources, settings, folders)
        settings = without_overflow(settings, model.facts.model_type if model.facts is not None else None)
        settings = with_checkpoint_quantization(with_checkpoint_dtype(settings, model.facts), model.facts)
        assembled = assemble(sources, settings, model, hardware, self.versions, folders)
        if sources.script is not None:
            from lintfit.run.unsloth import not_counted

            uncounted = not_counted(sources.script, settings, model.facts)
            assembled = Assembled(None, (*uncounted, *assembled.unknown), ()) if uncounted else assembled
        lacking = self.files.lacking.reasons()
        known = assembled if lacking and assembled.spec is not None and not assembled.unknown else None
        if lacking:
            others = [reason for reason in assembled.unknown if not reason.startswith(SCRIPT)]
            assembled = Assembled(None, (*lacking, *others), ())
        refused = refused_of(sources, self.versions, self.files.locator)
        assembled = without_refused(assembled, refused)
        opened = self._merely_opened()
        idle = [document for document in opened if not _states(document, settings.values())]
        run = Run(
            id=self._id(),
            documents=tuple(document for document in self.files.documents if document not in idle),
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
            missing=self.files.lacking.missing,
            broken=self.files.lacking.broken,
            refused=refused,
            versions=self.versions,
            options=self.options,
            origin=self.origin,
            base=self.files.locator.base,
        )
        if known is None or run.unknown != tuple(lacking) or run.broken:
            return run
        return replace(run, but_for_config=replace(run, spec=known.spec, doubtful=known.doubtful))

    def _without_deepspeed(self, idle: DeepSpeedSource) -> Sources:
        """What the run is made of without a DeepSpeed JSON that its script is handed and does not use: it wraps the
        model by itself."""
        self.sources = replace(self.sources, deepspeed=None)
        if idle.document in self.files.documents and idle.document not in self.files.opened:
            self.files.documents.remove(idle.document)
        return self.sources

    def _id(self) -> str:
        path = self.origin.path.as_posix()
        if self.sources.launch is not None:
            return f"{path}:{self.sources.launch.line}"
        if self.sources.script is not None and self.origin.in_notebook:
            start = self.sources.script.starts_training()
            return f"{path}:{start.document.position(start.span.start).line}"
        return path

    def _merely_opened(self) -> tuple[Document, ...]:
        """What the script opens that is no config of this run."""
        sources = (self.sources.deepspeed, self.sources.accelerate)
        configs = [source.document for source in sources if source is not None]
        return tuple(document for document in self.files.opened if document not in configs)

    def _launch(self) -> Launch | None:
        from lintfit.sources.launchers.launcher import read_launch

        # A Python script's launches stand in its docstring.
        document = self.files.read(self.origin.path, Kind.SHELL)
        return read_launch(document, self.origin.index, self.files.text) if document is not None else None

    def _recipe_alone(self) -> Recipe | None:
        """A recipe that no launch line names, as its front end is usually started with it; where an Accelerate file
        starts all other recipes of its folder, with that one."""
        from lintfit.sources.recipes.alone import usual_launch
        from lintfit.sources.recipes.forms import front_end_of

        document = self.files.read(self.origin.path)
        own = self.sources.accelerate
        config = own.document.path.as_posix() if own is not None else None
        launch = usual_launch(document, config) if isinstance(document, DataDocument) else None
        if document is None or launch is None:
            return None
        self.usual_command = " ".join(launch.command_text.split())
        return self._recipe(launch, front_end_of(document.text, document.kind))

    def _recipe(self, launch: Launch, front_end: FrontEnd | None = None) -> Recipe | None:
        from lintfit.sources.recipes.base import read_recipe

        world = partial(number_of_gpus, self.sources)
        recipe = read_recipe(launch, self.files.open, world, self.versions, front_end)
        for name, place in named_recipes(launch) if not launch.assumed else ():
            self._named_recipe(name, place)
        return recipe

    def _of_front_end(self, launch: Launch) -> tuple[FrontEnd, str] | None:
        """The front end whose script a launch starts by its path, and the command that does the same."""
        from lintfit.sources.recipes.scripts import of_script

        if not launch.script:
            return None
        path, flags = self._launched(launch), {flag.name for flag in launch.flags}
        try:
            text = self.files.workspace.file(path).text if path is not None else None
        except ReadError:
            text = None
        found = of_script(launch.script, flags, text)
        if found is not None and path is None:
            from lintfit.run.missing import missing

            # What else the launch names lies in the checkout of the front end, as its script does.
            self.files.lacking.know(missing(SCRIPT, launch.script, launch.script_place, self.files.locator))
        return found

    def _named_recipe(self, name: str, place: Place) -> None:
        kind = SUFFIXES.get(Path(name).suffix)
        if kind in (Kind.JSON, Kind.YAML) and self.files.here(name, kind) is not None:
            return
        path = self.files.locator.find(name)
        if path is None:
            self.files.lacking.lack("the recipe", name, place)
            return
        document = self.files.partner(path, "the recipe")
        if document is not None and is_refused(document):
            self.files.lacking.cannot_parse("the recipe", document)
            self.files.read(path)

    def _launched(self, launch: Launch) -> Path | None:
        """The script that a launch line names; ``-m`` finds a package also where an installation takes it from."""
        if not launch.script:
            return None
        if self.origin.path.suffix == ".py" and Path(launch.script).name == self.origin.path.name:
            return self.origin.path
        package = f"{launch.script.removesuffix('.py')}/__main__.py"
        names = [launch.script, package] if launch.module else [launch.script]
        below = [f"src/{name}" for name in names] if launch.module else []
        found = (self.files.locator.find(name) for name in (*names, *below))
        return next((path for path in found if path is not None), None)

    def _script(self, launch: Launch | None) -> ScriptSource | None:
        from lintfit.documents.python_reader import PythonDocument
        from lintfit.sources.script.interpreter.state import MAX_STEPS_OF_ALL
        from lintfit.sources.script.source import read_script
        from lintfit.sources.unread_code import only_starts_verl

        if launch is None:
            path: Path | None = self.origin.path
        elif self._written(launch) is not None:
            path = None
        else:
            path = self._launched(launch)
            if path is None and launch.script and launch.script.endswith(".py") and not launch.module:
                self._not_there(launch, launch.script)
        document = self._written(launch) or (self.files.read(path, what=SCRIPT) if path is not None else None)
        if not isinstance(document, PythonDocument):
            return None
        told = launch is None or launch.sure or maybe_training_script(document.text)
        if not told:
            return None
        if document.module is None:
            self.files.lacking.cannot_parse(SCRIPT, document)
            return None
        read = partial(
            read_script,
            document,
            versions=self.versions,
            open_file=self.files.module,
            open_data=self.files.data,
            open_arguments=self.files.arguments,
            within=self.files.workspace.work_on(document.path, MAX_STEPS_OF_ALL, "expressions of all readings"),
            capability=capability_of_gpu(self.sources),
        )
        if self.origin.in_notebook:
            # A kernel's own command line is no script's.
            return read(has_launch=True, which=self.origin.index)
        if launch is None:
            return self._alone(read)
        return read(
            flags=(*launch.flags, *launch.rank_flags),
            env={**launch.environment, **self._ranks(launch)},
            has_launch=True,
            add_flag=launch.set_flag,
            positional=launch.positional,
            overrides=launch.overrides,
            more_flags=launch.hides_flags,
            followed=not only_starts_verl(document.text),
        )

    def _written(self, launch: Launch | None) -> Document | None:
        """The script of a launch that its own file writes above it (``%%writefile train.py``, a here-document)."""
        if launch is None or not launch.script or launch.module:
            return None
        return self.files.script_here(launch.script)

    def _not_there(self, launch: Launch, script: str) -> None:
        """Take a script that is not at hand for the example that a library publishes under its name, or note it."""
        from lintfit.run.missing import missing
        from lintfit.sources.recipes.examples import read_example

        at_hand = missing(SCRIPT, script, launch.script_place, self.files.locator)
        elsewhere = at_hand.meant is None and at_hand.certainty != "sure"
        recipe = read_example(launch, self.files.open, self.versions) if elsewhere and is_example(script) else None
        if recipe is None:
            self.files.lacking.lack(SCRIPT, script, launch.script_place)
        else:
            self.files.lacking.know(at_hand)
        self.sources = replace(self.sources, recipe=recipe)

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
                before = len(self.files.documents)
                script = read(has_launch=True, **words)
                if any(taken.path.absolute() == path for taken in self.files.documents):
                    return script
                del self.files.documents[before:]
        return read()

    def _arguments_beside(self) -> DataDocument | None:
        """The one file of arguments that the user named beside the script."""
        found = [document for path in self.origin.partners if (document := self.files.partner(path)) is not None]
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

    def _joined(self) -> str | None:
        """Says that the config beside the script, or of the recipes beside it, was taken for its own; None if not."""
        from lintfit.run.beside import said

        beside = self.origin.beside
        taken = (document for document in self.files.documents if document.path == beside)
        of_recipe = self.origin.kind == "recipe"
        return next((said(document, of_recipe) for document in taken), None) if beside is not None else None
