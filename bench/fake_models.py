"""Models and optimizers of ``bench.fake_tensors``: transformers', PEFT's and torch's own, on the fake device."""

from __future__ import annotations

import fnmatch
from typing import Any

import torch


def build(spec: dict[str, Any], mode: Any) -> Any:
    """The model of a spec, with its adapters and checkpointing, ready to train."""
    from transformers import (
        AutoConfig,
        AutoModelForCausalLM,
        AutoModelForImageTextToText,
        AutoModelForMaskedLM,
        AutoModelForSeq2SeqLM,
        AutoModelForSequenceClassification,
    )

    settings = dict(spec["model_config"])
    config = AutoConfig.for_model(settings.pop("model_type"), **settings)
    # PPO's trainer does not come by where transformers' turns it off.
    config.use_cache = spec.get("use_cache", spec.get("trainer") == "ppo")
    dtype = torch.float32 if spec["weights_dtype"] == "fp32" else torch.bfloat16
    sees = bool(spec.get("images")) or type(config) not in AutoModelForCausalLM._model_mapping
    loader: Any = AutoModelForImageTextToText if sees else AutoModelForCausalLM
    if type(config) in AutoModelForSeq2SeqLM._model_mapping and not spec.get("images"):
        loader = AutoModelForSeq2SeqLM
    if _masks_words(spec) and type(config) in AutoModelForMaskedLM._model_mapping:
        loader = AutoModelForMaskedLM
    _keep_padding_among_the_words(config)
    if spec.get("trainer") in ("reward", "classification"):
        loader, config.num_labels, config.pad_token_id = AutoModelForSequenceClassification, 1, 0
    with torch.device("meta"):
        model = loader.from_config(config, dtype=dtype, attn_implementation=spec["attention"])
        if spec.get("trainer") in ("dpo", "grpo", "kto"):
            from bench import fake_trl

            fake_trl.prepare(model, spec)
        for pattern in spec.get("frozen_modules", ()):
            for parameter in named(model, pattern.removeprefix("!")):
                parameter.requires_grad_(pattern.startswith("!"))
        if spec["method"] == "lora":
            model = adapted(model, spec)
    materialise(model, mode)
    model.train()
    if spec["gradient_checkpointing"]:
        model.gradient_checkpointing_enable({"use_reentrant": spec["use_reentrant"]})
        if spec["method"] == "lora":
            model.enable_input_require_grads()
    return model


def _masks_words(spec: dict[str, Any]) -> bool:
    """Whether an encoder learns to fill in words, which is no key of lintfit's specs."""
    return bool(spec.get("masked_words"))


def _keep_padding_among_the_words(config: Any) -> None:
    """A class's own padding token is none of a model with few words."""
    if (getattr(config, "pad_token_id", None) or 0) >= getattr(config, "vocab_size", 2**31):
        config.pad_token_id = 0


def named(model: Any, pattern: str) -> list[Any]:
    """The parameters that one of ``frozen_modules`` names."""
    stem, bracket, index = pattern.partition("[")
    if bracket:
        holder = next(module for name, module in model.named_modules() if f".{name}".endswith(f".{stem}"))
        first, colon, end = index.removesuffix("]").partition(":")
        taken = slice(int(first) if first else None, int(end) if end else None) if colon else int(first)
        return list((holder[taken]).parameters())
    if "*" in pattern:
        return [parameter for name, parameter in model.named_parameters() if fnmatch.fnmatchcase(name, pattern)]
    return [parameter for name, parameter in model.named_parameters() if f".{pattern}." in f".{name}"]


def materialise(model: Any, mode: Any) -> None:
    """Fake tensors on ``cuda:0`` in the place of a model's on the meta device; shared ones stay shared."""
    made: dict[int, Any] = {}
    for module in model.modules():
        for name, value in (*module._parameters.items(), *module._buffers.items()):
            if value is None:
                continue
            if id(value) not in made:
                with mode:
                    fake = torch.empty(value.shape, dtype=value.dtype, device="cuda:0")
                is_parameter = isinstance(value, torch.nn.Parameter)
                made[id(value)] = torch.nn.Parameter(fake, value.requires_grad) if is_parameter else fake
                made[-id(value)] = value  # keeps the id taken
            (module._parameters if name in module._parameters else module._buffers)[name] = made[id(value)]


def reference(spec: dict[str, Any], mode: Any) -> Any:
    """DPO's frozen copy; with adapters the policy without them stands for it."""
    if not spec.get("reference_model") or spec["method"] == "lora":
        return None
    return build({**spec, "gradient_checkpointing": False}, mode).eval()


def adapted(model: Any, spec: dict[str, Any]) -> Any:
    """The model with PEFT's adapters as the spec has them."""
    from peft import LoraConfig, get_peft_model

    scores = spec.get("trainer") in ("reward", "classification")
    config = LoraConfig(
        task_type="SEQ_CLS" if scores else None if _masks_words(spec) else "CAUSAL_LM",
        r=spec["lora_rank"],
        target_modules=spec["lora_targets"],
        lora_dropout=spec["lora_dropout"],
        use_dora=spec.get("use_dora", False),
        modules_to_save=spec.get("lora_modules_to_save"),
    )
    model = get_peft_model(model, config, autocast_adapter_dtype=True)
    if spec.get("lora_dtype") == "bf16":  # PEFT follows the base's dtype, but not on the meta device
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.data = parameter.data.to(torch.bfloat16)
    return model


def make_optimizer(model: Any, spec: dict[str, Any]) -> Any:
    """The optimizer over the Trainer's two groups, the second for norms and biases; weight decay is 0 by default.

    ``foreach`` is what torch takes for CUDA tensors, which it does not recognise in fake ones.
    """
    trained = [(name, value) for name, value in model.named_parameters() if value.requires_grad]
    plain = [value for name, value in trained if "norm" in name or "ln_" in name or name.endswith("bias")]
    ids = {id(value) for value in plain}
    groups = [{"params": [value for _, value in trained if id(value) not in ids], "weight_decay": 0.0}]
    groups.append({"params": plain, "weight_decay": 0.0})
    groups = [group for group in groups if group["params"]]
    plain_kinds = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad, "rmsprop": torch.optim.RMSprop}
    if spec["optimizer"] in plain_kinds:
        return plain_kinds[spec["optimizer"]](groups, lr=1e-3, foreach=True)
    if spec["optimizer"] == "adafactor":
        from transformers.optimization import Adafactor

        return Adafactor(groups, lr=1e-3, scale_parameter=False, relative_step=False)
    fused = spec["optimizer"] == "adamw_torch_fused"
    return torch.optim.AdamW(groups, lr=1e-3, **({"fused": True} if fused else {"foreach": True}))
