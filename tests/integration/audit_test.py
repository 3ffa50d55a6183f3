"""The audit log: a line for every call, with who and what, and never a text of users."""

import json
import signal
import subprocess

import pytest
from client import ask_request, memory, refusal
from daemon import BINARIES, SETTING_FREE, eventually
from folders import CONFIG, adapter
from stubs import v1
from texts import document

CANARY = "Xylograph-7731"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
LOST = "docmem_audit_lines_lost_total"


def new_token(*arguments):
    done = subprocess.run([BINARIES / "docmem", "token", "new", *arguments], text=True,
                          env=SETTING_FREE, capture_output=True, check=True, timeout=30)
    return [row.split(maxsplit=1)[1] for row in done.stdout.splitlines()]


class Audited:
    """A daemon with an audit log, and clients by the names of their principals."""

    def __init__(self, make_daemon, folder):
        self.path = folder / "audit.jsonl"
        tokens = {"admin": new_token("admin", "--role", "admin"),
                  "lawyer": new_token("lawyer", "--collection", "law")}
        (folder / "tokens").write_text("".join(f"{line}\n" for _, line in tokens.values()))
        self.daemon = make_daemon("--audit-log", self.path, "--token-file",
                                  folder / "tokens").start()
        self.clients = {name: self.daemon.client(token=token)
                        for name, (token, _) in tokens.items()}
        self.secrets = [token for token, _ in tokens.values()]

    def lines(self):
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    def line_of(self, call):
        """The one line that `call` adds."""
        before = len(self.lines())
        call()
        eventually(lambda: len(self.lines()) > before)
        [line] = self.lines()[before:]
        return line


@pytest.fixture(scope="module")
def audited(make_shared_daemon, folder):
    made = Audited(make_shared_daemon, folder)
    made.line_of(lambda: made.clients["admin"].ingest(document("d"), "d"))
    return made


def test_a_line_tells_who_did_what_to_which_document_and_how_it_ended(audited):
    admin = audited.clients["admin"]
    line = audited.line_of(lambda: admin.ingest(document("new"), "new"))
    assert {"principal": "admin", "method": "Document.Ingest", "collection": "default",
            "id": "new", "code": "OK"}.items() <= line.items()
    assert line["peer"].startswith(("ipv4:127.0.0.1:", "ipv6:")) and line["time"].endswith("Z")
    assert line["seconds"] > 0 and line["request_id"] and "reason" not in line
    line = audited.line_of(lambda: admin.delete("new"))
    assert (line["method"], line["id"], line["code"]) == ("Document.Delete", "new", "OK")
    line = audited.line_of(lambda: refusal(lambda: admin.delete("new")))
    assert (line["id"], line["code"], line["reason"]) == ("new", "NOT_FOUND", "DOCUMENT_NOT_FOUND")
    line = audited.line_of(lambda: admin.ingest("text of its own"))
    assert len(line["id"]) == 32, "the derived id"


def test_refused_callers_have_their_line_too(audited):
    line = audited.line_of(lambda: refusal(lambda: audited.clients["lawyer"].document("d")))
    assert (line["principal"], line["collection"]) == ("lawyer", "default")
    assert (line["code"], line["reason"]) == ("PERMISSION_DENIED", "NOT_PERMITTED")
    line = audited.line_of(lambda: refusal(lambda: audited.clients["lawyer"].text("d")))
    assert line["principal"] == "lawyer", "a role that doesn't suffice"
    nobody = audited.daemon.client(token="0" * 64)
    line = audited.line_of(lambda: refusal(nobody.status))
    assert "principal" not in line
    assert (line["code"], line["reason"]) == ("UNAUTHENTICATED", "CREDENTIALS_INVALID")


def test_request_and_trace_ids_are_those_of_the_caller(audited):
    admin = audited.clients["admin"]
    metadata = [("traceparent", f"00-{TRACE}-00f067aa0ba902b7-01")]
    request = ask_request("d", max_tokens=2, request_id="my-question")
    line = audited.line_of(lambda: list(admin.queries.Ask(request, metadata=metadata)))
    assert {"request_id": "my-question", "trace_id": TRACE, "id": "d"}.items() <= line.items()
    answers = []
    line = audited.line_of(lambda: answers.append(admin.ask("d", max_tokens=2)))
    assert line["request_id"] == answers[0].started.request_id and "trace_id" not in line
    bad = [("traceparent", CANARY)]
    line = audited.line_of(lambda: admin.admin.GetStatus(v1.GetStatusRequest(), metadata=bad))
    assert "trace_id" not in line


def test_log_lines_of_a_request_have_its_ids(make_daemon):
    daemon = make_daemon("--log-level", "debug").start()
    client = daemon.client()
    metadata = [("traceparent", f"00-{TRACE}-00f067aa0ba902b7-01")]
    request = ask_request("none", request_id="my-question")
    assert refusal(lambda: list(client.queries.Ask(request, metadata=metadata)))
    refused = [json.loads(line) for line in daemon.log.read_text().splitlines()
               if '"request refused"' in line]
    assert [(line["request_id"], line["trace_id"]) for line in refused] == [("my-question", TRACE)]


def test_the_document_that_a_question_was_routed_to_is_named(audited):
    admin = audited.clients["admin"]
    admin.collections.Create(v1.CreateCollectionRequest(
        name="tales", settings=v1.CollectionSettings(lexical_index=True)))
    admin.ingest("The fox stole a hen from the henhouse.", "fox", collection="tales")
    line = audited.line_of(lambda: admin.ask("", "Who stole the hen?", collection="tales",
                                             max_tokens=2))
    assert (line["collection"], line["id"], line["code"]) == ("tales", "fox", "OK")
    assert "ids" not in line


def test_several_documents_are_counted(audited):
    request = v1.BatchGetDocumentsRequest(documents=["d", "other", "third"])
    line = audited.line_of(lambda: audited.clients["admin"].documents.BatchGet(request))
    assert (line["id"], line["ids"]) == ("d", 3)


def test_no_text_of_users_and_no_token_gets_into_it(audited):
    admin = audited.clients["admin"]
    turns = [v1.Turn(question=CANARY, answer=CANARY)]
    calls = (
        lambda: admin.ingest(f"{CANARY} " * 40, "canary", system_text=CANARY, title=CANARY,
                             labels={"k": CANARY}),
        lambda: admin.ask("canary", CANARY, prompt={"instruction": CANARY, "history": turns},
                          stop=[CANARY], max_tokens=4),
        lambda: admin.score("canary", CANARY, CANARY),
        lambda: admin.upload("canary", {**adapter(), "README.md": CANARY.encode()}),
    )
    failing = (
        lambda: admin.document(f"{CANARY}!"),
        lambda: admin.document("d", collection=f"{CANARY} "),
        lambda: admin.queries.Ask(v1.AskRequest(
            memory=memory("d"), prompt=v1.Prompt(question=CANARY), request_id=f"{CANARY}!")),
        lambda: admin.upload("canary", {**adapter(), CONFIG: CANARY.encode()}),
        lambda: admin.training(f"{CANARY}!"),
        lambda: admin.queries.Abort(v1.AbortRequest(request_id="r", principal=CANARY)),
    )
    before = len(audited.lines())
    for call in calls:
        call()
    for call in failing[:-1]:
        refusal(call)
    failing[-1]()
    eventually(lambda: len(audited.lines()) == before + len(calls) + len(failing))
    text = audited.path.read_text()
    assert CANARY not in text
    assert not any(secret in text for secret in audited.secrets)


def test_it_goes_on_in_a_new_file_after_a_rotation(make_daemon, tmp_path):
    audited = Audited(make_daemon, tmp_path)
    audited.line_of(audited.clients["admin"].status)
    moved = tmp_path / "audit.jsonl.1"
    audited.path.rename(moved)
    audited.daemon.process.send_signal(signal.SIGHUP)
    eventually(audited.path.exists)
    assert audited.clients["admin"].status()
    assert audited.daemon.stop() == 0
    assert len(moved.read_text().splitlines()) == 1 and len(audited.lines()) == 1
    assert audited.path.stat().st_mode & 0o777 == 0o600


def test_where_it_cannot_be_written_calls_go_on_and_lines_are_counted(make_daemon, tmp_path):
    daemon = make_daemon("--audit-log", "/dev/full").start()
    client = daemon.client()
    client.ingest(document("d"), "d")
    assert client.delete("d").deleted
    eventually(lambda: daemon.metrics()[LOST] == 2)
    assert [line["event"] for line in daemon.log_lines()].count("audit lines lost") == 1
    code, log = make_daemon("--audit-log", tmp_path / "absent/audit").refusal()
    assert code == 1 and "--audit-log" in log
