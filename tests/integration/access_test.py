"""Tokens: who gets in, what each role may do, and that collections don't show through."""

import os
import signal
import subprocess

import grpc
import pytest
from client import ask_request, refusal, refused
from daemon import BINARIES, SETTING_FREE, eventually
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from stubs import v1
from texts import document

FAILURES = "docmem_token_reload_failures_total"


def new_token(*arguments):
    """A token and its line, made by `docmem token new`."""
    done = subprocess.run([BINARIES / "docmem", "token", "new", *arguments], text=True,
                          env=SETTING_FREE, capture_output=True, check=True, timeout=30)
    token, line = (row.split(maxsplit=1)[1] for row in done.stdout.splitlines())
    return token, line


@pytest.fixture(scope="module")
def tokens(folder):
    """Name → token, each in the token file."""
    made = {
        "admin": new_token("admin", "--role", "admin"),
        "writer": new_token("writer", "--role", "write"),
        "reader": new_token("reader"),
        "lawyer": new_token("lawyer", "--role", "write", "--collection", "law"),
        "reporter": new_token("reporter", "--role", "admin", "--collection", "news"),
    }
    lines = "".join(f"{line}\n" for _, line in made.values())
    (folder / "tokens").write_text(f"# of this test\n\n{lines}")
    return {name: token for name, (token, _) in made.items()}


@pytest.fixture(scope="module")
def daemon(make_shared_daemon, folder, tokens):
    return make_shared_daemon("--token-file", folder / "tokens").start()


@pytest.fixture(scope="module")
def clients(daemon, tokens):
    """Name → client; what the tests read is there."""
    made = {name: daemon.client(token=token) for name, token in tokens.items()}
    for name in ("law", "news"):
        made["admin"].collections.Create(v1.CreateCollectionRequest(name=name))
        made["writer"].ingest(document(name), "d", collection=name)
    made["writer"].ingest(document("d"), "d")
    return made


def answers(client):
    try:
        return bool(client.status())
    except grpc.RpcError:
        return False


def get(client, collection, name="d"):
    return client.documents.Get(v1.GetDocumentRequest(collection=collection, document=name))


def text_of(client, collection):
    return list(client.documents.GetText(
        v1.GetTextRequest(collection=collection, document="d")))


def test_without_a_token_or_with_a_wrong_one_nothing_is_answered(daemon, clients):
    refused(daemon.client().status, "UNAUTHENTICATED", "CREDENTIALS_MISSING")
    for token in ("wrong", "0" * 64):
        refused(daemon.client(token=token).status, "UNAUTHENTICATED", "CREDENTIALS_INVALID")


def test_health_and_metrics_need_no_token(daemon, clients):
    assert daemon.readiness() and daemon.liveness()
    assert daemon.metrics()[FAILURES] == 0


def test_reflection_needs_a_token(daemon, tokens):
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    with grpc.insecure_channel(daemon.address) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        refused(lambda: list(stub.ServerReflectionInfo(iter([request]), timeout=20)),
                "UNAUTHENTICATED", "CREDENTIALS_MISSING")
        metadata = [("authorization", f"Bearer {tokens['reader']}")]
        replies = list(stub.ServerReflectionInfo(iter([request]), timeout=20, metadata=metadata))
        assert len(replies[0].list_services_response.service) == 7


def test_each_role_may_do_what_it_includes_and_no_more(clients):
    forbidden = ("PERMISSION_DENIED", "NOT_PERMITTED")
    reader, writer = clients["reader"], clients["writer"]
    assert get(reader, "default").id == "d"
    assert reader.ask("d", max_tokens=2).finished
    refused(lambda: text_of(reader, "default"), *forbidden)
    refused(lambda: list(reader.documents.Export(v1.ExportDocumentRequest(document="d"))),
            *forbidden)
    refused(lambda: reader.ingest("text", "new"), *forbidden)
    refused(lambda: reader.documents.Delete(v1.DeleteDocumentRequest(document="d")), *forbidden)
    assert text_of(writer, "default")
    refused(lambda: writer.collections.Create(v1.CreateCollectionRequest(name="c")), *forbidden)
    refused(lambda: writer.admin.Drain(v1.DrainRequest()), *forbidden)
    refused(lambda: clients["reporter"].admin.Drain(v1.DrainRequest()), *forbidden)
    assert not clients["admin"].admin.Drain(v1.DrainRequest(undo=True)).draining


def test_a_foreign_collection_looks_like_an_absent_one(clients):
    lawyer = clients["lawyer"]
    assert get(lawyer, "law").collection == "law"
    refused(lambda: get(lawyer, "law", "none"), "NOT_FOUND", "DOCUMENT_NOT_FOUND")
    for call in (
        lambda name: get(lawyer, name),
        lambda name: get(lawyer, name, "none"),
        lambda name: lawyer.ask("d", collection=name),
        lambda name: lawyer.score("d", "answer", collection=name),
        lambda name: lawyer.ingest("text", "new", collection=name),
        lambda name: lawyer.collections.Get(v1.GetCollectionRequest(name=name)),
        lambda name: list(lawyer.documents.List(v1.ListDocumentsRequest(collection=name))
                          .documents),
        lambda name: text_of(lawyer, name),
    ):
        seen = set()
        for name in ("news", "default", "nowhere"):
            error = refusal(lambda call=call, name=name: call(name))
            assert (error.code.name, error.reason) == ("PERMISSION_DENIED", "NOT_PERMITTED")
            seen.add(error.message.replace(name, "NAME"))
        assert len(seen) == 1
    listed = lawyer.collections.List(v1.ListCollectionsRequest())
    assert [collection.name for collection in listed.collections] == ["law"]
    assert lawyer.status().documents == 0 and not lawyer.status().tiers


def test_a_training_of_another_collection_is_unknown(clients):
    job = clients["writer"].trainings.Start(v1.StartTrainingRequest(
        collection="news", document="d", options=v1.TrainingOptions(epochs=1))).id
    lawyer = clients["lawyer"]
    for name in (job, "training-999"):
        for call in (
            lambda name=name: lawyer.trainings.Get(v1.GetTrainingJobRequest(job_id=name)),
            lambda name=name: lawyer.trainings.Cancel(v1.CancelTrainingRequest(job_id=name)),
            lambda name=name: list(
                lawyer.trainings.Watch(v1.WatchTrainingRequest(job_id=name))),
        ):
            error = refused(call, "NOT_FOUND", "JOB_NOT_FOUND")
            assert error.message == f"no training '{name}'"
    clients["writer"].trainings.Cancel(v1.CancelTrainingRequest(job_id=job))


def test_residents_of_other_collections_are_not_shown(clients):
    clients["writer"].ask("d", collection="news", max_tokens=1)
    clients["writer"].ask("d", collection="law", max_tokens=1)
    assert {item.collection for item in clients["reporter"].residents()} == {"news"}
    assert {item.collection for item in clients["admin"].residents()} >= {"law", "news"}


def test_a_changed_file_is_taken_and_a_bad_one_is_not(make_daemon, tmp_path):
    first, first_line = new_token("first")
    second, second_line = new_token("second")
    path = tmp_path / "tokens"
    path.write_text(first_line + "\n")
    daemon = make_daemon("--token-file", path).start()
    old, new = daemon.client(token=first), daemon.client(token=second)
    assert old.status()
    refused(new.status, "UNAUTHENTICATED", "CREDENTIALS_INVALID")

    replacement = tmp_path / "replacement"
    replacement.write_text(second_line + "\n")
    replacement.rename(path)
    eventually(lambda: answers(new))
    refused(old.status, "UNAUTHENTICATED", "CREDENTIALS_INVALID")

    for text in (second_line + "\nthird sha256:0 query *\n", "", "# nobody\n"):
        before = daemon.metrics()[FAILURES]
        path.write_text(text)
        daemon.process.send_signal(signal.SIGHUP)
        eventually(lambda before=before: daemon.metrics()[FAILURES] > before)
        assert new.status()
    os.remove(path)
    before = daemon.metrics()[FAILURES]
    eventually(lambda: daemon.metrics()[FAILURES] > before)
    assert new.status()
    log = daemon.log.read_text()
    assert "line 2, credential" in log
    assert first not in log and second not in log


def test_a_bad_token_file_keeps_the_daemon_from_starting(make_daemon, tmp_path):
    path = tmp_path / "tokens"
    path.write_text("alice nonsense query *\n")
    code, log = make_daemon("--token-file", path).refusal()
    assert code == 1 and "line 1, credential" in log
    code, log = make_daemon("--token-file", tmp_path / "absent").refusal()
    assert code == 1 and "absent" in log


def test_limits_of_a_token_and_of_a_collection_are_told_and_reopen(make_daemon, tmp_path, patient):
    token, line = new_token("limited", "--role", "admin")
    other, other_line = new_token("other")
    (tmp_path / "tokens").write_text(f"{line} max_in_flight=2\n{other_line}\n")
    daemon = make_daemon("--token-file", tmp_path / "tokens", model=patient).start()
    client, second = daemon.client(token=token), daemon.client(token=other)
    client.ingest(document("d"), "d")

    def endless(who):
        stream = who.queries.Ask(ask_request("d", max_tokens=100_000))
        next(stream)
        return stream

    def exceeded(who, name, limit):
        why = refused(lambda: who.ask("d"), "RESOURCE_EXHAUSTED", name)
        assert (why.metadata["limit"], why.metadata["used"]) == (str(limit), str(limit))
        assert why.retry

    streams = [endless(client), endless(client)]
    exceeded(client, "QUOTA_MAX_IN_FLIGHT", 2)
    assert second.ask("d", max_tokens=2).finished
    client.collections.Update(v1.UpdateCollectionRequest(
        name="default", settings={"limits": {"max_in_flight": 2}},
        update_mask={"paths": ["limits.max_in_flight"]}))
    exceeded(second, "QUOTA_MAX_IN_FLIGHT", 2)
    client.ingest(document("gone"), "gone")
    assert client.delete("gone").deleted, "deleting is always allowed"
    for stream in streams:
        stream.cancel()
    eventually(lambda: client.status().queue.running == 0)
    assert second.ask("d", max_tokens=2).finished and client.ask("d", max_tokens=2).finished


def docmem(daemon, *arguments, **environment):
    return subprocess.run([BINARIES / "docmem", "--address", daemon.address, *arguments],
                          env={**SETTING_FREE, **environment}, text=True, capture_output=True,
                          timeout=60, check=False)


def test_docmem_sends_its_token_from_a_file_or_the_environment(daemon, clients, tokens, tmp_path):
    (tmp_path / "token").write_text(tokens["lawyer"] + "\n")
    listed = docmem(daemon, "--token-file", tmp_path / "token", "list", "--collection", "law")
    assert listed.returncode == 0 and "d" in listed.stdout
    shown = docmem(daemon, "show", "d", DOCMEM_TOKEN=tokens["lawyer"])
    assert shown.returncode == 1 and "NOT_PERMITTED" in shown.stderr
    assert "CREDENTIALS_MISSING" in docmem(daemon, "list").stderr
