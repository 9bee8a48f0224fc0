"""Documents from text, for the tests of the sources."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lintfit.documents.json_reader import read_json
from lintfit.documents.model import DataDocument, FileText
from lintfit.documents.shell_document import ShellDocument
from lintfit.documents.shell_reader import read_shell
from lintfit.documents.yaml_reader import read_yaml

Read = Callable[[str], DataDocument]


@pytest.fixture
def json_document() -> Read:
    return lambda text: read_json(FileText(Path("ds.json"), text))


@pytest.fixture
def yaml_document() -> Read:
    return lambda text: read_yaml(FileText(Path("accelerate.yaml"), text))


@pytest.fixture
def shell_document() -> Callable[[str], ShellDocument]:
    return lambda text: read_shell(FileText(Path("run.sh"), text))
