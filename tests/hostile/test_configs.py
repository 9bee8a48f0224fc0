"""JSON, YAML and TOML of every kind that lintfit reads, with values, depths or numbers that have no end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lintfit.options.model import MOST_GLOBS
from tests.hostile.child import survives, write

SCRIPT = """
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments, HfArgumentParser
(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
Trainer(model=AutoModelForCausalLM.from_pretrained("gpt2"), args=args).train()
"""
RUN = "deepspeed --num_gpus 2 train.py --deepspeed ds.json --output_dir out\n"
ACCELERATE = "accelerate launch --config_file acc.yaml train.py --output_dir out\n"
DIGITS = "9" * 4400

JSON = {
    "deep": '{"zero_optimization": ' + '{"a": ' * 50_000 + "1" + "}" * 50_000 + "}",
    "deep_lists": '{"zero_optimization": {"stage": ' + "[" * 100_000 + "]" * 100_000 + "}}",
    "long_numbers": '{"train_batch_size": ' + DIGITS + ', "zero_optimization": {"stage": ' + DIGITS + "}}",
    "long_fractions": '{"gradient_clipping": 0.' + DIGITS + ', "train_batch_size": 1e' + DIGITS + "}",
    "no_numbers": '{"gradient_clipping": NaN, "train_batch_size": Infinity, "steps_per_print": -0, "x": 1e999}',
    "large_buckets": '{"zero_optimization": {"stage": 3, "reduce_bucket_size": 1.7e308, "allgather_bucket_size": -1e308,'
    ' "stage3_max_live_parameters": 1e300, "sub_group_size": 1e-300}, "train_micro_batch_size_per_gpu": 99999999999999}',
    "repeated_keys": "{" + ", ".join(['"zero_optimization": {"stage": 2}'] * 1000) + "}",
    "unknown_keys": "{" + ", ".join(f'"stage{i}": 1' for i in range(5000)) + "}",
    "unknown_keys_of_a_section": '{"zero_optimization": {' + ", ".join(f'"stage{i}": 1' for i in range(5000)) + "}}",
    "one_long_key": json.dumps({"a" * 500_000: 1, "zero_optimization": {"b" * 500_000: {}}}),
    "comments": "/*" + "*" * 500_000 + "*/{" + "// a\n" * 20_000 + '"zero_optimization": {"stage": 2}}',
    "comments_that_make_no_end": '{"zero_optimization": {"stage": 2, "cpu_offload": true}\n' + "# a\n" * 400_000 + "}",
    "comments_in_old_lines": '{\r"zero_optimization": {"stage": 2, "cpu_offload": true}\r' + "# a\r" * 4900 + "}",
    "comments_in_one_line": '{"zero_optimization": {"stage": 2, "cpu_offload": true}, "a": ['
    + ('"' + "x" * 390 + '" /**/,') * 4900
    + "1]}",
    "single_quotes_in_one_line": '{"zero_optimization": {"stage": 2, "cpu_offload": true}'
    + "".join(f", 'k{i}': 'x'" for i in range(3000))
    + "}",
    "long_texts_in_one_line": '{\n"zero_optimization": {"stage": 2, "cpu_offload": true}, "a": ['
    + ("'''" + "x" * 190 + "''' ,") * 9000
    + "1]}",
    "an_open_comment": '{"zero_optimization": {"stage": 2}} /*' + "/*" * 200_000,
    "escapes": '{"zero_optimization": {"stage": 2, "' + "\\u0000\\ud800\\udfff\\n" * 5000 + '": 1}}',
    "surrogates": '{"zero_optimization": {"stage": "\\ud800"}, "optimizer": {"type": "\\udfff\\ud800"}}',
    "commas": '{"zero_optimization": {"stage": 2}' + "," * 500_000 + "}",
    "blanks": '{"zero_optimization":' + " " * 1_000_000 + '{"stage": 2}}' + "\n" * 500_000,
    "bare_words": "{zero_optimization: {" + "a: b\n" * 20_000 + "}}",
    "quotes": '{"zero_optimization": {"stage": ' + "'" * 200_000 + "}}",
    "null_bytes": b'{"zero_optimization": {"stage": 2\0}}\0' * 100,
    "junk": bytes(range(256)) * 2000,
    "utf_16": '{"zero_optimization": {"stage": 2}}'.encode("utf-16"),
    "utf_32": '{"zero_optimization": {"stage": 2}}'.encode("utf-32"),
    "a_mark": b"\xef\xbb\xbf" * 1000 + b'{"zero_optimization": {"stage": 2}}',
    "lists_everywhere": json.dumps({"zero_optimization": [{}] * 5000, "optimizer": [[[]]], "fp16": [1] * 5000}),
    "notes_of_one_word": json.dumps(
        {"note": "a" * 100_000, "_" * 100_000: 1, "zero_optimization": {"note": "b" * 100_000}}
    ),
    "control_characters": '{"zero_optimization": {"stage": "\\u001b[2J\\u2028::error::a\\n::error::b"}, "\\n::error::c": 1}',
}


@pytest.mark.parametrize("name", JSON)
def test_deepspeed_configs_without_end(name: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    write(tree, {"ds.json": JSON[name], "run.sh": RUN, "train.py": SCRIPT})
    survives(tree)


def _laughs(levels: int, width: int = 10) -> str:
    """A list of aliases of lists of aliases …."""
    lines = [f"a0: &a0 [{', '.join(['x'] * width)}]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * width)}]" for i in range(1, levels)]
    return "\n".join(lines) + "\n"


def _merges(levels: int) -> str:
    lines = ["a0: &a0 {k: 1}"]
    return "\n".join(
        [*lines, *(f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}], k{i}: *a{i - 1}}}" for i in range(1, levels))]
    )


HEAD = "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_processes: 2\n"
YAML = {
    "laughs": HEAD + _laughs(30),
    "merges": HEAD + _merges(40),
    "a_wide_merge": HEAD
    + "a: &a {"
    + ", ".join(f"k{i}: 1" for i in range(3000))
    + "}\n"
    + "b: {<<: ["
    + "*a, " * 60
    + "]}\n",
    "an_anchor_in_itself": HEAD + "a: &a [*a, *a]\nb: &b {<<: *b}\n",
    "deep": HEAD + "a: " + "[" * 5000 + "]" * 5000 + "\n",
    "deep_mappings": HEAD + "fsdp_config: " + "{a: " * 5000 + "1" + "}" * 5000 + "\n",
    "deep_blocks": HEAD + "".join(" " * i + f"a{i}:\n" for i in range(900)),
    "deep_lists": HEAD + "a:\n" + "- " * 3000 + "b\n",
    "long_numbers": HEAD + f"num_machines: {DIGITS}\nmachine_rank: 0x{'f' * 5000}\nmain_process_port: 0b{'1' * 9000}\n",
    "sexagesimal_numbers": HEAD + "num_machines: " + "59:" * 3000 + "59\n",
    "no_numbers": HEAD + "num_processes: .inf\nnum_machines: .nan\nmachine_rank: -0\nmain_process_port: 1.0e+999\n",
    "many_keys": HEAD + "".join(f"k{i}: {i}\n" for i in range(12_000)),
    "repeated_keys": HEAD + "num_machines: 1\n" * 1000,
    "many_documents": (HEAD + "---\n") * 500,
    "tags": HEAD
    + "a: !!python/object/apply:os.system [touch owned]\nb: !!python/name:os.system\nc: !!binary a\nd: !x y\n",
    "many_tags": HEAD + "a: " + "!!str " * 2000 + "b\n",
    "many_anchors": HEAD + "".join(f"a{i}: &x{i} *x{max(0, i - 1)}\n" for i in range(3000)),
    "directives": "%YAML 99999999999.1\n%TAG ! tag:a,2000:\n---\n" + HEAD,
    "quotes": HEAD + 'a: "' + "\\x00\\U0010FFFF\\N\\_" * 3000 + '"\n',
    "a_long_line": HEAD + "a: " + "b " * 200_000 + "\n",
    "a_long_text": HEAD + "a: |\n" + "  b\n" * 50_000,
    "blanks": HEAD + " " * 300_000 + "\n" + "\n" * 100_000,
    "tabs": HEAD + "\t" * 100_000 + "a: 1\n",
    "colons": HEAD + ":" * 50_000 + "\n" + "a" + ": a" * 3000 + "\n",
    "brackets_that_stay_open": HEAD + "a: " + "[{" * 3000 + "\n",
    "keys_that_are_lists": HEAD + "? [a, b]\n: 1\n? {a: b}\n: 2\n? " + "[" * 100 + "]" * 100 + "\n: 3\n",
    "surrogates": HEAD.encode() + b'a: "\\ud800"\nb: \xed\xa0\x80\n',
    "null_bytes": HEAD.encode() + b"a: \0\n\0\0\n",
    "carriage_returns": HEAD.replace("\n", "\r") + "a: 1\r\r\r",
    "values_of_wrong_kinds": HEAD
    + "fsdp_config: [1]\ndeepspeed_config: 3\nmixed_precision: {a: b}\nmain_process_ip: []\n",
}


@pytest.mark.parametrize("name", YAML)
def test_accelerate_configs_without_end(name: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    write(tree, {"acc.yaml": YAML[name], "run.sh": ACCELERATE, "train.py": SCRIPT})
    survives(tree)
    assert not (tree / "owned").exists()


TOML = {
    "dotted_keys": "a" + ".b" * 50_000 + " = 1\n",
    "many_dotted_keys": "".join(f"a.b.c.d.e{i} = 1\n" for i in range(20_000)),
    "tables_in_tables": "[" + "a." * 20_000 + "a]\n",
    "deep_lists": "gpu = " + "[" * 20_000 + "]" * 20_000 + "\n",
    "long_numbers": f"gpus = {DIGITS}\nseq-len = 0x{'f' * 5000}\n",
    "no_numbers": "gpus = nan\nseq-len = inf\nnodes = -inf\nmargin = 1e999\n",
    "open_texts": 'gpu = "' + '\\"' * 100_000 + "\n" + "'''" * 50_000,
    "globs": "exclude = [" + ", ".join(f'"{"*a" * 30}{i}*b"' for i in range(200)) + "]\n",
    "globs_without_end": "exclude = [" + ", ".join(f'"a*b*{i}*/**/x*y*z"' for i in range(20_000)) + "]\n",
    "as_many_globs_as_may_be": "exclude = [" + ", ".join(f'"*a*b*{i}*/**/x*z"' for i in range(1000)) + "]\n",
    "the_same_rule": "ignore = [" + '"deprecated-key", ' * 40_000 + "]\n",
    "stars": 'exclude = ["' + "**/" * 2000 + 'a", "' + "*" * 20_000 + '", "[' + "[" * 5000 + '"]\n',
    "classes": 'exclude = ["[' + "a-z" * 20_000 + ']", "[!' + "\\\\" * 5000 + ']", "{' + "a,b" * 5000 + '}"]\n',
    "runs": "".join(f'[[run]]\nfiles = ["{"*" * 30}a{i}"]\ngpus = {i}\n' for i in range(300)),
    "dates": "gpu = 9999-99-99T99:99:99Z\n",
    "lists_for_all": "gpu = []\ngpus = {}\nmodel = [1]\nselect = 3\nexclude = {a = 1}\nversions = [[]]\nrun = 1\n",
    "junk": bytes(range(256)) * 500,
}


@pytest.mark.parametrize("name", TOML)
@pytest.mark.parametrize("file", ["lintfit.toml", "pyproject.toml"])
def test_configs_of_lintfit_without_end(name: str, file: str, tmp_path: Path) -> None:
    tree, text = tmp_path / "tree", TOML[name]
    if file == "pyproject.toml":
        head = "[tool.lintfit]\n"
        text = (
            head.encode() + text if isinstance(text, bytes) else head + text.replace("[[run]]", "[[tool.lintfit.run]]")
        )
    long = "a" * 200
    write(
        tree,
        {file: text, "run.sh": RUN, "train.py": SCRIPT, "ds.json": "{}", f"{long}.py": SCRIPT, "requirements.txt": ""},
    )
    survives(tree, "check", ".", "--gpu", "3090")


@pytest.mark.parametrize("table", ["exclude", "per-file-ignores"])
def test_more_patterns_than_are_compared_are_refused_in_one_line(table: str, tmp_path: Path) -> None:
    patterns = [f"a*b*{i}*/**/x*y*z" for i in range(15_000)]
    text = f"exclude = {json.dumps(patterns)}\n"
    if table == "per-file-ignores":
        text = "[per-file-ignores]\n" + "".join(f'"{each}" = ["deprecated-key"]\n' for each in patterns)
    keys = ", ".join(f'"k{i}": 1' for i in range(2000))
    write(tmp_path, {"lintfit.toml": text, "train.py": SCRIPT, **{f"ds{i}.json": f"{{{keys}}}" for i in range(5)}})
    outcome = survives(tmp_path)
    (line,) = outcome.err.splitlines()
    assert outcome.status == 2 and table in line and f"at most {MOST_GLOBS} patterns, not 15000" in line


def test_patterns_for_many_findings(tmp_path: Path) -> None:
    ignores = "".join(f'"*d*{i}*" = ["deprecated-key", "unknown-nested-key"]\n' for i in range(MOST_GLOBS))
    keys = ", ".join(f'"k{i}": 1' for i in range(2000))
    write(
        tmp_path,
        {"lintfit.toml": f"[per-file-ignores]\n{ignores}", "ds_config.json": f'{{"train_batch_size": 8, {keys}}}'},
    )
    survives(tmp_path)


def _ignores(names: str) -> str:
    lines = "".join(f'"k{i}": 1 # lintfit: ignore[{names}]\n' for i in range(990))
    return '{\n"zero_optimization": {"stage": 2}\n"train_batch_size": 8\n' + lines + "}"


IGNORES: dict[str, str | bytes] = {
    "the_same_name": _ignores("deprecated-key," * 4),
    "two_names": _ignores("deprecated-key,duplicate-key"),
    "names_in_turn": _ignores("deprecated-key,duplicate-key," * 20),
    "unknown_names": _ignores(",".join(f"no-such-rule{i}" for i in range(150))),
    "unknown_words": _ignores("deprecated-kee").replace("ignore[", "ignroe["),
}


@pytest.mark.parametrize("name", IGNORES)
@pytest.mark.parametrize("flags", [[], ["--fix"], ["--add-ignores=a"]], ids=["check", "fix", "add"])
def test_comments_without_end(name: str, flags: list[str], tmp_path: Path) -> None:
    write(tmp_path, {"ds_config.hjson": IGNORES[name], "train.py": SCRIPT})
    survives(tmp_path, "check", ".", "--isolated", *flags)


MORE: dict[str, dict[str, str | bytes]] = {
    "an_axolotl_recipe": {"a.yaml": "base_model: gpt2\ndatasets: &d\n  - path: x\n    more: *d\nsequence_len: .inf\n" + _laughs(9)},
    "a_llamafactory_recipe": {
        "a.yaml": f"model_name_or_path: gpt2\nstage: sft\nfinetuning_type: lora\ncutoff_len: {DIGITS}\nlora_rank: 1e999\n"
    },
    "a_torchtune_recipe": {
        "a.yaml": "model:\n  _component_: torchtune.models.llama3.llama3_8b\ntokenizer: ${model}\nx: ${x}\ny: ${y}${y}\n"
        "epochs: ${x}\nbatch_size: ${batch_size}\n" + "".join(f"v{i}: ${{v{i + 1}}}${{v{i + 1}}}\n" for i in range(60)),
        "run.sh": "tune run lora_finetune_single_device --config a.yaml batch_size='${v0}'\n",
    },
    "hydra_defaults_in_a_circle": {
        "train.py": "import hydra\n" + SCRIPT.partition("(args,)")[0] + "\n@hydra.main(config_path='conf', config_name='a')\n"
        "def main(cfg):\n    args = TrainingArguments(output_dir='o', per_device_train_batch_size=cfg.b.c)\n"
        "    Trainer(model=AutoModelForCausalLM.from_pretrained('gpt2'), args=args).train()\nmain()\n",
        "conf/a.yaml": "defaults: [a, b, b, /a, ../conf/a, _self_]\n" + _laughs(6),
        "conf/b.yaml": "defaults: [a, b, c@d: a]\nb: {c: '${a.b}'}\n",
    },
    "a_model_config": {
        "run.sh": RUN + "python train.py --model_name_or_path m\n",
        "ds.json": "{}",
        "m/config.json": '{"model_type": "llama", "hidden_size": ' + "9" * 300 + ', "num_hidden_layers": 1e999, "x": '
        + "[" * 5000 + "}",
    },
    "a_large_model_config": {
        "run.sh": "python train.py --model_name_or_path m\n",
        "m/config.json": json.dumps({"model_type": "llama", "num_hidden_layers": 10**12, "hidden_size": 10**15,
                                     "vocab_size": 10**18, "id2label": {str(i): "x" for i in range(60_000)}}),
    },
    "configs_that_name_each_other": {
        "acc.yaml": HEAD.replace("FSDP", "DEEPSPEED") + "deepspeed_config:\n  deepspeed_config_file: acc.yaml\n",
        "run.sh": ACCELERATE + RUN.replace("ds.json", "acc.yaml"),
    },
    "requirements": {
        "requirements.txt": "-r requirements.txt\n-c requirements.txt\n" + "torch==" + "9." * 50_000 + "9\ntransformers>=" + DIGITS
        + "\n" + "trl ; " * 20_000 + "\n" + "a[" * 20_000,
        "run.sh": RUN, "ds.json": "{}",
    },
    "a_lock": {"uv.lock": "[[package]]\nname = 'torch'\nversion = '" + "9." * 20_000 + "'\n", "run.sh": RUN, "ds.json": "{}"},
    "a_baseline": {"lintfit-baseline.json": "[" * 100_000, "run.sh": RUN, "ds.json": "{}"},
    "specs": {"specs.jsonl": '{"model": ' + "[" * 50_000 + "\n" + "{}\n" * 5000},
}  # fmt: skip


@pytest.mark.parametrize("name", MORE)
def test_trees_of_configs_without_end(name: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    write(tree, {"train.py": SCRIPT, **MORE[name]})
    survives(tree)


@pytest.mark.parametrize(
    "flag", ["--gpus", "--nodes", "--seq-len", "--images", "--margin", "--gpu-memory", "--versions"]
)
@pytest.mark.parametrize(
    "value", [DIGITS, "-" + DIGITS, "1e999", "nan", "", "\u0661", "a" * 100_000, "torch=" + DIGITS]
)
def test_flags_without_end(flag: str, value: str, tmp_path: Path) -> None:
    write(tmp_path, {"train.py": SCRIPT})
    outcome = survives(tmp_path, "check", ".", "--gpu", "3090", flag, value)
    assert max(map(len, outcome.err.splitlines()), default=0) < 1000


NUMBERS = {
    "ds.json": '{"train_batch_size": ' + DIGITS + "}",
    "acc.yaml": HEAD + f"num_machines: {DIGITS}\n",
    "lintfit.toml": f"gpus = {DIGITS}\n",
}


@pytest.mark.parametrize(("file", "key"), [*zip(NUMBERS, ["train_batch_size", "num_machines", "gpus"], strict=True)])
def test_a_number_of_too_many_digits_is_refused_with_its_key(file: str, key: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    write(tree, {file: NUMBERS[file], "run.sh": RUN + ACCELERATE, "train.py": SCRIPT})
    outcome = survives(tree, "check", ".", "--output-format", "concise")
    (line,) = [line for line in (outcome.out + outcome.err).splitlines() if "4000 digits" in line]
    assert key in line and file in line


DEEPEST = {"num_hidden_layers": 1000, "hidden_size": 256, "vocab_size": 1000, "num_attention_heads": 4}
MODELS = {
    "albert": {"embedding_size": 64, "intermediate_size": 512},
    "gemma3n_text": {"intermediate_size": 512},
    "gemma4_text": {"intermediate_size": 512},
    "jetmoe": {"num_local_experts": 65_536},
    "qwen3_next": {"num_hidden_layers": 10_000},
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_as_many_layers_as_there_may_be(name: str, tmp_path: Path) -> None:
    config = {"model_type": name, "architectures": ["AForCausalLM"], **DEEPEST, **MODELS[name]}
    script = SCRIPT.replace("gpt2", "m")
    write(tmp_path, {"train.py": script, "m/config.json": json.dumps(config), "run.sh": RUN, "ds.json": "{}"})
    survives(tmp_path)


LISTS = "[]," * (12 << 20)


def test_a_notebook_of_empty_lists(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "outputs": [], "source": SCRIPT}
    write(tmp_path, {"a.ipynb": f'{{"cells": [{json.dumps(cell)}], "x": [{LISTS}0]}}'})
    assert "more than 3000000 lists, mappings and keys" in survives(tmp_path).out


def test_a_baseline_of_empty_lists(tmp_path: Path) -> None:
    text = f'{{"lintfit_baseline": 1, "y": [{LISTS}0]}}'
    write(tmp_path, {"lintfit.toml": "baseline = 'b.json'\n", "b.json": text, "run.sh": RUN, "train.py": SCRIPT})
    assert "more than 600000 files and rules" in survives(tmp_path).err
