"""Run by the interpreter that has the real libraries: a launch's script through one step of transformers' Trainer.

    python step_probe.py < {"argv": […], "cwd": …, "gpus": N, "old": whether the GPUs are older than Ampere}
    python step_probe.py --serve  # such a line for each launch (parse_probe.py)

Everything that a step does not need is small or stands in: the weights are random, of a model of the same class with
two layers of 64 channels; the tokenizer knows 512 words; the data set is a stand-in through the script's own
preparation, and the Trainer gets rows of random tokens in its place. The step is on the CPU and in one process, so that
DeepSpeed, FSDP, Liger's kernels, fused and 8-bit optimizers and fp16 are not part (parse_probe.py asks DeepSpeed for
its configuration). The rate is constant and large, so that weights move. Gradient checkpointing, bf16, adapters and the
script's own Trainer are part of it, and so is a loop with Accelerate. Last line on stdout: one JSON object
(``stepped``, ``error``, ``stage``, ``seen``: the arguments as the Trainer got them).
"""

from __future__ import annotations

import builtins
import contextlib
import io
import json
import os
import runpy
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import MagicMock

import parse_probe  # the folder of this file comes first on the path

TOKENS, LENGTH = 512, 16
SMALL = {
    "hidden_size": 64, "n_embd": 64, "d_model": 64, "intermediate_size": 128, "ffn_dim": 128, "d_ff": 128, "d_kv": 16,
    "ffn_hidden_size": 128, "num_hidden_layers": 2, "n_layer": 2, "num_layers": 2, "num_decoder_layers": 2,
    "num_attention_heads": 4, "n_head": 4, "num_heads": 4, "num_key_value_heads": 4, "head_dim": 16,
    "vocab_size": TOKENS, "word_embed_proj_dim": 64, "max_position_embeddings": 128, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 2, "num_local_experts": 2,
}  # fmt: skip
FAMILIES = (
    ("mixtral", "mixtral"), ("mistral", "mistral"), ("zephyr", "mistral"), ("qwen2.5", "qwen2"), ("qwen2", "qwen2"),
    ("qwen3", "qwen2"), ("qwen1.5", "qwen2"), ("qwen", "gpt2"), ("glm", "bloom"),
    ("phi-2", "phi"), ("phi", "phi3"), ("gemma-2", "gemma2"), ("gemma", "gemma"), ("opt", "opt"),
    ("bloom", "bloom"), ("pythia", "gpt_neox"), ("polyglot", "gpt_neox"), ("neox", "gpt_neox"), ("falcon", "falcon"),
    ("starcoder2", "starcoder2"), ("starcoder", "gpt_bigcode"), ("gpt2", "gpt2"), ("t5", "t5"),
)  # fmt: skip
"""Words of models' names and the type of their configuration; all others are read as Llama's. The first Qwen and
ChatGLM are code of their own: the type is one whose layers have the same names."""


seen_by_trainer: list[bool] = []
"""Holds something while transformers' Trainer makes the steps."""


sharded_at_load: list[bool] = []
"""Holds something once the launch's DeepSpeed makes models in shards."""


def sharded(deepspeed: Any, environment: Mapping[str, str]) -> bool:
    """Whether the DeepSpeed config of the arguments, or the one of Accelerate's launcher, makes models in shards."""
    if isinstance(deepspeed, str) and Path(deepspeed).is_file():
        deepspeed = json.loads(Path(deepspeed).read_text("utf-8"))
    if isinstance(deepspeed, dict):
        return deepspeed.get("zero_optimization", {}).get("stage") == 3
    if environment.get("ACCELERATE_USE_DEEPSPEED") != "true":
        return False
    if environment.get("ACCELERATE_DEEPSPEED_ZERO3_INIT", "").lower() != "true":
        return False
    named = environment.get("ACCELERATE_DEEPSPEED_CONFIG_FILE")
    if named and Path(named).is_file():
        return sharded(named, {})
    return environment.get("ACCELERATE_DEEPSPEED_ZERO_STAGE") == "3"


def tell_of_shards() -> None:
    """What a script that asks for ZeRO-3 hears, though the step is made without DeepSpeed."""
    import transformers.deepspeed as old
    import transformers.integrations as package
    import transformers.integrations.deepspeed as own

    real = own.is_deepspeed_zero3_enabled

    def enabled() -> bool:
        return (bool(sharded_at_load) and parse_probe.called_by_script()) or real()

    for place in (own, package, old):
        place.is_deepspeed_zero3_enabled = enabled  # type: ignore[attr-defined]


class Stepped(BaseException):
    """The Trainer has made its step."""


def small_config(kind: Any) -> Any:
    """A configuration of a class, with the small sizes that it knows."""
    known = vars(kind())
    mapped = getattr(kind, "attribute_map", {})
    words = {key: value for key, value in SMALL.items() if key in known or key in mapped}
    return kind(**words)


def config_of(name: Any) -> Any:
    """The small configuration of a model by its name: nothing is downloaded."""
    from transformers import CONFIG_MAPPING

    text = Path(str(name)).name.lower()
    family = next((family for word, family in FAMILIES if word in text), "llama")
    return small_config(CONFIG_MAPPING[family])


def small_models(old: bool) -> None:
    """Every ``from_pretrained`` of a model, a configuration or a tokenizer makes a small one."""
    import torch
    import transformers
    from transformers.models.auto import auto_factory, modeling_auto

    def made(model: Any, words: dict[str, Any]) -> Any:
        if sharded_at_load and (words.get("low_cpu_mem_usage") or words.get("device_map") is not None):
            raise ValueError(
                "DeepSpeed Zero-3 is not compatible with `low_cpu_mem_usage=True` or with passing a `device_map`."
            )  # as transformers' own from_pretrained
        if old and (words.get("attn_implementation") == "flash_attention_2" or words.get("use_flash_attention_2")):
            raise RuntimeError("FlashAttention only supports Ampere GPUs or newer.")  # as its kernel
        kind = words.get("torch_dtype", words.get("dtype"))
        kind = getattr(torch, kind, None) if isinstance(kind, str) else kind
        return model.to(kind) if kind is torch.bfloat16 else model

    def of_class(cls: Any, name: Any = None, *_: Any, config: Any = None, **words: Any) -> Any:
        kind = type(config) if isinstance(config, transformers.PretrainedConfig) else cls.config_class
        return made(cls(small_config(kind)), words)

    def of_name(cls: Any, name: Any = None, *_: Any, config: Any = None, **words: Any) -> Any:
        known = isinstance(config, transformers.PretrainedConfig)
        small = small_config(type(config)) if known else config_of(name)
        return made(cls.from_config(small), words)

    def config(cls: Any, name: Any = None, *_: Any, **words: Any) -> Any:
        found = config_of(name) if cls in (transformers.AutoConfig, transformers.PretrainedConfig) else None
        found = small_config(cls) if found is None else found
        return (found, {}) if words.get("return_unused_kwargs") else found

    transformers.PreTrainedModel.from_pretrained = classmethod(of_class)
    for each in (auto_factory._BaseAutoModelClass, *vars(modeling_auto).values()):  # each has a copy of its own
        if isinstance(each, type) and issubclass(each, auto_factory._BaseAutoModelClass):
            each.from_pretrained = classmethod(of_name)
    transformers.PretrainedConfig.from_pretrained = classmethod(config)
    transformers.AutoConfig.from_pretrained = classmethod(config)
    transformers.PreTrainedTokenizerBase.from_pretrained = classmethod(lambda *_, **__: tokenizer())
    transformers.AutoTokenizer.from_pretrained = classmethod(lambda *_, **__: tokenizer())
    images = transformers.image_processing_base.ImageProcessingMixin
    images.from_pretrained = classmethod(lambda cls, *_, **__: cls())  # type: ignore[method-assign]
    transformers.GenerationConfig.from_pretrained = classmethod(lambda *_, **__: transformers.GenerationConfig())


def tokenizer() -> Any:
    """A tokenizer of few words that has what scripts ask of one."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3} | {f"w{at}": at for at in range(4, TOKENS)}
    own = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    own.pre_tokenizer = pre_tokenizers.Whitespace()
    for name, value in (("eod_id", 2), ("im_start_id", 4), ("im_end_id", 5)):
        setattr(PreTrainedTokenizerFast, name, value)  # of Qwen's first tokenizer
    made = PreTrainedTokenizerFast(
        tokenizer_object=own, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )
    made.model_max_length = 128
    made.chat_template = "{% for each in messages %}{{ each['content'] }} {% endfor %}"
    return made


def stand_in(*_: Any, **__: Any) -> Any:
    """A data set that takes what scripts do with one: the Trainer gets other rows."""
    made = MagicMock(name="dataset")
    made.__len__.return_value = 4
    made.__iter__.side_effect = lambda: iter([row()] * 4)
    made.__contains__.return_value = True
    made.column_names = list(row())
    made.map.return_value = made.filter.return_value = made.select.return_value = made.shuffle.return_value = made
    made.remove_columns.return_value = made.rename_column.return_value = made.with_format.return_value = made
    made.__getitem__.side_effect = lambda key: row() if isinstance(key, int) else made
    return made


def row() -> dict[str, Any]:
    """One example with the fields that are usual."""
    turns = [{"from": "human", "value": "w5 w6"}, {"from": "gpt", "value": "w7 w8"}]
    messages = [{"role": "user", "content": "w5 w6"}, {"role": "assistant", "content": "w7 w8"}]
    words = dict.fromkeys(("instruction", "input", "output", "text", "prompt", "query", "response"), "w5 w6 w7")
    ids = {"input_ids": [5] * LENGTH, "attention_mask": [1] * LENGTH, "labels": [5] * LENGTH}
    pair = {"chosen": messages, "rejected": messages, "label": 0}
    return {**words, **ids, **pair, "id": "0", "conversations": turns, "messages": messages}


def small_data() -> None:
    """Data sets of the hub and of files that are not there: they are taken to be."""
    import datasets

    for name in ("load_dataset", "load_from_disk", "concatenate_datasets", "interleave_datasets"):
        setattr(datasets, name, stand_in)
    for name in ("from_list", "from_dict", "from_json", "from_csv", "from_pandas", "from_generator", "from_parquet"):
        setattr(datasets.Dataset, name, stand_in)
    datasets.Dataset.load_from_disk = datasets.DatasetDict.load_from_disk = stand_in  # type: ignore[method-assign]
    with contextlib.suppress(ImportError):
        import evaluate

        evaluate.load = lambda *_, **__: MagicMock()
    datasets.DatasetDict._check_values_type = lambda self: None
    for place, name in ((os.path, "exists"), (os.path, "isfile"), (Path, "exists"), (Path, "is_file")):
        setattr(place, name, there(getattr(place, name)))
    real, exists = builtins.open, os.path.lexists

    def opened(file: Any, mode: str = "r", *args: Any, **words: Any) -> Any:
        missing = isinstance(file, (str, os.PathLike)) and not exists(file)
        named = missing and not Path(file).suffix and any(str(file) in word for word in sys.argv[1:])
        if missing and "r" in mode and (str(file).endswith(".json") or named):
            return io.StringIO(json.dumps([row()] * 4))
        if missing and "r" in mode and str(file).endswith(".jsonl"):
            return io.StringIO((json.dumps(row()) + "\n") * 4)
        if missing and "r" in mode and str(file).endswith((".csv", ".txt")):
            words = [name for name, value in row().items() if isinstance(value, str)]
            return io.StringIO("\n".join(",".join(words) for _ in range(5)) + "\n")
        return real(file, mode, *args, **words)

    builtins.open = opened  # type: ignore[assignment]


def no_weights() -> None:
    """Saved weights that are not there leave the small model's own."""
    import torch

    real_load, real_state = torch.load, torch.nn.Module.load_state_dict

    def load(file: Any, *args: Any, **words: Any) -> Any:
        missing = isinstance(file, (str, os.PathLike)) and not os.path.lexists(file)
        return {} if missing else real_load(file, *args, **words)

    def state(self: Any, weights: Any, *args: Any, **words: Any) -> Any:
        return real_state(self, weights, *args, **words) if weights else None

    torch.load, torch.nn.Module.load_state_dict = load, state  # type: ignore[assignment,method-assign]


def there(real: Any) -> Any:
    """A question of a script for a file, which is there where it is one of data: none that a saved model has."""

    def asked(path: Any, *args: Any, **words: Any) -> Any:
        data = str(path).endswith((".json", ".jsonl", ".csv", ".parquet", ".txt"))
        data = data and not any(word in Path(path).name for word in ("config", "state", "index"))
        return real(path, *args, **words) or (data and parse_probe.called_by_script())

    return asked


def small_arguments(seen: dict[str, Any], environment: Mapping[str, str]) -> None:
    """``TrainingArguments`` of one step on the CPU, whatever the launch says of engines and of where things go."""
    import transformers

    real = transformers.TrainingArguments.__post_init__
    folder = tempfile.mkdtemp()

    def after(self: Any) -> None:
        if sharded(self.deepspeed, environment):
            sharded_at_load.append(True)
        options = self.fsdp_config if isinstance(self.fsdp_config, dict) else {}
        if options.get("activation_checkpointing") and self.gradient_checkpointing:
            raise ValueError("FSDP's activation_checkpointing and gradient_checkpointing")  # as transformers' Trainer
        for name in (*parse_probe.KEPT, "gradient_checkpointing_kwargs"):
            if isinstance(getattr(self, name, None), (*parse_probe.PLAIN[:-1], dict)):
                seen.setdefault(name, getattr(self, name))
        forced = {
            "use_cpu": True, "fp16": False, "tf32": None, "deepspeed": None, "fsdp": "", "max_steps": 1,
            "ddp_backend": None, "per_device_train_batch_size": 1, "gradient_accumulation_steps": 1,
            "optim": "adamw_torch", "report_to": [], "output_dir": folder, "save_strategy": "no",
            "evaluation_strategy": "no", "eval_strategy": "no", "load_best_model_at_end": False, "do_eval": False,
            "dataloader_num_workers": 0, "push_to_hub": False, "torch_compile": False, "fsdp_config": None,
            "group_by_length": False, "group_by_modality_length": False, "fp16_full_eval": False,
            "warmup_ratio": 0.0, "warmup_steps": 0,
            "learning_rate": 0.01, "lr_scheduler_type": "constant", "dataloader_prefetch_factor": None,
            "dataloader_persistent_workers": False, "remove_unused_columns": False, "use_liger_kernel": False,
        }  # fmt: skip
        if any(each.__name__ == "KTOConfig" for each in type(self).__mro__):
            forced["per_device_train_batch_size"] = 2  # it refuses one
        for name, value in forced.items():
            if hasattr(self, name):
                setattr(self, name, value)
        real(self)

    transformers.TrainingArguments.__post_init__ = after


def tokens(*_: Any, **__: Any) -> dict[str, Any]:
    """One batch of one sequence."""
    import torch

    ids = torch.randint(4, TOKENS - 1, (1, LENGTH))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids.clone()}


def pairs(*_: Any, **__: Any) -> dict[str, Any]:
    """One batch of one preference, by the names of trl's trainers."""
    import torch

    found: dict[str, Any] = {}
    for side in ("chosen", "rejected", "prompt"):
        each = tokens()
        found |= {f"{side}_{key}": value for key, value in each.items()}
        found |= {f"{key}_{side}": value for key, value in each.items() if key != "labels"}
    found["chosen_decoder_input_ids"] = found["rejected_decoder_input_ids"] = found["chosen_input_ids"]
    words = ["w5 w6"]
    return {**found, "prompt": words, "chosen": words, "rejected": words, "margin": torch.zeros(1)}


PREFERENCES = {"DPOTrainer", "CPOTrainer", "ORPOTrainer", "RewardTrainer", "SimPOTrainer"}
"""Trainers whose batches hold two answers, by the names of their classes and of those that they come from."""


class Rows(list[Any]):
    """What trainers ask of a data set beside its rows."""

    infinite = False
    column_names: ClassVar[list[str]] = ["input_ids"]


def small_trainer() -> None:
    """The Trainer gets rows of random tokens, and the script ends where it has made its step."""
    import torch
    import transformers

    real, train = transformers.Trainer.__init__, transformers.Trainer.train
    names = list(real.__code__.co_varnames[1 : real.__code__.co_argcount])

    def made(self: Any, *args: Any, **words: Any) -> None:
        words = dict(zip(names, args, strict=False)) | words
        rows = Rows([{"input_ids": [5] * LENGTH}] * 4)
        if "processing_class" in words and "processing_class" not in names:
            words["tokenizer"] = words.pop("processing_class")  # its name since 4.46
        batch = pairs if PREFERENCES & {each.__name__ for each in type(self).__mro__} else tokens
        real(self, **{**words, "train_dataset": rows, "eval_dataset": None, "data_collator": batch})

    def trained(self: Any, *_: Any, **__: Any) -> None:
        seen_by_trainer.append(True)
        before = {key: value.detach().clone() for key, value in self.model.named_parameters() if value.requires_grad}
        result = train(self)
        moved = any(
            not torch.equal(value, before[key]) for key, value in self.model.named_parameters() if key in before
        )
        raise Stepped(result.global_step, float(result.training_loss), len(before), moved)

    transformers.Trainer.__init__, transformers.Trainer.train = made, trained


def small_loop() -> None:
    """A loop of the script's own with Accelerate ends at its first step; its loaders give rows of random tokens."""
    import torch
    from accelerate import Accelerator
    from accelerate.optimizer import AcceleratedOptimizer
    from torch.utils.data import DataLoader

    real, step, start = DataLoader.__init__, AcceleratedOptimizer.step, Accelerator.__init__

    def loaded(self: Any, dataset: Any, *args: Any, **words: Any) -> None:
        if isinstance(dataset, MagicMock):
            return real(self, [0] * 4, batch_size=1, collate_fn=tokens)
        return real(self, dataset, *args, **words)

    def begun(self: Any, *_: Any, **words: Any) -> None:
        start(
            self,
            cpu=True,
            mixed_precision=words.get("mixed_precision") if words.get("mixed_precision") == "bf16" else None,
        )

    def stepped(self: Any, closure: Any = None) -> None:
        weights = [each for group in self.param_groups for each in group["params"] if each.requires_grad]
        if seen_by_trainer:
            return step(self, closure)
        if not self.gradient_state.sync_gradients:
            return None
        for group in self.param_groups:
            group["lr"] = 0.01
        before = [each.detach().clone() for each in weights]
        step(self, closure)
        moved = any(not torch.equal(old, new) for old, new in zip(before, weights, strict=True))
        raise Stepped(1, None, len(weights), moved)

    DataLoader.__init__, AcceleratedOptimizer.step, Accelerator.__init__ = loaded, stepped, begun  # type: ignore[assignment]


def main() -> None:
    """One launch from stdin, or as a server all of them."""
    if sys.argv[1:] == ["--serve"]:
        parse_probe.serve(answer, ("torch", "torch.distributed.run", "transformers.trainer", "datasets", "peft",
                                   "accelerate.commands.launch", "deepspeed.launcher.runner",
                                   "transformers.models.llama.modeling_llama", "trl.trainer.sft_trainer",
                                   "trl.trainer.dpo_trainer", "fire"))  # fmt: skip
    else:
        answer(json.load(sys.stdin))


def answer(asked: dict[str, Any]) -> None:
    """One launch through its step."""
    os.chdir(asked["cwd"])
    seen: dict[str, Any] = {}
    said: dict[str, Any] = {"stepped": False, "stage": "launcher"}
    os.environ.update(HF_HUB_OFFLINE="1", WANDB_DISABLED="true", WANDB_MODE="disabled", CUDA_VISIBLE_DEVICES="")
    os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    try:
        words, _ = parse_probe.taken_apart(asked["argv"])
        environment = dict(os.environ)
        for name in [each for each in os.environ if each.startswith(("ACCELERATE_", "FSDP_"))]:
            os.environ.pop(name)  # the launcher's engine is not part of the step
        os.environ["ACCELERATE_USE_CPU"] = "true"
        said["stage"] = "libraries"
        old = asked.get("old", False)
        small_models(old)
        parse_probe.pretend_cuda(old)
        for prepare in (tell_of_shards, small_data, no_weights, small_trainer, small_loop):
            prepare()
        small_arguments(seen, environment)
        parse_probe.stub_missing()
        said["stage"] = "script"
        module = words[:1] == ["-m"]
        sys.argv = list(words[1:] if module else words)
        sys.path.insert(0, str(Path.cwd()) if module else str(Path(sys.argv[0]).resolve().parent))
        if module:
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(1, str(Path.cwd()))
            runpy.run_path(sys.argv[0], run_name="__main__")
        said["error"] = "ended without a step of transformers' Trainer"
    except Stepped as step:
        count, loss, trained, moved = step.args
        said |= {"steps": count, "loss": loss, "trained": trained}
        said["stepped"] = count == 1 and loss == loss and moved  # a loss that is not a number is none
        if not moved:
            said["error"] = "no weight has moved: no gradient reaches what is trained"
    except SystemExit as error:
        said["error"] = f"exit {error.code}"
    except BaseException as error:
        import traceback

        places = traceback.extract_tb(error.__traceback__)
        own = [each for each in places if not parse_probe.of_a_library(each.filename)]
        shown = [f"{each.filename[-60:]}:{each.lineno}" for each in (*own[-1:], *places[-1:])]
        said["error"] = f"{type(error).__name__}: {error}"[:300] + f" ({', '.join(dict.fromkeys(shown))})"
    print("\n" + json.dumps({**said, "seen": seen}, default=str))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
