"""``python -m exporters``: turn a Hugging Face translation model into an ONNX artifact set."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.commands import Parser, run
from harness.contract.layouts import LAYOUTS


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = Parser(
        prog="python -m exporters", description="Turn a Hugging Face translation model into an ONNX artifact set."
    )
    parser.add_argument("model", metavar="MODEL", help="model folder or hub id")
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
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="folder to write; must be new or empty")
    options = parser.parse_args(arguments)
    return run(lambda: _export(options))


def _export(options) -> None:
    from exporters.export import ExportOptions, export

    choice = ExportOptions(options.layout, options.exporter, options.opset, options.target_ort)
    manifest = export(
        options.model, options.out, choice, progress=lambda text: print(f"exporting {text}", file=sys.stderr)
    )
    size = sum(record.bytes for record in manifest.files.values()) / 1e6
    print(
        f"{options.out}: layout {manifest.layout}, {manifest.exporter} exporter, opset {manifest.opset}, "
        f"IR {manifest.ir_version}, for onnxruntime {manifest.target_ort} and newer, {size:.1f} MB"
    )


if __name__ == "__main__":
    sys.exit(main())
