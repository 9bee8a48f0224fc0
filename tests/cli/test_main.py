"""Commands, exit statuses, where each output goes, and what a wrong command line gets."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lintfit import __main__, __version__
from lintfit.commands import check as engine
from lintfit.errors import LintfitError
from lintfit.findings.model import Severity
from lintfit.findings.results import CheckResult
from lintfit.options.model import Options
from tests.report import samples
from tests.report.samples import Story
from tests.support import ROOT, Outcome, forget, lintfit, process

Run = Callable[..., Outcome]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs lintfit in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    forget()
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "LINTFIT_DEBUG"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["lintfit", *arguments])
        status = __main__.run()
        out, err = capsys.readouterr()
        return Outcome(status, out, err)

    return call


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Callable[[CheckResult], list[Options]]:
    """Makes the engine find this; gives the options that it was asked with."""

    def set_result(result: CheckResult) -> list[Options]:
        asked: list[Options] = []

        def check(paths: object, options: Options, *_: object) -> CheckResult:
            asked.append(options)
            return result

        monkeypatch.setattr(engine, "check", check)
        return asked

    return set_result


def of_severity(*severities: Severity) -> CheckResult:
    base = replace(Story().remark(), fix=None)
    return CheckResult(findings=tuple(replace(base, severity=severity) for severity in severities))


E, W, I = Severity.ERROR, Severity.WARNING, Severity.INFO  # noqa: E741


@pytest.mark.parametrize(
    ("severities", "flags", "status"),
    [
        ((), (), 0),
        ((I,), (), 0),
        ((W,), (), 1),
        ((E,), (), 1),
        ((I, W), ("--fail-on", "error"), 0),
        ((E,), ("--fail-on", "error"), 1),
        ((I,), ("--fail-on", "info"), 1),
        ((E,), ("--exit-zero",), 0),
    ],
)
def test_status(run: Run, found: Any, severities: tuple[Severity, ...], flags: tuple[str, ...], status: int) -> None:
    found(of_severity(*severities))
    assert run("check", *flags).status == status


def test_status_of_a_config(run: Run, found: Any) -> None:
    found(of_severity(W))
    Path("lintfit.toml").write_text('fail-on = "error"\n')
    assert run("check").status == 0
    forget()
    assert run("check", "--isolated").status == 1
    assert run("check", "--fail-on", "warning").status == 1


def test_a_file_that_cannot_be_read_is_2(run: Run, found: Any) -> None:
    found(replace(of_severity(E), errors=("x.json: no such file",)))
    outcome = run("check", "x.json", "--exit-zero")
    assert (outcome.status, outcome.err) == (2, "lintfit: x.json: no such file\n")
    assert "1 error. 0 files read" in outcome.out


def test_status_after_fixing(run: Run, found: Any) -> None:
    asked = found(CheckResult(fixed=(Story().typo(),)))
    assert run("check", "--fix").status == 0
    assert run("check", "--fix", "--exit-non-zero-on-fix").status == 1
    assert asked[0].fix and not asked[0].unsafe_fixes


def test_the_diff_has_standard_output_for_itself(run: Run, found: Any) -> None:
    diff = "--- ds.json\n+++ ds.json\n@@ -1 +1 @@\n-a\n+b\n"
    found(replace(of_severity(I), fixed=(Story().typo(),), diff=diff))
    outcome = run("check", "--diff", "--output-format", "concise")
    assert (outcome.status, outcome.out) == (1, diff)
    assert outcome.err == (
        "run.sh:1:27: info launch-remark (LF999) eight processes\nWould fix 1 finding. All checks passed (1 info).\n"
    )
    found(CheckResult())
    assert run("check", "--diff") == Outcome(0, "", "Nothing was judged. 0 files read, none skipped.\n")


def test_fixed_standard_input_goes_to_standard_output(run: Run, found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = found(CheckResult(fixed=(Story().typo(),), fixed_stdin='{"a": 1}'))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"a":1}')))
    outcome = run("check", "-", "--stdin-filename", "ds.json", "--fix")
    assert outcome.out == '{"a": 1}'
    assert "Fixed 1 finding. All checks passed." in outcome.err
    assert (asked[0].stdin, asked[0].stdin_filename) == (b'{"a":1}', Path("ds.json"))


def test_what_would_change_in_standard_input_is_a_diff(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b'{"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    outcome = run("check", "-", "--stdin-filename", "ds.json", "--diff", "--isolated")
    assert outcome.status == 1
    assert outcome.out == (
        f'--- ds.json\n+++ ds.json\n@@ -1 +1 @@\n-{text.decode()}+{{"zero_optimization": {{"stage": 2}}}}\n'
    )


def test_several_outputs(run: Run, found: Any) -> None:
    found(Story().result())
    outcome = run("check", "--output-format", "concise", "--output-format", "json:out.json")
    assert outcome.out.startswith("ds.json:4:5: warning unknown-key")
    assert json.loads(Path("out.json").read_text())["summary"]["errors"] == 2


def test_flags_reach_the_engine(run: Run, found: Any) -> None:
    asked = found(CheckResult())
    run(
        *("check", "a.py", "--gpu", "RTX 3090", "--gpus", "8", "--nodes", "2", "--gpu-memory", "23.7GiB"),
        *("--host-memory", "256GiB", "--model", "Qwen/Qwen2.5-7B", "--seq-len", "4096", "--exclude", "build,dist"),
    )
    (options,) = asked
    assert (options.gpu, options.gpus, options.nodes, options.seq_len) == ("RTX 3090", 8, 2, 4096)
    assert options.host_memory_bytes == 256 * 2**30
    assert [glob.pattern for glob in options.exclude] == ["build", "dist"]
    assert options.origins["gpus"] == "--gpus"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check", "--fx"), "No such option"),
        (("chek",), "No such command 'chek'"),
        (("check", "--gpus", "0"), "--gpus 0: expected a whole number of 1 or more"),
        (("check", "--gpu-memory", "12XB"), '--gpu-memory 12XB: expected a size such as "23.7GiB"'),
        (("check", "--output-format", "jsn"), 'no format "jsn"; did you mean "json"?'),
        (("check", "--output-format", "json:/nowhere/x.json"), "expected a file in a folder that exists"),
        (("check", "--output-format", "json", "--output-format", "text"), "only one format can go to standard output"),
        (("check", "--select", "no-such-rule-at-all"), 'rules that exist, and "no-such-rule-at-all" is none'),
        (("check", "--fail-on", "fatal"), '--fail-on fatal: expected "error", "warning", "info" or "unknown"'),
        (("check", "-"), "say with --stdin-filename what it is"),
        (("estimate", "--spec", "/no/such/file"), "/no/such/file: cannot be read: No such file or directory"),
        (("estimate", "--spec", "x.json", "--gpus", "2"), "--gpus cannot stand next to it"),
        (("fit", "a.py", "--zero-stage", "2"), "--zero-stage describes a run"),
        (("rule", "invalid-jsno"), 'there is no rule "invalid-jsno"; did you mean "invalid-json"?'),
        (("schema", "hf"), "'hf' is not one of 'deepspeed', 'accelerate'"),
    ],
)
def test_bad_usage_is_one_line_and_2(run: Run, arguments: tuple[str, ...], message: str) -> None:
    outcome = run(*arguments)
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err.startswith("lintfit: ")
    assert outcome.err.count("\n") == 1
    assert message in outcome.err


def test_an_unexpected_error_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(*_: object) -> CheckResult:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(engine, "check", check)
    outcome = run("check")
    assert outcome.status == 2
    assert outcome.err.startswith("lintfit: internal error: RuntimeError: two lines; please report it")
    monkeypatch.setenv("LINTFIT_DEBUG", "1")
    with pytest.raises(RuntimeError):
        run("check")


def test_an_interrupt_is_quiet(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(*_: object) -> CheckResult:
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "check", check)
    outcome = run("check")
    assert (outcome.status, outcome.out, outcome.err.strip()) == (130, "", "")


def test_errors_for_the_user_are_not_internal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(*_: object) -> CheckResult:
        raise LintfitError("ds.json: no permission")

    monkeypatch.setattr(engine, "check", check)
    assert run("check") == Outcome(2, "", "lintfit: ds.json: no permission\n")


@pytest.mark.parametrize(
    ("flags", "environment", "coloured"),
    [
        ((), {}, False),
        (("--color", "always"), {}, True),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
        ((), {"FORCE_COLOR": "1"}, True),
        ((), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (("--color", "never"), {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colour(
    run: Run,
    found: Any,
    monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str, ...],
    environment: dict[str, str],
    coloured: bool,
) -> None:
    found(Story().result())
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in run("check", *flags).out) is coloured


def test_version_and_help(run: Run) -> None:
    assert run("--version") == Outcome(0, f"lintfit {__version__}\n", "")
    assert "--unsafe-fixes" in run("check", "--help").out
    assert run().status == 2


def test_rule_lists_and_explains(run: Run) -> None:
    assert "LF001  error    [*]  invalid-json" in run("rule").out
    page = run("rule", "lf001").out
    assert page.startswith("# invalid-json (LF001)\n")
    assert "## Why is this bad?" in page
    assert "## Cases" not in page
    assert "\x1b[" in run("rule", "invalid-json", "--color", "always").out


@pytest.mark.parametrize("name", ["deepspeed", "accelerate"])
def test_schema_is_json(run: Run, name: str) -> None:
    assert json.loads(run("schema", name).out)["$schema"].startswith("https:")


def python(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_a_check_of_one_json_loads_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}, "bf16": {"enabled": "auto"}}')
    done = python("-X", "importtime", "-m", "lintfit", "check", "ds.json", folder=tmp_path)
    modules = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "lintfit" in modules
    assert modules.isdisjoint({"rich", "libcst", "ruamel", "tree_sitter", "tree_sitter_bash", "jsonschema"})
    assert "packaging" not in modules


def test_jsonschema_is_loaded_for_a_value_that_is_in_doubt(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 7}}')
    done = python("-X", "importtime", "-m", "lintfit", "check", "ds.json", folder=tmp_path)
    assert "invalid-value" in done.stdout
    assert "jsonschema" in done.stderr


def test_a_check_of_a_recipe_reads_no_python(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("litgpt finetune_lora meta-llama/Llama-2-7b-hf --precision 32-true\n")
    done = python("-X", "importtime", "-m", "lintfit", "check", "run.sh", "--gpu", "RTX 3090", folder=tmp_path)
    modules = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "full-precision-training" in done.stdout
    assert "libcst" not in modules


def test_a_check_of_a_script_makes_no_matchers(tmp_path: Path) -> None:
    """``libcst.matchers`` writes 500 classes when it is loaded, which takes longer than most checks."""
    (tmp_path / "train.py").write_text("from transformers import Trainer\nTrainer(model='m').train()\n")
    done = python("-X", "importtime", "-m", "lintfit", "check", "train.py", folder=tmp_path)
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "libcst" in modules
    assert modules.isdisjoint({"libcst.matchers", "libcst.codemod", "rich", "jsonschema"})


def test_an_estimate_of_a_spec_loads_no_parser_of_flags(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text('{"model": "gpt2", "gpu": "A100"}')
    done = python("-X", "importtime", "-m", "lintfit", "estimate", "--spec", "spec.json", folder=tmp_path)
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "lintfit.memory.estimator" in modules
    assert modules.isdisjoint({"click", "dataclasses", "inspect", "torch", "numpy", "packaging"})


@pytest.mark.parametrize(
    "content",
    ['{"model": "gpt2"}', '[{"model": "gpt2"}, {"model": "gpt2", "a": 1}, 3]', "[", "", '{"model": "no-such-model"}'],
)
def test_both_ways_to_a_spec_print_the_same(tmp_path: Path, content: str) -> None:
    (tmp_path / "spec.json").write_text(content)
    short = lintfit("estimate", "--spec", "spec.json", cwd=tmp_path)
    assert short == lintfit("estimate", "--spec=spec.json", cwd=tmp_path)


def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text("{")
    process = subprocess.Popen(
        [sys.executable, "-m", "lintfit", "rule"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's devices")
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("rule > /dev/full", "standard output: cannot be written: No space left on device"),
        ("estimate --model gpt2 > /dev/full", "standard output: cannot be written: No space left on device"),
        ("rule >&-", "standard output: cannot be written: it is closed"),
        ("check --stdin-filename ds.json <&-", "standard input: cannot be read: it is closed"),
        ("estimate --spec - <&-", "standard input: cannot be read: it is closed"),
        ("check nothing.json 2>&-", ""),
        ("estimate nothing.json 2>&-", ""),
        ("estimate --model nothing 2>&-", ""),
    ],
)
def test_streams_that_are_full_or_closed(tmp_path: Path, command: str, said: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m lintfit {command}'],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, f"lintfit: {said}\n" if said else "")
    assert "no such file" not in done.stdout and "not known" not in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="the working directory of a process cannot be removed there")
def test_a_working_directory_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    command = f'rmdir ../gone && "{sys.executable}" -m lintfit check'
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path / "gone", env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "lintfit: the working directory: no such file or directory; change to one that exists\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal_there_are_colours_and_its_width(tmp_path: Path) -> None:
    import pty

    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}, "gradient_clipp1ng": 1.0}')
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    environment |= {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "COLUMNS": "70", "LINES": "24"}
    command = [sys.executable, "-m", "lintfit", "check", "--isolated", "ds.json"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 4096):
            shown += chunk
    except OSError:
        pass  # Linux says so when the other side has closed
    _, error = process.communicate()
    os.close(ours)
    assert (process.returncode, error) == (1, b"")
    assert b"\x1b[" in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown.decode())
    assert "gradient_clipping" in " ".join(plain.split())
    assert max(map(len, plain.splitlines())) <= 70


def test_a_pipe_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}, "名前": 2}')
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "lintfit", "check", "ds.json"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert done.stderr == b""
    assert done.stdout.isascii()
    assert done.returncode == 1


def test_a_real_check(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}')
    outcome = process("check", "ds.json", "--output-format", "concise", cwd=tmp_path)
    assert outcome.status == 1
    assert outcome.out.startswith("ds.json:1:")


def test_quiet_result_prints_the_run(run: Run, found: Any) -> None:
    found(samples.quiet_result())
    outcome = run("check")
    last = "1 run: 1 fits. All checks passed. 3 files read, none skipped."
    assert (outcome.status, outcome.out.splitlines()[-1]) == (0, last)
    for flag in ("-q", "--quiet"):
        assert run("check", flag).out == f"{last}\n"
    assert "assumed: sequence length 2048" in run("check", "--verbose").out
