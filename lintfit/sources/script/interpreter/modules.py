"""Finds the modules of a script's own repository that it imports from."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import libcst as cst

from lintfit.documents.model import Document
from lintfit.documents.python_reader import PythonDocument
from lintfit.frozen import word_set

MAX_CHARACTERS = 250_000
"""Text that the modules drawn in by one script may have together; what the rest holds stays unknown."""
MAX_OF_SMALL = 100_000
"""The same for small ones alone, so that a copy of a library's modelling code leaves room for what calls it."""
_SMALL = 16_000
"""Characters of a small one; ``modeling_llama.py`` of transformers has 20,000."""
_SHORT = 6_000
"""Characters of a module that is read whatever it says."""
_ABOVE = 6
"""Folders above the script's in which a package of the repository may begin: of 1,174 training scripts in some hundred
repositories none lies deeper below its root."""
_TELLING = re.compile(
    r"\b(from_pretrained|from_config|TrainingArguments|HfArgumentParser|add_argument|LoraConfig|get_peft_model"
    r"|BitsAndBytesConfig|\w*Trainer|Accelerator|zero_optimization|DataLoader)\b|@dataclass\b|@dataclasses\."
    r"|\.backward\(|=\s*min\(\s*\d{3,}\b|\byaml\.\w*load\(|\bOmegaConf\."
    r"|Attention\.forward\s*=|^class[ \t]+\w+\([^()]*\w(?:Mixin|Config|Arguments)\b",
    re.MULTILINE,
)
_CLASS = re.compile(r"^class[ \t]+(\w+)[ \t]*\(([^()]*)\)[ \t]*:", re.MULTILINE)
_COPY_OF_PEFT = re.compile(
    r"^from \.(?:mapping|peft_model|auto) import\b(?=.*?\bget_peft_model\b)", re.MULTILINE | re.DOTALL
)
"""What the ``__init__.py`` of PEFT says from 0.1 on (src/peft/__init__.py), and that of a copy under another name."""
_BRINGS_ANY = re.compile(
    r"import[ \t]*\(?[ \t]*\*|\b__getattr__\b|\bglobals\(|\bexec\(|\bvars\(|\b__dict__\b|\bsetattr\("
)
"""What gives a module names that do not stand in it."""
LIBRARIES = word_set("""
    torch transformers trl peft accelerate deepspeed datasets numpy bitsandbytes diffusers lightning pandas tqdm
    wandb evaluate sklearn scipy tokenizers colossalai ray huggingface_hub safetensors unsloth vllm os sys re json
    math time random copy logging argparse dataclasses typing pathlib functools itertools collections contextlib
    warnings shutil glob gc subprocess builtins enum abc inspect types io string pickle datetime hashlib operator
    threading
    """)
"""Modules that no repository holds itself: not looked for."""


@lru_cache(maxsize=1024)
def _tells(text: str) -> bool:
    """Whether a module is worth reading: short ones pass on what others hold.

    A folder's launches mostly train with the same modules, so that the answer is kept.
    """
    return len(text) <= _SHORT or _TELLING.search(text) is not None


class Modules:
    """Opens modules on demand; ``documents`` are the script and those opened so far."""

    def __init__(self, script: PythonDocument, open_file: Callable[[Path], Document | None] | None) -> None:
        self.documents: list[PythonDocument] = [script]
        self._by_path = {script.path: script}
        self._script = script
        self._open = open_file
        self._found: dict[str, cst.Module | None] = {}
        self._packages: set[str] = set()
        self.unread: dict[str, str] = {}
        """Texts of modules that are at hand but not worth parsing, by the module's name."""
        self._classes: dict[str, dict[str, str]] = {}
        """The classes of such modules, with their bases as written."""

    def find(self, name: str) -> cst.Module | None:
        """The tree of a module by its name as imported (leading dots are relative); None where it is not at hand."""
        if self._open is None:
            return None
        if name not in self._found:
            self._found[name] = self._load(name)
        return self._found[name]

    def lacks(self, module: str, name: str) -> bool:
        """Whether a file of the repository is this module and surely has no such name: the word stands nowhere in it as
        what is bound does, nor what could bring any name."""
        if self._open is None or module.partition(".")[0] in LIBRARIES:
            return False
        found = next((each for path in _candidates(self._script.path.parent, module) if (each := self._at(path))), None)
        if found is None or found.path.name == "__init__.py" or _BRINGS_ANY.search(found.text):
            return False
        word = rf"\b{re.escape(name)}\b"
        bound = rf"\b(?:class|def|as|for|global|import)\b[^\n]*{word}|{word}\s*[]:=,)]"
        return re.search(bound, found.text) is None

    def beside(self, name: str) -> cst.Module | None:
        """The tree of a file that the script runs by its name; None where it is not at hand."""
        for folder in (self._script.path.parent, Path(), *self._script.path.parent.parents):
            path = Path(os.path.normpath(folder / name))
            document = self._at(path)
            if document is not None:
                self._add(document)
                return document.module
        return None

    def _at(self, path: Path) -> PythonDocument | None:
        """The Python file at a path, opened before or now."""
        known = self._by_path.get(path)
        if known is not None or self._open is None:
            return known
        document = self._open(path)
        return document if isinstance(document, PythonDocument) else None

    def _add(self, document: PythonDocument) -> None:
        if not self._has(document):
            self._by_path.setdefault(document.path, document)
            self.documents.append(document)

    def _has(self, document: PythonDocument) -> bool:
        """Whether this very document is there: modules that a notebook's cells write all have the notebook's path."""
        return any(each is document for each in self.documents)

    def bases(self, name: str, cls: str) -> tuple[str, ...] | None:
        """The bases of a class of a module that is not parsed, as written; None where it has no such class."""
        if name not in self._classes:
            matches = reversed(list(_CLASS.finditer(self.unread.get(name, ""))))
            self._classes[name] = {match[1]: match[2] for match in matches}
        bases = self._classes[name].get(cls)
        return tuple(base.strip() for base in bases.split(",") if base.strip()) if bases is not None else None

    def is_package(self, name: str) -> bool:
        """Whether a module that was found is a package's ``__init__.py``."""
        return name in self._packages

    def library(self, name: str) -> str | None:
        """The library that a package of the project is a copy of: its own names are then the library's."""
        if self._open is None or "peft" not in name or name.partition(".")[0] in LIBRARIES:
            return None
        found = next((each for path in _candidates(self._script.path.parent, name) if (each := self._at(path))), None)
        copied = found is not None and found.path.name == "__init__.py" and _COPY_OF_PEFT.search(found.text)
        return "peft" if copied else None

    def _load(self, name: str) -> cst.Module | None:
        if name.partition(".")[0] in LIBRARIES or self._open is None:
            return None
        for path in _candidates(self._script.path.parent, name):
            document = self._at(path)
            if document is None:
                continue
            if not self._has(document):
                if not self._has_room(len(document.text)) or not _tells(document.text):
                    self.unread[name] = document.text
                    return None
                self._add(document)
            if path.name == "__init__.py":
                self._packages.add(name)
            return document.module
        return None

    def _has_room(self, characters: int) -> bool:
        """Whether a module of so many characters may be drawn in beside the others."""
        drawn_in = [len(known.text) for known in self.documents[1:]]
        if characters <= _SMALL and characters + sum(size for size in drawn_in if size <= _SMALL) <= MAX_OF_SMALL:
            return True
        return characters + sum(drawn_in) <= MAX_CHARACTERS


@lru_cache(maxsize=4096)
def _candidates(folder: Path, name: str) -> tuple[Path, ...]:
    """Where a module may be that a script in this folder imports."""
    dots = len(name) - len(name.lstrip("."))
    parts = [part for part in name.lstrip(".").split(".") if part]
    if not parts:
        return ()
    if dots:
        folders = [folder.joinpath(*[".."] * (dots - 1))] if dots > 1 else [folder]
    else:
        folders = [folder.joinpath(*[".."] * up) if up else folder for up in range(_ABOVE + 1)]
    paths: list[Path] = []
    # A package with a setup.py of its own stands in a folder that is called like it, mostly.
    own = dict.fromkeys((parts[0], parts[0].replace("_", "-")))
    below = ["src", *own] if not dots else []
    for base in (*folders, *(folder / name for name in below for folder in folders)):
        paths.append(Path(os.path.normpath(base.joinpath(*parts[:-1], parts[-1] + ".py"))))
        paths.append(Path(os.path.normpath(base.joinpath(*parts, "__init__.py"))))
    return tuple(paths)
