"""Caches: which one answers, building and deleting them."""

import pytest
from client import ask_request, refused
from folders import adapter
from stubs import v1
from texts import document

PROFILES = [v1.PROFILE_COMPACTOR, v1.PROFILE_KNORM, v1.PROFILE_RANDOM, v1.PROFILE_STREAMING,
            v1.PROFILE_COMPACTOR_VLLM]


def delete_cache(client, name, cache_id, **fields):
    return client.documents.DeleteCache(
        v1.DeleteCacheRequest(document=name, cache_id=cache_id, **fields))


def by_ratio(made):
    return {cache.ratio_ppm: cache.id for cache in made.caches}


def test_the_default_cache_is_the_first_of_the_first_ingestion(client):
    made = client.ingest(document("default"), "default", ratio_ppm=[500_000, 0]).document
    client.ingest(document("default"), "default", ratio_ppm=[100_000])
    started = client.ask("default").started
    assert (started.cache_id, started.ratio_ppm) == (made.caches[0].id, 500_000)
    assert client.ask("default", ratio=0).started.cache_id == made.caches[1].id
    assert client.ask("default", cache_id=made.caches[1].id).started.ratio_ppm == 0


def test_a_cache_that_isnt_there_is_not_found_with_what_is(client):
    made = client.ingest(document("absent"), "absent", ratio_ppm=[500_000]).document
    for choice in ({"ratio": 400_000}, {"cache_id": "0" * 64}):
        why = refused(lambda choice=choice: client.ask("absent", **choice),
                      "NOT_FOUND", "CACHE_NOT_FOUND")
        assert made.caches[0].id in why.metadata["available"]
        assert "0.5" in why.metadata["available"]


def test_several_matches_are_listed_and_one_is_chosen_by_id(client):
    text = document("ambiguous")
    client.ingest(text, "ambiguous")
    both = client.ingest(text, "ambiguous", system_text="Answer in one word.").document.caches
    why = refused(lambda: client.ask("ambiguous", ratio=900_000),
                  "INVALID_ARGUMENT", "CACHE_AMBIGUOUS", "memory.ratio_ppm")
    assert set(why.metadata["cache_ids"].split(",")) == {cache.id for cache in both}
    assert client.ask("ambiguous").started.cache_id == both[0].id
    first, second = (client.ask("ambiguous", cache_id=cache.id) for cache in both)
    assert first.log_probabilities != second.log_probabilities


def test_a_missing_cache_is_built_when_the_question_says_so(client):
    text = document("missing")
    client.ingest(text, "missing")
    built = client.ask("missing", ratio=250_000, build_if_missing=True)
    made = client.document("missing")
    assert built.started.cache_id == by_ratio(made)[250_000]
    assert built.started.ratio_ppm == 250_000
    assert built.finished.document_tokens_prefilled > 0
    again = client.ask("missing", ratio=250_000, build_if_missing=True)
    assert again.finished.document_tokens_prefilled == 0
    assert again.tokens == built.tokens
    assert again.log_probabilities == pytest.approx(built.log_probabilities, abs=1e-4)
    # The same as had it been ingested so.
    assert client.ingest(text, "other", ratio_ppm=[250_000]).document.caches[
        0].id == built.started.cache_id


def test_build_cache_builds_what_is_asked_in_order(client):
    text = document("build")
    made = client.ingest(text, "build").document
    built = client.build("build", ratio_ppm=[0, 900_000, 300_000])
    assert [cache.ratio_ppm for cache in built.caches] == [0, 900_000, 300_000]
    assert len(built.built_cache_ids) == 2 and made.caches[0].id not in built.built_cache_ids
    again = client.build("build", ratio_ppm=[300_000])
    assert not again.built_cache_ids and again.caches[0].id == built.caches[2].id
    other = client.build("build", ratio_ppm=[0], system_text="Other.", mode=v1.MODE_BASE)
    assert other.caches[0].id != built.caches[0].id
    assert client.build("build").caches[0].ratio_ppm == 900_000
    assert client.document("build").default_cache_id == made.default_cache_id
    refused(lambda: client.build("nothing", ratio_ppm=[1]), "NOT_FOUND", "DOCUMENT_NOT_FOUND")


def test_a_deleted_default_cache_is_followed_by_the_oldest(client):
    made = client.ingest(document("delete"), "delete", ratio_ppm=[500_000, 0, 900_000]).document
    ids = by_ratio(made)
    client.ask("delete")
    assert delete_cache(client, "delete", ids[500_000]).deleted
    left = client.document("delete")
    assert left.default_cache_id == ids[0] and set(by_ratio(left)) == {0, 900_000}
    assert ids[500_000] not in {item.id for item in client.residents()}
    assert client.ask("delete").started.cache_id == ids[0]
    refused(lambda: delete_cache(client, "delete", ids[500_000]), "NOT_FOUND", "CACHE_NOT_FOUND")
    assert not delete_cache(client, "delete", ids[500_000], allow_missing=True).deleted
    for ratio in (0, 900_000):
        delete_cache(client, "delete", ids[ratio])
    empty = client.document("delete")
    assert not empty.caches and not empty.default_cache_id
    refused(lambda: client.ask("delete"), "NOT_FOUND", "CACHE_NOT_FOUND")
    # Its text is still there.
    assert client.ask("delete", ratio=500_000, build_if_missing=True).finished


def test_a_question_under_way_outlives_its_cache(make_daemon, patient):
    client = make_daemon(model=patient).start().client()
    made = client.ingest(document("outlived"), "d").document
    alone = client.ask("d", max_tokens=300)
    stream = client.queries.Ask(ask_request("d", max_tokens=300))
    parts = [next(stream), next(stream)]
    delete_cache(client, "d", made.caches[0].id)
    parts += stream
    tokens = [one.token_id for part in parts for one in part.delta.log_probabilities]
    assert tokens == alone.tokens
    assert not client.residents()


def test_at_ratio_1_every_document_answers_like_none(client):
    answers = []
    for name in ("near", "far"):
        made = client.ingest(document(name), name, ratio_ppm=[1_000_000, 0]).document
        assert made.caches[0].kept_tokens == made.caches[0].head_tokens
        answers.append([client.ask(name, ratio=ratio) for ratio in (1_000_000, 0)])
    (near_none, near_all), (far_none, far_all) = answers
    assert near_none.tokens == far_none.tokens
    assert near_none.log_probabilities == pytest.approx(far_none.log_probabilities, abs=1e-4)
    # Negative control: with the whole document they differ.
    assert near_all.log_probabilities != pytest.approx(far_all.log_probabilities, abs=1e-3)
    assert near_all.log_probabilities != pytest.approx(near_none.log_probabilities, abs=1e-3)


def test_a_short_document_of_which_nothing_is_left_answers_like_none(client):
    short = client.ingest("One two three.", "short", ratio_ppm=[999_999, 1_000_000]).document
    assert short.caches[0].kept_tokens == short.caches[0].head_tokens
    almost, none = (client.ask("short", ratio=ratio) for ratio in (999_999, 1_000_000))
    assert almost.tokens == none.tokens
    assert almost.log_probabilities == pytest.approx(none.log_probabilities, abs=1e-4)


def test_one_build_makes_every_ratio_with_every_profile(client):
    text = document("profiles", 60)
    client.ingest(text, "profiles", ratio_ppm=[0])
    built = client.build("profiles", ratio_ppm=[500_000, 900_000], profiles=PROFILES)
    made = [(cache.ratio_ppm, cache.profile) for cache in built.caches]
    assert made == [(ratio, profile) for ratio in (500_000, 900_000) for profile in PROFILES]
    assert len(built.built_cache_ids) == len({cache.id for cache in built.caches}) == 10
    listed = client.document("profiles").caches
    assert [cache.id for cache in listed[1:]] == [cache.id for cache in built.caches]
    assert len({(cache.ratio_ppm, cache.kept_tokens) for cache in built.caches}) == 2
    answers = {}
    for cache in built.caches:
        answer = client.ask("profiles", ratio=cache.ratio_ppm, profile=cache.profile)
        assert answer.started.cache_id == cache.id
        answers[cache.id] = tuple(answer.log_probabilities)
    assert len(set(answers.values())) == 10, "every choice of tokens is another"
    refused(lambda: client.ask("profiles", ratio=500_000), "INVALID_ARGUMENT", "CACHE_AMBIGUOUS")
    # The same one by one, and when a question builds it.
    other = client.ingest(text, "one", ratio_ppm=[900_000], profiles=PROFILES[3:])
    assert [cache.id for cache in other.document.caches] == [cache.id for cache in built.caches[8:]]
    asked = client.ask("one", ratio=500_000, profile=v1.PROFILE_KNORM, build_if_missing=True)
    assert asked.started.cache_id == built.caches[1].id
    assert asked.log_probabilities == pytest.approx(answers[built.caches[1].id], abs=1e-4)
    refused(lambda: client.ask("one", ratio=900_000, profile=v1.PROFILE_RANDOM),
            "NOT_FOUND", "CACHE_NOT_FOUND")


def test_an_adapters_caches_come_in_every_profile_too(client):
    client.ingest(document("ragged"), "ragged", ratio_ppm=[0])
    client.upload("ragged", adapter())
    for mode in (v1.MODE_ADAPTER_PREFILL, v1.MODE_BASE_SCORE_ADAPTER_PREFILL):
        built = client.build("ragged", mode=mode, ratio_ppm=[500_000], profiles=PROFILES,
                             kv_dtype=v1.KV_DTYPE_INT8)
        assert [cache.profile for cache in built.caches] == PROFILES
        for profile in PROFILES:
            assert client.ask("ragged", mode=mode, ratio=500_000, profile=profile).finished


def test_int8_is_another_cache_with_nearly_the_same_answers(client):
    client.ingest(document("int8"), "int8", ratio_ppm=[500_000])
    plain = client.document("int8").caches[0]
    small = client.build("int8", ratio_ppm=[500_000], kv_dtype=v1.KV_DTYPE_INT8).caches[0]
    assert (plain.kv_dtype, small.kv_dtype) == (v1.KV_DTYPE_FLOAT32, v1.KV_DTYPE_INT8)
    assert small.kept_tokens == plain.kept_tokens
    assert small.stored_bytes < plain.stored_bytes / 2
    assert small.device_bytes < plain.device_bytes / 2
    refused(lambda: client.ask("int8", ratio=500_000), "INVALID_ARGUMENT", "CACHE_AMBIGUOUS")
    scores = [client.score("int8", "The mayor hides 12 lanterns.", cache_id=cache.id).tokens
              for cache in (plain, small)]
    deltas = [abs(one.log_probability - other.log_probability) for one, other in zip(*scores)]
    assert 0 < sum(deltas) / len(deltas) <= 0.05
    made = client.ingest(document("int8"), "only", ratio_ppm=[500_000], kv_dtype=v1.KV_DTYPE_INT8)
    assert [cache.id for cache in made.document.caches] == [small.id]
    assert client.ask("only").tokens == client.ask("int8", cache_id=small.id).tokens
    assert client.ask("only", ratio=500_000).started.cache_id == small.id


def test_the_models_own_dtype_may_be_named_and_no_other(client):
    made = client.ingest(document("dtype"), "dtype", kv_dtype=v1.KV_DTYPE_FLOAT32).document
    assert not client.build("dtype").built_cache_ids
    assert not client.build("dtype", kv_dtype=v1.KV_DTYPE_FLOAT32).built_cache_ids
    for wrong in ("KV_DTYPE_BFLOAT16", "KV_DTYPE_FLOAT16"):
        for call in (client.build, lambda name, **more: client.ingest("x", "no", **more)):
            why = refused(
                lambda call=call: call("dtype", kv_dtype=v1.KvDtype.Value(wrong)),
                "INVALID_ARGUMENT", "INVALID_FIELD", "kv_dtype")
            for part in (wrong, "KV_DTYPE_FLOAT32", "KV_DTYPE_INT8"):
                assert part in why.message
    assert client.document("dtype") == made
