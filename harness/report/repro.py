"""What a failed check leaves behind: its inputs, and a short script that shows the first tensor that differs."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from harness.checks.shapes import Scenario, save_scenario

INPUTS, SCRIPT = "inputs.npz", "repro.py"

_SCRIPT = '''\
r"""{title}

Prints the first tensor that differs from PyTorch, and by how much; exits with 1 where one does.

The calls, whose arguments are in {inputs}:
{calls}

The test that found them:
    {rerun}
"""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
parser = argparse.ArgumentParser(description="Show the first tensor that differs from PyTorch.")
parser.add_argument("--project", default={project!r}, help="the conformance project's folder (default: %(default)s)")
parser.add_argument("--model", default={model!r}, help="model folder or hub id (default: %(default)s)")
parser.add_argument("--artifacts", default={artifacts!r}, help="the exported set (default: %(default)s)")
options = parser.parse_args()
sys.path.insert(0, options.project)

from harness.checks.shapes import Promise, load_scenario, replay
from harness.contract.layouts import ENCODER
from harness.reference.checkpoint import Checkpoint
from harness.reference.loading import generation_settings, load_model
from harness.reference.torch_model import TorchModel
from harness.runtime.artifact_model import ArtifactModel
from harness.runtime.artifact_set import open_sets
from harness.runtime.session import SessionProfile

checkpoint = Checkpoint.open(options.model)
sets = open_sets(options.artifacts, config=checkpoint.config, generation=generation_settings(checkpoint))
artifacts = next(found for found in sets if found.layout == {layout!r})
candidate = ArtifactModel(artifacts, SessionProfile({providers!r}))
promise = Promise.of(artifacts.layout, artifacts.dims, candidate.sessions[ENCODER].outputs)
scenario = load_scenario(HERE / {inputs!r})
reference = TorchModel(load_model(checkpoint))
sides = replay(reference, candidate, promise, scenario, {title!r}, exact=not artifacts.quantized)
finding = sides.finding()
print(finding.text())
sys.exit(1 if finding.failed else 0)
'''


@dataclass(frozen=True)
class Repro:
    """Where a scenario fails, and how to come back to it.

    Attributes:
        title: the check's name.
        scenario: the calls up to the one that fails.
        model, artifacts, layout: what was compared: model folder or hub id, the set's folder, its layout.
        providers: onnxruntime's execution providers.
        project: the project's folder, from which the script imports the harness.
        rerun: the pytest command that runs the test again.
    """

    title: str
    scenario: Scenario
    model: str
    artifacts: Path
    layout: str
    providers: tuple[str, ...]
    project: Path
    rerun: str

    def script(self) -> str:
        """Text of ``repro.py``."""
        return _SCRIPT.format(
            title=self.title,
            calls="\n".join(f"    {number}. {call.text()}" for number, call in enumerate(self.scenario, 1)),
            rerun=self.rerun,
            inputs=INPUTS,
            project=str(self.project),
            model=str(Path(self.model).resolve()) if Path(self.model).is_dir() else self.model,
            artifacts=str(self.artifacts.resolve()),
            layout=self.layout,
            providers=self.providers,
        )

    def write(self, folder: Path) -> Path:
        """Put ``repro.py`` and ``inputs.npz`` into a folder, all or nothing, in place of what was there.

        Returns:
            The script's path.

        Raises:
            OSError: the folder cannot be written.
        """
        partial = folder.with_name(f".{folder.name}.{os.getpid()}")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        save_scenario(partial / INPUTS, self.scenario)
        (partial / SCRIPT).write_text(self.script(), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(partial, folder)
        return folder / SCRIPT
