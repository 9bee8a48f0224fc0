"""Models and optimizers of ``bench.fake_tensors``: transformers', PEFT's and torch's own, on the fake device."""

from __future__ import annotations

import fnmatch
from typing import Any

import torch

from bench import fake_gptq

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


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
    dtype = DTYPES[spec["weights_dtype"]]
    sees = bool(spec.get("images")) or type(config) not in AutoModelForCausalLM._model_mapping
    loader: Any = AutoModelForImageTextToText if sees else AutoModelForCausalLM
    if type(config) in AutoModelForSeq2SeqLM._model_mapping and not spec.get("images"):
        loader = AutoModelForSeq2SeqLM
    if _masks_words(spec) and type(config) in AutoModelForMaskedLM._model_mapping:
        loader = AutoModelForMaskedLM
    _name_tokens(config, _masks_words(spec))
    if spec.get("trainer") in ("reward", "classification"):
        loader, config.num_labels, config.pad_token_id = AutoModelForSequenceClassification, 1, 0
    with torch.device("meta"):
        model = loader.from_config(config, dtype=dtype, attn_implementation=spec["attention"])
        _as_loaded(model, dtype)
        if spec.get("trainer") in ("dpo", "grpo", "kto"):
            from bench import fake_trl

            fake_trl.prepare(model, spec)
        for pattern in spec.get("frozen_modules", ()):
            for parameter in named(model, pattern.removeprefix("!")):
                parameter.requires_grad_(pattern.startswith("!"))
        layers = fake_gptq.adapters_for(fake_gptq.quantise(model, spec, dtype)) if fake_gptq.quantised(spec) else {}
        if spec["method"] == "lora":
            model = adapted(model, spec, layers)
    materialise(model, mode)
    model.train()
    if spec["gradient_checkpointing"]:
        model.gradient_checkpointing_enable({"use_reentrant": spec["use_reentrant"]})
    if spec["method"] == "lora" and (spec["gradient_checkpointing"] or spec.get("quantization")):
        model.enable_input_require_grads()  # over a quantised base ``prepare_model_for_kbit_training`` asks for it
    return model


def _masks_words(spec: dict[str, Any]) -> bool:
    """Whether an encoder learns to fill in words, which is no key of lintfit's specs."""
    return bool(spec.get("masked_words"))


def _name_tokens(config: Any, masked: bool) -> None:
    """Tokens that a class takes for granted: padding that is one of few words, and where an answer begins."""
    padding = getattr(config, "pad_token_id", None)
    if (padding or 0) >= getattr(config, "vocab_size", 2**31) or (masked and padding is None):
        config.pad_token_id = 0
    if masked and getattr(config, "mask_token_id", 1) is None:
        config.mask_token_id = 1
    if getattr(config, "is_encoder_decoder", False) and getattr(config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = 0


CAST = frozenset({"zamba"})
"""Model types with a parameter that is fp32 until it is loaded, whatever their dtype (``torch.log`` of a range)."""


def _as_loaded(model: Any, dtype: Any) -> None:
    """Cast such a parameter as loading does."""
    for parameter in model.parameters() if model.config.model_type in CAST else ():
        parameter.data = parameter.data.to(dtype)


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


def adapted(model: Any, spec: dict[str, Any], layers: dict[Any, Any]) -> Any:
    """The model with PEFT's adapters as the spec has them; ``layers``: PEFT's for classes that it does not know."""
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
    if layers:
        config._register_custom_module(layers)
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
