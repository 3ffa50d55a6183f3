"""Daemons that know the same documents, and callers that put them under load.

A replica has a loopback address of its own, with the same ports as the others: then a router's
configuration needs only other addresses, and a name can stand for all of them.
"""

import collections
import concurrent.futures
import contextlib
import random
import socket
import threading
import time

import docmem
import grpc
from daemon import TIME_SLACK, Daemon
from docmem import v1
from docmem.v1 import admin_pb2_grpc, query_pb2_grpc
from texts import document

DOCUMENTS = [f"d{number}" for number in range(40)]
IDS = [f"any-{number}" for number in range(400)]  # of no document
QUESTION = "Which door is blue?"
TOKENS = 24
LONG_TOKENS = 2000 // TIME_SLACK  # about a second
MOST = 5  # replicas


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def address_of(number):
    return f"127.0.77.{number}"


def _free_ports(count):
    """The first of so many in a row that nobody has on any of the addresses."""
    while True:
        first = free_port()
        try:
            for number in range(1, MOST + 1):
                for port in range(first, first + count):
                    with socket.create_server((address_of(number), port)):
                        pass
            return first
        except OSError:
            continue


class Fleet:
    """The replicas are numbered from 1."""

    def __init__(self, folder, model):
        self._folder, self._model = folder, model
        self._replicas = {}
        self.port = _free_ports(3)
        self.answers = {}  # document → text

    def __getitem__(self, number):
        return self._replicas[number]

    @property
    def numbers(self):
        return sorted(self._replicas)

    def start(self, count):
        """So many more, each with all documents, whose titles name the replica."""
        numbers = range(len(self._replicas) + 1, len(self._replicas) + count + 1)
        for number in numbers:
            self._replicas[number] = self._daemon(number).launch()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(self._fill, numbers))
        return self

    def end(self):
        for replica in self._replicas.values():
            replica.end()
            replica.check_log()

    @contextlib.contextmanager
    def another(self, number, *options):
        """A daemon at a replica's address that has settings and documents of its own."""
        daemon = self._daemon(number, *options)
        try:
            yield daemon.launch()
        finally:
            daemon.end()
            daemon.check_log()

    def _daemon(self, number, *options):
        folder = self._folder / str(number)
        folder.mkdir(parents=True)
        for offset, listener in enumerate(("--listen", "--health-listen", "--metrics-listen")):
            options += (listener, f"{address_of(number)}:{self.port + offset}")
        return Daemon(folder, *options, model=self._model)

    def _fill(self, number):
        replica = self[number]
        replica.wait_until_ready()
        with docmem.Client(replica.address) as client:
            for name in DOCUMENTS:
                client.documents.ingest(document(name, 2), name, ratios=[0], title=f"{number}")
            answers = {name: read(client, name) for name in DOCUMENTS}
        # The same on all: only then can a test tell a wrong answer.
        assert self.answers in ({}, answers) and len(set(answers.values())) > 0.9 * len(answers)
        self.answers = answers

    def asked(self):
        """Replica → questions that have come to it, also those it refused or still answers."""
        return {number: _asked(replica.metrics()) for number, replica in self._replicas.items()
                if replica.process.poll() is None}

    def places(self, router, ids):
        """Id → the replica that calls with this document meet at the router."""
        starts = {}
        for number, replica in self._replicas.items():
            if replica.process.poll() is None:
                with docmem.Client(replica.address) as client:
                    starts[_start(client.admin.status())] = number
        with grpc.insecure_channel(router) as channel:
            stub = admin_pb2_grpc.AdminServiceStub(channel)
            return {name: starts[_start(stub.GetStatus(
                v1.GetStatusRequest(), metadata=header(name), timeout=30))] for name in ids}


def _asked(metrics):
    now = metrics["docmem_requests_running"] + metrics["docmem_requests_waiting"]
    return now + sum(value for name, value in metrics.items()
                     if name.startswith("docmem_requests_total") and 'method="Query.Ask"' in name)


def _start(status):
    return status.start_time.seconds, status.start_time.nanos


def header(name):
    """As the client library sends it with calls that have a document."""
    return [("docmem-document", f"default/{name}")]


def read(client, name, tokens=TOKENS):
    return client.ask(name, QUESTION, max_tokens=tokens).read()


def turns(fleet, router):
    """Replica → how many it had of 60 calls without a document."""
    name = 'docmem_requests_total{code="OK",method="Collection.List"}'

    def lists():
        return {number: fleet[number].metrics().get(name, 0) for number in (1, 2, 3)}

    before = lists()
    with docmem.Client(router) as client:
        for _ in range(60):
            assert [found.name for found in client.collections.list()] == ["default"]
    counts = {number: count - before[number] for number, count in lists().items()}
    assert sum(counts.values()) == 60
    return counts


class Load:
    """Callers that ask one document after the other, each over a connection of its own, until the
    `with` ends. Counts what they see; a wrong answer or another error than UNAVAILABLE fails."""

    def __init__(self, router, answers, callers=4, documents=DOCUMENTS):
        self.right = 0
        self.documents_asked = collections.Counter()
        self.unavailable = collections.Counter()  # by message, without the address
        self.retries = collections.Counter()  # by reason; empty: the connection was lost
        self._router, self._answers, self._documents = router, answers, documents
        self._over = threading.Event()
        self._pool = concurrent.futures.ThreadPoolExecutor(callers)
        self._callers = [self._pool.submit(self._ask, seed) for seed in range(callers)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._over.set()
        self._pool.shutdown()
        for caller in self._callers:
            caller.result()

    def _ask(self, seed):
        draw = random.Random(seed)
        with docmem.Client(self._router) as client:
            patient = client.with_options(on_retry=self._note)
            while not self._over.is_set():
                time.sleep(0.01)  # the machine has others to serve
                name = draw.choice(self._documents)
                self.documents_asked[name] += 1
                try:
                    assert read(patient, name) == self._answers[name], name
                    self.right += 1
                except docmem.UnavailableError as error:
                    self.unavailable[error.message.partition(": ")[2]] += 1

    def _note(self, notice):
        self.retries[notice.why.reason] += 1


class Stream(threading.Thread):
    """A long answer in a thread of its own: `outcome` is its text or what ended it. Made when its
    first words are there."""

    def __init__(self, router, name, tokens=LONG_TOKENS):
        super().__init__(daemon=True)
        self.outcome = None
        self._router, self._name, self._tokens = router, name, tokens
        self._begun = threading.Event()
        self.start()
        assert self._begun.wait(60)

    def run(self):
        with docmem.Client(self._router) as client:
            try:
                answer = client.ask(self._name, QUESTION, max_tokens=self._tokens)
                next(answer)
                self._begun.set()
                self.outcome = answer.read()
            except docmem.DocMemError as error:
                self.outcome = error
            finally:
                self._begun.set()

    def result(self):
        self.join(90)
        assert self.outcome is not None
        return self.outcome


def bare_stream(channel, name, tokens=LONG_TOKENS):
    """The same without the client library: what comes over the wire, begun."""
    stream = query_pb2_grpc.QueryServiceStub(channel).Ask(
        v1.AskRequest(memory=v1.MemorySelection(document=name),
                      prompt=v1.Prompt(question=QUESTION), max_tokens=tokens),
        metadata=header(name), timeout=60)
    while not next(stream).HasField("delta"):
        pass
    return stream
