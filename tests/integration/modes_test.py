"""The four modes: each answers from its own memories at every ratio, and only from those."""

import pytest
from client import ask_request, collect, refused
from folders import adapter
from stubs import v1
from texts import document

BASE, DECODE = v1.MODE_BASE, v1.MODE_BASE_KV_ADAPTER_DECODE
PREFILL, RESCORED = v1.MODE_ADAPTER_PREFILL, v1.MODE_BASE_SCORE_ADAPTER_PREFILL
MODES = [BASE, DECODE, PREFILL, RESCORED]
RATIOS = [0, 500_000, 1_000_000]
ANSWER = "The blue door."


def heard(answer):
    return answer.started.cache_id, answer.tokens, answer.log_probabilities


def two_adapters(client, name):
    """A document with adapters 1 and 2 (current); returns their hashes."""
    client.ingest(document(name), name, ratio_ppm=[500_000])
    return [client.upload(name, adapter(kind)).hash for kind in ("all-modules", "rslora")]


def delete_adapter(client, name, version):
    return client.adapters.Delete(v1.DeleteAdapterRequest(document=name, version=version))


def set_current(client, name, version):
    return client.adapters.SetCurrent(v1.SetCurrentAdapterRequest(document=name, version=version))


def test_each_mode_answers_alike_however_its_cache_came_and_after_a_restart(make_daemon, patient):
    daemon = make_daemon(model=patient).start()
    client = daemon.client()
    for name in ("built", "asked"):
        client.ingest(document("modes"), name)
        client.upload(name, adapter())
    for mode in MODES:
        caches = client.build("built", mode=mode, ratio_ppm=RATIOS).caches
        assert [cache.ratio_ppm for cache in caches] == RATIOS

    choices = [{"mode": mode, "ratio": ratio} for mode in MODES for ratio in RATIOS]
    first = [client.ask("built", **choice) for choice in choices]
    for choice, answer in zip(choices, first):
        started = answer.started
        assert (started.mode, started.ratio_ppm) == tuple(choice.values())
        assert started.adapter_version == (0 if choice["mode"] == BASE else 1)
        assert answer.finished.document_tokens_prefilled == 0
        missing = client.ask("asked", build_if_missing=True, **choice)
        assert heard(missing)[:2] == heard(answer)[:2], choice
        # Which caches come out of one prefill may move the last bits.
        assert missing.log_probabilities == pytest.approx(answer.log_probabilities, abs=1e-4)
        scores = [client.score(name, ANSWER, **choice) for name in ("built", "asked")]
        assert scores[0].started.mode == choice["mode"]
        assert scores[0].log_probability == pytest.approx(scores[1].log_probability, abs=1e-3)

    # In one batch, then by another process.
    streams = [client.queries.Ask(ask_request("built", **choice)) for choice in choices]
    assert [heard(collect(stream)) for stream in streams] == [heard(answer) for answer in first]
    daemon.restart()
    client = daemon.client()
    for choice, answer in zip(choices, first):
        again = client.ask("built", **choice)
        assert heard(again) == heard(answer), choice
        assert again.finished.document_tokens_prefilled == 0

    by_choice = {tuple(choice.values()): answer for choice, answer in zip(choices, first)}
    for ratio in RATIOS:
        _, told, prefill, rescored = (by_choice[mode, ratio] for mode in MODES)
        assert told.started.cache_id == by_choice[BASE, ratio].started.cache_id
        # Nothing is scored at 0 and 1, where these two are one.
        assert (heard(prefill) == heard(rescored)) == (ratio != 500_000)
        assert prefill.log_probabilities != pytest.approx(told.log_probabilities, abs=1e-4)
    assert len({tuple(by_choice[mode, 500_000].log_probabilities) for mode in MODES}) == 4


def test_a_cache_names_who_wrote_and_who_scored_it(client):
    hashes = two_adapters(client, "makers")
    for mode, scorer in ((PREFILL, hashes[1]), (RESCORED, "")):
        made = client.build("makers", mode=mode, ratio_ppm=RATIOS)
        assert {cache.writer_adapter_hash for cache in made.caches} == {hashes[1]}
        assert [cache.scorer_adapter_hash for cache in made.caches] == ["", scorer, ""]
        profiles = [cache.profile for cache in made.caches]
        assert profiles == [v1.PROFILE_UNSPECIFIED, v1.PROFILE_COMPACTOR, v1.PROFILE_UNSPECIFIED]
    assert not client.build("makers", mode=RESCORED, ratio_ppm=RATIOS).built_cache_ids
    of_first = client.build("makers", mode=PREFILL, adapter_version=1, ratio_ppm=[500_000])
    assert of_first.caches[0].writer_adapter_hash == hashes[0]
    # One of the base model, four of the second adapter, one of the first.
    assert len({cache.id for cache in client.document("makers").caches}) == 6


def test_a_cache_never_answers_with_another_adapter_or_in_another_mode(client):
    two_adapters(client, "wrong")
    base = client.document("wrong").default_cache_id
    made = client.build("wrong", mode=PREFILL, adapter_version=1, ratio_ppm=[500_000]).caches[0]
    wrong = [
        ({"mode": PREFILL}, made.id, "writer"),  # the current one is version 2
        ({"mode": BASE}, made.id, "writer"),
        ({"mode": DECODE, "adapter_version": 1}, made.id, "writer"),
        ({}, made.id, "writer"),
        ({"mode": RESCORED, "adapter_version": 1}, made.id, "scorer"),
        ({"mode": PREFILL, "adapter_version": 1}, base, "writer"),
    ]
    for choice, cache_id, differs in wrong:
        for call in (client.ask, lambda name, **more: client.score(name, ANSWER, **more)):
            why = refused(lambda call=call: call("wrong", cache_id=cache_id, **choice),
                          "FAILED_PRECONDITION", "IDENTITY_MISMATCH")
            assert why.metadata["field"] == differs and cache_id in why.message
    # By ratio none of them is a candidate.
    for choice in ({"mode": PREFILL}, {"mode": RESCORED, "adapter_version": 1}):
        why = refused(lambda choice=choice: client.ask("wrong", ratio=500_000, **choice),
                      "NOT_FOUND", "CACHE_NOT_FOUND")
        assert made.writer_adapter_hash[:12] in why.metadata["available"]
    right = client.ask("wrong", mode=PREFILL, adapter_version=1, cache_id=made.id)
    assert right.started.cache_id == made.id
    assert client.ask("wrong", ratio=500_000).started.cache_id == base


def test_a_deleted_adapter_takes_its_caches_along(client):
    hashes = two_adapters(client, "deleted")
    for version in (1, 2):
        for mode in (PREFILL, RESCORED):
            client.build("deleted", mode=mode, adapter_version=version, ratio_ppm=[500_000, 0])
    loaded = client.ask("deleted", mode=PREFILL, adapter_version=1, ratio=0).started.cache_id
    assert delete_adapter(client, "deleted", 1).deleted_caches == 3
    left = client.document("deleted").caches
    assert [cache.writer_adapter_hash for cache in left] == ["", *[hashes[1]] * 3]
    assert loaded not in {item.id for item in client.residents()}
    refused(lambda: client.ask("deleted", mode=PREFILL, adapter_version=1, ratio=0),
            "NOT_FOUND", "ADAPTER_NOT_FOUND")
    refused(lambda: client.build("deleted", mode=PREFILL, adapter_version=1),
            "NOT_FOUND", "ADAPTER_NOT_FOUND")
    assert client.ask("deleted", mode=PREFILL, ratio=0).started.adapter_version == 2
    # The same content again is another version with caches to build.
    assert client.upload("deleted", adapter(), keep_current=True).version == 3
    refused(lambda: client.ask("deleted", mode=PREFILL, adapter_version=3, ratio=0),
            "NOT_FOUND", "CACHE_NOT_FOUND")


def test_another_text_leaves_no_cache_of_an_adapter(client):
    two_adapters(client, "replaced")
    client.build("replaced", mode=PREFILL, ratio_ppm=[0])
    revision = client.document("replaced").revision
    client.ingest(document("other"), "replaced", replace=True, revision=revision)
    assert [cache.writer_adapter_hash for cache in client.document("replaced").caches] == [""]
    refused(lambda: client.build("replaced", mode=PREFILL),
            "FAILED_PRECONDITION", "NO_CURRENT_ADAPTER")
    refused(lambda: client.build("replaced", mode=PREFILL, adapter_version=2),
            "FAILED_PRECONDITION", "ADAPTER_STALE")
    choice = {"mode": PREFILL, "adapter_version": 2, "ratio": 0, "build_if_missing": True}
    refused(lambda: client.ask("replaced", **choice), "FAILED_PRECONDITION", "ADAPTER_STALE")
    answer = client.ask("replaced", allow_adapter_mismatch=True, **choice)
    assert answer.started.adapter_version == 2
    assert answer.finished.document_tokens_prefilled > 0


def test_without_a_ratio_the_cache_made_like_the_default_answers(client):
    two_adapters(client, "like")
    refused(lambda: client.ask("like", mode=PREFILL), "NOT_FOUND", "CACHE_NOT_FOUND")
    client.build("like", mode=PREFILL, ratio_ppm=[0])
    refused(lambda: client.ask("like", mode=PREFILL), "NOT_FOUND", "CACHE_NOT_FOUND")
    made = client.build("like", mode=PREFILL, ratio_ppm=[500_000]).caches[0]
    assert client.ask("like", mode=PREFILL).started.cache_id == made.id
    # As the default it doesn't shut the base model out.
    base = client.document("like").default_cache_id
    client.documents.Update(v1.UpdateDocumentRequest(
        document="like", values=v1.Document(default_cache_id=made.id),
        update_mask={"paths": ["default_cache_id"]}))
    assert client.ask("like", mode=PREFILL).started.cache_id == made.id
    assert client.ask("like").started.cache_id == base


def test_a_collection_may_prefer_any_mode(client):
    client.collections.Create(v1.CreateCollectionRequest(
        name="prefer", settings=v1.CollectionSettings(default_mode=RESCORED)))
    client.ingest(document("prefer"), "d", collection="prefer", ratio_ppm=[500_000])
    refused(lambda: client.ask("d", collection="prefer"),
            "FAILED_PRECONDITION", "NO_CURRENT_ADAPTER")
    client.upload("d", adapter(), collection="prefer")
    built = client.ask("d", collection="prefer", ratio=500_000, build_if_missing=True)
    assert built.started.mode == RESCORED and built.finished.document_tokens_prefilled > 0
    assert heard(client.ask("d", collection="prefer")) == heard(built)
    assert client.ask("d", collection="prefer", mode=BASE).started.mode == BASE
    assert client.ask("d", collection="prefer", adapter_version=1).started.mode == RESCORED


def test_an_adapter_stored_for_the_answer_alone_prefills_only_if_told_so(client):
    client.ingest(document("scope"), "scope", ratio_ppm=[0])
    client.upload("scope", adapter(), scope=v1.ADAPTER_SCOPE_ANSWER_ONLY)
    client.build("scope", mode=PREFILL, ratio_ppm=[0])
    refused(lambda: client.ask("scope", mode=PREFILL, ratio=0),
            "INVALID_ARGUMENT", "INVALID_FIELD", "memory.adapter_scope")
    told = client.ask("scope", mode=PREFILL, ratio=0,
                      adapter_scope=v1.ADAPTER_SCOPE_FROM_BRIDGE)
    assert told.started.mode == PREFILL


def test_a_version_names_an_adapter_only_where_one_writes(client):
    two_adapters(client, "version")
    for mode in (v1.MODE_UNSPECIFIED, BASE, DECODE):
        refused(lambda mode=mode: client.build("version", mode=mode, adapter_version=1),
                "INVALID_ARGUMENT", "INVALID_FIELD", "adapter_version")
    refused(lambda: client.build("version", mode=PREFILL, adapter_version=9),
            "NOT_FOUND", "ADAPTER_NOT_FOUND")
    set_current(client, "version", 0)
    refused(lambda: client.build("version", mode=RESCORED),
            "FAILED_PRECONDITION", "NO_CURRENT_ADAPTER")


def test_a_build_that_is_left_leaves_nothing(client):
    client.ingest(document("left", 400), "left", ratio_ppm=[1_000_000])
    client.upload("left", adapter())
    stream = client.documents.BuildCache(
        v1.BuildCacheRequest(document="left", mode=PREFILL, ratio_ppm=[500_000]))
    while next(stream).progress.phase != v1.BuildProgress.PHASE_PREFILLING:
        pass
    stream.cancel()
    # The next one waits for its end.
    client.build("left", mode=RESCORED, ratio_ppm=[1_000_000])
    kept = client.document("left").caches
    assert [cache.ratio_ppm for cache in kept] == [1_000_000] * 2
    assert all(item.leases == 0 for item in client.residents())
