"""The examples, and those of docs/python.md, do what they say, against the real daemon."""

import os
import re
import subprocess
import sys

import docmem
from package import ROOT
from texts import document

EXAMPLES = ROOT / "examples/python"
PAGE = ROOT / "docs/python.md"


def run(site, daemon, program, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(site), "DOCMEM_ADDRESS": daemon.address}
    return subprocess.run(
        [sys.executable, "-B", EXAMPLES / program, *map(str, arguments)],
        env=environment, capture_output=True, text=True, timeout=60, check=False)


def output(*arguments):
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_ask_reads_a_file_and_prints_its_answer(site, daemon, tmp_path):
    file = tmp_path / "report.txt"
    file.write_text(document("ask.py"))
    printed = output(site, daemon, "ask.py", file, "Which door is blue?")
    with docmem.Client(daemon.address) as client:
        id = client.documents.ingest(file.read_text(), ratios=[0.9]).document.id
        answer = client.ask(id, "Which door is blue?", max_tokens=64).read()
    assert printed == answer + "\n"


def test_ingest_folder_reads_replaces_and_knows(site, daemon, tmp_path):
    for name in ("a.txt", "b.md", "c.pdf"):
        (tmp_path / name).write_text(document(name))
    arguments = (site, daemon, "ingest_folder.py", tmp_path, "reports")
    assert output(*arguments) == "a.txt: read\nb.md: read\n2 documents in reports\n"
    (tmp_path / "a.txt").write_text(document("another a.txt"))
    assert output(*arguments) == "a.txt: replaced\nb.md: known\n2 documents in reports\n"


def test_stream_asyncio_answers_every_question(site, daemon):
    with docmem.Client(daemon.address) as client:
        client.documents.ingest(document("stream"), "stream", ratios=[0])
        answers = [client.ask("stream", q, max_tokens=32).read() for q in ("Who?", "Where?")]
    printed = output(site, daemon, "stream_asyncio.py", "stream", "Who?", "Where?")
    assert f"1: Who? -> {answers[0]!r}\n" in printed
    assert f"2: Where? -> {answers[1]!r}\n" in printed


def test_a_failing_example_says_why(site, daemon, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    for name, *arguments in (
        ("ask.py", tmp_path / "absent.txt", "Who?"),
        ("ingest_folder.py", tmp_path, "no collection's name"),
        ("stream_asyncio.py", "absent", "Who?"),
    ):
        done = run(site, daemon, name, *arguments)
        assert done.returncode == 1
        assert done.stderr.startswith(f"{name}: ") and "Traceback" not in done.stderr, done.stderr


def test_the_pages_programs_run_as_written(site, daemon, tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    program = tmp_path / "page.py"
    program.write_text("\n\n".join(blocks))
    printed = output(site, daemon, program)
    assert "DOCUMENT_NOT_FOUND there is no document 'nobody'" in printed
    assert "'note'" in printed.splitlines()[-1]


def test_the_page_names_every_call(daemon):
    rows = dict(re.findall(r"^\| (`.*`) \| (?:`client\.(\w+)`|the client itself) \|$",
                           PAGE.read_text(), re.MULTILINE))
    with docmem.Client(daemon.address) as client:
        for calls, service in rows.items():
            place = getattr(client, service) if service else client
            named = set(re.findall(r"`(\w+)`", calls))
            offered = {name for name in dir(place) if not name.startswith("_")}
            offered -= {"with_options", "close"} | {service for service in rows.values()}
            assert named == offered, service
    assert len(rows) == 6
