"""Train real, randomly initialised models on a GPU and record what they take, phase by phase.

    python -m bench.gpu.run --out bench/results/gpu.json              # on a machine with a GPU
    python -m bench.gpu.run --dry-run --out /tmp/dry.json             # tiny models on the CPU: does the code run?
    python -m bench.gpu.compare bench/results/gpu.json                # against lintfit

Needs torch and transformers, and peft for the LoRA cases; nothing of lintfit and no network, so that this one folder
can be copied to the machine. Every case runs in a process of its own: the CUDA context and the allocator's cache start
empty. For each phase it records ``max_memory_allocated`` and ``max_memory_reserved``, and what the driver says this
process holds. Results are written after each case, failures with the phases that they reached; a second call goes on
where the first one stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

LLAMA = {
    "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256,
    "max_position_embeddings": 8192, "tie_word_embeddings": True,
}  # fmt: skip
QWEN = {
    "model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
    "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936, "max_position_embeddings": 32768,
    "tie_word_embeddings": True,
}  # fmt: skip
MISTRAL = {
    "model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 16,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 32768,
    "sliding_window": None, "tie_word_embeddings": False,
}  # fmt: skip
GPT2 = {
    "model_type": "gpt2", "n_embd": 1024, "n_layer": 24, "n_head": 16, "n_positions": 1024, "vocab_size": 50257,
}  # fmt: skip
GEMMA = {
    "model_type": "gemma2", "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 13,
    "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 256000,
    "max_position_embeddings": 8192, "sliding_window": 4096, "tie_word_embeddings": True,
}  # fmt: skip

FP32 = {"weights_dtype": "fp32", "mixed_precision": "no"}
AMP = {"weights_dtype": "fp32", "mixed_precision": "bf16"}
BF16 = {"weights_dtype": "bf16", "mixed_precision": "no"}
BF16_AMP = {"weights_dtype": "bf16", "mixed_precision": "bf16"}
GC = {"gradient_checkpointing": True, "use_reentrant": False}
LORA = {"method": "lora", "lora_rank": 16, "lora_targets": ["q_proj", "v_proj"], "lora_dropout": 0.05}

CASES: tuple[tuple[str, dict[str, Any], int, int, dict[str, Any]], ...] = (
    ("llama 1.2 B", LLAMA, 2, 2048, BF16),
    ("llama 1.2 B", LLAMA, 2, 2048, {**AMP, **GC}),
    ("llama 1.2 B", LLAMA, 4, 2048, {**BF16, **GC, "optimizer": "adamw_torch"}),
    ("llama 1.2 B", LLAMA, 4, 2048, {**BF16_AMP, **GC, **LORA}),
    ("llama 1.2 B", LLAMA, 1, 8192, {**BF16, **GC}),
    ("llama 1.2 B", LLAMA, 2, 2048, {**BF16, "gradient_accumulation_steps": 2}),
    ("qwen2 0.5 B", QWEN, 4, 1024, AMP),
    ("qwen2 0.5 B", QWEN, 8, 1024, {**BF16, **GC}),
    ("qwen2 0.5 B", QWEN, 2, 1024, FP32),
    ("mistral 3.8 B", MISTRAL, 1, 4096, {**BF16, **GC}),
    ("mistral 3.8 B", MISTRAL, 2, 2048, {**BF16_AMP, **LORA}),
    ("mistral 3.8 B", MISTRAL, 1, 2048, {**BF16, "optimizer": "sgd"}),
    ("gpt2 355 M", GPT2, 8, 1024, AMP),
    ("gpt2 355 M", GPT2, 8, 1024, {**FP32, **GC, "attention": "eager"}),
    ("gemma2 1.6 B", GEMMA, 2, 1024, {**BF16, "attention": "eager"}),
    ("gemma2 1.6 B", GEMMA, 2, 2048, {**BF16, **GC, "attention": "eager"}),
)


def specs(tiny: bool) -> list[dict[str, Any]]:
    """The cases as lintfit's specs, with a ``name``; ``tiny``: two narrow layers and few tokens."""
    found = []
    for model, config, batch, seq, more in CASES:
        words = [model, f"{batch} × {seq}", *(f"{key} {value}" for key, value in more.items())]
        spec = {
            "model_config": _tiny(config) if tiny else config,
            "method": "full",
            "optimizer": "adamw_torch_fused",
            "micro_batch_size": min(batch, 2) if tiny else batch,
            "seq_len": 32 if tiny else seq,
            "gradient_accumulation_steps": 1,
            "gradient_checkpointing": False,
            "attention": "sdpa",
            **more,
        }
        found.append({"name": ", ".join(words), "spec": spec})
    return found


def _tiny(config: dict[str, Any]) -> dict[str, Any]:
    small = {
        "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 256, "n_embd": 64, "n_layer": 2, "n_head": 4,
        "n_positions": 64,
    }  # fmt: skip
    return {key: small.get(key, value) for key, value in config.items()}


CASE_SECONDS = 120
"""After this long a case is given up."""
MIB = 2**20
MINUTES = 9.0
"""After this long no further case begins, where nobody says otherwise."""


class Meter:
    """The memory of this process, phase by phase; where ``cuda`` is false every figure is 0.

    ``before``: bytes that others held on the GPU when the process began.
    """

    def __init__(self, cuda: bool, before: int = 0) -> None:
        self.cuda = cuda
        self.before = before
        self.phases: dict[str, dict[str, int]] = {}
        self.by_process = False
        """Whether the driver told this process from others."""

    @contextlib.contextmanager
    def phase(self, name: str) -> Any:
        """Record the peaks of what runs inside, also where it fails; of a phase that comes again the larger figures."""
        import torch

        if self.cuda:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        try:
            yield
            if self.cuda:
                torch.cuda.synchronize()
        finally:
            now = self._now()
            before = self.phases.get(name, now)
            self.phases[name] = {key: max(value, before[key]) for key, value in now.items()}

    def _now(self) -> dict[str, int]:
        import torch

        if not self.cuda:
            return {"allocated": 0, "reserved": 0, "driver": 0}
        return {
            "allocated": torch.cuda.max_memory_allocated(),
            "reserved": torch.cuda.max_memory_reserved(),
            "driver": self._driver(),
        }

    def _driver(self) -> int:
        """Bytes that nvidia-smi shows for this process; in a container, which hides process ids, for the whole GPU."""
        own = sum(int(used) for pid, used in _smi("compute-apps", "pid", "used_memory") if pid == str(os.getpid()))
        self.by_process = own > 0
        return own * MIB if own else used_on_card() - self.before


def used_on_card() -> int:
    """Bytes in use on the first GPU by whichever process, as nvidia-smi shows them; 0 without it."""
    return sum(int(used) for (used,) in _smi("gpu", "memory.used")[:1]) * MIB


def _smi(what: str, *fields: str) -> list[list[str]]:
    """Rows of ``nvidia-smi --query-…`` whose last field is a number; none where there is no such program."""
    query = ["nvidia-smi", f"--query-{what}={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        text = subprocess.run(query, capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    rows = [[word.strip() for word in line.split(",")] for line in text.splitlines()]
    return [row for row in rows if len(row) == len(fields) and row[-1].isdigit()]


def train(spec: dict[str, Any], device: str, meter: Meter) -> int:
    """Load, three optimizer steps and an evaluation, as transformers' Trainer runs them; the number of parameters."""
    import torch

    torch.manual_seed(0)
    with meter.phase("load"):
        model = _model(spec, device)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = _optimizer(model, spec)
    for number in range(3):
        first = "first " if number == 0 else ""
        for _ in range(spec["gradient_accumulation_steps"]):
            ids = torch.randint(0, spec["model_config"]["vocab_size"], _shape(spec), device=device)
            with meter.phase(f"{first}forward"):
                loss = _loss(model, ids, spec, device)
            with meter.phase(f"{first}backward"):
                loss.backward()
            del loss, ids
        with meter.phase(f"{first}step"):
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            optimizer.zero_grad()
    with meter.phase("evaluate"), torch.no_grad():
        model.eval()
        ids = torch.randint(0, spec["model_config"]["vocab_size"], _shape(spec), device=device)
        _loss(model, ids, spec, device)
    return sum(parameter.numel() for parameter in model.parameters())


def _shape(spec: dict[str, Any]) -> tuple[int, int]:
    return spec["micro_batch_size"], spec["seq_len"]


def _model(spec: dict[str, Any], device: str) -> Any:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    settings = dict(spec["model_config"])
    config = AutoConfig.for_model(settings.pop("model_type"), **settings)
    config.use_cache = False
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32 if spec["weights_dtype"] == "fp32" else torch.bfloat16)
    try:
        with torch.device(device):
            model = AutoModelForCausalLM.from_config(config, attn_implementation=spec["attention"])
    finally:
        torch.set_default_dtype(before)
    if spec["method"] == "lora":
        from peft import LoraConfig, get_peft_model

        lora = LoraConfig(
            task_type="CAUSAL_LM",
            r=spec["lora_rank"],
            target_modules=spec["lora_targets"],
            lora_dropout=spec["lora_dropout"],
        )
        model = get_peft_model(model, lora)
    model.train()
    if spec["gradient_checkpointing"]:
        model.gradient_checkpointing_enable({"use_reentrant": spec["use_reentrant"]})
        if spec["method"] == "lora":
            model.enable_input_require_grads()
    return model


def _optimizer(model: Any, spec: dict[str, Any]) -> Any:
    import torch

    named = [(name, value) for name, value in model.named_parameters() if value.requires_grad]
    plain = [value for name, value in named if "norm" in name or "ln_" in name or name.endswith("bias")]
    ids = {id(value) for value in plain}
    groups = [{"params": [value for _, value in named if id(value) not in ids], "weight_decay": 0.0}]
    groups.append({"params": plain, "weight_decay": 0.0})
    groups = [group for group in groups if group["params"]]
    if spec["optimizer"] == "sgd":
        return torch.optim.SGD(groups, lr=1e-4)
    fused = spec["optimizer"] == "adamw_torch_fused"
    return torch.optim.AdamW(groups, lr=1e-4, **({"fused": True} if fused else {"foreach": True}))


def _loss(model: Any, ids: Any, spec: dict[str, Any], device: str) -> Any:
    """The loss under autocast where the trainer would use it; the outputs die here, as in the Trainer."""
    import torch

    half = spec["mixed_precision"] != "no"
    context = torch.autocast(device, dtype=torch.bfloat16) if half else contextlib.nullcontext()
    with context:
        outputs = model(input_ids=ids, labels=ids, num_items_in_batch=ids.numel())
    loss, logits = outputs.loss, outputs.logits
    if half:
        logits = logits.float()  # accelerate's convert_outputs_to_fp32
    del outputs, logits
    return loss


def one(name: str, tiny: bool, device: str) -> dict[str, Any]:
    """Run one case in this process."""
    case = next(case for case in specs(tiny) if case["name"] == name)
    cuda = device == "cuda"
    meter = Meter(cuda, used_on_card() if cuda else 0)
    found: dict[str, Any] = {"card": _card(device)}
    began = time.monotonic()
    try:
        found["parameters"] = train(case["spec"], device, meter)
    except ImportError as error:
        found["skipped"] = f"needs {error.name}"
    except Exception as error:  # whatever it is, the other cases go on
        found["error"] = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
    found |= {"seconds": round(time.monotonic() - began, 1), "phases": meter.phases, "by_process": meter.by_process}
    if cuda:
        import torch

        gc.collect()
        found["workspaces"] = torch.cuda.memory_allocated()
    return {**case, **found}


def record(out: Path, only: str, tiny: bool, minutes: float) -> int:
    """Run every case, each in a process of its own, and write what they took; what the file has is not run again."""
    began = time.monotonic()
    content: dict[str, Any] = {"date": datetime.now(UTC).date().isoformat(), "versions": _versions()}
    done = _finished(out, content["versions"])
    results = []
    for case in specs(tiny):
        found = done.get(case["name"])
        if found is None and only in case["name"]:
            if time.monotonic() - began > 60 * minutes:
                print(f"{case['name']}: no time left", file=sys.stderr)
                continue
            found = _apart(case, tiny)
            print(_line(found), file=sys.stderr, flush=True)
        if found is not None:
            results.append(found)
            card = next((each["card"] for each in results if "card" in each), {"name": "unknown"})
            out.write_text(json.dumps({**content, "device": card, "cases": results}, indent=1) + "\n")
    return 0 if all("error" not in found for found in results) else 1


def _finished(out: Path, versions: dict[str, str]) -> dict[str, dict[str, Any]]:
    """The cases of an earlier call with the same libraries that ran to their end."""
    before = json.loads(out.read_text()) if out.is_file() else {}
    if before.get("versions") != versions:
        return {}
    return {case["name"]: case for case in before["cases"] if "error" not in case and "skipped" not in case}


def _apart(case: dict[str, Any], tiny: bool) -> dict[str, Any]:
    """Run a case in a process of its own."""
    command = [sys.executable, str(Path(__file__).resolve()), "--one", case["name"], *(["--dry-run"] * tiny)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CASE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return {**case, "error": f"took more than {CASE_SECONDS} s"}
    try:
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return {**case, "error": (done.stderr.splitlines() or ["no output"])[-1]}
    return found


def _line(found: dict[str, Any]) -> str:
    failed = found.get("error") or found.get("skipped")
    if failed:
        reached = list(found.get("phases", ()))
        return f"{found['name']}: {failed}{f' ({reached[-1]})' if reached else ''}"
    peaks = {key: max(phase[key] for phase in found["phases"].values()) for key in ("allocated", "reserved", "driver")}
    figures = ", ".join(f"{key} {value / 2**30:.2f} GiB" for key, value in peaks.items())
    return f"{found['name']}: {figures}, {found['seconds']:.0f} s"


def _card(device: str) -> dict[str, Any]:
    if device != "cuda":
        return {"name": "cpu (dry run)"}
    import torch

    card = torch.cuda.get_device_properties(0)
    return {"name": card.name, "bytes": card.total_memory, "capability": [card.major, card.minor]}


def _versions() -> dict[str, str]:
    """Of the libraries and the driver; and the allocator's settings, where the environment has any."""
    found = {}
    for package in ("torch", "transformers", "peft"):
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    for driver, _ in _smi("gpu", "driver_version", "memory.used")[:1]:
        found["driver"] = driver
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        if name in os.environ:
            found[name] = os.environ[name]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="where the results go")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument("--dry-run", action="store_true", help="tiny models on the CPU")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="begin no further case after this long")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("torch is not installed: pip install torch transformers peft", file=sys.stderr)
        return 2
    if not options.dry_run and not torch.cuda.is_available():
        print("no GPU here: torch.cuda.is_available() is False; --dry-run tries the code on the CPU", file=sys.stderr)
        return 2
    device = "cpu" if options.dry_run else "cuda"
    if options.one:
        print(json.dumps(one(options.one, options.dry_run, device)))
        return 0
    if not options.out:
        parser.error("say --out")
    return record(options.out, options.only, options.dry_run, options.minutes)


if __name__ == "__main__":
    sys.exit(main())
