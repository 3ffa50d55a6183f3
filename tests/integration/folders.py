"""Model and adapter folders made from the committed ones, by changing what a test is about."""

import json
import shutil
from pathlib import Path

import safetensors.numpy
from daemon import ROOT, TINY_LLAMA

ADAPTERS = ROOT / "tests/reference/adapters"
MODELS = ROOT / "tests/reference/models"
CONFIG, TENSORS = "adapter_config.json", "adapter_model.safetensors"
END_OF_ANSWER_IDS = (0, 2)


def adapter(name="all-modules"):
    """File name → bytes of a committed adapter for tiny-llama."""
    return {file: (ADAPTERS / name / file).read_bytes() for file in (CONFIG, TENSORS)}


def with_config(files, **changes):
    """Keys set to None are removed."""
    config = json.loads(files[CONFIG])
    for key, value in changes.items():
        config[key] = value
        if value is None:
            del config[key]
    return {**files, CONFIG: json.dumps(config).encode()}


def with_tensors(files, change):
    """`change` gets and returns name → array."""
    tensors = change(safetensors.numpy.load(files[TENSORS]))
    return {**files, TENSORS: safetensors.numpy.save(tensors)}


def renamed(files, old, new):
    return with_tensors(files, lambda t: {key.replace(old, new): t[key] for key in t})


def scaled_adapter(factor, name="all-modules"):
    """The same adapter with other numbers, so with another content."""
    return with_tensors(adapter(name), lambda t: {
        key: t[key] * factor if "lora_B" in key else t[key] for key in t
    })


def model(place, *, source=TINY_LLAMA, config=None, tensors=None):
    """A copy of a model in `place`, under the same name; `config`: keys to change (None removes),
    `tensors`: a function as in with_tensors."""
    folder = Path(place) / source.name
    shutil.copytree(source, folder)
    if config:
        path = folder / "config.json"
        changed = json.loads(path.read_text()) | config
        kept = {key: value for key, value in changed.items() if value is not None}
        path.write_text(json.dumps(kept))
    if tensors:
        path = folder / "model.safetensors"
        path.write_bytes(safetensors.numpy.save(tensors(safetensors.numpy.load(path.read_bytes()))))
    return folder


def patient_model(place):
    """Its end-of-answer tokens have logit 0, so that greedy decoding never chooses them."""

    def silence(tensors):
        head = tensors["lm_head.weight"].copy()
        head[list(END_OF_ANSWER_IDS)] = 0
        return tensors | {"lm_head.weight": head}

    return model(place, tensors=silence)
