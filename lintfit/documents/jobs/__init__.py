"""Files that start commands on machines of their own: one module for each kind, found by the table in ``kinds.py``."""
