"""The evaluator: expressions, branches, modules of the repository, odd scripts and budgets."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.documents.edits import apply
from lintfit.documents.model import FileText
from lintfit.documents.python_reader import read_python
from lintfit.settings.model import UNKNOWN
from lintfit.settings.values import AS_LOADED
from lintfit.sources.script.source import ScriptSource, read_script
from tests.sources.scripts import script, trained, values


def test_an_undecided_branch_is_neither_taken_nor_not() -> None:
    source = script(trained("if something():\n    model.float()"), "--x 1")
    assert source.facts.upcasts[0].call.taken is None
    assert values(source)["weights_dtype"] is UNKNOWN
    assert [place.text for place in source.facts.upcasts[0].call.conditions] == ["something()"]


def test_a_raise_in_a_branch_does_not_make_the_rest_doubtful() -> None:
    source = script(trained("if something():\n    raise ValueError()\nmodel.float()"), "--x 1")
    assert source.facts.upcasts[0].call.taken is True


def test_a_return_in_an_undecided_branch_does() -> None:
    source = script(
        "from transformers import AutoModelForCausalLM, Trainer\ndef main():\n    if something():\n        return\n"
        "    Trainer(model=AutoModelForCausalLM.from_pretrained('a/b'))\nmain()\n"
    )
    assert source.facts.trainer.taken is None


@pytest.mark.parametrize(
    ("left", "right", "name"),
    [
        ("(*kept, left)", "['a/b', 'c/d', 'rest']", "kept[1]"),
        ("first, *rest", "['x', 'y', 'c/d']", "rest[1]"),
        ("first, *rest, last", "('x', 'c/d')", "last"),
        ("first, *rest", "['c/d', *unknown()]", "first"),
    ],
)
def test_a_starred_name_takes_what_the_others_leave(left: str, right: str, name: str) -> None:
    text = trained("").replace("'a/b'", name).replace("import torch\n", f"import torch\n{left} = {right}\n")
    assert values(script(text))["model"] == "c/d"


@pytest.mark.parametrize(
    ("before", "name"),
    [
        ("class C:\n    def __init__(self, d):\n        self.__dict__ = d\nc = C({'name': 'c/d'})", "c.name"),
        ("class C:\n    def __init__(self, d):\n        self.__dict__.update(d)\nc = C({'name': 'c/d'})", "c.name"),
        ("from huggingface_hub import snapshot_download", "snapshot_download(repo_id='c/d', local_dir='x')"),
        ("from modelscope import snapshot_download", "snapshot_download('c/d', cache_dir='x')"),
        ("from trl import ModelConfig\nc = ModelConfig(model_name_or_path='c/d')", "c.model_name_or_path"),
    ],
)
def test_where_a_models_name_is_kept(before: str, name: str) -> None:
    text = trained("").replace("'a/b'", name).replace("import torch\n", f"import torch\n{before}\n")
    assert values(script(text))["model"] == "c/d"


def test_environment_variables() -> None:
    text = trained("").replace("'a/b'", "os.environ.get('BASE', 'a/b')").replace("import torch\n", "import os, torch\n")
    assert values(script(text))["model"] == "a/b"
    assert values(script(text, env={"BASE": "c/d"}))["model"] == "c/d"


@pytest.mark.parametrize(
    ("environment", "model"),
    [
        ({"WORLD_SIZE": ""}, "alone"),
        ({"RANK": "0", "WORLD_SIZE": "4"}, "a/b"),
        ({"RANK": "0", "WORLD_SIZE": "1"}, UNKNOWN),
        ({}, UNKNOWN),
    ],
)
def test_what_a_launcher_sets_is_in_the_environment(environment: dict[str, str], model: object) -> None:
    name = "'a/b' if 'RANK' in os.environ else 'alone'"
    text = trained("").replace("'a/b'", name).replace("import torch\n", "import os, torch\n")
    assert values(script(text, env=environment))["model"] == model
    absent = "'alone' if 'RANK' not in os.environ else 'a/b'"
    assert values(script(text.replace(name, absent), env=environment))["model"] == model


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'a' + '/b'", "a/b"),
        ("f'{org}/b'", "a/b"),
        ("'%s/b' % org", "a/b"),
        ("'{}/b'.format(org)", "a/b"),
        ("NAMES['small']", "a/b"),
        ("NAMES.get('small')", "a/b"),
        ("os.path.join('a', 'b')", "a/b"),
        ("['x', 'a/b'][1]", "a/b"),
        ("'a/b' if 1 > 0 else 'c/d'", "a/b"),
        ("None or 'a/b'", "a/b"),
        ("(lambda: 'a/b')()", "a/b"),
        ("max(['a/b'])", "a/b"),
        ("'A/B'.lower()", "a/b"),
        ("[n for n in ['a/b', ''] if n][0]", "a/b"),
        ("'a/b' if any([None is not None, org == 'a']) else 'c/d'", "a/b"),
        ("'a/b' if all([org == 'a', org]) else 'c/d'", "a/b"),
        ("'c/d' if any([]) or all([org, None]) else 'a/b'", "a/b"),
        ("'a/b' if any([unknown(), org]) else 'c/d'", "a/b"),
        ("'a/b' if any([unknown(), None]) else 'c/d'", UNKNOWN),
        ("'a/b' if any(part for part in unknown()) else 'c/d'", UNKNOWN),
        ("'a/b' if type(org) == str and type(1) is int else 'c/d'", "a/b"),
        ("'a/b' if type(NAMES) is dict and type([org]) != str else 'c/d'", "a/b"),
        ("'a/b' if type([org]) == list else 'c/d'", UNKNOWN),
        ("'a/b' if type(unknown()) == str else 'c/d'", UNKNOWN),
        ("'a/b' if isinstance(torch.float16, torch.dtype) and not isinstance(torch.float16, str) else 'c/d'", "a/b"),
        ("'a/b' if not isinstance('float16', torch.dtype) else 'c/d'", "a/b"),
        ("'a/b' if isinstance(unknown(), torch.dtype) else 'c/d'", UNKNOWN),
        ("'c/d' if is_sagemaker_mp_enabled() or is_torch_tpu_available() else 'a/b'", "a/b"),
        ("'a/b' if unknown() else 'a/b'", "a/b"),
        ("unknown()", UNKNOWN),
        ("'a/b' if unknown() else 'c/d'", UNKNOWN),
        ("'a/b' if 1280 * 28 * 28 + 5000 > 1_000_000 else 'c/d'", "a/b"),
        ("'a/b' if 8192 * 2 - 8192 * 1 == 8192 else 'c/d'", "a/b"),
        ("'a/b' if 65536 << 3 == 524288 else 'c/d'", "a/b"),
        ("'a/b' if 1 << 10_000 else 'c/d'", UNKNOWN),
        ("1 / 0", UNKNOWN),
        ("'x' * 10**12", UNKNOWN),
        ("[][3]", UNKNOWN),
        ("2 ** 10 ** 10 ** 10", UNKNOWN),
    ],
)
def test_expressions(expression: str, value: object) -> None:
    source = script(
        "import os, torch\nfrom transformers import AutoModelForCausalLM, Trainer\norg = 'a'\n"
        f"NAMES = {{'small': 'a/b'}}\nname = {expression}\n"
        "model = AutoModelForCausalLM.from_pretrained(name)\nTrainer(model=model)\n"
    )
    assert values(source)["model"] == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def f(): return f()\nf()\n",
        "def f(): return g()\ndef g(): return f()\nf()\n",
        "x = x\nwhile True:\n    x = [x]\n",
        "import torch\nclass A(A):\n    pass\nA().b()\n",
        "a, *b = 1\n*a, b = c\n(a, b), c = [1, 2]\n",
        "from transformers import AutoModel\n[] = AutoModel.from_pretrained('m')\n() = AutoModel()\n",
        "x = [i for i in range(10**9)]\n",
        "match a:\n    case [1, *rest]:\n        b()\n    case _:\n        pass\n",
        "import argparse\np = argparse.ArgumentParser()\np.add_argument(*x, **y)\np.add_argument()\np.parse_args().z\n",
        "from transformers import HfArgumentParser\nHfArgumentParser().parse_args_into_dataclasses()[0].x\n",
        "from transformers import Trainer\nTrainer(*a, **k).train()\n",
        "async def f():\n    await g()\n    async for x in y:\n        pass\n    async with z as w:\n        yield w\n",
        "x = " + "(" * 60 + "1" + ")" * 60 + "\n",
        "x = 1\n" + "x = x + x\n" * 3000,
        "x = []\n" + "x = [x, x]\n" * 2000 + "print(x)\n",
        "def f(n):\n" + "    f(n)\n" * 400 + "f(1)\n",
    ],
)
def test_odd_scripts_are_read_without_an_error(text: str) -> None:
    source = read_script(read_python(FileText(Path("train.py"), text)))
    assert source.facts.trains in (True, False)


def test_functions_that_call_functions_many_times_stay_within_the_budget() -> None:
    text = "def f0():\n    pass\n" + "".join(
        f"def f{i}():\n    f{i - 1}()\n    f{i - 1}()\n    f{i - 1}()\n" for i in range(1, 30)
    )
    source = read_script(read_python(FileText(Path("train.py"), text + "f29()\n")))
    assert source.walk.steps.taken < 200_000


def test_a_script_with_a_syntax_error_says_nothing() -> None:
    source = read_script(read_python(FileText(Path("train.py"), "def (\n")))
    assert not source.facts.trains and source.settings == {}


def test_a_check_that_fails_does_not_end_the_reading() -> None:
    source = script(trained("if 1 > 0:\n    raise ValueError()\nmodel.float()"))
    assert source.facts.upcasts[0].call.taken is True


class TestOwnModules:
    MAIN = """
        from transformers import Trainer
        from utils.build import build, Options
        from .nothing import here
        Trainer(model=build("a/b"), args=Options().arguments()).train()
    """
    BUILD = """
        import torch
        from transformers import AutoModelForCausalLM, TrainingArguments
        BATCH = 3
        class Options:
            def arguments(self):
                return TrainingArguments(output_dir="x", per_device_train_batch_size=BATCH)
        def build(name):
            model = AutoModelForCausalLM.from_pretrained(name, torch_dtype=torch.float16)
            model.float()
            return model
    """

    def read(self) -> tuple[ScriptSource, dict[Path, str]]:
        from textwrap import dedent

        files = {Path("run/utils/build.py"): dedent(self.BUILD)}
        opened: dict[Path, object] = {}

        def open_file(path: Path) -> object:
            if path in files and path not in opened:
                opened[path] = read_python(FileText(path, files[path]))
            return opened.get(path)

        document = read_python(FileText(Path("run/train.py"), dedent(self.MAIN)))
        return read_script(document, open_file=open_file), files  # type: ignore[arg-type]

    def test_functions_and_classes_are_followed(self) -> None:
        source, _ = self.read()
        found = values(source)
        assert (found["model"], found["micro_batch_size"], found["weights_dtype"]) == ("a/b", 3, "fp32")
        assert source.settings["micro_batch_size"].provenance.place.document.path == Path("run/utils/build.py")
        assert source.facts.upcasts[0].lines.text == "    model.float()\n"

    def test_and_written_to(self) -> None:
        source, _ = self.read()
        (edit,) = source.write("micro_batch_size", 1)
        assert edit.path == Path("run/utils/build.py")
        assert "BATCH = 1\n" in apply(edit.document.text, [edit.edit])
        assert len(source.write("weights_dtype", AS_LOADED)) == 1

    def test_without_them_the_script_is_read_alone(self) -> None:
        from textwrap import dedent

        source = read_script(read_python(FileText(Path("train.py"), dedent(self.MAIN))))
        assert source.facts.trains and "model" not in source.settings


def test_a_dict_that_a_branch_not_taken_would_change() -> None:
    text = """
        from transformers import AutoModelForCausalLM
        more = {{"attn_implementation": "sdpa"}}
        if {}:
            more.update(device_map="auto")
            more.pop("attn_implementation")
        model = AutoModelForCausalLM.from_pretrained("a/b", **more)
        """
    (load,) = script(text.format("False")).facts.loads
    assert {name: given.value for name, given in load.arguments.items()} == {"attn_implementation": "sdpa"}
    (load,) = script(text.format("True")).facts.loads
    assert {name: given.value for name, given in load.arguments.items()} == {"device_map": "auto"}
    (load,) = script(text.format("elsewhere()")).facts.loads
    assert {load.arguments[name].value for name in ("device_map", "attn_implementation")} == {UNKNOWN}


@pytest.mark.parametrize(
    ("test", "engine", "batch"),
    [
        ("k in inspect.signature(TrainingArguments.__init__).parameters", "ds.json", 3),
        ("k in set(inspect.signature(TrainingArguments).parameters.keys())", "ds.json", 3),
        ("k != 'deepspeed'", None, 3),
        ("k != 'deepspeed' or elsewhere()", UNKNOWN, 3),
        ("elsewhere(k)", UNKNOWN, UNKNOWN),
    ],
)
def test_a_dict_of_what_a_test_leaves(test: str, engine: object, batch: object) -> None:
    found = values(
        script(f"""
        import inspect
        from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
        given = {{"deepspeed": "ds.json", "per_device_train_batch_size": 3, "of_no_version": 1}}
        args = TrainingArguments("out", **{{k: v for k, v in given.items() if {test}}})
        Trainer(AutoModelForCausalLM.from_pretrained("a/b"), args).train()
        """)
    )
    assert (found.get("deepspeed"), found["micro_batch_size"]) == (engine, batch)


@pytest.mark.filterwarnings("error")
def test_a_stray_backslash_warns_nobody() -> None:
    assert script('import torch\nname = "a\\`b"\nloss.backward()\noptimizer.step()\n').facts.trains


@pytest.mark.parametrize(("asked", "bf16"), [("", True), ("including_emulation=False", UNKNOWN)])
def test_every_gpu_supports_bf16_where_emulation_counts(asked: str, bf16: object) -> None:
    fallback = f"bf16 = True\nif not torch.cuda.is_bf16_supported({asked}):\n    bf16 = False"
    text = trained(fallback).replace("output_dir='x'", "output_dir='x', bf16=bf16")
    assert values(script(text, "--x 1"))["bf16"] == bf16


@pytest.mark.parametrize(
    ("asked", "turing", "ampere"),
    [
        ("torch.cuda.get_device_capability()[0] == 8", False, True),
        ("torch.cuda.get_device_capability(0) >= (8, 0)", False, True),
        ("torch.cuda.get_device_capability() > (8, 6)", False, False),
        ("torch.cuda.get_device_properties(0).major >= 8", False, True),
        ("torch.cuda.get_device_properties(0).total_memory > 2**34", UNKNOWN, UNKNOWN),
        ("torch.cuda.is_bf16_supported(including_emulation=False)", False, True),
        ("torch.cuda.is_bf16_supported(including_emulation=emulates())", UNKNOWN, UNKNOWN),
        ("torch.cuda.is_bf16_supported()", True, True),
    ],
)
def test_what_hangs_on_the_compute_capability_is_known_with_the_gpu(asked: str, turing: object, ampere: object) -> None:
    text = trained(f"bf16 = {asked}").replace("output_dir='x'", "output_dir='x', bf16=bf16")
    found = [values(script(text, "--x 1", capability=known))["bf16"] for known in ((7, 5), (8, 6))]
    assert found == [turing, ampere]
    if "is_bf16_supported()" not in asked:
        assert values(script(text, "--x 1"))["bf16"] is UNKNOWN


def test_bf16_that_no_default_decides_stays_unknown_without_a_launch_line() -> None:
    text = trained("bf16 = torch.cuda.get_device_capability()[0] >= 8")
    assert values(script(text.replace("output_dir='x'", "output_dir='x', bf16=bf16")))["bf16"] is UNKNOWN


PARTIAL = """
import functools
import torch
from transformers import AutoModelForCausalLM, Trainer
def loader(kind):
    if kind == "half":
        return functools.partial(AutoModelForCausalLM.from_pretrained, torch_dtype=torch.float16)
    return functools.partial(AutoModelForCausalLM.from_pretrained, torch_dtype=torch.bfloat16)
load = loader({kind})
model = load("a/b"{more})
Trainer(model=model).train()
"""


@pytest.mark.parametrize(
    ("kind", "more", "dtype"),
    [("'half'", "", "fp16"), ("'half'", ", torch_dtype=torch.float32", "fp32"), ("unknown()", "", UNKNOWN)],
)
def test_a_partial_call_is_completed(kind: str, more: str, dtype: object) -> None:
    found = values(script(PARTIAL.format(kind=kind, more=more), "--x 1"))
    assert (found["model"], found["weights_dtype"]) == ("a/b", dtype)


def test_a_class_is_set_up_by_those_that_it_inherits_from() -> None:
    source = script("""
        from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
        class Named:
            def __init__(self, name):
                self.model = AutoModelForCausalLM.from_pretrained(name, dtype="bfloat16")
        class Logs:
            def __init__(self, *rest):
                super().__init__(*rest)
        class Run(Logs, Named):
            def __init__(self, name, size):
                super().__init__(name)
                self.size = size
            def start(self):
                args = TrainingArguments("out", per_device_train_batch_size=self.size)
                Trainer(model=self.model, args=args).train()
        class Larger(Run):
            def __init__(self, name):
                super(Larger, self).__init__(name, 4)
            def start(self):
                super().start()
        Larger("a/b").start()
        """)
    found = values(source)
    assert (found["model"], found["weights_dtype"], found["micro_batch_size"]) == ("a/b", "bf16", 4)


def test_a_wrapper_of_fire_fills_the_function_that_it_is_handed() -> None:
    text = """
        from transformers import AutoModelForCausalLM, Trainer
        from tools import Our_Fire
        def tune(base="a/b"):
            Trainer(model=AutoModelForCausalLM.from_pretrained(base)).train()
        if __name__ == "__main__":
            Our_Fire(tune)
        """
    source = script(text, "--base c/d")
    assert values(source)["model"] == "c/d"
    assert source.facts.trainer.taken is True


def test_what_else_ends_in_fire_is_no_command_line() -> None:
    text = """
        from transformers import AutoModelForCausalLM, Trainer
        from tools import CampFire
        def tune(base="a/b"):
            Trainer(model=AutoModelForCausalLM.from_pretrained(base)).train()
        CampFire(tune)
        tune()
        """
    assert values(script(text, "--base c/d"))["model"] == "a/b"


CHOSEN = """
import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
def load(kind):
    match kind:
        case "half" | "fp16":
            dtype = torch.float16
        case "bf16" if kind != "no":
            dtype = torch.bfloat16
        case None:
            raise ValueError(kind)
        case _:
            dtype = torch.float32
    return AutoModelForCausalLM.from_pretrained("m", dtype=dtype)
Trainer(model=load({kind}), args=TrainingArguments("out")).train()
"""


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("'half'", "fp16"), ("'bf16'", "bf16"), ("'other'", "fp32"), ("ask()", UNKNOWN), ("None", UNKNOWN)],
)
def test_the_case_that_matches_runs(kind: str, dtype: object) -> None:
    text = "from nowhere import ask\n" + CHOSEN.format(kind=kind)
    assert values(script(text))["weights_dtype"] == dtype


def test_what_is_worked_out_once_and_kept_in_a_global() -> None:
    """Each call behind the first finds it there, whatever the branch holds that is not taken."""
    before = """
kept = None
def found():
    "Says which model it is."
    global kept
    if kept is None:
        kept = work_out()
    return kept
def work_out():
    name = "c/d"
    name = name.strip()
    name = name.strip("/")
    return name
for _ in range(3):
    found()
found(), found(), found()
"""
    text = trained("").replace("'a/b'", "found()").replace("import torch\n", f"import torch\n{before}")
    assert values(script(text))["model"] == "c/d"


HELPER = """from transformers import AutoModelForCausalLM


{decorator}def load_llama():
    model = AutoModelForCausalLM.from_pretrained("a/b")
    print(model)


def main():
    {call}
    fit(optimizer).backward()


if __name__ == "__main__":
    main()
    {more}
"""


@pytest.mark.parametrize(
    ("call", "decorator", "more", "loads"),
    [
        ("# load_llama()", "", "pass", False),
        ("load_llama()", "", "pass", True),
        ("run(load_llama)", "", "pass", True),
        ("pass", "@app.command()\n", "pass", True),
        ("pass", "", "fire.Fire()", True),
        ("pass", "", "globals()[sys.argv[1]]()", True),
    ],
)
def test_a_helper_that_nothing_calls_loads_nothing(call: str, decorator: str, more: str, loads: bool) -> None:
    source = script(HELPER.format(call=call, decorator=decorator, more=more), "--x 1")
    assert any(load.taken is not False for load in source.facts.loads) is loads
