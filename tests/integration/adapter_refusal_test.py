"""Damaged and unsupported adapters: each is refused by name, and running answers don't notice."""

import json
import threading

import numpy
import pytest
import safetensors.numpy
from client import ask_request, collect, refused, upload_messages
from folders import CONFIG, TENSORS, adapter, renamed, with_config, with_tensors
from texts import document

INVALID = ("INVALID_ARGUMENT", "ADAPTER_INVALID")
UNSUPPORTED = ("UNIMPLEMENTED", "ADAPTER_UNSUPPORTED")
PREFIX = "base_model.model."
Q_A = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
Q_B = Q_A.replace("lora_A", "lora_B")
GOOD = adapter()


def config(**changes):
    return with_config(GOOD, **changes)


def tensors(change):
    return with_tensors(GOOD, change)


def extra(name, *shape):
    return tensors(lambda t: t | {name: numpy.zeros(shape, numpy.float32)})


def changed(name, function):
    return tensors(lambda t: t | {name: function(t[name])})


def without(*names):
    return tensors(lambda t: {key: t[key] for key in t if key not in names})


def header(change):
    """The tensor file with its JSON header changed, not its payload."""
    size = int.from_bytes(GOOD[TENSORS][:8], "little")
    fields = json.loads(GOOD[TENSORS][8 : 8 + size])
    change(fields)
    text = json.dumps(fields).encode()
    text += b" " * (-len(text) % 8)
    return {**GOOD, TENSORS: len(text).to_bytes(8, "little") + text + GOOD[TENSORS][8 + size :]}


def bytes_of(name, data):
    return {**GOOD, name: data}


def rank(files, name, size):
    """q_proj of layer 0 with another rank in tensors and rank_pattern."""
    files = with_tensors(files, lambda t: t | {
        Q_A: numpy.ones((size, 64), numpy.float32),
        Q_B: numpy.ones((t[Q_B].shape[0], size), numpy.float32),
    })
    return with_config(files, rank_pattern={name: size})


def nan(array):
    array = array.copy()
    array.flat[3] = numpy.nan
    return array


# What is sent, how it is refused, and a part of the message.
DAMAGED = {
    "no files": ({}, INVALID, CONFIG),
    "no configuration": ({TENSORS: GOOD[TENSORS]}, INVALID, CONFIG),
    "no tensors": ({CONFIG: GOOD[CONFIG]}, INVALID, TENSORS),
    "empty configuration": (bytes_of(CONFIG, b""), INVALID, CONFIG),
    "empty tensors": (bytes_of(TENSORS, b""), INVALID, TENSORS),
    "truncated configuration": (bytes_of(CONFIG, GOOD[CONFIG][:-9]), INVALID, CONFIG),
    "truncated tensors": (bytes_of(TENSORS, GOOD[TENSORS][:-1]), INVALID, TENSORS),
    "half of the tensors": (bytes_of(TENSORS, GOOD[TENSORS][: len(GOOD[TENSORS]) // 2]),
                            INVALID, TENSORS),
    "header longer than the file": (bytes_of(TENSORS, b"\xff" * 8 + GOOD[TENSORS][8:]),
                                    INVALID, TENSORS),
    "trailing bytes": (bytes_of(TENSORS, GOOD[TENSORS] + b"\0" * 16), INVALID, TENSORS),
    "a configuration that is a list": (bytes_of(CONFIG, b"[]"), INVALID, CONFIG),
    "a configuration with NaN": (bytes_of(CONFIG, GOOD[CONFIG].replace(b'"lora_alpha": 8',
                                                                       b'"lora_alpha": NaN')),
                                 INVALID, CONFIG),
    "a configuration that nests deep": (bytes_of(CONFIG, b"[" * 100_000), INVALID, CONFIG),
    "rank 0": (config(r=0), INVALID, "r"),
    "rank -4": (config(r=-4), INVALID, "r"),
    "rank as text": (config(r="4"), INVALID, "r"),
    "rank that the tensors don't have": (config(r=8), INVALID, "shape"),
    "no target modules": (config(target_modules=[]), INVALID, "target_modules"),
    "unmatched target": (config(target_modules=["nothing"]), INVALID, ""),
    "broken pattern": (config(target_modules="(["), INVALID, "target_modules"),
    "target without tensors": (without(Q_A, Q_B), INVALID, "q_proj"),
    "A missing": (without(Q_A), INVALID, "q_proj"),
    "B missing": (without(Q_B), INVALID, "q_proj"),
    "A and B swapped": (tensors(lambda t: t | {Q_A: t[Q_B], Q_B: t[Q_A]}), INVALID, "shape"),
    "A transposed": (changed(Q_A, lambda a: numpy.ascontiguousarray(a.T)), INVALID, "shape"),
    "A flat": (changed(Q_A, lambda a: a.reshape(-1)), INVALID, "shape"),
    "A of another base": (changed(Q_A, lambda a: a[:, :32].copy()), INVALID, "shape"),
    "NaN": (changed(Q_A, nan), INVALID, "NaN"),
    "infinity": (changed(Q_B, lambda b: b + numpy.inf), INVALID, "infinity"),
    "integers": (changed(Q_A, lambda a: a.astype(numpy.int32)), INVALID, "dtype"),
    "layer that the model lacks": (renamed(GOOD, "layers.1.", "layers.7."), INVALID, "layers.7"),
    "unknown prefix": (renamed(GOOD, PREFIX, "vision_tower."), INVALID, "vision_tower."),
    "tensors named twice": (tensors(lambda t: t | {Q_A.removeprefix(PREFIX): t[Q_A]}), INVALID,
                            "means the same"),
    "offsets past the end": (header(lambda h: h[Q_A].update(
        data_offsets=[h[Q_A]["data_offsets"][0], 1 << 40])), INVALID, Q_A),
    "offsets reversed": (header(lambda h: h[Q_A].update(
        data_offsets=h[Q_A]["data_offsets"][::-1])), INVALID, Q_A),
    "shape that overflows": (header(lambda h: h[Q_A].update(shape=[1 << 62, 1 << 62])),
                             INVALID, Q_A),
    "unknown dtype": (header(lambda h: h[Q_A].update(dtype="F13")), INVALID, Q_A),
    "rank over the limit": (rank(GOOD, "layers.0.self_attn.q_proj", 65), INVALID, "65"),
    "huge rank pattern": (config(rank_pattern={"q_proj": 256}), INVALID, "256"),
}

# Features of PEFT that would change the answer: refused by name, never applied in part.
UNSUPPORTED_FILES = {
    "lm_head saved": (extra("base_model.model.lm_head.weight", 600, 64), "lm_head"),
    "modules_to_save": (config(modules_to_save=["lm_head"]), "modules_to_save"),
    "lm_head targeted": (config(target_modules=["q_proj", "lm_head"]), "lm_head"),
    "embeddings": (extra("base_model.model.model.embed_tokens.lora_embedding_A", 4, 600),
                   "embed"),
    "use_dora": (config(use_dora=True), "use_dora"),
    "magnitudes without use_dora": (extra(
        Q_A.replace("lora_A.weight", "lora_magnitude_vector"), 256), "lora_magnitude_vector"),
    "bias lora_only": (config(bias="lora_only"), "bias"),
    "bias all": (config(bias="all"), "bias"),
    "bias tensors": (extra(Q_A.replace("lora_A.weight", "base_layer.bias"), 256), "bias"),
    "lora_bias": (config(lora_bias=True), "lora_bias"),
    "another method": (config(peft_type="LOHA"), "LOHA"),
    "fan_in_fan_out": (config(fan_in_fan_out=True), "fan_in_fan_out"),
    "layer_replication": (config(layer_replication=[[0, 2]]), "layer_replication"),
    "use_qalora": (config(use_qalora=True), "use_qalora"),
    "use_bdlora": (config(use_bdlora={"nblocks": 2}), "use_bdlora"),
    "kasa_config": (config(kasa_config={"a": 1}), "kasa_config"),
    "velora_config": (config(velora_config={"a": 1}), "velora_config"),
    "monteclora_config": (config(monteclora_config={"a": 1}), "monteclora_config"),
    "arrow_config": (config(arrow_config={"a": 1}), "arrow_config"),
    "use_gks": (config(use_gks=True), "use_gks"),
    "trainable tokens": (config(trainable_token_indices=[1]), "trainable_token_indices"),
    "target_parameters": (config(target_parameters=["a.b"]), "target_parameters"),
    "megatron_config": (config(megatron_config={"a": 1}), "megatron_config"),
    **{f"initialised by {name}": (config(init_lora_weights=name), "init_lora_weights")
       for name in ("pissa", "pissa_niter_16", "olora", "corda", "lora_ga")},
    "a key of the future": (config(use_wonderlora=True), "use_wonderlora"),
}


def test_no_damaged_adapter_is_accepted_and_running_answers_dont_notice(make_daemon, patient):
    # Faults 13, 15 to 18, 20, 21.
    client = make_daemon(model=patient).start().client()
    for index in range(4):
        client.ingest(document(index), f"d{index}")
        client.upload(f"d{index}", GOOD)
    requests = [ask_request(f"d{index % 4}", max_tokens=600, mode=1 + index // 4)
                for index in range(8)]
    alone = [collect(client.queries.Ask(request)) for request in requests]
    before = client.ingest(document("target"), "target").document
    together = [None] * len(requests)

    def run(index):
        together[index] = collect(client.queries.Ask(requests[index]))

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(requests))]
    for thread in threads:
        thread.start()
    corpus = {name: (files, *how, part) for name, (files, how, part) in DAMAGED.items()}
    corpus |= {name: (files, *UNSUPPORTED, part)
               for name, (files, part) in UNSUPPORTED_FILES.items()}
    assert len(corpus) >= 30
    wrong = []
    for name, (files, code, reason, part) in corpus.items():
        try:
            why = refused(lambda files=files: client.upload("target", files), code, reason)
            assert part in why.message, why.message
        except AssertionError as error:
            wrong.append(f"{name}: {error}")
    assert not wrong, "\n".join(wrong)
    for thread in threads:
        thread.join(120)
    for one, other in zip(alone, together, strict=True):
        assert one.tokens == other.tokens
        assert one.log_probabilities == pytest.approx(other.log_probabilities, abs=1e-4)
    assert client.document("target") == before
    assert client.status().adapters == 4


def test_a_pickled_adapter_is_never_opened(client):
    # Fault 23.
    client.ingest(document("pickle"), "pickle")
    bomb = b"cos\nsystem\n(S'touch /tmp/opened'\ntR."
    why = refused(lambda: client.upload("pickle", {CONFIG: GOOD[CONFIG],
                                                   "adapter_model.bin": bomb}), *UNSUPPORTED)
    assert "adapter_model.bin" in why.message or why.metadata["field"] == "file.name"


def test_known_prefixes_mean_the_same(client):
    # Faults 13 and 14.
    client.ingest(document("prefix"), "prefix")

    def score():
        return client.score("prefix", "The blue door.").log_probability

    client.upload("prefix", GOOD)
    expected = score()
    for prefix in ("", "model.", PREFIX * 2 + "model.", "language_model.model."):
        made = client.upload("prefix", renamed(GOOD, PREFIX + "model.", prefix))
        assert made.current and score() == pytest.approx(expected, abs=1e-5), prefix


def test_unknown_tensors_are_listed_by_name(client):
    client.ingest(document("listed"), "listed")
    files = tensors(lambda t: {"some.other." + key: t[key] for key in t})
    why = refused(lambda: client.upload("listed", files), *INVALID)
    assert "some.other." in why.message


@pytest.mark.parametrize("name, files, field", [
    ("a folder", {"sub/adapter_config.json": b"{}"}, "file.name"),
    ("an absolute path", {"/etc/passwd": b"x"}, "file.name"),
    ("a parent", {"../adapter_config.json": b"{}"}, "file.name"),
    ("no name", {"": b"x"}, "file.name"),
    ("a long name", {"a" * 5000: b"x"}, "file.name"),
    ("another file", {"optimizer.pt": b"x"}, "file.name"),
])
def test_only_the_known_files_are_taken(client, name, files, field):
    client.ingest(document("names"), "names")
    why = refused(lambda: client.upload("names", {**GOOD, **files}), *INVALID, field)
    assert len(why.message) < 1024, name


def test_a_file_sent_twice_is_refused(client):
    client.ingest(document("twice"), "twice")
    half = list(upload_messages("twice", GOOD, end=False))
    refused(lambda: client.adapters.Upload(iter([*half, *half[1:]])), *INVALID, "file.name")
    assert client.document("twice").adapter_count == 0


def test_an_empty_adapter_has_no_effect_and_is_refused(client):
    client.ingest(document("empty"), "empty")
    files = {**GOOD, TENSORS: safetensors.numpy.save({})}
    refused(lambda: client.upload("empty", files), *INVALID)
