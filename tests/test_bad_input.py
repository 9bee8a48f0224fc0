"""Bad input gets one clear line with its place; the other files are still checked; nothing is written; no traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support import Outcome, lintfit

GOOD = b'{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}\n'
RULE_OF_GOOD = "key-inactive-at-stage"


def _check(folder: Path, *names: str) -> Outcome:
    (folder / "good.json").write_bytes(GOOD)
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file() and os.access(path, os.R_OK)}
    outcome = lintfit(
        "check", "--output-format", "concise", "--isolated", "--fix", "--diff", *names, "good.json", cwd=folder
    )
    assert "Traceback" not in outcome.out + outcome.err
    assert RULE_OF_GOOD in outcome.out or "offload_param" in outcome.out, "the other file is still checked"
    after = {path: path.read_bytes() for path in folder.iterdir() if path.is_file() and os.access(path, os.R_OK)}
    assert after == before
    return outcome


def _lines_about(outcome: Outcome, name: str) -> list[str]:
    lines = (outcome.out + outcome.err).splitlines()
    return [line for line in lines if name in line and not line.startswith(("---", "+++"))]


UNREADABLE = {
    "binary": b"\x7fELF\x00\x01\x02\x00zero_optimization\x00",
    "latin1": b'{"zero_optimization": {"stage": 2}, "note": "caf\xe9"}',
    "huge": b'{"zero_optimization": [' + b"1," * (5 * 2**20 // 2) + b"1]}",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_json(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.json").write_bytes(UNREADABLE[name])
    outcome = _check(tmp_path, f"{name}.json")
    assert outcome.status == 2
    (line,) = _lines_about(outcome, f"{name}.json")
    assert line.startswith((f"{name}.json:", f"lintfit: {name}.json", f"error: {name}.json"))


BROKEN = {
    "empty": b"",
    "deep": b'{"zero_optimization": ' + b"[" * 100_000,
    "unclosed": b'{"zero_optimization": {"stage": 2,\n "x": [1, 2',
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_json(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.json").write_bytes(BROKEN[name])
    outcome = _check(tmp_path, f"{name}.json")
    assert outcome.status == 1
    (line,) = _lines_about(outcome, f"{name}.json")
    assert "invalid-json" in line
    assert line.startswith(f"{name}.json:")


def test_json_in_utf_16_is_what_no_library_reads(tmp_path: Path) -> None:
    """All of them open it as UTF-8."""
    (tmp_path / "odd.json").write_bytes(GOOD.decode().encode("utf-16"))
    (line,) = [line for line in _lines_about(_check(tmp_path, "odd.json"), "odd.json") if "invalid-json" in line]
    assert line.startswith("odd.json:1:1: error invalid-json (LF001) not valid JSON: its text is UTF-16")


def test_yaml_in_utf_16(tmp_path: Path) -> None:
    (tmp_path / "odd.yaml").write_text("compute_environment: LOCAL_MACHINE\ndistributed_type: NO\n", "utf-16")
    outcome = _check(tmp_path, "odd.yaml")
    assert outcome.status == 1
    (line,) = _lines_about(outcome, "odd.yaml")
    assert line.startswith("odd.yaml:1:1: error syntax-error (LF015) its text is UTF-16")


@pytest.mark.parametrize(("change", "status"), [(b"\xef\xbb\xbf", 1), (b"\r\n", 0)])
def test_bom_and_crlf_are_read_and_kept(change: bytes, status: int, tmp_path: Path) -> None:
    """json.load stops at a byte-order mark, so that one finding is left of it; carriage returns are no finding."""
    text = change + GOOD if change != b"\r\n" else GOOD.replace(b", ", b",\r\n").replace(b"\n", b"\r\n")
    (tmp_path / "odd.json").write_bytes(text)
    outcome = lintfit("check", "--isolated", "--fix", "--output-format", "concise", "odd.json", cwd=tmp_path)
    assert outcome.status == status, outcome.out + outcome.err
    fixed = (tmp_path / "odd.json").read_bytes()
    assert b"offload_param" not in fixed
    assert fixed.startswith(b"\xef\xbb\xbf") == text.startswith(b"\xef\xbb\xbf") or b"\xef" not in fixed
    assert (b"\r\n" in fixed) == (b"\r\n" in text)


def test_a_folder_named_like_a_file(tmp_path: Path) -> None:
    (tmp_path / "x.json").mkdir()
    outcome = _check(tmp_path, "x.json")
    assert outcome.status == 2
    assert len(_lines_about(outcome, "x.json")) == 1


def test_a_symlink_loop(tmp_path: Path) -> None:
    (tmp_path / "loop.json").symlink_to("loop.json")
    outcome = _check(tmp_path, "loop.json")
    assert outcome.status == 2
    assert len(_lines_about(outcome, "loop.json")) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_bytes(GOOD)
    (tmp_path / "secret.json").chmod(0)
    outcome = _check(tmp_path, "secret.json")
    assert outcome.status == 2
    assert "permission" in _lines_about(outcome, "secret.json")[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_listed(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    outcome = _check(tmp_path, "closed")
    assert outcome.status == 2
    assert _lines_about(outcome, "closed") == ["lintfit: closed: permission denied"]
    described = lintfit("estimate", "--isolated", "--model", "closed", cwd=tmp_path)
    assert (described.status, described.out) == (2, "")
    assert described.err.startswith("lintfit: model: 'closed' is not known")


def test_a_missing_file(tmp_path: Path) -> None:
    outcome = _check(tmp_path, "nowhere.json")
    assert outcome.status == 2
    (line,) = _lines_about(outcome, "nowhere.json")
    assert "no such file" in line


def test_a_syntax_error_in_the_script(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from transformers import Trainer\ntrainer = Trainer(model=\n")
    outcome = _check(tmp_path, "train.py")
    assert (outcome.status, outcome.err.count("lintfit:")) == (1, 0)
    (line,) = _lines_about(outcome, "train.py")
    assert line.startswith("train.py:2:18: error syntax-error (LF015) '(' was never closed")


OF_NO_KNOWN_USE = {
    "broken.py": "def f(:\n",
    "broken.yaml": 'a: "b" c\n',
    "broken.sh": 'echo "never closed\n',
    "broken.json": '{"a": [1, 2}',
}


@pytest.mark.parametrize("name", OF_NO_KNOWN_USE)
def test_a_named_file_that_cannot_be_parsed_is_an_error_whatever_it_is_for(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(OF_NO_KNOWN_USE[name])
    rule = "invalid-json" if name.endswith(".json") else "syntax-error"
    outcome = lintfit("check", "--output-format", "concise", "--isolated", name, cwd=tmp_path)
    assert outcome.status == 1 and outcome.err == ""
    assert f"{name}:1:" in outcome.out and f" error {rule} " in outcome.out
    assert lintfit("check", "--isolated", ".", cwd=tmp_path).status == 0, "nobody named the file"
    assert lintfit("check", "--isolated", "--ignore", rule, name, cwd=tmp_path).status == 0
    given = lintfit("check", "--isolated", "--stdin-filename", name, cwd=tmp_path, stdin=OF_NO_KNOWN_USE[name].encode())
    assert given.status == 1 and rule in given.out


def test_files_that_only_their_own_tools_read_are_no_syntax_errors(tmp_path: Path) -> None:
    files = {
        "many.yaml": "a: 1\n---\nb: 2\n",
        "tags.yml": "job: !reference [.setup, script]\n",
        "chart.yaml": "name: {{ .Values.name }}\n{{- if x }}\nb: 1\n{{- end }}\n",
        "empty.yaml": "# nothing\n",
        "rows.json": '{"text": "a"}\n{"text": "b"}\n',
        "template.py": "{% if torch %}\nimport torch\n{% endif %}\n",
        "newer.py": "type X = int\ndef f[T](x: T) -> T: ...\n",
        "odd.sh": 'if [[ "$A" == *"B"*]]; then\n  echo a\nfi\n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    outcome = lintfit("check", "--isolated", *files, cwd=tmp_path)
    assert (outcome.status, outcome.err) == (0, "")
    assert "syntax-error" not in outcome.out


SYNTAX_ERRORS = {
    "ds.json": '{"zero_optimization": {"stage": 2,',
    "default.yaml": "compute_environment: LOCAL_MACHINE\ndistributed_type: [1\nb: {",
    "train.py": "from transformers import Trainer\ntrainer = Trainer(model=\n",
    "run.sh": "deepspeed train.py --x ${size*2}\n",
}


@pytest.mark.parametrize("name", SYNTAX_ERRORS)
@pytest.mark.parametrize("command", ["estimate", "fit"])
def test_syntax_errors_are_told_by_every_command(command: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(SYNTAX_ERRORS[name])
    outcome = lintfit(command, "--isolated", name, cwd=tmp_path)
    assert outcome.status == 2
    assert outcome.err.startswith(f"lintfit: {name}:")
    assert ": syntax error: " in outcome.err and outcome.err.count("\n") == 1
    assert lintfit("estimate", "--isolated", ".", cwd=tmp_path).status == 0, "nobody named the file"


def test_syntax_errors_of_files_that_were_only_found(tmp_path: Path) -> None:
    """A folder's check goes on without what cannot be read: nobody named these files."""
    (tmp_path / "run.sh").write_text("deepspeed train.py --x ${size*2}\n")
    (tmp_path / "other.py").write_text("from transformers import Trainer\ntrainer = Trainer(model=\n")
    (tmp_path / "train.py").write_text("print(1)\n")
    found = lintfit("check", "--output-format", "concise", "--isolated", ".", cwd=tmp_path)
    assert found.status == 0
    assert any(line.startswith("run.sh:1:24: syntax error: ") for line in _lines_about(found, "run.sh"))
    (line,) = _lines_about(found, "other.py")
    assert line == "skipped: other.py: line 2 cannot be parsed: '(' was never closed"
    assert _check(tmp_path, "run.sh").status == 1


def test_the_script_of_a_launch_line_need_not_be_named(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("torchrun train.py\npython train.py\n")
    (tmp_path / "train.py").write_text("from transformers import Trainer\ntrainer = Trainer(model=\n")
    outcome = lintfit("check", "--output-format", "concise", "--isolated", ".", cwd=tmp_path)
    assert outcome.status == 1
    (line,) = _lines_about(outcome, "train.py")
    assert line.startswith("train.py:2:18: error syntax-error"), "once, however many lines launch it"


def test_a_python_file_that_is_no_script(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from transformers import Trainer\nTrainer()\n" + "x = 1\n" * 50_001)
    outcome = _check(tmp_path, "train.py")
    assert outcome.status == 2
    (line,) = _lines_about(outcome, "train.py")
    assert "more than 50000 lines" in line


def test_text_that_nobody_could_hold(tmp_path: Path) -> None:
    names = ("'%99999999999d' % 1", "'%*d' % (10**11, 1)", "'x' * 10**12", "f'{1:>99999999999}'")
    for name in names:
        (tmp_path / "train.py").write_text(
            "from transformers import Trainer, TrainingArguments\n"
            f"Trainer(args=TrainingArguments(output_dir={name})).train()\n"
        )
        outcome = _check(tmp_path, "train.py")
        assert outcome.status in (0, 1) and "internal error" not in outcome.out + outcome.err, name


def test_files_of_other_tools_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"name": "x", "dependencies": {}}')
    (tmp_path / "tsconfig.json").write_text('{\n  // comments\n  "compilerOptions": {"strict": true,},\n}')
    (tmp_path / "docker-compose.yml").write_text("services:\n  web:\n    image: x\n")
    (tmp_path / "config.json").write_text('{"model_type": "llama", "hidden_size": 8}')
    outcome = lintfit("check", ".", "--isolated", cwd=tmp_path)
    assert (outcome.status, outcome.err) == (0, "")
    named = lintfit("check", "package.json", "tsconfig.json", "docker-compose.yml", "--isolated", cwd=tmp_path)
    assert (named.status, named.err) == (0, "")


@pytest.mark.parametrize("number", ["99999999999999999999", "1048577"])
def test_numbers_beyond_any_run_are_not_taken_as_meant(tmp_path: Path, number: str) -> None:
    (tmp_path / "train.py").write_text(
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")\n'
        f'args = TrainingArguments("out", per_device_train_batch_size={number})\n'
        "Trainer(model=model, args=args).train()\n"
    )
    outcome = lintfit("check", "train.py", "--isolated", "--gpu", "H200", "--gpus", number, cwd=tmp_path)
    assert outcome.status in (0, 1, 2)
    assert "Traceback" not in outcome.out + outcome.err


def test_a_card_that_nobody_knows(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_bytes(GOOD)
    outcome = lintfit("check", "ds.json", "--isolated", "--gpu", "RTX 9999", cwd=tmp_path)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == "lintfit: gpu: 'RTX 9999' is not known; give its memory as gpu-memory\n"
    told = lintfit("check", "ds.json", "--isolated", "--gpu", "RTX 9999", "--gpu-memory", "24GiB", cwd=tmp_path)
    assert RULE_OF_GOOD in told.out


DIGITS = "1" * 5000
ONE_LINE = {
    "many digits": ("ds.json", f'{{"zero_optimization": {{"stage": {DIGITS}}}}}', "ds.json:1:33: error invalid-json"),
    "no number": ("ds.json", '{"zero_optimization": {"stage": 1e400}}', "ds.json:1:33: error invalid-json"),
    "NaN": ("ds.json", '{"zero_optimization": {"stage": NaN}}', "ds.json:1:33: error invalid-json"),
    "yaml digits": (
        "default.yaml",
        f"distributed_type: DEEPSPEED\nnum_processes: {DIGITS}\n",
        "default.yaml:2:16: error syntax-error (LF015) num_processes has 5000 digits: no number of more than",
    ),
    "yaml hexadecimal": (
        "default.yaml",
        f"distributed_type: DEEPSPEED\nnum_processes: 0x{DIGITS}\n",
        "default.yaml:2:16: error syntax-error (LF015) num_processes has 5000 digits: no number of more than",
    ),
    "yaml escape": (
        "default.yaml",
        'distributed_type: "\\UFFFFFFFF"\n',
        "default.yaml:1:20: error syntax-error (LF015) \\UFFFFFFFF names no character: the last is \\U0010FFFF",
    ),
    "yaml nest": (
        "default.yaml",
        f"distributed_type: {'[' * 5000}\n",
        "lintfit: default.yaml:1:218: not read: nested more than 200 levels deep: not a config",
    ),
    "yaml cycle": (
        "default.yaml",
        "distributed_type: &a [*a]\n",
        "default.yaml:1:23: error syntax-error (LF015) the alias *a",
    ),
    "codec": (
        "train.py",
        "# coding: hex\nfrom transformers import Trainer\n",
        "lintfit: train.py: its coding cookie names hex, which does not read it: save it as UTF-8",
    ),
    "codec that does not write": (
        "train.py",
        f"# coding: idna\nfrom transformers import Trainer\n# {'a' * 100}\n",
        "lintfit: train.py: its idna text cannot be written back byte for byte",
    ),
    "latin-1": (
        "train.py",
        b"from transformers import Trainer  # caf\xe9\n",
        "lintfit: train.py: line 1: byte 0xe9 is not utf-8: save it as UTF-8 or declare its encoding",
    ),
}


@pytest.mark.parametrize("case", ONE_LINE)
def test_one_line_says_what_is_wrong_and_where(case: str, tmp_path: Path) -> None:
    name, content, expected = ONE_LINE[case]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    outcome = _check(tmp_path, name)
    (line,) = _lines_about(outcome, name)
    assert line.startswith(expected)
    assert outcome.status == (1 if ": error " in expected else 2)
    assert len(line) < 300


def test_a_named_pipe_and_a_link_to_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "link.json").symlink_to("nowhere.json")
    outcome = _check(tmp_path, "pipe.json", "link.json")
    assert outcome.status == 2
    assert _lines_about(outcome, "pipe.json") == ["lintfit: pipe.json: is not a regular file"]
    assert _lines_about(outcome, "link.json") == ["lintfit: link.json: no such file"]


def test_a_file_that_vanishes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the search and the reading of it."""
    from lintfit.commands import check
    from lintfit.options.model import Options

    monkeypatch.chdir(tmp_path)
    for name in ("a.json", "good.json"):
        (tmp_path / name).write_bytes(GOOD)
    discover = check.discover

    def and_then_gone(paths: object, options: object) -> object:
        found = discover(paths, options)  # type: ignore[arg-type]
        (tmp_path / "a.json").unlink(missing_ok=True)
        return found

    monkeypatch.setattr(check, "discover", and_then_gone)
    result = check.check([Path("a.json"), Path("good.json")], Options(isolated=True))
    assert result.errors == ("a.json: no such file",)
    assert {finding.place.document.path.name for finding in result.findings} == {"good.json"}


DEEP = {
    "elif": "if a: pass\n" + "elif b: pass\n" * 1500,
    "not": "x = " + "not " * 1000 + "1\n",
    "calls": "x = a" + "()" * 1000 + "\n",
    "sum": "x = " + " + ".join(["'a'"] * 900) + "\n",
    "brackets": "x = " + "(" * 150 + "1" + ")" * 150 + "\n",
}


@pytest.mark.parametrize("case", DEEP)
def test_python_that_nests_deeply_is_checked(case: str, tmp_path: Path) -> None:
    """Or refused in a line, where CPython's or libcst's parser refuses it."""
    script = "from transformers import Trainer, TrainingArguments\n{}Trainer(args=TrainingArguments('out')).train()\n"
    (tmp_path / "train.py").write_text(script.format(DEEP[case]))
    outcome = _check(tmp_path, "train.py")
    assert outcome.status in (1, 2)
    assert "internal error" not in outcome.err
    assert (outcome.status == 2) == ("lintfit: train.py:" in outcome.err)


@pytest.mark.parametrize("nest", [("$(", ")"), ('"$(echo ', ')"'), ("${a:-", "}"), ("{ ", "; }"), ("(", ")")])
def test_a_launch_script_that_nests_deeply_is_checked(nest: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(f"echo {nest[0] * 800}x{nest[1] * 800}\ntorchrun train.py\n")
    outcome = _check(tmp_path, "run.sh")
    assert "internal error" not in outcome.err


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"gpus = {DIGITS}", "lintfit.toml:2: not TOML that can be read: gpus has"),
        (f"gpus = 0x{DIGITS}", "lintfit.toml:2: gpus = a int too large to show: expected a whole number of 1 or more"),
        ("gpu-memory = inf", 'lintfit.toml:2: gpu-memory = Infinity: expected a size such as "23.7GiB"'),
        (f'host-memory = "{"9" * 400}GiB"', f'lintfit.toml:2: host-memory = "{"9" * 56}...: expected a size such as'),
        (f"host-memory = {'9' * 400}", f"lintfit.toml:2: host-memory = {'9' * 57}...: expected a size such as"),
        ('baseline = "\\u0000"', 'lintfit.toml:2: baseline = "\\u0000": expected a text without control characters'),
        ('model = "a\\nb"', 'lintfit.toml:2: model = "a\\nb": expected a text without control characters'),
        ('margin = "nan%"', 'lintfit.toml:2: margin = "nan%": expected a share from'),
        (f"a{'.b' * 5000} = 1", "lintfit.toml"),
    ],
    ids=lambda text: text[:20],
)
def test_a_config_of_lintfit_with_such_a_value(line: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_bytes(GOOD)
    (tmp_path / "lintfit.toml").write_text(f"# a config\n{line}\n")
    outcome = lintfit("check", "ds.json", cwd=tmp_path)
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert outcome.err.startswith(f"lintfit: {expected}")


FLAGS = {
    "--gpus": (DIGITS, "0", "-1", "²", "1e400", "99999999999999"),
    "--nodes": (DIGITS, "99999999999999"),
    "--seq-len": (DIGITS, "0", "-5", "nan"),
    "--gpu-memory": ("1e400GiB", "1e400", "inf", "nan", DIGITS, "-1GiB", "²GiB", "0"),
    "--host-memory": ("9" * 400 + "GiB",),
    "--margin": ("nan%", "1e400%", "inf", DIGITS),
    "--model-config": ("a" * 5000,),
    "--baseline": ("a" * 5000,),
}


@pytest.mark.parametrize("flag", FLAGS)
def test_flags_with_such_a_value(flag: str, tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_bytes(GOOD)
    (tmp_path / "train.py").write_text(
        "from transformers import AutoModelForCausalLM, Trainer\n"
        "Trainer(model=AutoModelForCausalLM.from_pretrained('gpt2')).train()\n"
    )
    for value in FLAGS[flag]:
        outcome = lintfit("check", ".", "--isolated", f"{flag}={value}", cwd=tmp_path)
        assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1), value[:20]
        assert "internal error" not in outcome.err
        assert len(outcome.err) < 600


def test_what_a_message_quotes_does_not_steer_the_terminal(tmp_path: Path) -> None:
    outcome = lintfit("check", "--isolated", "a\x1b[31m\n::error::b.json", cwd=tmp_path)
    assert outcome.status == 2
    assert outcome.err == "lintfit: a\\x1b[31m\\n::error::b.json: no such file\n"


def test_flags_of_a_spec_that_nest_deeply(tmp_path: Path) -> None:
    outcome = lintfit("estimate", "--model", "gpt2", f"--zero-stage={'[' * 5000}", cwd=tmp_path)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("lintfit: --zero-stage: ")
    named = lintfit("estimate", "--model", "~nobody/x", cwd=tmp_path)
    assert named.err.startswith("lintfit: --model: '~nobody/x' is not known")
