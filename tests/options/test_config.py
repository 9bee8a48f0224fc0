"""Configs, flags, which wins, and what a wrong one gets."""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lintfit.errors import LintfitError
from lintfit.options.config import config_for, from_flags, load_config
from lintfit.options.config_values import KEYS, parse_size
from lintfit.options.model import Glob, Options, selected
from lintfit.options.rules_catalog import find
from lintfit.severity import FailOn, Severity
from tests.support import lintfit

GIB = 2**30


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_config.cache_clear()
    monkeypatch.chdir(tmp_path)


def write(path: str, text: str) -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def error_of(text: str, name: str = "lintfit.toml") -> str:
    write(name, text)
    with pytest.raises(LintfitError) as caught:
        config_for(Path("train.py"), Options())
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("23.7GiB", int(23.7 * GIB)),
        ("24GB", 24 * 10**9),
        ("80 GB", 80 * 10**9),
        ("512mib", 512 * 2**20),
        ("1TiB", 2**40),
        ("16", 16 * GIB),
        (16, 16 * GIB),
        (0.5, GIB // 2),
    ],
)
def test_sizes(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "GiB", "12XB", "-1GiB", "1e9", "0", 0, True, None, [], "٣GiB", "9999999TiB", "nan"]
)
def test_wrong_sizes(text: object) -> None:
    with pytest.raises(ValueError, match="GiB"):
        parse_size(text)


@given(st.text())
def test_a_size_is_positive_or_an_error(text: str) -> None:
    with suppress(ValueError):
        assert parse_size(text) > 0


def test_nearest_config_governs() -> None:
    write("lintfit.toml", 'gpu = "A100-SXM4-80GB"\ngpus = 8\n')
    write("examples/one/lintfit.toml", 'gpu = "A10"\n')
    options = config_for(Path("examples/one/deep/ds.json"), Options())
    assert (options.gpu, options.gpus) == ("A10", None)
    assert config_for(Path("examples/ds.json"), Options()).gpus == 8
    assert options.provenance("gpu").detail == "gpu in examples/one/lintfit.toml"
    assert options.config_path == Path("examples/one/lintfit.toml").absolute()


def test_a_folder_is_governed_by_its_own_config() -> None:
    write("examples/one/lintfit.toml", 'gpu = "A10"\n')
    assert config_for(Path("examples/one"), Options()).gpu == "A10"


def test_pyproject_without_the_table_is_passed_over() -> None:
    write("pyproject.toml", "[tool.lintfit]\ngpus = 2\n")
    write("sub/pyproject.toml", "[project]\nname = 'lintfit-user'\n")
    write("other/pyproject.toml", "this is = not TOML [")
    assert config_for(Path("sub/train.py"), Options()).gpus == 2
    assert config_for(Path("other/train.py"), Options()).gpus == 2


def test_lintfit_toml_beats_pyproject_in_one_folder() -> None:
    write("pyproject.toml", "[tool.lintfit]\ngpus = 2\n")
    write("lintfit.toml", "gpus = 4\n")
    assert config_for(Path("train.py"), Options()).gpus == 4


def test_flags_win_and_say_so() -> None:
    write("lintfit.toml", 'gpus = 4\nhost-memory = "256GiB"\nfail-on = "error"\n')
    options = config_for(Path("train.py"), from_flags({"gpus": "8", "host-memory": None}, fix=True))
    assert (options.gpus, options.host_memory_bytes, options.fix) == (8, 256 * GIB, True)
    assert options.fail_on == FailOn(Severity.ERROR)
    assert options.provenance("gpus").detail == "--gpus"
    assert options.provenance("gpus").kind == "option"
    assert not options.stated("gpu")


def test_isolated_reads_nothing() -> None:
    write("lintfit.toml", "broken")
    assert config_for(Path("train.py"), Options(isolated=True)) == Options(isolated=True)


def test_every_key_sets_a_field() -> None:
    fields = {field.name for field in dataclasses.fields(Options)}
    assert {key.field for key in KEYS.values()} <= fields


def test_paths_in_a_config_are_relative_to_it(tmp_path: Path) -> None:
    write("a/models/tiny/config.json", "{}")
    write("a/lintfit.toml", 'model = "models/tiny"\nmodel-config = "models/tiny/config.json"\n')
    options = config_for(Path("a/train.py"), Options())
    assert options.model == str(tmp_path / "a/models/tiny")
    assert options.model_config == tmp_path / "a/models/tiny/config.json"
    write("b/lintfit.toml", 'model = "Qwen/Qwen2.5-7B"\n')
    assert config_for(Path("b/train.py"), Options()).model == "Qwen/Qwen2.5-7B"


def test_run_groups() -> None:
    write("lintfit.toml", 'gpus = 8\n[[run]]\nfiles = ["train.py", "conf/ds.json"]\ngpus = 2\nseq-len = 4096\n')
    options = config_for(Path("train.py"), Options())
    group = options.group_of(Path("conf/ds.json"))
    assert group is not None and group is options.group_of(Path("train.py"))
    assert options.group_of(Path("other.py")) is None
    run = options.for_run(group, Options())
    assert (run.gpus, run.seq_len) == (2, 4096)
    assert run.origins["gpus"] == "run.gpus in lintfit.toml"
    assert options.for_run(group, from_flags({"gpus": 4})).gpus == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpsu = 8", 'lintfit.toml:1: unknown key "gpsu"; did you mean "gpus"?'),
        ("\n\ngpu_memory = 8", 'lintfit.toml:3: unknown key "gpu_memory"; did you mean "gpu-memory"?'),
        ("gpus = 0", "lintfit.toml:1: gpus = 0: expected a whole number of 1 or more"),
        ("gpus = true", "lintfit.toml:1: gpus = true: expected a whole number of 1 or more"),
        ('gpus = "many"', 'lintfit.toml:1: gpus = "many": expected a whole number of 1 or more'),
        ("gpu = 3090", "lintfit.toml:1: gpu = 3090: expected a text"),
        ("fail-on = 'fatal'", 'lintfit.toml:1: fail-on = "fatal": expected "error", "warning", "info" or "unknown"'),
        ("exclude = 'a'", 'lintfit.toml:1: exclude = "a": expected a list of texts'),
        ("run = 3", "lintfit.toml:1: run: expected [[run]] tables"),
        ("[[run]]\ngpus = 2", "lintfit.toml:1: [[run]]: files: expected a list of texts"),
        (
            "gpus = 2\n[[run]]\nfiles = ['a']\ngpus = 0",
            "lintfit.toml:4: gpus = 0: expected a whole number of 1 or more",
        ),
    ],
)
def test_a_wrong_config_gets_one_line(text: str, expected: str) -> None:
    assert error_of(text) == expected


def test_more_wrong_configs() -> None:
    assert error_of("qqqqqq = 1").startswith('lintfit.toml:1: unknown key "qqqqqq"; known are gpu, gpus, ')
    assert "expected a size such as" in error_of("gpu-memory = '12XB'")
    assert error_of("gpus = ").startswith("lintfit.toml: not TOML: ")
    assert "not UTF-8" in _bytes_error(b"gpu = '\xff'")
    assert error_of("[[run]]\nfiles = ['a']\nselect = ['x']").startswith('lintfit.toml:3: unknown key "run.select"')


def _bytes_error(content: bytes) -> str:
    load_config.cache_clear()
    Path("lintfit.toml").write_bytes(content)
    with pytest.raises(LintfitError) as caught:
        config_for(Path("train.py"), Options())
    return str(caught.value)


def test_the_line_in_pyproject_is_that_of_the_table() -> None:
    text = "[tool.other]\ngpus = 3\n\n[tool.lintfit]\ngpus = 0\n"
    assert error_of(text, "pyproject.toml").startswith("pyproject.toml:5: gpus = 0")


def test_unknown_rule_in_select() -> None:
    message = error_of('select = ["invalid-jsno"]')
    assert message.startswith('lintfit.toml:1: select = ["invalid-jsno"]: expected rules that exist')
    assert 'did you mean "invalid-json"?' in message


def test_wrong_flag() -> None:
    with pytest.raises(LintfitError, match=r"^--gpu-memory 12XB: expected a size"):
        from_flags({"gpu-memory": "12XB"})


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("build", "a/build/x.json", True),
        ("build", "a/rebuild/x.json", False),
        ("*.json", "a/b/x.json", True),
        ("/*.json", "a/x.json", False),
        ("/*.json", "x.json", True),
        ("a/*.json", "a/x.json", True),
        ("a/*.json", "a/b/x.json", False),
        ("a/**/x.json", "a/x.json", True),
        ("a/**/x.json", "a/b/c/x.json", True),
        ("a/**", "a/b/c", True),
        ("third_party/", "third_party/ds.json", True),
        ("x?.json", "xy.json", True),
        ("x.json", "xyjson", False),
        ("*", "../outside.json", False),
    ],
)
def test_globs(pattern: str, path: str, matches: bool) -> None:
    assert Glob(pattern, Path.cwd()).matches(Path(path)) is matches


def test_enabled() -> None:
    write("lintfit.toml", 'ignore = ["LF8"]\n[per-file-ignores]\n"tests/*" = ["invalid-json"]\n')
    options = config_for(Path("ds.json"), Options())
    rule = find("invalid-json")
    assert options.enabled(rule.name, rule.code, Path("ds.json"))
    assert not options.enabled(rule.name, rule.code, Path("tests/ds.json"))
    assert not options.enabled("any-rule", "LF899", Path("ds.json"))


def test_selected() -> None:
    assert selected(["LF1"], "forced-float32", "LF101")
    assert selected(["forced-float32"], "forced-float32", "LF101")
    assert not selected(["forced"], "forced-float32", "LF101")
    assert not selected([], "forced-float32", "LF101")
    assert selected(["all"], "anything", "LF999")


def test_what_a_config_excludes_is_passed_over_by_a_search_and_read_where_it_is_named(tmp_path: Path) -> None:
    text = '{"zero_optimization": {"stage": 2}, "no_such_key": 1}'
    for name in ("old", "sub", "sub/old", "sub/own"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ds.json").write_text(text)
    (tmp_path / "lintfit.toml").write_text('exclude = ["old"]\n')
    (tmp_path / "sub" / "own" / "lintfit.toml").write_text('exclude = ["/ds.json"]\n')

    def found(*arguments: str) -> list[str]:
        checked = lintfit("check", *arguments, "--output-format", "json", cwd=tmp_path).json
        return [finding["path"] for finding in checked["findings"]]

    assert found(".") == ["sub/ds.json"]
    assert found("--isolated") == ["old/ds.json", "sub/ds.json", "sub/old/ds.json", "sub/own/ds.json"]
    assert found("old/ds.json") == ["old/ds.json"]
    assert found("--exclude", "own") == ["old/ds.json", "sub/ds.json", "sub/old/ds.json"], "a flag wins over a config"
