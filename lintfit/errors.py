"""Errors that end a command with one line for the user instead of a traceback."""


class CannotWrite(Exception):
    """A change of a run that is not written into its files; the message says why in a few words."""


class LintfitError(Exception):
    """Something the user can mend: bad usage, a bad lintfit config, an unreadable named file.

    The message is one line that says where, what, and what to do. The CLI prints it and exits with 2.
    """
