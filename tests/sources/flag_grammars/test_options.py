"""Which option of a parser a flag means, and what looking it up in many takes."""

from __future__ import annotations

from time import process_time

from hypothesis import given
from hypothesis import strategies as st

from lintfit.sources.flag_grammars.options import Given, Option, takes, unknown

_NAMES = st.sampled_from(["--a", "--ab", "--a-b", "--a_b", "--abc", "--b", "-a", "-b", "--"])
_OPTIONS = st.lists(st.builds(Option, st.lists(_NAMES, min_size=1, max_size=3).map(tuple)), max_size=6).map(tuple)


@given(name=_NAMES, options=_OPTIONS, abbreviates=st.booleans())
def test_a_flag_is_looked_up_by_its_name_and_then_by_what_begins_so(
    name: str, options: tuple[Option, ...], abbreviates: bool
) -> None:
    exact = any(name in option.names for option in options)
    begins = [option for option in options if any(each.startswith(name) for each in option.names)]
    refused = unknown(Given(name, ("1",)), options, abbreviates)
    if exact:
        assert refused is None
    elif not name.startswith("--"):
        short = [option for option in options if any(name == each[:2] for each in option.names)]
        assert (refused is None) == bool(short or begins)
    elif not abbreviates or not begins:
        assert refused is not None and refused.message == "unrecognized arguments"
    else:
        assert (refused is not None and refused.ambiguous) == (len(begins) > 1)


def test_thousands_of_flags_are_looked_up_in_no_time() -> None:
    options = tuple(Option((f"--per_device_{index}", f"--per-device-{index}")) for index in range(400))
    begun = process_time()
    assert not any(takes(Given(f"--output_{index}", ("1",)), options) for index in range(40_000))
    assert process_time() - begun < 1
