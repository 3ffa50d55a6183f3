"""The wheel: what is in it, what it says of itself, and its types as a checker sees them."""

import importlib.metadata
import os
import re
import subprocess
import sys
import zipfile

import docmem
import pytest
from package import ROOT

# Lines of a program, and what a type checker must say of each.
SAMPLE = [
    ("from docmem import AsyncClient, Client, v1", ""),
    ("def blocking(c: Client) -> None:", ""),
    ("    print(c.documents.get(document='d1').title)", ""),
    ("    reveal_type(c.documents.get(document='d1'))", '"docmem.v1.document_pb2.Document"'),
    ("    reveal_type(c.ask('d1', 'Why?', ratio=0.5))", '"docmem.answer.Answer"'),
    ("    reveal_type([d for d in c.documents.list()])", "[docmem.v1.document_pb2.Document]"),
    ("    c.documents.get(name='d1')", 'Unexpected keyword argument "name"'),
    ("    c.ask('d1', 'Why?', rate=0.5)", 'Unexpected keyword argument "rate"'),
    ("    c.ask('d1')", "Too few arguments"),
    ("async def waiting(c: AsyncClient) -> None:", ""),
    ("    reveal_type(await c.documents.get(document='d1'))", '"docmem.v1.document_pb2.Document"'),
    ("    reveal_type(c.ask('d1', 'Why?', mode=v1.MODE_BASE))", '"docmem.answer.AsyncAnswer"'),
    ("    reveal_type([e async for e in c.trainings.watch('j1')])", "training_pb2.TrainingEvent]"),
    ("    print(c.documents.get(document='d1').title)", 'has no attribute "title"'),
]


def test_the_wheel_brings_stubs_and_types(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    protos = [path.stem for path in (ROOT / "proto/docmem/v1").glob("*.proto")]
    assert len(protos) == 8
    stubs = {f"docmem/v1/{name}{end}" for name in protos
             for end in ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py")}
    assert stubs | {"docmem/py.typed"} <= names
    assert {name.split("/")[0] for name in names} == {
        "docmem", f"docmem-{importlib.metadata.version('docmem')}.dist-info"}


def test_its_version_is_the_projects():
    declared = re.search(r"docmem VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert importlib.metadata.version("docmem") == declared


def test_every_message_of_the_contract_is_in_v1():
    for path in (ROOT / "proto/docmem/v1").glob("*.proto"):
        for name in re.findall(r"^(?:message|enum) (\w+)", path.read_text(), re.MULTILINE):
            assert hasattr(docmem.v1, name), name


def test_every_call_of_the_contract_is_offered():
    client = docmem.Client("127.0.0.1:1")
    places = {"Query": client, "Admin": client.admin, "Document": client.documents,
              "Adapter": client.adapters, "Collection": client.collections,
              "Training": client.trainings}
    renamed = {"get_text": "text", "get_status": "status", "list_resident": "residents",
               "import": "import_"}
    for path in (ROOT / "proto/docmem/v1").glob("*.proto"):
        for service, body in re.findall(
                r"^service (\w+)Service {(.*?)^}", path.read_text(), re.MULTILINE | re.DOTALL):
            for call in re.findall(r"^  rpc (\w+)", body, re.MULTILINE):
                name = re.sub(r"(?<!^)(?=[A-Z])", "_", call).lower()
                assert callable(getattr(places[service], renamed.get(name, name))), (service, call)
    client.close()


@pytest.mark.timeout(300)
def test_package_and_examples_are_strictly_typed(site, tmp_path):
    sample = tmp_path / "sample.py"
    sample.write_text("".join(f"{line}\n" for line, _ in SAMPLE))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", ROOT / "client/python/pyproject.toml",
         "--cache-dir", tmp_path / "cache", "--no-error-summary", site / "docmem",
         *(ROOT / "examples/python").glob("*.py"), sample],
        env={**os.environ, "MYPYPATH": str(site)}, capture_output=True, text=True, check=False)
    assert not done.stderr
    said = {}
    for line in done.stdout.splitlines():
        place, number, message = line.split(":", 2)
        if "Maybe you forgot to use" not in message:
            said[place, int(number)] = message
    for number, (line, expected) in enumerate(SAMPLE, start=1):
        message = said.pop((str(sample), number), "")
        assert expected in message and bool(expected) == bool(message), (line, message)
    assert said == {}
