"""Errors keep all that docmemd says, and are told apart by class."""

import pickle

import docmem
import grpc
import pytest
from docmem import v1
from fake_daemon import Refusal

CODES = [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]


def failure(fake, form, refusal):
    fake.script = [[refusal]]
    with pytest.raises(docmem.DocMemError) as why:
        form(fake.address, retry=docmem.RetryPolicy(enabled=False)).do(
            lambda client: client.documents.get(document="d1"))
    return why.value


def test_everything_that_docmemd_says_is_there(fake, form):
    error = failure(fake, form, Refusal(
        grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD", "k is 0", field="memory.ratio_ppm",
        resource=("document", "d1"), delay=1.5, metadata={"limit": "7"}))
    assert isinstance(error, docmem.InvalidArgumentError)
    assert error.code == grpc.StatusCode.INVALID_ARGUMENT
    assert error.message == "k is 0"
    assert error.detail == docmem.Detail(
        "INVALID_FIELD", {"limit": "7"}, "memory.ratio_ppm", "document", "d1", 1.5)
    assert (error.reason, error.field, error.retry_delay) == (
        "INVALID_FIELD", "memory.ratio_ppm", 1.5)
    assert str(error) == "k is 0 [INVALID_FIELD]"


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_every_code_keeps_its_class_when_docmemd_said_it(fake, form, code):
    error = failure(fake, form, Refusal(code, "INTERNAL_FAULT"))
    names = {kind.code: kind for kind in docmem.DocMemError.__subclasses__()}
    assert type(error) is names.get(code, docmem.DocMemError)


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_what_another_server_says_may_be_a_lost_connection(fake, form, code):
    lost = ("UNAVAILABLE", "CANCELLED", "INTERNAL", "UNKNOWN")
    error = failure(fake, form, Refusal(code, "STARTING", domain="elsewhere"))
    assert (isinstance(error, docmem.UnavailableError) and error.lost) == (code.name in lost)
    assert error.reason == ""


def test_errors_survive_a_process_pool():
    error = docmem.NotFoundError("no d1", docmem.Detail("DOCUMENT_NOT_FOUND", retry_delay=2.0))
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is docmem.NotFoundError
    assert (copy.message, copy.detail) == (error.message, error.detail)


def test_nobody_there_is_a_lost_connection(form):
    with pytest.raises(docmem.UnavailableError, match="no connection to 127.0.0.1:1") as why:
        form("127.0.0.1:1", retry=docmem.RetryPolicy(initial_backoff=0.01)).do(
            lambda client: client.admin.status())
    assert why.value.lost


@pytest.mark.parametrize("address", ["", "host", ":7", "host:0", "host:65536", "a:b:7", "[::1]"])
def test_a_malformed_address_is_named(address, monkeypatch):
    monkeypatch.setenv("DOCMEM_ADDRESS", address)
    if address:
        with pytest.raises(ValueError, match="isn't HOST:PORT"):
            docmem.Client(address)
    else:
        docmem.Client().close()  # the default


def test_the_environment_names_daemon_and_token(fake, monkeypatch):
    monkeypatch.setenv("DOCMEM_ADDRESS", fake.address)
    monkeypatch.setenv("DOCMEM_TOKEN", "secret")
    with docmem.Client() as client:
        client.documents.get(document="d1")
    assert fake.tries[0].metadata["authorization"] == "Bearer secret"


def test_a_token_comes_from_its_file_before_the_environment(fake, monkeypatch, tmp_path):
    (tmp_path / "token").write_text("from-file\n")
    monkeypatch.setenv("DOCMEM_TOKEN", "from-environment")
    with docmem.Client(fake.address, token_file=tmp_path / "token") as client:
        client.admin.status()
    assert fake.tries[-1].metadata["authorization"] == "Bearer from-file"


@pytest.mark.parametrize("address", ["10.0.0.1:1", "daemon.test:1", "127.evil.test:1", "[::2]:1"])
def test_a_token_goes_in_plain_text_to_this_machine_only(address):
    with pytest.raises(ValueError, match="plain text") as caught:
        docmem.Client(address, token="secret")
    assert "secret" not in str(caught.value)
    docmem.Client(address).close()
    docmem.Client(address, token="secret", insecure=True).close()
    docmem.Client(address, token="secret", tls=docmem.Tls()).close()
    for here in ("localhost:1", "127.3.2.1:1", "[::1]:1"):
        docmem.Client(here, token="secret").close()


def test_a_token_with_a_line_end_is_refused():
    with pytest.raises(ValueError, match="token"):
        docmem.Client("localhost:7600", token="secret\n")


def test_a_ratio_outside_of_its_range_is_refused(fake, form):
    with pytest.raises(ValueError, match="ratio 90 isn't in 0 to 1"):
        form(fake.address).do(lambda client: client.ask("d1", "Why?", ratio=90))


def test_a_download_is_checked_against_its_digest(fake, form):
    fake.script = [[
        v1.GetTextResponse(chunk=b"ab"),
        v1.GetTextResponse(end=v1.StreamEnd(total_bytes=2, sha256="0" * 64)),
    ]]
    with pytest.raises(docmem.DataLossError, match="received 2 bytes"):
        form(fake.address).do(lambda client: client.documents.text("d1"))


@pytest.mark.parametrize("name", ["../evil", "/evil", "..", "", "a/b"])
def test_a_downloaded_files_name_stays_in_its_folder(fake, form, tmp_path, name):
    file = v1.AdapterFile(name=name, size_bytes=0)
    fake.script = [[v1.DownloadAdapterResponse(file=file)]]
    with pytest.raises(ValueError, match="isn't a plain name"):
        form(fake.address).do(lambda client: client.adapters.download("d1", tmp_path / "adapter"))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_read_is_named(fake, form, tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        form(fake.address).do(lambda client: client.documents.import_(tmp_path / "absent"))


def test_a_folder_that_is_no_adapter_is_named(fake, form, tmp_path):
    with pytest.raises(FileNotFoundError, match="has no adapter_config.json"):
        form(fake.address).do(lambda client: client.adapters.upload("d1", tmp_path))
