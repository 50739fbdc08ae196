"""Loads the harness's plugin and the fixture modules. Nothing else."""

pytest_plugins = [
    "harness.plugin",
    "fixtures.models",
    "fixtures.artifacts",
    "fixtures.sentences",
    "fixtures.translations",
]
