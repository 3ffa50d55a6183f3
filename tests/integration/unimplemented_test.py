"""What a later version brings says so: UNIMPLEMENTED, with its reason and name, and no effect."""

import pytest
from client import refused
from folders import adapter
from stubs import v1
from texts import document


def settings(**values):
    return v1.CollectionSettings(**values)


CASES = {
    "Ask without a document": (lambda c: c.ask(""), "document"),
    "Score without a document": (lambda c: c.score("", "a"), "document"),
    "Route": (lambda c: c.queries.Route(v1.RouteRequest(question="q")), "route"),
    "a collection with a lexical index": (
        lambda c: c.collections.Create(v1.CreateCollectionRequest(
            name="lexical", settings=settings(lexical_index=True))), "lexical_index"),
    "a lexical index later": (
        lambda c: c.collections.Update(v1.UpdateCollectionRequest(
            name="default", settings=settings(lexical_index=True),
            update_mask={"paths": ["lexical_index"]})), "lexical_index"),
}


@pytest.fixture(scope="module")
def client(daemon):
    client = daemon.client()
    client.ingest(document("d"), "d")
    client.upload("d", adapter())
    return client


@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_with_its_name(client, name):
    call, named = CASES[name]
    before = client.document("d")
    why = refused(lambda: call(client), "UNIMPLEMENTED", "NOT_IMPLEMENTED")
    assert named in why.message.lower(), why.message
    assert not why.retry
    status = client.status()
    assert (status.documents, status.collections) == (1, 1)
    assert client.document("d") == before
