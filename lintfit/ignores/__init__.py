"""Comments that silence findings: ``# lintfit: ignore[rule]``; read, applied, and written for the user."""
