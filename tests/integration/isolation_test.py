"""No answer depends on what was asked before, beside, or under another adapter."""

import itertools
import json
import threading

import numpy
import pytest
from client import QUESTION, ask_request, collect, refused
from daemon import scaled
from folders import adapter, model, scaled_adapter
from stubs import v1
from texts import document

# Log-probabilities in fp32, see the tolerances of the engine.
TOLERANCE = 1e-4


def agree(one, other):
    assert one.tokens == other.tokens
    assert one.log_probabilities == pytest.approx(other.log_probabilities, abs=TOLERANCE)


def together(client, requests):
    """Asks all at the same time; answers in the order of the requests."""
    answers = [None] * len(requests)
    barrier = threading.Barrier(len(requests))

    def run(index):
        barrier.wait(60)
        answers[index] = collect(client.queries.Ask(requests[index]))

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(requests))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert all(answers)
    return answers


def test_the_same_question_under_two_adapters_and_none_in_any_order(make_daemon, tmp_path, patient):
    # Fault 1: each answer equals that of a process that was asked nothing else.
    daemon = make_daemon(model=patient, folder=tmp_path / "one").start()
    client = daemon.client()
    client.ingest(document("order"), "d")
    client.upload("d", adapter())
    client.upload("d", adapter("rslora"))
    choices = {
        "A": {"adapter_version": 1},
        "B": {"adapter_version": 2},
        "none": {"mode": v1.MODE_BASE},
    }
    alone = {}
    for name, choice in choices.items():
        daemon.restart(gently=False)
        alone[name] = daemon.client().ask("d", **choice)
    assert len({tuple(answer.log_probabilities) for answer in alone.values()}) == 3
    orders = [*itertools.permutations(choices)]
    for order in orders[: scaled(4, 6)]:
        daemon.restart(gently=False)
        client = daemon.client()
        for name in (*order, *order):
            agree(client.ask("d", **choices[name]), alone[name])


def test_a_replaced_adapter_leaves_no_trace(make_daemon, tmp_path, patient):
    # Fault 3.
    daemon = make_daemon(model=patient, folder=tmp_path / "replaced").start()
    client = daemon.client()
    client.ingest(document("trace"), "d")
    first = client.upload("d", adapter())
    old = client.ask("d")
    client.upload("d", adapter("rslora"))
    client.adapters.Delete(v1.DeleteAdapterRequest(document="d", version=1))
    new = client.ask("d")
    residents = client.residents()
    assert first.hash not in {item.id for item in residents}
    assert sum(item.kind == v1.ARTIFACT_KIND_ADAPTER for item in residents) == 1
    daemon.restart()
    restarted = daemon.client().ask("d")

    fresh = make_daemon(model=patient, folder=tmp_path / "fresh").start().client()
    fresh.ingest(document("trace"), "d")
    fresh.upload("d", adapter("rslora"))
    expected = fresh.ask("d")
    agree(new, expected)
    agree(restarted, expected)
    assert old.log_probabilities != pytest.approx(expected.log_probabilities, abs=1e-3)


@pytest.fixture(scope="module")
def daemon_of_crowd(make_shared_daemon, patient):
    return make_shared_daemon(model=patient).start()


@pytest.fixture(scope="module")
def crowd(daemon_of_crowd):
    """Eight documents, four of them with an adapter of their own kind, and requests on them."""
    client = daemon_of_crowd.client()
    kinds = ["all-modules", "rslora", "query-value", "patterns"]
    requests = []
    for index in range(8):
        client.ingest(document(index), f"d{index}", ratio_ppm=[900_000, 0])
        if index < 4:
            client.upload(f"d{index}", adapter(kinds[index]))
        for ratio in (900_000, 0):
            requests.append(ask_request(f"d{index}", f"Question {index}?", ratio=ratio,
                                        max_tokens=20 + index))
    return client, requests


def test_16_questions_at_once_get_the_answers_they_get_alone(crowd):
    client, requests = crowd
    alone = [collect(client.queries.Ask(request)) for request in requests]
    assert len({tuple(answer.log_probabilities) for answer in alone}) == len(requests)
    for _ in range(scaled(2, 20)):
        for one, other in zip(alone, together(client, requests), strict=True):
            agree(one, other)


def test_questions_at_once_on_one_document_share_its_rows_and_nothing_else(crowd):
    client, _ = crowd
    requests = [ask_request("d0", f"Number {index}?", mode=1 + index % 2, max_tokens=16)
                for index in range(16)]
    alone = [collect(client.queries.Ask(request)) for request in requests]
    for one, other in zip(alone, together(client, requests), strict=True):
        agree(one, other)


def test_scores_at_once_equal_scores_alone(crowd):
    client, _ = crowd
    alone = [client.score(f"d{index}", "The blue door.").log_probability for index in range(8)]
    scores = [None] * 8

    def run(index):
        scores[index] = client.score(f"d{index}", "The blue door.").log_probability

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert scores == pytest.approx(alone, abs=8 * TOLERANCE)


def test_numbers_that_overflow_end_their_own_stream_with_a_failure(crowd, daemon_of_crowd):
    # Fault 49: never a normal end, and nobody beside it notices.
    client, requests = crowd
    expected = collect(client.queries.Ask(requests[0]))
    client.ingest(document("overflow"), "overflow")
    client.upload("overflow", scaled_adapter(1e30))
    before = daemon_of_crowd.metrics()
    beside = []
    thread = threading.Thread(
        target=lambda: beside.extend(together(client, requests[:4])), daemon=True)
    thread.start()
    refused(lambda: client.ask("overflow"), "INTERNAL", "NUMERIC_FAULT")
    refused(lambda: client.score("overflow", "The blue door."), "INTERNAL", "NUMERIC_FAULT")
    thread.join(120)
    agree(beside[0], expected)
    after = daemon_of_crowd.metrics()
    for method in ("Ask", "Score"):
        name = f'docmem_requests_total{{code="INTERNAL",method="Query.{method}"}}'
        assert after[name] - before.get(name, 0) == 1
    assert client.ask("overflow", mode=v1.MODE_BASE).finished


def first_not_read(model_folder, tokens, text):
    """Where a token that can't be part of `text` comes for the first time, beyond the third."""
    vocabulary = json.loads((model_folder / "tokenizer.json").read_text())["model"]["vocab"]
    pieces = {token: piece.replace("\u0120", " ") for piece, token in vocabulary.items()}
    return next(place for place, token in enumerate(tokens)
                if place >= 3 and token not in tokens[:place] and pieces.get(token, "") not in text)


def test_numbers_that_break_in_the_middle_end_a_part_with_a_failure(make_daemon, tmp_path, patient):
    # Fault 49: a token of the answer is followed by numbers that aren't finite.
    whole_daemon = make_daemon(model=patient, folder=tmp_path / "whole").start()
    whole_daemon.client().ingest(document("middle"), "d")
    whole = whole_daemon.client().ask("d")
    place = first_not_read(patient, whole.tokens, document("middle") + QUESTION)

    def broken(tensors):
        rows = tensors["model.embed_tokens.weight"].copy()
        rows[whole.tokens[place]] = numpy.inf
        return tensors | {"model.embed_tokens.weight": rows}

    daemon = make_daemon(model=model(tmp_path / "broken", source=patient, tensors=broken)).start()
    client = daemon.client()
    client.ingest(document("middle"), "d")
    parts = []
    refused(lambda: parts.extend(client.queries.Ask(ask_request("d"))),
            "INTERNAL", "NUMERIC_FAULT")
    deltas = [part.delta for part in parts if part.HasField("delta")]
    tokens = [token.token_id for delta in deltas for token in delta.log_probabilities]
    assert tokens == whole.tokens[: place + 1]
    assert not any(part.HasField("finished") for part in parts)
    counted = daemon.metrics()
    assert counted['docmem_requests_total{code="INTERNAL",method="Query.Ask"}'] == 1
    assert client.ask("d", max_tokens=place).tokens == tokens[:place]


def test_ingestion_beside_an_answer_changes_neither(crowd):
    client, requests = crowd
    text = document("beside", 150)
    alone_cache = client.ingest(text, "beside-alone").document.caches[0]
    alone = client.ask("beside-alone")
    expected = collect(client.queries.Ask(requests[0]))
    answers = []
    thread = threading.Thread(
        target=lambda: answers.extend(together(client, requests[:4])), daemon=True)
    thread.start()
    beside = client.ingest(text, "beside").document.caches[0]
    thread.join(120)
    agree(answers[0], expected)
    assert beside.id == alone_cache.id
    agree(client.ask("beside"), alone)
