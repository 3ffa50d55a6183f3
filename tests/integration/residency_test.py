"""What is loaded: budgets, pins, leases, and what comes back when clients leave."""

import random
import threading
import time

import grpc
import pytest
from client import ask_request, collect, refusal_of, refused
from daemon import MEMORY_SLACK, eventually, scaled
from folders import adapter, scaled_adapter
from stubs import v1
from texts import document

CACHE, ADAPTER = v1.ARTIFACT_KIND_CACHE, v1.ARTIFACT_KIND_ADAPTER


def prefetch(client, *names, wait=True, **fields):
    return client.documents.Prefetch(v1.PrefetchRequest(documents=names, wait=wait, **fields))


def pin(client, name, pinned):
    client.documents.Update(v1.UpdateDocumentRequest(
        document=name, values=v1.Document(pinned=pinned), update_mask={"paths": ["pinned"]}))


def loaded(client, kind=CACHE):
    return {item.document for item in client.residents() if item.kind == kind}


def usage(client):
    """(bytes, leased bytes, items) of the device tier."""
    tier = next(tier for tier in client.status().tiers if tier.tier == v1.TIER_DEVICE)
    kinds = tier.kinds
    return (sum(kind.bytes for kind in kinds), sum(kind.leased_bytes for kind in kinds),
            sum(kind.items for kind in kinds))


def test_prefetch_loads_ahead_of_the_question(client):
    made = client.ingest(document("ahead"), "ahead", ratio_ppm=[900_000, 0]).document
    version = client.upload("ahead", adapter())
    assert "ahead" not in loaded(client)
    reply = prefetch(client, "ahead")
    assert [(item.kind, item.id, item.tier) for item in reply.items] == [
        (CACHE, made.caches[0].id, v1.TIER_DEVICE)]
    assert reply.items[0].bytes == made.caches[0].device_bytes
    reply = prefetch(client, "ahead", adapter=True, cache_id=made.caches[1].id)
    assert {(item.kind, item.id) for item in reply.items} == {
        (CACHE, made.caches[1].id), (ADAPTER, version.hash)}
    assert client.ask("ahead").started.cache_tier == v1.TIER_DEVICE
    found = {item.id: item for item in client.residents()}
    assert found[version.hash].bytes == version.device_bytes
    assert all(not item.pinned and not item.loading for item in found.values())
    refused(lambda: prefetch(client, "ahead", "nothing"), "NOT_FOUND", "DOCUMENT_NOT_FOUND")


def test_prefetch_without_waiting_returns_at_once(client):
    client.ingest(document("at-once"), "at-once")
    prefetch(client, "at-once", wait=False)
    eventually(lambda: "at-once" in loaded(client))


def test_residents_are_listed_in_pages_by_tier_and_kind(client):
    for index in range(5):
        client.ingest(document(index), f"page-{index}")
    client.upload("page-0", adapter())
    prefetch(client, *[f"page-{index}" for index in range(5)], adapter=True)
    items, request = [], v1.ListResidentRequest(page_size=2)
    while True:
        reply = client.admin.ListResident(request)
        assert len(reply.items) <= 2
        items += reply.items
        request.page_token = reply.next_page_token
        if not request.page_token:
            break
    assert items == client.residents() and len(items) >= 6
    only = client.admin.ListResident(v1.ListResidentRequest(kind=ADAPTER, page_size=1000)).items
    assert {item.kind for item in only} == {ADAPTER}
    refused(lambda: client.admin.ListResident(v1.ListResidentRequest(tier=v1.TIER_DISK)),
            "INVALID_ARGUMENT", "INVALID_FIELD", "tier")


def with_two_places(make_daemon, patient, *options):
    """A daemon with room for exactly two caches, and four documents of equal size."""
    measured = make_daemon(model=patient).start().client()
    sizes = {measured.ingest(document(n)[:1200], f"d{n}", ratio_ppm=[1_000_000]).document.caches[
        0].device_bytes for n in range(4)}
    assert len(sizes) == 1
    daemon = make_daemon("--device-budget", 2 * sizes.pop(), "--unload-policy", "lru", *options,
                         model=patient).start()
    client = daemon.client()
    for n in range(4):
        client.ingest(document(n)[:1200], f"d{n}", ratio_ppm=[1_000_000])
    return client


@pytest.fixture
def narrow(make_daemon, patient):
    return with_two_places(make_daemon, patient)


def test_a_full_budget_unloads_what_was_used_longest_ago(narrow):
    # Fault 29: two fit to the byte, the third takes the place of the least recently used.
    prefetch(narrow, "d0", "d1")
    assert loaded(narrow) == {"d0", "d1"}
    narrow.ask("d0")
    prefetch(narrow, "d2")
    assert loaded(narrow) == {"d0", "d2"}
    assert narrow.ask("d1").started.cache_tier == v1.TIER_DISK


def test_pins_fill_a_budget_and_the_refusal_has_the_numbers(narrow):
    pin(narrow, "d0", True)
    pin(narrow, "d1", True)
    prefetch(narrow, "d0", "d1")
    why = refused(lambda: prefetch(narrow, "d2"), "RESOURCE_EXHAUSTED", "DEVICE_BUDGET_EXCEEDED")
    need, free, pinned = (int(why.metadata[f"{name}_bytes"])
                          for name in ("need", "free", "pinned"))
    assert need > free and pinned == 2 * need
    assert loaded(narrow) == {"d0", "d1"}
    pin(narrow, "d0", False)
    prefetch(narrow, "d2")
    assert loaded(narrow) == {"d1", "d2"}


def test_what_a_running_answer_uses_stays_loaded(narrow):
    # Fault 24.
    alone = narrow.ask("d0", max_tokens=300)
    stream = narrow.queries.Ask(ask_request("d0", max_tokens=300))
    parts = [next(stream), next(stream)]
    for name in ("d1", "d2", "d3", "d1", "d2"):
        assert narrow.ask(name, max_tokens=2).finished
        leased = usage(narrow)[1]
        items = {item.document: item for item in narrow.residents()}
        if items["d0"].leases == 0:  # the answer has ended, perhaps before `leased` was read
            break
        assert leased >= items["d0"].bytes
    parts += stream
    tokens = [one.token_id for part in parts for one in part.delta.log_probabilities]
    assert tokens == alone.tokens
    eventually(lambda: usage(narrow)[1] == 0)


def test_a_loaded_document_is_asked_while_questions_on_others_wait_for_bytes(make_daemon, patient):
    client = with_two_places(make_daemon, patient, "--max-sequences", 3)
    pin(client, "d0", True)
    prefetch(client, "d0")
    running = client.queries.Ask(ask_request("d1", max_tokens=100_000))
    next(running), next(running)
    waiting = [client.queries.Ask(ask_request(name, max_tokens=2)) for name in ("d2", "d3") * 2]
    eventually(lambda: client.status().queue.loading >= 2)
    time.sleep(1.2)  # longer than others pass those that wait for bytes
    for _ in range(3):
        answer = collect(client.queries.Ask(ask_request("d0", max_tokens=2), timeout=30))
        assert answer.started.cache_tier == v1.TIER_DEVICE
    queue = client.status().queue
    assert (queue.running, queue.loading, queue.waiting) == (1, 3, 1)
    running.cancel()
    for stream in waiting:
        assert collect(stream).finished


def test_more_adapters_than_fit_all_get_their_turn(make_daemon, patient):
    # Fault 27.
    probe = make_daemon(model=patient).start().client()
    size = probe.ingest(document(0), "d").document.caches[0].device_bytes
    step = probe.upload("d", adapter()).device_bytes
    client = make_daemon("--device-budget", size + 2 * step, model=patient).start().client()
    client.ingest(document(0), "d")
    for factor in range(1, 6):
        client.upload("d", scaled_adapter(factor))
    requests = [ask_request("d", adapter_version=version, max_tokens=12)
                for version in range(1, 6)] * 2
    requests += [ask_request("d", mode=v1.MODE_BASE, max_tokens=12)] * 3
    done = []

    def run(request):
        done.append([*client.queries.Ask(request)][-1].finished.answer_tokens)

    threads = [threading.Thread(target=run, args=(one,), daemon=True) for one in requests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert done == [12] * len(requests)
    assert usage(client)[0] <= size + 2 * step


def test_loads_and_unloads_under_mixed_questions_change_no_answer(narrow):
    # Fault 25: room for two caches, four documents with an adapter each.
    for n in range(4):
        narrow.upload(f"d{n}", scaled_adapter(n + 1))
    requests = [ask_request(f"d{n}", mode=mode, max_tokens=8) for n in range(4) for mode in (1, 2)]
    alone = [collect(narrow.queries.Ask(request)) for request in requests]
    until, wrong, asked = time.monotonic() + scaled(4, 300), [], []

    def ask_at_random(seed):
        draw = random.Random(seed)
        while time.monotonic() < until and not wrong:
            n = draw.randrange(len(requests))
            answer = collect(narrow.queries.Ask(requests[n]))
            asked.append(answer.started.cache_tier)
            same = answer.tokens == alone[n].tokens and answer.log_probabilities == pytest.approx(
                alone[n].log_probabilities, abs=1e-4)
            if not same:
                wrong.append(n)

    threads = [threading.Thread(target=ask_at_random, args=(n,), daemon=True) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(scaled(90, 600))
    assert not wrong and set(asked) == {v1.TIER_DISK, v1.TIER_DEVICE}
    assert usage(narrow)[1] == 0


def test_a_memory_larger_than_the_budget_is_refused_not_awaited(make_daemon, patient):
    client = make_daemon("--device-budget", "4KiB", model=patient).start().client()
    client.ingest(document(0), "d", ratio_ppm=[0])
    for call in (lambda: client.ask("d"), lambda: prefetch(client, "d")):
        why = refused(call, "RESOURCE_EXHAUSTED", "DEVICE_BUDGET_EXCEEDED")
        assert int(why.metadata["need_bytes"]) > 4096


def test_uploads_and_deletions_leave_no_bytes(make_daemon):
    # Fault 28.
    daemon = make_daemon().start()
    client = daemon.client()
    client.ingest(document("many"), "d")
    client.ask("d")
    before, start = usage(client), daemon.resident_bytes()
    for factor in range(1, scaled(30, 1000) + 1):
        made = client.upload("d", scaled_adapter(factor))
        client.ask("d", max_tokens=1)
        client.adapters.SetCurrent(v1.SetCurrentAdapterRequest(document="d"))
        client.adapters.Delete(v1.DeleteAdapterRequest(document="d", version=made.version))
    assert usage(client) == before
    assert client.document("d").adapter_count == 0
    assert len([*daemon.data.rglob("artifacts/*/*")]) == 2, "its text and its cache"
    assert daemon.resident_bytes() - start < MEMORY_SLACK * (64 << 20)


def test_a_prefetch_that_is_cut_leaves_nothing_to_a_later_text_of_the_same_name(
        make_daemon, patient):
    # Fault 38: cancelled or deleted while it is being read.
    client = make_daemon("--device-budget", "3MiB", model=patient).start().client()
    texts = [document(n, 30) for n in range(2)]
    alone = []
    for n, text in enumerate(texts):
        size = client.ingest(text, f"d{n}", ratio_ppm=[0]).document.caches[0].device_bytes
        alone.append(client.ask(f"d{n}", max_tokens=8))
        client.delete(f"d{n}")
    assert 3 << 20 < 3 * size, "a load that goes on needlessly is in the way of others"
    draw = random.Random(38)
    for turn in range(scaled(8, 200)):
        client.ingest(texts[turn % 2], "d", ratio_ppm=[0])
        loads = [client.documents.Prefetch.future(v1.PrefetchRequest(documents=["d"], wait=True))
                 for _ in range(2)]
        time.sleep(draw.uniform(0, 0.004))
        for load in loads:
            load.cancel()
        if draw.random() < 0.5:
            client.delete("d")
            turn += 1
            client.ingest(texts[turn % 2], "d", ratio_ppm=[0])
        answer = client.ask("d", max_tokens=8)
        assert answer.tokens == alone[turn % 2].tokens
        assert answer.log_probabilities == alone[turn % 2].log_probabilities
        client.delete("d")
    eventually(lambda: usage(client) == (0, 0, 0))


def test_deletion_works_when_the_disk_budget_is_full(make_daemon):
    # Faults 34 and 79.
    daemon = make_daemon("--disk-budget", "4MiB").start()
    client = daemon.client()
    names, why = [], None
    for n in range(20):
        try:
            client.ingest(document(n), f"d{n}", ratio_ppm=[0])
            names.append(f"d{n}")
        except grpc.RpcError as error:
            why = refusal_of(error)
            break
    assert (why.code.name, why.reason) == ("RESOURCE_EXHAUSTED", "DISK_BUDGET_EXCEEDED")
    assert int(why.metadata["need_bytes"]) > int(why.metadata["free_bytes"])
    stored = sum(file.stat().st_size for file in daemon.data.rglob("artifacts/*/*"))
    assert stored <= 4 << 20
    for call in (
        lambda: client.build(names[0], ratio_ppm=[1, 2, 3, 4, 5, 6, 7, 8]),
        lambda: [client.upload(names[0], scaled_adapter(n)) for n in range(1, 99)],
    ):
        refused(call, "RESOURCE_EXHAUSTED", "DISK_BUDGET_EXCEEDED")
    assert client.ask(names[0]).finished
    for name in names[:3]:
        assert client.delete(name).deleted
    client.ingest(document("fits"), "fits", ratio_ppm=[0])
    assert not [*daemon.data.rglob("temporary/*")]
