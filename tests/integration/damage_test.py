"""Damaged and foreign files in the data folder: named, quarantined, and the rest is served."""

import json
import os
import shutil
import sqlite3
import time

import pytest
from client import refused
from daemon import eventually, scaled
from folders import adapter, model
from stubs import v1
from texts import document

DAMAGED = ("DATA_LOSS", "ARTIFACT_DAMAGED")
PAGE = 4096


class Files:
    """Which files of the data folder a call made."""

    def __init__(self, daemon):
        self.daemon = daemon

    def now(self):
        return set(self.daemon.data.rglob("artifacts/*/*"))

    def of(self, call):
        before = self.now()
        call()
        made = self.now() - before
        return {file.suffix[1:]: sorted(one for one in made if one.suffix == file.suffix)
                for file in made}


def flip(file, offset):
    with file.open("r+b") as stream:
        stream.seek(offset)
        byte = stream.read(1)[0]
        stream.seek(offset)
        stream.write(bytes([byte ^ 0x40]))


def sections(file):
    """One offset inside the length, the header, and every tensor of a safetensors file."""
    data = file.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    tensors = [entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"]
    return [0, 8, 8 + size // 2, 8 + size - 1,
            *[8 + size + (begin + end) // 2 for begin, end in tensors if end > begin],
            len(data) - 1]


@pytest.fixture(scope="module")
def client(daemon):
    client = daemon.client()
    client.ingest(document("good"), "good")
    return client


def state_of(client, name):
    return client.document(name).caches[0].state


def test_a_damaged_cache_is_quarantined_wherever_it_is_damaged(daemon, client):
    # Fault 39: one flipped byte in every section, and a cut at every page.
    files = Files(daemon)
    text = document("damaged")
    sample = files.of(lambda: client.ingest(text, "sample"))["cache"][0]
    damages = [(f"flip-{offset}", lambda f, at=offset: flip(f, at)) for offset in sections(sample)]
    cuts = range(0, sample.stat().st_size, PAGE * scaled(4, 1))
    damages += [(f"cut-{size}", lambda f, at=size: os.truncate(f, at)) for size in cuts]
    damages.append(("longer", lambda f: os.truncate(f, f.stat().st_size + 1)))
    loads = "docmem_resident_bytes{kind=\"cache\",tier=\"device\"}"
    client.ask("good")
    before = daemon.metrics()[loads]
    for name, damage in damages:
        damage(files.of(lambda name=name: client.ingest(text, name))["cache"][0])
        for _ in range(2):
            refused(lambda name=name: client.ask(name), *DAMAGED)
        assert state_of(client, name) == v1.Cache.STATE_QUARANTINED, name
        assert client.ask("good", max_tokens=2).finished
    assert daemon.metrics()[loads] == before
    assert client.status().quarantined == len(damages)
    # Deleting and building again mends it.
    name = damages[0][0]
    client.documents.DeleteCache(v1.DeleteCacheRequest(
        document=name, cache_id=client.document(name).caches[0].id))
    client.build(name)
    assert client.ask(name).tokens == client.ask("sample").tokens
    # So does ingesting the same again.
    client.ingest(text, damages[1][0])
    assert client.ask(damages[1][0]).finished


def test_a_damaged_cache_is_noticed_when_it_is_pinned_or_prefetched(make_daemon):
    daemon = make_daemon().start()
    client = daemon.client()
    made = Files(daemon).of(lambda: client.ingest(document("pin"), "pin", pin=True))
    client.ingest(document("good"), "good")
    flip(made["cache"][0], 5000)
    daemon.restart(gently=False)
    client = daemon.client()
    eventually(lambda: state_of(client, "pin") == v1.Cache.STATE_QUARANTINED)
    refused(lambda: client.documents.Prefetch(
        v1.PrefetchRequest(documents=["pin"], wait=True)), *DAMAGED)
    assert client.ask("good").finished


def test_a_damaged_adapter_is_no_silent_base(daemon, client):
    files = Files(daemon)
    client.ingest(document("adapter"), "adapter")
    made = files.of(lambda: client.upload("adapter", adapter()))["adapter"]
    for file in made:
        flip(file, file.stat().st_size - 1)
    refused(lambda: client.ask("adapter"), *DAMAGED)
    refused(lambda: client.ask("adapter"), *DAMAGED)
    assert client.adapters.Get(v1.GetAdapterRequest(
        document="adapter", version=1)).state == v1.Adapter.STATE_QUARANTINED
    assert client.ask("adapter", mode=v1.MODE_BASE).finished
    refused(lambda: client.download("adapter"), *DAMAGED)
    assert client.upload("adapter", adapter("rslora")).version == 2
    assert client.ask("adapter").started.adapter_version == 2


def test_a_damaged_text_costs_the_text_alone(daemon, client):
    made = Files(daemon).of(lambda: client.ingest(document("text"), "text"))
    flip(made["text"][0], made["text"][0].stat().st_size // 2)
    refused(lambda: client.text("text"), *DAMAGED)
    refused(lambda: client.build("text", ratio_ppm=[0]), *DAMAGED)
    assert client.ask("text").finished


def test_a_missing_file_is_told_and_what_is_loaded_goes_on(daemon, client):
    # Fault 41.
    made = Files(daemon).of(lambda: client.ingest(document("missing"), "missing"))
    loaded = Files(daemon).of(lambda: client.ingest(document("loaded"), "loaded"))
    answer = client.ask("loaded")
    made["cache"][0].unlink()
    loaded["cache"][0].unlink()
    refused(lambda: client.ask("missing"), *DAMAGED)
    assert state_of(client, "missing") == v1.Cache.STATE_QUARANTINED
    assert client.ask("loaded").tokens == answer.tokens
    assert client.delete("missing").deleted


def test_a_damaged_row_quarantines_its_document_alone(make_daemon):
    # Fault 78.
    daemon = make_daemon().start()
    client = daemon.client()
    for name in ("bad", "good"):
        client.ingest(document(name), name)
    answer = client.ask("good")
    daemon.kill()
    with sqlite3.connect(daemon.data / "registry.db") as registry:
        registry.execute("UPDATE documents SET document_tokens = 7 WHERE name = 'bad'")
    registry.close()
    client = daemon.start().client()
    bad = client.document("bad")
    assert bad.state == v1.Document.STATE_QUARANTINED and "damaged" in bad.state_message
    refused(lambda: client.ask("bad"), "DATA_LOSS", "DOCUMENT_QUARANTINED")
    refused(lambda: client.ingest(document("bad"), "bad"), "DATA_LOSS", "DOCUMENT_QUARANTINED")
    assert client.ask("good").tokens == answer.tokens
    assert client.delete("bad").deleted
    client.ingest(document("bad"), "bad")
    assert client.ask("bad").finished


def test_a_registry_that_isnt_one_is_refused_by_name(make_daemon):
    daemon = make_daemon()
    daemon.data.mkdir()
    (daemon.data / "registry.db").write_bytes(b"nonsense" * 1000)
    code, log = daemon.refusal()
    assert code == 1 and "registry" in log


def test_files_without_a_row_go_and_foreign_files_stay(make_daemon):
    # Fault 44.
    daemon = make_daemon().start()
    client = daemon.client()
    count = scaled(20, 500)
    for number in range(count):
        client.ingest(document(number, 1), f"d{number}", ratio_ppm=[1_000_000])
    daemon.kill()
    files = Files(daemon).now()
    # Of files under no row the young ones may be another's who is about to publish them.
    young, old = (daemon.data / "temporary" / f"00000000000ffff{n}.cache" for n in range(2))
    for orphan in (young, old):
        shutil.copy(min(files), orphan)
    os.utime(old, (time.time() - 7200,) * 2)
    foreign = daemon.data / "artifacts" / "notes.txt"
    foreign.write_text("mine")
    client = daemon.start().client()
    assert daemon.metrics()["docmem_orphans_collected_total"] == 1
    assert young.exists() and not old.exists()
    assert client.status().documents == count
    stored = sum(client.document(f"d{n}").stored_bytes for n in range(count))
    assert stored == sum(file.stat().st_size for file in files)
    assert foreign.read_text() == "mine"
    assert Files(daemon).now() == files


def change_weight(tensors):
    changed = tensors["model.layers.0.mlp.up_proj.weight"].copy()
    changed[0, 0] += 1
    return tensors | {"model.layers.0.mlp.up_proj.weight": changed}


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192}
SIBLINGS = {
    "another weight": ({"tensors": change_weight}, "weights_digest"),
    "another rope_theta": ({"config": {"rope_theta": 500000.0}}, "config_digest"),
    "scaled positions": ({"config": {"rope_scaling": LLAMA3}}, "config_digest"),
    "another epsilon": ({"config": {"rms_norm_eps": 1e-6}}, "config_digest"),
}


@pytest.mark.parametrize("name", SIBLINGS)
def test_a_cache_of_a_sibling_model_never_answers(make_daemon, tmp_path, name):
    # Faults 5, 7 and 8: equal shapes, another producer.
    changes, field = SIBLINGS[name]
    daemon = make_daemon(folder=tmp_path / "d", model=model(tmp_path / "one")).start()
    client = daemon.client()
    made = client.ingest(document("sibling"), "d").document
    original = client.ask("d")
    daemon.kill()
    shutil.rmtree(tmp_path / "one")
    daemon_two = make_daemon(folder=tmp_path / "d", model=model(tmp_path / "one", **changes))
    client = daemon_two.start().client()
    why = refused(lambda: client.ask("d"), "FAILED_PRECONDITION", "IDENTITY_MISMATCH")
    assert why.metadata["field"] == field, why
    refused(lambda: client.ask("d", cache_id=made.caches[0].id),
            "FAILED_PRECONDITION", "IDENTITY_MISMATCH")
    rebuilt = client.ask("d", ratio=900_000, build_if_missing=True)
    assert rebuilt.started.cache_id != made.caches[0].id
    assert rebuilt.log_probabilities != pytest.approx(original.log_probabilities, abs=1e-6)
    assert len(client.document("d").caches) == 2


def test_a_weight_changed_in_place_with_its_time_put_back_is_noticed(make_daemon, tmp_path):
    # Fault 8: the digest that a start remembers must not outlive the file's content.
    folder = model(tmp_path / "one")
    daemon = make_daemon(folder=tmp_path / "d", model=folder).start()
    client = daemon.client()
    client.ingest(document("place"), "d")
    digest = client.status().model.weights_digest
    daemon.kill()
    weights = folder / "model.safetensors"
    before = weights.stat()
    flip(weights, before.st_size - 2)
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))
    client = daemon.start().client()
    assert client.status().model.weights_digest != digest
    refused(lambda: client.ask("d"), "FAILED_PRECONDITION", "IDENTITY_MISMATCH")
