"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from harness.contract.errors import InputError


def write_atomically(path: Path, text: str, action: str = "Name a folder you may write to.") -> None:
    """Replace a file at once: a kill leaves the old one or the new one.

    Args:
        action: what to do where it cannot be written.

    Raises:
        InputError: the folder cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", suffix=".partial", delete=False
        ) as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(stream.name, 0o644)
        os.replace(stream.name, path)
    except OSError as error:
        raise InputError(what=f"cannot be written ({error.strerror})", where=path, action=action) from None
