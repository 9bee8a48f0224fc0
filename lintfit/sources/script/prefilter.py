"""Whether a Python file is worth reading as a script: by its text, and by its statements as CPython parses them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.python_syntax import UNPARSED, statements

_LIBRARIES = ("torch", "transformers", "trl", "peft", "deepspeed", "accelerate", "lightning", "unsloth")
_LIBRARY = lazy_pattern(rf"\b(?:{'|'.join(_LIBRARIES)}|pytorch_lightning)\b")
_TRAINS = lazy_pattern(
    r"Trainer\b|\bTrainingArguments\b|\.backward\(|\bdeepspeed\.initialize\b|\bAccelerator\(|\bFabric\(|\bHfArgumentParser\b"
)
_OF_TRAINING = (
    "Trainer", "TrainingArguments", ".backward(", "deepspeed.initialize", "Accelerator(", "Fabric(", "HfArgumentParser",
)  # fmt: skip
"""One of which a text holds that the pattern matches: to look for each takes a hundredth of its time."""
_MAY_TRAIN = lazy_pattern(
    r"backward|[Tt]rainer|(?<!pre)[Tt]rain\w{0,100}\(|[Oo]ptim|\.step\(|\.prepare\(|deepspeed|\.fit\("
)
_LAUNCHERS = (
    "accelerate launch", "accelerate-launch", "torchrun", "deepspeed ", "torch.distributed", "llamafactory-cli ",
    "axolotl ", "litgpt ", "swift ", "tune ", "trl ",
)  # fmt: skip
_RUNS_SCRIPT = lazy_pattern(r"[!%][ \t]*(?:run |python[\d.]* )[^\n\"]{0,500}?\.py")
_NO_GRAD = lazy_pattern(r"\b(?:no_grad|inference_mode)\(")
_CALLS_TRAINING = lazy_pattern(
    r"backward\(|Trainer\(|(?<!pre)[Tt]rain\w{0,100}\(|\.(?:fit|step|learn)\(|deepspeed\.initialize\("
)
"""What trains, by a call of its own name or of a function of the project's; ``.eval()`` and ``no_grad`` make no use of
an optimizer that a dataclass has a field for."""
_TEST_FILE = lazy_pattern(r"test_\w*\.py|\w+_tests?\.py|conftest\.py")
_TEST = lazy_pattern(r"^[ \t]*+(?:async )?def test_|^[ \t]*+@pytest\.fixture|^class \w*Test", re.MULTILINE)


def maybe_training_script(text: str) -> bool:
    """Whether a script names a training library and something that trains."""
    if not any(word in text for word in _OF_TRAINING) or not any(word in text for word in _LIBRARIES):
        return False
    return _LIBRARY.search(text) is not None and _TRAINS.search(text) is not None


def may_train(text: str) -> bool:
    """Whether a script has any word of a training: one that loads a model without them only runs it; and where all is
    asked under ``no_grad``, a call that trains."""
    words = _CALLS_TRAINING if _NO_GRAD.search(text) is not None else _MAY_TRAIN
    return words.search(text) is not None


def maybe_notebook(text: str) -> bool:
    """Whether a notebook's JSON speaks of a training library and something that trains, or of a launcher."""
    if '"cells"' not in text:
        return False
    if any(word in text for word in _LAUNCHERS) or (".py" in text and _RUNS_SCRIPT.search(text) is not None):
        return True
    return any(word in text for word in _LIBRARIES) and maybe_training_script(text)


def is_test(name: str, text: str) -> bool:
    """Whether a file holds tests for pytest or unittest, by its name and its content: what it trains is no run."""
    return _TEST_FILE.fullmatch(name) is not None and _TEST.search(text) is not None


def only_defines(text: str) -> bool:
    """Whether a module does nothing when it is run: its statements import and define, and none calls what they define.

    False where CPython cannot parse it.
    """
    try:
        found = [*_outside_functions(statements(text))]
    except UNPARSED:
        return False
    own = {each.name for each in found if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    return not any(_acts(statement, own) for statement in found)


def _outside_functions(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in statements:
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.With):
            yield from _outside_functions(statement.body)
            yield from _outside_functions(getattr(statement, "orelse", ()))
            yield from _outside_functions(getattr(statement, "finalbody", ()))


def _acts(statement: ast.stmt, own: set[str]) -> bool:
    """Whether a statement does something: a call, a loop, or a value that a function of the module's own gives."""
    match statement:
        case ast.Expr(value=ast.Call() as call):
            return not _sets_up(call)
        case ast.Expr(value=ast.Await()) | ast.For() | ast.While():
            return True
        case ast.Assign(value=ast.Call(func=ast.Name(id=name))) | ast.AnnAssign(value=ast.Call(func=ast.Name(id=name))):
            return name in own
    return False


_SETS_UP = frozenset({
    "datasets", "faulthandler", "gc", "logger", "logging", "nltk", "np", "numpy", "os", "print", "random", "sys",
    "torch", "transformers", "warnings",
})  # fmt: skip
"""Names whose calls set something up where no function is handed to them: ``logger.setLevel(...)``."""


def _sets_up(call: ast.Call) -> bool:
    function = call.func
    while isinstance(function, ast.Attribute):
        function = function.value
    handed = (*call.args, *(keyword.value for keyword in call.keywords))
    named = isinstance(function, ast.Name) and function.id in _SETS_UP
    return named and not any(isinstance(each, ast.Name) for each in handed)
