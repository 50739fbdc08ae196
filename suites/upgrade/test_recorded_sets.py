"""Does a runtime give what another stack recorded on the same files?

With torch, every set of this stack is recorded and replayed from disk; without torch, every recording is replayed.
"""

from __future__ import annotations

from harness.recording import replay
from harness.runtime.session import named_profile


def test_this_runtime_gives_what_was_recorded(recording, settings, judge):
    """Logits of forced steps, decoded ids, scores and texts."""
    judge(*replay(recording, named_profile("suites", settings.providers)))
