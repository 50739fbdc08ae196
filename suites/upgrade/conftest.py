"""Which recordings there are to replay."""

from __future__ import annotations

import pytest

from harness.plugin import SETTINGS, not_applicable
from harness.recording import Recording, find_recordings, record
from harness.settings import Settings, torch_is_here

if torch_is_here():

    @pytest.fixture
    def recording(subject, settings: Settings, artifacts, core_sentences) -> Recording:
        """The subject's set, recorded now."""
        from harness import compat

        if artifacts.manifest is None:
            not_applicable("a set made elsewhere is recorded by whoever made it; export with this project to record")
        folder = settings.recordings / compat.stack_name() / subject.id
        return record(artifacts, subject.id, compat.stack_name(), core_sentences, folder)

else:

    def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
        if "recording" in metafunc.fixturenames:
            recordings = find_recordings(metafunc.config.stash[SETTINGS].recordings)
            metafunc.parametrize("recording", recordings, ids=[recording.id for recording in recordings])
