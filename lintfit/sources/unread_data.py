"""What a YAML or JSON file is that no run has read, by the keys in its text: a recipe, arguments, a job, or neither.

Nothing is parsed that is not worth it: a search of a folder meets many files, most of them none of lintfit's business.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lintfit.documents.model import Kind
from lintfit.frozen import frozen, word_set
from lintfit.schema.megatron import MEGATRON

_LONGEST = 60_000
"""Characters of a file that may be a config; what is longer is data."""

NOT_YET = "which is not read yet"
NOT_NAMED = "and no launch line or script that was read names it"


@frozen
class Keys:
    """The keys of a file: those at its top, and all of them at whatever depth."""

    top: frozenset[str]
    all: frozenset[str]


@frozen
class _Form:
    """A kind of recipe by its top-level keys: all of ``needs``, and as many of ``some`` as ``count``."""

    what: str
    needs: frozenset[str]
    some: frozenset[str]
    count: int = 1
    never: frozenset[str] = frozenset()
    why: str = NOT_YET

    def matches(self, keys: Keys) -> bool:
        return self.needs <= keys.top and len(self.some & keys.top) >= self.count and not self.never & keys.top


_TRAINER = word_set("""
    bf16 dataset_mixer dataset_mixture dataset_name do_train eval_strategy evaluation_strategy fp16
    gradient_accumulation_steps gradient_checkpointing gradient_checkpointing_kwargs learning_rate logging_steps
    lr_scheduler_type max_length max_prompt_length max_seq_length max_steps num_train_epochs optim output_dir
    per_device_eval_batch_size per_device_train_batch_size save_strategy warmup_ratio warmup_steps
    """)
"""Keys of transformers' TrainingArguments and of TRL's, as recipes write them at their top."""

_FORMS: tuple[_Form, ...] = (
    _Form(
        "a LLaMA-Factory recipe",
        frozenset({"model_name_or_path"}),
        word_set(
            "cutoff_len dataset dataset_dir finetuning_type lora_target pure_bf16 quantization_bit stage template"
        ),
        2,
        never=word_set("export_dir infer_backend do_predict do_eval"),
    ),
    _Form(
        "a LLaMA-Factory recipe",
        word_set("model train_dataset"),
        word_set("dist_config init_config kernel_config peft_config quant_config template"),
    ),
    _Form(
        "an AutoTrain recipe",
        word_set("base_model task"),
        word_set("backend data hub log params project_name"),
        2,
    ),
    _Form(
        "an axolotl recipe",
        frozenset({"base_model"}),
        word_set("""adapter datasets dataset_prepared_path gradient_accumulation_steps lora_r micro_batch_size
               num_epochs pretraining_dataset rl sample_packing sequence_len val_set_size"""),
        2,
        never=word_set("merge_method slices"),
    ),
    _Form(
        "an ms-swift recipe",
        frozenset({"model"}),
        word_set("rlhf_type sft_type train_type tuner_type tuner_backend ENV"),
    ),
    _Form(
        "a LitGPT recipe",
        frozenset({"train"}),
        word_set("checkpoint_dir devices eval lora_r model_config model_name precision tokenizer_dir"),
        3,
        why=NOT_NAMED,
    ),
    _Form("a verl config", frozenset({"actor_rollout_ref"}), word_set("algorithm critic data hydra trainer")),
    _Form("a verl config", word_set("data model trainer optim"), word_set("use_remove_padding")),
    _Form("a NeMo recipe", frozenset({"exp_manager"}), word_set("trainer model")),
    _Form("a NeMo-RL recipe", word_set("policy cluster"), word_set("grpo sft dpo rm distillation checkpointing")),
    _Form(
        "an LLM Foundry recipe",
        frozenset({"max_duration"}),
        word_set("train_loader model optimizer max_seq_len fsdp_config"),
        2,
    ),
    _Form("a nanotron recipe", word_set("parallelism tokens"), word_set("model optimizer general")),
    _Form("a Ludwig recipe", word_set("input_features output_features"), word_set("base_model model_type trainer")),
    _Form("an Oumi recipe", word_set("model data training"), frozenset({"training"})),
    _Form(
        "an alignment-handbook or open-r1 recipe",
        frozenset({"model_name_or_path"}),
        word_set("dataset_configs dataset_mixer dataset_mixture"),
        why=NOT_NAMED,
    ),
    _Form(
        "arguments of a training script (transformers, TRL)",
        frozenset({"model_name_or_path"}),
        _TRAINER,
        2,
        never=word_set("export_dir infer_backend do_predict"),
        why=NOT_NAMED,
    ),
    _Form(
        "arguments of a training script (transformers, TRL)",
        frozenset(),
        _TRAINER - {"learning_rate"},
        4,
        why=NOT_NAMED,
    ),
    _Form(
        "an FSDP config of the Trainer",
        frozenset(),
        word_set("""activation_checkpointing auto_wrap_policy backward_prefetch cpu_ram_efficient_loading
               forward_prefetch fsdp_transformer_layer_cls_to_wrap limit_all_gathers min_num_params
               reshard_after_forward sync_module_states transformer_layer_cls_to_wrap use_orig_params"""),
        2,
        why=NOT_NAMED,
    ),
)
"""The more particular first."""

_MEGATRON_KEYS = 2
"""From this many of their own keys on a file is a config of GPT-NeoX or Megatron; hyphens count as underscores."""

_TORCHTUNE = re.compile(r"_component_:\s*[\"']?torchtune\.")
_SAVED = word_set("""
    _name_or_path added_tokens architectures auto_map best_metric bos_token compilerOptions dependencies
    devDependencies global_step log_history lora_alpha model_type peft_type tokenizer_class total_flos train_runtime
    transformers_version
    """)
"""Keys of JSON files that a training leaves behind, and of other programs'."""

_RATE = word_set("lr learning_rate max_lr base_lr peak_lr")
_AMOUNT = word_set("""
    batch_size batch_size_per_device epochs global_batch_size gradient_accumulation_steps mbs max_epochs max_steps
    max_train_steps micro_batch_size num_epochs num_train_epochs per_device_batch_size per_device_train_batch_size
    total_epochs total_steps total_training_steps train_batch_size train_iters train_steps
    """)
_MODEL = word_set("""
    base_model checkpoint hf_model llm model model_id model_name model_name_or_path model_path pretrained
    pretrained_model pretrained_model_name_or_path
    """)
_LANGUAGE = word_set("""
    activation_checkpointing block_size context_length cutoff_len deepspeed fsdp gradient_checkpointing load_in_4bit
    lora lora_alpha lora_r lora_rank max_length max_seq_len max_seq_length peft qlora seq_len seq_length sequence_len
    sequence_length tensor_model_parallel_size tensor_parallel_size tokenizer tokenizer_name tokenizer_path zero_stage
    """)

_LAUNCHES = re.compile(
    r"\b(?:torchrun|accelerate[ -]launch|llamafactory-cli train|axolotl train|swift (?:sft|pt|rlhf)|tune run"
    r"|torch\.distributed\.(?:run|launch)|deepspeed +(?:-|\S+\.py))"
)
_TOP_KEY = re.compile(r"^[\"']?([A-Za-z_][\w.-]*)[\"']?[ \t]*:", re.MULTILINE)
_ANY_KEY = re.compile(r"^[ \t]*(?:- +)?[\"']?([A-Za-z_][\w.-]*)[\"']?[ \t]*:", re.MULTILINE)
_JSON_KEY = re.compile(r"\"([A-Za-z_][\w.-]*)\"\s*:")


def unread_data(text: str, kind: Kind) -> str | None:
    """What a YAML or JSON file looks like, with why it is not understood; None where it looks like no part of a run."""
    if len(text) > _LONGEST:
        return None
    written_as_json = kind is Kind.JSON or text.startswith("{")
    keys = _json_keys(text) if written_as_json else _yaml_keys(text)
    if keys is None or (written_as_json and keys.top & _SAVED):
        return None
    return _front_end(text, keys) or _job(text, keys) or _own(keys)


def _front_end(text: str, keys: Keys) -> str | None:
    if _TORCHTUNE.search(text):
        trains = bool({"optimizer", "epochs"} & keys.top)
        return f"a torchtune recipe, {NOT_YET}" if trains else None
    form = next((form for form in _FORMS if form.matches(keys)), None)
    if form is not None:
        return f"{form.what}, {form.why}"
    plain = {key.replace("-", "_") for key in keys.top}
    return f"a GPT-NeoX or Megatron config, {NOT_YET}" if len(plain & MEGATRON) >= _MEGATRON_KEYS else None


def _job(text: str, keys: Keys) -> str | None:
    """A job of a cluster whose command trains; what a CI or docker-compose runs is none."""
    if _LAUNCHES.search(text) is None:
        return None
    if {"apiVersion", "kind"} <= keys.top:
        return f"a Kubernetes job that launches a training, {NOT_YET}"
    runs, where = {"command", "entrypoint", "run"} & keys.top, {"cluster", "compute", "resources"} & keys.top
    return f"a job file that launches a training, {NOT_YET}" if runs and where else None


def _own(keys: Keys) -> str | None:
    """A recipe by what every recipe says: a learning rate, how much is trained on, and which language model."""
    whole = all(keys.all & group for group in (_RATE, _AMOUNT, _MODEL, _LANGUAGE))
    return f"a recipe of an unknown front end, {NOT_NAMED}" if whole else None


def _yaml_keys(text: str) -> Keys:
    return Keys(frozenset(_TOP_KEY.findall(text)), frozenset(_ANY_KEY.findall(text)))


def _json_keys(text: str) -> Keys | None:
    """The keys of a JSON object; of one that no parser takes, all that look like keys."""
    if not text.lstrip("\ufeff \t\r\n").startswith(("{", "//", "/*", "#")):
        return None
    every = frozenset(_JSON_KEY.findall(text))
    if not every & (_RATE | _AMOUNT | _MODEL | _LANGUAGE | _TRAINER) and len(every) > 40:
        return None
    import json

    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return Keys(every, every)
    return Keys(frozenset(content), every) if isinstance(content, Mapping) else None
