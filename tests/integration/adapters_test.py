"""Adapters: versions, which one answers, roll-back."""

import pytest
from client import ask_request, collect, refused
from folders import CONFIG, TENSORS, adapter, scaled_adapter, with_config
from stubs import v1
from texts import document

FROM_BRIDGE, ANSWER_ONLY = v1.ADAPTER_SCOPE_FROM_BRIDGE, v1.ADAPTER_SCOPE_ANSWER_ONLY
DECODE = v1.MODE_BASE_KV_ADAPTER_DECODE


def get(client, name, version=0):
    return client.adapters.Get(v1.GetAdapterRequest(document=name, version=version))


def versions(client, name):
    reply = client.adapters.List(v1.ListAdaptersRequest(document=name))
    return [(one.version, one.current) for one in reply.adapters]


def set_current(client, name, version, revision=0):
    return client.adapters.SetCurrent(v1.SetCurrentAdapterRequest(
        document=name, version=version, revision=revision))


def delete(client, name, version, **fields):
    return client.adapters.Delete(v1.DeleteAdapterRequest(
        document=name, version=version, **fields))


@pytest.fixture
def name(client, request):
    """A document of the test's own."""
    made = request.node.name.replace("test_", "")[:100].replace("[", "-").replace("]", "")
    client.ingest(document(made), made)
    return made


def test_an_upload_is_described_and_becomes_current(client, name):
    made = client.upload(name, adapter("patterns"))
    assert (made.document, made.version, made.current) == (name, 1, True)
    assert made.state == v1.Adapter.STATE_READY and made.scope == FROM_BRIDGE
    assert made.base_model == "tiny-llama" and len(made.hash) == 64
    assert made.text_digest == client.document(name).text_sha256
    assert made.prompt_format_digest == client.status().model.prompt_format_digest
    assert made.stored_bytes > len(adapter("patterns")[TENSORS]) and made.device_bytes > 0
    kinds = {}
    for module in made.modules:
        kinds.setdefault(module.name, set()).add((module.rank, module.scale))
    assert len(kinds) == 7 and len(set().union(*kinds.values())) > 1
    assert get(client, name) == made
    assert client.document(name).current_adapter_version == 1


@pytest.mark.parametrize("kind, scale", [("all-modules", 2.0), ("rslora", 1.0)])
def test_the_scale_is_alpha_by_rank_or_by_its_root(client, name, kind, scale):
    # Faults 9 to 11: what is told here is what the engine's tests compare with peft.
    modules = client.upload(name, adapter(kind)).modules
    assert {module.scale for module in modules} == {scale}


def test_the_same_content_is_the_same_version_and_another_the_next(client, name):
    first = client.upload(name, adapter())
    assert client.upload(name, adapter()) == first
    second = client.upload(name, adapter("query-value"))
    assert second.version == 2 and second.hash != first.hash
    assert versions(client, name) == [(2, True), (1, False)]
    third = client.upload(name, adapter("rslora"), keep_current=True)
    assert third.version == 3 and not third.current
    assert client.document(name).current_adapter_version == 2
    assert client.document(name).adapter_count == 3


def test_lists_come_in_pages_newest_first(client, name):
    for factor in range(1, 6):
        client.upload(name, scaled_adapter(factor))
    found, request = [], v1.ListAdaptersRequest(document=name, page_size=2)
    while True:
        reply = client.adapters.List(request)
        found += [one.version for one in reply.adapters]
        request.page_token = reply.next_page_token
        if not request.page_token:
            break
    assert found == [5, 4, 3, 2, 1]


def test_a_download_is_what_was_uploaded(client, name):
    files = {**adapter(), "README.md": b"# Notes\n"}
    client.upload(name, files)
    client.upload(name, adapter("rslora"))
    assert client.download(name, version=1) == files
    assert client.download(name) == adapter("rslora")


def test_roll_back_by_choosing_a_version_or_none(client, name):
    plain = client.ask(name)
    client.upload(name, adapter())
    one = client.ask(name)
    client.upload(name, adapter("rslora"))
    two = client.ask(name)
    assert [answer.started.adapter_version for answer in (plain, one, two)] == [0, 1, 2]
    assert len({tuple(answer.log_probabilities) for answer in (plain, one, two)}) == 3

    revision = client.document(name).revision
    change = set_current(client, name, 1, revision)
    assert (change.previous_version, change.current_version) == (2, 1)
    assert change.revision == revision + 1 == client.document(name).revision
    again = client.ask(name)
    assert (again.started.adapter_hash, again.tokens) == (one.started.adapter_hash, one.tokens)
    refused(lambda: set_current(client, name, 2, revision), "ABORTED", "REVISION_MISMATCH")
    refused(lambda: set_current(client, name, 9), "NOT_FOUND", "ADAPTER_NOT_FOUND")

    assert set_current(client, name, 0).current_version == 0
    none = client.ask(name)
    assert none.started.mode == v1.MODE_BASE and none.tokens == plain.tokens
    assert none.started.adapter_version == 0 and not none.started.adapter_hash
    # A version can be asked without being current.
    assert client.ask(name, adapter_version=2).tokens == two.tokens


def test_the_current_version_cant_be_deleted_others_can(client, name):
    client.upload(name, adapter())
    client.upload(name, adapter("rslora"))
    client.ask(name, adapter_version=1)
    refused(lambda: delete(client, name, 2), "FAILED_PRECONDITION", "ADAPTER_IS_CURRENT")
    hash_one = get(client, name, 1).hash
    assert delete(client, name, 1).deleted
    assert (name, hash_one) not in {(item.document, item.id) for item in client.residents()}
    refused(lambda: get(client, name, 1), "NOT_FOUND", "ADAPTER_NOT_FOUND")
    refused(lambda: delete(client, name, 1), "NOT_FOUND", "ADAPTER_NOT_FOUND")
    assert not delete(client, name, 1, allow_missing=True).deleted
    set_current(client, name, 0)
    assert delete(client, name, 2).deleted
    # Versions aren't used twice.
    assert client.upload(name, adapter()).version == 3


def test_without_an_adapter_what_needs_one_says_so(client, name):
    refused(lambda: client.ask(name, mode=DECODE), "FAILED_PRECONDITION", "NO_CURRENT_ADAPTER")
    refused(lambda: client.ask(name, adapter_version=1), "NOT_FOUND", "ADAPTER_NOT_FOUND")
    refused(lambda: get(client, name), "NOT_FOUND", "ADAPTER_NOT_FOUND")
    refused(lambda: client.download(name), "NOT_FOUND", "ADAPTER_NOT_FOUND")
    client.upload(name, adapter())
    refused(lambda: client.ask(name, mode=v1.MODE_BASE, adapter_version=1),
            "INVALID_ARGUMENT", "INVALID_FIELD", "memory.adapter_version")


def test_the_mode_decides_whether_the_adapter_acts(client, name):
    plain = client.ask(name)
    client.upload(name, adapter())
    base = client.ask(name, mode=v1.MODE_BASE)
    assert base.tokens == plain.tokens
    assert base.log_probabilities == pytest.approx(plain.log_probabilities, abs=1e-4)
    with_adapter = client.ask(name, mode=DECODE)
    assert with_adapter.started.cache_id == base.started.cache_id, "both modes share the cache"
    assert with_adapter.log_probabilities != pytest.approx(plain.log_probabilities, abs=1e-3)


def test_the_scope_is_the_uploads_unless_the_question_names_one(client, name):
    client.upload(name, adapter(), scope=ANSWER_ONLY)
    assert get(client, name).scope == ANSWER_ONLY

    def score(scope):
        return client.score(name, "The blue door.", adapter_scope=scope).log_probability

    assert score(0) == pytest.approx(score(ANSWER_ONLY), abs=1e-4)
    assert score(0) != pytest.approx(score(FROM_BRIDGE), abs=1e-4)


def test_an_adapter_of_an_earlier_text_is_stale(client, name):
    client.upload(name, adapter())
    revision = client.document(name).revision
    client.ingest(document("new " + name), name, replace=True, revision=revision)
    assert get(client, name, 1).state == v1.Adapter.STATE_STALE
    assert client.ask(name).started.mode == v1.MODE_BASE
    refused(lambda: set_current(client, name, 1), "FAILED_PRECONDITION", "ADAPTER_STALE")
    refused(lambda: client.ask(name, adapter_version=1), "FAILED_PRECONDITION", "ADAPTER_STALE")
    mismatched = client.ask(name, adapter_version=1, allow_adapter_mismatch=True)
    assert mismatched.started.adapter_version == 1


@pytest.mark.parametrize("field", ["prompt_format_digest", "text_digest"])
def test_an_adapter_made_for_something_else_needs_an_override(client, name, field):
    client.upload(name, adapter(), **{field: "ab" * 32})
    why = refused(lambda: client.ask(name), "FAILED_PRECONDITION", "ADAPTER_MISMATCH")
    assert why.metadata["field"] == field
    assert client.ask(name, allow_adapter_mismatch=True).started.adapter_version == 1
    assert client.ask(name, mode=v1.MODE_BASE).finished


def test_another_bases_name_needs_an_override(client, name):
    files = with_config(adapter(), base_model_name_or_path="somebody/other-llama")
    why = refused(lambda: client.upload(name, files), "FAILED_PRECONDITION", "ADAPTER_OTHER_BASE")
    assert "other-llama" in why.message
    assert client.upload(name, files, allow_other_base=True).base_model == "somebody/other-llama"
    for same in ("org/Tiny-Llama", "/models/tiny-llama/"):
        changed = with_config(adapter(), base_model_name_or_path=same, lora_dropout=0.1)
        assert client.upload(name, changed).base_model == same
    # Another base's shapes are refused whatever the caller allows.
    refused(lambda: client.upload(name, adapter("all-linear"), allow_other_base=True),
            "INVALID_ARGUMENT", "ADAPTER_INVALID")


def test_the_version_is_fixed_when_the_question_is_admitted(make_daemon, patient):
    client = make_daemon(model=patient).start().client()
    client.ingest(document("fixed"), "d")
    client.upload("d", adapter())
    alone = client.ask("d", max_tokens=400)
    stream = client.queries.Ask(ask_request("d", max_tokens=400))
    parts = [next(stream)]
    assert client.upload("d", adapter("rslora")).current
    assert client.ask("d", max_tokens=4).started.adapter_version == 2
    assert delete(client, "d", 1).deleted, "its file goes, the question keeps what it has"
    answer = collect(iter([*parts, *stream]))
    assert answer.started.adapter_version == 1
    assert answer.tokens == alone.tokens
    assert answer.log_probabilities == pytest.approx(alone.log_probabilities, abs=1e-4)


def test_every_committed_kind_of_adapter_is_accepted_and_acts(client, name):
    plain = client.score(name, "The blue door.").log_probability
    for kind in ("all-modules", "query-value", "patterns", "rslora", "one-layer", "regex-bf16"):
        made = client.upload(name, adapter(kind))
        assert client.score(name, "The blue door.").log_probability != pytest.approx(
            plain, abs=1e-4), kind
        assert made.modules, kind
    assert CONFIG in client.download(name)
