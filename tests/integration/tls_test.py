"""TLS and mTLS of the daemon: who is trusted, and what a change of the files does."""

import os
import signal
import subprocess
import time

import grpc
import pytest
from certificates import Authority
from client import Client, refused
from daemon import BINARIES, SETTING_FREE, eventually
from texts import document

FAILURES = "docmem_tls_reload_failures_total"
EXPIRY = "docmem_tls_certificate_expiry_timestamp_seconds"
DAY_S = 86_400


@pytest.fixture(scope="module")
def authority(folder):
    return Authority(folder / "authority")


@pytest.fixture(scope="module")
def stranger(folder):
    """An authority that nobody here trusts."""
    return Authority(folder / "stranger")


@pytest.fixture(scope="module")
def files(folder, authority):
    """The daemon's certificate and key."""
    certificate, key = folder / "daemon.pem", folder / "daemon.key"
    authority.issue("daemon").copy_to(certificate, key)
    return certificate, key


def flags(files):
    return "--tls-cert", files[0], "--tls-key", files[1]


@pytest.fixture(scope="module")
def daemon(make_shared_daemon, files):
    return make_shared_daemon(*flags(files)).start()


def connect(daemon, ca, name="localhost", own=None):
    """A client that trusts `ca`, expects `name` and shows the pair `own`."""
    credentials = grpc.ssl_channel_credentials(ca.certificate.read_bytes(),
                                               *(own.read() if own else ()))
    return Client(daemon.address, credentials=credentials,
                  options=[("grpc.ssl_target_name_override", name)])


def answers(daemon, *arguments, **more):
    """Whether a new connection is taken on both sides."""
    client = connect(daemon, *arguments, **more)
    try:
        return bool(client.status())
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNAVAILABLE, error
        return False
    finally:
        client.close()


def served_expiry(daemon):
    return daemon.metrics()[EXPIRY]


def test_the_daemon_is_trusted_by_its_authority_and_name_alone(daemon, authority, stranger):
    assert answers(daemon, authority)
    assert not answers(daemon, stranger)
    assert not answers(daemon, authority, "elsewhere.test")
    refused(daemon.client().status, "UNAVAILABLE", "")


def test_everything_works_through_it(daemon, authority):
    client = connect(daemon, authority)
    client.ingest(document("d"), "d")
    assert client.ask("d", max_tokens=4).finished
    client.close()


def test_health_and_metrics_stay_plain(daemon):
    assert daemon.readiness() and FAILURES in daemon.metrics()


def test_expiry_is_a_gauge(daemon):
    assert abs(served_expiry(daemon) - time.time() - 20 * DAY_S) < DAY_S


def test_a_start_without_a_good_pair_is_refused(make_daemon, authority, stranger, files, tmp_path):
    expired = authority.issue("expired", days=-1)
    other = stranger.issue("other")
    for certificate, key, why in (
        (expired.certificate, expired.key, "has expired on"),
        (files[0], other.key, "don't belong together"),
        (files[1], files[0], "has no certificate"),
        (tmp_path / "absent", files[1], "can't be read"),
    ):
        code, log = make_daemon("--tls-cert", certificate, "--tls-key", key).refusal()
        assert code == 1 and why in log, log


def test_good_pairs_are_taken_while_it_serves_and_bad_ones_are_not(
        make_daemon, authority, stranger, tmp_path):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    authority.issue("first", days=10).copy_to(certificate, key)
    daemon = make_daemon("--tls-cert", certificate, "--tls-key", key).start()
    kept = connect(daemon, authority)
    assert kept.status()
    first_end = served_expiry(daemon)

    authority.issue("second", days=25).copy_to(certificate, key)
    eventually(lambda: served_expiry(daemon) > first_end + 10 * DAY_S, timeout=15)
    assert answers(daemon, authority)
    assert kept.status(), "an open connection stays"
    kept.close()
    second_end = served_expiry(daemon)

    mismatched = authority.issue("mismatched")
    expired = authority.issue("late", days=-1)
    for bad in (
        lambda: certificate.write_bytes(mismatched.certificate.read_bytes()),
        lambda: expired.copy_to(certificate, key),
        lambda: certificate.write_bytes(b"nonsense"),
        lambda: os.remove(key),
    ):
        before = daemon.metrics()[FAILURES]
        bad()
        daemon.process.send_signal(signal.SIGHUP)
        eventually(lambda before=before: daemon.metrics()[FAILURES] > before)
        assert answers(daemon, authority) and served_expiry(daemon) == second_end
    assert "BEGIN" not in daemon.log.read_text()

    # Another authority's pair is good for the daemon; whom clients trust is their affair.
    stranger.issue("third").copy_to(certificate, key)
    eventually(lambda: answers(daemon, stranger), timeout=15)
    assert not answers(daemon, authority)


@pytest.fixture(scope="module")
def mutual(make_shared_daemon, files, folder, authority):
    """A daemon that asks for certificates; beside tokens it knows one by its name."""
    token = subprocess.run([BINARIES / "docmem", "token", "new", "bob"], env=SETTING_FREE,
                           text=True, capture_output=True, check=True, timeout=30).stdout.split()
    (folder / "tokens").write_text(
        f"web cert:web.test write *\nold cert:reader query *\n{' '.join(token[3:])}\n")
    daemon = make_shared_daemon(*flags(files), "--tls-client-ca", authority.certificate,
                                "--token-file", folder / "tokens").start()
    return daemon, token[1]


def test_without_a_certificate_of_its_authority_nobody_comes_in(mutual, authority, stranger):
    daemon, _ = mutual
    assert not answers(daemon, authority)
    assert not answers(daemon, authority, own=stranger.issue("web", host="web.test"))
    assert not answers(daemon, authority, own=authority.issue("gone", host="web.test", days=-1))
    assert answers(daemon, authority, own=authority.issue("web", host="web.test"))


def test_a_certificate_stands_for_the_principal_of_its_line(mutual, authority):
    daemon, _ = mutual
    web = connect(daemon, authority, own=authority.issue("web", host="web.test"))
    web.ingest(document("d"), "d")
    reader = connect(daemon, authority, own=authority.issue("reader", host="unknown.test"))
    assert reader.document("d").id == "d"
    refused(lambda: reader.ingest("text", "new"), "PERMISSION_DENIED", "NOT_PERMITTED")
    nobody = connect(daemon, authority, own=authority.issue("nobody", host="unknown.test"))
    refused(nobody.status, "UNAUTHENTICATED", "CREDENTIALS_INVALID")
    for client in (web, reader, nobody):
        client.close()


def docmem(daemon, *arguments, **environment):
    address = f"localhost:{daemon.address.rpartition(':')[2]}"
    return subprocess.run(
        [BINARIES / "docmem", "--address", address, *map(str, arguments)], text=True,
        env={**SETTING_FREE, **environment}, capture_output=True, timeout=60, check=False)


def test_docmem_speaks_tls_with_a_certificate_or_a_token(mutual, daemon, authority, stranger):
    shown = docmem(daemon, "--tls-ca", authority.certificate, "status")
    assert shown.returncode == 0, shown.stderr
    assert docmem(daemon, "status", DOCMEM_TLS_CA=str(authority.certificate)).returncode == 0
    assert docmem(daemon, "--timeout", 5, "--tls-ca", stranger.certificate,
                  "status").returncode == 1
    assert docmem(daemon, "--timeout", 5, "--tls-ca", authority.certificate, "--tls-server-name",
                  "elsewhere.test", "status").returncode == 1

    asking, token = mutual
    own = authority.issue("web", host="web.test")
    mine = ["--tls-ca", authority.certificate, "--tls-cert", own.certificate, "--tls-key", own.key]
    assert docmem(asking, *mine, "list").returncode == 0
    refused_text = docmem(asking, *mine, "text", "d", DOCMEM_TOKEN=token)
    assert refused_text.returncode == 1 and "NOT_PERMITTED" in refused_text.stderr


def test_with_an_authority_alone_its_certificates_have_all_rights(make_daemon, files, authority):
    daemon = make_daemon(*flags(files), "--tls-client-ca", authority.certificate).start()
    client = connect(daemon, authority, own=authority.issue("operator"))
    client.ingest(document("d"), "d")
    assert client.text("d")
    client.close()
    assert not answers(daemon, authority)
