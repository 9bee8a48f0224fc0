"""What a project's own files say of the libraries' versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.commands.check import load_runs
from lintfit.options.model import Options
from lintfit.run.requirements import asked_near
from lintfit.versions import before, concrete


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
        ("pyproject.toml", 'dependencies = ["transformers[torch]>=4.51.1", "trl<=0.9.6"]\n',
         {"transformers>=": "4.51.1", "trl": "0.9.6"}),
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
