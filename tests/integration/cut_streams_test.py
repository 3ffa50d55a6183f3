"""Streams cut at any moment: they leave nothing behind, and nobody else's answer changes."""

import collections
import concurrent.futures
import itertools
import random
import re
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import grpc
import pytest
from client import (ask_request, collect, ingest_messages, memory, refusal_of, refused,
                    upload_messages)
from daemon import eventually, scaled
from folders import adapter
from stubs import v1
from texts import document

NAMES = ("d0", "d1", "d2")
SLOTS = 4
CLIENTS = 8
STREAMS = scaled(60, 500)
KILLED = 6  # streams of a client that is killed
LENGTH = 30
WHOLE_BUDGET = 8000  # tokens of the answer that needs all of --kv-budget


def kv_bytes(make_daemon, model):
    """What the longest question may take, as a daemon with less room tells it."""
    client = make_daemon("--kv-budget", "1KiB", model=model).start().client()
    client.ingest(document("d0"), "d0")
    why = refused(lambda: client.ask("d0", max_tokens=WHOLE_BUDGET),
                  "INVALID_ARGUMENT", "LIMIT_EXCEEDED", "max_tokens")
    return int(re.search(r"may take (\d+) bytes", why.message)[1])


@pytest.fixture(scope="module")
def daemon(make_shared_daemon, patient):
    """Room for two documents of three, for four answers, and for one with the whole KV budget."""
    made = make_shared_daemon(model=patient).start().client().ingest(document("d0"), "d0")
    cache = made.document.caches[0].device_bytes
    daemon = make_shared_daemon(
        "--device-budget", 5 * cache // 2, "--max-sequences", SLOTS, "--drain-seconds", 600,
        "--kv-budget", kv_bytes(make_shared_daemon, patient), model=patient).start()
    client = daemon.client()
    for name in NAMES:
        client.ingest(document(name), name)
    client.upload("d1", adapter())
    return daemon


@pytest.fixture(scope="module")
def client(daemon):
    return daemon.client()


@pytest.fixture(scope="module")
def alone(client):
    """Every document's answer on an idle daemon."""
    return {name: client.ask(name, max_tokens=LENGTH) for name in NAMES}


def same(answer, expected):
    return answer.tokens == expected.tokens and answer.text == expected.text and (
        answer.log_probabilities == pytest.approx(expected.log_probabilities, abs=1e-4))


def in_use(daemon, client):
    """Everything that streams take while they live, as the daemon shows it; empty at rest."""
    queue = client.status().queue
    used = {name: getattr(queue, name) for name in ("waiting", "loading", "running", "building")}
    used["leases"] = sum(item.leases for item in client.residents())
    for name, value in daemon.metrics().items():
        if re.match(r"docmem_(requests_(running|waiting)|(leased|loading)_bytes)", name):
            used[name] = value
    return {name: value for name, value in used.items() if value}


def check_rest(daemon, client, alone):
    """Nothing is in use; all slots and all room for keys and values can be had at once."""
    eventually(lambda: not in_use(daemon, client), 60)
    for name in NAMES:
        answer = client.ask(name, max_tokens=LENGTH)
        assert same(answer, alone[name])
        assert answer.finished.seconds.queue < 10
    whole = client.queries.Ask(ask_request("d0", max_tokens=WHOLE_BUDGET))
    read(whole, 1)
    whole.cancel()
    eventually(lambda: not in_use(daemon, client), 60)
    streams = [client.queries.Ask(ask_request("d0", max_tokens=LENGTH)) for _ in range(SLOTS)]
    assert all(same(collect(stream), alone["d0"]) for stream in streams)
    eventually(lambda: not in_use(daemon, client), 60)


def read(stream, tokens):
    """Reads until so many tokens have come."""
    while tokens > 0:
        tokens -= next(stream).delta.tokens


def rest_of(stream):
    """Reads on: how the stream ends."""
    try:
        return "OK" if [*stream][-1:] else "nothing"
    except grpc.RpcError as error:
        return error.code().name


def start(client, draw, **options):
    options.setdefault("max_tokens", LENGTH)
    timeout = options.pop("timeout", None)
    return client.queries.Ask(ask_request(draw.choice(NAMES), **options), timeout=timeout)


def cancelled(stream):
    stream.cancel()
    end = rest_of(stream)
    assert end == "CANCELLED"
    return end


def at_once(client, draw):
    return cancelled(start(client, draw))


def soon(client, draw):
    stream = start(client, draw)
    time.sleep(draw.uniform(0, 0.05))
    return cancelled(stream)


def before_the_first_token(client, draw):
    stream = start(client, draw)
    assert next(stream).started
    return cancelled(stream)


def in_the_middle(client, draw):
    stream = start(client, draw)
    read(stream, draw.randrange(1, LENGTH))
    return cancelled(stream)


def at_the_last_token(client, draw):
    stream = start(client, draw)
    read(stream, LENGTH)
    return cancelled(stream)


def aborted(client, draw):
    stream = start(client, draw, request_id=f"cut-{draw.getrandbits(64):x}")
    request_id = next(stream).started.request_id
    read(stream, draw.randrange(LENGTH))
    return abort(client, stream, request_id)


def abort(client, stream, request_id):
    """A stream that was aborted says so, unless its answer was there already."""
    found = client.queries.Abort(v1.AbortRequest(request_id=request_id)).found
    try:
        assert [*stream][-1].finished.answer_tokens
        return "OK"
    except grpc.RpcError as error:
        why = refusal_of(error)
        assert found and (why.code.name, why.reason) == ("CANCELLED", "ABORTED_BY_CLIENT")
        return "ABORTED_BY_CLIENT"


def past_its_deadline(client, draw):
    stream = start(client, draw, max_tokens=WHOLE_BUDGET // 4, timeout=draw.uniform(0.001, 0.3))
    end = rest_of(stream)
    assert end in ("DEADLINE_EXCEEDED", "OK")
    return end


WAYS = (at_once, soon, before_the_first_token, in_the_middle, at_the_last_token, aborted,
        past_its_deadline)

ASKING = """
    import sys
    sys.path.insert(0, sys.argv[1])
    from client import Client, ask_request
    client = Client(sys.argv[2])
    streams = [client.queries.Ask(ask_request(f"d{n % 3}", max_tokens=200))
               for n in range(int(sys.argv[3]))]
    next(streams[0])
    print("asked", flush=True)
    sys.stdin.read()
"""


def by_kill(daemon, draw):
    """A client is killed with its streams; some run then, others wait."""
    command = [sys.executable, "-B", "-c", textwrap.dedent(ASKING), Path(__file__).parent,
               daemon.address, str(KILLED)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as gone:
        try:
            assert gone.stdout.readline() == b"asked\n"
            time.sleep(draw.uniform(0, 0.2))
        finally:
            gone.kill()
    return [("by_kill", "gone")] * KILLED


def cut_some(daemon, seed, ways):
    """One client after another way; its outcomes."""
    draw, client = random.Random(seed), daemon.client()
    try:
        return [(way.__name__, way(client, draw)) for way in ways]
    finally:
        client.close()


def cut_many(daemon, streams, seed=47):
    """So many streams over several clients at once: how many of them ended in which way."""
    kills = max(1, streams // (8 * KILLED))
    ways = [*itertools.islice(itertools.cycle(WAYS), streams - kills * KILLED)]
    random.Random(seed).shuffle(ways)
    with concurrent.futures.ThreadPoolExecutor(CLIENTS + 1) as pool:
        jobs = [pool.submit(cut_some, daemon, (seed << 8) + n, ways[n::CLIENTS])
                for n in range(CLIENTS)]
        jobs += [pool.submit(by_kill, daemon, random.Random(n)) for n in range(kills)]
        return collections.Counter(end for job in jobs for end in job.result(scaled(200, 1800)))


class Bystander(threading.Thread):
    """Asks one document again and again, undisturbed."""

    def __init__(self, daemon, expected):
        super().__init__(daemon=True)
        self._client, self._expected = daemon.client(), expected
        self._over = threading.Event()
        self.same = []
        self.start()

    def run(self):
        while not self._over.is_set():
            self.same.append(same(self._client.ask("d0", max_tokens=LENGTH), self._expected))

    def end(self):
        self._over.set()
        self.join(120)
        self._client.close()


def test_streams_cut_at_random_moments_leave_nothing_behind(daemon, client, alone):
    # Faults 47 and 55.
    cut_many(daemon, 2 * len(WAYS) + KILLED, seed=1)  # threads and their files are there now
    check_rest(daemon, client, alone)
    before = daemon.open_files()
    bystander = Bystander(daemon, alone["d0"])
    ends = cut_many(daemon, STREAMS)
    bystander.end()
    check_rest(daemon, client, alone)
    eventually(lambda: daemon.open_files() <= before, 60)
    print(f"{ends.total()} streams cut:", *sorted(f"{way} {end}: {count}"
                                                 for (way, end), count in ends.items()), sep="\n  ")
    print(f"files open before and after: {before}, {daemon.open_files()};",
          f"in use afterwards: {in_use(daemon, client)}")
    assert daemon.metrics()['docmem_unloads_total{kind="cache",reason="room",tier="device"}'] > 0
    assert ends.total() == STREAMS and {way for way, _ in ends} >= {way.__name__ for way in WAYS}
    assert bystander.same and all(bystander.same)


def test_streams_cut_exactly_at_any_token_up_to_the_last_leave_nothing_behind(
        daemon, client, alone):
    longest = scaled(6, 24)
    for length in range(1, longest + 1):
        for token in range(1, length + 1):
            for name in NAMES[:2]:
                stream = client.queries.Ask(ask_request(name, max_tokens=length))
                read(stream, token)
                cancelled(stream)
                stream = client.queries.Ask(ask_request(name, max_tokens=length))
                request_id = next(stream).started.request_id
                read(stream, token)
                abort(client, stream, request_id)
        answer = client.ask("d1", max_tokens=length)
        assert answer.tokens == alone["d1"].tokens[:length]
    check_rest(daemon, client, alone)


def test_a_deadline_that_passes_in_the_queue_costs_no_engine_work(daemon, client, alone):
    before = daemon.metrics()["docmem_step_rows_sum"]
    running = [client.queries.Ask(ask_request("d0", max_tokens=WHOLE_BUDGET // 5))
               for _ in range(SLOTS)]
    for stream in running:
        next(stream)
    late = [client.queries.Ask(ask_request("d1"), timeout=0.05) for _ in range(3)]
    assert [rest_of(stream) for stream in late] == ["DEADLINE_EXCEEDED"] * 3
    assert client.status().queue.running == SLOTS, "they had to wait until their deadline"
    ends = [[*stream][-1].finished for stream in running]
    # The last token of an answer isn't put in again.
    rows = sum(end.prompt_tokens + end.answer_tokens - 1 for end in ends)
    assert daemon.metrics()["docmem_step_rows_sum"] - before == rows
    check_rest(daemon, client, alone)


def test_calls_cancelled_before_a_thread_comes_to_them(daemon, client):
    """Of every kind: what gRPC frees when they end must not be read any more."""
    begin = {
        "Ask": lambda one: one.queries.Ask(ask_request("d0", max_tokens=LENGTH)),
        "Score": lambda one: one.queries.Score.future(
            v1.ScoreRequest(memory=memory("d0"), prompt=v1.Prompt(question="?"), answer="Yes.")),
        "Ingest": lambda one: one.documents.Ingest(ingest_messages("Half.", "half", end=False)),
        "BuildCache": lambda one: one.documents.BuildCache(
            v1.BuildCacheRequest(document="d0", ratio_ppm=[900_000])),
        "GetText": lambda one: one.documents.GetText(v1.GetTextRequest(document="d0")),
        "Export": lambda one: one.documents.Export(v1.ExportDocumentRequest(document="d0")),
        "Prefetch": lambda one: one.documents.Prefetch.future(
            v1.PrefetchRequest(documents=["d0", "d1"], wait=True)),
        "Upload": lambda one: one.adapters.Upload.future(
            upload_messages("d0", adapter(), end=False)),
        "Download": lambda one: one.adapters.Download(
            v1.DownloadAdapterRequest(document="d1", version=1)),
        "Watch": lambda one: one.trainings.Watch(v1.WatchTrainingRequest(job_id="none")),
        "GetStatus": lambda one: one.admin.GetStatus.future(v1.GetStatusRequest()),
    }
    moment = random.Random(7)

    def cut(kind):
        one = daemon.client()
        for _ in range(scaled(40, 400)):
            call = begin[kind](one)
            if moment.random() < 0.3:
                time.sleep(0.002 * moment.random())
            call.cancel()

    with concurrent.futures.ThreadPoolExecutor(len(begin)) as threads:
        list(threads.map(cut, begin))
    eventually(lambda: not in_use(daemon, client))
    assert daemon.process.poll() is None and client.ask("d0", max_tokens=2).finished


def test_no_call_stays_open_after_its_stream_was_cut(daemon):
    """The daemon would wait for one until its drain limit, ten minutes."""
    assert daemon.stop() == 0
