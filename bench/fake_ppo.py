"""TRL's own PPO loop over fake tensors, for ``bench.fake_tensors``. Needs TRL 0.26 to 1.12.

``PPOTrainer.train`` itself runs two updates of one epoch on a trainer that has only the attributes which it reads:
rollout by transformers' ``generate``, reference, value and reward model, and the micro-batches with their statistics.
Stands in for what fake tensors cannot do: no sequence ends before ``response_length``, and numbers read out of tensors
are 0.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch

from bench.fake_trl import _Values


def _scorer(spec: dict[str, Any], mode: Any, log: Any) -> Any:
    """The value or the reward model: the policy's backbone again, with one score a token."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    from bench.fake_models import materialise

    settings = dict(spec["model_config"])
    config = AutoConfig.for_model(settings.pop("model_type"), **settings)
    config.num_labels = 1
    dtype = torch.float32 if spec["weights_dtype"] == "fp32" else torch.bfloat16
    with torch.device("meta"):
        made = AutoModelForSequenceClassification.from_config(
            config, dtype=dtype, attn_implementation=spec["attention"]
        )
    materialise(made, mode)
    for tensor in (*made.parameters(), *made.buffers()):
        log.see(tensor)
    return made


def train(policy: Any, reference: Any, spec: dict[str, Any], mode: Any, log: Any) -> tuple[Any, Any]:
    """Two updates of ``PPOTrainer.train``: policy and value model as one module, and its optimizer."""
    from accelerate.utils import convert_outputs_to_fp32
    from trl.experimental.ppo import ppo_trainer

    from bench.fake_models import make_optimizer

    value, reward = _scorer(spec, mode, log), _scorer(spec, mode, log).eval()
    value.train()
    for model in (policy, reference, reward, value):
        if model is not None:
            ppo_trainer.disable_dropout_in_model(model)
    model = ppo_trainer.PolicyAndValueWrapper(policy, value)
    optimizer = make_optimizer(model, spec)
    if spec["mixed_precision"] != "no":
        inner = model.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                return inner(*args, **kwargs)

        model.forward = convert_outputs_to_fp32(forward)
    batch, steps, length = spec["micro_batch_size"], spec.get("gradient_accumulation_steps", 1), spec["generation"]
    new = length["completion_len"]
    mini = length.get("mini_batches", 1)
    trainer = ppo_trainer.PPOTrainer.__new__(ppo_trainer.PPOTrainer)
    accelerator = _Accelerator(log, optimizer, steps)
    arguments = types.SimpleNamespace(
        response_length=new, temperature=0.7, num_ppo_epochs=1, num_mini_batches=mini, num_total_batches=2,
        gradient_accumulation_steps=steps, total_episodes=4, logging_steps=None, eval_steps=None, save_steps=None,
        batch_size=batch * steps, local_batch_size=batch * steps, local_mini_batch_size=batch * steps // mini,
        per_device_train_batch_size=batch, ds3_gather_for_generation=True, missing_eos_penalty=None, kl_estimator="k1",
        local_rollout_forward_batch_size=length.get("rollout_batch_size", 64), kl_coef=0.05, whiten_rewards=False,
        gamma=1.0, lam=0.95, cliprange=0.2, cliprange_value=0.2, vf_coef=0.1, num_sample_generations=0,
    )  # fmt: skip
    tokens = torch.empty(batch * steps, spec["seq_len"] - new, dtype=torch.long, device="cuda:0")
    trainer.__dict__.update(
        args=arguments, accelerator=accelerator, optimizer=accelerator.stepped, model=model, ref_model=reference,
        reward_model=reward, dataloader=[{"input_ids": tokens}], stop_token_id=None, train_dataset_len=4,
        processing_class=types.SimpleNamespace(pad_token_id=0, eos_token_id=1), is_deepspeed_enabled=False,
        is_peft_model=reference is None, ref_adapter_name=None, model_adapter_name=None,
        state=types.SimpleNamespace(), control=types.SimpleNamespace(should_save=False),
        callback_handler=types.SimpleNamespace(on_train_begin=_nothing, on_step_end=_nothing, on_train_end=_nothing),
        lr_scheduler=types.SimpleNamespace(get_last_lr=lambda: [0.0], step=_nothing), log=_nothing,
    )  # fmt: skip
    with _phases(ppo_trainer, model, log), _Values(0):
        trainer.train()
    return model, optimizer


def _nothing(*args: Any, **kwargs: Any) -> Any:
    return types.SimpleNamespace(should_save=False)


class _Accelerator:
    """One process, stepping its optimizer after every ``steps`` micro-batches, as Accelerate's does."""

    def __init__(self, log: Any, optimizer: Any, steps: int) -> None:
        self.device = torch.device("cuda:0")
        self.log = log
        self.steps = steps
        self.done = 0
        self.updates = 0
        self.optimizer = optimizer
        self.stepped = types.SimpleNamespace(step=self._step, zero_grad=self._zero_grad)

    def print(self, *args: Any) -> None: ...

    def gather_for_metrics(self, tensor: Any) -> Any:
        return tensor

    def unwrap_model(self, model: Any) -> Any:
        return model

    @contextlib.contextmanager
    def accumulate(self, model: Any) -> Iterator[None]:
        self.done += 1
        self.log.phase = self._named("forward")
        yield

    def _named(self, phase: str) -> str:
        return phase if self.updates else f"first {phase}"

    def backward(self, loss: Any) -> None:
        self.log.phase = self._named("backward")
        (loss / self.steps).backward()

    def _step(self) -> None:
        if self.done % self.steps:
            return
        self.log.phase = self._named("step")
        self.optimizer.step()

    def _zero_grad(self) -> None:
        if self.done % self.steps:
            return
        self.optimizer.zero_grad()
        self.updates += 1
        self.log.phase = "statistics"


@contextlib.contextmanager
def _phases(module: Any, model: Any, log: Any) -> Iterator[None]:
    """Generation and scoring named in the log; every sequence is generated to its full length."""
    generation = module.batch_generation

    def batch_generation(*args: Any) -> Any:
        log.phase = "generate"
        found = generation(*args)
        log.phase = "rollout"
        return found

    patches = (
        mock.patch.object(module, "batch_generation", batch_generation),
        mock.patch.object(module, "unwrap_model_for_generation", lambda *a, **k: contextlib.nullcontext(model)),
        mock.patch.object(module, "masked_whiten", lambda values, mask, **kwargs: values.clone()),
    )
    with contextlib.ExitStack() as stack:
        stack.enter_context(to_the_end())
        for patch in patches:
            stack.enter_context(patch)
        yield


@contextlib.contextmanager
def to_the_end() -> Iterator[None]:
    """No answer of ``generate`` ends before the length that is asked for."""
    from transformers import GenerationMixin

    sample = GenerationMixin._sample

    def bounded(self: Any, input_ids: Any, *args: Any, **kwargs: Any) -> Any:
        steps = kwargs["generation_config"].max_length - input_ids.shape[1]
        asked = iter([True] * steps + [False])
        with mock.patch.object(GenerationMixin, "_has_unfinished_sequences", lambda *a, **k: next(asked)):
            return sample(self, input_ids, *args, **kwargs)

    with mock.patch.object(GenerationMixin, "_sample", bounded):
        yield
