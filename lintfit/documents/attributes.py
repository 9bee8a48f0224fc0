"""What a file has beside its text and mode: its owner, its group and its extended attributes, ACLs among them.

A file that takes another's place gets the same, or does not take it.
"""

from __future__ import annotations

import os
from pathlib import Path


class CannotKeep(Exception):
    """What of a file would be lost; the message says it in a few words."""


def hand_on(of: Path, to: Path, mode: int) -> None:
    """Give a new file the owner, mode and attributes of the one whose place it is to take.

    Raises :class:`CannotKeep` where this process may not, or where other names of the file would keep the old text.
    """
    before, after = of.stat(), to.stat()
    if before.st_nlink > 1:
        raise CannotKeep(f"has {before.st_nlink} names (hard links), which would hold different texts afterwards")
    if (before.st_uid, before.st_gid) != (after.st_uid, after.st_gid):
        try:
            os.chown(to, before.st_uid, before.st_gid)
        except OSError:
            who = "user" if before.st_uid != after.st_uid else "group"
            raise CannotKeep(f"belongs to another {who}, to whom a new file cannot be given") from None
    to.chmod(mode)  # a change of the owner takes bits away
    for name, value in _attributes(of).items():
        if _attributes(to).get(name) == value:
            continue
        try:
            os.setxattr(to, name, value)
        except OSError:
            raise CannotKeep(f"has an extended attribute ({name}) that cannot be kept") from None


def _attributes(path: Path) -> dict[str, bytes]:
    """The extended attributes of a file; none where the system or the file system has none (macOS, Windows)."""
    if not hasattr(os, "listxattr"):
        return {}
    try:
        return {name: os.getxattr(path, name) for name in os.listxattr(path)}
    except OSError:
        return {}
