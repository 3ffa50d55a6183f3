"""The program docmem against a real daemon: every command, its JSON, its exit codes."""

import hashlib
import json
import signal
import subprocess
import time

import pytest
from cli import FAILED, STOPPED, USAGE, Cli
from daemon import BINARIES, eventually
from folders import ADAPTERS, CONFIG, adapter, with_config
from texts import document


@pytest.fixture(scope="module")
def cli(make_shared_daemon, patient, folder):
    daemon = make_shared_daemon(model=patient, folder=folder / "cli").start()
    cli = Cli(daemon, folder)
    cli.json("ingest", cli.file("d.txt", document("d")), "--id", "d", "--ratio", "0.9,0,1")
    cli.json("adapter", "upload", "d", ADAPTERS / "all-modules")
    return cli


def test_ingest_takes_a_file_and_tells_what_it_built(cli):
    path = cli.file("new.txt", document("new"))
    result = cli.json("ingest", path, "--id", "new", "--title", "A title", "--label", "a=1",
                      "--ratio", "0.9,0.25", "--pin")
    made = result["document"]
    assert (made["id"], made["state"], made["title"]) == ("new", "STATE_READY", "A title")
    assert made["labels"] == {"a": "1"} and made["pinned"]
    assert [cache["ratioPpm"] for cache in made["caches"]] == [900000, 250000]
    assert len(result["builtCacheIds"]) == 2 and result["trainingJobId"] == ""
    assert cli.json("ingest", path, "--id", "new", "--title", "A title",
                    "--label", "a=1", "--ratio", "0.9")["builtCacheIds"] == []
    assert "all was there already" in cli.text("ingest", path, "--id", "new", "--ratio", "0.25")


def test_ingest_reads_standard_input(cli):
    text = document("stdin").encode()
    made = cli.json("ingest", "-", stdin=text)["document"]
    assert made["id"] == hashlib.sha256(text).hexdigest()[:32]
    assert cli.run("text", made["id"]).stdout == text
    assert cli.json("text", made["id"])["text"].encode() == text
    assert cli.error("ingest", "-", stdin=b"ab\xff")["code"] == "INVALID_ARGUMENT"
    assert cli.error("ingest", "-", stdin=b"")["code"] == "INVALID_ARGUMENT"


def test_ingest_replaces_with_the_seen_revision(cli):
    cli.json("ingest", "-", "--id", "rep", stdin=b"The first text.")
    error = cli.error("ingest", "-", "--id", "rep", stdin=b"The second text.")
    assert (error["code"], error["reason"]) == ("ALREADY_EXISTS", "DOCUMENT_EXISTS")
    revision = error["details"]["metadata"]["revision"]
    cli.error("ingest", "-", "--id", "rep", "--replace", code=USAGE, stdin=b"x")
    cli.json("ingest", "-", "--id", "rep", "--replace", "--revision", revision,
             stdin=b"The second text.")
    assert cli.text("text", "rep") == "The second text."


def test_a_detached_ingestion_goes_on(cli):
    text = document("detached", 300).encode()
    accepted = cli.json("ingest", "-", "--id", "detached", "--detach", stdin=text)
    assert accepted["document"]["id"] == "detached"

    def ready():
        listed = cli.json("list")["documents"]
        return any(one["id"] == "detached" and one["state"] == "STATE_READY" for one in listed)

    eventually(ready, every=0.2)


def test_ask_answers_as_one_object_or_as_text(cli):
    answer = cli.json("ask", "d", "Which door?", "--max-tokens", "12")
    assert list(answer) == ["started", "answer", "finished"]
    assert answer["started"]["document"] == "d"
    assert answer["started"]["mode"] == "MODE_BASE_KV_ADAPTER_DECODE"
    # Fault 40: printed also when it is 0.
    assert answer["finished"]["documentTokensPrefilled"] == 0
    assert answer["finished"]["answerTokens"] == 12
    assert answer["finished"]["reason"] == "REASON_LENGTH"
    assert cli.text("ask", "d", "Which door?", "--max-tokens", "12") == answer["answer"] + "\n"
    scored = cli.json("ask", "d", "Which door?", "--max-tokens", "12", "--log-probabilities")
    assert len(scored["logProbabilities"]) == 12
    base = cli.json("ask", "d", "Which door?", "--mode", "base", "--ratio", "0.5", "--build",
                    "--temperature", "1", "--seed", "7", "--max-tokens", "5", "--stop", "zzzz")
    assert base["started"]["ratioPpm"] == 500000 and base["started"]["adapterVersion"] == 0


def test_ask_streams_while_the_answer_grows(cli):
    command = [BINARIES / "docmem", "ask", "d", "Which door?", "--max-tokens", "100000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=cli.environment) as asking:
        assert asking.stdout.read(64)
        assert asking.poll() is None
        asking.send_signal(signal.SIGINT)
        assert asking.wait(20) == STOPPED
    eventually(lambda: cli.json("status")["queue"]["running"] == 0)


def test_chat_keeps_the_conversation(cli):
    done = cli.run("chat", "d", "--max-tokens", "4", "--output", "json",
                   stdin=b"First?\nSecond?\n/clear\nFirst?\n/quit\nnever\n")
    answers = [json.loads(line) for line in done.stdout.decode().splitlines()]
    counts = [answer["finished"]["promptTokens"] for answer in answers]
    assert len(answers) == 3 and counts[1] > counts[0] == counts[2]
    assert answers[0]["answer"] == answers[2]["answer"]


def test_score_prints_each_token_and_the_sum(cli):
    result = cli.json("score", "d", "Which?", "The blue door.")
    total = sum(token["logProbability"] for token in result["tokens"])
    assert result["logProbability"] == pytest.approx(total, abs=1e-5)
    assert result["documentTokensPrefilled"] == 0
    assert cli.text("score", "d", "Which?", "The blue door.").splitlines()[-1].split()[0] == "sum"


def test_documents_are_listed_shown_changed_and_deleted(cli):
    for name in ("x1", "x2"):
        cli.json("ingest", "-", "--id", name, "--label", "set=x", stdin=document(name).encode())
    listed = cli.json("list", "--label", "set=x", "--descending")["documents"]
    assert [one["id"] for one in listed] == ["x2", "x1"]
    assert "x1" in cli.text("list", "--label", "set=x")
    assert cli.json("show", "x1")["id"] == "x1"
    assert cli.json("update", "x1", "--title", "new")["title"] == "new"
    assert cli.json("update", "x1", "--no-labels")["labels"] == {}
    assert cli.json("pin", "x1")["pinned"] and not cli.json("unpin", "x1")["pinned"]
    items = cli.json("prefetch", "x1", "x2", "--wait")["items"]
    assert {item["document"] for item in items} == {"x1", "x2"}
    residents = cli.json("residents", "--kind", "cache")["items"]
    assert {"x1", "x2"} <= {item["document"] for item in residents}
    assert cli.json("delete", "x1") == {"deleted": True}
    assert cli.json("delete", "x1", "--allow-missing") == {"deleted": False}
    assert "not there" in cli.text("delete", "x1", "--allow-missing")
    error = cli.error("delete", "x1")
    assert (error["code"], error["reason"]) == ("NOT_FOUND", "DOCUMENT_NOT_FOUND")
    for command in ("show x2", "residents", "status", "prefetch x2", "pin x2"):
        assert cli.text(*command.split())


def test_caches_are_built_listed_and_deleted(cli):
    built = cli.json("cache", "build", "d", "--ratio", "0.125")
    cache_id = built["builtCacheIds"][0]
    listed = cli.json("cache", "list", "d")
    assert cache_id in [cache["id"] for cache in listed["caches"]]
    assert cache_id in cli.text("cache", "list", "d")
    assert cli.json("ask", "d", "q", "--cache", cache_id, "--max-tokens", "1")["finished"]
    assert cli.json("cache", "delete", "d", cache_id) == {"deleted": True}
    assert cli.error("cache", "delete", "d", cache_id)["reason"] == "CACHE_NOT_FOUND"


def test_caches_of_every_kind_are_built_listed_and_asked(cli):
    cli.json("ingest", "-", "--id", "kinds", "--ratio", "0.5", "--profile", "compactor,knorm",
             stdin=document("kinds").encode())
    made = cli.json("adapter", "upload", "kinds", ADAPTERS / "all-modules")
    built = cli.json("cache", "build", "kinds", "--mode", "adapter-prefill", "--adapter", "1",
                     "--ratio", "0.5,0", "--profile", "compactor-vllm", "--kv-dtype", "int8")
    scored, whole = built["caches"]
    assert scored["profile"] == "PROFILE_COMPACTOR_VLLM" and scored["kvDtype"] == "KV_DTYPE_INT8"
    assert scored["writerAdapterHash"] == scored["scorerAdapterHash"] == made["hash"]
    for text in (cli.text("show", "kinds"), cli.text("cache", "list", "kinds")):
        rows = {line.split()[-1]: line.split() for line in text.splitlines() if line}
        short = made["hash"][:12]
        assert rows[scored["id"]][:5] == ["0.5", "compactor-vllm", "int8", short, short]
        assert rows[whole["id"]][:5] == ["0", "-", "int8", short, "-"]
        knorm = next(row for row in rows.values() if "knorm" in row)
        assert knorm[2:5] == ["float32", "base", "base"]
    assert "0.5, 0.5 (knorm), 0.5 (compactor-vllm, int8, adapter)" in cli.text("list")
    choice = ("--mode", "adapter-prefill", "--ratio", "0.5", "--profile", "compactor-vllm")
    answer = cli.json("ask", "kinds", "Which?", *choice, "--max-tokens", "4")
    assert answer["started"]["cacheId"] == scored["id"]
    score = cli.json("score", "kinds", "Which?", "This.", *choice)
    assert score["started"]["cacheId"] == scored["id"]
    error = cli.error("ask", "kinds", "q", "--mode", "base-score-adapter-prefill", "--ratio", "0.5")
    assert error["reason"] == "CACHE_NOT_FOUND"
    built = cli.json("ask", "kinds", "q", "--mode", "base-score-adapter-prefill", "--ratio", "0.5",
                     "--build", "--max-tokens", "4")
    assert built["finished"]["documentTokensPrefilled"] > 0
    assert cli.error("cache", "build", "kinds", "--kv-dtype", "float16")["code"] == (
        "INVALID_ARGUMENT")


def test_adapters_are_uploaded_chosen_downloaded_and_deleted(cli):
    cli.json("ingest", "-", "--id", "a", stdin=document("a").encode())
    made = cli.json("adapter", "upload", "a", ADAPTERS / "all-modules")
    assert made["version"] == 1 and made["current"] and made["modules"]
    assert cli.json("adapter", "upload", "a", ADAPTERS / "rslora", "--keep-current")["version"] == 2
    assert [one["version"] for one in cli.json("adapter", "list", "a")["adapters"]] == [2, 1]
    assert cli.json("adapter", "show", "a", "--adapter", "2")["current"] is False
    change = cli.json("adapter", "use", "a", "2")
    assert (change["previousVersion"], change["currentVersion"]) == (1, 2)
    folder = cli.folder / "downloaded"
    cli.json("adapter", "download", "a", folder, "--adapter", "1")
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == adapter()
    assert cli.error("adapter", "download", "a", folder)["code"] == "ALREADY_EXISTS"
    assert cli.error("adapter", "delete", "a", "2")["reason"] == "ADAPTER_IS_CURRENT"
    assert cli.json("adapter", "delete", "a", "1")["deleted"]
    for command in ("adapter list a", "adapter show a"):
        assert cli.text(*command.split())


def test_a_refused_adapter_is_told_with_its_reason(cli):
    folder = cli.folder / "pickled"
    folder.mkdir()
    (folder / CONFIG).write_bytes(adapter()[CONFIG])
    (folder / "adapter_model.bin").write_bytes(b"pickle")
    assert cli.error("adapter", "upload", "d", folder)["reason"] == "ADAPTER_UNSUPPORTED"
    assert cli.error("adapter", "upload", "d", cli.folder / "none")["code"] == "NOT_FOUND"
    other = cli.folder / "other"
    other.mkdir()
    for file, content in with_config(adapter(), base_model_name_or_path="other-llama").items():
        (other / file).write_bytes(content)
    assert cli.error("adapter", "upload", "d", other)["reason"] == "ADAPTER_OTHER_BASE"
    wrong_shapes = cli.error("adapter", "upload", "d", ADAPTERS / "all-linear")
    assert wrong_shapes["reason"] == "ADAPTER_INVALID"


def test_collections_are_made_shown_changed_and_deleted(cli):
    made = cli.json("collection", "create", "books", "--default-ratio", "0.5")
    assert made["settings"]["defaultRatioPpm"] == 500000
    cli.json("ingest", "-", "--id", "b", "--collection", "books", stdin=b"A short book.")
    assert cli.json("show", "b", "--collection", "books")["caches"][0]["ratioPpm"] == 500000
    changed = cli.json("collection", "update", "books", "--default-mode", "base")
    assert changed["settings"]["defaultMode"] == "MODE_BASE"
    assert {"books", "default"} <= {one["name"]
                                    for one in cli.json("collection", "list")["collections"]}
    assert cli.json("collection", "show", "books")["documentCount"] == 1
    assert cli.error("collection", "delete", "books")["reason"] == "COLLECTION_NOT_EMPTY"
    assert cli.json("collection", "delete", "books", "--force")["deletedDocuments"] == 1
    assert cli.text("collection", "list")


def test_status_health_and_drain(cli):
    status = cli.json("status")
    assert status["phase"] == "PHASE_SERVING" and status["model"]["name"] == "tiny-llama"
    assert status["quarantined"] == 0, "zeros are printed"
    health = ("--address", cli.daemon.health_address, "health")
    assert cli.json(*health) == {"serving": True}
    assert cli.text(*health, "--liveness") == "serving\n"
    assert cli.json("drain")["draining"]
    try:
        assert cli.error(*health)["code"] == "UNAVAILABLE"
        error = cli.error("--timeout", "1", "ask", "d", "q")
        assert error["code"] in ("UNAVAILABLE", "DEADLINE_EXCEEDED")
    finally:
        assert not cli.json("drain", "--undo")["draining"]
    assert cli.json(*health) == {"serving": True}


def test_a_question_finds_its_document(cli):
    assert cli.error("route", "q")["reason"] == "LEXICAL_INDEX_OFF"
    cli.json("collection", "create", "routed", "--lexical-index")
    text = cli.file("bees.txt", "The carpenter bee drills its nest into the wood of old gates.")
    cli.json("ingest", text, "--id", "bees", "--title", "Bees", "--collection", "routed")
    question = "Where does the carpenter bee drill its nest?"
    ranked = cli.json("route", question, "--collection", "routed")
    assert not ranked["abstained"]
    assert [(one["document"], one["title"]) for one in ranked["documents"]] == [("bees", "Bees")]
    assert "bees" in cli.text("route", question, "--collection", "routed")
    answer = cli.json("ask", "--route", "--collection", "routed", "--max-tokens", 4, question)
    assert answer["started"]["document"] == "bees"
    foreign = ["--collection", "routed", "Which treaty ended the war?"]
    assert cli.json("route", *foreign)["abstained"]
    assert cli.error("ask", "--route", *foreign)["reason"] == "NO_DOCUMENT_FITS"


def test_export_writes_a_file_that_import_reads(cli):
    path = cli.folder / "out.docmem"
    told = cli.json("export", "d", path)
    assert told == {"file": str(path), "bytes": str(path.stat().st_size)}
    assert cli.json("import", path, "--id", "copied")["id"] == "copied"
    assert "exported" in cli.error("import", cli.file("in.docmem", "something else"))["message"]
    nothing = cli.folder / "nothing.docmem"
    assert cli.error("export", "nobody", nothing)["reason"] == "DOCUMENT_NOT_FOUND"
    assert not nothing.exists()


def test_a_token_and_completions_need_no_daemon(cli):
    nowhere = {"DOCMEM_ADDRESS": "127.0.0.1:1"}
    made = cli.json("token", "new", "bob", "--role", "write", **nowhere)
    digest = hashlib.sha256(made["token"].encode()).hexdigest()
    assert f"sha256:{digest}" in made["line"] and " write " in made["line"]
    for shell in ("bash", "zsh", "fish"):
        assert "docmem" in cli.text("completion", shell, **nowhere)
    assert cli.text("--version", **nowhere).startswith("docmem ")
    assert "Commands:" in cli.text("--help", **nowhere)


@pytest.mark.parametrize("arguments", [
    ["nonsense"], ["ask", "d"], ["ask", "d", "q", "--ratio", "1.5"], ["ask", "d", "q", "--raito"],
    ["ask", "d", "q", "--ratio", "0.9", "--cache", "x"], ["ask", "d", "q", "--build"],
    ["ask", "d", "q", "--mode", "magic"], ["ask", "d", "q", "--max-tokens", "-1"],
    ["show"], ["show", "d", "e"], ["adapter"], ["--timeout", "-1", "status"], ["update", "d"],
    ["--address", "no port", "status"], ["completion", "powershell"],
])
def test_wrong_usage_exits_with_2(cli, arguments):
    assert cli.error(*arguments, code=USAGE)["reason"] == "USAGE"


def test_a_failure_exits_with_1_and_tells_why(cli):
    error = cli.error("ask", "none", "q")
    assert (error["code"], error["reason"]) == ("NOT_FOUND", "DOCUMENT_NOT_FOUND")
    done = cli.run("ask", "d", "q", "--ratio", "0.77", code=FAILED)
    assert b"reason: CACHE_NOT_FOUND" in done.stderr and b"it has: " in done.stderr
    assert cli.error("ingest", cli.folder / "absent.txt")["code"] == "NOT_FOUND"
    began = time.monotonic()
    error = cli.error("--timeout", "2", "status", DOCMEM_ADDRESS="127.0.0.1:1")
    assert error["code"] in ("UNAVAILABLE", "DEADLINE_EXCEEDED") and not error["reason"]
    assert time.monotonic() - began < 60


def test_after_a_restart_a_question_prefills_no_document_token(cli):
    before = cli.json("ask", "d", "Which door?", "--max-tokens", "8")
    cli.daemon.restart()
    cli.environment["DOCMEM_ADDRESS"] = cli.daemon.address
    after = cli.json("ask", "d", "Which door?", "--max-tokens", "8")
    assert after["finished"]["documentTokensPrefilled"] == 0
    assert after["answer"] == before["answer"]
    assert after["started"]["cacheTier"] == "TIER_DISK"
