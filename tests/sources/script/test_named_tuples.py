"""Scripts that keep their options or classes in named tuples."""

from __future__ import annotations

import pytest

from lintfit.settings.model import UNKNOWN
from tests.sources.scripts import script, trained, values

KIND = "from collections import namedtuple\nKind = namedtuple({})\n"


@pytest.mark.parametrize(
    ("fields", "made"),
    [
        ("'Kind', ('name', 'size')", "Kind('c/d', 7)"),
        ("'Kind', 'name, size'", "Kind(size=7, name='c/d')"),
        ("'Kind', ['size', 'name'], defaults=['c/d']", "Kind(7)"),
        ("'Kind', list({'name': 1})", "Kind(**{'name': 'c/d'})"),
    ],
)
def test_fields(fields: str, made: str) -> None:
    before = KIND.format(fields) + f"kind = {made}"
    text = trained("").replace("'a/b'", "kind.name").replace("import torch\n", f"import torch\n{before}\n")
    assert values(script(text))["model"] == "c/d"


def test_an_object_is_a_tuple_of_its_fields() -> None:
    before = KIND.format("'Kind', 'size name'") + "size, name = Kind(7, 'c/d')"
    text = trained("").replace("'a/b'", "name").replace("import torch\n", f"import torch\n{before}\n")
    assert values(script(text))["model"] == "c/d"


def test_fields_that_are_not_known() -> None:
    before = KIND.format("'Kind', names()") + "kind = Kind('c/d')"
    text = trained("").replace("'a/b'", "kind.name").replace("import torch\n", f"import torch\n{before}\n")
    assert values(script(text))["model"] is UNKNOWN


def test_options_of_a_command_that_are_kept_in_one() -> None:
    text = """
    from collections import namedtuple
    import click
    import transformers
    from transformers import AutoModel, LlamaForCausalLM, Trainer, TrainingArguments

    def build(options):
        Classes = namedtuple("Classes", ("model", "revision"))
        classes = {"llama": Classes(model=LlamaForCausalLM, revision=None), "auto": Classes(AutoModel, None)}
        kind = "auto" if options.kind not in ["llama"] else options.kind
        return classes[kind].model.from_pretrained(options.base, load_in_8bit=True)

    @click.command()
    @click.option("--base", default="a/b")
    @click.option("--kind", default="llama")
    def main(base: str, kind: str):
        options = locals()
        kept = namedtuple("kept", tuple(options.keys()))
        Trainer(build(kept(**options)), TrainingArguments("out")).train()

    main()
    """
    found = values(script(text, "--base c/d"))
    assert (found["model"], found["quantization"]) == ("c/d", "int8")
