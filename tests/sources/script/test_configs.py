"""Config files that a script reads itself: their values, where they stand, and fixes written into them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from lintfit.documents.edits import apply
from lintfit.documents.json_reader import read_json
from lintfit.documents.model import DataDocument, Document, FileText, Kind
from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.workspace import Workspace
from lintfit.documents.yaml_reader import read_yaml
from lintfit.settings.model import UNKNOWN
from lintfit.sources.launchers.launcher import read_launches
from lintfit.sources.script.source import ScriptSource, read_script
from tests.sources.scripts import script, values

TRAIN = """
model = AutoModelForCausalLM.from_pretrained({model})
Trainer(model=model, args=TrainingArguments("out", per_device_train_batch_size={micro})).train()
"""
HEAD = "from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments\n"


def read(text: str, files: Mapping[str, str], line: str | None = "", words: str = "") -> ScriptSource:
    """A script that reads some files; ``words`` are the ``key=value`` words of its launch."""
    known = {name: dedent(content).lstrip("\n") for name, content in files.items()}

    def open_data(name: str, kind: Kind) -> DataDocument | None:
        if name not in known:
            return None
        reader = read_json if kind is Kind.JSON else read_yaml
        return reader(FileText(Path(name), known[name]))

    from lintfit.documents.shell_reader import read_shell

    overrides = ()
    if words:
        launch = read_launches(read_shell(FileText(Path("run.sh"), f"torchrun train.py {words}\n")))[0]
        overrides = launch.overrides
    return script(HEAD + dedent(text), line, open_data=open_data, overrides=overrides)


YAML = {"conf.yaml": "model: {name: m}\ntrain:\n  micro: 4  # a comment\n"}


@pytest.mark.parametrize(
    "load",
    [
        "import yaml\nwith open('conf.yaml') as file:\n    c = yaml.safe_load(file)",
        "import yaml\nc = yaml.load(open('conf.yaml'), Loader=yaml.FullLoader)",
        "import yaml\nfrom pathlib import Path\nc = yaml.safe_load((Path('.') / 'conf.yaml').resolve().read_text())",
        "import yaml\nfrom pathlib import Path\nwith Path('conf.yaml').open() as f:\n    c = yaml.safe_load(f.read())",
        "from omegaconf import OmegaConf\nc = OmegaConf.load('conf.yaml')",
        "from omegaconf import OmegaConf\nc = OmegaConf.to_container(OmegaConf.load('conf.yaml'), resolve=True)",
    ],
)
def test_a_file_that_is_read(load: str) -> None:
    files = {**YAML, "./conf.yaml": YAML["conf.yaml"]}
    source = read(load + TRAIN.format(model='c["model"]["name"]', micro='c["train"]["micro"]'), files)
    assert values(source)["model"] == "m"
    micro = source.settings["micro_batch_size"]
    assert micro.value == 4
    assert micro.provenance.place is not None and str(micro.provenance.place).endswith("conf.yaml:3")


def test_json_by_the_first_word_of_the_command_line() -> None:
    text = "import json, sys\nc = json.load(open(sys.argv[1]))" + TRAIN.format(model='c["m"]', micro='c.get("b", 2)')
    known = read(text, {"a.json": '{"m": "name"}'}, "")
    assert values(known)["model"] is UNKNOWN, "nobody knows which file"
    text = text.replace("sys.argv[1]", "'a.json'")
    assert values(read(text, {"a.json": '{"m": "name"}'}))["micro_batch_size"] == 2


def test_a_file_that_is_not_at_hand_is_not_known() -> None:
    text = "import yaml\nc = yaml.safe_load(open('other.yaml'))" + TRAIN.format(model='c["m"]', micro='c["b"]')
    assert values(read(text, YAML))["micro_batch_size"] is UNKNOWN


def test_the_fix_goes_into_the_file() -> None:
    text = "import yaml\nc = yaml.safe_load(open('conf.yaml'))" + TRAIN.format(
        model='"m"', micro='int(c["train"]["micro"])'
    )
    edits = read(text, YAML).write("micro_batch_size", 1)
    assert edits is not None and [edit.path.name for edit in edits] == ["conf.yaml"]
    assert apply(YAML["conf.yaml"], [edit.edit for edit in edits]) == YAML["conf.yaml"].replace("micro: 4", "micro: 1")


def test_what_is_computed_from_the_file_is_mended_where_it_is_used() -> None:
    text = "import yaml\nc = yaml.safe_load(open('conf.yaml'))" + TRAIN.format(
        model='"m"', micro='8 // c["train"]["micro"]'
    )
    edits = read(text, YAML).write("micro_batch_size", 1)
    assert edits is not None and [edit.path.name for edit in edits] == ["train.py"]


PARSED = """
from dataclasses import dataclass
import sys
@dataclass
class Arguments:
    name: str = "default"
parser = HfArgumentParser((Arguments, TrainingArguments))
arguments, training = parser.{call}
model = AutoModelForCausalLM.from_pretrained(arguments.name)
Trainer(model=model, args=training).train()
"""
ARGS = '{"name": "m", "output_dir": "out", "bf16": true}\n'


def test_parse_json_file_takes_nothing_from_the_command_line() -> None:
    source = read(PARSED.format(call='parse_json_file("a.json")'), {"a.json": ARGS}, "--name other --fp16")
    found = values(source)
    assert (found["model"], found["bf16"], found["fp16"]) == ("m", True, False)
    assert str(source.settings["bf16"].provenance.place).endswith("a.json:1")
    assert [setting.value for setting in source.settings["model"].overrode] == ["default"]


def test_a_new_argument_goes_into_the_file_that_holds_the_others() -> None:
    edits = read(PARSED.format(call='parse_json_file("a.json")'), {"a.json": ARGS}).write(
        "gradient_checkpointing", True
    )
    assert edits is not None
    text = apply(ARGS, [edit.edit for edit in edits])
    assert text == '{"name": "m", "output_dir": "out", "bf16": true, "gradient_checkpointing": true}\n'


def test_parse_yaml_file() -> None:
    files = {"a.yaml": "name: m\nper_device_train_batch_size: 2\n"}
    assert values(read(PARSED.format(call='parse_yaml_file("a.yaml")'), files))["micro_batch_size"] == 2


def test_an_argument_file_that_is_not_at_hand_leaves_all_open() -> None:
    found = values(read(PARSED.format(call='parse_json_file("b.json")'), {}))
    assert found["model"] is UNKNOWN
    assert "bf16" not in found


TRL = """
from trl import ModelConfig, SFTConfig, SFTTrainer, TrlParser
parser = TrlParser((SFTConfig, ModelConfig))
training, model = parser.parse_args_and_config()
SFTTrainer(model=model.model_name_or_path, args=training).train()
"""


def test_flags_beat_the_config_of_a_trl_parser() -> None:
    files = {"c.yaml": "model_name_or_path: m\nper_device_train_batch_size: 4\nmax_length: 2048\n"}
    source = read(TRL, files, "--config c.yaml --per_device_train_batch_size 2")
    assert (values(source)["model"], values(source)["seq_len"]) == ("m", 2048)
    micro = source.settings["micro_batch_size"]
    assert (micro.value, [setting.value for setting in micro.overrode]) == (2, [4])


MERGED = """
from dataclasses import dataclass
from omegaconf import OmegaConf
@dataclass
class Train:
    micro: int = 8
    steps: int = 1
@dataclass
class Config:
    name: str = "default"
    train: Train = Train()
c = OmegaConf.merge(OmegaConf.structured(Config), OmegaConf.load("conf.yaml"), OmegaConf.from_cli())
model = AutoModelForCausalLM.from_pretrained(c.name)
args = TrainingArguments(
    "out", per_device_train_batch_size=c.train.micro, gradient_accumulation_steps=c.train.steps, bf16=c.fast
)
Trainer(model=model, args=args).train()
"""


def test_merged_configs_know_what_they_overrode() -> None:
    files = {"conf.yaml": "name: m\nfast: true\ntrain:\n  micro: 4\n"}
    source = read(MERGED, files, "", "train.micro=2 fast=false")
    found = values(source)
    assert (found["model"], found["gradient_accumulation_steps"], found["bf16"]) == ("m", 1, False)
    micro = source.settings["micro_batch_size"]
    assert (micro.value, [setting.value for setting in micro.overrode]) == (2, [4, 8])
    assert micro.provenance.place is not None and micro.provenance.place.text == "2"


def test_without_a_launch_any_key_may_be_overridden() -> None:
    source = read(MERGED, {"conf.yaml": "name: m\nfast: true\n"}, None)
    assert source.settings["model"].provenance.kind == "assumed"


def test_interpolations() -> None:
    text = """
    from omegaconf import OmegaConf
    c = OmegaConf.merge(OmegaConf.load("conf.yaml"), {"size": "7B"})
    """
    files = {
        "conf.yaml": "size: 3B\nmodel: {name: 'Qwen/Qwen2.5-${size}', micro: '${default.micro}'}\ndefault: {micro: 4}\n"
    }
    found = values(read(dedent(text) + TRAIN.format(model="c.model.name", micro="c.model.micro"), files))
    assert (found["model"], found["micro_batch_size"]) == ("Qwen/Qwen2.5-7B", 4)


def test_values_that_are_selected_and_updated() -> None:
    text = """
    from omegaconf import OmegaConf
    c = OmegaConf.create({"model": {"name": "m"}})
    OmegaConf.update(c, "train.micro", 3)
    """
    trained = TRAIN.format(model='OmegaConf.select(c, "model.name")', micro="c.train.micro")
    found = values(read(dedent(text) + trained, {}))
    assert (found["model"], found["micro_batch_size"]) == ("m", 3)


DATACLASSES = """
import dataclasses as dc
from pathlib import Path
import ruamel.yaml as yaml
from peft import PeftConfig, get_peft_config, get_peft_model
def parser():
    made = yaml.YAML(typ="safe", pure=True)
    made.default_flow_style = False
    return made
@dc.dataclass
class Config:
    longest: int
    training: TrainingArguments = dc.field(default_factory=lambda: TrainingArguments("out"))
    peft: PeftConfig = None
    @classmethod
    def of(cls, **kwargs):
        kwargs["training"] = TrainingArguments(**kwargs.get("training"))
        if kwargs.get("peft") is not None:
            kwargs["peft"] = get_peft_config(kwargs["peft"])
        return cls(**kwargs)
    @classmethod
    def read(cls, path):
        return cls.of(**parser().load(Path(path).expanduser().resolve()))
config = Config.read("config.yaml")
model = AutoModelForCausalLM.from_pretrained("m")
if config.peft is not None:
    if config.peft.peft_type.name == "LORA":
        model = get_peft_model(model, config.peft)
Trainer(model=model, args=config.training).train()
"""


@pytest.mark.parametrize(
    ("peft", "expected"),
    [
        ("peft: {peft_type: LORA, r: 4}", ("lora", 4)),
        ("peft: {peft_type: PREFIX_TUNING}", (UNKNOWN, None)),
        ("peft: null", ("full", None)),
    ],
)
def test_a_yaml_of_ruamel_fills_arguments_and_an_adapter(peft: str, expected: tuple[object, object]) -> None:
    text = f"longest: 64\ntraining: {{output_dir: out, per_device_train_batch_size: 3}}\n{peft}\n"
    found = values(read(DATACLASSES, {"config.yaml": text}))
    assert (found["method"], found.get("lora_rank")) == expected
    assert found["micro_batch_size"] == 3


@pytest.mark.parametrize(
    ("change", "given", "expected"),
    [
        ("sys.argv.extend(words)", "", 4),
        ("sys.argv.extend(words)", "--per_device_train_batch_size 2", UNKNOWN),
        ("sys.argv = sys.argv[:1] + words + sys.argv[1:]", "--per_device_train_batch_size 2", UNKNOWN),
        ("sys.argv.extend(words)", "--per_device_train_batch_size 4", 4),
        ("assert sys.argv == words", "--per_device_train_batch_size 2", 2),
    ],
)
def test_which_wins_where_a_script_makes_words_of_a_file_is_not_known(
    change: str, given: str, expected: object
) -> None:
    text = f"""
        import sys
        from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments
        parser = HfArgumentParser(TrainingArguments)
        {change}
        (args,) = parser.parse_args_into_dataclasses()
        Trainer(model=AutoModelForCausalLM.from_pretrained("m"), args=args).train()
        """
    files = {"c.yaml": "output_dir: o\nper_device_train_batch_size: 4\n"}
    assert values(read(dedent(text), files, f"--config c.yaml {given}"))["micro_batch_size"] == expected


class TestExecuted:
    TRAIN = """
    batch_size = 12
    accumulation = 8
    exec(open("options.py").read())
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
    made = TrainingArguments("o", per_device_train_batch_size=batch_size, gradient_accumulation_steps=accumulation)
    Trainer(model=AutoModelForCausalLM.from_pretrained("m"), args=made).train()
    """
    OPTIONS = """
    import sys
    for word in sys.argv[1:]:
        if "=" in word:
            key, value = word.split("=")
            globals()[key[2:]] = value
        else:
            exec(open(word).read())
    """

    @pytest.mark.parametrize(
        ("line", "batch", "steps"),
        [
            ("", 12, 8),
            ("small.py", 4, 8),
            ("small.py --accumulation=2", 4, 2),
            ("small.py --batch_size=1 --accumulation=2", 1, 2),
            ("missing.py", 12, 8),
        ],
    )
    def test_constants_that_the_command_line_changes(self, tmp_path: Path, line: str, batch: int, steps: int) -> None:
        for name, text in (("train.py", self.TRAIN), ("options.py", self.OPTIONS), ("small.py", "batch_size = 4\n")):
            (tmp_path / name).write_text(dedent(text))
        (tmp_path / "run.sh").write_text(f"torchrun train.py {line}\n")
        workspace = Workspace(tmp_path)
        document, launch = workspace.read(Path("train.py")), read_launches(workspace.read(Path("run.sh")))[0]
        assert isinstance(document, PythonDocument)

        def opened(path: Path) -> Document | None:
            return workspace.read(path) if workspace.exists(path) else None

        source = read_script(document, launch.flags, has_launch=True, positional=launch.positional, open_file=opened)
        found = values(source)
        assert (found["micro_batch_size"], found["gradient_accumulation_steps"]) == (batch, steps)


def test_a_parser_that_gets_its_classes_side_by_side_stops_by_itself() -> None:
    """``HfArgumentParser.__init__`` takes them in a tuple."""
    script = PARSED.replace("((Arguments, TrainingArguments))", "(Arguments, TrainingArguments)")
    source = read(script.format(call="parse_args_into_dataclasses()"), {}, "--name other --fp16")
    assert not source.walk.parsed
