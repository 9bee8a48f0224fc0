"""A config of adapters counts where the run hands it on, and only there."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from lintfit.documents.model import Document, FileText
from lintfit.documents.python_reader import read_python
from lintfit.settings.model import UNKNOWN
from lintfit.sources.script.source import ScriptSource, read_script
from tests.sources.scripts import script

HEAD = """
import argparse
import logging
from dataclasses import asdict
from peft import LoraConfig, PeftModel, PeftMixedModel, get_peft_model, inject_adapter_in_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
from trl import SFTConfig, SFTTrainer, get_peft_config, ModelConfig
logger = logging.getLogger(__name__)
model = AutoModelForCausalLM.from_pretrained("a/b")
"""
TRAINED = "Trainer(model=model, args=TrainingArguments('out')).train()\n"
SWITCH = """
parser = argparse.ArgumentParser()
parser.add_argument("--use_lora", action="store_true")
args = parser.parse_args()
"""


def read(text: str, line: str | None = "", end: str = TRAINED) -> ScriptSource:
    return script(HEAD + dedent(text) + end, line)


USED = {
    "wrapped": "cfg = LoraConfig(r=4)\nmodel = get_peft_model(model, cfg)\n",
    "wrapped by its class": "cfg = LoraConfig(r=4)\nmodel = PeftModel(model, cfg)\n",
    "mixed": "cfg = LoraConfig(r=4)\nmodel = PeftMixedModel(model, cfg, 'default')\n",
    "added": "cfg = LoraConfig(r=4)\nmodel.add_adapter(cfg)\n",
    "injected": "cfg = LoraConfig(r=4)\nmodel = inject_adapter_in_model(cfg, model)\n",
    "another name": "cfg = LoraConfig(r=4)\nother = cfg\nmodel = get_peft_model(model, other)\n",
    "a factory": "def lora():\n    return LoraConfig(r=4)\nmodel = get_peft_model(model, lora())\n",
    "a helper": "def wrap(m, config):\n    return get_peft_model(m, config)\nmodel = wrap(model, LoraConfig(r=4))\n",
    "a helper by keyword": (
        "def wrap(*, m, config):\n    return get_peft_model(m, config)\nmodel = wrap(m=model, config=LoraConfig(r=4))\n"
    ),
    "a helper out of sight": "from nowhere import wrap\nmodel = wrap(model, LoraConfig(r=4))\n",
    "an object out of sight": "from nowhere import box\nbox.config = LoraConfig(r=4)\n",
    "an item of something": "kwargs = {}\nkwargs['peft_config'] = LoraConfig(r=4)\n",
    "a test": "cfg = LoraConfig(r=4)\nif cfg:\n    pass\n",
    "its fields": "from nowhere import replace\ncfg = LoraConfig(r=4)\nreplace(model, cfg.r, cfg.lora_alpha)\n",
    "a dict of it": "from nowhere import wrap\ncfg = LoraConfig(r=4)\nwrap(model, asdict(cfg))\n",
    "a default": (
        "from nowhere import wrap\ncfg = LoraConfig(r=4)\ndef go(config=cfg):\n    wrap(model, config)\ngo()\n"
    ),
    "unpacked": "cfg, rank = LoraConfig(r=4), 4\nmodel = get_peft_model(model, cfg)\n",
    "everything in sight": "cfg = LoraConfig(r=4)\nconfig = dict(locals())\n",
}
UNUSED = {
    "nothing": "cfg = LoraConfig(r=4)\n",
    "no name": "LoraConfig(r=4)\n",
    "printed": "cfg = LoraConfig(r=4)\nprint(cfg, f'{cfg}', str(cfg.r))\nlogger.info('%s', cfg)\n",
    "saved": "cfg = LoraConfig(r=4)\ncfg.save_pretrained('out')\nprint(cfg.to_dict())\n",
    "tracked": "import wandb\ncfg = LoraConfig(r=4)\nwandb.init(config={'lora': asdict(cfg)})\n",
    "written to": "cfg = LoraConfig(r=4)\ncfg.target_modules = ['q_proj']\n",
    "annotated": "cfg: LoraConfig = LoraConfig(r=4)\n",
    "a factory": "def lora():\n    cfg = LoraConfig(r=4)\n    return cfg\npeft_config = lora()\n",
    "a helper that drops it": (
        "def wrap(m, config):\n    print(config)\n    return m\nmodel = wrap(model, LoraConfig(r=4))\n"
    ),
    "the same name elsewhere": (
        "def other(cfg):\n    return get_peft_model(model, cfg)\ndef build():\n    cfg = LoraConfig(r=4)\nbuild()\n"
    ),
    "a copy": "import copy\ncfg = copy.deepcopy(LoraConfig(r=4))\n",
    "a dict that nothing takes": "cfg = LoraConfig(r=4)\nmore = {'peft_config': cfg}\n",
}


@pytest.mark.parametrize("text", USED.values(), ids=USED.keys())
def test_what_is_handed_on_makes_adapters(text: str) -> None:
    source = read(text)
    assert source.settings["method"].value == "lora"
    assert source.facts.peft_config is not None
    assert source.facts.unused_peft_config is None


@pytest.mark.parametrize("text", UNUSED.values(), ids=UNUSED.keys())
def test_what_nothing_takes_makes_none(text: str) -> None:
    source = read(text)
    assert source.settings["method"].value == "full"
    assert "lora_rank" not in source.settings
    assert source.facts.peft_config is None
    assert source.facts.unused_peft_config is not None


def test_a_class_of_the_script_keeps_it() -> None:
    text = """
    class Job:
        def __init__(self):
            self.lora = LoraConfig(r=4)
        def train(self):
            {}
            Trainer(model=model, args=TrainingArguments('out')).train()
    Job().train()
    """
    wrapped = read(text.format("get_peft_model(model, self.lora)"), end="")
    assert wrapped.settings["method"].value == "lora"
    assert read(text.format("print(self.lora)"), end="").settings["method"].value == "full"


TRL = "SFTTrainer(model='a/b', args=SFTConfig('out'){}).train()\n"


@pytest.mark.parametrize(
    ("text", "handed"),
    [
        ("cfg = LoraConfig(r=4)\n", ", peft_config=cfg"),
        ("more = {'peft_config': LoraConfig(r=4)}\n", ", **more"),
        ("more = dict(peft_config=LoraConfig(r=4))\n", ", **more"),
    ],
)
def test_a_trainer_of_trl_is_handed_it(text: str, handed: str) -> None:
    assert read(text, end=TRL.format(handed)).settings["method"].value == "lora"
    assert read(text, end=TRL.format("")).settings["method"].value == "full"


def test_trls_own_config_counts_where_it_is_handed_on() -> None:
    parsed = "(model_args,) = HfArgumentParser(ModelConfig).parse_args_into_dataclasses()\n"
    text = "from transformers import HfArgumentParser\n" + parsed + "cfg = get_peft_config(model_args)\n"
    handed = TRL.format(", peft_config=cfg")
    assert read(text, "--use_peft true", end=handed).settings["method"].value == "lora"
    assert read(text, "--use_peft true", end=TRL.format("")).settings["method"].value == "full"
    assert read(text, "--use_peft false", end=handed).settings["method"].value == "full"


def test_only_branches_that_run_count() -> None:
    wrapped = SWITCH + "cfg = LoraConfig(r=4)\nif args.use_lora:\n    model = get_peft_model(model, cfg)\n"
    assert read(wrapped, "--use_lora").settings["method"].value == "lora"
    off = read(wrapped, "--other 1")
    assert off.settings["method"].value == "full"
    assert off.facts.unused_peft_config is None

    built = SWITCH + "cfg = LoraConfig(r=4) if args.use_lora else None\n"
    handed = TRL.format(", peft_config=cfg")
    assert read(built, "--use_lora", end=handed).settings["method"].value == "lora"
    assert read(built, "--other 1", end=handed).settings["method"].value == "full"
    chosen = TRL.format(", peft_config=cfg if args.use_lora else None")
    assert read(SWITCH + "cfg = LoraConfig(r=4)\n", "--use_lora", end=chosen).settings["method"].value == "lora"
    assert read(SWITCH + "cfg = LoraConfig(r=4)\n", "--other 1", end=chosen).settings["method"].value == "full"


def test_a_branch_that_may_run_leaves_it_open() -> None:
    wrapped = (
        "from nowhere import wanted\ncfg = LoraConfig(r=4)\nif wanted():\n    model = get_peft_model(model, cfg)\n"
    )
    assert read(wrapped).settings["method"].value is UNKNOWN


def test_of_two_configs_the_one_that_is_used_decides() -> None:
    source = read("unused = LoraConfig(r=64)\ncfg = LoraConfig(r=4)\nmodel = get_peft_model(model, cfg)\n")
    assert source.settings["lora_rank"].value == 4
    assert source.facts.unused_peft_config is None


def files(texts: dict[str, str]) -> ScriptSource:
    """A script and the modules beside it."""
    documents = {name: read_python(FileText(Path(name), text)) for name, text in texts.items()}

    def open_file(path: Path) -> Document | None:
        return documents.get(path.name) if path.parent == Path() else None

    return read_script(documents["train.py"], open_file=open_file, has_launch=True)


def test_another_file_uses_it() -> None:
    lora = "from peft import LoraConfig\nlora_config = LoraConfig(r=4)\n"
    used = HEAD + "from settings import lora_config\nmodel = get_peft_model(model, lora_config)\n" + TRAINED
    assert files({"settings.py": lora, "train.py": used}).settings["method"].value == "lora"
    unused = HEAD + "import settings\n" + TRAINED
    assert files({"settings.py": lora, "train.py": unused}).settings["method"].value == "full"


def test_another_file_returns_it() -> None:
    lora = "from peft import LoraConfig\ndef lora():\n" + indent("return LoraConfig(r=4)\n", "    ")
    for imported in ("from settings import lora\ncfg = lora()\n", "import settings\ncfg = settings.lora()\n"):
        used = HEAD + imported + "model = get_peft_model(model, cfg)\n" + TRAINED
        assert files({"settings.py": lora, "train.py": used}).settings["method"].value == "lora"
        unused = HEAD + imported + TRAINED
        assert files({"settings.py": lora, "train.py": unused}).settings["method"].value == "full"


def test_saved_adapters_or_new_ones_are_adapters_either_way() -> None:
    text = """
    from nowhere import saved
    from peft import PeftModelForCausalLM
    def wrap(m, config, name):
        return PeftModelForCausalLM(m, config, name)
    at = saved()
    if at is not None:
        model = PeftModel.from_pretrained(model, at, is_trainable=True)
    else:
        model = wrap(model, LoraConfig(r=4), "own")
    """
    assert read(text).settings["method"].value == "lora"


def test_each_of_pefts_classes_loads_an_adapter() -> None:
    text = """
    from peft import PeftModelForSequenceClassification
    from trl import GRPOConfig, GRPOTrainer
    model = PeftModelForSequenceClassification.from_pretrained(model, "saved", is_trainable=True)
    GRPOTrainer(model=model, args=GRPOConfig("out", beta=0.1), reward_funcs=reward).train()
    """
    found = read(text).settings
    assert (found["method"].value, found["reference_model"].value) == ("lora", False)


def test_a_head_put_on_a_model_loads_nothing() -> None:
    text = """
    import torch
    from trl import AutoModelForCausalLMWithValueHead
    model = AutoModelForCausalLM.from_pretrained("a/b", torch_dtype=torch.float16)
    model = AutoModelForCausalLMWithValueHead.from_pretrained(get_peft_model(model, LoraConfig(r=4)))
    """
    found = read(text).settings
    assert (found["model"].value, found["weights_dtype"].value, found["method"].value) == ("a/b", "fp16", "lora")


HANDBOOK = """
from alignment import is_adapter_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("{model}")
if is_adapter_model("{model}", "main"):
    model = model.float()
Trainer(model=model, args=TrainingArguments("out")).train()
"""


@pytest.mark.parametrize(
    ("model", "whole"),
    [
        ("alignment-handbook/zephyr-7b-sft-full", True),
        ("alignment-handbook/mistral-7b-sft-lora", False),
        ("me/Mistral-7B-v0.1", False),
    ],
)
def test_adapters_may_be_named_like_their_model(model: str, whole: bool) -> None:
    (upcast,) = script(HANDBOOK.format(model=model), "").facts.upcasts
    assert upcast.call.taken is (False if whole else None)
