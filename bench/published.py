"""What the published rows say of a run beside their spec, in the words of a spec; the range held against what they
measured.

python -m bench.published ../shared/data/published.dev.jsonl [--told]

Prints how many rows lie above the high end and below the low end, and how wide the range is (of the likely peak), for
the specs as published or, with ``--told``, with what is said of them besides. A figure in "G" may be GB or GiB: both
readings must lie outside. What torch counts alone is below what a GPU shows, and says nothing of the low end.

The specs in ``published.dev.jsonl`` hold what every estimator may be asked. What else decides the memory stands in a
row's other fields (``framework``, ``loss_impl``, ``other``) or in the files of the commit that ``source`` names:

* fms-acceleration 876e2ed: ``bnb_4bit_use_double_quant=True`` (``framework_plugin_bnb.py``), ``lora_dropout: 0.1``
  (``scripts/benchmarks/scenarios*.yaml``), TheBloke's 70B and Mixtral GPTQ checkpoints have one group a column, and
  the norms of ``baseline-peft-bnb`` are cast to fp32 by TRL on a single GPU;
* Qwen 2df8e8a: ``lora_dropout`` 0.05 (``finetune.py``); with torch 2.0, as its table was measured, its README wants
  auto-gptq before 0.5;
* LitGPT pins bitsandbytes 0.42.0 (``pyproject.toml`` of the configs' table); its resource tables name 0.41.1.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.spec import GIB, Spec

FOAK = {"fast RMSNorm": "rms_norm", "RoPE": "rope", "fast cross-entropy": "cross_entropy", "fused LoRA": "lora"}
"""The kernels of fms-acceleration as a row's ``other`` names them, by the spec's names."""


def as_told(row: Mapping[str, Any]) -> Spec:
    """The spec of a row with everything that is said of its run."""
    stated = dict(row["spec"])
    framework = row.get("framework", "")
    if row["id"].startswith("fms-"):
        return _fms(row, stated)
    if "-QLoRA-" in row["id"] and row["id"].startswith("qwen-"):
        stated["lora_dropout"] = 0.05
        stated["versions"] = {**stated.get("versions", {}), "auto-gptq": "0.4.2"}
    if framework.startswith("litgpt"):
        tables = "resource-tables" in row["source"] or "-res-" in row["id"]
        stated["front_end"] = "litgpt"
        stated["versions"] = {**stated.get("versions", {}), "bitsandbytes": "0.41.1" if tables else "0.42.0"}
    return spec_from_mapping(stated)


def _fms(row: Mapping[str, Any], stated: dict[str, Any]) -> Spec:
    other = row["other"]
    stated["fused_kernels"] = [name for words, name in FOAK.items() if words in other]
    if stated.get("quantization") == "nf4":
        stated["quantization"] = "nf4-double"
        cast = "framework_config=baseline-peft-bnb" in other and stated["engine"] == "single"
        stated["kbit_upcast"] = "norms" if cast else "none"
    if stated["method"] == "lora":
        stated["lora_dropout"] = 0.1
    spec = spec_from_mapping(stated)
    if "GPTQ" in row["model"] and ("70B" in row["model"] or "Mixtral" in row["model"]):
        config = {**spec.facts.config, "quantization_config": {"group_size": -1}}
        spec = replace(spec, facts=replace(spec.facts, config=config))
    return spec


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--told", action="store_true", help="with what the rows say beside their specs")
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.file.read_text(encoding="utf-8").splitlines()]
    above, below, widths = [], [], []
    for row in rows:
        found = estimate(as_told(row) if given.told else spec_from_mapping(row["spec"])).peak
        least, most = row["peak_gib_lo"] * GIB, row.get("nvidia_smi_gib", row["peak_gib_hi"]) * GIB
        tensors_alone = "nvidia_smi_gib" not in row and any(word in row["measure_kind"] for word in ("alloc", "active"))
        widths.append((found.high - found.low) / found.likely)
        above += [(least / found.high - 1, row["id"])] if least > found.high else []
        below += [(most / found.low - 1, row["id"])] if most < found.low and not tensors_alone else []
    for where, rows_out in (("above the high end", above), ("below the low end", below)):
        print(f"{len(rows_out)} of {len(rows)} rows {where}")
        for share, name in sorted(rows_out, key=lambda found: -abs(found[0])):
            print(f"  {share:+7.1%}  {name}")
    deciles = statistics.quantiles(widths, n=10)
    print(f"width of the range: median {statistics.median(widths):.1%}, 90th percentile {deciles[8]:.1%}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
