"""Questions that name no document: ranked documents, the one that answers, and saying that none fits."""

import contextlib
import sqlite3

import pytest
from client import refused
from stubs import v1

FOX = "The fox crept into the farmer's yard at night and stole a hen from the henhouse."
BREAD = "Knead the dough, let it rise beside the oven, then bake the loaf until the crust is brown."
HEN = "Who stole the hen of the farmer?"
TREATY = "Which treaty ended the war between both kingdoms?"


def settings(client, collection, **values):
    return client.collections.Update(v1.UpdateCollectionRequest(
        name=collection, settings=v1.CollectionSettings(**values),
        update_mask={"paths": list(values)}))


def route(client, question, collection="", **fields):
    return client.queries.Route(
        v1.RouteRequest(question=question, collection=collection, **fields))


def ids(response):
    return [ranked.document for ranked in response.documents]


@pytest.fixture(scope="module")
def tales(client):
    """A collection that keeps no texts but their words."""
    client.collections.Create(v1.CreateCollectionRequest(
        name="tales", settings=v1.CollectionSettings(lexical_index=True, retain_text=False)))
    client.ingest(FOX, "fox", collection="tales", title="The thief")
    client.ingest(BREAD, "bread", collection="tales")
    return "tales"


def test_documents_are_ranked_with_scores(client, tales):
    response = route(client, HEN, tales)
    best = response.documents[0]
    assert (best.document, best.title) == ("fox", "The thief")
    assert 0 < best.score <= 1 and not response.abstained
    assert ids(route(client, "dough fox", tales, k=1)) == ids(route(client, "dough fox", tales))[:1]


def test_nothing_that_fits_is_said(client, tales):
    assert route(client, TREATY, tales).abstained
    why = refused(lambda: client.ask("", TREATY, collection=tales),
                  "NOT_FOUND", "NO_DOCUMENT_FITS")
    assert "treaty" not in why.message.lower(), "a question leaked into an error"
    refused(lambda: client.score("", "a", TREATY, collection=tales),
            "NOT_FOUND", "NO_DOCUMENT_FITS")


def test_the_document_that_answers_is_named_and_answers_as_if_it_had_been_named(client, tales):
    routed = client.ask("", HEN, collection=tales)
    assert (routed.started.collection, routed.started.document) == (tales, "fox")
    assert routed.tokens == client.ask("fox", HEN, collection=tales).tokens
    scored = client.score("", "a fox", HEN, collection=tales)
    assert scored.started.document == "fox"


def test_a_cache_that_is_missing_is_built_for_the_document_that_fits(client):
    client.collections.Create(v1.CreateCollectionRequest(
        name="kept", settings=v1.CollectionSettings(lexical_index=True)))
    client.ingest(FOX, "fox", collection="kept")
    answer = client.ask("", HEN, collection="kept", ratio=500_000, build_if_missing=True)
    assert answer.started.document == "fox" and answer.started.ratio_ppm == 500_000


def test_a_collection_without_an_index_says_how_to_get_one(client):
    client.ingest(FOX, "plain")
    for call in (lambda: route(client, HEN), lambda: client.ask("", HEN)):
        why = refused(call, "FAILED_PRECONDITION", "LEXICAL_INDEX_OFF")
        assert "lexical_index" in why.message
    assert settings(client, "default", lexical_index=True).settings.lexical_index
    assert ids(route(client, HEN)) == ["plain"]
    settings(client, "default", lexical_index=False)
    refused(lambda: route(client, HEN), "FAILED_PRECONDITION", "LEXICAL_INDEX_OFF")


def test_bad_requests_name_their_field(client, tales):
    refused(lambda: route(client, "", tales), "INVALID_ARGUMENT", "INVALID_FIELD", "question")
    refused(lambda: route(client, "q" * 65537, tales),
            "INVALID_ARGUMENT", "LIMIT_EXCEEDED", "question")
    refused(lambda: route(client, "q", tales, k=101), "INVALID_ARGUMENT", "INVALID_FIELD", "k")
    refused(lambda: route(client, "q", "../x"), "INVALID_ARGUMENT", "INVALID_FIELD", "collection")
    refused(lambda: route(client, "q", "absent"), "NOT_FOUND", "COLLECTION_NOT_FOUND")


def test_a_deleted_document_is_not_found_and_leaves_no_word_behind(make_daemon):
    daemon = make_daemon().start()
    client = daemon.client()
    settings(client, "default", lexical_index=True)
    client.ingest(FOX + " Xylocopa violacea.", "fox", retain_text=False)
    assert ids(route(client, "xylocopa")) == ["fox"]
    with contextlib.closing(sqlite3.connect(daemon.data / "registry.db")) as registry:
        terms = [term for term, in registry.execute("SELECT term FROM word_postings")]
    stored = [term.to_bytes(8, "big", signed=True) for term in terms if abs(term) >= 1 << 48]
    assert len(stored) > 5
    client.delete("fox")
    assert not route(client, "xylocopa").documents
    daemon.stop()
    for path in daemon.data.rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        assert b"xylocopa" not in data.lower(), path
        assert not any(term in data for term in stored), path


def test_a_text_that_is_not_retained_is_nowhere_in_the_data_folder(make_daemon):
    daemon = make_daemon().start()
    client = daemon.client()
    client.collections.Create(v1.CreateCollectionRequest(
        name="words", settings=v1.CollectionSettings(lexical_index=True, retain_text=False)))
    client.ingest("The bee Xylocopa violacea.", "bee", collection="words")
    assert ids(route(client, "xylocopa", "words")) == ["bee"]
    daemon.stop()
    for path in daemon.data.rglob("*"):
        assert not path.is_file() or b"ylocopa" not in path.read_bytes(), path


def test_what_a_collection_holds_does_not_change_another_ones_scores(client, tales):
    before = route(client, HEN, tales)
    client.collections.Create(v1.CreateCollectionRequest(
        name="farms", settings=v1.CollectionSettings(lexical_index=True)))
    for number in range(5):
        client.ingest(f"{FOX} Farm {number}.", f"farm{number}", collection="farms")
    assert route(client, HEN, tales) == before
    assert set(ids(route(client, HEN, "farms"))) == {f"farm{number}" for number in range(5)}


def test_answers_survive_a_restart_and_a_change_of_title(make_daemon):
    daemon = make_daemon().start()
    client = daemon.client()
    settings(client, "default", lexical_index=True)
    client.ingest(FOX, "fox")
    client.documents.Update(v1.UpdateDocumentRequest(
        document="fox", values=v1.Document(title="Reynard"), update_mask={"paths": ["title"]}))
    assert ids(route(client, "reynard")) == ["fox"]
    before = route(client, HEN)
    daemon.stop()
    daemon.start()
    assert route(daemon.client(), HEN) == before
