"""Answers: the stream's form, sampling, stop strings, scoring, text, limits."""

import itertools
import json
import time

import grpc
import pytest
from client import ask_request, refused
from daemon import TINY_LLAMA, eventually
from folders import adapter
from stubs import v1
from texts import document

Reason = v1.Finished.Reason
CONTROL = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "</think>"]


@pytest.fixture(scope="module")
def client(make_shared_daemon, patient):
    client = make_shared_daemon(model=patient).start().client()
    client.ingest(document("d"), "d", ratio_ppm=[900_000, 0, 1_000_000])
    client.upload("d", adapter())
    return client


@pytest.fixture(scope="module")
def token_bytes():
    """Token id → bytes, from the tokenizer's own file by the byte-level alphabet."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable}
    alphabet |= {chr(256 + index): byte for index, byte in enumerate(rest)}
    file = json.loads((TINY_LLAMA / "tokenizer.json").read_text())
    control = {token["id"] for token in file["added_tokens"]}
    return {
        number: b"" if number in control else bytes(alphabet[char] for char in text)
        for text, number in file["model"]["vocab"].items()
    } | {number: b"" for number in control}


def test_a_stream_starts_with_who_answers_and_ends_with_counts(client):
    before = time.time()
    answer = client.ask("d", max_tokens=40)
    started, finished = answer.started, answer.finished
    assert started.request_id and (started.collection, started.document) == ("default", "d")
    assert started.mode == v1.MODE_BASE_KV_ADAPTER_DECODE and started.ratio_ppm == 900_000
    assert (started.adapter_version, len(started.adapter_hash)) == (1, 64)
    assert started.cache_tier in (v1.TIER_DISK, v1.TIER_DEVICE)
    assert started.deadline.seconds > before
    assert finished.reason == Reason.REASON_LENGTH
    assert finished.answer_tokens == len(answer.tokens) == 40
    assert all(value <= 0 for value in answer.log_probabilities)
    assert finished.prompt_tokens > 5 and finished.document_tokens_prefilled == 0
    seconds = finished.seconds
    assert min(seconds.queue, seconds.load, seconds.prefill, seconds.decode) >= 0
    assert finished.first_token_seconds >= seconds.prefill


def test_without_the_wish_no_log_probabilities_are_sent(client):
    answer = client.ask("d", log_probabilities=False)
    assert answer.text and not answer.tokens


def test_the_deadline_is_the_clients_or_the_classes(daemon, client):
    bare = daemon.client(bounded=False)
    bare.ingest(document("deadline"), "deadline")
    now = time.time()
    request = ask_request("deadline")
    for timeout, expected in ((None, 120), (33, 33)):
        started = next(bare.queries.Ask(request, timeout=timeout)).started
        assert started.deadline.seconds - now == pytest.approx(expected, abs=10)


def test_a_passed_deadline_ends_the_answer_with_its_name(client):
    stream = client.queries.Ask(ask_request("d", max_tokens=100_000), timeout=1.5)
    why = refused(lambda: stream, "DEADLINE_EXCEEDED", "")
    assert why.code == grpc.StatusCode.DEADLINE_EXCEEDED
    assert client.ask("d").finished


def test_a_score_is_what_the_answer_was_given(client):
    text = "The blue door."
    result = client.score("d", text)
    assert result.log_probability == pytest.approx(
        sum(token.log_probability for token in result.tokens), abs=1e-5)
    assert result.started.adapter_version == 1 and result.document_tokens_prefilled == 0
    assert result.prompt_tokens > 0
    # One for each token and one for the end of turn.
    assert result.tokens[-1].token_id == 2


def test_the_scores_of_a_greedy_answer_are_its_own_log_probabilities(client):
    compared = 0
    for number, length in itertools.product(range(10), (4, 2, 1)):
        question = f"Who sells lantern {number}?"
        answer = client.ask("d", question, max_tokens=length)
        if not answer.text or answer.finished.dropped_bytes:
            continue
        scored = client.score("d", answer.text, question).tokens[:-1]
        # An answer's text may have another, shorter spelling in tokens.
        if [token.token_id for token in scored] == answer.tokens:
            compared += 1
            assert [token.log_probability for token in scored] == pytest.approx(
                answer.log_probabilities, abs=1e-4)
    assert compared >= 3


def test_sampling_repeats_with_its_seed_and_greedy_is_temperature_0(client):
    def sampled(**sampling):
        return client.ask("d", sampling=v1.Sampling(**sampling)).tokens

    greedy = client.ask("d").tokens
    assert sampled(temperature=0, seed=5) == greedy
    assert sampled(temperature=1.5, top_k=1, seed=3) == greedy
    assert sampled(temperature=1.0, seed=7) == sampled(temperature=1.0, seed=7)
    assert sampled(temperature=1.5, seed=7) != sampled(temperature=1.5, seed=8)
    assert sampled(temperature=1.5) != sampled(temperature=1.5), "seeds are drawn"
    assert sampled(temperature=1.0, top_p=1e-6, seed=9) == greedy


def test_a_stop_string_ends_the_answer_and_isnt_part_of_it(client):
    whole = client.ask("d", max_tokens=60).text
    place = len(whole) // 2
    stop = whole[place : place + 3]
    answer = client.ask("d", max_tokens=60, stop=["never in there", stop])
    assert answer.finished.reason == Reason.REASON_STOP_STRING
    assert answer.text == whole[: whole.index(stop)]
    many = [f"unlikely stop {index}" for index in range(15)] + ["s" * 256]
    assert client.ask("d", stop=many).finished


def test_end_of_turn_ends_the_answer_and_isnt_counted(make_daemon):
    client = make_daemon().start().client()
    client.ingest(document("ends"), "d")
    for index in range(60):
        answer = client.ask("d", f"Question {index}?", max_tokens=400,
                            sampling=v1.Sampling(temperature=2.0, seed=index))
        if answer.finished.reason == Reason.REASON_END_OF_TURN:
            assert answer.tokens[-1] in (0, 2)
            assert answer.finished.answer_tokens == len(answer.tokens) - 1
            return
    pytest.fail("no answer ended by itself")


def test_instruction_and_history_are_this_requests_own(client):
    plain = client.ask("d")
    instructed = client.ask("d", prompt={"instruction": "Answer in one word."})
    turns = [v1.Turn(question="Who?", answer="The keeper."), v1.Turn(question="Why?", answer="")]
    told = client.ask("d", prompt={"history": turns})
    counts = [answer.finished.prompt_tokens for answer in (plain, instructed, told)]
    assert counts[0] < counts[1] and counts[0] < counts[2]
    assert len({tuple(answer.log_probabilities) for answer in (plain, instructed, told)}) == 3
    again = client.ask("d")
    assert again.tokens == plain.tokens and again.finished.prompt_tokens == counts[0]


def test_text_that_looks_like_a_control_token_stays_text(client):
    # Fault 66. As a control token each would be one token.
    def count(question):
        return client.ask("d", question).finished.prompt_tokens

    base = count("x")
    for text in CONTROL:
        assert count("x" + text) - base >= 3, text
        made = client.ingest(f"{text} " * 10, "control-" + text.strip("<|>/"), ratio_ppm=[0])
        assert made.document.document_tokens >= 30, text
        assert client.text(made.document.id) == f"{text} " * 10


def test_the_streams_text_is_the_decoding_of_its_tokens(client, token_bytes):
    # Fault 71: random tokens make mostly broken characters, which is the hard case.
    for seed in range(6):
        for length in (1, 2, 3, 50):
            answer = client.ask("d", f"Schreibe 図書館 {seed} 👩‍🔧", max_tokens=length,
                                sampling=v1.Sampling(temperature=2.0, seed=seed))
            data = b"".join(token_bytes[token] for token in answer.tokens)
            kept = data[: len(data) - answer.finished.dropped_bytes]
            assert answer.text == kept.decode(errors="replace")
            if answer.finished.dropped_bytes:
                assert answer.finished.reason == Reason.REASON_LENGTH
                with pytest.raises(UnicodeDecodeError, match="unexpected end of data"):
                    data[len(kept) :].decode()


@pytest.mark.parametrize("text", [
    "Grüße, 図書館の時計, 👩‍🔧🎻, สวัสดี, ‮abc‬, Tiếng Việt",
    "a\0b", "\ufeffbyte order mark", "e\u0301 combining", "line\r\n\tbreak\u2028", " ", "\n" * 50,
])
def test_any_unicode_text_is_stored_and_asked(client, text):
    made = client.ingest(text).document
    assert client.text(made.id) == text
    assert client.ask(made.id, text if text.strip() else "x").finished


def test_what_exceeds_the_positions_is_refused_with_both_numbers(client):
    why = refused(lambda: client.ask("d", max_tokens=131072),
                  "INVALID_ARGUMENT", "CONTEXT_TOO_LONG", "max_tokens")
    assert "131072" in why.message
    why = refused(lambda: client.ask("d", max_tokens=0xFFFFFFFF),
                  "INVALID_ARGUMENT", "CONTEXT_TOO_LONG", "max_tokens")
    assert "4294967295" in why.message
    turns = [v1.Turn(question="7 " * 16_000, answer="7 " * 16_000)] * 5
    why = refused(lambda: client.score("d", "x", prompt={"history": turns}),
                  "INVALID_ARGUMENT", "CONTEXT_TOO_LONG", "answer")
    assert client.ask("d").finished


def test_a_long_question_is_prefilled_in_several_steps(client):
    question = document("question", 40)
    answer = client.ask("d", question)
    assert answer.finished.prompt_tokens > 600
    score = client.score("d", "Nobody.", question)
    again = client.score("d", "Nobody.", question)
    assert score.log_probability == pytest.approx(again.log_probability, abs=1e-4)


def test_a_live_request_can_be_aborted_once(client):
    stream = client.queries.Ask(ask_request("d", max_tokens=100_000, request_id="mine"))
    assert next(stream).started.request_id == "mine"
    refused(lambda: client.ask("d", request_id="mine"), "ALREADY_EXISTS", "REQUEST_ID_IN_USE")
    request = v1.AbortRequest(request_id="mine")
    assert client.queries.Abort(request).found
    refused(lambda: stream, "CANCELLED", "ABORTED_BY_CLIENT")
    assert not client.queries.Abort(request).found, "idempotent"
    assert not client.queries.Abort(v1.AbortRequest(request_id="never-seen")).found
    assert client.ask("d", request_id="mine").started.request_id == "mine"


def test_a_waiting_request_can_be_aborted(make_daemon, patient):
    client = make_daemon("--max-sequences", "1", "--max-queue", "2", model=patient).start().client()
    client.ingest(document("waits"), "d")
    streams = []
    for name in ("running", "waiting-1", "waiting-2"):
        request = ask_request("d", max_tokens=100_000, request_id=name)
        streams.append(client.queries.Ask(request))
        next(streams[-1])
        eventually(lambda: client.status().queue.running == 1)
    # The queue is full: refused at once, with a hint to try again.
    assert refused(lambda: client.ask("d"), "RESOURCE_EXHAUSTED", "QUEUE_FULL").retry
    queue = client.status().queue
    assert (queue.running, queue.waiting) == (1, 2)
    for name in ("waiting-1", "running", "waiting-2"):
        assert client.queries.Abort(v1.AbortRequest(request_id=name)).found
    for stream in streams:
        refused(lambda stream=stream: stream, "CANCELLED", "ABORTED_BY_CLIENT")
    assert client.ask("d").finished


@pytest.mark.long
def test_a_waiting_request_hears_of_its_place_every_15_seconds(make_daemon, patient):
    client = make_daemon("--max-sequences", "1", model=patient).start().client()
    client.ingest(document("progress"), "d")
    streams = []
    for _ in range(3):
        streams.append(client.queries.Ask(ask_request("d", max_tokens=100_000), timeout=60))
        next(streams[-1])
    eventually(lambda: client.status().queue.waiting == 2)
    began = time.monotonic()
    places = []
    for _ in range(2):
        progress = next(streams[2]).progress
        assert progress.phase == v1.Progress.PHASE_QUEUED and progress.elapsed_seconds > 10
        places.append(progress.queue_position)
        if len(places) == 1:
            streams[1].cancel()
    assert places == [1, 0] and 25 < time.monotonic() - began < 40
    for stream in streams:
        stream.cancel()
