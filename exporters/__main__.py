"""``python -m exporters``: turn a Hugging Face translation model into an ONNX artifact set."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from harness.commands import Parser, run
from harness.contract.layouts import LAYOUTS
from harness.contract.manifest import Manifest
from harness.contract.recipes import FLOAT32, find_recipe
from harness.reference.scale import scale_model, scale_names
from harness.settings import CALIBRATION, RECIPES, ROOT

ARTIFACT_CACHE = ROOT / ".artifact-cache"


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = Parser(
        prog="python -m exporters", description="Turn a Hugging Face translation model into an ONNX artifact set."
    )
    subject = parser.add_mutually_exclusive_group(required=True)
    subject.add_argument("model", nargs="?", metavar="MODEL", help="model folder or hub id")
    subject.add_argument(
        "--scale",
        choices=scale_names(),
        metavar="NAME",
        help=f"in place of MODEL, seeded random weights of a real model's size: {', '.join(scale_names())}",
    )
    parser.add_argument(
        "--artifact-cache",
        type=Path,
        default=ARTIFACT_CACHE,
        metavar="DIR",
        help="where --scale keeps its model (default: .artifact-cache)",
    )
    parser.add_argument(
        "--layout", choices=list(LAYOUTS), default="compact", help="how to cut the model (default: compact)"
    )
    parser.add_argument(
        "--exporter",
        choices=["torchscript", "dynamo"],
        default="torchscript",
        help="which exporter of torch traces (default: torchscript; dynamo needs torch 2.6 or newer)",
    )
    parser.add_argument(
        "--opset", type=int, metavar="N", help="ai.onnx opset (default: 14 before torch 2, else 17; dynamo 18)"
    )
    parser.add_argument(
        "--target-ort", default="1.14", metavar="VERSION", help="oldest onnxruntime that has to load it (default: 1.14)"
    )
    parser.add_argument(
        "--precision",
        default=FLOAT32,
        metavar="NAME",
        help="fp32, or the name of a quantization recipe (default: fp32)",
    )
    parser.add_argument(
        "--recipes", type=Path, metavar="FILE", help="recipes of your own, in the form of exporters/recipes.json"
    )
    parser.add_argument(
        "--calibration",
        type=Path,
        metavar="FILE",
        help="sentences that a static recipe calibrates with (default: fixtures/calibration/calibration.jsonl)",
    )
    parser.add_argument(
        "--simplify", action="store_true", help="simplify the float32 graphs with onnxslim, or onnxsim before torch 2.6"
    )
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="folder to write; must be new or empty")
    options = parser.parse_args(arguments)
    return run(lambda: _export(options))


def _export(options) -> None:
    from exporters.export import ExportOptions, export, refuse_taken
    from exporters.quantize import quantization, quantize
    from exporters.simplify import simplify

    choice = ExportOptions(options.layout, options.exporter, options.opset, options.target_ort)
    progress = lambda text: print(text, file=sys.stderr)
    model = str(scale_model(options.scale, options.artifact_cache)) if options.scale else options.model
    steps = [lambda given, out: export(model, out, choice, progress=lambda t: progress(f"exporting {t}"))]
    if options.simplify:
        steps.append(lambda given, out: simplify(given, out, progress=progress))
    if options.precision != FLOAT32:
        recipe = find_recipe(options.precision, options.recipes or RECIPES)
        how = quantization(recipe, options.calibration or CALIBRATION)
        steps.append(lambda given, out: quantize(given, out, how, progress=progress))
    refuse_taken(options.out)
    with tempfile.TemporaryDirectory(prefix="exporters-") as scratch:
        given = Path(scratch)
        for number, step in enumerate(steps, 1):
            out = options.out if number == len(steps) else Path(scratch) / f"step-{number}"
            manifest = step(given, out)
            given = out
    print(_summary(options.out, manifest))


def _summary(out: Path, manifest: Manifest) -> str:
    size = sum(record.bytes for record in manifest.files.values()) / 1e6
    line = (
        f"{out}: layout {manifest.layout}, {manifest.exporter} exporter, opset {manifest.opset}, "
        f"IR {manifest.ir_version}, for onnxruntime {manifest.target_ort} and newer, {size:.1f} MB"
    )
    files = manifest.quantization.get("files", {})
    counts = ", ".join(f"{name} {counts['found']} of {counts['expected']}" for name, counts in files.items())
    return f"{line}\n{manifest.precision}, nodes quantized: {counts}" if files else line


if __name__ == "__main__":
    sys.exit(main())
