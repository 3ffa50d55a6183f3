"""What a later version brings says so: UNIMPLEMENTED, with its reason and name, and no effect."""

import pytest
from client import ask_request, ingest_messages, refused
from folders import adapter
from stubs import v1
from texts import document


def settings(**values):
    return v1.CollectionSettings(**values)


CASES = {
    "Ingest with training": (
        lambda c: c.ingest("t", "new", train_after=v1.TrainingOptions()), "train"),
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


def test_a_whole_document_with_an_unknown_option_leaves_nothing(client):
    messages = ingest_messages(document("nothing"), "nothing", train_after=v1.TrainingOptions())
    refused(lambda: client.documents.Ingest(messages), "UNIMPLEMENTED", "NOT_IMPLEMENTED")
    refused(lambda: client.queries.Ask(ask_request("nothing")),
            "NOT_FOUND", "DOCUMENT_NOT_FOUND")
