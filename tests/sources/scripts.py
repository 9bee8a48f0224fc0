"""Helpers: scripts and launch lines as text."""

from __future__ import annotations

import shlex
from pathlib import Path
from textwrap import dedent

from lintfit.documents.edits import apply
from lintfit.documents.model import Document, FileText, Kind, Span
from lintfit.documents.python_reader import read_python
from lintfit.settings.model import Place
from lintfit.sources.launchers.flags import Flag
from lintfit.sources.script.source import ScriptSource, read_script

PARSED = """
    from dataclasses import dataclass, field
    from typing import List, Optional
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer, HfArgumentParser, Trainer, TrainingArguments

    @dataclass
    class ModelArguments:
        model_name_or_path: str = field(metadata={"help": "where from"})
        torch_dtype: Optional[str] = field(default=None)
        targets: List[str] = field(default_factory=lambda: ["q_proj", "v_proj"])

    @dataclass
    class ScriptArguments:
        use_peft: bool = field(default=True)
        rank: Optional[int] = field(default=8)
        model_max_length: int = field(default=512)

    def main():
        parser = HfArgumentParser((ModelArguments, TrainingArguments, ScriptArguments))
        model_args, training_args, script_args = parser.parse_args_into_dataclasses()
        dtype = (
            model_args.torch_dtype
            if model_args.torch_dtype in ["auto", None]
            else getattr(torch, model_args.torch_dtype)
        )
        model = AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path, torch_dtype=dtype)
        if script_args.use_peft:
            model = get_peft_model(model, LoraConfig(r=script_args.rank, target_modules=model_args.targets))
            for param in filter(lambda p: p.requires_grad, model.parameters()):
                param.data = param.data.to(torch.float32)
        else:
            model = model.float()
        Trainer(model=model, args=training_args).train()

    if __name__ == "__main__":
        main()
"""

ARGPARSE = """
    import argparse
    import torch
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

    def parse_args():
        parser = argparse.ArgumentParser()
        parser.add_argument("--model", default="a/b")
        parser.add_argument("--precision", default="bf16", choices=["bf16", "fp32"])
        parser.add_argument("--micro-batch-size", type=int, default=2)
        parser.add_argument("--global_batch_size", type=int, default=16)
        parser.add_argument("--upcast", action="store_true")
        group = parser.add_argument_group("more")
        group.add_argument("--deepspeed", type=str, default=None)
        return parser.parse_args()

    def build(name, dtype, **kwargs):
        kwargs["torch_dtype"] = dtype
        return AutoModelForCausalLM.from_pretrained(name, **kwargs)

    def main():
        args = parse_args()
        dtype = torch.bfloat16 if args.precision == "bf16" else torch.float32
        model = build(args.model, dtype, attn_implementation="sdpa")
        if args.upcast:
            model.float()
        arguments = TrainingArguments(
            "out",
            per_device_train_batch_size=args.micro_batch_size,
            gradient_accumulation_steps=args.global_batch_size // args.micro_batch_size,
            deepspeed=args.deepspeed,
        )
        Trainer(model, arguments).train()

    main()
"""


def flags_of(line: str) -> list[Flag]:
    """The flags of a command line, each with its place in a document of that one line."""
    document = Document(FileText(Path("run.sh"), line), Kind.SHELL)
    flags: list[Flag] = []
    position, words = 0, []
    for word in shlex.split(line):
        start = line.index(word, position)
        position = start + len(word)
        words.append((word, Span(start, position)))
    index = 0
    while index < len(words):
        word, span = words[index]
        index += 1
        if not word.startswith("--"):
            continue
        name, equals, value = word[2:].partition("=")
        values = [value] if equals else []
        places = [Span(span.end - len(value), span.end)] if equals else []
        while not equals and index < len(words) and not words[index][0].startswith("--"):
            values.append(words[index][0])
            places.append(words[index][1])
            index += 1
        end = places[-1].end if places else span.end
        flags.append(
            Flag(
                name.replace("-", "_"),
                values[0] if values else None,
                Place(document, Span(span.start, end)),
                Place(document, Span(places[0].start, end)) if places else None,
                tuple(values) if len(values) > 1 else (),
            )
        )
    return flags


def script(text: str, line: str | None = None, **kwargs: object) -> ScriptSource:
    """A script read under a launch line; None for no launch."""
    document = read_python(FileText(Path("train.py"), dedent(text).lstrip("\n")))
    flags = flags_of(line) if line else []
    return read_script(document, flags, has_launch=line is not None, **kwargs)  # type: ignore[arg-type]


def values(source: ScriptSource) -> dict[str, object]:
    return {name: setting.value for name, setting in source.settings.items()}


def trained(middle: str) -> str:
    return (
        "import torch\nfrom transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        "model = AutoModelForCausalLM.from_pretrained('a/b', torch_dtype=torch.bfloat16)\n"
        f"{middle}\n"
        "trainer = Trainer(model=model, args=TrainingArguments(output_dir='x'))\ntrainer.train()\n"
    )


def after(source: ScriptSource, edits: object) -> str:
    assert edits is not None
    mine = [edit.edit for edit in edits if edit.document is source.document]  # type: ignore[attr-defined]
    return apply(source.document.text, mine)
