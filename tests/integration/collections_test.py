"""Collections and their settings."""

import pytest
from client import refused
from folders import adapter
from stubs import v1
from texts import document


def create(client, name, **settings):
    return client.collections.Create(
        v1.CreateCollectionRequest(name=name, settings=v1.CollectionSettings(**settings)))


def get(client, name):
    return client.collections.Get(v1.GetCollectionRequest(name=name))


def update(client, name, paths, revision=0, **settings):
    return client.collections.Update(
        v1.UpdateCollectionRequest(
            name=name, settings=v1.CollectionSettings(**settings),
            update_mask={"paths": paths}, revision=revision,
        )
    )


def delete(client, name, **fields):
    return client.collections.Delete(v1.DeleteCollectionRequest(name=name, **fields))


def test_default_exists_and_stays(client):
    settings = get(client, "default").settings
    assert settings.retain_text and settings.default_ratio_ppm == 900_000
    assert not settings.lexical_index and settings.default_mode == v1.MODE_UNSPECIFIED
    for force in (False, True):
        refused(lambda force=force: delete(client, "default", force=force),
                "FAILED_PRECONDITION", "COLLECTION_PROTECTED")


def test_a_collection_is_made_read_changed_listed_and_deleted(client):
    made = create(client, "made", retain_text=False, default_ratio_ppm=250_000,
                  limits={"max_documents": 5})
    assert made.revision == 1 and made.create_time.seconds > 0
    assert get(client, "made") == made
    refused(lambda: create(client, "made"), "ALREADY_EXISTS", "COLLECTION_EXISTS")

    changed = update(client, "made", ["default_mode", "limits.max_bytes"], made.revision,
                     default_mode=v1.MODE_BASE, limits={"max_bytes": 1 << 30, "max_documents": 1})
    assert changed.revision == made.revision + 1
    assert changed.settings.default_mode == v1.MODE_BASE
    assert changed.settings.limits.max_bytes == 1 << 30
    assert changed.settings.limits.max_documents == 5, "not in the mask"
    refused(lambda: update(client, "made", ["default_mode"], made.revision),
            "ABORTED", "REVISION_MISMATCH")
    reset = update(client, "made", ["default_ratio_ppm", "retain_text"])
    assert reset.settings.default_ratio_ppm == 900_000 and reset.settings.retain_text

    names = []
    request = v1.ListCollectionsRequest(page_size=1)
    while True:
        reply = client.collections.List(request)
        names += [one.name for one in reply.collections]
        request.page_token = reply.next_page_token
        if not request.page_token:
            break
    assert names == sorted(names) and {"default", "made"} <= set(names)

    assert delete(client, "made").deleted_documents == 0
    refused(lambda: get(client, "made"), "NOT_FOUND", "COLLECTION_NOT_FOUND")
    refused(lambda: delete(client, "made"), "NOT_FOUND", "COLLECTION_NOT_FOUND")
    assert delete(client, "made", allow_missing=True).deleted_documents == 0


def test_only_force_deletes_a_collection_with_its_documents(client):
    create(client, "full")
    for name in ("a", "b"):
        client.ingest(document(name), name, collection="full", pin=True)
    client.ask("a", collection="full")
    assert get(client, "full").document_count == 2 and get(client, "full").stored_bytes > 0
    refused(lambda: delete(client, "full"), "FAILED_PRECONDITION", "COLLECTION_NOT_EMPTY")
    before = client.status()
    assert delete(client, "full", force=True).deleted_documents == 2
    after = client.status()
    assert before.documents - after.documents == 2 and before.caches - after.caches == 2
    assert "full" not in {item.collection for item in client.residents()}


@pytest.mark.parametrize("call", [
    lambda client: client.ingest("text", "d", collection="absent"),
    lambda client: client.ask("d", collection="absent"),
    lambda client: client.document("d", collection="absent"),
    lambda client: client.documents.List(v1.ListDocumentsRequest(collection="absent")),
    lambda client: client.upload("d", adapter(), collection="absent"),
    lambda client: client.build("d", ratio_ppm=[1], collection="absent"),
    lambda client: client.delete("d", collection="absent"),
    lambda client: client.documents.BatchGet(
        v1.BatchGetDocumentsRequest(documents=["d"], collection="absent")),
    lambda client: client.documents.Prefetch(
        v1.PrefetchRequest(documents=["d"], collection="absent")),
])
def test_an_unknown_collection_is_not_found(client, call):
    why = refused(lambda: call(client), "NOT_FOUND", "COLLECTION_NOT_FOUND")
    assert "absent" in why.message


def test_the_same_id_in_two_collections_is_two_documents(client):
    create(client, "other")
    client.ingest(document("here"), "twin")
    client.ingest(document("there"), "twin", collection="other")
    assert client.text("twin") != client.text("twin", collection="other")
    assert client.ask("twin", ratio=900_000).log_probabilities != client.ask(
        "twin", ratio=900_000, collection="other").log_probabilities
    client.delete("twin")
    assert client.text("twin", collection="other") == document("there")


def test_settings_act_on_what_comes_later(client):
    create(client, "settings", default_ratio_ppm=300_000, retain_text=False)
    one = client.ingest(document("one"), "one", collection="settings").document
    assert one.caches[0].ratio_ppm == 300_000 and not one.text_retained
    update(client, "settings", ["default_ratio_ppm", "retain_text"],
           default_ratio_ppm=1_000_000, retain_text=True)
    assert client.document("one", collection="settings") == one
    two = client.ingest(document("two"), "two", collection="settings").document
    assert two.caches[0].ratio_ppm == 1_000_000 and two.text_retained


def test_the_default_mode_is_the_collections_then_follows_the_adapter(client):
    create(client, "modes")
    client.ingest(document("modes"), "d", collection="modes")

    def mode():
        return client.ask("d", collection="modes").started.mode

    assert mode() == v1.MODE_BASE
    client.upload("d", adapter(), collection="modes")
    assert mode() == v1.MODE_BASE_KV_ADAPTER_DECODE
    update(client, "modes", ["default_mode"], default_mode=v1.MODE_BASE)
    assert mode() == v1.MODE_BASE


def test_a_quota_of_documents_and_of_bytes(client):
    create(client, "quota", limits={"max_documents": 1})
    client.ingest(document("first"), "first", collection="quota")
    why = refused(lambda: client.ingest(document("second"), "second", collection="quota"),
                  "RESOURCE_EXHAUSTED", "QUOTA_MAX_DOCUMENTS")
    assert (why.metadata["limit"], why.metadata["used"]) == ("1", "1")
    update(client, "quota", ["limits"], limits={"max_bytes": 1000})
    why = refused(lambda: client.ingest(document("second"), "second", collection="quota"),
                  "RESOURCE_EXHAUSTED", "QUOTA_MAX_BYTES")
    assert why.metadata["limit"] == "1000"
    assert [one.id for one in client.documents.List(
        v1.ListDocumentsRequest(collection="quota")).documents if one.state ==
            v1.Document.STATE_READY] == ["first"]
    client.delete("first", collection="quota")
