"""What the files of a set say beside their graphs: unchanged, listed, made the same way twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.contract.finding import Finding, Verdict
from harness.contract.manifest import FileRecord


def nothing_changed(changed: Sequence[str], files: int) -> Finding:
    """Judge ``Manifest.changed_files`` of a set of so many files."""
    check = "every file is the one that was exported"
    if not changed:
        return Finding(check=check, verdict=Verdict.PASS, compared=files, expected=files)
    return Finding(
        check=check,
        verdict=Verdict.FAIL,
        measured=float(len(changed)),
        limit=0.0,
        unit=f"of {files} files",
        where=changed[0],
        cause="the set was changed after the export: by a tool, by a copy that went wrong, or by hand",
        action="Export the set again, or write a manifest for what is to be shipped.",
        details=tuple(changed),
    )


def nothing_unlisted(others: Sequence[str]) -> Finding:
    """Warn of .onnx files that belong to no role of the set; no check looks at them."""
    check = "no .onnx file beside those of the layout"
    if not others:
        return Finding(check=check, verdict=Verdict.PASS)
    return Finding(
        check=check,
        verdict=Verdict.WARN,
        measured=float(len(others)),
        limit=0.0,
        unit="files",
        where=others[0],
        cause="the file belongs to no role of the layout, so nothing here tests it",
        action="Remove it before shipping the folder.",
        details=tuple(others),
    )


def tracer_was_silent(unknown: Sequence[str]) -> Finding:
    """Fail on a warning of the exporter that nobody has looked at yet."""
    check = "the tracer warned of nothing unknown"
    if not unknown:
        return Finding(check=check, verdict=Verdict.PASS)
    return Finding(
        check=check,
        verdict=Verdict.FAIL,
        measured=float(len(unknown)),
        limit=0.0,
        unit="unknown warnings",
        where=unknown[0],
        cause="the exporter warned of something that nobody has judged yet",
        action="Find out whether it is harmless, and enter it with the reason in exporters/known_warnings.py.",
        details=tuple(unknown),
    )


def same_files(first: Path, second: Path, names: Sequence[str]) -> Finding:
    """Require byte-identical files in two folders."""
    different = [name for name in names if _record(first / name) != _record(second / name)]
    check = "a second export is byte-identical"
    if not different:
        return Finding(check=check, verdict=Verdict.PASS, compared=len(names), expected=len(names))
    sizes = [f"{name}: {_text(first / name)} first, {_text(second / name)} again" for name in different]
    return Finding(
        check=check,
        verdict=Verdict.FAIL,
        measured=float(len(different)),
        limit=0.0,
        unit=f"of {len(names)} files",
        where=sizes[0],
        cause="something of the process went into the file: a path, a counter, or the order of a set",
        action="Compare both files node by node, and remove what differs in exporters/postprocess.py.",
        details=tuple(sizes),
    )


def _record(path: Path) -> FileRecord | None:
    return FileRecord.of(path) if path.is_file() else None


def _text(path: Path) -> str:
    record = _record(path)
    return f"{record.bytes} bytes, sha256 {record.sha256[:12]}" if record else "nothing"
