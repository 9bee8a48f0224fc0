"""Python scripts whose values, calls or text have no end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.child import survives, write

pytestmark = pytest.mark.slow

HEAD = "import os\nfrom transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
TAIL = """
model = AutoModelForCausalLM.from_pretrained("gpt2")
args = TrainingArguments(output_dir="out", per_device_train_batch_size=2, run_name={value})
Trainer(model=model, args=args).train()
"""


def _script(lines: str, value: str = "s") -> str:
    return HEAD + lines + TAIL.format(value=value)


def _again(line: str, times: int = 60, start: str = 's = "ab"') -> str:
    return start + "\n" + f"{line}\n" * times


VALUES = {
    "added": _script(_again("s = s + s")),
    "added_in_place": _script(_again("s += s")),
    "in_f_strings": _script(_again('s = f"{s}{s}"')),
    "by_percent": _script(_again('s = "%s%s" % (s, s)')),
    "by_percent_of_a_table": _script(_again('s = "%(a)s%(a)s" % {"a": s}')),
    "by_format": _script(_again('s = "{0}{0}".format(s)')),
    "by_replace": _script(_again('s = s.replace("a", s)')),
    "by_replacing_nothing": _script(_again('s = s.replace("", s)')),
    "by_join": _script(_again("s = s.join([s, s, s])")),
    "by_join_of_paths": _script(_again("s = os.path.join(s, s)")),
    "by_division_of_paths": _script("from pathlib import Path\n" + _again("s = Path(s) / s")),
    "by_repetition": _script(_again("s = s * 1000")),
    "of_lists_by_stars": _script(_again("s = [*s, *s]", start="s = [1, 2]")),
    "of_lists_by_addition": _script(_again("s = s + s", start="s = [1, 2]")),
    "of_lists_by_extending": _script(_again("s.extend(s)", start="s = [1, 2]")),
    "of_lists_by_slices": _script(_again("s[0:0] = s", start="s = [1, 2]")),
    "of_lists_in_lists": _script(_again("s = [s, s]", start="s = [1, 2]")),
    "of_lists_in_lists_compared": _script(
        _again("s = [s, s]; t = [t, t]", start="s = [1]; t = [1]") + "u = s == t\nv = s in [t]\nw = t != s\n"
    ),
    "of_tables_in_tables": _script(_again('s = {"a": s, "b": s}', start="s = {}")),
    "of_tables_that_a_call_is_handed": HEAD
    + "s = {}\n"
    + "".join(f's = {{**s, "k{n}": s, **{{"x{n}": [s, s]}}}}\n' for n in range(400))
    + TAIL.replace("run_name={value}", "**s"),
    "a_text_without_a_blank": _script(
        "import argparse\nfrom transformers import AutoTokenizer\np = argparse.ArgumentParser()\n"
        'p.add_argument("--max_len", type=int, default=2048)\na = p.parse_args()\n'
        'tok = AutoTokenizer.from_pretrained("gpt2")\n'
        'data = load().map(lambda e: tok(e["text"], truncation=True, max_length=a.max_len, padding="max_length"))\n'
        'x = "' + "a" * 3_000_000 + '"\n'
    ),
    "of_tables_merged_by_omegaconf": _script(
        "from omegaconf import OmegaConf\n"
        + _again('s = {"a": s, "b": s}', start="s = {}")
        + "c = OmegaConf.create(s)\nc = OmegaConf.merge(c, c, s)\n",
        "c.a.b",
    ),
    "a_list_that_holds_itself": _script("s = [1]\ns.append(s)\nt = [1]\nt.append(t)\nu = s == t\nv = t in s\n"),
    "a_table_that_holds_itself": _script(
        's = {}\ns["a"] = s\nfrom omegaconf import OmegaConf\nc = OmegaConf.create(s)\n'
    ),
    "an_object_that_holds_itself": _script("class A: pass\ns = A()\ns.s = s\nt = vars(s)\nu = s.s.s.s\n"),
    "wide_fields": _script('s = "{:>3000000000}".format("a")\n'),
    "wide_fields_of_wide_fields": _script('w = 3000000000\ns = "{:>{}}".format("a", w)\nt = "%*d" % (w, 1)\n'),
    "wide_f_strings": _script('s = f"{1:>3000000000}{1:{3000000000}}"\n'),
    "precise_numbers": _script('s = "{:.900000000f}".format(1.5)\nt = "%.900000000f" % 1.5\n'),
    "old_formats_of_many_digits": _script('s = "%900000000d" % 1\n'),
    "justified": _script(
        's = "a".ljust(10**10)\nt = "a".rjust(10**10)\nu = "a".center(10**10)\nv = "1".zfill(10**10)\n'
    ),
    "expanded_tabs": _script('s = "\\t".expandtabs(10**10)\n'),
    "translated": _script('s = ("a" * 90000).translate({97: "b" * 90000})\n'),
    "powers": _script("s = 10 ** 10 ** 10 ** 10\n"),
    "powers_of_powers": _script(_again("s = s ** 9", start="s = 9")),
    "powers_by_function": _script("s = pow(10, 10 ** 9)\nimport math\nt = math.factorial(10 ** 8)\n"),
    "shifts": _script("s = 1 << 10 ** 10\nt = 1 << (1 << 60)\n"),
    "shifts_in_place": _script("s = 1\ns <<= 10 ** 10\ns **= 10 ** 10\n"),
    "squares": _script(_again("s = s * s", start="s = 10")),
    "digits": _script("s = " + "9" * 5000 + "\n"),
    "hexadecimal_digits": _script("s = 0x" + "f" * 1_000_000 + "\n"),
    "digits_of_a_text": _script('s = int("9" * 5000)\nt = int("f" * 90000, 16)\nu = float("9" * 90000)\n'),
    "no_numbers": _script(
        's = float("nan")\nt = float("inf")\nu = int(t)\nv = round(t)\nw = t // 0\nx = 1e999 * -0.0\n', "t"
    ),
    "ranges": _script("s = list(range(10 ** 12))\nt = [0] * 10 ** 12\nu = [i for i in range(10 ** 12)]\n"),
    "nested_comprehensions": _script(
        "r = range(64)\ns = [[[[[a for a in r] for b in r] for c in r] for d in r] for e in r]\n"
    ),
    "comprehensions_of_lists": _script(
        f"r = {list(range(60))}\ns = [[[[[a for a in r] for b in r] for c in r] for d in r] for e in r]\n"
    ),
    "loops_in_loops": _script(
        f"r = {list(range(150))}\ns = 0\nfor a in r:\n for b in r:\n  for c in r:\n   for d in r:\n    s = a + b\n"
    ),
    "loops_without_end": _script('s = "a"\nwhile True:\n    s += s\n    while 1: s += s\n'),
    "pieces_in_a_loop": _script(
        f's = "a " * 40000\nr = {list(range(150))}\nfor a in r:\n for b in r:\n  t = s.split(" ")\n  u = t + t\n'
    ),
    "copies_in_a_loop": _script(
        f"s = {{i: i for i in {list(range(60))}}}\nr = {list(range(150))}\nk = []\n"
        'for a in r:\n for b in r:\n  t = dict(s)\n  k.append(t)\n  s[f"{a}.{b}"] = t\n'
    ),
    "texts_kept_in_a_loop": _script(
        f'r = {list(range(150))}\ns = "a" * 90000\nk = []\nfor a in r:\n for b in r:\n  k.append(s + str(b))\n'
    ),
    "choices_of_many": _script(
        f"import random\ns = 0\nfor i in {list(range(5000))}:\n    s = i\n"
        + "".join(f"if random.random():\n    s = {i}\n" for i in range(500))
    ),
    "choices_of_choices": _script(
        "import random\nr = random.random\n"
        + "".join(f"a{i} = [1, 2] if r() else [3]\n" for i in range(12))
        + "s = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11\nt = s == s == s == s\n"
    ),
    "interpolations_without_end": _script(
        "from omegaconf import OmegaConf\nc = OmegaConf.create({'a': '${b}', 'b': '${c}', 'c': '${a}', 'd': '${d}${d}'})\n",
        "c.a + c.d",
    ),
    "interpolations_that_double": _script(
        "from omegaconf import OmegaConf\nc = OmegaConf.create({"
        + ", ".join(f"'a{i}': '${{a{i + 1}}}${{a{i + 1}}}'" for i in range(40))
        + ", 'a40': '"
        + "x" * 1000
        + "'})\n",
        "c.a0",
    ),
    "interpolations_of_long_texts": _script(
        "from omegaconf import OmegaConf\nc = OmegaConf.create({'a': '"
        + "${b}" * 900
        + "', 'b': '"
        + "x" * 90000
        + "'})\n",
        "c.a",
    ),
    "interpolations_within_interpolations": _script(
        "from omegaconf import OmegaConf\nc = OmegaConf.create({'a': '" + "${" * 5000 + "}" * 5000 + "'})\n", "c.a"
    ),
    "resolvers": _script(
        "from omegaconf import OmegaConf\nOmegaConf.register_new_resolver('x', lambda a: a * 10**9)\n"
        "c = OmegaConf.create({'a': '${x:${x:${x:aaaa}}}', 'b': '${oc.env:HOME}'})\n",
        "c.a",
    ),
    "dotted_keys_of_a_config": _script(
        "from omegaconf import OmegaConf\nc = OmegaConf.from_dotlist(['" + "a." * 20000 + "b=1'])\n", "c.a"
    ),
    "functions_that_call_themselves": _script("def f(s):\n    return f(s + s) + f(s)\ns = f('ab')\n"),
    "functions_that_call_each_other": _script(
        "".join(
            f"def f{i}(s):\n    a = f{(i + 1) % 20}(s + s)\n    b = f{(i + 7) % 20}(a)\n    return a + b\n"
            for i in range(20)
        )
        + "s = f0('ab')\n"
    ),
    "lambdas_that_call_themselves": _script("f = lambda s: f(f(s + s))\ns = f('ab')\n"),
    "properties_that_ask_for_themselves": _script(
        "class A:\n    @property\n    def a(self): return self.a + self.b\n    @property\n    def b(self): return self.a + self.b\n"
        "s = A().a\n"
    ),
    "classes_that_inherit_from_themselves": _script(
        "class A(A): pass\nclass B(A): pass\nclass A(B): pass\ns = A().x\n"
    ),
    "classes_of_many_diamonds": _script(
        "class A0: pass\n"
        + "".join(
            f"class B{i}(A{i}): pass\nclass C{i}(A{i}): pass\nclass A{i + 1}(B{i}, C{i}): pass\n" for i in range(60)
        )
        + "from dataclasses import dataclass\n@dataclass\nclass D(A60):\n    x: int = 1\ns = D().y\n"
    ),
    "dataclasses_of_many_diamonds": _script(
        "from dataclasses import dataclass\n@dataclass\nclass A0:\n    x: int = 1\n"
        + "".join(
            f"@dataclass\nclass B{i}(A{i}): pass\n@dataclass\nclass C{i}(A{i}): pass\n@dataclass\nclass A{i + 1}(B{i}, C{i}): pass\n"
            for i in range(60)
        )
        + "s = A60().y\n"
    ),
    "decorators_on_decorators": _script("f = lambda g: g\n" + "@f\n" * 3000 + "def h(): pass\ns = 1\n"),
    "text_that_is_run": _script('s = "exec(s)"\nexec(s)\neval("eval(s)")\nexec(open(__file__).read())\n'),
    "a_chain_of_calls": _script("s = os" + ".path()" * 5000 + "\n"),
    "a_chain_of_attributes": _script("s = os" + ".a" * 20000 + "\n"),
    "a_chain_of_sums": _script("s = " + " + ".join(["1"] * 20000) + "\n"),
    "a_chain_of_brackets": _script("s = " + "[" * 5000 + "]" * 5000 + "\n"),
    "a_chain_of_signs": _script("s = " + "-" * 20000 + "1\nt = " + "not " * 5000 + "1\n"),
    "a_chain_of_comparisons": _script("s = " + " < ".join(["1"] * 20000) + "\n"),
    "a_chain_of_texts": _script("s = (" + '"a" ' * 20000 + ")\n"),
    "a_chain_of_conditions": _script("s = " + "1 if os else " * 5000 + "2\n"),
    "chains_that_python_still_reads": _script("s = " + "lambda: " * 1900 + "1\nt = " + "1 if os else " * 1900 + "2\n"),
    "chains_with_tabs": _script("t = " + "1 if os else\t" * 1900 + "2\n"),
    "conditions_on_ids": _script('t = """\nif ' + "input_ids)" * 20_000 + '\n"""\n'),
    "wrappers_of_wrappers": _script("m = os.m\n" + "m = torch.nn.DataParallel(m)\n" * 1000),
    "cases_that_each_set_a_name": _script(
        "match os.a:\n" + "".join(f"    case {i}:\n        s{i} = {i}\n" for i in range(6000))
    ),
    "a_chain_of_branches": _script("if os.a: s = 1\n" + "".join(f"elif os.b == {i}: s = {i}\n" for i in range(3000))),
    "a_chain_of_lambdas": _script("s = " + "lambda: " * 3000 + "1\n"),
    "depth_of_blocks": _script("".join(" " * i + "if os.x:\n" for i in range(95)) + " " * 95 + "s = 1\n"),
    "one_line": HEAD + "s = 1; " * 100_000 + TAIL.format(value="s").lstrip(),
    "one_text": _script('s = "' + "a" * 3_000_000 + '"\n'),
    "formatted_lists": _script(
        _again("s = s + s", 15) + _again("t = [*t, *t]", 14, "t = [s]") + 'u = "{}".format(t)\n'
    ),
    "fields_of_long_numbers": _script(
        _again("t = t + t", 14, 't = "%d"') + "n = 10 ** 1000\ns = t % n\n" + 'u = ("{0:999}" * 90).format(n)\n'
    ),
    "bytes_by_percent": _script('s = b"%900000000d" % 1\nt = b"%0999999999d" % 2\n'),
    "keys_that_collide": _script(
        "s = {" + ", ".join(f"{(2**61 - 1) * i}: 1" for i in range(12_000)) + "}\nt = {**s, 1: 2}\n" * 5
    ),
    "arguments_by_star": _script(
        _again("t = t + t", 13, "t = [1, 2]") + "def f(*a): return 1\n" + "f(*t)\nos.f(*t)\n" * 600 + "s = 1\n"
    ),
    "arguments_by_two_stars": _script(
        f"d = {{}}\nfor a in {list(range(150))}:\n  for b in {list(range(80))}:\n    d[f'{{a}}.{{b}}'] = 1\n"
        + "os.f(**d)\n" * 900
        + "s = 1\n"
    ),
    "classes_in_a_long_line": _script(
        "class A0:\n  x = 1\n"
        + "".join(f"class A{i}(A{i - 1}): pass\n" for i in range(1, 1500))
        + "s = A1499.x\n"
        + "t = A1499().x\n" * 1500
    ),
    "dataclasses_of_many_fields": _script(
        "from dataclasses import dataclass\n@dataclass\nclass A:\n"
        + "".join(f"  a{i}: int = {i}\n" for i in range(2000))
        + "k = []\n"
        + "k.append(A())\n" * 3000
        + "s = 1\n"
    ),
    "attributes_out_of_a_table": _script(
        f"class A: pass\na = A()\nd = {{}}\nfor b in {list(range(150))}:\n  for c in {list(range(50))}:\n    d[f'{{b}}.{{c}}'] = 1\n"
        + "a.__dict__ = d\n" * 6000
        + "s = 1\n"
    ),
    "tables_of_parsed_arguments": _script(
        "import argparse\np = argparse.ArgumentParser()\n"
        + "".join(f"p.add_argument('--a{i}', default=1)\n" for i in range(2500))
        + "a = p.parse_args()\nk = []\n"
        + "k.append([a.to_dict(), a.copy(), a.items()])\n" * 1500
        + "s = 1\n"
    ),
    "wrapped_again": _script(
        'm = AutoModelForCausalLM.from_pretrained("gpt2")\n' + "m = os.compile(m)\n" * 6000 + "s = 1\n"
    ),
    "loaded_again": _script("m = 1\n" + "m = AutoModelForCausalLM.from_pretrained(m)\n" * 3000 + "s = 1\n"),
    "lists_in_lists_asked_for": _script(
        _again("t = [t, t]", 16, 't = ["a"]')
        + "u = os.path.join(t)\n" * 1500
        + "match t:\n"
        + "".join(f"  case '{i}': u = 1\n" for i in range(1500))
        + "s = t\n"
    ),
    "long_literals_in_a_loop": _script(
        f"for a in {list(range(150))}:\n  for b in {list(range(150))}:\n    t = '" + "\\n\\x41" * 100_000 + "'\ns = 1\n"
    ),
    "texts_read_as_configs": _script(
        "import yaml\nt = '" + "a: b, " * 9000 + "'\n" + "u = yaml.safe_load('{' + t + '}')\n" * 300 + "s = 1\n"
    ),
    "many_adapters": _script(
        "from peft import LoraConfig, get_peft_model\n"
        + 'm = get_peft_model(AutoModelForCausalLM.from_pretrained("gpt2"), LoraConfig(r=8))\nTrainer(model=m).train()\n'
        * 1200
        + "s = 1\n"
    ),
    "names_after_each_break": _script(
        "import random\n"
        + "".join(f"n{i} = 1\n" for i in range(6000))
        + f"for a in {list(range(150))}:\n  for b in {list(range(150))}:\n    if random.random(): break\ns = 1\n"
    ),
    "annotations_in_a_loop": _script(
        f"for a in {list(range(150))}:\n  for b in {list(range(20))}:\n    class A:\n      x: Annotated["
        + "[a]" * 5000
        + ", b] = 1\ns = 1\n"
    ),
    "sums_of_calls": _script(
        "import torch\ntotal = torch.zeros(1)"
        + ".a()" * 3000
        + "\nfor batch in os.loader:\n    loss = os.f(batch)\n    loss.backward()\n    total += loss\ns = 1\n"
    ),
    "chained_methods": _script("x = a" + ".b()" * 2900 + "\ns = 1\n"),
    "chains_with_arguments": _script("x = a" + ".b(c.d, [1, 2, 3], e=f)" * 600 + "\ns = 1\n"),
    "many_chains": _script(("x = a" + ".b(c)" * 100 + "\n") * 190 + "s = 1\n"),
    "a_chain_before_a_syntax_error": _script("x = a" + ".b(c.d, [1, 2, 3], e=f)" * 600 + '\nprint "a"\ns = 1\n'),
    "brackets_in_brackets": _script(("x = " + "f(" * 180 + ")" * 180 + "\n") * 200 + "s = 1\n"),
    "keywords": _script("d = dict(" + ", ".join(f"a{i}=1" for i in range(20000)) + ")\ns = d\n"),
    "arguments_of_a_parser": (
        HEAD
        + "import argparse\np = argparse.ArgumentParser()\n"
        + "".join(f'p.add_argument("--a{i}", default={i})\n' for i in range(5000))
        + "s = p.parse_args().a1\n"
        + TAIL.format(value="s")
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_without_end(name: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    write(tree, {"train.py": VALUES[name]})
    survives(tree)
