"""lintfit: a linter and auto-fixer for the files that decide an LLM training run."""

__version__ = "0.1.0"
