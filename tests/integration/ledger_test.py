"""/metrics against a ledger: after every step of a script all numbers of residency are known."""

import contextlib
import re

import pytest
from client import ask_request, refused
from daemon import eventually, scaled
from folders import adapter, scaled_adapter
from stubs import v1
from texts import document

RESIDENCY = re.compile(r"docmem_(budget|resident|pinned|leased|loading|lookups|hits|loads|unloads|"
                       r"load_seconds_count|quarantined|orphans)")
KINDS = ("cache", "adapter")
GAUGES = ("resident_bytes", "resident_items", "pinned_bytes", "leased_bytes", "loading_bytes")
LIMIT_BYTES = 64 << 10


def sample(name, **labels):
    inner = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    return f"docmem_{name}{{{inner}}}" if labels else f"docmem_{name}"


class Ledger:
    """What every number must be, told event by event."""

    def __init__(self, daemon, budget, disk_budget):
        self.daemon = daemon
        self._size = {}  # kind and name → bytes in the device tier
        self._disk = {"text": {}, "cache": {}, "adapter": {}, "checkpoint": {}}  # name → bytes
        self._budgets = {"device": budget, "disk": disk_budget}
        self._quarantined_files = 0
        self.restarted()

    def restarted(self):
        """Nothing is loaded and nothing was counted."""
        self._counts = {sample("orphans_collected_total"): 0}
        for kind in KINDS:
            for name in (*GAUGES, "lookups_total", "hits_total"):
                self._add(name, 0, kind=kind)
            for result in ("ok", "failed"):
                self._add("loads_total", 0, kind=kind, result=result)
            for reason in ("room", "erased", "idle"):
                self._add("unloads_total", 0, kind=kind, reason=reason)

    def _add(self, name, value, **labels):
        key = sample(name, tier="device", **labels)
        self._counts[key] = self._counts.get(key, 0) + value

    def ingested(self, made):
        self._size["cache", made.id] = made.caches[0].device_bytes
        self._disk["cache"][made.id] = made.caches[0].stored_bytes
        self._disk["text"][made.id] = made.stored_bytes - made.caches[0].stored_bytes

    def uploaded(self, made):
        self._size["adapter", made.document] = made.device_bytes
        self._disk["adapter"][made.document] = made.stored_bytes

    def deleted(self, kind, name):
        del self._disk[kind][name]

    def _move(self, kind, name, sign):
        self._add("resident_bytes", sign * self._size[kind, name], kind=kind)
        self._add("resident_items", sign, kind=kind)

    def hit(self, kind, name):
        self._add("lookups_total", 1, kind=kind)
        self._add("hits_total", 1, kind=kind)

    def missed(self, kind, name):
        """Asked for and not loaded, for want of room."""
        self._add("lookups_total", 1, kind=kind)

    def loaded(self, kind, name):
        self.missed(kind, name)
        self._add("loads_total", 1, kind=kind, result="ok")
        seconds = sample("load_seconds_count", source="disk")
        self._counts[seconds] = self._counts.get(seconds, 0) + 1
        self._move(kind, name, 1)

    def damaged(self, kind, name):
        self.missed(kind, name)
        self._add("loads_total", 1, kind=kind, result="failed")
        self._quarantined_files += 1

    def unloaded(self, kind, name, reason):
        self._add("unloads_total", 1, kind=kind, reason=reason)
        self._move(kind, name, -1)

    def pinned(self, kind, name, sign=1):
        self._add("pinned_bytes", sign * self._size[kind, name], kind=kind)

    def leased(self, kind, name, sign=1):
        self._add("leased_bytes", sign * self._size[kind, name], kind=kind)

    def expected(self):
        samples = dict(self._counts)
        samples[sample("quarantined_items", what="document")] = 0
        samples[sample("quarantined_items", what="file")] = self._quarantined_files
        for tier, budget in self._budgets.items():
            samples[sample("budget_bytes", tier=tier)] = budget
        for kind, files in self._disk.items():
            samples[sample("resident_bytes", tier="disk", kind=kind)] = sum(files.values())
            samples[sample("resident_items", tier="disk", kind=kind)] = len(files)
        return samples

    def found(self):
        return {name: value for name, value in self.daemon.metrics().items()
                if RESIDENCY.match(name)}

    def check(self):
        with contextlib.suppress(AssertionError):  # a lease may end just after the answer
            eventually(lambda: self.found() == self.expected(), 10)
        assert self.found() == self.expected()
        files = self.daemon.data.rglob("artifacts/*/*")
        assert sum(file.stat().st_size for file in files) == sum(
            sum(kind.values()) for kind in self._disk.values())


def prefetch(client, name, **fields):
    return client.documents.Prefetch(v1.PrefetchRequest(documents=[name], wait=True, **fields))


def pin(client, name, pinned=True):
    client.documents.Update(v1.UpdateDocumentRequest(
        document=name, values=v1.Document(pinned=pinned), update_mask={"paths": ["pinned"]}))


@pytest.fixture
def ledger(make_daemon, patient):
    """Documents d0 to d4 with caches of one size, d0 and d1 with an adapter each; room for two
    caches and one adapter, which is half as large."""
    probe = make_daemon(model=patient).start().client()
    texts = [document(n)[:1200] for n in range(5)]
    cache = probe.ingest(texts[0], "d0", ratio_ppm=[1_000_000]).document.caches[0].device_bytes
    budget = 2 * cache + probe.upload("d0", adapter()).device_bytes
    daemon = make_daemon("--device-budget", budget, "--disk-budget", "64MiB",
                         "--unload-policy", "lru", model=patient).start()
    client, ledger = daemon.client(), Ledger(daemon, budget, 64 << 20)
    ledger.check()
    for n, text in enumerate(texts):
        ledger.ingested(client.ingest(text, f"d{n}", ratio_ppm=[1_000_000]).document)
    ledger.uploaded(client.upload("d0", adapter()))
    ledger.uploaded(client.upload("d1", scaled_adapter(2)))
    ledger.check()
    return ledger


def test_every_number_of_residency_is_as_the_ledger_says(ledger):
    daemon = ledger.daemon
    client = daemon.client()

    # Loads and hits, by prefetch and question, with and without adapter.
    prefetch(client, "d2")
    ledger.loaded("cache", "d2")
    ledger.check()
    prefetch(client, "d2")
    ledger.hit("cache", "d2")
    ledger.check()
    client.ask("d0", max_tokens=2)
    ledger.loaded("cache", "d0")
    ledger.loaded("adapter", "d0")
    ledger.check()
    client.score("d0", "a")
    ledger.hit("cache", "d0")
    ledger.hit("adapter", "d0")
    ledger.check()

    # All is full: what was used longest ago makes room, and no more than that.
    client.ask("d3", max_tokens=2)
    ledger.unloaded("cache", "d2", "room")
    ledger.loaded("cache", "d3")
    ledger.check()
    client.ask("d1", max_tokens=2)
    ledger.unloaded("cache", "d0", "room")
    ledger.unloaded("adapter", "d0", "room")
    ledger.loaded("cache", "d1")
    ledger.loaded("adapter", "d1")
    ledger.check()

    # Leases while an answer runs; it ends with them.
    stream = client.queries.Ask(ask_request("d1", max_tokens=100_000))
    next(stream), next(stream)
    for kind in KINDS:
        ledger.hit(kind, "d1")
        ledger.leased(kind, "d1")
    ledger.check()
    stream.cancel()
    for kind in KINDS:
        ledger.leased(kind, "d1", -1)
    ledger.check()

    # Pins: what they leave no room for is refused, and nothing is unloaded for it.
    pin(client, "d3")
    ledger.pinned("cache", "d3")
    ledger.check()
    pin(client, "d1")
    for kind in KINDS:
        ledger.pinned(kind, "d1")
    ledger.check()
    refused(lambda: prefetch(client, "d0", adapter=True),
            "RESOURCE_EXHAUSTED", "DEVICE_BUDGET_EXCEEDED")
    for kind in KINDS:
        ledger.missed(kind, "d0")
    ledger.check()
    pin(client, "d1", False)
    for kind in KINDS:
        ledger.pinned(kind, "d1", -1)
    ledger.check()

    # Deletions: of what is loaded and pinned, of an adapter alone, of what isn't loaded.
    client.delete("d3")
    ledger.unloaded("cache", "d3", "erased")
    ledger.pinned("cache", "d3", -1)
    ledger.deleted("cache", "d3")
    ledger.deleted("text", "d3")
    ledger.check()
    client.adapters.SetCurrent(v1.SetCurrentAdapterRequest(document="d1"))
    client.adapters.Delete(v1.DeleteAdapterRequest(document="d1", version=1))
    ledger.unloaded("adapter", "d1", "erased")
    ledger.deleted("adapter", "d1")
    ledger.check()
    client.delete("d0")
    for kind in (*KINDS, "text"):
        ledger.deleted(kind, "d0")
    ledger.check()

    # Deleted while an answer uses it: its bytes count until the answer's end.
    stream = client.queries.Ask(ask_request("d1", max_tokens=100_000))
    next(stream), next(stream)
    ledger.hit("cache", "d1")
    ledger.leased("cache", "d1")
    client.delete("d1")
    for kind in ("cache", "text"):
        ledger.deleted(kind, "d1")
    ledger.check()
    stream.cancel()
    ledger.leased("cache", "d1", -1)
    ledger.unloaded("cache", "d1", "erased")
    ledger.check()


def test_a_load_that_fails_and_a_restart_are_as_the_ledger_says(ledger):
    daemon = ledger.daemon
    client = daemon.client()
    client.delete("d4")
    for kind in ("cache", "text"):
        ledger.deleted(kind, "d4")
    before = {*daemon.data.rglob("artifacts/*/*")}
    ledger.ingested(client.ingest(document(4)[:1200], "d4", ratio_ppm=[1_000_000]).document)
    file, = [file for file in {*daemon.data.rglob("artifacts/*/*")} - before
             if file.suffix == ".cache"]
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    refused(lambda: client.ask("d4"), "DATA_LOSS", "ARTIFACT_DAMAGED")
    ledger.damaged("cache", "d4")
    ledger.check()

    # What is pinned is loaded again by itself.
    pin(client, "d2")
    ledger.check()
    assert daemon.stop() == 0
    daemon.start()
    ledger.restarted()
    ledger.loaded("cache", "d2")
    ledger.pinned("cache", "d2")
    eventually(lambda: daemon.metrics()[sample("loads_total", kind="cache", result="ok",
                                               tier="device")])
    ledger.check()


def test_many_documents_make_no_larger_metrics(daemon):
    # Fault 76.
    client = daemon.client()

    def use(number):
        client.ingest(f"Text {number}.", f"document-{number}", ratio_ppm=[1_000_000])
        client.ask(f"document-{number}", max_tokens=1)

    use(0)
    before = daemon.metrics().keys()
    for number in range(1, scaled(100, 5000)):
        use(number)
    assert daemon.metrics().keys() == before
    text = daemon.metrics_text()
    assert len(text) < LIMIT_BYTES and "document-" not in text and "default" not in text
