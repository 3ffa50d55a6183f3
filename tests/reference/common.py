"""Paths, seeds and deterministic writers that every golden group shares."""

import json
import random
from pathlib import Path

import torch
from safetensors.torch import save_file

ROOT = Path(__file__).resolve().parent
MODELS = ROOT / "models"


def path(*parts: str) -> Path:
    """A path below tests/reference whose folder exists."""
    result = ROOT.joinpath(*parts)
    result.parent.mkdir(parents=True, exist_ok=True)
    return result


def save_tensors(target: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Writes contiguous tensors; safetensors orders them by dtype and name, so bytes repeat."""
    target.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: t.detach().contiguous().clone() for name, t in tensors.items()}, str(target))
    target.chmod(0o644)


def save_weights(target: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Writes model weights with the metadata that Hugging Face files carry."""
    save_file(tensors, str(target), metadata={"format": "pt"})
    target.chmod(0o644)


def save_json(target: Path, value, compact: bool = False) -> None:
    """Writes sorted JSON in ASCII (code points above it escaped), so any JSON reader agrees."""
    target.parent.mkdir(parents=True, exist_ok=True)
    style = {"separators": (",", ":")} if compact else {"indent": 1}
    target.write_text(json.dumps(value, sort_keys=True, **style) + "\n", encoding="ascii")


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_ids(seed: int, count: int, low: int, high: int) -> list[int]:
    """`count` token ids in [low, high), from Python's own generator."""
    rng = random.Random(seed)
    return [rng.randrange(low, high) for _ in range(count)]


def load_model(folder: Path):
    """The transformers model in fp32 with plain (eager) attention, ready for inference."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )
    return model.eval()


def set_up_torch() -> None:
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.set_grad_enabled(False)
