"""What is known of ms-swift's arguments by version."""

from __future__ import annotations

from lintfit.catalog import swift


def test_which_release_takes_what_another_does_not() -> None:
    """ms-swift 3.5.0 has ``channels`` as well (``swift/trainers/arguments.py``), which was not studied."""
    versions = swift.versions()
    assert swift.history("sft", "channels", versions.index("3.4.1.post1")) == "ms-swift 3.5.3 takes it"
    assert swift.history("sft", "channels", versions.index("3.5.3")) is None
    assert swift.history("sft", "learning_rte", versions.index("3.5.3")) is None
    assert swift.history("sft", "sft_type", len(versions) - 1) == "ms-swift 2.6.1 takes it"
