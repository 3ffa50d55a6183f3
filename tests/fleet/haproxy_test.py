"""HAProxy as it is shipped, in front of real daemons: what goes where, and what callers see."""

import collections
import concurrent.futures
import hashlib
import re
import signal
import subprocess
import threading
import time

import docmem
import grpc
import pytest
from daemon import BINARIES, ROOT, TIME_SLACK, eventually, scaled
from docmem import v1
from docmem.v1 import admin_pb2_grpc, document_pb2_grpc
from replicas import (DOCUMENTS, IDS, LONG_TOKENS, QUESTION, Load, Stream, bare_stream, header,
                      read, turns)
from routers import HAPROXY, Haproxy
from texts import document

pytestmark = pytest.mark.skipif(
    HAPROXY is None, reason="needs HAProxy: apt-get install --no-install-recommends haproxy")

FLOOR = 8  # calls of one document that its own replica gets in any case
CHECKS_S = 3 * TIME_SLACK  # more than the checks need to see that a replica is gone
LONG_SENTENCES = 600 // TIME_SLACK  # an ingestion of seconds


@pytest.fixture(scope="module")
def haproxy(fleet, tmp_path_factory):
    with Haproxy(tmp_path_factory.mktemp("router") / "haproxy", fleet) as haproxy:
        yield haproxy


@pytest.fixture
def client(haproxy):
    with docmem.Client(haproxy.address) as client:
        yield client


@pytest.fixture(scope="module")
def places(fleet, haproxy):
    """Document → its own replica."""
    return fleet.places(haproxy.address, DOCUMENTS)


def of(places, number):
    return [name for name, place in places.items() if place == number]


def difference(after, before):
    return {number: count - before[number] for number, count in after.items()}


def test_the_shipped_configuration_is_taken_without_a_warning(haproxy):
    assert haproxy.check() == ""


def test_a_document_meets_the_same_replica_whoever_asks(fleet, haproxy, places):
    before = fleet.asked()
    with Load(haproxy.address, fleet.answers, callers=6) as load:
        eventually(lambda: load.right >= 150)
    asked = difference(fleet.asked(), before)
    # Titles name the replica that told them.
    with docmem.Client(haproxy.address) as client:
        titles = {name: client.documents.get(document=name).title for name in DOCUMENTS}
    assert titles == {name: str(place) for name, place in places.items()}
    expected = collections.Counter(places[name] for name in load.documents_asked.elements())
    assert asked == expected and not load.unavailable and not load.retries


def test_documents_spread_over_the_replicas(fleet, haproxy):
    shares = collections.Counter(fleet.places(haproxy.address, IDS).values())
    print("shares of", len(IDS), "documents:", dict(sorted(shares.items())))
    assert min(shares.values()) > 0.8 * len(IDS) / 3
    assert max(shares.values()) < 1.2 * len(IDS) / 3


def test_calls_without_a_document_take_turns(fleet, haproxy):
    counts = turns(fleet, haproxy.address)
    print("60 calls without a document:", counts)
    assert min(counts.values()) >= 10


def test_what_a_hot_document_has_too_much_spills_over(fleet, haproxy, places):
    hot, callers = DOCUMENTS[0], 3 * FLOOR
    before = fleet.asked()
    started, others = [], [name for name in DOCUMENTS if name != hot]

    def ask(client):
        answer = client.ask(hot, QUESTION, max_tokens=300)
        next(answer)
        started.append(answer)
        eventually(lambda: len(started) == callers, 60)  # all of them are open at once
        return answer.read()

    with (docmem.Client(haproxy.address) as client,
          concurrent.futures.ThreadPoolExecutor(callers) as pool):
        answers = [pool.submit(ask, client) for _ in range(callers)]
        eventually(lambda: len(started) == callers, 60)
        asked = difference(fleet.asked(), before)
        # Meanwhile nobody else's document leaves its replica.
        assert fleet.places(haproxy.address, others) == {name: places[name] for name in others}
        texts = {answer.result() for answer in answers}
        home = asked.pop(places[hot])
        print(f"{callers} calls of one document at once: {home} at home, elsewhere", asked)
        assert len(texts) == 1 and home + sum(asked.values()) == callers
        assert home >= FLOOR and min(asked.values()) >= 2
        # And then it is at home again.
        before = fleet.asked()
        assert all(read(client, hot) == fleet.answers[hot] for _ in range(5))
        assert difference(fleet.asked(), before)[places[hot]] == 5


class Program:
    """`docmem ask`, which is made of the C++ client library, begun."""

    def __init__(self, router, name):
        self._process = subprocess.Popen(
            [BINARIES / "docmem", "--address", router, "ask", name, QUESTION, "--max-tokens",
             str(LONG_TOKENS)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self._process.stdout.read(1)

    def result(self):
        _, said = self._process.communicate(timeout=60)
        return self._process.returncode, said.decode().strip()


class Ingestion(threading.Thread):
    """Of a long text, by the client library, begun: `document` is what came of it."""

    def __init__(self, router, name):
        super().__init__(daemon=True)
        self.document, self.retries = None, []
        self._router, self._name = router, name
        self._begun = threading.Event()
        self.start()
        assert self._begun.wait(30)

    def run(self):
        with docmem.Client(self._router) as client:
            patient = client.with_options(on_retry=self.retries.append)
            self.document = patient.documents.ingest(
                document("long", LONG_SENTENCES), self._name, ratios=[0.9], progress=self._watch
            ).document

    def _watch(self, progress):
        if progress.phase == "prefilling":
            self._begun.set()


def test_a_killed_replica_costs_its_open_calls_and_no_other(fleet, haproxy, places):
    mine = of(places, 2)
    new = next(name for name, place in fleet.places(haproxy.address, IDS).items() if place == 2)
    with (Load(haproxy.address, fleet.answers, callers=6) as load,
          grpc.insecure_channel(haproxy.address) as channel):
        streams = [Stream(haproxy.address, name) for name in mine[:3]]
        programs = [Program(haproxy.address, name) for name in mine[:2]]
        bare = [bare_stream(channel, name) for name in mine[:2]]
        eventually(lambda: load.right >= 40)
        ingestion = Ingestion(haproxy.address, new)
        fleet[2].kill()
        seen = [why_ended(stream) for stream in bare]
        eventually(lambda: haproxy.states()[2] == "DOWN", CHECKS_S)
        gone, before = dict(load.unavailable), load.right
        eventually(lambda: load.right >= before + 100)
    ended = [stream.result() for stream in streams]
    codes = [program.result() for program in programs]
    ingestion.join(60)
    print(f"killed, with {len(mine)} of {len(DOCUMENTS)} documents; answers half way:",
          f"  on the wire: {seen}", f"  Python: {[str(error) for error in ended]}",
          f"  C++: {codes}",
          f"other calls: {load.right} right, {load.unavailable.total()} UNAVAILABLE (half way),"
          f" {load.retries.total()} repeated by the library; {dict(load.unavailable)}",
          f"an ingestion half way: repeated {len(ingestion.retries)} times", sep="\n  ")
    assert all(isinstance(error, docmem.UnavailableError) and error.lost for error in ended)
    assert all(code == 1 and "no connection to" in said for code, said in codes)
    # Once the checks have seen it nothing fails, and no answer was wrong at any time.
    assert dict(load.unavailable) == gone and set(load.retries) <= {""}
    # What could be repeated was: by another replica.
    assert [notice.why.lost for notice in ingestion.retries] == [True]
    assert ingestion.document.state == v1.Document.STATE_READY
    moved = fleet.places(haproxy.address, DOCUMENTS)
    assert {moved[name] for name in mine} == {1, 3}
    assert all(moved[name] == place for name, place in places.items() if place != 2)

    fleet[2].start()
    eventually(lambda: haproxy.states()[2] == "UP", CHECKS_S)
    assert fleet.places(haproxy.address, DOCUMENTS) == places


def why_ended(stream):
    with pytest.raises(grpc.RpcError) as error:
        collections.deque(stream, maxlen=0)
    return f"{error.value.code().name}: {error.value.details()}"


def test_a_replica_that_drains_gets_no_new_calls_and_no_call_fails(fleet, haproxy, places):
    victim = fleet[3]
    with Load(haproxy.address, fleet.answers, callers=4) as load:
        streams = [Stream(haproxy.address, name) for name in of(places, 3)[:3]]
        programs = [Program(haproxy.address, of(places, 3)[0])]
        with docmem.Client(victim.address) as direct:
            direct.admin.drain()
        began = time.monotonic()
        eventually(lambda: haproxy.states()[3] == "NOLB", CHECKS_S)
        noticed = time.monotonic() - began
        time.sleep(0.5)  # what was on its way has come
        asked, before = fleet.asked()[3], load.right
        eventually(lambda: load.right >= before + 100)
        assert fleet.asked()[3] == asked
        victim.terminate()
        assert victim.wait() == 0
        before = load.right
        eventually(lambda: load.right >= before + 50)
    texts = {stream.result() for stream in streams}
    assert len(texts) == len(streams) and all(isinstance(text, str) for text in texts)
    assert [program.result()[0] for program in programs] == [0]
    print(f"drained, seen after {noticed:.1f} s:", load.right, "right,", dict(load.unavailable),
          "tried again by the library:", dict(load.retries))
    assert not load.unavailable and set(load.retries) <= {"DRAINING"}
    victim.start()
    eventually(lambda: haproxy.states()[3] == "UP", CHECKS_S)


def test_a_replica_that_the_router_takes_out_first_refuses_nothing(fleet, haproxy, places):
    with Load(haproxy.address, fleet.answers, callers=4) as load:
        eventually(lambda: load.right >= 20)
        assert haproxy.command("set server documents/replica1 state drain").strip() == ""
        time.sleep(0.5)
        asked, before = fleet.asked()[1], load.right
        eventually(lambda: load.right >= before + 50)
        assert fleet.asked()[1] == asked
        assert haproxy.command("set server documents/replica1 state ready").strip() == ""
        before = load.right
        eventually(lambda: load.right >= before + 50)
        assert fleet.asked()[1] > asked
    assert not load.unavailable and not load.retries


def test_a_loading_replica_gets_no_calls(fleet, haproxy, places):
    fleet[2].kill()
    eventually(lambda: haproxy.states()[2] == "DOWN", CHECKS_S)
    seen = set()
    with Load(haproxy.address, fleet.answers, callers=2) as load:
        fleet[2].launch()
        while (state := haproxy.states()[2]) != "UP":
            seen.add(state)
            time.sleep(0.05)
    assert seen <= {"DOWN", "NOLB"}
    assert not load.unavailable and not load.retries


def test_an_idle_stream_isnt_cut(fleet, haproxy, places):
    """In both directions, for longer than any time that isn't about silence. A replica that hangs
    is given up by the checks, but what it has open goes on when it goes on."""
    pause = scaled(11, 150)
    text = "A text that comes slowly. " * 40
    data = text.encode()

    def slowly(name):
        yield v1.IngestRequest(header=v1.IngestHeader(
            document=name, options=v1.IngestOptions(ratio_ppm=[0])))
        yield v1.IngestRequest(chunk=data[:100])
        time.sleep(pause)
        yield v1.IngestRequest(chunk=data[100:])
        yield v1.IngestRequest(end=v1.StreamEnd(
            total_bytes=len(data), sha256=hashlib.sha256(data).hexdigest()))

    uploaded = next(name for name in IDS if fleet.places(haproxy.address, [name])[name] == 1)
    with (grpc.insecure_channel(haproxy.address) as channel,
          concurrent.futures.ThreadPoolExecutor(1) as pool):
        upload = pool.submit(list, document_pb2_grpc.DocumentServiceStub(channel).Ingest(
            slowly(uploaded), metadata=header(uploaded)))
        name = of(places, 2)[0]
        expected = Stream(fleet[2].address, name).result()
        stream = Stream(haproxy.address, name)
        fleet[2].process.send_signal(signal.SIGSTOP)
        try:
            eventually(lambda: haproxy.states()[2] == "DOWN", pause)
            time.sleep(pause / 2)
            assert stream.is_alive()
        finally:
            fleet[2].process.send_signal(signal.SIGCONT)
        assert stream.result() == expected
        assert upload.result(90)[-1].result.document.id == uploaded
    with docmem.Client(haproxy.address) as client:
        assert client.documents.text(uploaded) == text
        client.documents.delete(document=uploaded)
    eventually(lambda: haproxy.states()[2] == "UP", CHECKS_S)


def test_what_asks_one_replica_doesnt_go_through(fleet, client):
    for call in (client.admin.drain, lambda: list(client.admin.residents())):
        with pytest.raises(docmem.FailedPreconditionError, match="ask a replica"):
            call()
    assert not any(client.admin.status().draining for _ in range(6))


def test_a_fourth_replica_takes_its_share_and_moves_nothing_else(fleet, haproxy, places):
    before = fleet.places(haproxy.address, IDS)
    fleet.start(1)
    with Load(haproxy.address, fleet.answers, callers=3) as load:
        haproxy.reload([1, 2, 3, 4])
        eventually(lambda: load.right >= 50)
    after = fleet.places(haproxy.address, IDS)
    moved = [name for name in IDS if after[name] != before[name]]
    print(f"a fourth replica: {len(moved)} of {len(IDS)} documents move, to",
          dict(collections.Counter(after[name] for name in moved)), "while", load.right,
          "calls were right", dict(load.unavailable), dict(load.retries))
    assert len(moved) <= 0.3 * len(IDS)
    assert {after[name] for name in moved} == {4}
    assert not load.unavailable

    # One from the middle leaves: only its own documents move.
    haproxy.reload([1, 3, 4])
    later = fleet.places(haproxy.address, IDS)
    assert {after[name] for name in IDS if later[name] != after[name]} == {2}
    haproxy.reload([1, 2, 3])
    assert fleet.places(haproxy.address, IDS) == before


def test_the_metrics_that_the_page_names_are_there(haproxy):
    text = haproxy.metrics()
    assert 'haproxy_server_status{proxy="documents",server="replica1",state="NOLB"} 0' in text
    named = set(re.findall(r"haproxy_[a-z_]+", (ROOT / "docs/fleet.md").read_text()))
    assert len(named) == 5 and all(f"\n{name}{{" in text for name in named)


def test_the_log_has_calls_and_no_names_or_texts(haproxy, client):
    canary = "canary-4711"
    with pytest.raises(docmem.NotFoundError):
        client.ask(canary, canary).read()
    with grpc.insecure_channel(haproxy.address) as channel:
        with pytest.raises(grpc.RpcError):
            channel.unary_unary(f"/{canary}/{canary}")(b"", timeout=10)
        trace = "0af7651916cd43dd8448eb211c80319c"
        admin_pb2_grpc.AdminServiceStub(channel).GetStatus(
            v1.GetStatusRequest(), metadata=[("traceparent", f"00-{trace}-b7ad6b7169203331-01")])
    eventually(lambda: trace in haproxy.log.read_text())
    log = haproxy.log.read_text()
    assert "{/docmem.v1.QueryService/Ask|} documents/replica" in log
    assert canary not in log and not any(f"/{name}" in log for name in DOCUMENTS)
