"""libcst with the classes of nodes that lintfit makes, in a process of its own: tests have loaded libcst before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SHARED = """
import dataclasses
dataclass = dataclasses.dataclass
from lintfit.documents import python_nodes
python_nodes.load()
assert dataclasses.dataclass is dataclass
import libcst as cst
from lintfit.documents.python_parse import parse
"""


def run(code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{SHARED}{code}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_tree_prints_its_text_and_is_visited_and_changed() -> None:
    run("""
from pathlib import Path
class Names(cst.CSTTransformer):
    def leave_Name(self, original_node, updated_node):
        return updated_node.with_changes(value=updated_node.value + "_")
for path in (Path("lintfit/frozen.py"), Path("lintfit/documents/python_nodes.py")):
    text = path.read_text()
    module = parse(text)
    assert module.code == text
    assert module.deep_equals(cst.parse_module(text)) and module.deep_clone().code == text
    assert module != cst.parse_module(text) and len({module, module}) == 1
    assert module.visit(Names()).code != text and module.code == text
    wrapper = cst.metadata.MetadataWrapper(module)
    assert wrapper.resolve(cst.metadata.PositionProvider)
""")


def test_nodes_built_by_hand_have_their_defaults_and_check_themselves() -> None:
    run("""
import pytest
name = cst.Name("a", [cst.LeftParen()], [cst.RightParen()])
assert cst.Module([]).code_for_node(name) == "(a)"
assert cst.Name(value="a").lpar == () and cst.Name("a") != cst.Name("a")
one, two = cst.Call(cst.Name("f")), cst.Call(cst.Name("f"))
assert one.whitespace_after_func.value == "" and one.whitespace_after_func is not two.whitespace_after_func
assert repr(cst.Pass()) == repr(cst.parse_statement("pass").body[0])
for wrong in (lambda: cst.Name(""), lambda: cst.Name("a").with_changes(value="")):
    with pytest.raises(cst.CSTValidationError):
        wrong()
with pytest.raises(TypeError):
    cst.Name()
with pytest.raises(TypeError):
    cst.Name("a", no_field=1)
with pytest.raises(cst.ParserSyntaxError):
    parse("a b")
with pytest.raises(cst.CSTValidationError):  # also after a text that is no Python
    cst.Name("")
""")


def test_nodes_are_keys_as_any_objects_are() -> None:
    run("""
assert cst.Name.__hash__ is object.__hash__ and cst.If.__eq__ is object.__eq__
one, two = cst.Name("a"), cst.Name("a")
assert one != two and one == one and one != "a" and one.deep_equals(two)
assert {one: 1, two: 2}[one] == 1 and len({one, two, one}) == 2 and [two, one].index(one) == 1
""")


def test_nodes_are_told_as_by_abstract_classes() -> None:
    run("""
name = cst.Name("a")
assert isinstance(name, cst.Name) and isinstance(name, cst.BaseExpression) and isinstance(name, cst.CSTNode)
assert not isinstance(name, cst.Attribute) and not isinstance(name, cst.BaseStatement) and not isinstance(3, cst.Name)
assert isinstance(name, cst.Name | cst.Call) and issubclass(cst.For, cst.BaseCompoundStatement)
match name:
    case cst.Name("a"):
        pass
    case _:
        raise AssertionError
try:
    cst.BaseExpression()
except TypeError:
    pass
else:
    raise AssertionError("an abstract class")
""")


@pytest.mark.parametrize("before", ["import libcst\n", ""])
def test_a_program_that_has_loaded_libcst_reads_alike(before: str) -> None:
    code = """
from pathlib import Path
from lintfit.documents.model import Kind
from lintfit.documents.workspace import Workspace
document = Workspace().read(Path("lintfit/frozen.py"))
import libcst as cst
assert document.module.code == document.text
try:
    cst.Name("")
except cst.CSTValidationError:
    pass
else:
    raise AssertionError
"""
    done = subprocess.run(
        [sys.executable, "-c", f"{before}{code}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
