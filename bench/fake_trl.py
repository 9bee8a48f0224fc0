"""TRL's own losses over fake tensors (DPO, KTO, ORPO, CPO, reward modelling, GRPO), for ``bench.fake_tensors``.

The loss is the method of TRL's trainer itself, called on a trainer that has only the attributes which it reads. Three
things stand in for what fake tensors cannot do: numbers read out of tensors are 0, rows picked by a mask are the first
ones, and TRL's Triton kernels, which write into tensors that are there already, do nothing.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode


class _Values(TorchFunctionMode):
    """Answers what a fake tensor cannot: its values. A mask picks ``rows`` rows, and no more than there are."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.rows = rows

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.item:
            return 0.0
        if func is torch.Tensor.__bool__:
            return True
        if func is torch.Tensor.__getitem__ and isinstance(args[1], torch.Tensor) and args[1].dtype is torch.bool:
            return args[0].flatten(0, args[1].dim() - 1)[: self.rows].clone()
        if func is torch.Tensor.masked_scatter:
            return args[0] + args[2].sum()
        if func is torch.nonzero:  # of labels that say which answers are good
            return torch.empty(-(-len(args[0]) // 2), 1, dtype=torch.long, device=args[0].device)
        return func(*args, **(kwargs or {}))


class _Kernel:
    """A Triton kernel that does nothing."""

    def __getitem__(self, grid: Any) -> Any:
        return lambda *args, **kwargs: None


class _Batch(dict[str, Any]):
    """A batch whose attention mask is all ones: there for who asks for it, but not handed to the model."""

    def __missing__(self, key: str) -> Any:
        if key != "attention_mask":
            raise KeyError(key)
        return torch.ones_like(self["input_ids"])


def _install_kernels() -> None:
    """TRL's kernels as on a machine with Triton, for the backward, too, and so for the rest of the process."""
    from trl.kernels import chunked_logprob
    from trl.trainer import utils

    named: Any = {name: types.ModuleType(name) for name in ("triton", "triton.language")}
    named["triton"].jit, named["triton"].language = lambda function: function, named["triton.language"]
    named["triton.language"].constexpr = None
    with mock.patch.dict(sys.modules, named):
        whole: Any = importlib.import_module("trl.kernels.logprob_entropy")
    whole._forward_kernel = whole._backward_kernel = _Kernel()
    whole.triton = types.SimpleNamespace(cdiv=lambda a, b: -(-a // b))
    triton: Any = utils
    triton.is_triton_available = lambda: True
    triton._fused_logprob_entropy = whole.selective_log_softmax_and_entropy
    triton._use_triton = lambda device: True
    module: Any = chunked_logprob
    module._use_triton = lambda device: True
    module._forward_kernel = module._backward_kernel = _Kernel()
    module._addmm_fp32 = lambda acc, a, b: None
    module.triton = types.SimpleNamespace(cdiv=lambda a, b: -(-a // b))


def outputs(spec: dict[str, Any]) -> tuple[str, ...]:
    """What the trainer asks the fused head for besides log-probabilities."""
    if "trainer" not in spec:
        return ("log_probs", "entropy", "is_top1")
    if spec["trainer"] == "dpo":
        return ("log_probs", "entropy", "mean_logits", "is_top1")
    return ("log_probs", "entropy", "mean_logits") if spec["trainer"] == "kto" else ("log_probs", "entropy")


def prepare(model: Any, spec: dict[str, Any]) -> None:
    """Give the model TRL's fused head, as the trainer does before anything wraps the model."""
    from trl.trainer.utils import add_fused_lm_head

    _install_kernels()
    add_fused_lm_head(model, outputs=outputs(spec))


def _accelerator() -> Any:
    return types.SimpleNamespace(
        device=torch.device("cuda:0"),
        num_processes=1,
        gather_for_metrics=lambda x: x,
        gather=lambda x: x,
        reduce=lambda x, reduction: x,
        is_main_process=False,
        sync_gradients=False,
        unwrap_model=lambda x: x,
        autocast=contextlib.nullcontext,
    )


def _trainer(cls: Any, model: Any, reference: Any, **attributes: Any) -> Any:
    trainer = cls.__new__(cls)
    metrics = {"train": defaultdict(list), "eval": defaultdict(list)}
    arguments = types.SimpleNamespace(
        gradient_checkpointing_kwargs={"use_reentrant": False},
        use_bias_correction_kl=False,
        delta=None,
        steps_per_generation=1,
        report_to=[],
    )
    common = {
        "model": model, "ref_model": reference, "accelerator": _accelerator(), "_metrics": metrics, "beta": 0.1,
        "aux_loss_enabled": False, "args": arguments, "_total_train_tokens": 0, "_tp_size": 1, "label_smoothing": 0.0,
    }  # fmt: skip
    trainer.__dict__.update({**common, **attributes})
    return trainer


def dpo(model: Any, reference: Any, ids: Any, autocast: Any) -> Any:
    """``DPOTrainer._compute_loss`` on ``ids``, chosen and rejected answers one after the other."""
    from trl import DPOTrainer

    trainer = _trainer(
        DPOTrainer, model, reference, ld_alpha=None, precompute_ref_logps=False, f_divergence_type="reverse_kl",
        loss_types=["sigmoid"], loss_weights=[1.0], use_weighting=False,
    )  # fmt: skip
    batch = _Batch(input_ids=ids, completion_mask=torch.ones_like(ids))
    # Accelerate puts autocast around each forward; its cache goes when the forward ends.
    _around(model, autocast)
    if reference is not None:
        _around(reference, autocast)
    with _Values(ids.shape[0] * (ids.shape[1] - 1)):
        return trainer._compute_loss(model, batch, return_outputs=False)


def kto(model: Any, reference: Any, ids: Any, autocast: Any) -> Any:
    """``KTOTrainer._compute_loss`` on ``ids``, with as many other pairs of prompt and answer for its KL term."""
    from trl import KTOTrainer

    trainer = _trainer(
        KTOTrainer, model, reference, precompute_ref_logps=False, calculate_KL=True, loss_type="kto",
        desirable_weight=1.0, undesirable_weight=1.0,
    )  # fmt: skip
    ones, others = torch.ones_like(ids), torch.empty_like(ids)
    batch = {
        "input_ids": ids, "attention_mask": ones, "completion_mask": ones, "KL_input_ids": others,
        "KL_attention_mask": ones, "KL_completion_mask": ones,
        "label": torch.ones(len(ids), dtype=torch.long, device=ids.device),
    }  # fmt: skip
    with contextlib.ExitStack() as stack:
        for one in (model,) if reference is None else (model, reference):
            _around(one, autocast)
            stack.enter_context(_unmasked(one))
        stack.enter_context(_Values(ids.shape[0] * (ids.shape[1] - 1)))
        return trainer._compute_loss(model, batch, return_outputs=False)


def odds(name: str, model: Any, ids: Any, autocast: Any) -> Any:
    """The loss of ``ORPOTrainer`` or ``CPOTrainer`` on ``ids``, chosen and rejected answers one after the other."""
    from trl.experimental.cpo import CPOTrainer
    from trl.experimental.orpo import ORPOTrainer

    trainer = _trainer(
        ORPOTrainer if name == "orpo" else CPOTrainer, model, None, is_encoder_decoder=False, padding_value=0,
        pad_token_id=0, alpha=0.0, cpo_alpha=1.0, loss_type="sigmoid", _peft_has_been_casted_to_bf16=False,
        _stored_metrics={"train": defaultdict(list), "eval": defaultdict(list)},
    )  # fmt: skip
    trainer.args.device = ids.device
    batch = {}
    for part, own in zip(("chosen", "rejected"), ids.chunk(2), strict=True):
        batch |= {f"{part}_input_ids": own, f"{part}_labels": own, f"{part}_attention_mask": torch.ones_like(own)}
    _install_kernels()
    _handed_on(model, autocast)
    with _Values(0), _unmasked(model):
        return trainer.compute_loss(model, batch)


def reward(model: Any, ids: Any, autocast: Any) -> Any:
    """``RewardTrainer.compute_loss`` on ``ids``, chosen and rejected answers one after the other."""
    from trl import RewardTrainer

    trainer = _trainer(RewardTrainer, model, None)
    trainer.args.center_rewards_coefficient = None
    _handed_on(model, autocast)
    with _Values(0), _unmasked(model):
        return trainer.compute_loss(model, {"input_ids": ids, "attention_mask": torch.ones_like(ids)})


def grpo(model: Any, reference: Any, ids: Any, completion: int, autocast: Any) -> Any:
    """``GRPOTrainer``'s loss on ``ids``, the last ``completion`` tokens of which are the completion."""
    from trl import GRPOTrainer

    trainer = _trainer(
        GRPOTrainer, model, reference, top_entropy_quantile=1.0, off_policy_mask_threshold=None, beta=0.0,
        importance_sampling_level="token", loss_type="dapo", epsilon_low=0.2, epsilon_high=0.2, use_vllm=False,
        _entropy_bonus_enabled=False, current_gradient_accumulation_steps=1, max_completion_length=completion,
        use_adaptive_entropy=False, num_iterations=1,
    )  # fmt: skip
    prompt = ids.shape[1] - completion
    ones = torch.ones_like(ids)
    batch = {
        "prompt_ids": ids[:, :prompt], "prompt_mask": ones[:, :prompt], "completion_ids": ids[:, prompt:],
        "completion_mask": ones[:, prompt:], "advantages": torch.ones(len(ids), device=ids.device),
        "num_items_in_batch": torch.ones((), device=ids.device),
    }  # fmt: skip
    _around(model, autocast)
    with _Values(ids.shape[0] * completion), _unmasked(model):
        return trainer._compute_loss(model, batch)


def sft(model: Any, ids: Any, autocast: Any, wanted: bool) -> tuple[Any, Any]:
    """``SFTTrainer.prediction_step`` on ``ids``: the loss, and the logits where they are ``wanted``."""
    from trl import SFTTrainer

    trainer = _trainer(
        SFTTrainer, model, None, compute_loss_func=None, label_smoother=None, router_aux_loss_coef=0.0,
        _prepare_inputs=lambda inputs: inputs, compute_loss_context_manager=contextlib.nullcontext,
    )  # fmt: skip
    trainer.args.loss_type, trainer.args.average_tokens_across_devices = "nll", False
    trainer.accelerator.parallelism_config = None
    _handed_on(model, autocast)
    with _Values(ids.shape[0] * (ids.shape[1] - 1)):
        loss, logits, _ = trainer.prediction_step(model, {"input_ids": ids, "labels": ids}, not wanted)
    return loss, logits


def _handed_on(model: Any, autocast: Any) -> None:
    """Accelerate's wrapping: autocast around the forward, and its logits in fp32 behind it."""
    if getattr(model, "_lintfit_wrapped", False):
        return
    _around(model, autocast)
    inner, half = model.forward, not isinstance(autocast(), contextlib.nullcontext)

    def forward(*args: Any, **kwargs: Any) -> Any:
        outputs = inner(*args, **kwargs)
        if half and getattr(outputs, "logits", None) is not None:
            outputs.logits = outputs.logits.float()
        return outputs

    model.forward = forward


@contextlib.contextmanager
def _unmasked(model: Any) -> Iterator[None]:
    """Batches without padding: transformers drops such a mask, which it tells by its values."""
    inner = model.forward

    def forward(*args: Any, attention_mask: Any = None, **kwargs: Any) -> Any:
        return inner(*args, **kwargs)

    with mock.patch.object(model, "forward", forward):
        yield


def _around(model: Any, autocast: Any) -> None:
    if getattr(model, "_lintfit_wrapped", False):
        return
    inner = model.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        with autocast():
            return inner(*args, **kwargs)

    model.forward = forward
    model._lintfit_wrapped = True
