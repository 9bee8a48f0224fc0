"""What the config and the comments make of findings, end to end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import Outcome, lintfit

TEXT = '{\n  "zero_optimization": {"stage": 2},\n  "stage": 1\n}\n'
YAML = "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_processes: 2\nnum_processes: 8\n"


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("conf", "tests"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "ds.json").write_text(TEXT)


def check(*arguments: str, form: str = "concise") -> Outcome:
    return lintfit("check", *arguments, "--output-format", form, cwd=Path.cwd())


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("tests/*", ["conf"]),
        ("tests/**", ["conf"]),
        ("/ds.json", ["conf", "tests"]),
        ("ds.json", []),
        ("*.yaml", ["conf", "tests"]),
    ],
)
@pytest.mark.parametrize("rule", ["unknown-top-level-key", "LF003", "LF0", "all"])
def test_per_file_ignores(pattern: str, left: list[str], rule: str) -> None:
    Path("lintfit.toml").write_text(f'[per-file-ignores]\n"{pattern}" = ["{rule}"]\n')
    outcome = check(".")
    assert [line.split("/")[0] for line in outcome.out.splitlines() if "unknown-top-level-key" in line] == left
    assert outcome.status == bool(left)


def test_per_file_ignores_are_relative_to_their_config() -> None:
    Path("tests/pyproject.toml").write_text('[tool.lintfit.per-file-ignores]\n"/ds.json" = ["LF003"]\n')
    out = check(".").out
    assert "conf/ds.json" in out
    assert "tests/ds.json" not in out


@pytest.mark.parametrize("rule", ["unknown-top-level-key", "LF003", "lf003"])
@pytest.mark.parametrize(("severity", "status"), [("error", 1), ("warning", 1), ("info", 0)])
def test_severity_of_the_config(rule: str, severity: str, status: int) -> None:
    Path("pyproject.toml").write_text(f'[tool.lintfit.severity]\n{rule} = "{severity}"\n')
    outcome = check("conf")
    assert outcome.out.startswith(f"conf/ds.json:3:3: {severity} unknown-top-level-key")
    assert outcome.status == status
    assert (
        lintfit("check", "conf", "--output-format", "json", cwd=Path.cwd()).json["findings"][0]["severity"] == severity
    )
    assert "warning unknown-top-level-key" in check("conf", "--isolated").out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[severity]\nunknown-key = "info"\n',
            'lintfit.toml:1: severity = {"unknown-key": "info"}: expected names or codes',
        ),
        ('severity.LF003 = "fatal"\n', 'lintfit.toml:1: severity = {"LF003": "fatal"}: expected "error", "warning" or'),
        ('severity = "info"\n', 'lintfit.toml:1: severity = "info": expected a table such as {rule-name = "info"}'),
        ('[per-file-ignores]\na = ["LF999"]\n', "lintfit.toml:1: per-file-ignores = "),
        ("baseline = 3\n", "lintfit.toml:1: baseline = 3: expected a text"),
    ],
)
def test_a_wrong_table_gets_one_line(text: str, message: str) -> None:
    Path("lintfit.toml").write_text(text)
    outcome = check("conf")
    assert outcome.status == 2
    assert outcome.err.startswith(f"lintfit: {message}")
    assert outcome.err.count("\n") == 1


def test_the_summary_tells_of_what_is_ignored() -> None:
    Path("a.yaml").write_text(YAML.replace("num_processes: 8", "num_processes: 8  # lintfit: ignore[LF002] both"))
    outcome = check("a.yaml")
    assert outcome == Outcome(
        0, "All other checks passed.\nNot shown: 1 warning ignored by a comment (duplicate-key).\n", ""
    )
    assert check("a.yaml", form="text").out == (
        "Not shown: 1 warning ignored by a comment (duplicate-key).\n\n"
        "1 run: 1 not judged. All other checks passed. 1 file read, none skipped.\n"
    )
    assert lintfit("check", "a.yaml", "--output-format", "json", cwd=Path.cwd()).json["summary"] == {
        "errors": 0,
        "warnings": 0,
        "infos": 0,
        "fixed": 0,
        "ignored": 1,
        "baselined": 0,
        "refused_fixes": 0,
        "runs": {"fits": 0, "tight": 0, "does-not-fit": 0, "unknown": 1},
        "files": 1,
        "skipped": 0,
    }
    assert "warning duplicate-key" in check("a.yaml", "--no-ignores").out


def test_what_is_ignored_is_not_fixed() -> None:
    text = YAML.replace("num_processes: 8", "num_processes: 2  # lintfit: ignore[LF002]")
    json = '{\n  // kept\n  "steps_per_print": 1,\n  "zero_optimization": {"stage": 2},\n  %s"steps_per_print": 1\n}\n'
    Path("a.yaml").write_text(text)
    Path("a.json").write_text(json % "// lintfit: ignore[LF002]\n  ")
    assert "Fixed" not in check("a.yaml", "a.json", "--fix", "--ignore", "invalid-json").out
    assert Path("a.json").read_text() == json % "// lintfit: ignore[LF002]\n  "
    Path("a.json").write_text(json % "")
    assert "Fixed 1 finding" in check("a.json", "--fix", "--ignore", "invalid-json").out


def test_a_rule_that_is_not_selected_does_not_make_its_comment_unused() -> None:
    Path("a.yaml").write_text(YAML.replace("num_processes: 8", "num_processes: 8  # lintfit: ignore[LF002]"))
    assert "unused-ignore" not in check("a.yaml", "--ignore", "duplicate-key").out
    Path("a.yaml").write_text(YAML.replace("num_processes: 8", "use_cpu: false  # lintfit: ignore[LF002]"))
    assert "unused-ignore" in check("a.yaml", "--ignore", "duplicate-key").out


def test_the_verdict_of_a_run_stays_although_its_finding_is_ignored() -> None:
    Path("run.sh").write_text(
        "# lintfit: file-ignore[does-not-fit]\n"
        "torchrun --nproc_per_node 2 train.py --model_name_or_path Qwen/Qwen2.5-7B\n"
    )
    Path("train.py").write_text(
        "from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments\n"
        "from dataclasses import dataclass, field\n\n\n@dataclass\nclass Model:\n"
        "    model_name_or_path: str = field(default='')\n\n\n"
        "own, args = HfArgumentParser((Model, TrainingArguments)).parse_args_into_dataclasses()\n"
        "model = AutoModelForCausalLM.from_pretrained(own.model_name_or_path)\n"
        "Trainer(model=model, args=args).train()\n"
    )
    hardware = ("--gpu", "RTX 3090", "--gpus", "2", "--seq-len", "2048")
    outcome = lintfit("check", "run.sh", *hardware, "--output-format", "json", cwd=Path.cwd())
    assert outcome.json["runs"][0]["verdict"] == "does-not-fit"
    assert outcome.json["summary"]["ignored"] == 1
    assert "does-not-fit" not in {finding["rule"] for finding in outcome.json["findings"]}
    text = check("run.sh", *hardware, form="text").out
    assert "DOES NOT FIT" in text.upper().replace("-", " ")
    assert "1 error ignored by a comment (does-not-fit)" in text
    fits = check("run.sh", "--gpu", "B200", "--gpus", "2", "--seq-len", "128").out
    assert "info unused-ignore" in fits
    assert "unused-ignore" not in check("run.sh").out
