"""Random combinations under fake tensors: catalogue models of few layers, precision × adapters × checkpointing × …

    python -m bench.combinations --seed 1 --count 160      # record into bench/results/combinations.jsonl (bench extra)
    python -m bench.combinations --seed 7 --count 60 --invented        # models that nobody has made (bench/invented.py)
    python -m bench.combinations --seed 1 --count 160 --neighbours     # every family, oddly used (bench/neighbours.py)
    python -m bench.combinations --copied                  # modules that PEFT trains whole beside adapters
    python -m bench.combinations --layers --seed 1         # every family where its layers decide (bench/layers.py)
    python -m bench.combinations --compare                 # against lintfit, no torch

Torch's own count as in ``bench.fake_tensors``, of 3 to 8 layers at their real width. Seeds 1 and 3 draw from all model
types, the usual ones more often; seed 2 (``--usual``) from these alone. What a seed draws depends on the catalogue's
rows as well. What is recorded already is not run again.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from bench import invented, layers, neighbours  # noqa: E402
from bench.fake_cases import GC, PRECISIONS, REENTRANT  # noqa: E402
from lintfit.catalog.attention import has_sdpa  # noqa: E402
from lintfit.catalog.config import CatalogError  # noqa: E402
from lintfit.catalog.models import (  # noqa: E402
    code_of,
    config_of,
    ids,
)
from lintfit.memory.versions import NEWEST_TRANSFORMERS  # noqa: E402

RESULTS = ROOT / "bench" / "results" / "combinations.jsonl"
VERSIONS = {"transformers": "5.23.0"}
NEVER = {"batch_size": 0}
"""No evaluation between the steps: none was counted."""

USUAL = ["llama", "qwen2", "mistral", "gemma", "qwen3", "gemma2", "gpt2", "opt", "gpt_neox", "phi3", "mixtral"]
OTHERS = [
    "falcon", "bloom", "mpt", "gpt_bigcode", "starcoder2", "stablelm", "phi", "cohere", "cohere2", "granite", "olmo",
    "olmo2", "olmo3", "olmoe", "glm", "glm4", "smollm3", "seed_oss", "ernie4_5", "exaone4", "nemotron", "gptj",
    "codegen", "gemma3_text", "qwen2_moe", "qwen3_moe", "deepseek_v2", "deepseek_v3", "phimoe", "granitemoe",
    "glm4_moe", "internlm3",
]  # fmt: skip
PADDED = frozenset({"phi3", "phimoe", "gpt_oss", "glm", "glm4", "smollm3", "flex_olmo", "olmo_hybrid"})
DEPTHS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
LEFT_OUT = frozenset(
    {"architectures", "torch_dtype", "dtype", "quantization_config", "auto_map", "transformers_version"}
    | {"_name_or_path", "pad_token_id", "bos_token_id", "eos_token_id"}
)
FUSED = {
    "gpt2": "c_attn", "gpt_bigcode": "c_attn", "gpt_neox": "query_key_value", "falcon": "query_key_value",
    "bloom": "query_key_value", "mpt": "Wqkv", "codegen": "qkv_proj", "phi3": "qkv_proj",
}  # fmt: skip

MAMBA = frozenset({"falcon_mamba", "mamba", "mamba2"})
"""Model types without attention, on whose other projections PEFT refuses adapters, or the model passes them by."""


def models() -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """The catalogue's models by model type, without those whose code lives beside their weights."""
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for model in ids():
        try:
            config, _ = config_of(model)
        except CatalogError:
            continue
        if not config.get("auto_map"):
            found.setdefault(config["model_type"], []).append((model, config))
    return found


def small(config: dict[str, Any], layers: int, vocab: int | None) -> dict[str, Any]:
    """The text model's config with few layers, and as many words."""
    found = {key: value for key, value in dict(config.get("text_config") or config).items() if key not in LEFT_OUT}
    found.update({key: min(found[key], layers) for key in DEPTHS if key in found})
    if isinstance(found.get("layer_types"), list):
        found["layer_types"] = found["layer_types"][:layers]
    if vocab and "vocab_size" in found:
        found["vocab_size"] = vocab
    if found["model_type"] in PADDED:
        found["pad_token_id"] = 0
    return found


def targets(kind: str, drawn: str) -> str | list[str]:
    """Adapted modules in a model type's own words."""
    if drawn == "all-linear":
        return drawn
    if kind in FUSED:
        return [FUSED[kind]]
    if kind in MAMBA:
        return ["in_proj", "x_proj"]
    if kind.startswith("deepseek"):
        return ["kv_b_proj", "o_proj"]
    out = {"opt": "out_proj", "gptj": "out_proj", "phi": "dense"}.get(kind, "o_proj")
    return ["q_proj", "v_proj"] if drawn == "qv" else ["q_proj", "k_proj", "v_proj", out]


def draw(seed: int, count: int, usual: bool) -> Iterator[dict[str, Any]]:
    """``count`` cases: their names and lintfit's specs of them."""
    rng = random.Random(seed)
    by_kind = models()
    pool = USUAL if usual else USUAL * 3 + OTHERS
    for index in range(count):
        kind = rng.choice(pool)
        model, config = rng.choice(by_kind[kind])
        layers, vocab = rng.choice([3, 5, 8]), rng.choice([8192, 32000, None])
        precision, batch, seq = rng.choice(list(PRECISIONS)), rng.choice([1, 2, 3, 4, 8]), rng.choice([512, 1024, 2048])
        eager = not has_sdpa(code_of(kind), NEWEST_TRANSFORMERS) or rng.random() < 0.15
        optimizer = rng.choice(["adamw_torch_fused", "adamw_torch", "sgd"])
        more: dict[str, Any] = dict(rng.choice([{"gradient_checkpointing": False}] * 2 + [GC, REENTRANT]))
        if rng.random() < 0.45:
            drawn = rng.choice(["all-linear", "all-linear", "attn", "qv"])
            rank, dropout = rng.choice([8, 16, 64]), rng.choice([0.0, 0.05])
            more |= {"method": "lora", "lora_rank": rank, "lora_dropout": dropout}
            more["lora_targets"] = targets(kind, drawn)
        if rng.random() < 0.2:
            more["gradient_accumulation_steps"] = 2
        spec = {
            "model_config": small(config, layers, vocab),
            "gpu_memory_gib": 1000,
            **PRECISIONS[precision],
            "method": "full",
            "optimizer": optimizer,
            "micro_batch_size": min(batch, 4) if eager else batch,
            "seq_len": seq,
            "attention": "eager" if eager else "sdpa",
            **more,
        }
        yield {"name": f"{seed}.{index} {model}, {layers} layers", "spec": spec}


def recorded() -> list[dict[str, Any]]:
    """What is recorded: name, spec, bytes."""
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.is_file() else []


def record(cases: Iterable[dict[str, Any]]) -> int:
    from bench.fake_tensors import run

    done = {case["name"] for case in recorded()}
    for case in cases:
        if case["name"] in done:
            continue
        try:
            counted = run(case)["allocated_bytes"]
        except Exception as error:  # a combination that this torch or model refuses
            print(f"{case['name']}: {type(error).__name__}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        with RESULTS.open("a") as file:
            file.write(json.dumps({**case, "allocated_bytes": counted}) + "\n")
    return 0


def errors() -> list[tuple[float, str, str]]:
    """Relative error, name and model type of every recorded case, the largest errors first."""
    from lintfit.memory import estimate
    from lintfit.memory.reading.parse import spec_from_mapping

    found = []
    for case in recorded():
        spec = {**case["spec"], "versions": VERSIONS, "evaluation": NEVER}
        guess = estimate(spec_from_mapping(spec)).allocated_bytes
        found.append((guess / case["allocated_bytes"] - 1, case["name"], case["spec"]["model_config"]["model_type"]))
    return sorted(found, key=lambda item: -abs(item[0]))


def summary(found: list[tuple[float, str, str]]) -> str:
    """A Markdown table: median, 95th percentile and largest error, of all and of the usual model types."""
    lines = ["| cases | median | 95th percentile | largest |", "| --- | --: | --: | --: |"]
    for name, part in (("all", found), ("usual model types", [item for item in found if item[2] in USUAL])):
        sizes = sorted(abs(error) for error, _, _ in part)
        middle, high = statistics.median(sizes), sizes[int(0.95 * len(sizes))]
        lines.append(f"| {name}: {len(sizes)} | {middle:.4%} | {high:.3%} | {sizes[-1]:.2%} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=160)
    parser.add_argument("--usual", action="store_true", help="only the usual model types")
    parser.add_argument("--invented", action="store_true", help="models of odd widths that nobody has made")
    parser.add_argument("--neighbours", action="store_true", help="every family, oddly used")
    parser.add_argument("--copied", action="store_true", help="modules that PEFT trains whole beside adapters")
    parser.add_argument("--layers", action="store_true", help="every family where its layers decide")
    parser.add_argument("--compare", action="store_true", help="print what is recorded against lintfit")
    options = parser.parse_args()
    if not options.compare:
        if options.invented:
            return record(invented.draw(str(options.seed), options.count))
        if options.copied:
            return record(neighbours.copied(models(), small))
        if options.layers:
            return record(layers.draw(options.seed, models(), small, targets))
        if options.neighbours:
            return record(neighbours.draw(str(options.seed), options.count, models(), small))
        return record(draw(options.seed, options.count, options.usual))
    found = errors()
    print(summary(found))
    for error, name, kind in found[:12]:
        print(f"{error:+.3%} {kind}: {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
