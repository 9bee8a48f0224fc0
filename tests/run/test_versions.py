"""What a project's own files say of the libraries' versions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lintfit.commands.check import load_runs
from lintfit.documents import door
from lintfit.errors import LintfitError
from lintfit.options.config import from_flags
from lintfit.options.model import Options
from lintfit.run import environment, requirements
from lintfit.run.model import Run
from lintfit.run.requirements import asked_near
from lintfit.run.versions import in_words, range_of, versions_of, with_project_of
from lintfit.versions import FORK, before, concrete


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("requirements.txt", "transformers==4.56.1\n", {"transformers": "4.56.1"}),
        ("requirements.txt", "transformers>=5.6.0\n", {"transformers>=": "5.6.0"}),
        ("requirements.txt", "trl>=0.18,<0.20  # tested\n", {"trl": "<0.20", "trl>=": "0.18"}),
        ("requirements.txt", "# transformers==4.30\npeft~=0.15.2\n", {"peft": "<0.16", "peft>=": "0.15.2"}),
        ("requirements.txt", "deepspeed\n", {}),
        ("requirements.txt", "auto-gptq==0.5.1\ngptqmodel==2.0.0\n", {"auto-gptq": "0.5.1", "gptqmodel": "2.0.0"}),
        ("requirements.txt", "auto_gptq<=0.6.0\n", {"auto_gptq": "0.6.0"}),
        ("requirements.txt", "transformers @ git+https://github.com/huggingface/transformers.git@0dcb46e7a4\n",
         {"transformers@": "0dcb46e7a4"}),
        ("requirements.txt", "git+https://github.com/huggingface/peft@v0.4.0\n", {"peft": "0.4.0"}),
        ("requirements.txt", "git+https://github.com/huggingface/transformers.git\n", {}),
        ("install.sh", "pip install transformers==4.51.1\npip3 install -U deepspeed==0.15.1 peft\n",
         {"transformers": "4.51.1", "deepspeed": "0.15.1"}),
        ("setup_env.sh", 'uv add \\\n    "torch>=2.9" \\\n    "trl==1.3.0"\nuv add-on peft==0.1\n',
         {"torch>=": "2.9", "trl": "1.3.0"}),
        ("setup_env.sh", "pip install trl==0.9.6\npip install trl==0.11.0\necho transformers==4.30\n", {}),
        ("README.md", "no trl==0.9.6\n```\npip install transformers==4.28.1 peft\n```\nor `pip install torch==2.1.0`\n",
         {"transformers": "4.28.1", "torch": "2.1.0"}),
        ("README.md", "## Requirements\n```\ntrl=0.11.0\ntransformers>=4.40\n```\n- PyTorch 2.1.0\n* `peft==0.9.0`\n"
         "- deepspeed: 0.14.2\n- accelerate 0.30 or so\n",
         {"trl": "0.11.0", "transformers>=": "4.40", "torch": "2.1.0", "peft": "0.9.0", "deepspeed": "0.14.2"}),
        ("README.md", "- transformers==4.28.1\n- transformers==4.30.2\n- trl 3\n", {}),
        ("README.md", "pip install trl==0.9.6\n- trl==0.7.1\n", {"trl": "0.9.6"}),
        ("Dockerfile", "RUN pip install \\\n    transformers==4.48.0 && echo peft==0.1\n", {"transformers": "4.48.0"}),
        ("Dockerfile", "RUN git clone https://github.com/a/axolotl.git\nRUN git checkout v0.4.0 && pip install -e .\n",
         {"axolotl": "0.4.0"}),
        ("setup.sh", "git clone --depth 1 -b v0.8.3 https://github.com/hiyouga/LLaMA-Factory.git\n",
         {"llamafactory": "0.8.3"}),
        ("README.md", "git clone https://github.com/a/axolotl\ngit clone https://github.com/b/c\ngit checkout 0.4.0\n",
         {}),
        ("Dockerfile", "RUN git clone https://github.com/a/axolotl && git checkout main\n", {}),
        ("pyproject.toml", 'dependencies = ["transformers[torch]>=4.51.1", "trl<=0.9.6"]\n',
         {"transformers>=": "4.51.1", "trl": "0.9.6"}),
        ("pyproject.toml", '[project.optional-dependencies]\nbench = [\n  "transformers>=5", "torch[a]==2.9",\n]\n'
         'train = ["deepspeed==0.12.6"]\n', {"deepspeed": "0.12.6"}),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntransformers = "^4.40"\n',
         {"transformers": "<5", "transformers>=": "4.40"}),
        ("pyproject.toml", '[tool.poetry.dependencies]\npeft = "^0.15"\ntrl = {version = "^0.9.1", extras = ["a"]}\n',
         {"peft": "<0.16", "peft>=": "0.15", "trl": "<0.10", "trl>=": "0.9.1"}),
        ("requirements.txt", "transformers==4.*\ntrl~=0.9\n",
         {"transformers": "<5", "transformers>=": "4", "trl": "<1", "trl>=": "0.9"}),
        ("requirements.txt", "torch==2.1.0+cu118 ; python_version >= '3'\ndeepspeed==0.15.0rc1\n",
         {"torch": "2.1.0", "deepspeed": "0.15.0"}),
        ("requirements.txt", "transformers<5,!=4.50.0,>=4.40,<4.56\n",
         {"transformers": "<4.56", "transformers>=": "4.40"}),
        ("requirements.txt", "torch==1.13.1; python_version < '3.8'\ntorch==2.4.0; python_version >= '3.8'\n",
         {"torch": "2.4.0"}),
        ("requirements.txt", "torch==2.2.0; os_name == 'nt'\ntorch (>=2.3)\n", {"torch>=": "2.3"}),
        ("setup.py", "install_requires=['torch==2.4.0', 'peft==0.13; sys_platform == \"darwin\"', 'trl==0.9.6']\n",
         {"torch": "2.4.0", "trl": "0.9.6"}),
        ("requirements.txt", f"peft=={'9' * 5000}\ntorch>=2.1,>=2.4\n", {"torch>=": "2.4"}),
        ("requirements.txt", "torch==nonsense\ntrl==0.9.6 ; nonsense\n", {"trl": "0.9.6"}),
        ("pyproject.toml", '[tool.poetry]\nname = "trl"\n[tool.poetry.dependencies]\npytorch = "2.0.1"\nextra = "1"\n'
         'deepspeed = "0.12.2"\npeft = {version = "0.7.1", source = "pypi"}\n[tool.other]\ntransformers = "4.36.0"\n',
         {"torch": "2.0.1", "deepspeed": "0.12.2", "peft": "0.7.1"}),
        ("pyproject.toml", '[tool.poetry.group.train.dependencies]\ntrl = "0.7.4"\n', {"trl": "0.7.4"}),
        ("pyproject.toml", """deps = [
            "bitsandbytes>=0.42,<0.43; sys_platform=='darwin'",
            "bitsandbytes>=0.45.2,<0.50; sys_platform=='linux' or sys_platform=='win32'",
        ]""", {"bitsandbytes": "<0.50", "bitsandbytes>=": "0.45.2"}),
        ("setup.py", 'install_requires=["accelerate==1.2.0"]\n', {"accelerate": "1.2.0"}),
        ("environment.yml", "dependencies:\n  - pytorch=2.4.1\n  - pip:\n    - trl==0.12.0\n",
         {"torch": "2.4.1", "trl": "0.12.0"}),
        ("conda-env.yaml", "  - conda-forge::transformers=4.48=py_0\n", {"transformers": "4.48"}),
        ("requirements_train.txt", "deepspeed==0.15.4\n", {"deepspeed": "0.15.4"}),
        ("setup.cfg", "install_requires =\n    peft==0.13.2\n", {"peft": "0.13.2"}),
        ("Pipfile.lock", '{"default": {"trl": {"hashes": [], "version": "==0.12.0"}}}', {"trl": "0.12.0"}),
        ("pdm.lock", 'name = "accelerate"\nversion = "1.2.1"\n', {"accelerate": "1.2.1"}),
        ("uv.lock", '[[package]]\nname = "deepspeed"\nversion = "0.17.5"\n', {"deepspeed": "0.17.5"}),
        ("requirements.lock", "-e file:.\ndeepspeed==0.17.5\n    # via trl\n", {"deepspeed": "0.17.5"}),
        ("requirements-dev.lock", "deepspeed==0.17.5 \\\n    --hash=sha256:0a\n", {"deepspeed": "0.17.5"}),
    ],
)  # fmt: skip
def test_what_a_file_says(tmp_path: Path, name: str, text: str, expected: dict[str, str]) -> None:
    (tmp_path / name).write_text(text)
    found = asked_near(tmp_path / "train.py", tmp_path)
    assert {library: version for library, (version, _) in found.items()} == expected
    assert {Path(file).name for _, file in found.values()} <= {name}


def test_the_nearest_file_wins(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("transformers==4.40.0\n")
    inner = tmp_path / "examples"
    inner.mkdir()
    (inner / "requirements.txt").write_text("transformers==4.50.0\n")
    assert asked_near(inner / "train.py", tmp_path)["transformers"][0] == "4.50.0"


@pytest.mark.parametrize(
    ("version", "bound", "older"),
    [
        ("4.56.1", "5", True),
        ("<5", "5", True),
        ("5.0", "5", False),
        (None, "5", None),
        ("<6", "5", None),
        ("5.0.0.dev0", "5", False),
        ("4.9", "4.10", True),
        ("main", "5", None),
        ("<4.50", "4.50.0", True),
    ],
)
def test_before(version: str | None, bound: str, older: bool | None) -> None:
    assert before(version, bound) is older


def test_a_version_below_a_bound() -> None:
    assert concrete("<5") == "4.99"
    assert concrete("<4.50") == "4.49.99"


@pytest.mark.parametrize(("model", "dtype"), [("Qwen/Qwen-7B", "bf16"), ("baichuan-inc/Baichuan2-7B-Base", "fp32")])
def test_old_models_whose_own_code_chooses_the_dtype(tmp_path: Path, model: str, dtype: str) -> None:
    """modeling_qwen.py casts to bf16 whatever transformers 4 would do; others keep the library's default."""
    (tmp_path / "requirements.txt").write_text("transformers==4.37.2\n")
    (tmp_path / "train.py").write_text(
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        f'model = AutoModelForCausalLM.from_pretrained("{model}", trust_remote_code=True)\n'
        'Trainer(model=model, args=TrainingArguments(output_dir="out")).train()\n'
    )
    _, (result,) = load_runs([tmp_path / "train.py"], Options(isolated=True))
    assert result.run.value("weights_dtype") == dtype


@pytest.mark.parametrize(
    ("requirements", "reentrant", "stated"),
    [
        ("torch==1.13.1\n", True, False),
        ("torch==2.6.0\n", False, False),
        ("torch==1.13.1\ntransformers==5.1.0\n", False, True),
        ("trl==0.12.0\n", True, False),
        ("huggingface_hub==0.27.0\n", True, False),
        ("huggingface-hub>=0.30,<1\n", True, False),
        ("huggingface_hub>=0.30,<2\n", False, False),
    ],
)
def test_defaults_follow_libraries_that_are_too_old_for_transformers_5(
    tmp_path: Path, requirements: str, reentrant: bool, stated: bool
) -> None:
    (tmp_path / "requirements.txt").write_text(requirements)
    (tmp_path / "train.py").write_text(
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        "model = AutoModelForCausalLM.from_pretrained('huggyllama/llama-7b')\n"
        "Trainer(model=model, args=TrainingArguments('out', gradient_checkpointing=True)).train()\n"
    )
    _, (result,) = load_runs([tmp_path], Options())
    assert result.run.settings["use_reentrant"].value is reentrant
    assert result.run.spec is not None
    assert ("transformers" in result.run.spec.versions) is stated


BARE = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("huggyllama/llama-7b")
args = TrainingArguments("out", bf16=True, per_device_train_batch_size=1, gradient_checkpointing=True)
Trainer(model=model, args=args).train()
"""


def _run(folder: Path, text: str = BARE, options: Options | None = None) -> Run:
    (folder / "train.py").write_text(text)
    _, (result,) = load_runs([folder / "train.py"], options if options is not None else Options(isolated=True))
    return result.run


def _install(folder: Path, *names: str) -> None:
    for name in names:
        (folder / "lib" / "python3.11" / "site-packages" / f"{name}.dist-info").mkdir(parents=True)


@pytest.mark.parametrize("name", [".venv", "venv"])
def test_an_environment_beside_the_files_says_what_is_installed(tmp_path: Path, name: str) -> None:
    _install(tmp_path / name, "transformers-4.48.1", "trl-0.15.2", "liger_kernel-0.5.2", "numpy-2.0.0")
    run = _run(tmp_path)
    assert dict(run.versions) == {"transformers": "4.48.1", "trl": "0.15.2", "liger-kernel": "0.5.2"}
    assert run.value("weights_dtype") == "fp32"
    assert in_words(run.versions).startswith("transformers 4.48.1 (") and name in in_words(run.versions)


@pytest.mark.parametrize(
    ("requirements", "expected"),
    [
        ("transformers==5.1.0\n", "5.1.0"),  # a pin wins over what is installed
        ("transformers>=4.40\n", "4.48.1"),
        ("transformers<5\n", "4.48.1"),
        ("transformers>=5\n", None),  # what a bound excludes is another project's
        ("transformers<4.40\n", "<4.40"),
    ],
)
def test_what_is_installed_counts_where_the_project_admits_it(
    tmp_path: Path, requirements: str, expected: str | None
) -> None:
    (tmp_path / "requirements.txt").write_text(requirements)
    _install(tmp_path / ".venv", "transformers-4.48.1")
    assert _run(tmp_path).versions.get("transformers") == expected


def test_the_active_environment_counts_where_it_has_transformers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "without"))
    _install(tmp_path / "without", "accelerate-1.0.0")
    assert dict(_run(tmp_path / "project").versions) == {}
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "active"))
    _install(tmp_path / "active", "transformers-4.57.6")
    found = _run(tmp_path / "project").versions
    assert in_words(found) == "transformers 4.57.6 (VIRTUAL_ENV)"


def test_the_environment_that_lintfit_runs_in_counts_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_own", lambda: {"transformers": "5.1.0", "trl": "1.0.0"})
    (tmp_path / "requirements.txt").write_text("trl==0.24.0\n")
    found = _run(tmp_path).versions
    assert in_words(found) == f"transformers 5.1.0 (installed beside lintfit), trl 0.24.0 ({found.sources['trl']})"


def test_what_the_user_says_wins_and_replaces_a_floor(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("transformers>=5\ndeepspeed==0.15.4\n")
    options = from_flags({"versions": "transformers=4.48.1"}, isolated=True)
    found = _run(tmp_path, options=options).versions
    assert (found["transformers"], found["deepspeed"]) == ("4.48.1", "0.15.4")
    assert "transformers>=" not in found and found.sources["transformers"] == "--versions"


def test_a_flag_adds_to_the_versions_of_the_config(tmp_path: Path) -> None:
    (tmp_path / "lintfit.toml").write_text('[versions]\ntransformers = "4.48.1"\ndeepspeed = "0.16.0"\n')
    found = _run(tmp_path, options=from_flags({"versions": "deepspeed=0.15.4"})).versions
    assert (found["transformers"], found["deepspeed"]) == ("4.48.1", "0.15.4")


@pytest.mark.parametrize("text", ["4.48", "transformers=", "transfomers=4.48.1", "transformers=newest"])
def test_versions_that_nobody_can_mean_are_refused(text: str) -> None:
    with pytest.raises(LintfitError, match="--versions"):
        from_flags({"versions": text})


@pytest.mark.parametrize(
    ("passed", "library", "bound"),
    [
        ('TrainingArguments("out", no_cuda=False)', "transformers", "<5.0.0"),
        ('TrainingArguments("out", evaluation_strategy="no")', "transformers", "<4.57.6"),
        ('TrainingArguments("out", eval_strategy="no")', "transformers>=", "4.41"),
        ('TrainingArguments("out", learning_rate=1e-5)', "transformers", None),
    ],
)
def test_arguments_date_a_script(tmp_path: Path, passed: str, library: str, bound: str | None) -> None:
    text = "\n".join(f"args = {passed}" if line.startswith("args =") else line for line in BARE.splitlines())
    found = _run(tmp_path, text)
    assert found.versions.get(library) == bound
    assert found.value("weights_dtype") == ("fp32" if bound is not None and bound.startswith("<") else "fp16")


@pytest.mark.parametrize(
    ("load", "bound"),
    [
        ("AutoModelForCausalLM.from_pretrained({model}, use_auth_token=True)", "<5.0"),
        ("AutoModelForCausalLM.from_pretrained({model}, token=True)", None),
        (
            "AutoModelForCausalLM.from_pretrained({model}); AutoTokenizer.from_pretrained({model}, use_auth_token=1)",
            None,
        ),
    ],
)
def test_arguments_of_a_models_load_date_a_script(tmp_path: Path, load: str, bound: str | None) -> None:
    model = '"huggyllama/llama-7b"'
    text = BARE.replace(f"AutoModelForCausalLM.from_pretrained({model})", load.format(model=model))
    found = _run(tmp_path, text.replace("import AutoModel", "import AutoTokenizer, AutoModel", 1))
    assert found.versions.get("transformers") == bound


SFT = """\
from datasets import load_dataset
from transformers import AutoModelForCausalLM
from trl import SFTConfig, SFTTrainer

model = AutoModelForCausalLM.from_pretrained("huggyllama/llama-7b")
args = SFTConfig("out", {config})
SFTTrainer(model=model, args=args, train_dataset=load_dataset("imdb", split="train"), {trainer}).train()
"""


@pytest.mark.parametrize(
    ("config", "trainer", "expected"),
    [
        ("max_seq_length=512", "", "<0.20"),
        ("", "tokenizer=tokenizer", "<0.16"),
        ("max_seq_length=512", 'dataset_text_field="text"', "<0.13"),
        ("max_length=512", "processing_class=tokenizer", None),
    ],
)
def test_arguments_of_trl_date_a_script(tmp_path: Path, config: str, trainer: str, expected: str | None) -> None:
    found = _run(tmp_path, SFT.format(config=config, trainer=trainer)).versions
    assert found.get("trl") == expected
    # A TRL of before 0.26 goes with no transformers 5.
    assert found.get("transformers") == ("<5" if expected is not None else None)
    assert found.get("trl>=") == ("0.16" if expected is None else None)


@pytest.mark.parametrize(
    ("imported", "bound"),
    [
        ("from trl import SFTTrainer, DataCollatorForCompletionOnlyLM as Collator\n", "<0.20"),
        ("from trl import (\n    SFTTrainer,\n    setup_chat_format,\n)\n", "<0.26"),
        (
            "from trl import SFTTrainer\ntry:\n    from trl import setup_chat_format\nexcept ImportError:\n    pass\n",
            None,
        ),
    ],
)
def test_imports_date_a_script(tmp_path: Path, imported: str, bound: str | None) -> None:
    text = f'{imported}SFTTrainer(model="gpt2").train()\n'
    assert _run(tmp_path, text).versions.get("trl") == bound


GRPO = """\
from trl import GRPOConfig, GRPOTrainer
{derived}
trainer = {trainer}(model="gpt2", args=GRPOConfig("out"), reward_funcs=[], train_dataset=None)
trainer.train()
"""


@pytest.mark.parametrize(
    ("imported", "bound"),
    [
        ("from peft import LoraConfig, prepare_model_for_int8_training\n", "<5.0"),
        ("from peft import LoraConfig, prepare_model_for_kbit_training\n", None),
        ("from transformers import AdamW\n", "<4.51"),
        ("from transformers import AdamWeightDecay\n", None),
        ("if old:\n    from transformers import AdamW\n", None),
    ],
)
def test_imports_of_names_that_are_gone_date_transformers(tmp_path: Path, imported: str, bound: str | None) -> None:
    text = f'from transformers import Trainer\n{imported}Trainer(model="gpt2").train()\n'
    assert _run(tmp_path, text).versions.get("transformers") == bound


@pytest.mark.parametrize(("trainer", "derived"), [("GRPOTrainer", ""), ("Own", "class Own(GRPOTrainer):\n    pass\n")])
@pytest.mark.parametrize(
    ("locked", "expected"),
    [("0.11.4", {"trl>=": "0.14"}), ("0.15.2", {"trl": "0.15.2"})],
)
def test_a_lock_without_the_scripts_trainer_is_not_what_it_runs_with(
    tmp_path: Path, trainer: str, derived: str, locked: str, expected: dict[str, str]
) -> None:
    (tmp_path / "uv.lock").write_text(f'[[package]]\nname = "trl"\nversion = "{locked}"\n')
    found = _run(tmp_path, GRPO.format(trainer=trainer, derived=derived)).versions
    assert {name: version for name, version in found.items() if name.startswith("trl")} == expected


def test_an_argument_that_the_projects_versions_do_not_take_is_no_date(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("transformers>=5.1\n")
    found = _run(tmp_path, BARE.replace("bf16=True", "bf16=True, no_cuda=False")).versions
    assert dict(found) == {"transformers>=": "5.1"}


@pytest.mark.parametrize("name", ["deepspeed_reqs.txt", "train-requirements.txt", "deps.txt"])
def test_requirements_by_another_name_tell_what_no_file_beside_them_does(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("deepspeed==0.5.10\ntransformers==4.16.2\n", "utf-8")
    (tmp_path / "notes.txt").write_text("peft==0.7.1\n", "utf-8")
    (tmp_path / "requirements.txt").write_text("transformers==4.48\n", "utf-8")
    asked = asked_near(tmp_path / "train.py", tmp_path)
    assert {library: version for library, (version, _) in asked.items()} == {
        "deepspeed": "0.5.10",
        "transformers": "4.48",
    }
    assert requirements.speaks_for(tmp_path / name, tmp_path / "train.py", tmp_path)
    assert not requirements.speaks_for(tmp_path / "notes.txt", tmp_path / "train.py", tmp_path)


def test_an_environment_by_another_name_tells_as_well(tmp_path: Path) -> None:
    pins = "dependencies:\n  - pip:\n      - deepspeed==0.12.6\n"
    (tmp_path / "think_environment.yml").write_text(pins, "utf-8")
    asked = asked_near(tmp_path / "train.py", tmp_path)
    assert {library: version for library, (version, _) in asked.items()} == {"deepspeed": "0.12.6"}


def test_the_images_of_a_project_tell_what_no_file_beside_them_does(tmp_path: Path) -> None:
    for folder, pins in (("cu121", ""), ("cu124", "deepspeed==0.15.0\ntrl==0.9\n"), ("test", "trl==0.8\n")):
        (tmp_path / "docker" / folder).mkdir(parents=True)
        (tmp_path / "docker" / folder / "requirements.txt").write_text(pins + "transformers==4.30\n", "utf-8")
    (tmp_path / "docker/Dockerfile").write_text("RUN pip install peft==0.9.0\n", "utf-8")
    (tmp_path / "requirements.txt").write_text("transformers==4.48\n", "utf-8")
    found = {name: version for name, (version, _) in asked_near(tmp_path / "train.py", tmp_path).items()}
    assert found == {"transformers": "4.48", "deepspeed": "0.15.0", "peft": "0.9.0"}
    beside = tmp_path / "docker/cu124/requirements.txt"
    assert requirements.speaks_for(beside, tmp_path / "train.py", tmp_path)
    assert not requirements.speaks_for(tmp_path / "other/cu124/requirements.txt", tmp_path / "train.py", tmp_path)


def test_folders_that_are_not_there_are_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs" / "requirements.txt").write_text("peft==0.9.0\n", "utf-8")
    asked: list[str] = []
    own = door.matching

    def noted(folder: Path, pattern: str) -> Iterator[Path]:
        asked.append(pattern)
        return own(folder, pattern)

    monkeypatch.setattr(door, "matching", noted)
    assert asked_near(tmp_path / "train.py", tmp_path)["peft"][0] == "0.9.0"
    for first, times in (("docker/", 1), ("setup*/", 1), ("env*/", 7)):
        assert sum(each.startswith(first) for each in asked) == times


@pytest.mark.parametrize("folder", ["env", "envs", "environments", "conda", "deps", "requirements-train", "setup"])
def test_files_of_environments_in_folders_of_their_own_tell_what_is_installed(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "requirements.txt").write_text("deepspeed==0.9.2\ntransformers==5.7.0\ntrl==0.9.6\n", "utf-8")
    (tmp_path / folder / "py310.yml").write_text("dependencies:\n- pytorch=2.1.0\n", "utf-8")
    (tmp_path / "requirements.txt").write_text("transformers>=4.56.0,<5\ntrl<0.12\n", "utf-8")
    found = {name: version for name, (version, _) in asked_near(tmp_path / "train.py", tmp_path).items()}
    assert found == {"deepspeed": "0.9.2", "torch": "2.1.0", "transformers>=": "4.56.0", "trl": "<0.12"}
    for name in ("requirements.txt", "py310.yml"):
        assert requirements.speaks_for(tmp_path / folder / name, tmp_path / "train.py", tmp_path)


def test_a_folder_of_other_things_tells_of_no_environment(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/requirements.txt").write_text("deepspeed==0.9.2\n", "utf-8")
    assert not asked_near(tmp_path / "train.py", tmp_path)
    assert not requirements.speaks_for(tmp_path / "data/requirements.txt", tmp_path / "train.py", tmp_path)


def test_what_the_release_of_axolotl_pins_is_known(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("axolotl[deepspeed]==0.9.0\npeft==0.14.0\n")
    found = versions_of(tmp_path / "r.yml", tmp_path, Options())
    assert (found["axolotl"], found["transformers"], found["peft"]) == ("0.9.0", "4.51.3", "0.14.0")
    assert found.sources["transformers"] == "pinned by axolotl 0.9.0"


def test_a_checkout_of_a_library_states_its_own_version(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "trl"\ndynamic = ["version"]\n')
    (tmp_path / "VERSION").write_text("1.10.0.dev0\n")
    assert asked_near(tmp_path / "x.sh", tmp_path)["trl"][0] == "1.10.0"


def test_a_project_that_is_no_library_states_no_version_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "mine"\nversion = "1.0.0"\n')
    assert asked_near(tmp_path / "x.sh", tmp_path) == {}


@pytest.mark.parametrize(
    "text",
    ["transformers" + " " * 200_000 + "x", "transformers" + "==4.4," * 30_000, "transformers[" * 30_000],
    ids=["blanks", "bounds", "brackets"],
)
def test_requirements_that_take_no_time(text: str) -> None:
    before = time.process_time()
    assert not [match for match in requirements._REQUIREMENT.finditer(text) if len(match["asked"]) < 50]
    assert time.process_time() - before < 5


def test_the_project_of_a_script_speaks_where_that_of_its_launch_is_silent(tmp_path: Path) -> None:
    folder = tmp_path / "part" / "src"
    folder.mkdir(parents=True)
    (tmp_path / "jobs").mkdir()
    (folder / "train.py").write_text(
        "from transformers import AutoModelForCausalLM, Trainer\n"
        'Trainer(model=AutoModelForCausalLM.from_pretrained("gpt2")).train()\n'
    )
    (tmp_path / "jobs" / "run.sh").write_text("python part/src/train.py\n")
    (tmp_path / "requirements.txt").write_text("transformers==4.40.0\n")
    (tmp_path / "part" / "setup.py").write_text('deps = ["trl==0.14.0", "transformers==4.30.0"]\n')
    (result,) = load_runs([tmp_path], Options())[1]
    assert (result.run.versions["transformers"], result.run.versions["trl"]) == ("4.40.0", "0.14.0")


@pytest.mark.parametrize(("root", "expected"), [("deepspeed\n", "0.15.4"), ("deepspeed==0.17.5\n", "0.17.5")])
def test_the_project_of_a_config_speaks_where_those_of_launch_and_script_are_silent(
    root: str, expected: str, tmp_path: Path
) -> None:
    (tmp_path / "train" / "config").mkdir(parents=True)
    (tmp_path / "train" / "config" / "ds.json").write_text('{"zero_optimization": {"stage": 2}}')
    (tmp_path / "train" / "requirements.txt").write_text("deepspeed==0.15.4\n")
    (tmp_path / "requirements.txt").write_text(root)
    (tmp_path / "train.py").write_text(
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        'args = TrainingArguments("out", deepspeed="train/config/ds.json")\n'
        'Trainer(AutoModelForCausalLM.from_pretrained("gpt2"), args).train()\n'
    )
    (tmp_path / "run.sh").write_text("deepspeed train.py\n")
    (result,) = load_runs([tmp_path], Options())[1]
    assert result.run.versions["deepspeed"] == expected


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("transformers==4.48.2", "<0.18"),
        ("transformers==4.50.0", "<0.19"),
        ("transformers<4.47", "<0.18"),
        ("transformers==4.57.1", None),
        ("transformers==4.30.2\ntrl @ git+https://github.com/huggingface/trl.git@019fc6dbaa", "<0.7.5"),
        ("transformers==4.48.2\ntrl==0.19.1", "0.19.1"),
        ("transformers==4.48.2\ntrl>=0.16", "<0.18"),
        ("transformers==4.48.2\ntrl>=0.20", None),
        ("transformers==4.48.2\ntrl<0.12", "<0.12"),
        ("transformers==4.48.2\ntrl<0.22", "<0.18"),
    ],
)
def test_trl_is_no_newer_than_the_transformers_that_it_asks_for(
    tmp_path: Path, asked: str, expected: str | None
) -> None:
    (tmp_path / "requirements.txt").write_text(asked + "\n", "utf-8")
    assert versions_of(tmp_path / "run.sh", tmp_path, Options()).get("trl") == expected


def test_what_follows_from_others_gives_way_to_what_a_file_says(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("transformers==4.48.2\n", "utf-8")
    (tmp_path / "src").mkdir()
    (tmp_path / "src/requirements.txt").write_text("trl==0.14.0\n", "utf-8")
    found = with_project_of(tmp_path / "src/train.py", tmp_path, versions_of(tmp_path / "run.sh", tmp_path, Options()))
    assert (found["transformers"], found["trl"]) == ("4.48.2", "0.14.0")


PREFERENCES = """\
from datasets import load_dataset
from transformers import AutoModelForCausalLM, TrainingArguments
from trl import DPOConfig, DPOTrainer

model = AutoModelForCausalLM.from_pretrained("huggyllama/llama-7b")
DPOTrainer(model, args={made}("out"), train_dataset=load_dataset("imdb", split="train"){passed}).train()
"""


@pytest.mark.parametrize(
    ("made", "passed", "trl", "transformers"),
    [
        ("TrainingArguments", "", "<0.9", "<4.46"),
        ("TrainingArguments", ", beta=0.1", "<0.9", "<4.46"),
        ("DPOConfig", ", beta=0.1", "<0.13", "<5"),
        ("DPOConfig", "", None, None),
    ],
)
def test_a_trainer_of_an_old_trl_goes_with_no_new_transformers(
    tmp_path: Path, made: str, passed: str, trl: str | None, transformers: str | None
) -> None:
    found = _run(tmp_path, PREFERENCES.format(made=made, passed=passed)).versions
    assert (found.get("trl"), found.get("transformers")) == (trl, transformers)


def test_a_bound_of_transformers_beyond_5_gives_way_to_an_old_trl(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("transformers<6\ntrl==0.11.0\n", "utf-8")
    assert versions_of(tmp_path / "run.sh", tmp_path, Options())["transformers"] == "<5"


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({}, ""),
        ({"transformers": "4.48.1", "transformers>=": "4.40"}, "4.48.1"),
        ({"transformers": "<5"}, "before 5"),
        ({"transformers>=": "5.1.0"}, "5.1.0 or later"),
        ({"transformers": "<5.18.0", "transformers>=": "5.1.0"}, "5.1.0 or later, before 5.18.0"),
    ],
)
def test_a_range_is_told_by_both_its_ends(known: dict[str, str], words: str) -> None:
    assert range_of(known, "transformers") == words


def test_files_that_pin_different_versions_tell_of_none(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("transformers==4.34.0\npeft==0.9.0\n")
    (tmp_path / "requirements-qwen3.txt").write_text("transformers==4.51.3\npeft==0.9.0\n")
    found = versions_of(tmp_path / "train.py", tmp_path, Options())
    assert "transformers" not in found and found["peft"] == "0.9.0"


@pytest.mark.parametrize("second", ["requirements2.txt", "requirements-falcon.txt", "falcon_requirements.txt"])
def test_a_second_list_pins_nothing_that_the_main_one_leaves_open(tmp_path: Path, second: str) -> None:
    (tmp_path / "requirements.txt").write_text("bitsandbytes\ntransformers>=4.28.0\npeft==0.3.0\n")
    (tmp_path / second).write_text("bitsandbytes==0.39.0\ntransformers==4.30.0\npeft==0.3.0\naccelerate==0.20.0\n")
    found = versions_of(tmp_path / "train.py", tmp_path, Options())
    assert "bitsandbytes" not in found and "transformers" not in found
    assert found["transformers>="] == "4.28.0"
    assert (found["peft"], found["accelerate"]) == ("0.3.0", "0.20.0")


@pytest.mark.parametrize(
    ("second", "beside", "text"),
    [
        ("requirements2.txt", "setup.sh", "pip install -r requirements2.txt"),
        ("requirements2.txt", "README.md", "Then `pip install -r requirements2.txt`."),
        ("requirements-train.txt", "README.md", ""),
        ("requirements_exact.txt", "README.md", ""),
        ("constraints.txt", "README.md", ""),
    ],
)
def test_a_second_list_that_is_installed_pins(tmp_path: Path, second: str, beside: str, text: str) -> None:
    (tmp_path / "requirements.txt").write_text("bitsandbytes\n")
    (tmp_path / second).write_text("bitsandbytes==0.39.0\n")
    (tmp_path / beside).write_text(text)
    assert versions_of(tmp_path / "train.py", tmp_path, Options())["bitsandbytes"] == "0.39.0"


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"transformers=={index}; {'(' * 40}python_version>'3'{')' * 40}\n" for index in range(1000)),
        ", ".join(f"'transformers=={index}; {'(' * 9}python_version>{chr(39) * 2}'" for index in range(20_000)),
        "[" + '"transformers>=4",' * 20_000 + "]",
    ],
    ids=["brackets", "quotes", "one line"],
)
def test_requirements_without_end_take_little_time(text: str) -> None:
    begun = time.process_time()
    assert requirements.asked_in(text)
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    ("line", "holds"),
    [
        ("transformers==4.40.0; (sys_platform == 'win32')", False),
        ("transformers==4.40.0 ; python_version >= '3.9' and (os_name == 'nt' or sys_platform == \"darwin\")", False),
        ("transformers==4.40.0; sys_platform not in 'linux, darwin'", False),
        ("transformers==4.40.0; 'linux' in sys_platform", True),
        ("install_requires=(\"transformers==4.40.0; sys_platform=='win32'\")", False),
        ("(transformers==4.40.0; sys_platform=='win32')", False),
        ("\"transformers==4.40.0; sys_platform=='linux'\", \"torch; sys_platform=='win32'\"", True),
        ("transformers==4.40.0; echo 'done'", True),
        ("transformers==4.40.0; no_name == 'x'", True),
    ],
)
def test_where_a_marker_ends(line: str, holds: bool) -> None:
    assert ("transformers" in requirements.asked_in(line)) is holds


@pytest.mark.parametrize(
    ("text", "forks"),
    [
        ("git+https://github.com/somebody/transformers.git\n", {"transformers"}),
        ("deepspeed @ git+ssh://git@github.com/somebody/DeepSpeed@v0.9.1\n", {"deepspeed"}),
        (
            "-e ./transformers\n./LLaMA-Factory\n--editable third_party/trl[vllm]\n",
            {"transformers", "llamafactory", "trl"},
        ),
        ("git+https://github.com/huggingface/transformers\ngit+https://github.com/microsoft/DeepSpeed\n", set()),
        ("git+https://github.com/somebody/transformers-interpret\n-e .\n-r data/transformers\n", set()),
    ],
)
def test_what_is_taken_from_a_fork(text: str, forks: set[str]) -> None:
    assert {name.removesuffix(FORK) for name in requirements.asked_in(text) if name.endswith(FORK)} == forks


@pytest.mark.parametrize(
    ("readme", "fork"),
    [
        ("    pip install -e ./axolotl\n", True),
        ("    git clone https://github.com/axolotl-ai-cloud/axolotl.git\n    pip install -e ./axolotl\n", False),
        ("    git clone https://github.com/somebody/axolotl.git\n    pip install -e ./axolotl\n", True),
        ("See ./axolotl\n", False),
    ],
)
def test_a_page_that_installs_a_copy(tmp_path: Path, readme: str, fork: bool) -> None:
    (tmp_path / "README.md").write_text(readme)
    assert ("axolotl" + FORK in asked_near(tmp_path / "train.py", tmp_path)) is fork


def test_a_nearer_file_that_asks_for_a_release_counts_more_than_a_fork(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("git+https://github.com/somebody/transformers\n")
    inner = tmp_path / "sft"
    inner.mkdir()
    (inner / "requirements.txt").write_text("transformers==4.50.0\n")
    assert "transformers" + FORK not in asked_near(inner / "train.py", tmp_path)
    assert "transformers" + FORK in asked_near(tmp_path / "train.py", tmp_path)


OWN_LENGTH = """\
from dataclasses import dataclass

from transformers import HfArgumentParser
from trl import SFTConfig, SFTTrainer


@dataclass
class ScriptArguments:
    {name}: int = 2048


own, args = HfArgumentParser((ScriptArguments, SFTConfig)).parse_args_into_dataclasses()
args.max_seq_length = own.{name}
SFTTrainer(model="Qwen/Qwen2.5-0.5B", args=args, train_dataset=data).train()
"""


@pytest.mark.parametrize(("name", "dated"), [("max_seq_length", None), ("longest", "<0.20")])
def test_a_field_of_the_scripts_own_dataclass_dates_no_library(name: str, dated: str | None, tmp_path: Path) -> None:
    """``SFTConfig.max_seq_length`` is gone since TRL 0.20, and the script's own may be put into its place in any."""
    (tmp_path / "train.py").write_text(OWN_LENGTH.format(name=name))
    (tmp_path / "run.sh").write_text(f"torchrun train.py --output_dir out --{name} 4096\n")
    (judged,) = load_runs([tmp_path / "run.sh"], Options(isolated=True))[1]
    assert judged.run.versions.get("trl") == dated
