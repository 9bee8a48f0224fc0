"""Files that a launch line names and that are not there: what is said of which, and what becomes of the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.commands.check import check
from lintfit.findings.results import CheckResult
from lintfit.options.model import Options
from lintfit.run.missing import Missing
from tests.support import lintfit

TRAIN = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
Trainer(model=AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf"), args=args).train()
"""
GPU = Options(gpu="RTX 3090", gpus=2, origins={"gpu": "--gpu", "gpus": "--gpus"})


def checked(folder: Path, monkeypatch: pytest.MonkeyPatch, **files: str) -> CheckResult:
    monkeypatch.chdir(folder)
    for name, text in {"train_py": TRAIN, **files}.items():
        path = folder / name.replace("__", "/").replace("_py", ".py").replace("_sh", ".sh").replace("_json", ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return check([Path()], GPU)


def missing(result: CheckResult) -> list[Missing]:
    return [each for run in result.runs for each in run.run.missing]


def certainties(folder: Path, monkeypatch: pytest.MonkeyPatch, launch: str, **files: str) -> list[str]:
    return [each.certainty for each in missing(checked(folder, monkeypatch, run_sh=launch, **files))]


@pytest.mark.parametrize(
    "launch",
    [
        "deepspeed train.py --deepspeed ds.json",
        "CONFIG=ds.json\ndeepspeed train.py --deepspeed $CONFIG",
        "cat ds.json\nls ds.json\ndeepspeed train.py --deepspeed ds.json",
        "python eval_model.py --deepspeed ds.json\ndeepspeed train.py --deepspeed ds.json",
        "git clone https://github.com/a/other\ndeepspeed train.py --deepspeed ds.json",
    ],
)
def test_a_config_that_nothing_makes_is_surely_missing(
    launch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert certainties(tmp_path, monkeypatch, launch) == ["sure"]


@pytest.mark.parametrize(
    ("ignored", "certainty"),
    [
        ("**configs**\n", "elsewhere"),
        ("configs/\n", "elsewhere"),
        ("*.json\n", "elsewhere"),
        ("*.json\n!ds.json\n", "sure"),
        ("wandb/\n*.yaml\n", "sure"),
    ],
)
def test_a_config_that_git_ignores_is_only_not_handed_on(
    ignored: str, certainty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitignore").write_text(ignored)
    launch = "deepspeed train.py --deepspeed ./configs/ds.json"
    assert certainties(tmp_path, monkeypatch, launch) == [certainty]


@pytest.mark.parametrize(
    "launch",
    [
        'CONFIG=out/ds.json\npython - <<PY\nimport pathlib\npathlib.Path("${CONFIG}").write_text("{}")\nPY\n',
        "python3 <<'EOF'\njson.dump({}, open('ds.json', 'w'))\nEOF\n",
        "jq . base.json > ds.json\n",
        "{ echo a; echo b; } > ds.json\n",
        "cat <<EOF | tee ds.json\n{}\nEOF\n",
        "envsubst < template.txt > ds.json\n",
        "cp configs/*.json .\n",
        "ln -s /etc/ds.json ds.json\n",
        "wget https://example.org/ds.json\n",
        "curl -o ds.json https://example.org/x\n",
        "tar xf configs.tar\n",
        "git checkout configs\n",
        "python tools.py --out ds.json\n",
        "python make.py\n",
        "[ -f ds.json ] || exit 1\n",
        "cd $SOMEWHERE\n",
        "pushd /opt\n",
    ],
)
def test_nothing_is_said_where_the_launch_script_may_make_it(
    launch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = 'import json\njson.dump({}, open("ds.json", "w"))\n'
    text = f"{launch}deepspeed train.py --deepspeed ds.json\n"
    assert certainties(tmp_path, monkeypatch, text, make_py=made) == ["open"]


def test_a_folder_that_is_left_again_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "(cd $SOMEWHERE && ls)\ndeepspeed train.py --deepspeed ds.json\n"
    assert certainties(tmp_path, monkeypatch, text) == ["sure"]


@pytest.mark.parametrize(
    "script",
    [
        "/opt/nope.py",
        "~/nope.py",
        "../nope.py",
        "run_ner.py",
        "examples/pytorch/run_clm.py",
        "train_dreambooth_lora.py",
    ],
)
def test_what_may_lie_elsewhere(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert certainties(tmp_path, monkeypatch, f"torchrun {script} --deepspeed ds.json") == ["elsewhere", "elsewhere"]


def test_a_path_through_a_folder_that_leads_out_of_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"torchrun $(dirname $0)/{name}\n" for name in ("../../other/nope.py", "../nope.py")]
    for line, certainty in zip(lines, ("elsewhere", "sure"), strict=True):
        assert certainties(tmp_path, monkeypatch, "", scripts__start_sh=line) == [certainty]


def test_the_repository_is_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "scripts").mkdir()
    assert certainties(tmp_path / "scripts", monkeypatch, "torchrun ../nope.py") == ["sure"]


def test_a_workflow_that_checks_out_another_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = "jobs:\n  train:\n    steps:\n{}      - run: torchrun nope.py\n"
    checkout = "      - uses: actions/checkout@v4\n        with:\n          repository: a/b\n"
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    workflow = tmp_path / ".github" / "workflows" / "train.yml"
    for text, expected in ((checkout, "open"), ("", "sure")):
        workflow.write_text(steps.format(text))
        (found,) = missing(checked(tmp_path, monkeypatch))
        assert found.certainty == expected


def test_a_target_of_a_makefile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = "train:{}\n\tdeepspeed train.py --deepspeed ds.json\n"
    (tmp_path / "Makefile").write_text(recipe.format(""))
    (found,) = missing(checked(tmp_path, monkeypatch))
    assert found.certainty == "sure"
    (tmp_path / "Makefile").write_text(recipe.format(" ds.json") + "ds.json:\n\t./make\n")
    (found,) = missing(checked(tmp_path, monkeypatch))
    assert found.certainty == "open"


def test_no_engine_comes_from_a_config_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = checked(tmp_path, monkeypatch, run_sh="deepspeed --num_gpus 2 train.py --deepspeed ds.json")
    (judged,) = result.runs
    assert (judged.estimate, judged.plan, str(judged.verdict)) == (None, None, "unknown")
    assert judged.run.unknown == ("the DeepSpeed config (ds.json, which was not found)",)
    for name in ("engine", "zero_stage", "offload_optimizer", "offload_param"):
        assert judged.run.value(name) is None
    assert [(each.rule, str(each.severity)) for each in result.findings] == [("missing-file", "error")]


def test_a_config_that_cannot_be_parsed_gives_no_engine_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"run_sh": "deepspeed --num_gpus 2 train.py --deepspeed ds.json", "ds_json": '{"zero_optimization": {'}
    result = checked(tmp_path, monkeypatch, **files)
    (judged,) = result.runs
    assert judged.estimate is None
    assert judged.run.unknown == ("the DeepSpeed config (ds.json, which cannot be parsed)",)
    assert [each.rule for each in result.findings] == ["invalid-json"]


def test_without_its_script_a_launch_opens_no_other_file_and_one_cause_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    for launch in ("deepspeed nope.py --deepspeed ds.json\n", "torchrun /opt/a.py\ntorchrun /opt/a.py --lr 1\n"):
        result = checked(tmp_path, monkeypatch, run_sh=launch)
        said.append(
            [(each.rule, str(each.severity)) for each in result.findings if each.place.document.path.stem == "run"]
        )
    assert said == [[("missing-file", "error")], [("missing-file", "info")]]


@pytest.mark.parametrize(
    ("name", "there", "meant"),
    [
        ("trian.py", "train.py", "train.py"),
        ("nope.py", "train.py", None),
        ("train_it.py", "src__train_it_py", "src/train_it.py"),
        ("src/train_it.py", "train_it_py", "train_it.py"),
        ("src/train_it.py", "src__trainit_py", "src/trainit.py"),
    ],
)
def test_what_was_meant(
    name: str, there: str, meant: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = checked(tmp_path, monkeypatch, run_sh=f"torchrun {name}\n", **{there: TRAIN})
    (found,) = missing(result)
    below = meant is not None and meant.endswith(f"/{name}")
    assert (found.certainty, found.meant) == ("elsewhere" if below else "sure", meant)


def test_a_file_of_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        "import argparse\n"
        'parser = argparse.ArgumentParser(fromfile_prefix_chars="@")\n'
        'parser.add_argument("--lr", type=float)\n'
        "args = parser.parse_args()\n"
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")\n'
        'Trainer(model=model, args=TrainingArguments("out", learning_rate=args.lr)).train()\n'
    )
    (found,) = missing(checked(tmp_path, monkeypatch, run_sh="torchrun tune.py @args.txt\n", tune_py=script))
    assert (found.what, found.name, found.certainty) == ("the file of arguments", "args.txt", "sure")


def test_data_is_no_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = TRAIN.replace("Trainer(", "import json\nrows = json.load(open(args.output_dir))\nTrainer(", 1)
    launch = "torchrun tune.py --output_dir data.json\npython -m package.train --lr 1\n"
    assert missing(checked(tmp_path, monkeypatch, run_sh=launch, tune_py=script)) == []


def test_a_module_is_found_where_a_cd_of_another_machine_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "scripts__run_sh": "cd /home/me/project/src\ntorchrun --nproc_per_node 2 -m sft.train --output_dir out\n",
        "src__sft__train_py": TRAIN,
    }
    result = checked(tmp_path, monkeypatch, **files)
    (run,) = (each.run for each in result.runs if each.run.launch is not None)
    assert run.settings["model"].value == "meta-llama/Llama-2-7b-hf"


def test_a_script_may_lie_in_a_submodule_that_is_not_here(tmp_path: Path) -> None:
    (tmp_path / ".gitmodules").write_text('[submodule "LLaVA"]\n\tpath = LLaVA\n\turl = https://example.org/LLaVA\n')
    (tmp_path / "run.sh").write_text("deepspeed llava/train/run.py --bf16 True\n")
    assert [(each["rule"], each["severity"]) for each in lintfit(
        "check", ".", "--output-format", "json", "--select", "missing-file", cwd=tmp_path
    ).json["findings"]] == [("missing-file", "info")]  # fmt: skip
    (tmp_path / "LLaVA").mkdir()
    (tmp_path / "LLaVA" / "setup.py").write_text("")
    assert [each["severity"] for each in lintfit(
        "check", ".", "--output-format", "json", "--select", "missing-file", cwd=tmp_path
    ).json["findings"]] == ["error"]  # fmt: skip


@pytest.mark.parametrize(("told", "certainty"), [("other", "elsewhere"), ("else", "sure")])
def test_a_folder_that_a_page_has_cloned_before_may_hold_it(
    told: str, certainty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = f"First:\n```bash\ngit clone https://github.com/a/{told}.git\n```\n"
    (tmp_path / "README.md").write_text(page)
    assert certainties(tmp_path, monkeypatch, "deepspeed ./other/train/run.py --lr 1") == [certainty]


@pytest.mark.parametrize(
    ("launch", "files", "certainty"),
    [
        ("deepspeed llava/train/train_mem.py --bf16 True", {}, "elsewhere"),
        ("deepspeed llava/train/train_mem.py --bf16 True", {"llava__train__other_py": ""}, "sure"),
        ("torchrun run_clm_sft_with_peft.py --fp16", {}, "elsewhere"),
        ("torchrun run_mine_with_peft.py --fp16", {}, "sure"),
    ],
)
def test_a_script_of_a_project_that_launches_are_copied_from(
    launch: str, files: dict[str, str], certainty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert certainties(tmp_path, monkeypatch, launch, **files) == [certainty]


@pytest.mark.parametrize(
    ("told", "certainty"),
    [
        ("- Copy scripts from `./finetune` directory to your checkout of MiniCPM", "elsewhere"),
        ("Copy everything in finetune/ into the other repository.", "elsewhere"),
        ("Copy your data to the folder `data`, then run what is in `finetune`.", "sure"),
        ("# Copy the scripts of finetune to a checkout", "sure"),
        ("Run the scripts in `./finetune`", "sure"),
    ],
)
def test_a_folder_that_a_page_says_to_copy_elsewhere(
    told: str, certainty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "README.md").write_text(f"{told}\n")
    result = checked(tmp_path, monkeypatch, finetune__run_sh="deepspeed mine.py", finetune__other_py="")
    assert [each.certainty for each in missing(result)] == [certainty]


@pytest.mark.parametrize(
    ("command", "certainty"),
    [
        ("accelerate config --config_file configs/ds.json", "elsewhere"),
        ("$ accelerate config --config_file=./configs/ds.json", "elsewhere"),
        ("cp configs/base.json configs/ds.json", "elsewhere"),
        ("cp other/ds.json configs/", "elsewhere"),
        ("cd x && mv base.json ../configs/ds.json", "elsewhere"),
        ("jq . base.json > configs/ds.json", "elsewhere"),
        ("jq . base.json | tee configs/ds.json", "elsewhere"),
        ("wget -O configs/ds.json https://example.com/a", "elsewhere"),
        ("accelerate launch --config_file configs/ds.json eval.py", "sure"),
        ("accelerate config --config_file configs/other.json; cat configs/ds.json", "sure"),
        ("cp configs/ds.json configs/backup.json", "sure"),
        ("cp configs/base.json other/ds.json", "sure"),
        ("> configs/ds.json is the config", "sure"),
    ],
)
def test_a_file_that_a_page_has_the_user_make(
    command: str, certainty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "README.md").write_text(f"First:\n```bash\n{command}\n```\n")
    assert certainties(tmp_path, monkeypatch, "deepspeed train.py --deepspeed configs/ds.json") == [certainty]


@pytest.mark.parametrize(
    ("name", "certainty"),
    [
        ("run_example.sh", "elsewhere"),
        ("slurm-template.sbatch", "elsewhere"),
        ("train.sample.sh", "elsewhere"),
        ("examples/run.sh", "sure"),
        ("run_samples.sh", "sure"),
        ("run_sample.sh", "sure"),
    ],
)
def test_a_launch_in_a_file_that_is_called_an_example(
    name: str, certainty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/bash\ndeepspeed train.py --deepspeed ds.json\n")
    assert [each.certainty for each in missing(checked(tmp_path, monkeypatch))] == [certainty]


@pytest.mark.parametrize(
    ("model", "project", "certainty"),
    [
        ("[!!!add the model path here!!!]", "own", "elsewhere"),
        ("path/to/model", "own", "elsewhere"),
        ("Qwen/Qwen2.5-0.5B-Instruct", "own", "sure"),
        ("Qwen/Qwen2.5-0.5B-Instruct", "your_project", "sure"),
    ],
)
def test_a_recipe_whose_model_is_to_be_filled_in(
    model: str, project: str, certainty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "recipe.yaml").write_text(
        f"model_name_or_path: {model}\nstage: sft\ndo_train: true\nfinetuning_type: full\ndataset: identity\n"
        f"template: qwen\noutput_dir: out\ndeepspeed: configs/ds_z3.json\nswanlab_project: {project}\n"
    )
    launch = "llamafactory-cli train recipe.yaml"
    assert certainties(tmp_path, monkeypatch, launch) == [certainty]


LLAMA_FACTORY = (
    "deepspeed src/train.py --do_train --stage sft --finetuning_type full --template qwen --deepspeed ds.json{}"
)


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ("", "the DeepSpeed config, ds.json,"),
        (" --cutof_len 2048", "the DeepSpeed config, ds.json,"),
        (" --sequence_parallel_size 8", "the script that is launched, src/train.py,"),
    ],
)
def test_what_a_launch_of_a_front_ends_script_names_lies_in_its_checkout(
    more: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = checked(tmp_path, monkeypatch, train_py="", run_sh=LLAMA_FACTORY.format(more))
    (found,) = (each for each in result.findings if each.rule == "missing-file")
    assert (str(found.severity), found.message.startswith(f"{what} is not among these files")) == ("info", True)
