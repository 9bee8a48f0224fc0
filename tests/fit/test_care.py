"""What a fix would take along is seen, whatever rule offers it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lintfit.commands.check import check
from lintfit.documents.comments import comments
from lintfit.documents.data_edits import remove
from lintfit.documents.data_edits import rename as renamed
from lintfit.documents.model import DataDocument, Document, Edit, FileEdit, Span
from lintfit.documents.workspace import Workspace
from lintfit.findings.model import Applicability, Fix
from lintfit.fit.care import Care, Taken
from lintfit.options.model import Options
from lintfit.settings.model import Place
from tests.support import lintfit

JSON = """\
{
    // the cluster's
    "train_micro_batch_size_per_gpu": 1,

    "bf16": {"enabled": true}, // as the model
    "zero_optimization": {
        "_comment": "as small as it gets",
        "stage": 3,
        "sub_group_size": 1e9,
        "overlap_comm": true
    }
}
"""
YAML = """\
# one machine
distributed_type: DEEPSPEED

deepspeed_config:
  zero_stage: 3  # shards all
  # of the host
  offload_optimizer_device: cpu
  gradient_clipping: 1.0
"""


def weighed(folder: Path, name: str, text: str, edits: tuple[Edit, ...], applicability: str = "safe") -> Fix:
    (folder / name).write_text(text)
    workspace = Workspace(folder)
    document = workspace.read(Path(name))
    fix = Fix("mend it", Applicability(applicability), tuple(FileEdit(document.path, edit, document) for edit in edits))
    return Care(workspace).weighed(fix, Place(document, Span(0, 0)))


def data(folder: Path, name: str, text: str) -> DataDocument:
    (folder / name).write_text(text)
    document = Workspace(folder).read(Path(name))
    assert isinstance(document, DataDocument)
    return document


@pytest.mark.parametrize(
    ("name", "text", "path", "message"),
    [
        ("ds.json", JSON, ("train_micro_batch_size_per_gpu",), "mend it, of which the comment on line 2 speaks"),
        ("ds.json", JSON, ("bf16",), "mend it, with the comment on line 5"),
        ("ds.json", JSON, ("zero_optimization",), "mend it, of which the comment on line 7 speaks"),
        ("ds.json", JSON, ("zero_optimization", "stage"), "mend it, of which the comment on line 7 speaks"),
        ("ds.json", JSON, ("zero_optimization", "sub_group_size"), ""),
        ("ds.json", JSON, ("zero_optimization", "overlap_comm"), ""),
        ("acc.yaml", YAML, ("distributed_type",), "mend it, of which the comment on line 1 speaks"),
        ("acc.yaml", YAML, ("deepspeed_config",), "mend it, with the comments on lines 5 and 6"),
        ("acc.yaml", YAML, ("deepspeed_config", "zero_stage"), "mend it, with the comment on line 5"),
        ("acc.yaml", YAML, ("deepspeed_config", "offload_optimizer_device"), "of which the comment on line 6 speaks"),
        ("acc.yaml", YAML, ("deepspeed_config", "gradient_clipping"), ""),
    ],
)
def test_a_key_that_is_deleted_with_a_comment_is_not_safe(
    name: str, text: str, path: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    fix = weighed(tmp_path, name, text, remove(data(tmp_path, name, text), path))
    assert fix.message.endswith(message or "mend it")
    assert fix.applicability is (Applicability.UNSAFE if message else Applicability.SAFE)
    assert bool(fix.caution) is bool(message)


def test_a_key_that_is_renamed_keeps_its_comments(tmp_path: Path) -> None:
    document = data(tmp_path, "acc.yaml", YAML)
    edits = renamed(document, ("deepspeed_config", "offload_optimizer_device"), "offload_param_device")
    assert weighed(tmp_path, "acc.yaml", YAML, edits).applicability is Applicability.SAFE


@pytest.mark.parametrize(
    ("name", "text", "old", "new", "lost"),
    [
        ("a.py", "x = f(a)  # as it is\n", "x = f(a)  # as it is\n", "", True),
        ("a.py", "x = f(a)  # as it is\n", "f(a)", "g(a)", False),
        ("a.py", "x = f(\n    a,  # one\n    b,\n)\n", "a,  # one\n    b", "b", True),
        ("a.sh", "run --a 1  # as it is\n", "1  # as it is", "2", True),
        ("a.sh", "run --a 1  # as it is\n", "--a 1", "--a 2", False),
    ],
)
def test_comments_of_code(name: str, text: str, old: str, new: str, lost: bool, tmp_path: Path) -> None:
    at = text.index(old)
    fix = weighed(tmp_path, name, text, (Edit(Span(at, at + len(old)), new),))
    assert fix.applicability is (Applicability.UNSAFE if lost else Applicability.SAFE)
    assert ("the comment on line" in fix.message) is lost


def test_a_fix_that_is_unsafe_already_says_so_beside_its_own_reason(tmp_path: Path) -> None:
    fix = weighed(tmp_path, "a.py", "f(a)  # one\n", (Edit(Span(0, 12), ""),), "unsafe")
    assert fix.applicability is Applicability.UNSAFE
    assert fix.message == "mend it, with the comment on line 1"
    assert fix.why_unsafe == "it may change how the run trains, the comment on line 1 goes with it"


def test_many_comments_are_counted(tmp_path: Path) -> None:
    text = "".join(f"# {number}\n" for number in range(9))
    fix = weighed(tmp_path, "a.py", text, (Edit(Span(0, len(text)), ""),))
    assert fix.message == "mend it, with 9 comments (lines 1 to 9)"


def test_a_comment_for_lintfit_goes_with_the_finding_about_it(tmp_path: Path) -> None:
    text = '{"a": 1} // lintfit: ignore[does-not-fit] old\n// more\n'
    (tmp_path / "ds.json").write_text(text)
    workspace = Workspace(tmp_path)
    document = workspace.read(Path("ds.json"))
    start, end = text.index("//"), text.index("\n")

    def without(span: Span) -> Applicability:
        fix = Fix("mend it", Applicability.SAFE, (FileEdit(document.path, Edit(span, ""), document),))
        return Care(workspace).weighed(fix, Place(document, Span(start + 10, start + 12))).applicability

    assert without(Span(start, end)) is Applicability.SAFE
    assert without(Span(start, len(text))) is Applicability.UNSAFE


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('config["bf16"]', Applicability.DISPLAY),
        ('names = ("bf16",); json.load(file)', Applicability.UNSAFE),
        ("bf16 = True", Applicability.SAFE),
    ],
)
@pytest.mark.parametrize("applicability", ["safe", "unsafe"])
def test_a_key_that_code_reads_is_not_taken_away(
    code: str, expected: Applicability, applicability: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(f"{code}\n")
    text = json.dumps({"bf16": {"enabled": True}, "steps_per_print": 1}, indent=1)
    document = data(tmp_path, "ds.json", text)
    if applicability == "unsafe" and expected is Applicability.SAFE:
        expected = Applicability.UNSAFE
    for edits in (remove(document, ("bf16",)), renamed(document, ("bf16",), "bfloat16")):
        fix = weighed(tmp_path, "ds.json", text, edits, applicability)
        assert fix.applicability is expected
        assert ("train.py:1" in fix.message) is (code != "bf16 = True")


FSDP = Path(__file__).parents[1] / "projects" / "fsdp-to-deepspeed-yaml" / "input"


def project(folder: Path) -> Path:
    """A run whose Accelerate YAML has an FSDP section, which plans for DeepSpeed take away.

    Its name says nothing of FSDP: else a plan leaves it alone and makes another one.
    """
    work = shutil.copytree(FSDP, folder / "project")
    (work / "fsdp.yaml").rename(work / "shards.yaml")
    (work / "run.sh").write_text((work / "run.sh").read_text().replace("fsdp.yaml", "shards.yaml"))
    return work


def test_a_plan_that_takes_away_what_code_reads_is_carried_out_by_hand(tmp_path: Path) -> None:
    work = project(tmp_path)
    (work / "show.py").write_text('print(yaml.safe_load(open("shards.yaml"))["fsdp_config"])\n')
    (run,) = lintfit("fit", ".", "--output-format", "json", cwd=work).json["runs"]
    plan = next(plan for plan in run["plans"] if plan["name"].startswith("ZeRO-"))
    assert plan["applicability"] == "display"
    assert plan["by_hand"] == 'show.py:1 reads "fsdp_config", which goes with it'


def test_a_plan_that_loses_comments_says_so(tmp_path: Path) -> None:
    work = project(tmp_path)
    lines = (work / "shards.yaml").read_text().splitlines()
    (work / "shards.yaml").write_text("".join(f"{line}  # {number}\n" for number, line in enumerate(lines)))
    shown = " ".join(lintfit("fit", ".", cwd=work).out.split())
    assert "it may change how the run trains, 9 comments (lines 6 to 14 of shards.yaml) go with it" in shown


def test_a_safe_plan_that_loses_a_comment_is_safe_no_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project(tmp_path))
    for taken, expected in ((Taken(), Applicability.SAFE), (Taken(("the comment on line 7",)), Applicability.UNSAFE)):
        monkeypatch.setattr(Care, "of", lambda *_, taken=taken: taken)
        plan = check([Path()], Options()).runs[0].plan
        assert plan is not None
        assert plan.applicability is plan.fix.applicability is expected


ZERO = ["stage3_max_live_parameters", "sub_group_size", "cpu_offload", "overlap_comm", "stage3_prefetch_bucket_size"]
TOP = ["gradient_clipping", "sparse_attention", "fp16_master_weights_and_gradients", "nobody_knows", "bfloat16"]
VALUES = st.sampled_from([True, False, 1, "auto", 1e9])
WORDS = st.text(alphabet="abc #'\"{}:,/*", min_size=1, max_size=12).map(lambda text: text.replace("*/", ""))


@st.composite
def commented_json(draw: st.DrawFn) -> str:
    """A DeepSpeed config with keys that many rules delete, rename or move, and comments wherever they may stand."""
    counter = iter(range(1000))

    def words() -> str:
        return f"{next(counter)} {draw(WORDS)}"

    def above(indent: str) -> str:
        sort = draw(st.sampled_from(["", "", "//", "#", "/*"]))
        return f"{indent}{sort} {words()}{' */' if sort == '/*' else ''}\n" if sort else ""

    def lines(keys: list[str], indent: str) -> str:
        text = ""
        for index, key in enumerate(keys):
            comma = "," if index + 1 < len(keys) else ""
            behind = draw(st.sampled_from(["", "", " // ", " # "]))
            behind = f"{behind}{words()}" if behind else ""
            text += f'{above(indent)}{indent}"{key}": {json.dumps(draw(VALUES))}{comma}{behind}\n'
        return text

    top = draw(st.lists(st.sampled_from(TOP), unique=True, max_size=4))
    zero = draw(st.lists(st.sampled_from(ZERO), unique=True, max_size=4))
    bf16 = draw(st.lists(st.sampled_from(["loss_scale", "initial_scale_power", "enabled"]), unique=True))
    head = lines(["train_micro_batch_size_per_gpu", *top], "  ")
    separator = f"  {'// ' + words() if draw(st.booleans()) else ''}\n"
    body = f'{separator}  , "bf16": {{\n{lines(bf16, "    ")}  }},\n'
    return f'{above("")}{{\n{head}{body}  "zero_optimization": {{\n{lines(["stage", *zero], "    ")}  }}\n}}\n'


@st.composite
def commented_yaml(draw: st.DrawFn) -> str:
    """An Accelerate config in the same way."""
    counter = iter(range(1000))

    def line(indent: str, text: str) -> str:
        above = f"{indent}# {next(counter)} {draw(WORDS)}\n" if draw(st.booleans()) else ""
        behind = f"  # {next(counter)} {draw(WORDS)}" if draw(st.booleans()) else ""
        return f"{above}{indent}{text}{behind}\n"

    top = draw(
        st.lists(st.sampled_from(["fp16: true", "num_process: 2", "debug: false", "use_cpu: false"]), unique=True)
    )
    inner = ["zero_stage: 2", "deepspeed_config_file: ds.json", "zero3_init_flag: false", "offload_param_device: cpu"]
    zero = draw(st.lists(st.sampled_from(inner), unique=True, min_size=1))
    text = line("", "compute_environment: LOCAL_MACHINE") + line("", "distributed_type: DEEPSPEED")
    text += "".join(line("", entry) for entry in top) + line("", "deepspeed_config:")
    return text + "".join(line("  ", entry) for entry in zero) + line("", "num_processes: 2")


def kept(before: Document, after: Document) -> bool:
    words = [" ".join(after.slice(span).split()) for span in comments(after)]
    return all(" ".join(before.slice(span).split()) in words for span in comments(before))


@settings(max_examples=60)
@given(st.data())
def test_a_safe_fix_never_loses_a_comment(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("care")
    name = data.draw(st.sampled_from(["ds_config.json", "accelerate.yaml"]))
    text = data.draw(commented_json() if name.endswith("json") else commented_yaml())
    path = folder / name
    path.write_text(text)
    before = Workspace(folder).read(path)
    assert isinstance(before, DataDocument)
    check([path], Options(isolated=True, fix=True))
    assert kept(before, Workspace(folder).read(path))
