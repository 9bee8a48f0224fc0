"""Logs of runs that died: what libraries print when memory ends, and where in a step that was."""
