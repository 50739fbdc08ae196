"""What people approved."""

from __future__ import annotations

import pytest

from harness.contract.golden import Golden
from harness.contract.sentences import Sentence
from harness.golden.folder import GoldenFolder
from harness.plugin import not_covered


@pytest.fixture(scope="session")
def golden(golden_folder: GoldenFolder) -> Golden:
    """Approved translations and their lock."""
    if not golden_folder.exists:
        not_covered(f"golden translations: nobody approved any of {golden_folder.path.name}")
    return golden_folder.golden()


@pytest.fixture(scope="session")
def golden_sentences(golden: Golden) -> list[Sentence]:
    """The sources of the golden entries, in their order."""
    return [Sentence(entry.id, entry.source, entry.tags) for entry in golden.entries]


@pytest.fixture(scope="session")
def provenance(checkpoint, reference, settings):
    """The lock that this model on this stack would get, still without entries."""
    from harness import compat
    from harness.contract.golden import Lock
    from harness.report.context import instruction_sets

    return Lock(
        model=checkpoint.model_id,
        weights_sha256=checkpoint.weights_sha256,
        tokenizer_sha256=checkpoint.tokenizer_sha256,
        generation=reference.settings.to_json(),
        sentences=settings.quality_sentences[0].name,
        stack=compat.stack_name(),
        instruction_sets=tuple(instruction_sets()),
        approved="",
        reason="",
    )
