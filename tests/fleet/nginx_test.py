"""nginx as it is shipped, in front of real daemons."""

import docmem
import pytest
from daemon import eventually
from replicas import DOCUMENTS, Load, turns
from routers import NGINX, Nginx

pytestmark = pytest.mark.skipif(
    NGINX is None, reason="needs nginx: apt-get install --no-install-recommends nginx-light")


@pytest.fixture(scope="module")
def nginx(fleet, tmp_path_factory):
    with Nginx(tmp_path_factory.mktemp("router") / "nginx", fleet) as nginx:
        yield nginx


def test_the_shipped_configuration_is_taken_without_a_warning(nginx):
    assert nginx.check() == ""


def test_calls_without_a_document_take_turns(fleet, nginx):
    assert min(turns(fleet, nginx.address).values()) >= 10


def test_documents_have_their_replicas_and_a_killed_one_costs_its_open_calls(fleet, nginx):
    places = fleet.places(nginx.address, DOCUMENTS)
    assert set(places.values()) == {1, 2, 3}
    before = fleet.asked()
    with Load(nginx.address, fleet.answers) as load:
        eventually(lambda: load.right >= 60)
    asked = fleet.asked()
    for number in (1, 2, 3):
        expected = sum(count for name, count in load.documents_asked.items()
                       if places[name] == number)
        assert asked[number] - before[number] == expected
    assert not load.unavailable

    with Load(nginx.address, fleet.answers) as load:
        eventually(lambda: load.right >= 20)
        fleet[2].kill()
        seen = load.right
        eventually(lambda: load.right >= seen + 60)
    print("nginx, killed:", load.right, "right", dict(load.unavailable), dict(load.retries))
    assert load.unavailable.total() <= 4  # callers, each with at most one answer half way
    fleet[2].start()  # nginx leaves it out for some seconds more


def test_what_asks_one_replica_doesnt_go_through(nginx):
    with docmem.Client(nginx.address) as client, pytest.raises(docmem.UnimplementedError):
        client.admin.drain()
