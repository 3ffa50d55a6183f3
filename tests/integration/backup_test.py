"""docmem backup and restore: everything from one data folder into another, again and again."""

import pytest
from cli import FAILED, Cli
from daemon import eventually
from folders import adapter, scaled_adapter
from stubs import v1
from texts import document

NAMES = ("a", "b", "c")


@pytest.fixture
def filled(make_daemon, tmp_path, patient):
    """A daemon with three documents in `default` and one in `law`, and its program."""
    daemon = make_daemon(model=patient, folder=tmp_path / "one").start()
    client = daemon.client()
    settings = v1.CollectionSettings(lexical_index=True, default_ratio_ppm=500_000)
    settings.limits.max_documents = 7
    client.collections.Create(v1.CreateCollectionRequest(name="law", settings=settings))
    for name in NAMES:
        client.ingest(document(name), name, ratio_ppm=[900_000, 1_000_000])
    client.upload("a", adapter())
    client.ingest("A xylograph is printed from wood.", "code", collection="law", title="Codex")
    return client, Cli(daemon, tmp_path)


@pytest.fixture
def empty(make_daemon, tmp_path, patient):
    daemon = make_daemon(model=patient, folder=tmp_path / "two").start()
    return daemon.client(), Cli(daemon, tmp_path)


def counts(reply):
    return {name: int(value) for name, value in reply.items() if name != "bytes"}


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_what_was_backed_up_comes_back_and_answers_the_same(filled, empty, tmp_path):
    client, cli = filled
    backup = tmp_path / "backup"
    assert counts(cli.json("backup", backup)) == {"documents": 4, "written": 4, "deleted": 0}
    assert files(backup) == {
        *(f"default/{name}.docmem" for name in NAMES), "law/code.docmem",
        *(f"{collection}/{name}.json" for collection in ("default", "law")
          for name in ("collection", "documents"))}
    other, restorer = empty
    assert counts(restorer.json("restore", backup)) == {"restored": 4, "present": 0}
    assert counts(restorer.json("restore", backup)) == {"restored": 0, "present": 4}
    assert other.ask("a").tokens == client.ask("a").tokens
    assert other.ask("b", mode=v1.MODE_BASE).tokens == client.ask("b", mode=v1.MODE_BASE).tokens
    get = v1.GetCollectionRequest(name="law")
    assert other.collections.Get(get).settings == client.collections.Get(get).settings
    route = other.queries.Route(v1.RouteRequest(collection="law", question="What is a xylograph?"))
    assert [ranked.document for ranked in route.documents] == ["code"]


def test_only_what_changed_is_written_again(filled, tmp_path):
    client, cli = filled
    backup = tmp_path / "backup"
    cli.json("backup", backup)
    assert cli.json("backup", backup)["written"] == "0"
    client.upload("b", scaled_adapter(2))
    client.documents.Delete(v1.DeleteDocumentRequest(document="c"))
    assert counts(cli.json("backup", backup)) == {"documents": 3, "written": 1, "deleted": 0}
    assert "default/c.docmem" in files(backup)
    (backup / "default/a.docmem").unlink()
    assert counts(cli.json("backup", backup, "--prune")) == {
        "documents": 3, "written": 1, "deleted": 1}
    assert "default/c.docmem" not in files(backup)
    # Another document under the same id, at the same revision.
    client.documents.Delete(v1.DeleteDocumentRequest(document="a"))
    client.ingest(document("another"), "a", ratio_ppm=[900_000, 1_000_000])
    assert cli.json("backup", backup, "--collection", "default")["written"] == "1"


def test_settings_that_somebody_made_are_kept(filled, empty, tmp_path):
    client, cli = filled
    change = v1.UpdateCollectionRequest(name="default", update_mask={"paths": ["default_ratio_ppm"]})
    change.settings.default_ratio_ppm = 250_000
    client.collections.Update(change)
    cli.json("backup", tmp_path / "backup")
    other, restorer = empty
    restorer.json("restore", tmp_path / "backup", "--collection", "default")
    get = v1.GetCollectionRequest(name="default")
    assert other.collections.Get(get).settings.default_ratio_ppm == 250_000
    assert [one.name for one in other.collections.List(v1.ListCollectionsRequest()).collections] \
        == ["default"]
    change.settings.default_ratio_ppm = 750_000
    other.collections.Update(change)
    restorer.json("restore", tmp_path / "backup", "--collection", "default")
    assert other.collections.Get(get).settings.default_ratio_ppm == 750_000


def test_a_damaged_file_is_named_and_the_others_come_back(filled, empty, tmp_path):
    _, cli = filled
    backup = tmp_path / "backup"
    cli.json("backup", backup)
    path = backup / "default/b.docmem"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    other, restorer = empty
    done = restorer.run("restore", backup, code=FAILED)
    assert b"3 documents restored" in done.stdout and b"b.docmem" in done.stderr
    listed = other.documents.List(v1.ListDocumentsRequest()).documents
    assert {one.id for one in listed} == {"a", "c"}
    assert "no backup" in restorer.error("restore", tmp_path / "one")["message"]


def test_a_backup_that_is_killed_goes_on_when_repeated(filled, empty, tmp_path):
    client, cli = filled
    for number in range(8):
        client.ingest(document(f"more-{number}", 60), f"more-{number}", ratio_ppm=[0])
    backup = tmp_path / "backup"
    process = cli.begin("backup", backup)
    eventually(lambda: any(backup.rglob("*.docmem")))
    process.kill()
    process.wait(10)
    cli.json("backup", backup)
    assert not list(backup.rglob("*.part"))
    _, restorer = empty
    assert restorer.json("restore", backup)["restored"] == "12"
