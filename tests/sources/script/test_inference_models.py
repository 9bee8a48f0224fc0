"""Models that a script loads onto the GPU beside the trained one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sources.scripts import script

LOOP = """
import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

student = AutoModelForCausalLM.from_pretrained("some/student").cuda()
{teacher}
optimizer = torch.optim.AdamW(student.parameters())
for batch in loader:
    loss = student(**batch).loss
    loss.backward()
    optimizer.step()
{after}
"""
TRAINER = """
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification
from trl import {name}

model = AutoModelForCausalLM.from_pretrained("some/policy")
other = AutoModelForSequenceClassification.from_pretrained("some/scorer", torch_dtype="bfloat16")
{name}(model=model, {handed}).train()
"""
LOADED = 'AutoModelForCausalLM.from_pretrained("some/teacher"'


def of_loop(teacher: str, after: str = "") -> Any:
    found = script(LOOP.format(teacher=teacher, after=after)).settings.get("frozen_models")
    return found.value if found is not None else None


def entry(**more: Any) -> dict[str, Any]:
    return {"model": "some/teacher", "scores": False, **more}


@pytest.mark.parametrize(
    ("teacher", "becomes"),
    [
        (f'teacher = {LOADED}).to("cuda")', entry()),
        (f"teacher = {LOADED}, torch_dtype=torch.bfloat16)\nteacher.cuda()", entry(weights_dtype="bf16")),
        (f"teacher = {LOADED}).half().cuda()", entry(weights_dtype="fp16")),
        (f'teacher = {LOADED}, device_map="auto")', entry()),
        (f'teacher = {LOADED}, device_map="auto", load_in_8bit=True)', entry(quantization="int8")),
        (f'teacher = {LOADED}, device_map={{"": 0}}, load_in_4bit=True)', entry(quantization="nf4-double")),
        (f"device = 'cuda' if torch.cuda.is_available() else 'cpu'\nteacher = {LOADED}).to(device)", entry()),
        (
            'judge = AutoModelForSequenceClassification.from_pretrained("some/judge").cuda()',
            {"model": "some/judge", "scores": True},
        ),
        (f"teacher = {LOADED})\nteacher.to('cuda:0')", entry()),
        ("teacher = AutoModelForCausalLM.from_pretrained(names[0]).cuda()", {"model": None, "scores": False}),
    ],
)
def test_a_model_on_the_card_beside_the_trained_one(teacher: str, becomes: dict[str, Any]) -> None:
    assert of_loop(teacher) == [becomes]


@pytest.mark.parametrize(
    ("teacher", "after"),
    [
        ("", ""),
        (f"teacher = {LOADED})", ""),  # stays on the host
        (f'teacher = {LOADED}, device_map="cpu")', ""),
        (f'teacher = {LOADED}).to("cuda:1")', ""),  # the student is on the first
        (f'teacher = {LOADED}, device_map={{"": 1}})', ""),
        (f"teacher = {LOADED}).cuda()\ndel teacher", ""),
        ("", f"teacher = {LOADED}).cuda()"),  # only once the training is over
        (f"if False:\n    teacher = {LOADED}).cuda()", ""),
        (f"if unknown:\n    student = {LOADED}).cuda()", ""),  # the trained one by another name
        ("student = torch.compile(student)", ""),
    ],
)
def test_quiet_where_none_is_there(teacher: str, after: str) -> None:
    assert of_loop(teacher, after) is None


@pytest.mark.parametrize(
    ("name", "handed", "becomes"),
    [
        ("GRPOTrainer", "reward_funcs='some/reward'", [{"model": "some/reward", "scores": True}]),
        (
            "GRPOTrainer",
            "reward_funcs=[len, 'some/reward', other]",
            [
                {"model": "some/reward", "scores": True},
                {"model": "some/scorer", "scores": True, "weights_dtype": "bf16"},
            ],
        ),
        ("GRPOTrainer", "reward_funcs=len", None),
        ("GKDTrainer", "teacher_model='some/teacher'", [entry()]),
        ("DPOTrainer", "ref_model=other", None),
        ("PPOTrainer", "reward_model=other, value_model=other", None),
        ("SFTTrainer", "args=None", None),
    ],
)
def test_what_a_trainer_is_handed(name: str, handed: str, becomes: Any) -> None:
    found = script(TRAINER.format(name=name, handed=handed)).settings.get("frozen_models")
    assert (found.value if found is not None else None) == becomes


@pytest.mark.parametrize(
    ("reference", "becomes"),
    [
        ("import copy\nreference = copy.deepcopy(student)", [{"model": "some/student", "scores": False}]),
        (
            "from trl import create_reference_model\nreference = create_reference_model(student)",
            [{"model": "some/student", "scores": False}],
        ),
        ("import copy\nreference = copy.deepcopy(student)\ndel reference", None),
        ("import copy\nreference = copy.deepcopy(settings)", None),
        ("import copy\nreference = copy.deepcopy(student)\nreference.to('cuda:1')", None),
        ("import copy\nreference = copy.deepcopy(student)\nreference.to(torch.device('cuda:1'))", None),
        (
            "import copy\nreference = copy.deepcopy(student)\nreference.to('cuda:0')",
            [{"model": "some/student", "scores": False}],
        ),
    ],
)
def test_a_copy_of_the_trained_model(reference: str, becomes: Any) -> None:
    assert of_loop(reference) == becomes


def test_a_copy_that_the_trainer_takes_for_its_reference() -> None:
    handed = TRAINER.format(name="DPOTrainer", handed="ref_model=reference")
    source = script(handed.replace("other =", "reference = create_reference_model(model.cuda())\nother ="))
    assert "frozen_models" not in source.settings


def test_an_engine_of_vllm_in_the_same_process() -> None:
    settings = script(LOOP.format(teacher='from vllm import LLM\nengine = LLM("some/student")', after="")).settings
    assert settings["uncounted"].value == "the vLLM engine that the script starts on the same GPU"


def test_a_reference_by_position_is_counted_as_one() -> None:
    source = script(TRAINER.format(name="DPOTrainer", handed="args=None").replace("model=model,", "model, other,"))
    assert "frozen_models" not in source.settings


@pytest.mark.parametrize(
    ("own", "other", "reference", "beside"),
    [
        ("load_in_4bit=True", "", False, True),
        ("load_in_4bit=True", "load_in_4bit=True", True, False),
        ("", "", True, False),
        ("", "load_in_4bit=True", True, False),
    ],
)
def test_a_reference_that_is_loaded_whole_beside_four_bits(own: str, other: str, reference: bool, beside: bool) -> None:
    """It is no copy of the base: it takes what it was loaded in."""
    settings = script(
        f"""
        from peft import LoraConfig
        from transformers import AutoModelForCausalLM
        from trl import DPOConfig, DPOTrainer

        model = AutoModelForCausalLM.from_pretrained("some/student", {own})
        other = AutoModelForCausalLM.from_pretrained("some/student", {other})
        DPOTrainer(model, other, args=DPOConfig("out"), peft_config=LoraConfig()).train()
        """
    ).settings
    assert settings["reference_model"].value is reference
    assert ("frozen_models" in settings) is beside


def test_a_model_in_a_module_of_the_script_is_a_part_of_what_is_trained() -> None:
    source = script(
        """
        import torch
        from transformers import AutoModelForCausalLM

        class Both(torch.nn.Module):
            def __init__(self, student, teacher):
                super().__init__()
                self.student, self.teacher = student, teacher

        teacher = AutoModelForCausalLM.from_pretrained("some/teacher").cuda()
        both = Both(AutoModelForCausalLM.from_pretrained("some/student").cuda(), teacher)
        optimizer = torch.optim.AdamW(both.parameters())
        both(batch).backward()
        """
    )
    assert "frozen_models" not in source.settings


@pytest.mark.parametrize(("base", "beside"), [("some/student", False), ("some/teacher", True)])
def test_the_trained_model_s_base_loaded_anew_to_try_it_out_is_not_there_while_it_trains(
    base: str, beside: bool
) -> None:
    source = script(
        f"""
        import torch
        from peft import PeftModel
        from torchkeras import KerasModel
        from transformers import AutoModel

        class Step:
            def __call__(self, batch):
                loss = self.net(**batch).loss
                loss.backward()

        model = AutoModel.from_pretrained("some/student").half().cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        KerasModel.StepRunner = Step
        KerasModel(model, optimizer=optimizer).fit(data)
        old = AutoModel.from_pretrained("{base}")
        merged = PeftModel.from_pretrained(old, "trained").cuda().merge_and_unload()
        """
    )
    assert ("frozen_models" in source.settings) is beside


ACCELERATED = """
import torch
from accelerate import Accelerator
from transformers import AutoModelForCausalLM

accelerator = Accelerator()
student = AutoModelForCausalLM.from_pretrained("some/student")
teacher = AutoModelForCausalLM.from_pretrained("some/teacher")
optimizer = torch.optim.AdamW(student.parameters())
student, optimizer = accelerator.prepare(student, optimizer)
{teacher}
for batch in loader:
    accelerator.backward(student(**batch).loss)
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("teacher", "becomes"),
    [
        ("teacher = accelerator.prepare(teacher)", entry(prepared=True)),
        ("teacher = accelerator.prepare_model(teacher, evaluation_mode=True)", entry()),
        ("teacher = accelerator.prepare(teacher.cuda())", entry()),
        ("teacher.to(accelerator.device)", entry()),
    ],
)
def test_a_model_that_accelerate_prepares_like_the_trained_one(teacher: str, becomes: dict[str, Any]) -> None:
    settings = script(ACCELERATED.format(teacher=teacher)).settings
    assert settings["frozen_models"].value == [becomes]
    assert "uncounted" not in settings


def test_a_model_of_which_an_optimizer_gets_the_parameters_is_not_only_asked() -> None:
    """Two networks that play against each other, a critic beside its policy."""
    second = "second = torch.optim.AdamW(teacher.parameters())\nteacher, second = accelerator.prepare(teacher, second)"
    settings = script(ACCELERATED.format(teacher=second)).settings
    assert "frozen_models" not in settings
    assert settings["uncounted"].value == "another model, which an optimizer trains as well"
