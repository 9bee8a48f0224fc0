"""How long sequences are: a prompt with its answer, an encoder and a decoder, lengths that are handed on or cut."""

from __future__ import annotations

import pytest

from tests.sources.scripts import script, trained, values

MODEL = "import torch\nfrom transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
PARTS = """
import argparse
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments
parser = argparse.ArgumentParser()
parser.add_argument("--max_source_length", type=int, default=64)
parser.add_argument("--max_target_length", type=int, default=32)
args = parser.parse_args()
tokenizer = AutoTokenizer.from_pretrained("m")
def preprocess(rows):
    {computed}
    return tokenizer(rows["text"], max_length=args.max_source_length)
data = load("d").map(preprocess)
Trainer(model=AutoModelForCausalLM.from_pretrained("m"), args=TrainingArguments("out"), train_dataset=data).train()
"""


@pytest.mark.parametrize(
    ("computed", "length", "kind"),
    [
        ("max_seq_length = args.max_source_length + args.max_target_length + 1", 97, "file"),
        ("max_seq_length = args.max_source_length; max_seq_length = args.max_source_length + 1", 65, "file"),
        (
            "max_seq_length = args.max_source_length + 40\n    max_seq_length = args.max_source_length + 1",
            104,
            "assumed",
        ),
        ("pass", 96, "assumed"),
    ],
)
def test_a_prompt_and_its_answer_are_one_sequence(computed: str, length: int, kind: str) -> None:
    setting = script(PARTS.format(computed=computed), "").settings["seq_len"]
    assert (setting.value, setting.provenance.kind) == (length, kind)


HALVES = """
import argparse
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, Seq2SeqTrainer, Seq2SeqTrainingArguments
parser = argparse.ArgumentParser()
parser.add_argument("--max_source_length", type=int, default=512)
parser.add_argument("--max_target_length", type=int, default=64)
args = parser.parse_args()
tokenizer = AutoTokenizer.from_pretrained("m")
def preprocess(rows):
{body}
data = load("d").map(preprocess)
model = AutoModelForSeq2SeqLM.from_pretrained("m")
Seq2SeqTrainer(model=model, args=Seq2SeqTrainingArguments("out"), train_dataset=data).train()
"""


@pytest.mark.parametrize(
    ("body", "lengths"),
    [
        (
            """    inputs = tokenizer(rows["text"], max_length=args.max_source_length)
    inputs["labels"] = tokenizer(text_target=rows["summary"], max_length=args.max_target_length)["input_ids"]
    return inputs""",
            (512, 64),
        ),
        (
            """    inputs = tokenizer(rows["text"], max_length=300)
    inputs["labels"] = tokenizer(text_target=rows["summary"], max_length=50)["input_ids"]
    return inputs""",
            (300, 50),
        ),
        ("""    return tokenizer(rows["text"], max_length=300)""", (300, None)),
        ("""    return tokenizer(rows["text"], text_target=rows["summary"], max_length=300)""", (300, None)),
    ],
)
def test_an_encoder_and_a_decoder_have_a_length_each(body: str, lengths: tuple[int, int | None]) -> None:
    found = values(script(HALVES.format(body=body), ""))
    assert (found["seq_len"], found.get("decoder_seq_len")) == lengths


@pytest.mark.parametrize(
    ("line", "length"),
    [
        ("labels = tokenizer(rows['summary'], max_length=50, truncation=True)", 50),
        ("inputs['labels'] = tokenizer(rows['summary'], max_length=args.max_target_length)['input_ids']", 64),
        ("tokenized_targets = tokenizer(rows['summary'], max_length=50).input_ids", 50),
        ("more = tokenizer(rows['summary'], max_length=50, truncation=True)", None),
    ],
)
@pytest.mark.parametrize("cls", ["AutoModelForSeq2SeqLM", "MT5ForConditionalGeneration"])
def test_what_becomes_the_labels_is_as_long_as_its_tokenizer_leaves_it(cls: str, line: str, length: int | None) -> None:
    body = f"    inputs = tokenizer(rows['text'], max_length=300)\n    {line}\n    return inputs"
    found = values(script(HALVES.format(body=body).replace("AutoModelForSeq2SeqLM", cls), ""))
    assert (found["seq_len"], found.get("decoder_seq_len")) == (300, length)


def test_labels_of_a_causal_model_are_a_whole_sequence() -> None:
    body = "    labels = tokenizer(rows['text'], max_length=300)\n    return labels"
    text = HALVES.format(body=body).replace("AutoModelForSeq2SeqLM", "AutoModelForCausalLM")
    found = values(script(text, ""))
    assert (found["seq_len"], found.get("decoder_seq_len")) == (300, None)


@pytest.mark.parametrize(("use", "kind"), [("print(args.max_seq_length)", "default"), ("pass", "assumed")])
def test_a_length_that_nobody_asks_for_is_a_guess(use: str, kind: str) -> None:
    text = """
    import argparse
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_seq_length", type=int, default=4096)
    args = parser.parse_args()
    {use}
    Trainer(model=AutoModelForCausalLM.from_pretrained("m"), args=TrainingArguments("out")).train()
    """
    setting = script(text.format(use=use), "").settings["seq_len"]
    assert setting.value == 4096
    assert (setting.provenance.kind == "assumed") == (kind == "assumed")


def test_a_length_under_a_name_with_dots() -> None:
    text = """
import argparse
import torch
parser = argparse.ArgumentParser()
parser.add_argument("--data.max_len", type=int, default=512)
args = parser.parse_args()
loss.backward()
"""
    assert values(script(text, "--data.max_len 2048"))["seq_len"] == 2048


@pytest.mark.parametrize(
    ("line", "length"),
    [
        ("tokenizer(text, max_length=min(model.config.max_position_embeddings, 512), truncation=True)", 512),
        ("tokenizer(text, max_length=min(256, 512), truncation=True)", 256),
        ("data.connect(tokenizer, max_seq_length=1024)", 1024),
        ("data.connect(tokenizer, max_seq_length=1024); data.connect(tokenizer, max_seq_length=64)", None),
    ],
)
def test_a_length_that_is_handed_on(line: str, length: int | None) -> None:
    text = (
        MODEL
        + f"""
from transformers import AutoTokenizer
model = AutoModelForCausalLM.from_pretrained("a/b")
tokenizer = AutoTokenizer.from_pretrained("a/b")
{line}
optimizer = torch.optim.AdamW(model.parameters())
model(batch).loss.backward()
optimizer.step()
"""
    )
    setting = script(text, "").settings.get("seq_len")
    assert (setting.value if setting else None) == length
    assert setting is None or (setting.provenance.kind == "assumed") == (length != 256)


def test_a_token_that_is_cut_off_again() -> None:
    text = (
        MODEL
        + """
from transformers import AutoTokenizer
CUTOFF = 256
tokenizer = AutoTokenizer.from_pretrained("a/b")
ids = tokenizer("text", truncation=True, max_length=CUTOFF + 1)["input_ids"][:-1]
model = AutoModelForCausalLM.from_pretrained("a/b")
Trainer(model=model, args=TrainingArguments("out")).train()
"""
    )
    setting = script(text, "").settings["seq_len"]
    assert (setting.value, setting.provenance.kind) == (256, "assumed")


def test_a_trainer_that_leaves_the_data_as_it_is_cuts_nothing() -> None:
    text = """
from trl import SFTConfig, SFTTrainer
args = SFTConfig("out", max_length=4096)
{line}
SFTTrainer(model="m", args=args, train_dataset=data).train()
"""
    whole = script(text.format(line='args.dataset_kwargs = {"skip_prepare_dataset": True}'), "").settings["seq_len"]
    cut = script(text.format(line=""), "").settings["seq_len"]
    assert (whole.value, whole.provenance.kind, cut.provenance.kind) == (4096, "assumed", "file")


def test_sft_trainer_cuts_texts_where_bare_arguments_say_nothing() -> None:
    code = """
        from transformers import AutoModelForCausalLM, TrainingArguments
        from trl import {trainer}
        model = AutoModelForCausalLM.from_pretrained("gpt2")
        {trainer}(model=model, args=TrainingArguments("out"), train_dataset=data{has}).train()
        """
    length = {
        (trainer, has): values(script(code.format(trainer=trainer, has=has))).get("seq_len")
        for trainer, has in (("SFTTrainer", ""), ("SFTTrainer", ", max_seq_length=256"), ("SFTTrainer", ", **more"))
    }
    assert [*length.values()] == [1024, 256, None]


NAMED = """
import argparse
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments
parser = argparse.ArgumentParser()
parser.add_argument("--max_prompt_length", type=int, default=300)
parser.add_argument("--max_response_length", type=int, default=200)
parser.add_argument("--block_size", type=int, default=64)
args = parser.parse_args()
tokenizer = AutoTokenizer.from_pretrained("m")
def preprocess(row):
    prompt, answer = tokenizer.encode(row["q"]), tokenizer.encode(row["a"])
    ids = prompt[:args.max_prompt_length] + answer[:args.max_response_length]
    return {{"input_ids": ids{cut}}}
data = load("d").map(preprocess)
Trainer(model=AutoModelForCausalLM.from_pretrained("m"), args=TrainingArguments("out"), train_dataset=data).train()
"""


@pytest.mark.parametrize(("cut", "length"), [("", 500), ("[:args.block_size]", 64)])
def test_a_field_that_nothing_reads_gives_way_to_those_of_prompt_and_answer(cut: str, length: int) -> None:
    assert values(script(NAMED.format(cut=cut)))["seq_len"] == length


MULTIPLE = """
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments
limit = 512
tokenizer = AutoTokenizer.from_pretrained("m")
def preprocess(rows):
    ids = tokenizer(rows["text"], truncation=True, max_length=limit * 4)["input_ids"]
    {body}
data = load("d").map(preprocess)
Trainer(model=AutoModelForCausalLM.from_pretrained("m"), args=TrainingArguments("out"), train_dataset=data).train()
"""


@pytest.mark.parametrize(
    ("body", "length"),
    [
        ("return {'input_ids': ids[: min(len(ids), limit)]}", 512),
        ("return {'input_ids': ids[0:limit]}", 512),
        ("return {'input_ids': ids}", 2048),
    ],
)
def test_a_multiple_of_a_length_may_be_cut_to_it_again(body: str, length: int) -> None:
    setting = script(MULTIPLE.format(body=body)).settings["seq_len"]
    assert (setting.value, setting.provenance.kind) == (length, "assumed")


WEIGHED = """
import argparse
from transformers import AutoConfig, AutoModelForCausalLM, Trainer, TrainingArguments
parser = argparse.ArgumentParser()
parser.add_argument("--model_max_length", type=int, default=4096)
args = parser.parse_args()
config = AutoConfig.from_pretrained("m")
if args.model_max_length > config.max_position_embeddings:
    config.rope_scaling = {{"factor": args.model_max_length / config.max_position_embeddings}}
data = load("d"){more}
Trainer(model=AutoModelForCausalLM.from_pretrained("m"), args=TrainingArguments("out"), train_dataset=data).train()
"""


@pytest.mark.parametrize(("more", "kind"), [("", "assumed"), (".map(lambda r: r[:args.model_max_length])", "file")])
def test_a_field_that_is_only_compared_need_not_be_the_length(more: str, kind: str) -> None:
    setting = script(WEIGHED.format(more=more), "").settings["seq_len"]
    assert (setting.value, "assumed" if setting.provenance.kind == "assumed" else "file") == (4096, kind)


SLICED = """
import argparse
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments
parser = argparse.ArgumentParser()
parser.add_argument("--max_training_len", type=int, default=700)
parser.add_argument("--max_prompt_len", type=int, default=300)
parser.add_argument("--max_answer_len", type=int, default=500)
args = parser.parse_args()
tokenizer = AutoTokenizer.from_pretrained("m")
def preprocess(row):
    ids = tokenizer.encode(row["q"])[: args.max_prompt_len] + tokenizer.encode(row["a"])[: args.max_answer_len]
    return {{"input_ids": {cut}}}
data = load("d").map(preprocess)
Trainer(model=AutoModelForCausalLM.from_pretrained("m"), args=TrainingArguments("out"), train_dataset=data).train()
"""


@pytest.mark.parametrize(
    ("cut", "length"), [("ids[: args.max_training_len]", 700), ("ids", 800), ("ids[: args.max_prompt_len]", 800)]
)
def test_tokens_of_a_sample_are_cut_at_a_field_of_any_name(cut: str, length: int) -> None:
    assert values(script(SLICED.format(cut=cut), ""))["seq_len"] == length


@pytest.mark.parametrize(
    ("call", "full"),
    [
        ("tokenized.map(group_texts, batched=True)", True),
        ("tokenized.map(function=group_texts, batched=True)", True),
        ("tokenized.map(clean)", None),
        ("tokenized.map(group_texts) if args.group else tokenized", None),
    ],
)
def test_texts_that_are_put_together_fill_a_sequence(call: str, full: bool | None) -> None:
    text = PARTS.replace(
        "data = load", "def group_texts(rows):\n    return join(rows)\ndef clean(rows):\n    return rows\ndata = load"
    )
    text = text.replace("{computed}", "pass").replace(
        ".map(preprocess)", f".map(preprocess)\ntokenized = data\ndata = {call}"
    )
    assert values(script(text, "")).get("pads_to_length") is full


@pytest.mark.parametrize(("module", "length"), [("trl", 1024), ("sft_trainer", None)])
def test_the_default_of_trls_own_sft_trainer(module: str, length: int | None) -> None:
    """A class of that name from elsewhere cuts nothing that lintfit knows of."""
    text = f"""\
from transformers import AutoModelForCausalLM, TrainingArguments
from {module} import SFTTrainer

model = AutoModelForCausalLM.from_pretrained("a/b")
SFTTrainer(model=model, args=TrainingArguments("out"), train_dataset=data).train()
"""
    found = script(text).settings.get("seq_len")
    assert (found.value if found is not None else None) == length


GENERATES = """
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainerCallback, TrainingArguments
tokenizer = AutoTokenizer.from_pretrained("m")
model = AutoModelForCausalLM.from_pretrained("m")

{method}

def main():
    {asked}
    Trainer(model=model, args=TrainingArguments("out"), train_dataset=data, callbacks=[Shows()]).train()

main()
"""
SHOWS = """class Shows(TrainerCallback):
    def on_evaluate(self, args, state, control, **kwargs):
        model.generate(**tokenizer("Hello", {keywords}))
"""


@pytest.mark.parametrize(
    ("method", "asked", "length"),
    [
        ("", "data = tokenizer(texts, max_length=4096)", 4096),
        ("", "data = tokenizer(texts, max_length=4096); model.generate(data)", 4096),
        ("", "data = tokenizer(texts, max_length=4096, padding=True); model.generate(data)", 4096),
        (SHOWS.format(keywords="max_length=64"), "Shows().on_evaluate(0, 0, 0)", 64),
        (SHOWS.format(keywords="max_length=64, padding=False"), "Shows().on_evaluate(0, 0, 0)", 64),
        (SHOWS.format(keywords="max_length=64, padding=True, truncation=True"), "Shows().on_evaluate(0, 0, 0)", 64),
        (SHOWS.format(keywords="max_length=64, padding=True"), "Shows().on_evaluate(0, 0, 0)", None),
    ],
)
def test_a_method_that_generates_pads_its_prompt(method: str, asked: str, length: int | None) -> None:
    settings = script(GENERATES.format(method=method, asked=asked)).settings
    assert (settings["seq_len"].value if "seq_len" in settings else None) == length


@pytest.mark.parametrize("name", ["maxlen", "max_sequence_length", "context_length"])
def test_other_names_of_a_length(name: str) -> None:
    head = "import argparse\nparser = argparse.ArgumentParser()\n"
    text = f"{head}parser.add_argument('--{name}', type=int, default=512)\nargs = parser.parse_args()\n"
    source = script(text + trained(f"data = cut(data, args.{name})"), f"--{name} 300")
    assert values(source)["seq_len"] == 300


@pytest.mark.parametrize("name", ["tokenizer", "tokeniser"])
def test_a_tokenizers_limit_that_is_set_afterwards(name: str) -> None:
    text = f"""
    from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments
    {name} = AutoTokenizer.from_pretrained("a/b")
    {name}.model_max_length = 8192
    data = data.map(lambda batch: {name}(batch["text"], truncation=True, max_length={name}.model_max_length))
    Trainer(model=AutoModelForCausalLM.from_pretrained("a/b"), args=TrainingArguments("out")).train()
    """
    assert values(script(text))["seq_len"] == 8192


@pytest.mark.parametrize(("function", "length"), [("load_dataset_of_moves", 512), ("answer", None)])
def test_a_length_that_a_function_of_the_data_gets(function: str, length: int | None) -> None:
    text = f"""
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
    def {function}(rows, max_length=1024):
        return [row[:max_length] for row in rows]
    data = {function}(rows, max_length=512)
    model = AutoModelForCausalLM.from_pretrained("a/b")
    Trainer(model=model, args=TrainingArguments("out"), train_dataset=data).train()
    """
    source = script(text)
    assert values(source).get("seq_len") == length
    assert length is None or source.settings["seq_len"].provenance.kind == "assumed"


PAIRS = """
    from transformers import AutoModelForCausalLM, TrainingArguments
    from trl import CPOConfig, CPOTrainer, DPOConfig, DPOTrainer, KTOConfig, KTOTrainer, ORPOConfig, ORPOTrainer
    model = AutoModelForCausalLM.from_pretrained("a/b")
    {kind}Trainer(model=model, args={kind}Config("out"{passed})).train()
"""


@pytest.mark.parametrize(
    ("kind", "passed", "version", "length"),
    [
        ("DPO", "", "0.11.0", 512),
        ("DPO", "", "0.12.1", None),
        ("DPO", "", "0.15.2", 1024),
        ("DPO", ", max_length=2048", "0.11.0", 2048),
        ("CPO", "", "0.11.0", 512),
        ("CPO", "", "1.9.0", 1024),
        ("ORPO", ", max_length=None", "0.19.0", 512),
        ("KTO", "", "0.13.0", 512),
        ("KTO", ", **options", "0.13.0", None),
    ],
)
def test_what_trainers_of_preferences_fall_back_to(kind: str, passed: str, version: str, length: int | None) -> None:
    found = values(script(PAIRS.format(kind=kind, passed=passed), versions={"trl": version}))
    assert found.get("seq_len") == length


def test_a_flag_that_goes_to_a_config_whose_fields_are_not_known() -> None:
    text = """
    from transformers import AutoModelForCausalLM, HfArgumentParser
    from trl import CPOConfig, CPOTrainer, ScriptArguments
    others, args = HfArgumentParser((ScriptArguments, CPOConfig)).parse_args_into_dataclasses()
    CPOTrainer(model=AutoModelForCausalLM.from_pretrained("a/b"), args=args).train()
    """
    assert values(script(text, "--max_length 2048 --output_dir out"))["seq_len"] == 2048
    assert values(script(text, "--output_dir out"))["seq_len"] == 1024


@pytest.mark.parametrize(("where", "length"), [("before", 512), ("after", None)])
def test_what_is_tokenized_when_the_trainer_has_trained_is_no_sample(where: str, length: int | None) -> None:
    call = "tokenizer(rows, truncation=True, max_length=512)"
    before, after = (call, "") if where == "before" else ("", call)
    source = script(
        f"""
        from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments
        tokenizer = AutoTokenizer.from_pretrained("m")
        {before or "pass"}
        trainer = Trainer(model=AutoModelForCausalLM.from_pretrained("m"), args=TrainingArguments("out"))
        trainer.train()
        {after or "pass"}
        """
    )
    assert values(source).get("seq_len") == length


@pytest.mark.parametrize(
    ("pads", "full"),
    [
        ("batch = tokenizer.pad(rows, padding=True)", False),
        ("batch = tokenizer.pad(rows, padding='longest')", False),
        ("batch = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)", False),
        ("batch = DataCollatorForSeq2Seq(tokenizer)", False),
        ("batch = tokenizer.pad(rows, padding=args.padding)", None),
        ("batch = tokenizer.pad(rows, padding=True)\nrows = pack_samples(rows)", None),
        ("batch = tokenizer.pad(rows)", None),
    ],
)
def test_a_batch_is_padded_to_its_longest_sample(pads: str, full: bool | None) -> None:
    text = (
        SLICED.format(cut="ids[: args.max_training_len]")
        + f"\n\ndef collate(rows):\n    {pads.replace(chr(10), chr(10) + '    ')}\n"
    )
    assert values(script(text, "")).get("pads_to_length") is full
