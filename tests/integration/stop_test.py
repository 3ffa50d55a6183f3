"""SIGTERM, Drain, and what clients see of them."""

import signal
import socket
import threading
import time

import grpc
import pytest
from client import (
    ask_request,
    collect,
    ingest_messages,
    refusal,
    refusal_of,
    refused,
    upload_messages,
)
from daemon import NOT_SERVING, SERVING, eventually, scaled
from folders import adapter
from grpc_health.v1 import health_pb2, health_pb2_grpc
from stubs import v1
from texts import document

ENDLESS = 100_000  # tokens


@pytest.fixture(scope="module")
def data(make_shared_daemon, patient, folder):
    """A data folder with one document, used by one daemon after the other."""
    daemon = make_shared_daemon(model=patient, folder=folder / "shared").start()
    daemon.client().ingest(document("d"), "d")
    daemon.client().upload("d", adapter())
    assert daemon.stop() == 0
    return folder / "shared"


@pytest.fixture
def start(make_daemon, patient, data):
    def with_options(*options):
        return make_daemon(*options, model=patient, folder=data).start()

    return with_options


class Stream(threading.Thread):
    """One Ask in a thread of its own; `outcome` is an Answer or a Refusal."""

    def __init__(self, client, **options):
        super().__init__(daemon=True)
        self.call = client.queries.Ask(ask_request("d", **options))
        self.outcome = None
        self.ended = None
        self.running = threading.Event()
        self.start()

    def run(self):
        try:
            self.outcome = collect(self._watch())
        except grpc.RpcError as error:
            self.outcome = refusal_of(error)
        self.ended = time.monotonic()

    def _watch(self):
        for response in self.call:
            if response.HasField("delta"):
                self.running.set()
            yield response

    def result(self, timeout=60):
        self.join(timeout)
        assert not self.is_alive()
        return self.outcome


class HalfOpen:
    """A client stream whose end message never comes."""

    def __init__(self, begin, messages, read):
        self._release = threading.Event()
        self._read = read
        self._call = begin(self._send(messages))

    def _send(self, messages):
        yield from messages
        self._release.wait(120)

    def refusal(self):
        try:
            return refusal(lambda: self._read(self._call))
        finally:
            self._release.set()


def test_an_idle_daemon_with_connected_clients_stops_at_once(start):
    daemon = start("--drain-seconds", "60")
    clients = [daemon.client() for _ in range(3)]
    assert all(client.status().documents == 1 for client in clients)
    host, port = daemon.address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=10):  # and one that says nothing
        began = time.monotonic()
        assert daemon.stop() == 0
    assert time.monotonic() - began < 30
    assert daemon.log_lines()[-1]["event"] == "stopped"


def test_sigterm_ends_idle_queued_streaming_and_half_open_clients(start):
    # Faults 51, 52 and 73.
    drain = 4
    daemon = start("--drain-seconds", str(drain), "--max-sequences", "2")
    client, idle = daemon.client(), daemon.client()
    assert idle.status().phase
    streaming = [Stream(client, max_tokens=ENDLESS) for _ in range(2)]
    assert all(stream.running.wait(30) for stream in streaming)
    queued = [Stream(client, max_tokens=ENDLESS) for _ in range(4)]
    half_open = [
        HalfOpen(client.documents.Ingest, ingest_messages(document("half"), end=False), list),
        HalfOpen(client.adapters.Upload.future, upload_messages("d", adapter(), end=False),
                 lambda call: call.result(60)),
    ]
    eventually(lambda: client.status().queue.waiting == 4)

    began = time.monotonic()
    daemon.terminate()
    eventually(lambda: daemon.readiness() == NOT_SERVING, drain / 2)
    assert daemon.liveness() == SERVING
    # The listener is open still: new work is refused, looking is allowed.
    assert refused(lambda: client.ask("d"), "UNAVAILABLE", "DRAINING").retry
    assert refused(lambda: idle.ingest("text"), "UNAVAILABLE", "DRAINING").retry
    assert client.status().queue.running == 2
    assert client.residents()
    assert client.admin.Drain(v1.DrainRequest()).draining
    assert not client.queries.Abort(v1.AbortRequest(request_id="none")).found
    assert not any(stream.ended for stream in streaming)

    outcomes = [stream.result() for stream in streaming + queued]
    outcomes += [stream.refusal() for stream in half_open]
    assert daemon.wait(30) == 0
    assert [why.code.name for why in outcomes] == ["UNAVAILABLE"] * len(outcomes)
    assert {why.reason for why in outcomes} == {"SHUTTING_DOWN"}
    assert all(why.retry for why in outcomes)
    assert min(stream.ended for stream in streaming) - began >= drain - 0.5
    assert time.monotonic() - began < drain + 25


def test_a_short_answer_is_finished_before_the_daemon_stops(start):
    daemon = start("--drain-seconds", "60")
    stream = Stream(daemon.client(), max_tokens=scaled(400, 4000))
    assert stream.running.wait(30)
    began = time.monotonic()
    daemon.terminate()
    answer = stream.result()
    assert daemon.wait(60) == 0
    assert answer.finished.answer_tokens == scaled(400, 4000)
    assert time.monotonic() - began < 60


def test_a_second_signal_ends_the_process_at_once(start):
    daemon = start("--drain-seconds", "600")
    stream = Stream(daemon.client(), max_tokens=ENDLESS)
    assert stream.running.wait(30)
    daemon.terminate()
    eventually(lambda: daemon.readiness() == NOT_SERVING)
    daemon.process.send_signal(signal.SIGINT)
    daemon.wait(10)
    assert stream.result().code.name == "UNAVAILABLE"


def test_work_under_way_at_the_drain_deadline_leaves_nothing_half_done(start):
    daemon = start("--drain-seconds", "1")
    client = daemon.client()
    long_text = document("long", sentences=scaled(900, 3000))
    calls = [client.documents.Ingest(ingest_messages(long_text, "cut", detach=detach))
             for detach in (False, True)]
    eventually(lambda: client.status().queue.building > 0)
    daemon.terminate()
    outcomes = []
    for call in calls:
        try:
            outcomes.append([*call][-1].WhichOneof("part"))
        except grpc.RpcError as error:
            outcomes.append(refusal_of(error).code.name)
    assert daemon.wait(60) == 0
    assert set(outcomes) <= {"result", "UNAVAILABLE"}, outcomes
    daemon = start()
    client = daemon.client()
    if "result" in outcomes:
        assert client.ask("cut").finished
    else:
        refused(lambda: client.ask("cut"), "NOT_FOUND", "DOCUMENT_NOT_FOUND")
    assert client.ask("d").finished
    client.delete("cut", allow_missing=True)


def test_drain_refuses_new_work_and_can_be_undone(start):
    daemon = start()
    client = daemon.client()
    stream = Stream(client, max_tokens=ENDLESS, request_id="open")
    assert stream.running.wait(30)
    reply = client.admin.Drain(v1.DrainRequest())
    assert reply.draining and reply.queue.running == 1
    assert daemon.readiness() == NOT_SERVING and daemon.liveness() == SERVING
    status = client.status()
    assert status.draining and status.phase == v1.GetStatusResponse.PHASE_DRAINING
    for call in (
        lambda: client.ask("d"),
        lambda: client.ingest("text"),
        lambda: client.build("d", ratio_ppm=[1]),
        lambda: client.delete("d"),
        lambda: client.upload("d", adapter()),
    ):
        assert refused(call, "UNAVAILABLE", "DRAINING").retry
    assert client.queries.Abort(v1.AbortRequest(request_id="open")).found
    assert (stream.result().code.name, stream.outcome.reason) == ("CANCELLED", "ABORTED_BY_CLIENT")

    assert not client.admin.Drain(v1.DrainRequest(undo=True)).draining
    eventually(lambda: daemon.readiness() == SERVING)
    assert client.ask("d").finished
    assert daemon.process.poll() is None


def test_health_watchers_see_readiness_leave_and_come_back(start):
    daemon = start()
    client = daemon.client()
    with grpc.insecure_channel(daemon.health_address) as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(
            health_pb2.HealthCheckRequest(), timeout=60)
        assert next(watch).status == SERVING
        client.admin.Drain(v1.DrainRequest())
        assert next(watch).status == NOT_SERVING
        client.admin.Drain(v1.DrainRequest(undo=True))
        assert next(watch).status == SERVING
        assert daemon.stop() == 0
        assert next(watch).status == NOT_SERVING
