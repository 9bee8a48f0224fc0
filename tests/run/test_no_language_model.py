"""Scripts that train no language model: it is said so, instead of asking which one it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.commands.check import check
from lintfit.options.model import Options

STEP = """
engine, _, _, _ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config={"train_batch_size": 8})
for x, y in loader:
    loss = torch.nn.functional.cross_entropy(engine(x), y)
    engine.backward(loss)
    engine.step()
"""
OWN = """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.{}(3, 6, 5)
net = Net()
"""
GPU = Options(gpu="A100 80GB", origins={"gpu": "--gpu"})


def unknown(folder: Path, monkeypatch: pytest.MonkeyPatch, made: str, options: Options = GPU) -> tuple[str, ...]:
    monkeypatch.chdir(folder)
    (folder / "train.py").write_text(f"import torch, deepspeed\n{made}{STEP}")
    (folder / "run.sh").write_text("deepspeed --num_gpus 2 train.py\n")
    (result,) = check([Path()], options).runs
    return result.run.unknown


@pytest.mark.parametrize(
    ("made", "named"),
    [
        ("import torchvision\nnet = torchvision.models.resnet50()\n", "torchvision.models.resnet50"),
        ("import timm\nnet = timm.create_model('vit_base_patch16_224')\n", "timm.create_model"),
        ("from detectron2.modeling import build_model\nnet = build_model(cfg)\n", "detectron2.modeling.build_model"),
        (OWN.format("Conv2d"), "torch.nn.Conv2d"),
        (
            "from diffusers import UNet2DConditionModel\nnet = UNet2DConditionModel.from_pretrained('a/b')\n",
            "diffusers.UNet2DConditionModel.from_pretrained",
        ),
    ],
)
def test_what_it_trains_is_said(made: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (why,) = unknown(tmp_path, monkeypatch, made)
    assert why.startswith("a language model, which train.py does not train")
    assert named in why


@pytest.mark.parametrize(
    "made",
    [
        OWN.format("Linear"),
        OWN.format("Conv1d").replace("net = Net()", "self = torch.nn.TransformerEncoderLayer(64, 4)\nnet = Net()"),
        "import timm, transformers\ntower = timm.create_model('a')\n"
        "net = transformers.AutoModelForCausalLM.from_config(config)\n",
    ],
)
def test_what_may_be_a_language_model_is_asked_for(made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    why = unknown(tmp_path, monkeypatch, made)
    assert not any("does not train" in each for each in why)


def test_whoever_names_a_model_is_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    origins = {"gpu": "--gpu", "model": "--model"}
    named = Options(gpu="A100 80GB", model="gpt2", origins=origins)
    assert unknown(tmp_path, monkeypatch, OWN.format("Conv2d"), named) == ()
