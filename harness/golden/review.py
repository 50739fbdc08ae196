"""``python -m harness review``: old and new side by side, accepted entry by entry with a reason."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

from filelock import FileLock
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.contract.errors import ExitCode, InputError
from harness.contract.files import write_atomically
from harness.contract.golden import Golden, GoldenEntry
from harness.golden.decisions import (
    CHOICES,
    SKIP,
    Decision,
    Item,
    check_decision,
    decided,
    items,
    read_decisions,
)
from harness.golden.folder import (
    GUARD,
    LOCK,
    TRANSLATIONS,
    GoldenFolder,
    entries_text,
    lock_text,
    remove_leftovers,
)
from harness.golden.proposal import PROPOSAL, read_proposal

QUIT = "quit"


def review(
    root: Path,
    model: str,
    *,
    proposal_path: Path | None = None,
    decisions_path: Path | None = None,
    read_line: Callable[[str], str] = input,
) -> ExitCode:
    """Show what differs and write what was decided.

    Args:
        root: folder of goldens, or the golden itself.
        model: model folder, hub id, or name of a folder below ``root``.
        proposal_path: in place of the one beside the golden.
        decisions_path: a decisions file, in place of questions.
        read_line: asks a question at the terminal.

    Returns:
        ``INCOMPLETE`` where something is left to decide.

    Raises:
        InputError: ``CI`` is set, there is no proposal, an unusable file, or the golden changed in the meantime.
    """
    if os.environ.get("CI"):
        raise InputError(
            what="CI is set, and goldens are approved by people",
            where="review",
            action="Run it where somebody reads the translations.",
        )
    place = Path(model)
    folder = GoldenFolder.of(root, place.resolve().name if place.is_dir() else model)
    path = proposal_path or folder.path / PROPOSAL
    proposal = read_proposal(path)
    before = _golden(folder)
    wanted = items(before, proposal)
    console = Console(highlight=False)
    if decisions_path:
        made = _from_file(console, decisions_path, wanted)
    else:
        made = _asked(console, wanted, read_line)
    after = decided(before, proposal, zip(wanted, made), date.today()) if _any(made) else before
    left = sum(decision.decision == SKIP for decision in made)
    if _any(made):
        _write(folder, before, after)
    if not left and path.parent == folder.path:
        path.unlink(missing_ok=True)
    console.print(f"{len(made) - left} decided, {left} left as they were: {folder.path}", markup=False, soft_wrap=True)
    return ExitCode.INCOMPLETE if left else ExitCode.GOOD


def _golden(folder: GoldenFolder) -> Golden | None:
    return folder.golden() if folder.exists else None


def _any(made: Sequence[Decision]) -> bool:
    return any(decision.decision != SKIP for decision in made)


def _from_file(console: Console, path: Path, wanted: Sequence[Item]) -> list[Decision]:
    decisions = read_decisions(path, wanted)
    made = [decisions.get((item.id, item.kind), Decision(item.id, SKIP, "")) for item in wanted]
    for number, (item, decision) in enumerate(zip(wanted, made), 1):
        _show(console, item, f"{number} of {len(wanted)}")
        console.print(f"  {decision.decision}: {decision.reason}", markup=False, soft_wrap=True)
    return made


def _asked(console: Console, wanted: Sequence[Item], read_line: Callable[[str], str]) -> list[Decision]:
    made: list[Decision] = []
    for number, item in enumerate(wanted, 1):
        _show(console, item, f"{number} of {len(wanted)}")
        decision = _ask(console, item, read_line)
        if decision is None:
            break
        made.append(decision)
    return made + [Decision(item.id, SKIP, "") for item in wanted[len(made) :]]


def _ask(console: Console, item: Item, read_line: Callable[[str], str]) -> Decision | None:
    """Ask until the answer is allowed; None to leave the rest as it is."""
    choices = (*CHOICES[item.kind], QUIT)
    while True:
        try:
            answer = read_line(f"  {' / '.join(choices)}? ").strip()
            if answer == QUIT:
                return None
            decision = Decision(item.id, answer, "" if answer == SKIP else read_line("  reason: ").strip())
            check_decision(item, decision)
            return decision
        except EOFError:
            return None
        except ValueError as error:
            console.print(f"  {error}", markup=False)


def _show(console: Console, item: Item, title: str) -> None:
    table = Table("", "golden", "proposed", title=Text(f"{title}: {item.id} ({item.kind})"), title_justify="left")
    old = item.old or GoldenEntry(item.id, item.source)
    known = (f"known fault: {old.observed}",) if old.known_fault else ()
    first, *others = [*known, *old.accepted] or [""]
    rows = [("translation", first, item.translation), *(("", text, "") for text in others)]
    if old.judgement:
        rows.append(("judgement", old.judgement, ""))
    for row in rows:
        table.add_row(*map(Text, row))  # as it is: square brackets in a string would be markup
    console.print(table)
    for line in (item.source, item.note):
        if line:
            console.print(f"  {line}", markup=False, soft_wrap=True)


def _write(folder: GoldenFolder, before: Golden | None, after: Golden | None) -> None:
    """Replace the golden, unless it is no longer the one that was shown."""
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.path / GUARD):
            remove_leftovers(folder.path)
            if _golden(folder) != before:
                raise InputError(
                    what="somebody changed the golden while it was being reviewed",
                    where=folder.path,
                    action="Run the review again.",
                )
            if after is None:
                raise InputError(
                    what="every entry would be removed", where=folder.path, action="Delete the folder instead."
                )
            # A kill between the two leaves entries whose hash the old lock does not have: found, and reviewed again.
            write_atomically(folder.path / TRANSLATIONS, entries_text(after.entries))
            write_atomically(folder.path / LOCK, lock_text(after.lock))
    except OSError as error:
        raise InputError(
            what=f"cannot be written ({error.strerror or error})",
            where=folder.path,
            action="Name a folder you may write to.",
        ) from None
