"""Documents from text, for the tests of the sources."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lintfit.documents.model import DataDocument, FileText
