"""Scripts whose arguments and models are made in packages of their own, by helpers that loop and recurse."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from lintfit.documents.model import DataDocument, Document, Kind
from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.workspace import Workspace
from lintfit.settings.model import UNKNOWN
from lintfit.sources.script.interpreter.modules import MAX_CHARACTERS
from lintfit.sources.script.source import ScriptSource, read_script
from tests.sources.scripts import flags_of, script, values


def project(folder: Path, files: Mapping[str, str], line: str = "", script: str = "train.py") -> ScriptSource:
    """One of some files, read as a script under a launch line."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    workspace = Workspace(folder)
    document = workspace.read(Path(script))
    assert isinstance(document, PythonDocument)

    def opened(path: Path) -> Document | None:
        return workspace.read(path) if workspace.exists(path) else None

    def data(name: str, kind: Kind) -> DataDocument | None:
        found = opened(Path(name))
        return found if isinstance(found, DataDocument) else None

    return read_script(document, flags_of(line) if line else [], has_launch=True, open_file=opened, open_data=data)


HELPER = """
from transformers import AutoModelForCausalLM
def build(name):
    return AutoModelForCausalLM.from_pretrained(name, dtype="bfloat16")
"""
TRAIN = """
from transformers import Trainer, TrainingArguments
from kit import build
Trainer(model=build("m"), args=TrainingArguments("out")).train()
"""


@pytest.mark.parametrize(
    "files",
    [
        {"kit/__init__.py": "from .models import build\n", "kit/models.py": HELPER},
        {"kit/__init__.py": "from .models import *\n", "kit/models.py": HELPER},
        {
            "kit/__init__.py": "from .deep.models import build\n",
            "kit/deep/__init__.py": "",
            "kit/deep/models.py": "from ..base import build\n",
            "kit/base.py": HELPER,
        },
        {"kit/__init__.py": "from kit.models import build\n", "kit/models.py": HELPER},
    ],
    ids=["relative", "star", "upwards", "absolute"],
)
def test_a_package_passes_on_what_its_modules_hold(tmp_path: Path, files: dict[str, str]) -> None:
    found = values(project(tmp_path, {"train.py": TRAIN, **files}))
    assert (found["model"], found["weights_dtype"]) == ("m", "bf16")


def test_dotted_flags_that_become_nested() -> None:
    text = """
    import argparse
    from types import SimpleNamespace
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

    def nested(args):
        root = {}
        for key, value in vars(args).items():
            parts = key.split(".")
            node = root
            for part in parts[:-1]:
                node = node.setdefault(part, {})
            node[parts[-1]] = value

        def build(value):
            if isinstance(value, dict):
                return SimpleNamespace(**{k: build(v) for k, v in value.items()})
            return value

        return build(root)

    parser = argparse.ArgumentParser()
    parser.add_argument("--model.name", type=str)
    parser.add_argument("--train.micro.size", type=int, default=8)
    args = nested(parser.parse_args())
    made = TrainingArguments("out", per_device_train_batch_size=args.train.micro.size)
    Trainer(model=AutoModelForCausalLM.from_pretrained(args.model.name), args=made).train()
    """
    found = values(script(text, "--model.name m --train.micro.size 2"))
    assert (found["model"], found["micro_batch_size"]) == ("m", 2)


FIRE = """
import fire
from dataclasses import dataclass
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
@dataclass
class Config:
    name: str = "m"
    size: int = 8
@dataclass
class Other:
    rank: int = 4
def update(config, **kwargs):
    if isinstance(config, (tuple, list)):
        for one in config:
            update(one, **kwargs)
    else:
        for key, value in kwargs.items():
            if hasattr(config, key):
                setattr(config, key, value)
def main(**kwargs):
    config, other = Config(), Other()
    update((config, other), **kwargs)
    args = TrainingArguments("out", per_device_train_batch_size=config.size)
    Trainer(model=AutoModelForCausalLM.from_pretrained(config.name), args=args).train()
fire.Fire(main)
"""


def test_flags_that_a_helper_stores_by_name() -> None:
    found = values(script(FIRE, "--size 2 --rank 16"))
    assert (found["model"], found["micro_batch_size"]) == ("m", 2)


def test_a_field_that_is_stored_under_a_name_nobody_knows() -> None:
    text = """
    from dataclasses import dataclass
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
    @dataclass
    class Config:
        size: int = 8
    config = Config()
    for key, value in somewhere():
        setattr(config, key, value)
    args = TrainingArguments("out", per_device_train_batch_size=config.size)
    Trainer(model=AutoModelForCausalLM.from_pretrained("m"), args=args).train()
    """
    assert values(script(text, ""))["micro_batch_size"] is UNKNOWN


def test_what_a_dataclass_does_once_it_is_filled() -> None:
    text = """
    from dataclasses import dataclass
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments
    @dataclass
    class Mine:
        use_lora: bool = False
        use_qlora: bool = False
        def __post_init__(self):
            if self.use_qlora:
                self.use_lora = True
    mine, args = HfArgumentParser((Mine, TrainingArguments)).parse_args_into_dataclasses()
    model = AutoModelForCausalLM.from_pretrained("m")
    if mine.use_lora:
        model = get_peft_model(model, LoraConfig(r=8))
    Trainer(model=model, args=args).train()
    """
    assert values(script(text, "--output_dir out --use_qlora True"))["method"] == "lora"
    assert values(script(text, "--output_dir out"))["method"] == "full"


def test_a_method_of_the_class_itself() -> None:
    text = """
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
    class Factory:
        @classmethod
        def make(cls, name):
            return AutoModelForCausalLM.from_pretrained(name)
    Trainer(model=Factory.make("m"), args=TrainingArguments("out")).train()
    """
    assert values(script(text, ""))["model"] == "m"


def test_a_runner_of_an_imported_module_is_not_the_entry(tmp_path: Path) -> None:
    module = """
    import fire
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
    def main(size: int = 8):
        args = TrainingArguments("out", per_device_train_batch_size=size)
        Trainer(model=AutoModelForCausalLM.from_pretrained("m"), args=args).train()
    if __name__ == "__main__":
        fire.Fire(main)
    """
    train = "import fire\nfrom finetuning import main\nif __name__ == '__main__':\n    fire.Fire(main)\n"
    found = project(tmp_path, {"train.py": train, "finetuning.py": module}, "--size 2")
    assert values(found)["micro_batch_size"] == 2
    assert found.facts.trainer is not None and found.facts.trainer.taken is True


def test_an_h4_parser_of_the_projects_own(tmp_path: Path) -> None:
    files = {
        "kit.py": "from transformers import HfArgumentParser\nclass H4ArgumentParser(HfArgumentParser):\n    pass\n",
        "train.py": """
            from kit import H4ArgumentParser
            from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
            args = H4ArgumentParser(TrainingArguments).parse()
            Trainer(model=AutoModelForCausalLM.from_pretrained("m"), args=args).train()
        """,
        "config.yaml": "per_device_train_batch_size: 2\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(dedent(text))
    workspace = Workspace(tmp_path)
    document = workspace.read(Path("train.py"))
    assert isinstance(document, PythonDocument)

    def opened(path: Path) -> Document | None:
        return workspace.read(path) if workspace.exists(path) else None

    def data(name: str, kind: Kind) -> DataDocument | None:
        found = workspace.read(Path(name), kind)
        return found if isinstance(found, DataDocument) else None

    found = read_script(document, has_launch=True, positional=["config.yaml"], open_file=opened, open_data=data)
    assert values(found)["micro_batch_size"] == 2


def test_a_loader_of_ready_batches_does_not_say_how_large_they_are() -> None:
    text = """
    from torch.utils.data import DataLoader
    from transformers import AutoModelForCausalLM
    model = AutoModelForCausalLM.from_pretrained("m")
    for batch in DataLoader(stream(), batch_size=None):
        model(**batch).loss.backward()
    """
    assert values(script(text, ""))["micro_batch_size"] is UNKNOWN


@pytest.mark.parametrize(("version", "dtype"), [("4.28.1", "fp16"), ("4.57.0", "fp16")])
def test_what_bitsandbytes_loads_in_where_nobody_says(version: str, dtype: str) -> None:
    text = """
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
    model = AutoModelForCausalLM.from_pretrained("m", load_in_8bit=True)
    Trainer(model=model, args=TrainingArguments("out")).train()
    """
    assert values(script(text, "", versions={"transformers": version}))["weights_dtype"] == dtype


COPIED = """
from .mapping import get_peft_config, get_peft_model
from .tuners import LoraConfig
"""
ADAPTED = """
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
from kit.peft_own import LoraConfig, get_peft_model
model = get_peft_model(AutoModelForCausalLM.from_pretrained("m"), LoraConfig(r=4))
Trainer(model=model, args=TrainingArguments("out")).train()
"""


def test_a_copy_of_peft_by_another_name_is_peft(tmp_path: Path) -> None:
    mapping = "def get_peft_model(model, config):\n    for p in model.parameters():\n        p.requires_grad = False\n"
    files = {
        "kit/peft_own/__init__.py": COPIED,
        "kit/peft_own/mapping.py": mapping,
        "kit/peft_own/tuners.py": "class LoraConfig:\n    r: int = 8\n",
        "train.py": ADAPTED,
    }
    found = values(project(tmp_path, files))
    assert (found["method"], found["lora_rank"]) == ("lora", 4)


OWN_LOADER = """
from transformers import PreTrainedModel
class Own(PreTrainedModel):
    @classmethod
    def from_pretrained(cls, name, *args, config=None, **kwargs):
        if hasattr(config, "packed") and config.packed["four"]:
            return cls(config)
        return super(Own, cls).from_pretrained(name, *args, config=config, **kwargs)
"""
OWN_TRAIN = """
from transformers import AutoConfig, Trainer, TrainingArguments
from kit import Own
config = AutoConfig.from_pretrained("a/b")
model = Own.from_pretrained("a/b", config=config, torch_dtype="bfloat16")
Trainer(model=model, args=TrainingArguments("out")).train()
"""


def test_a_loader_of_its_own_that_ends_in_the_librarys(tmp_path: Path) -> None:
    found = values(project(tmp_path, {"kit.py": OWN_LOADER, "train.py": OWN_TRAIN}))
    assert (found["model"], found["weights_dtype"]) == ("a/b", "bf16")


def test_a_long_module_that_opens_a_yaml_file_is_read(tmp_path: Path) -> None:
    helper = "import yaml\ndef named(key):\n    with open('models.yaml') as f:\n        return yaml.safe_load(f)[key]\n"
    filler = "\n".join(f"def other{number}():\n    return {number}" for number in range(400))
    files = {
        "kit.py": helper + filler,
        "train.py": """
            from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
            from kit import named
            model = AutoModelForCausalLM.from_pretrained(named("small")["id"])
            Trainer(model=model, args=TrainingArguments("out")).train()
            """,
        "models.yaml": "small:\n  id: a/b\n",
    }
    assert values(project(tmp_path, files))["model"] == "a/b"


@pytest.mark.parametrize("folder", ["kit/kit", "kit/src/kit", "parts/kit"])
def test_a_package_with_a_folder_of_its_own(tmp_path: Path, folder: str) -> None:
    files = {
        "scripts/train.py": TRAIN,
        f"{folder}/__init__.py": "from .models import build\n",
        f"{folder}/models.py": HELPER,
    }
    found = values(project(tmp_path, files, script="scripts/train.py"))
    assert (found.get("model"), found.get("weights_dtype")) == (("m", "bf16") if folder == "kit/kit" else (None, None))


WRAPPER = """
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing
from transformers.models.llama.modeling_llama import LlamaDecoderLayer
def recompute(model):
    apply_activation_checkpointing(model, check_fn=lambda module: isinstance(module, LlamaDecoderLayer))
"""
LOOP = """
import torch
from transformers import AutoModelForCausalLM
from copied import Other
from kit import recompute
model = AutoModelForCausalLM.from_pretrained("m")
layer = Other()
recompute(model)
optimizer = torch.optim.AdamW(model.parameters())
for batch in loader:
    model(**batch).loss.backward()
    optimizer.step()
"""
COPY = "class Other:\n    @classmethod\n    def from_pretrained(cls, name): ...\n" + "# a line\n" * 27_500


def test_a_copy_of_modelling_code_leaves_room_for_the_small_module_that_has_layers_recomputed(tmp_path: Path) -> None:
    files = {"train.py": LOOP, "copied.py": COPY, "kit.py": WRAPPER + "# from_pretrained\n" * 800}
    assert len(COPY) < MAX_CHARACTERS < len(COPY) + len(files["kit.py"])
    assert values(project(tmp_path, files))["gradient_checkpointing"] is True


def test_a_model_that_is_handed_to_a_module_which_is_not_read_may_have_its_layers_recomputed(tmp_path: Path) -> None:
    long = "\n# a line" * 1_000
    found = values(project(tmp_path, {"train.py": LOOP, "copied.py": COPY, "kit.py": WRAPPER + long}))
    assert found["gradient_checkpointing"] is UNKNOWN
    plain = "def recompute(model):\n    print(model)\n"
    assert "gradient_checkpointing" not in values(
        project(tmp_path, {"train.py": LOOP, "copied.py": COPY, "kit.py": plain + long})
    )


RECIPES = {
    "train.py": """
        import fire
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from kit.config import chosen
        from kit.data import MAKERS
        def main(**kwargs):
            model = AutoModelForCausalLM.from_pretrained("m")
            tokenizer = AutoTokenizer.from_pretrained("m")
            config = chosen(kwargs["dataset"])
            data = MAKERS[config.dataset](tokenizer)
            loader = torch.utils.data.DataLoader(data, batch_size=2)
            optimizer = torch.optim.AdamW(model.parameters())
            for batch in loader:
                model(**batch).loss.backward()
                optimizer.step()
        fire.Fire(main)
        """,
    "kit/__init__.py": "",
    "kit/datasets.py": """
        from dataclasses import dataclass
        @dataclass
        class alpaca:
            dataset: str = "alpaca_dataset"
        @dataclass
        class dolly:
            dataset: str = "dolly_dataset"
        """,
    "kit/config.py": """
        import inspect
        import kit.datasets as datasets
        def chosen(name):
            return {k: v for k, v in inspect.getmembers(datasets)}[name]
        """,
    "kit/data.py": """
        import torch
        from functools import partial
        from torch.utils.data import Dataset
        def make(tokenizer, max_words=30):
            return Instructions(tokenizer, max_words)
        class Instructions(Dataset):
            def __init__(self, tokenizer, max_words=30):
                self.rows = load()[: self.max_samples]
                self.max_words = max_words
                self.tokenizer = tokenizer
            def __getitem__(self, index):
                example = torch.tensor(self.tokenizer.encode(self.rows[index]))
                padding = self.max_words - example.shape[0]
                if padding > 0:
                    example = torch.cat((example, torch.zeros(padding)))
                elif padding < 0:
                    example = example[: self.max_words]
                return example
        MAKERS = {"alpaca_dataset": partial(make, max_words=224), "dolly_dataset": partial(make, max_words=512)}
        """,
}


@pytest.mark.parametrize(("name", "length"), [("alpaca", 224), ("dolly", 512)])
def test_the_length_that_a_data_set_of_the_projects_own_cuts_and_fills_to(
    tmp_path: Path, name: str, length: int
) -> None:
    """llama-recipes (``utils/config_utils.py``, ``ft_datasets/alpaca_dataset.py``) and what was copied from it."""
    source = project(tmp_path, RECIPES, f"--dataset {name}")
    found = values(source)
    assert (found["seq_len"], found["pads_to_length"]) == (length, True)
    assert source.settings["seq_len"].provenance.kind == "file"


@pytest.mark.parametrize(
    ("rest", "full"),
    [
        ("example += [0] * (self.max_words - len(example))", True),
        ("rest = self.max_words - len(example)\n        example = example + [0] * rest", True),
        ("example = torch.cat((example, torch.zeros(size=(self.max_words - len(example),))))", True),
        ("room = self.max_words - len(target) - 8\n        example = prompt[:room] + target", None),
        ("if len(example) > self.max_words - 2: example = prompt", None),
    ],
)
def test_only_fillers_fill_samples_up_to_the_length(tmp_path: Path, rest: str, full: bool | None) -> None:
    head, _, tail = RECIPES["kit/data.py"].partition("                padding = ")
    end = tail[tail.index("                    example = example[: self.max_words]") + 4 :].lstrip()
    lines = rest.replace("\n        ", "\n                ")
    data = f"{head}                {lines}\n                {end}"
    found = values(project(tmp_path, {**RECIPES, "kit/data.py": data}, "--dataset dolly"))
    assert (found["seq_len"], found.get("pads_to_length")) == (512, full)


def test_a_data_set_that_cuts_its_rows_and_no_sample_says_no_length(tmp_path: Path) -> None:
    uncut = RECIPES["kit/data.py"].replace("example[: self.max_words]", "example")
    assert "seq_len" not in values(project(tmp_path, {**RECIPES, "kit/data.py": uncut}, "--dataset dolly"))


def test_a_long_module_that_cuts_samples_is_read(tmp_path: Path) -> None:
    cuts = """
from torch.utils.data import Dataset
class Samples(Dataset):
    def __init__(self, data, tokenizer):
        longest = min(1024, max([len(tokenizer.encode(each)) for each in data]))
        self.rows = [tokenizer(each, truncation=True, max_length=longest, padding="max_length") for each in data]
"""
    files = {
        "kit.py": cuts + "# a line\n" * 1_000,
        "train.py": """
            from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments
            from kit import Samples
            model = AutoModelForCausalLM.from_pretrained("m")
            data = Samples(texts, AutoTokenizer.from_pretrained("m"))
            Trainer(model=model, args=TrainingArguments("out"), train_dataset=data).train()
            """,
    }
    assert values(project(tmp_path, files))["seq_len"] == 1024


NAMESPACE = """
import argparse
import json
from transformers import {cls}, AutoTokenizer, Trainer, TrainingArguments
def checked(config):
    if "max_input_length" not in config:
        config.max_input_length = 768
    if "max_output_length" not in config:
        config.max_output_length = 256
    return config
parser = argparse.ArgumentParser()
parser.add_argument("--config")
flags = parser.parse_args()
with open(flags.config) as opened:
    config = checked({made})
Trainer(model={cls}.from_pretrained("m"), args=TrainingArguments("out")).train()
"""


@pytest.mark.parametrize(
    ("made", "config", "lengths"),
    [
        ("argparse.Namespace(**json.load(opened))", "{}", (768, 256)),
        ("argparse.Namespace(**json.load(opened))", '{"max_input_length": 512}', (512, 256)),
        ("argparse.Namespace(seed=42)", "{}", (None, None)),
    ],
)
def test_a_namespace_that_a_config_file_fills(
    tmp_path: Path, made: str, config: str, lengths: tuple[int | None, int | None]
) -> None:
    files = {"train.py": NAMESPACE.format(cls="AutoModelForSeq2SeqLM", made=made), "run.json": config}
    found = values(project(tmp_path, files, "--config run.json"))
    assert (found.get("seq_len"), found.get("decoder_seq_len")) == lengths


IN_MODULE = """
import transformers
class Base(transformers.Trainer):
    def create_optimizer(self):
        for name, parameter in self.model.named_parameters():

            parameter.requires_grad = False
            if name in self.group:
                parameter.requires_grad = {switch}
        # of the group alone
class Turns(Base):
    pass
class Plain(transformers.Trainer):
    pass
"""
BY_MODULE = """
from transformers import AutoModelForCausalLM, TrainingArguments
from own import {name}
model = AutoModelForCausalLM.from_pretrained("m")
{name}(model=model, args=TrainingArguments("out")).train()
"""


@pytest.mark.parametrize("padding", ["", "# a copy of the library's loop\n" * 10_000])
@pytest.mark.parametrize(
    ("name", "switch", "known"), [("Turns", "True", UNKNOWN), ("Turns", "False", "full"), ("Plain", "True", "full")]
)
def test_turns_of_a_trainer_in_a_module_of_any_length(
    name: str, switch: str, known: object, padding: str, tmp_path: Path
) -> None:
    module = IN_MODULE.format(switch=switch) + padding
    files = {"train.py": BY_MODULE.format(name=name), "own.py": module}
    assert values(project(tmp_path, files))["method"] == known
