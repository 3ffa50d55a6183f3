"""TLS as grpc gives it, against a server with a certificate of its own."""

import subprocess

import docmem
import grpc
import pytest
from docmem import v1
from fake_daemon import FakeDaemon

ONCE = docmem.RetryPolicy(enabled=False)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A key and a certificate for docmem.test, which is its own authority."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-keyout", "key.pem", "-out", "cert.pem",
         "-subj", "/CN=docmem.test", "-addext", "subjectAltName=DNS:docmem.test"],
        cwd=folder, check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


def serve(files, *, mutual=False):
    certificate, key = (file.read_bytes() for file in files)
    credentials = grpc.ssl_server_credentials(
        [(key, certificate)], certificate if mutual else None, require_client_auth=mutual)
    return FakeDaemon(credentials=credentials)


def status(form, server, tls):
    return form(server.address, tls=tls, retry=ONCE).do(lambda client: client.admin.status())


def test_a_trusted_certificate_with_its_name_is_taken(form, files):
    with serve(files) as server:
        tls = docmem.Tls(ca=files[0], server_name="docmem.test")
        assert status(form, server, tls) == v1.GetStatusResponse()


@pytest.mark.parametrize("case", ["no authority", "another name", "plain text"])
def test_all_else_is_refused(form, files, case):
    tls = {
        "no authority": docmem.Tls(server_name="docmem.test"),
        "another name": docmem.Tls(ca=files[0], server_name="elsewhere.test"),
        "plain text": None,
    }[case]
    with serve(files) as server, pytest.raises(docmem.UnavailableError):
        status(form, server, tls)
    assert server.tries == []


def test_a_server_can_ask_for_a_certificate(form, files):
    with serve(files, mutual=True) as server:
        named = {"ca": files[0], "server_name": "docmem.test"}
        with pytest.raises(docmem.UnavailableError):
            status(form, server, docmem.Tls(**named))
        tls = docmem.Tls(**named, certificate=files[0], key=files[1])
        assert status(form, server, tls) == v1.GetStatusResponse()


def test_a_certificate_without_its_key_is_refused(form, files):
    with pytest.raises(ValueError, match="certificate and key go together"):
        status(form, FakeDaemon(), docmem.Tls(certificate=files[0]))
