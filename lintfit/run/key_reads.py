"""Which code of the tree reads a key of a JSON or YAML file itself, by a search of its text.

Before a key is deleted, renamed or moved, the Python files, notebooks and shell scripts around its file are searched
for its name: as a subscript, in ``get`` or ``pop``, as an attribute, in a filter of ``jq``. What is a config by its
name, or comes from a loader, is sure to be one; any other quoted mention in a file that opens configs may be one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterator
from functools import cached_property
from pathlib import Path

from lintfit.documents import door
from lintfit.documents.files import ReadError, kind_of
from lintfit.documents.lines import line_start
from lintfit.documents.model import KeyPath, Kind
from lintfit.documents.paths import resolved
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.workspace import Workspace
from lintfit.errors import LintfitError
from lintfit.frozen import frozen
from lintfit.memo import Memo
from lintfit.options.config import load_config
from lintfit.run.discover import NAMES, not_searched

MAX_FILES = 3000
"""Files of code that are searched, the nearest first."""

MAX_CHARACTERS = 32 << 20
"""Characters of code that are searched: what is read of a tree of 3,000 files of usual size."""

_CODE = frozenset({".py", ".ipynb", ".sh", ".bash", ".slurm", ".sbatch", ".job", ".mk"})
_TESTS = frozenset({"tests", "test"})
"""Folders whose code reads files of its own; a config outside of them is none of these."""
_BEFORE = 300
"""Characters before a subscript or attribute in which what it belongs to is looked for."""

_LOADER = r"(?:json5?|hjson|commentjson|orjson|yaml|OmegaConf|toml\w*)\.\w*load\w*\(|\.safe_load\(|read_(?:json|yaml)\("
_OPENS = lazy_pattern(
    rf"{_LOADER}|HfArgumentParser|parse_(?:json|yaml)_file|hydra|DeepSpeedConfig|(?:ds|deepspeed)_config|config_params"
    r"|\b[jy]q\b"
)
_OPENS_YAML = lazy_pattern(r"yaml\w*\.\w*load|\.safe_load\(|read_yaml\(|OmegaConf\.load|\bhydra\.|\bYAML\(|\byq\b")
_LOADED = lazy_pattern(rf"\b(\w+)(?:[ \t]*:[^=\n]+)?[ \t]*=[^=\n]*(?:{_LOADER})")
_CONFIG = lazy_pattern(rf"config|conf\b|cfg|settings|hparams|\.deepspeed\b|{_LOADER}", re.IGNORECASE)
_OF_MODEL = lazy_pattern(r"model\w*\.config$|\bself\.model_config$|\btorch\b")
_AS_ATTRIBUTES = lazy_pattern(
    r"Namespace\(|EasyDict|edict|[Mm]unch|[Dd]ot_?[Dd]ict|[Aa]ttr_?[Dd]ict|OmegaConf|DictConfig|ConfigDict|\bBox\("
    r"|object_hook|__dict__|setattr\(|namedtuple|addict|hydra\.main|from_dict|parse_(?:json|yaml)_file|parse_dict"
)
_VALUE_OF = lazy_pattern(r"(?:dtype|default|precision|choices)\w*[ \t]*(?:=|in)[ \t]*[\[({]?[^\n=]{0,60}$")
_FILTERS = lazy_pattern(r"\b[jy]q\b")
_SEARCHES = lazy_pattern(r"\b(?:grep|sed|awk|[jy]q)\b")


_TAKES_RECIPES = lazy_pattern(r"\b(?:H4ArgumentParser|TrlParser)\(")
_OF_TRL = lazy_pattern(r"from trl(?:\.\w+)* import (?:\([^)]*\)|[^\n]*)")

_OF_MODEL_CONFIG = r"\bmodel_(?:args?|arguments|config|cfg)\.{}\b"
"""How scripts call TRL's ``ModelConfig``, which their parser makes of a recipe."""

_ANNOTATION = r"[A-Za-z](?:[^\n\[\]]|\[(?:[^\[\]]|\[[^\[\]]*\])*\])*"
"""The type of a field, whose brackets may go over several lines."""
_BRACKETS = r"\[(?:[^\[\]\n]|\[(?:[^\[\]\n]|\[[^\[\]\n]*\])*\])*\]"
_TYPE = rf"[A-Za-z][\w.]*(?:{_BRACKETS})?(?:[ \t]*\|[ \t]*[A-Za-z][\w.]*(?:{_BRACKETS})?)*"
"""The same where no value stands behind it."""


@frozen
class Read:
    """A place where code names a key. ``sure``: it surely reads it of a config; ``takes``: and takes it out."""

    path: Path
    line: int
    sure: bool = True
    takes: bool = False

    @property
    def where(self) -> str:
        return f"{self.path.as_posix()}:{self.line}"


class _Code:
    """One file of code. What its text says of configs is looked for only where it names a key that is asked for."""

    def __init__(self, path: Path, workspace: Workspace) -> None:
        self.path, self._workspace = path, workspace
        self.text = workspace.file(path).text
        self.shell = path.suffix != ".ipynb" and kind_of(path) is Kind.SHELL

    @cached_property
    def opens(self) -> bool:
        """Whether it opens configs."""
        return self._workspace.told(self.path, "opens configs", _opens) != ""

    @cached_property
    def opens_yaml(self) -> bool:
        return _OPENS_YAML.search(self.text) is not None

    @cached_property
    def loaded(self) -> frozenset[str]:
        """The names that it gives to what it opens."""
        return frozenset(found[1] for found in _LOADED.finditer(self.text)) if self.opens else frozenset()

    @cached_property
    def takes_recipes(self) -> bool:
        """Whether it takes TRL's recipes."""
        return not self.shell and _TAKES_RECIPES.search(self.text) is not None

    @cached_property
    def trains_otherwise(self) -> bool:
        """Whether it takes TRL's recipes and hands them to a trainer that is none of TRL's."""
        if "Trainer" not in self.text or not self.takes_recipes:
            return False
        return not any("Trainer" in found.group() for found in _OF_TRL.finditer(self.text))


def _opens(text: str) -> str:
    return "yes" if _OPENS.search(text) else ""


@frozen
class _Tree:
    """The code around a file; ``whole`` where that is all of it."""

    code: tuple[_Code, ...]
    whole: bool
    asked: frozenset[Path]
    """What was asked of the workspace for it."""


def key_reads(workspace: Workspace) -> KeyReads:
    """The code around the files of a workspace: one for all that ask, for to search a tree takes long."""
    return _OF_WORKSPACES.get(workspace, None, lambda: KeyReads(workspace))


class KeyReads:
    """The code around the files of a workspace. Nothing is searched before the first question."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._top = resolved(workspace.root)
        self._trees: dict[tuple[Path, bool], _Tree] = {}
        self._of_configs: dict[Path, _Tree] = {}
        self._found: dict[tuple[Path, KeyPath], Read | None] = {}
        self._sure: dict[tuple[int, str], Read | None] = {}
        """By tree and key."""

    def of(self, config: Path, path: KeyPath) -> Read | None:
        """Where code of the tree reads the key at a path of a file: a sure place before one that may be one.

        A key within a section is read through the section: where no code names that, none reads the key.
        """
        if (config, path) not in self._found:
            self._found[config, path] = self._search(config, path)
        else:
            self._tree(config)  # for whoever notes what is asked for
        return self._found[config, path]

    def of_recipe(self, recipe: Path, key: str) -> Read | None:
        """Where code of the tree surely reads a top-level key of a front end's YAML, and some code there opens YAML."""
        tree = self._tree(recipe)
        if (id(tree), key) not in self._sure:  # trees have many recipes with the same keys
            opens = any(each.opens_yaml for each in tree.code)
            files = [code for code in tree.code if opens and key in code.text]
            reads = (read for code in files for read in _reads(code, key, recipe.name) if read.sure)
            self._sure[id(tree), key] = next(reads, None)
        return self._sure[id(tree), key]

    def named_in_code(self, config: Path, read: Collection[Path]) -> bool:
        """Whether code of the tree names a file, apart from the files that were ``read`` as commands (resolved)."""
        naming = (each.path for each in self._tree(config).code if config.name in each.text)
        return any(self._workspace.located(path) not in read for path in naming)

    def whole(self, config: Path) -> bool:
        """Whether all code of the tree was searched; False where there is too much of it."""
        return self._tree(config).whole

    def declared(self, config: Path, name: str) -> tuple[Path, ...]:
        """The modules of the tree that have a field of this name in a class (``cutoff_len: int = field(…)``, or
        ``corpus: str``, which has to be given)."""
        code = [each for each in self._tree(config).code if not each.shell and name in each.text]
        if not code:
            return ()
        field = re.compile(
            rf"^[ \t]+{re.escape(name)}[ \t]*:[ \t]*(?:{_ANNOTATION}=[ \t]*\S|{_TYPE}[ \t]*(?:#.*)?$)", re.MULTILINE
        )
        return tuple(each.path for each in code if field.search(each.text))

    def trained_otherwise(self, config: Path) -> bool:
        """Whether a script of the tree takes TRL's recipes and hands them to a trainer that is none of TRL's."""
        return any(each.trains_otherwise for each in self._tree(config).code)

    def of_model_config(self, recipe: Path, field: str) -> Path | None:
        """A script of the tree that takes TRL's recipes and reads a field of ``ModelConfig``."""
        read = re.compile(_OF_MODEL_CONFIG.format(re.escape(field)))
        for each in self._tree(recipe).code:
            if field in each.text and each.takes_recipes and read.search(each.text):
                return each.path
        return None

    def opened_by(self, config: Path, name: str, apart_from: Container[Path]) -> Path | None:
        """A file of code beside those given that names the file and the key."""
        quoted = re.compile(rf"[\"'/]{re.escape(config.name)}[\"']")
        for each in self._tree(config).code:
            if each.path in apart_from or config.name not in each.text or name not in each.text:
                continue
            if each.opens and quoted.search(each.text):
                return each.path
        return None

    def is_template(self, recipe: Path, keys: Collection[str]) -> bool:
        """Whether Python code of the tree loads a recipe to write some of these keys over: a file that opens YAML names
        it, or names a constant that another file gives its name, and one that deals with YAML writes a key
        (``config["base_model"] = model``)."""
        code = [each for each in self._tree(recipe).code if not each.shell]
        naming = [each for each in code if recipe.name in each.text]
        if not naming:
            return False
        name = re.escape(recipe.name)
        constant = re.compile(rf"^[ \t]*([A-Z][A-Z\d_]+)[ \t]*(?::[^=\n]+)?=[^\n]*[\"'/]{name}[\"']", re.MULTILINE)
        words = {found[1] for each in naming for found in constant.finditer(each.text)}
        named = re.compile("|".join([rf"[\"'/]{name}[\"']", *(rf"\b{word}\b" for word in sorted(words))]))
        if not any(each.opens_yaml and named.search(each.text) for each in code):
            return False
        one = "|".join(map(re.escape, sorted(keys)))
        held = r"(?i:config|cfg|conf|recipe|template|settings|data)\w*"
        written = re.compile(rf"{held}\[[\"'](?:{one})[\"']\][ \t]*=(?!=)")
        return any("yaml" in each.text and written.search(each.text) for each in code)

    def _search(self, config: Path, path: KeyPath) -> Read | None:
        names = [str(step) for step in path if isinstance(step, str)]
        if not names:
            return None
        files = self._tree(config).code
        for section in names[:-1]:
            named = re.compile(rf"(?<![\w-]){re.escape(section)}(?!\w)")
            if not any(section in code.text and named.search(code.text) for code in files):
                return None
        found = [read for code in files if names[-1] in code.text for read in _reads(code, names[-1], config.name)]
        return next((read for read in found if read.takes), next((read for read in found if read.sure), None)) or (
            found[0] if found else None
        )

    def _tree(self, config: Path) -> _Tree:
        """The code of the tree that a file belongs to; what is nearest to it, where that is too much."""
        known = self._of_configs.get(config)
        if known is not None:
            self._workspace.ask(known.asked)
            return known
        folder = resolved(self._top / config).parent
        root = root_of(folder, self._top)
        tests = not _TESTS.isdisjoint(folder.relative_to(root).parts)
        found = self._trees.get((root, tests)) or self._trees.get((folder, tests))
        if found is None:
            found = self._read_all(folder, root, tests)
            self._trees[root if found.whole else folder, tests] = found
        self._of_configs[config] = found
        self._workspace.ask(found.asked)
        return found

    def _read_all(self, folder: Path, root: Path, tests: bool) -> _Tree:
        with self._workspace.asked() as asked:
            files, whole = self._files(folder, root, tests)
        return _Tree(tuple(files), whole, frozenset(asked))

    def _files(self, folder: Path, root: Path, tests: bool) -> tuple[list[_Code], bool]:
        files: list[_Code] = []
        characters = 0
        for path in _paths(folder, root, frozenset() if tests else _TESTS):
            if len(files) >= MAX_FILES or characters > MAX_CHARACTERS:
                return files, False
            shown = path.relative_to(self._top) if path.is_relative_to(self._top) else path
            try:
                files.append(_Code(shown, self._workspace))
            except ReadError:
                continue
            characters += len(files[-1].text)
        return files, True


_OF_WORKSPACES: Memo[KeyReads] = Memo(most=4)
"""A few: each fix that is carried out makes a workspace of its own."""


def _paths(folder: Path, root: Path, apart: frozenset[str]) -> Iterator[Path]:
    """The files of code below a root, those nearest to a folder in it first; none in folders of the names ``apart``."""
    seen: set[Path] = set()
    for start in (folder, *folder.parents):
        for here, folders, names in door.walk(start):
            wanted = (name for name in folders if not not_searched(name) and name not in apart)
            folders[:] = sorted(name for name in wanted if here / name not in seen)
            yield from (here / name for name in sorted(names) if name in NAMES or Path(name).suffix in _CODE)
        seen.add(start)
        if start == root:
            return


def root_of(folder: Path, top: Path) -> Path:
    """The repository that a folder lies in; else where lintfit's config lies; else the working directory above it."""
    repository = door.repository_of(folder)
    if repository is not None:
        return repository
    above = (folder, *folder.parents)
    try:
        found = load_config(folder)
    except LintfitError:
        found = None
    if found is not None and found.config_path is not None and found.config_path.parent in above:
        return found.config_path.parent
    return top if top in above else folder


def _reads(code: _Code, name: str, config: str) -> Iterator[Read]:
    key = re.escape(name)
    quoted = re.compile(rf"""\\?["'](?:[\w-]+\.)*{key}(?:\.[\w-]+)*\\?["']""")
    attribute = re.compile(rf"\.{key}(?![\w(])(?![ \t]*=(?!=))")
    opens = code.opens or config in code.text
    for found in quoted.finditer(code.text):
        read = _quoted(code, found, opens)
        if read is not None and not _commented(code, found.start()):
            yield read
    for found in attribute.finditer(code.text):
        read = _attribute(code, found.start())
        if read is not None and not _commented(code, found.start()):
            yield read
    if code.shell:
        yield from _filtered(code, key)


_OPEN = lazy_pattern(r"\[\s*$")
_CALL = lazy_pattern(r"\.(get|pop|setdefault|select)\(\s*$")
_OF = lazy_pattern(r"\b(?:getattr|hasattr|select)\(\s*([\w.]+)\s*,\s*$")
_IN = lazy_pattern(r"[ \t]+(?:not[ \t]+)?in[ \t]+([\w.\[\]\"']+)")
_CLOSE = lazy_pattern(r"\s*\]")
_SET = lazy_pattern(r"[ \t]*=(?!=)")
_KEY_OF_DICT = lazy_pattern(r"[ \t]*:(?!\])")


def _quoted(code: _Code, found: re.Match[str], opens: bool) -> Read | None:
    """A read by the key's name in quotes; None where it writes the key, or has nothing to do with a config."""
    text, start, end = code.text, found.start(), found.end()
    before = text[max(0, start - _BEFORE) : start]
    if (opened := _OPEN.search(before)) is not None and (closed := _CLOSE.match(text, end)) is not None:
        owner = _expression(before[: opened.start()])
        if owner:
            if _SET.match(text, closed.end()):
                return None
            taken = re.search(r"\bdel[ \t]+$", before[: opened.start() - len(owner)]) is not None
            return _owned(code, owner, start, opens, takes=taken)
    if (called := _CALL.search(before)) is not None:
        owner = _expression(before[: called.start()])
        return _owned(code, owner, start, opens, takes=called[1] == "pop")
    if (of := _OF.search(before)) is not None:
        return _owned(code, of[1], start, opens)
    if (within := _IN.match(text, end)) is not None:
        return _owned(code, within[1], start, opens)
    if not opens or _KEY_OF_DICT.match(text, end) or _VALUE_OF.search(before) or _is_file(found.group()):
        return None
    return _read(code, start, sure=False)


def _is_file(quoted: str) -> bool:
    return re.search(r"\.(?:jsonc?|hjson|ya?ml|py|txt|bin|pt|sh)\\?[\"']$", quoted) is not None


def _attribute(code: _Code, start: int) -> Read | None:
    """A read by attribute: of a config by its name, or of anything where the file makes attributes of keys."""
    owner = _expression(code.text[max(0, start - _BEFORE) : start])
    if not owner:
        return None
    if _is_config(code, owner):
        return _read(code, start)
    if code.opens and _AS_ATTRIBUTES.search(code.text) and not _OF_MODEL.search(owner):
        return _read(code, start, sure=False)
    return None


def _owned(code: _Code, owner: str, start: int, opens: bool, takes: bool = False) -> Read | None:
    if _is_config(code, owner):
        return _read(code, start, takes=takes)
    return _read(code, start, sure=False) if opens else None


def _is_config(code: _Code, owner: str) -> bool:
    if _OF_MODEL.search(owner):
        return False
    return _CONFIG.search(owner) is not None or any(name in code.loaded for name in re.findall(r"\w+", owner))


def _filtered(code: _Code, key: str) -> Iterator[Read]:
    """Reads of a shell script: in a filter of jq or yq, which may go over several lines, or by grep, sed and awk."""
    for found in re.finditer(rf"(?<![\w-]){key}(?![\w-])", code.text):
        line = line_start(code.text, found.start())
        before = code.text[line : found.start()]
        searched = _SEARCHES.search(before) is not None
        filtered = (
            before.endswith((".", '["')) and _FILTERS.search(code.text[max(0, line - _BEFORE) : line]) is not None
        )
        if (searched or filtered) and not _commented(code, found.start()):
            yield _read(code, found.start())


def _expression(before: str) -> str:
    """The expression at the end of a text: names, dots, and whatever stands in brackets."""
    at, depth = len(before), 0
    while at:
        character = before[at - 1]
        if character in ")]}":
            depth += 1
        elif character in "([{":
            if not depth:
                break
            depth -= 1
        elif not depth and not (character.isalnum() or character in "_."):
            break
        at -= 1
    return before[at:]


def _commented(code: _Code, offset: int) -> bool:
    return code.text[line_start(code.text, offset) : offset].lstrip(' \t"').startswith("#")


def _read(code: _Code, offset: int, sure: bool = True, takes: bool = False) -> Read:
    return Read(code.path, code.text.count("\n", 0, offset) + 1, sure, takes)
