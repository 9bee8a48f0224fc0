"""The keys and flags that LitGPT's commands do not take, in jsonargparse's words.

The parameters of each command's ``setup`` (``litgpt/finetune/*.py``, ``litgpt/pretrain.py``) and the fields of
``litgpt/args.py``, those of all versions from 0.3.1 to 0.5.13 together; jsonargparse 4.41, which 0.5.13 asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lintfit.frozen import word_set
from lintfit.settings.model import Place
from lintfit.sources.flag_grammars.model import Refused, given_by
from lintfit.sources.flag_grammars.options import Refusal
from lintfit.suggest import nearest

if TYPE_CHECKING:
    from lintfit.documents.model import DataDocument, Entry
    from lintfit.sources.launchers.launch import Launch

_ALL = word_set("access_token data devices eval log logger_name num_nodes optimizer out_dir precision seed train")
_TUNES = _ALL | word_set("checkpoint_dir quantize resume")
_LORA = _TUNES | word_set(
    "lora_alpha lora_dropout lora_head lora_key lora_mlp lora_projection lora_query lora_r lora_value"
)
_FULL = _TUNES - {"quantize"}
_KEYS: Mapping[str, frozenset[str]] = {
    "finetune": _LORA,
    "finetune_lora": _LORA,
    "finetune_full": _FULL,
    "finetune_adapter": _TUNES,
    "finetune_adapter_v2": _TUNES,
    "pretrain": _ALL | word_set("initial_checkpoint_dir model_config model_name resume tokenizer_dir"),
}
_NESTED: Mapping[str, frozenset[str]] = {
    "train": word_set("""
        epochs global_batch_size log_interval lr_warmup_fraction lr_warmup_steps max_norm max_seq_length max_steps
        max_time max_tokens micro_batch_size min_lr save_interval tie_embeddings
        beta1 beta2 learning_rate weight_decay
        """),
    "eval": word_set("evaluate_example final_validation initial_validation interval max_iters max_new_tokens"),
    "log": word_set("checkpoint_name log_model metadata project run save_logs teamspace"),
}
"""``TrainArgs``, ``EvalArgs`` and ``LogArgs``; ``train`` had the optimizer's own numbers up to 0.3.1."""
_OWN = word_set("config h help print_config")
_ALSO: Mapping[str, str] = {"lora_rank": "lora_r", "r": "lora_r", "max_seq_len": "train.max_seq_length"}
"""What other front ends call a key."""


def refused(launch: Launch, config: DataDocument | None) -> Iterator[Refused]:
    """What stops the command before it has begun."""
    action = launch.action or ""
    known = _KEYS.get(action)
    if known is None:
        return
    if config is not None and config.root is not None:
        for entry in config.root.entries:
            yield from _of_key(config, entry, entry.key, known, action)
            nested = _NESTED.get(entry.key)
            for inner in entry.value.entries if nested is not None and entry.key in known else ():
                assert nested is not None
                yield from _of_key(config, inner, f"{entry.key}.{inner.key}", _dotted(entry.key, nested), action)
    for option in launch.invocation.arguments if not launch.assumed else ():
        given = given_by(option)
        if given is None or _takes(option.name, known):
            continue
        words = (given.name, *(option.values[:1] if option.values[:1] != (None,) else ()))
        error = f"Unrecognized arguments: {' '.join(str(word) for word in words)}"
        meant = _meant(option.name, known)
        refusal = Refusal(error, f"--{meant}" if meant is not None else None)
        yield Refused(Place(launch.document, option.flag.at), given.name, "jsonargparse", refusal)


def _of_key(config: DataDocument, entry: Entry, name: str, known: frozenset[str], action: str) -> Iterator[Refused]:
    if name in known:
        return
    error = f"Validation failed: Subcommand '{action}' does not accept nested key '{name}'"
    refusal = Refusal(error, _meant(name, known))
    yield Refused(Place(config, entry.key_span), name, f"litgpt {action}", refusal, key=True)


def _dotted(section: str, names: frozenset[str]) -> frozenset[str]:
    return frozenset(f"{section}.{name}" for name in names)


def _takes(name: str, known: frozenset[str]) -> bool:
    """Whether a flag is one of the command's, or the beginning of one, which argparse takes for it."""
    section, dot, _ = name.partition(".")
    if dot and section in known and section not in _NESTED:
        return True  # of a class that the value of data or optimizer names
    every = known | _OWN | frozenset[str]().union(*(_dotted(each, names) for each, names in _NESTED.items()))
    return any(each.startswith(name) for each in every)


def _meant(name: str, known: frozenset[str]) -> str | None:
    """The key that was probably meant: near to it, of the same name in a section, or what others call so."""
    last = name.rpartition(".")[2]
    elsewhere = next((f"{section}.{last}" for section, names in _NESTED.items() if last in names), None)
    also = _ALSO.get(last)
    told = also if also in known or (also or "").partition(".")[0] in _NESTED else None
    return nearest(name, known) or told or (elsewhere if elsewhere != name else None)
