"""Loading a PyTorch model so that nothing about it is left to chance."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import torch
import transformers

from harness import compat
from harness.contract.errors import InputError
from harness.contract.generation import GenerationSettings
from harness.contract.model_config import settings_of
from harness.reference.checkpoint import Checkpoint
from harness.reference.family import family_of


def load_model(checkpoint: Checkpoint) -> torch.nn.Module:
    """Load a checkpoint in float32, eager attention, evaluation mode.

    Raises:
        InputError: unsupported family, weights that need an unrestricted pickle or do not fit the config, or tensors
            missing, which the library would fill with random numbers.
    """
    family = family_of(checkpoint.config, where=checkpoint.folder)
    model_class = getattr(transformers, family.model_class)
    state = _state_dict(checkpoint)
    model, info = _from_pretrained(model_class, checkpoint, state)
    _refuse_incomplete(checkpoint, info, state, family.required_buffers)
    model.eval()
    model.config.use_cache = True
    for module in model.modules():
        if getattr(module, "gradient_checkpointing", False):
            module.gradient_checkpointing = False
    return model


def _state_dict(checkpoint: Checkpoint) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    state: dict[str, torch.Tensor] = {}
    for path in checkpoint.weight_files:
        try:
            state.update(compat.load_pickled_weights(path) if checkpoint.pickled else load_file(str(path)))
        except pickle.UnpicklingError as error:
            wanted = re.search(r"(?:GLOBAL|global) ([\w.]+)", str(error))
            raise InputError(
                what=f"the weights need an unrestricted pickle{f', it asks for {wanted[1]}' if wanted else ''}",
                where=path,
                action="Convert them to safetensors on a machine where you trust the file.",
            ) from None
        except Exception as error:  # safetensors and torch raise a dozen types for a damaged file
            raise InputError(
                what=f"the weights cannot be read ({_first_line(error)})", where=path, action="Download the file again."
            ) from None
    return state


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:160]


def _from_pretrained(model_class: Any, checkpoint: Checkpoint, state: dict[str, torch.Tensor]) -> tuple[Any, dict]:
    level = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()  # its report of missing weights is ours, in one line
    transformers.logging.disable_progress_bar()
    arguments = compat.pickled_arguments(state) if checkpoint.pickled else {}
    try:
        return model_class.from_pretrained(
            str(checkpoint.folder),
            output_loading_info=True,
            local_files_only=True,
            **compat.eager_attention(),
            **compat.float32_arguments(),
            **arguments,
        )
    except (RuntimeError, ValueError, TypeError, KeyError) as error:
        raise InputError(
            what=f"the weights do not fit config.json ({_first_line(error)})",
            where=checkpoint.folder,
            action="Use the config.json and the weights of one model.",
        ) from None
    finally:
        transformers.logging.set_verbosity(level)


def _refuse_incomplete(
    checkpoint: Checkpoint, info: dict[str, Any], state: dict[str, torch.Tensor], required_buffers: tuple[str, ...]
) -> None:
    missing = sorted({*info["missing_keys"], *(name for name in required_buffers if name not in state)})
    if missing:
        raise InputError(
            what=f"{len(missing)} tensors are missing, first {missing[0]}; the library would make them up",
            where=checkpoint.weight_files[0],
            action="Use a complete checkpoint: parity with an invented tensor proves nothing.",
        )
    mismatched = sorted(str(key[0] if isinstance(key, tuple) else key) for key in info["mismatched_keys"])
    if mismatched:
        raise InputError(
            what=f"{len(mismatched)} tensors have another shape than config.json says, first {mismatched[0]}",
            where=checkpoint.folder,
            action="Use the config.json and the weights of one model.",
        )


def load_tokenizer(folder: Path) -> Any:
    """The library's own tokenizer of a checked model folder."""
    return transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)


def generation_settings(checkpoint: Checkpoint) -> GenerationSettings:
    """A model's generation settings, with the rules of this stack's ``generate()``."""
    settings = settings_of(checkpoint.folder, checkpoint.config)
    return settings.replace(
        pad_removed_before_softmax=compat.pad_removed_before_softmax(checkpoint.family),
        search_rules=compat.search_rules(),
    )
