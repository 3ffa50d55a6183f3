"""What of HAProxy's configuration is there to be used instead: TLS, and pods of Kubernetes."""

import hashlib
import re

import docmem
import pytest
from certificates import Authority
from daemon import eventually
from names import Names
from replicas import IDS, address_of
from routers import HAPROXY, Haproxy

pytestmark = pytest.mark.skipif(
    HAPROXY is None, reason="needs HAProxy: apt-get install --no-install-recommends haproxy")

ONCE = docmem.RetryPolicy(enabled=False)


def instead(text, *begins):
    """Takes the lines that begin so out of their comment."""
    for begin in begins:
        assert f"#{begin}" in text, begin
        text = text.replace(f"#{begin}", begin)
    return text


def without(text, pattern):
    """Leaves out the lines that match."""
    assert re.search(pattern, text, re.MULTILINE)
    return re.sub(rf"^.*{pattern}.*\n", "", text, flags=re.MULTILINE)


def test_with_tls_a_token_reaches_the_replica(fleet, tmp_path):
    authority = Authority(tmp_path / "authority")
    pair = authority.issue("docmem", host="docmem")
    for_haproxy = tmp_path / "docmem.pem"
    for_haproxy.write_bytes(pair.certificate.read_bytes() + pair.key.read_bytes())
    token = "0123456789abcdef0123456789abcdef"
    tokens = tmp_path / "tokens"
    digest = hashlib.sha256(token.encode()).hexdigest()
    tokens.write_text(f"app sha256:{digest} query default\n")
    tokens.chmod(0o600)

    def change(text):
        text = without(text, "bind 127.0.0.1:7600")
        text = instead(text, "bind :7600 ssl", "default-server ssl")
        text = text.replace("/etc/haproxy/docmem.pem", str(for_haproxy))
        return text.replace("/etc/haproxy/replicas.pem", str(authority.certificate))

    with fleet.another(5, "--tls-cert", pair.certificate, "--tls-key", pair.key, "--token-file",
                       tokens) as replica:
        replica.wait_until_ready()
        tls = docmem.Tls(ca=authority.certificate, server_name="docmem")
        with Haproxy(tmp_path / "router", fleet, change, numbers=[5]) as haproxy:
            assert haproxy.states() == {5: "UP"}
            with docmem.Client(haproxy.address, tls=tls, token=token) as client:
                assert list(client.documents.list()) == []
                with pytest.raises(docmem.PermissionDeniedError):
                    client.documents.delete(document="d")
            with (docmem.Client(haproxy.address, tls=tls) as stranger,
                  pytest.raises(docmem.UnauthenticatedError)):
                list(stranger.documents.list())
        # One whose certificate has another name isn't talked to.
        with (Haproxy(tmp_path / "wary", fleet, lambda text: change(text).replace(
                "str(docmem)", "str(elsewhere)"), numbers=[5]) as wary,
              docmem.Client(wary.address, tls=tls, token=token, retry=ONCE) as client,
              pytest.raises(docmem.UnavailableError)):
            client.admin.status()


NODES = "docmem-nodes.default.svc.cluster.local"


def in_kubernetes(names):
    """The configuration with names that `names` resolves."""
    return lambda text: text.replace("parse-resolv-conf", f"nameserver test {names.address}")


def by_the_service_alone(text):
    return instead(without(text, r"^ +server docmem-\d"), "server-template")


def test_pods_have_the_same_places_by_their_names(fleet, tmp_path):
    addresses = {f"docmem-{number - 1}.{NODES}": [address_of(number)] for number in (1, 2)}
    with (Names(addresses) as names,
          Haproxy(tmp_path / "fixed", fleet, numbers=[1, 2]) as fixed,
          Haproxy(tmp_path / "pods", fleet, in_kubernetes(names), nodes=NODES) as pods):
        eventually(lambda: list(pods.states().values()).count("UP") == 2)
        assert pods.check() == ""
        assert pods.ready()
        assert fleet.places(pods.address, IDS) == fleet.places(fixed.address, IDS)


def test_a_router_that_finds_nobody_is_not_ready(fleet, tmp_path):
    with (Names({}) as names,
          Haproxy(tmp_path / "pods", fleet, in_kubernetes(names), nodes=NODES) as pods):
        assert not pods.ready()


def test_a_headless_service_is_enough(fleet, tmp_path):
    addresses = {NODES: [address_of(number) for number in (1, 2, 3)]}
    with (Names(addresses) as names,
          Haproxy(tmp_path / "pods", fleet,
                  lambda text: by_the_service_alone(in_kubernetes(names)(text)),
                  nodes=NODES) as pods):
        eventually(lambda: [*pods.states().values()].count("UP") == 3)
        assert set(fleet.places(pods.address, IDS).values()) == {1, 2, 3}
