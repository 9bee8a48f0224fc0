"""TRL's PPOTrainer in scripts: the models beside the policy, and arguments that it does not heed."""

from __future__ import annotations

import pytest

from lintfit.settings.model import UNKNOWN
from tests.sources.scripts import script, values

SCRIPT = """\
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, HfArgumentParser
from trl import PPOConfig, PPOTrainer

(args,) = HfArgumentParser(PPOConfig).parse_args_into_dataclasses()
value = AutoModelForSequenceClassification.from_pretrained(args.reward_model_path, num_labels=1)
reward = AutoModelForSequenceClassification.from_pretrained(args.reward_model_path, num_labels=1)
policy = AutoModelForCausalLM.from_pretrained(args.sft_model_path)
trainer = PPOTrainer(args=args, model=policy, ref_model=None, reward_model=reward, value_model=value)
trainer.train()
"""
LINE = "--sft_model_path a/b --reward_model_path c/d --response_length 100 --num_mini_batches 2 --bf16"


def test_models_and_rollouts() -> None:
    found = values(script(SCRIPT, LINE))
    assert (found["model"], found["reward_model"], found["value_model"]) == ("a/b", "c/d", "c/d")
    assert (found["trainer"], found["reference_model"]) == ("ppo", True)
    assert (found["response_length"], found["rollout_batch_size"], found["mini_batches"]) == (100, 64, 2)


def test_the_arguments_turn_no_checkpointing_on() -> None:
    found = script(SCRIPT, f"{LINE} --gradient_checkpointing")
    assert values(found)["gradient_checkpointing"] is False
    on = SCRIPT.replace("trainer = ", "policy.gradient_checkpointing_enable()\ntrainer = ")
    assert values(script(on, LINE))["gradient_checkpointing"] is True


def test_its_accelerator_hears_of_the_precision_through_transformers_4_only() -> None:
    assert values(script(SCRIPT, LINE, versions={"transformers": "5.0.0"})).get("bf16") is None
    assert values(script(SCRIPT, LINE, versions={"transformers": "4.57.0"}))["bf16"] is True
    assert values(script(SCRIPT, f"{LINE} --deepspeed ds.json"))["bf16"] is True


def test_a_reward_model_out_of_sight() -> None:
    text = SCRIPT.replace("reward_model=reward", "reward_model=make_reward()")
    assert values(script(text, LINE))["reward_model"] is UNKNOWN


def test_the_older_trainer_has_no_reward_model() -> None:
    text = SCRIPT.replace(", ref_model=None, reward_model=reward, value_model=value", "")
    found = values(script(text, LINE))
    assert found["trainer"] == "ppo"
    assert "reward_model" not in found


OWN_CLASS = """\
from trl import AutoModelForCausalLMWithValueHead, PPOConfig, PPOTrainer

class Own(PPOTrainer):
    def __init__(self, config, model, ref_model, reward_model):
        super().__init__(config=config, model=model, ref_model=ref_model)
        self.reward_model = reward_model

policy = AutoModelForCausalLMWithValueHead.from_pretrained("a/b")
teacher = AutoModelForCausalLMWithValueHead.from_pretrained("a/b")
trainer = Own(config=PPOConfig(learning_rate=1e-5{more}), model=policy, ref_model=teacher, reward_model=score)
for batch in trainer.dataloader:
    trainer.step(batch)
"""


@pytest.mark.parametrize(
    ("more", "versions", "first"),
    [("", {"trl": "0.7.1"}, True), (', log_with="wandb"', {}, True), ("", {"trl": "0.15.0"}, False)],
)
def test_a_reward_model_that_a_class_of_the_script_takes_is_none_of_the_older_trainer(
    more: str, versions: dict[str, str], first: bool
) -> None:
    found = values(script(OWN_CLASS.replace("{more}", more), versions=versions))
    assert found["trainer"] == "ppo"
    assert ("reward_model" not in found) is first


def test_the_second_trainer_beside_the_older_one_has_a_reward_model() -> None:
    text = SCRIPT.replace("PPOConfig", "PPOv2Config").replace("PPOTrainer", "PPOv2Trainer")
    assert values(script(text, LINE, versions={"trl": "0.9.6"}))["reward_model"] == "c/d"


def test_a_field_that_cuts_prompts_is_not_the_length_of_prompts_with_answers() -> None:
    text = """
    import argparse
    from transformers import AutoTokenizer
    from trl import AutoModelForCausalLMWithValueHead, PPOConfig, PPOTrainer
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_length", type=int, default=512)
    args = parser.parse_args()
    config = PPOConfig(model_name="a/b", mini_batch_size=1, ppo_epochs=2)
    model = AutoModelForCausalLMWithValueHead.from_pretrained(config.model_name)
    data = load("d").filter(lambda row: len(row["input_ids"]) < args.max_length)
    trainer = PPOTrainer(config, model, dataset=data)
    for batch in trainer.dataloader:
        trainer.step(batch, batch, batch)
    """
    assert "seq_len" not in values(script(text, ""))
