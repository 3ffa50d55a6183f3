"""Several daemons with one registry and one place for their files."""

import contextlib
import sys
import tempfile
import threading
from pathlib import Path

import grpc
import pytest
from client import refusal_of, refused
from daemon import ROOT, eventually, scaled
from stubs import v1
from texts import document

sys.path.insert(0, str(ROOT / "tests"))
import with_postgres  # noqa: E402
import with_swift  # noqa: E402

pytestmark = pytest.mark.skipif(
    with_postgres.programs() is None, reason="PostgreSQL isn't installed")
State = v1.TrainingJob
# What doesn't depend on the kind of place, or is about one kind.
ON_A_VOLUME = pytest.mark.parametrize("shared", ["volume"], indirect=True, scope="module")
IN_A_BUCKET = pytest.mark.parametrize("shared", ["bucket"], indirect=True, scope="module")
LONG_TRAINING = {"epochs": 1000, "batch_size": 1}
PAIRS = [("Which door is blue?", "The ninth one."), ("Who paints it?", "My aunt.")]


class Volume:
    """A folder that all replicas see."""

    def __init__(self, folder):
        self.place = folder / "volume"
        self.place.mkdir()
        self.environment = {}

    def objects(self):
        return [path for path in self.place.glob("artifacts/*/*") if path.is_file()]


class Bucket:
    """An object store."""

    def __init__(self, server):
        self.server = server
        variables = server.environment()
        self.place = f"s3://{variables['DOCMEM_TEST_S3_BUCKET']}/fleet"
        self.environment = {name: value for name, value in variables.items()
                            if name.startswith("AWS_")}
        self.environment["AWS_ENDPOINT_URL"] = variables["DOCMEM_TEST_S3"]


def within(call):
    """What it gives, or nothing while the place is away."""
    try:
        return call()
    except grpc.RpcError as error:
        assert refusal_of(error).reason == "ARTIFACTS_UNAVAILABLE", error
        return None


@pytest.fixture(scope="module", params=["volume", "bucket"])
def shared(request, folder):
    """Where files are shared: each kind once for the whole file."""
    if request.param == "volume":
        yield Volume(folder)
        return
    if not with_swift.installed():
        pytest.skip("Swift isn't installed")
    with (tempfile.TemporaryDirectory(prefix="docmem-swift-") as place,
          with_swift.Server(Path(place)) as server):
        yield Bucket(server)


@pytest.fixture(scope="module")
def postgres(shared):
    # Not below pytest's own folder: PostgreSQL's user couldn't reach it.
    with (tempfile.TemporaryDirectory(prefix="docmem-postgres-") as place,
          with_postgres.Server(Path(place), with_postgres.programs()) as server):
        yield server


@pytest.fixture(scope="module")
def make_replica(make_shared_daemon, shared, postgres):
    def make(*options):
        return make_shared_daemon("--registry", postgres.address, "--artifacts", shared.place,
                                  *options, environment=shared.environment)

    return make


@pytest.fixture(scope="module")
def replicas(make_replica):
    return [make_replica().start() for _ in range(2)]


@pytest.fixture
def clients(replicas):
    return [daemon.client() for daemon in replicas]


def test_what_one_remembers_all_answer_from(clients):
    one, other = clients
    one.ingest(document("a"), "a")
    answer = one.ask("a")
    same = other.ask("a")
    assert (same.text, same.tokens) == (answer.text, answer.tokens)
    assert same.finished.document_tokens_prefilled == 0
    assert other.text("a") == document("a")
    other.delete("a")
    refused(lambda: one.ask("a"), "NOT_FOUND", "DOCUMENT_NOT_FOUND")


def test_a_loaded_cache_of_a_replaced_document_is_not_answered_from(clients):
    one, other = clients
    revision = 0
    for text in ("first", "second", "third"):
        one.ingest(document(text), "r", replace=revision > 0, revision=revision)
        revision = one.document("r").revision
        one.ingest(document(text), f"alone-{text}")
        expected = one.ask(f"alone-{text}").tokens
        assert other.ask("r").tokens == expected
        assert one.ask("r").tokens == expected


def test_a_new_adapter_is_used_by_the_next_question_everywhere(clients):
    one, other = clients
    one.ingest(document("t"), "t")
    before = other.ask("t")
    job = one.train("t", PAIRS, epochs=40, rank=4)
    jobs, _ = other.watch_training(job.id)
    assert jobs[-1].state == State.STATE_SUCCEEDED, jobs[-1].message
    after = other.ask("t")
    assert after.started.adapter_version == 1
    assert after.tokens == one.ask("t").tokens
    assert before.started.adapter_version == 0


@ON_A_VOLUME
def test_a_training_is_seen_and_cancelled_from_everywhere(clients):
    one, other = clients
    one.ingest(document("c"), "c")
    job = one.train("c", PAIRS, **LONG_TRAINING)
    eventually(lambda: other.training(job.id).state == State.STATE_TRAINING)
    listed = other.trainings.List(v1.ListTrainingJobsRequest(document="c")).jobs
    assert [found.id for found in listed] == [job.id]
    for client in clients:
        if client.training(job.id).state == State.STATE_TRAINING:
            cancelled = client.trainings.Cancel(v1.CancelTrainingRequest(job_id=job.id))
            assert cancelled.state == State.STATE_CANCELLED
    for client in clients:
        eventually(lambda client=client: client.training(job.id).state == State.STATE_CANCELLED)
    # Whoever ran it is free again.
    last = other.train("c", PAIRS, epochs=1)
    eventually(lambda: one.training(last.id).state == State.STATE_SUCCEEDED, 60)


@ON_A_VOLUME
def test_an_object_removed_behind_its_back_is_data_loss_on_every_replica(clients, shared):
    one, other = clients
    before = set(shared.objects())
    one.ingest(document("gone"), "gone", retain_text=False)
    [cache] = set(shared.objects()) - before
    cache.unlink()
    refused(lambda: other.ask("gone"), "DATA_LOSS", "ARTIFACT_DAMAGED")
    other.ingest(document("whole"), "whole")
    assert one.ask("whole").finished


@IN_A_BUCKET
def test_a_bucket_that_is_away_for_a_while_loses_nothing(clients, shared):
    one, other = clients
    one.ingest(document("kept"), "kept")
    expected = one.ask("kept").tokens
    shared.server.stop()
    try:
        assert one.ask("kept").tokens == expected
        refused(lambda: other.ask("kept"), "UNAVAILABLE", "ARTIFACTS_UNAVAILABLE")
        refused(lambda: one.ingest(document("x"), "x"), "UNAVAILABLE", "ARTIFACTS_UNAVAILABLE")
    finally:
        shared.server.start()
    # A moment later: for a few seconds nobody tries.
    assert eventually(lambda: within(lambda: other.ask("kept").tokens == expected))
    assert eventually(lambda: within(lambda: one.ingest(document("x"), "x")))


def test_a_replica_that_starts_while_others_publish_loses_nothing(clients, make_replica):
    one, _ = clients
    stop = threading.Event()
    published = []

    def publish():
        while not stop.is_set():
            name = f"p{len(published)}"
            one.ingest(document(name), name, ratio_ppm=[1_000_000])
            published.append(name)

    thread = threading.Thread(target=publish)
    thread.start()
    with contextlib.ExitStack() as stack:
        stack.callback(thread.join)
        stack.callback(stop.set)
        third = make_replica()
        for _ in range(scaled(2, 10)):
            before = len(published)
            third.start()
            eventually(lambda before=before: len(published) > before + 2)
            third.kill()
    third.start()
    client = third.client()
    for name in published:
        assert client.ask(name, max_tokens=1).finished, name
    third.stop()


@ON_A_VOLUME
def test_a_replica_that_dies_leaves_its_training_to_another(make_replica, clients):
    one, _ = clients
    one.ingest(document("orphan"), "orphan")
    dying = make_replica("--checkpoint-seconds", "1").start()
    # The others are busy, so the third one takes it.
    busy = [one.train("orphan", PAIRS, **LONG_TRAINING) for _ in range(2)]
    eventually(lambda: all(one.training(job.id).state == State.STATE_TRAINING for job in busy))
    job = dying.client().train("orphan", PAIRS, epochs=300, batch_size=1)
    eventually(lambda: one.training(job.id).state == State.STATE_TRAINING)
    dying.kill()
    for other in busy:
        one.trainings.Cancel(v1.CancelTrainingRequest(job_id=other.id))
    eventually(lambda: one.training(job.id).state == State.STATE_SUCCEEDED, 120)


def test_a_foreign_place_is_refused(make_shared_daemon, postgres, folder, replicas):
    stranger = folder / "stranger"
    stranger.mkdir(exist_ok=True)
    code, said = make_shared_daemon(
        "--registry", postgres.address, "--artifacts", stranger).refusal()
    assert code == 1
    assert "identity" in said
    code, said = make_shared_daemon("--registry", postgres.address).refusal()
    assert code == 1
    assert "share" in said


def test_only_unavailable_is_seen_while_a_replica_dies(make_replica, clients):
    one, _ = clients
    third = make_replica().start()
    one.ingest(document("load"), "load")
    expected = one.ask("load").tokens
    client = third.client()
    seen, wrong = [], []

    def ask():
        try:
            while True:
                if client.ask("load").tokens != expected:
                    wrong.append("answer")
        except grpc.RpcError as error:
            seen.append(refusal_of(error).code)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    eventually(lambda: third.metrics().get("docmem_tokens_generated_total", 1) > 0)
    third.kill()
    for thread in threads:
        thread.join(60)
    assert not wrong
    assert set(seen) <= {grpc.StatusCode.UNAVAILABLE}, seen
    assert one.ask("load").tokens == expected
