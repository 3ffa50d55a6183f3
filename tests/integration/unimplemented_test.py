"""What a later version brings says so: UNIMPLEMENTED, with its reason and name, and no effect."""

import pytest
from client import ask_request, ingest_messages, refused
from folders import adapter
from stubs import v1
from texts import document

PREFILL_MODES = [v1.MODE_ADAPTER_PREFILL, v1.MODE_BASE_SCORE_ADAPTER_PREFILL]
PROFILES = [v1.PROFILE_KNORM, v1.PROFILE_RANDOM, v1.PROFILE_STREAMING, v1.PROFILE_COMPACTOR_VLLM]
HEADER = v1.ImportDocumentRequest(header=v1.ImportHeader(document="i"))


def settings(**values):
    return v1.CollectionSettings(**values)


CASES = {
    **{f"Ask in mode {mode}": (lambda c, mode=mode: c.ask("d", mode=mode), "prefill")
       for mode in PREFILL_MODES},
    **{f"Score in mode {mode}": (lambda c, mode=mode: c.score("d", "a", mode=mode), "prefill")
       for mode in PREFILL_MODES},
    **{f"BuildCache in mode {mode}": (lambda c, mode=mode: c.build("d", mode=mode), "prefill")
       for mode in PREFILL_MODES},
    **{f"Ingest with profile {profile}": (
        lambda c, profile=profile: c.ingest("t", "new", profiles=[profile]), "profile")
       for profile in PROFILES},
    **{f"BuildCache with profile {profile}": (
        lambda c, profile=profile: c.build("d", profiles=[profile]), "profile")
       for profile in PROFILES},
    **{f"Ask that builds with profile {profile}": (
        lambda c, profile=profile: c.ask("d", ratio=5, profile=profile, build_if_missing=True),
        "profile") for profile in PROFILES},
    "Ingest with int8": (lambda c: c.ingest("t", "new", kv_dtype=v1.KV_DTYPE_INT8), "kv_dtype"),
    "BuildCache with int8": (lambda c: c.build("d", kv_dtype=v1.KV_DTYPE_INT8), "kv_dtype"),
    "Ingest with training": (
        lambda c: c.ingest("t", "new", train_after=v1.TrainingOptions()), "train"),
    "Export": (lambda c: c.documents.Export(v1.ExportDocumentRequest(document="d")), "export"),
    "Import": (lambda c: c.documents.Import(iter([HEADER])), "import"),
    "Import of nothing": (lambda c: c.documents.Import(iter([])), "import"),
    "SetEvaluation": (
        lambda c: c.documents.SetEvaluation(v1.SetEvaluationRequest(document="d")), "evaluation"),
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
    "Training.Start": (
        lambda c: c.trainings.Start(v1.StartTrainingRequest(document="d")), "train"),
    "Training.Get": (lambda c: c.trainings.Get(v1.GetTrainingJobRequest(job_id="j")), "train"),
    "Training.List": (lambda c: c.trainings.List(v1.ListTrainingJobsRequest()), "train"),
    "Training.Watch": (
        lambda c: c.trainings.Watch(v1.WatchTrainingRequest(job_id="j")), "train"),
    "Training.Cancel": (
        lambda c: c.trainings.Cancel(v1.CancelTrainingRequest(job_id="j")), "train"),
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


def test_a_profile_selects_among_the_caches_that_exist(client):
    assert client.ask("d", ratio=900_000, profile=v1.PROFILE_COMPACTOR).finished
    refused(lambda: client.ask("d", ratio=900_000, profile=v1.PROFILE_KNORM),
            "NOT_FOUND", "CACHE_NOT_FOUND")


def test_a_whole_document_with_an_unknown_option_leaves_nothing(client):
    messages = ingest_messages(document("nothing"), "nothing", profiles=[v1.PROFILE_RANDOM])
    refused(lambda: client.documents.Ingest(messages), "UNIMPLEMENTED", "NOT_IMPLEMENTED")
    refused(lambda: client.queries.Ask(ask_request("nothing")),
            "NOT_FOUND", "DOCUMENT_NOT_FOUND")
