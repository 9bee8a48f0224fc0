"""What a front end's recipe looks like: which keys stand at its top, told by the text alone.

Nothing is parsed here: a search of a folder meets many files, most of them none of lintfit's business.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache

from lintfit.documents.model import Kind
from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import frozen, word_set
from lintfit.sources.recipes.front_ends import READERS, FrontEnd

LONGEST = 60_000
"""Characters of a file that may be a recipe; what is longer is data."""

NOT_YET = "which is not read yet"
NOT_NAMED = "and no launch line or script that was read names it"


@frozen
class Keys:
    """The keys of a file: those at its top, and all of them at whatever depth."""

    top: frozenset[str]
    all: frozenset[str]


@frozen
class Form:
    """A kind of recipe by its top-level keys: all of ``needs``, one of ``one_of`` where there are any, and as many of
    ``some`` as ``count``.

    ``front_end`` is who trains from it, None where that is not one that lintfit knows or where a script reads it.
    """

    what: str
    needs: frozenset[str]
    some: frozenset[str]
    count: int = 1
    one_of: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    why: str = NOT_YET
    front_end: FrontEnd | None = None

    def matches(self, keys: Keys) -> bool:
        if not self.needs <= keys.top or self.never & keys.top or (self.one_of and not self.one_of & keys.top):
            return False
        return len(self.some & keys.top) >= self.count


TRAINER = word_set("""
    bf16 dataset_mixer dataset_mixture dataset_name do_train eval_strategy evaluation_strategy fp16
    gradient_accumulation_steps gradient_checkpointing gradient_checkpointing_kwargs learning_rate logging_steps
    lr_scheduler_type max_length max_prompt_length max_seq_length max_steps num_train_epochs optim output_dir
    per_device_eval_batch_size per_device_train_batch_size save_strategy warmup_ratio warmup_steps
    """)
"""Keys of transformers' TrainingArguments and of TRL's, as recipes write them at their top."""

FORMS: tuple[Form, ...] = (
    Form(
        "a LLaMA-Factory recipe",
        frozenset({"model_name_or_path"}),
        word_set("cutoff_len dataset_dir finetuning_type lora_target pure_bf16 quantization_bit stage template"),
        one_of=word_set("dataset do_train output_dir"),  # without these it is one to talk to
        never=word_set("export_dir infer_backend do_predict do_eval n_shot tokenized_path trainer megatron"),
        front_end="llamafactory",
    ),
    Form(
        "a LLaMA-Factory recipe",
        word_set("model train_dataset"),
        word_set("dist_config init_config kernel_config peft_config quant_config template"),
        front_end="llamafactory",
    ),
    Form(
        "an AutoTrain recipe",
        word_set("base_model task"),
        word_set("backend data hub log params project_name"),
        2,
        front_end="autotrain",
    ),
    Form(
        "an axolotl recipe",
        frozenset({"base_model"}),
        word_set("""adapter datasets dataset_prepared_path gradient_accumulation_steps lora_r micro_batch_size
               num_epochs pretraining_dataset rl sample_packing sequence_len val_set_size"""),
        2,
        never=word_set("merge_method slices"),
        front_end="axolotl",
    ),
    Form(
        "an ms-swift recipe",
        frozenset({"model"}),
        word_set("rlhf_type sft_type train_type tuner_type tuner_backend ENV"),
        front_end="swift",
    ),
    Form(
        "an ms-swift recipe",
        word_set("model dataset"),
        word_set("""attn_impl dataset_num_proc freeze_vit load_from_cache_file lora_rank model_author model_name
               per_device_train_batch_size split_dataset_ratio target_modules torch_dtype truncation_strategy"""),
        3,
        front_end="swift",
    ),
    Form(
        "a LitGPT recipe",
        frozenset({"train"}),
        word_set("devices eval lora_alpha lora_dropout lora_query lora_r num_nodes precision quantize tokenizer_dir"),
        2,
        one_of=word_set("checkpoint_dir model_config model_name"),
        why=NOT_NAMED,
        front_end="litgpt",
    ),
    Form("a verl config", frozenset({"actor_rollout_ref"}), word_set("algorithm critic data hydra trainer")),
    Form("a verl config", word_set("data model trainer optim"), word_set("use_remove_padding")),
    Form("a NeMo recipe", frozenset({"exp_manager"}), word_set("trainer model")),
    Form("a NeMo-RL recipe", word_set("policy cluster"), word_set("grpo sft dpo rm distillation checkpointing")),
    Form(
        "an LLM Foundry recipe",
        frozenset({"max_duration"}),
        word_set("train_loader model optimizer max_seq_len fsdp_config"),
        2,
    ),
    Form("a nanotron recipe", word_set("parallelism tokens"), word_set("model optimizer general")),
    Form("a Ludwig recipe", word_set("input_features output_features"), word_set("base_model model_type trainer")),
    Form("an Oumi recipe", word_set("model data training"), frozenset({"training"})),
    Form(
        "an alignment-handbook or open-r1 recipe",
        frozenset({"model_name_or_path"}),
        word_set("dataset_configs dataset_mixer dataset_mixture"),
        why=NOT_NAMED,
        front_end="trl",
    ),
    Form(
        "a TRL recipe",
        word_set("dataset_name model_name_or_path"),
        TRAINER,
        3,
        never=word_set("export_dir infer_backend do_predict"),
        front_end="trl",
    ),
    Form(
        "arguments of a training script (transformers, TRL)",
        frozenset({"model_name_or_path"}),
        TRAINER,
        2,
        never=word_set("export_dir infer_backend do_predict"),
        why=NOT_NAMED,
    ),
    Form(
        "arguments of a training script (transformers, TRL)",
        frozenset(),
        TRAINER - {"learning_rate"},
        4,
        why=NOT_NAMED,
    ),
    Form(
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

TORCHTUNE = Form("a torchtune recipe", frozenset(), word_set("optimizer epochs"), front_end="torchtune")
"""Told by the components that it names, too."""
_COMPONENT = lazy_pattern(r"_component_:\s*[\"']?torchtune\.")

SAVED = word_set("""
    _name_or_path added_tokens architectures auto_map best_metric bos_token compilerOptions dependencies
    devDependencies global_step log_history lora_alpha model_type peft_type tokenizer_class total_flos train_runtime
    transformers_version
    """)
"""Keys of JSON files that a training leaves behind, and of other programs'."""

RATE = word_set("lr learning_rate max_lr base_lr peak_lr")
AMOUNT = word_set("""
    batch_size batch_size_per_device epochs global_batch_size gradient_accumulation_steps mbs max_epochs max_steps
    max_train_steps micro_batch_size num_epochs num_train_epochs per_device_batch_size per_device_train_batch_size
    total_epochs total_steps total_training_steps train_batch_size train_iters train_steps
    """)
MODEL = word_set("""
    base_model checkpoint hf_model llm model model_id model_name model_name_or_path model_path pretrained
    pretrained_model pretrained_model_name_or_path
    """)
LANGUAGE = word_set("""
    activation_checkpointing block_size context_length cutoff_len deepspeed fsdp gradient_checkpointing load_in_4bit
    lora lora_alpha lora_r lora_rank max_length max_seq_len max_seq_length peft qlora seq_len seq_length sequence_len
    sequence_length tensor_model_parallel_size tensor_parallel_size tokenizer tokenizer_name tokenizer_path zero_stage
    """)

ANYWHERE = RATE | AMOUNT | MODEL | LANGUAGE | TRAINER
"""One of these stands in every recipe."""

_TOP_KEY = lazy_pattern(r"^[\"']?([A-Za-z_][\w.-]*)[\"']?[ \t]*:", re.MULTILINE)
_ANY_KEY = lazy_pattern(r"^[ \t]*(?:- +)?[\"']?([A-Za-z_][\w.-]*)[\"']?[ \t]*:", re.MULTILINE)
_JSON_KEY = lazy_pattern(r"\"([A-Za-z_][\w.-]*)\"\s*:")
_JSON_STARTS = ("{", "//", "/*", "#")
_MANY = 40
"""Keys of a JSON file none of which is a recipe's: more of them are data."""


@lru_cache(maxsize=1024)
def front_end_of(text: str, kind: Kind) -> FrontEnd | None:
    """The front end whose recipe a YAML or JSON text looks like, where lintfit reads its recipes.

    Every launch asks it of all its files, which many share.
    """
    keys = keys_of(text, kind)
    form = form_of(text, keys) if keys is not None else None
    return form.front_end if form is not None and form.front_end in READERS else None


def form_of(text: str, keys: Keys) -> Form | None:
    """The kind of recipe that a text is; None where it is none that is known."""
    if _COMPONENT.search(text):
        return TORCHTUNE if TORCHTUNE.matches(keys) else None
    return next((form for form in FORMS if form.matches(keys)), None)


def keys_of(text: str, kind: Kind) -> Keys | None:
    """The keys of a YAML or JSON text; None where it is data, or what a training leaves behind."""
    if len(text) > LONGEST:
        return None
    if kind is not Kind.JSON and not text.startswith("{"):
        return Keys(frozenset(_TOP_KEY.findall(text)), frozenset(_ANY_KEY.findall(text)))
    keys = _json_keys(text)
    return None if keys is None or keys.top & SAVED else keys


def _json_keys(text: str) -> Keys | None:
    """The keys of a JSON object; of one that no parser takes, all that look like keys."""
    if not text.lstrip("\ufeff \t\r\n").startswith(_JSON_STARTS):
        return None
    every = frozenset(_JSON_KEY.findall(text))
    if not every & ANYWHERE and len(every) > _MANY:
        return None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return Keys(every, every)
    return Keys(frozenset(content), every) if isinstance(content, Mapping) else None
