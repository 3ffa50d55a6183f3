"""Damaged or unknown models are refused at start: by name, with an exit code, and at once."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
from client import refused
from folders import MODELS, model
from texts import document

SHARDED = MODELS / "tiny-llama-rope3"
QWEN = MODELS / "tiny-qwen3"
Q_PROJ = "model.layers.0.self_attn.q_proj.weight"


def without(name):
    return {"tensors": lambda t: {key: t[key] for key in t if key != name}}


def reshaped(name, *shape):
    return {"tensors": lambda t: t | {name: numpy.zeros(shape, numpy.float32)}}


def edit(file, change):
    """Changes one file of the model after it was copied."""
    return {"edit": (file, change)}


def header(change):
    def rewrite(data):
        size = int.from_bytes(data[:8], "little")
        fields = json.loads(data[8 : 8 + size])
        change(fields)
        text = json.dumps(fields).encode()
        text += b" " * (-len(text) % 8)
        return len(text).to_bytes(8, "little") + text + data[8 + size :]

    return edit("model.safetensors", rewrite)


def tokenizer(**changes):
    return edit("tokenizer.json", lambda data: json.dumps(json.loads(data) | changes).encode())


def remove(file):
    return {"remove": file}


# What is changed in a copy of tiny-llama, and what the refusal must name.
CASES = {
    "weights one byte short": (edit("model.safetensors", lambda d: d[:-1]), "model.safetensors"),
    "weights cut by half": (edit("model.safetensors", lambda d: d[: len(d) // 2]),
                            "model.safetensors"),
    "empty weights": (edit("model.safetensors", lambda d: b""), "model.safetensors"),
    "weights that are text": (edit("model.safetensors", lambda d: b"{" * 500),
                              "model.safetensors"),
    "bytes behind the weights": (edit("model.safetensors", lambda d: d + b"\0" * 8),
                                 "model.safetensors"),
    "offsets past the end": (header(lambda h: h[Q_PROJ].update(
        data_offsets=[h[Q_PROJ]["data_offsets"][0], 1 << 40])), Q_PROJ),
    "overlapping offsets": (header(lambda h: h[Q_PROJ].update(
        data_offsets=[h[Q_PROJ]["data_offsets"][0] - 64, h[Q_PROJ]["data_offsets"][1] - 64])),
        "model.safetensors"),
    "a shape that isn't the bytes": (header(lambda h: h[Q_PROJ].update(shape=[7, 7])), Q_PROJ),
    "an unknown dtype": (header(lambda h: h[Q_PROJ].update(dtype="F13")), Q_PROJ),
    "no weights": (remove("model.safetensors"), "safetensors"),
    "a tensor missing": (without(Q_PROJ), Q_PROJ),
    "no output head": (without("lm_head.weight"), "lm_head"),
    "a tensor of another shape": (reshaped(Q_PROJ, 8, 8), Q_PROJ),
    "no config": (remove("config.json"), "config.json"),
    "a config that isn't JSON": (edit("config.json", lambda d: d[:-5]), "config.json"),
    "a config that is a list": (edit("config.json", lambda d: b"[]"), "config.json"),
    "another family": ({"config": {"model_type": "mamba"}}, "model_type"),
    "no layers": ({"config": {"num_hidden_layers": 0}}, "num_hidden_layers"),
    "a negative size": ({"config": {"hidden_size": -64}}, "hidden_size"),
    "a huge size": ({"config": {"hidden_size": 1 << 60}}, "hidden_size"),
    "a size as text": ({"config": {"hidden_size": "64"}}, "hidden_size"),
    "no rope_theta": ({"config": {"rope_theta": None}}, "rope"),
    "an unknown rope type": ({"config": {"rope_scaling": {"rope_type": "spiral", "factor": 2.0}}},
                             "spiral"),
    "two ropes that disagree": ({"config": {"rope_parameters": {
        "rope_type": "default", "rope_theta": 7.0}}}, "rope"),
    "a quantised model": ({"config": {"quantization_config": {"quant_method": "gptq"}}},
                          "quantization_config"),
    "a sliding window": ({"config": {"sliding_window": 128, "use_sliding_window": True}},
                         "sliding_window"),
    "another activation": ({"config": {"hidden_act": "gelu"}}, "hidden_act"),
    "heads that don't divide": ({"config": {"num_key_value_heads": 3}}, "num_key_value_heads"),
    "no tokenizer": (remove("tokenizer.json"), "tokenizer.json"),
    "a tokenizer that isn't JSON": (edit("tokenizer.json", lambda d: d[:-9]), "tokenizer.json"),
    "another tokenizer model": (tokenizer(model={"type": "Unigram", "vocab": []}), "Unigram"),
    "an unknown normaliser": (tokenizer(normalizer={"type": "Sparkle"}), "Sparkle"),
    "an unknown pre-tokeniser": (tokenizer(pre_tokenizer={"type": "Sparkle"}), "Sparkle"),
    "a vocabulary beyond the embeddings": ({"config": {"vocab_size": 100}}, "vocab"),
}


def cut(shard, part):
    """Fault 56: bytes are missing at the end of a shard, a number or a part of it."""
    file = f"model-0000{shard}-of-00002.safetensors"
    size = (SHARDED / file).stat().st_size
    gone = int(size * part) if part < 1 else part
    changes = edit(file, lambda data: data[: size - gone])
    return {"source": SHARDED, **changes}, f"{file} is cut: {gone} byte"


INDEX = "model.safetensors.index.json"
SECOND = "model-00002-of-00002.safetensors"
CASES |= {f"shard {shard} without {part}": cut(shard, part)
          for shard in (1, 2) for part in (1, 4096, 0.5)}
CASES |= {
    "a shard missing": ({"source": SHARDED, "remove": SECOND}, SECOND),
    "an empty index": ({"source": SHARDED, **edit(INDEX, lambda d: b"{}")}, INDEX),
    "an index that leaves the folder": (
        {"source": SHARDED, **edit(INDEX, lambda d: d.replace(b"model-00002", b"../x"))}, "../x"),
    "a shard twice": ({"source": SHARDED, **edit(
        SECOND, lambda _: (SHARDED / "model-00001-of-00002.safetensors").read_bytes())},
        "model-0000"),
}


def broken(place, **changes):
    copied = {key: changes[key] for key in ("source", "config", "tensors") if key in changes}
    folder = model(place, **copied)
    if "edit" in changes:
        file, change = changes["edit"]
        (folder / file).write_bytes(change((folder / file).read_bytes()))
    if "remove" in changes:
        (folder / changes["remove"]).unlink()
    return folder


@pytest.fixture(scope="module")
def refusals(make_shared_daemon, folder):
    """All starts, several at once."""

    def start(number, name):
        model_folder = broken(folder / f"model-{number}", **CASES[name][0])
        return make_shared_daemon(model=model_folder, folder=folder / f"data-{number}").refusal()

    with ThreadPoolExecutor(8) as pool:
        return dict(zip(CASES, pool.map(start, range(len(CASES)), CASES), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_a_start_is_refused_by_name(refusals, name):
    named = CASES[name][1]
    code, log = refusals[name]
    assert code == 1, log
    last = [json.loads(line) for line in log.splitlines() if "can't start" in line]
    assert last and named in last[-1]["message"], log
    assert len(last[-1]["message"]) < 1000


def test_nothing_is_left_by_a_refused_start_and_the_next_one_works(make_daemon, tmp_path):
    folder = broken(tmp_path / "models", remove="tokenizer.json")
    daemon = make_daemon(model=folder, folder=tmp_path / "d")
    assert daemon.refusal()[0] == 1
    whole = make_daemon(folder=tmp_path / "d").start().client()
    whole.ingest(document("d"), "d")
    assert whole.ask("d").finished
    refused(lambda: whole.ask("none"), "NOT_FOUND", "DOCUMENT_NOT_FOUND")


@pytest.mark.parametrize("source, family, prompt_format", [
    (SHARDED, "llama", "llama3"), (QWEN, "qwen3", "chatml-empty-think")])
def test_other_families_formats_and_shards_are_served(make_daemon, source, family, prompt_format):
    client = make_daemon(model=source).start().client()
    status = client.status().model
    assert (status.family, status.prompt_format) == (family, prompt_format)
    client.ingest(document("family"), "d", ratio_ppm=[900_000, 0, 1_000_000])
    for ratio in (900_000, 0, 1_000_000):
        answer = client.ask("d", ratio=ratio, max_tokens=8)
        assert answer.finished.answer_tokens <= 8
