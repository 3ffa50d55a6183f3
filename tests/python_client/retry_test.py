"""What is tried again, when, and with which words; for both clients."""

import gc
import signal
import threading
import time

import docmem
import grpc
import pytest
from docmem import v1
from fake_daemon import LOST, FakeDaemon, Hang, Refusal

STARTING = Refusal(grpc.StatusCode.UNAVAILABLE, "STARTING", delay=0.05)
STEADY = docmem.RetryPolicy(initial_backoff=0.01, jitter=0)
STARTED = v1.AskResponse(started=v1.Started(document="d1"))
DELTA = v1.AskResponse(delta=v1.Delta(text="blue"))
FINISHED = v1.AskResponse(finished=v1.Finished(answer_tokens=1))
WHOLE = [STARTED, DELTA, FINISHED]


def get(client):
    return client.documents.get(document="d1")


def test_a_refusal_is_tried_again_after_the_delay_it_names(fake, form):
    fake.script = [[STARTING], [STARTING], [v1.Document(id="d1")]]
    notices = []
    found = form(fake.address, retry=docmem.RetryPolicy(jitter=0)).do(
        lambda client: get(client.with_options(on_retry=notices.append)))
    assert found.id == "d1"
    assert [notice.delay for notice in notices] == [0.05, 0.05]
    assert [notice.attempt for notice in notices] == [1, 2]
    assert notices[0].why.reason == "STARTING"


def test_a_lost_connection_is_tried_a_few_times_with_growing_delays(fake, form):
    fake.script = [[LOST]]
    notices = []
    with pytest.raises(docmem.UnavailableError, match="no connection to .*: Socket closed") as why:
        form(fake.address, retry=STEADY).do(
            lambda client: get(client.with_options(on_retry=notices.append)))
    assert why.value.lost
    assert len(fake.tries) == 5
    assert [notice.delay for notice in notices] == [0.01, 0.02, 0.04, 0.08]


def test_jitter_adds_at_most_its_part(fake, form):
    fake.script = [[STARTING]] * 20 + [[v1.Document()]]
    notices = []
    form(fake.address, retry=docmem.RetryPolicy(jitter=1)).do(
        lambda client: get(client.with_options(on_retry=notices.append)))
    delays = [notice.delay for notice in notices]
    assert all(0.05 <= delay <= 0.1 for delay in delays)
    assert len(set(delays)) > 1


def test_what_may_have_happened_is_not_repeated(fake, form):
    fake.script = [[LOST]]
    with pytest.raises(docmem.UnavailableError):
        form(fake.address, retry=STEADY).do(lambda client: client.collections.create(name="law"))
    assert len(fake.tries) == 1


def test_a_policy_can_turn_it_off(fake, form):
    fake.script = [[STARTING], [v1.Document()]]
    with pytest.raises(docmem.UnavailableError):
        form(fake.address, retry=docmem.RetryPolicy(enabled=False)).do(get)
    assert len(fake.tries) == 1


def test_a_delay_past_the_deadline_ends_the_call_at_once(fake, form):
    fake.script = [[Refusal(grpc.StatusCode.UNAVAILABLE, "DRAINING", delay=30)]]
    began = time.monotonic()
    with pytest.raises(docmem.UnavailableError) as why:
        form(fake.address).do(lambda client: get(client.with_options(timeout=20)))
    assert why.value.retry_delay == 30
    assert len(fake.tries) == 1
    assert time.monotonic() - began < 10


def test_silence_ends_at_the_deadline(fake, form):
    fake.script = [[Hang()]]
    with pytest.raises(docmem.DeadlineExceededError, match="no answer from 127.0.0.1"):
        form(fake.address).do(lambda client: get(client.with_options(timeout=0.3)))
    assert fake.tries[0].gone.wait(10)


def test_an_answer_is_tried_again_before_its_first_piece(fake, form):
    fake.script = [[STARTED, LOST], [STARTED], WHOLE]
    assert form(fake.address, retry=STEADY).do(lambda client: client.ask("d1", "Why?")) == ["blue"]
    assert len(fake.tries) == 3


@pytest.mark.parametrize("end", [[], [LOST]], ids=["without its end", "lost"])
def test_an_answer_is_not_tried_again_after_its_first_piece(fake, form, end):
    fake.script = [[STARTED, DELTA, *end], WHOLE]
    with pytest.raises(docmem.UnavailableError):
        form(fake.address, retry=STEADY).do(lambda client: client.ask("d1", "Why?").read())
    assert len(fake.tries) == 1


def asked_ids(fake):
    return [v1.AskRequest.FromString(call.requests[0]).request_id for call in fake.tries]


def test_each_try_of_a_question_has_an_id_of_its_own(fake, form):
    fake.script = [[LOST], WHOLE]
    form(fake.address, retry=STEADY).do(lambda client: client.ask("d1", "Why?"))
    first, second = asked_ids(fake)
    assert first and second and first != second


def test_the_callers_id_is_kept(fake, form):
    fake.script = [[LOST], WHOLE]
    form(fake.address, retry=STEADY).do(lambda client: client.ask("d1", "Why?", request_id="mine"))
    assert asked_ids(fake) == ["mine", "mine"]


def test_an_ingestion_is_sent_anew_unless_it_replaces(fake, form):
    done = v1.IngestResponse(result=v1.IngestResult(training_job_id="j1"))
    fake.script = [[LOST], [done]]
    result = form(fake.address, retry=STEADY).do(lambda client: client.documents.ingest("text"))
    assert result.training_job_id == "j1"
    assert fake.tries[0].requests == fake.tries[1].requests
    with pytest.raises(docmem.UnavailableError):
        fake.script = [[LOST]]
        form(fake.address, retry=STEADY).do(
            lambda client: client.documents.ingest("text", "d1", replace_revision=3))
    assert len(fake.tries) == 3


def test_a_training_is_watched_on_after_a_lost_connection(fake, form):
    running = v1.TrainingEvent(job=v1.TrainingJob(state=v1.TrainingJob.STATE_TRAINING))
    ended = v1.TrainingEvent(job=v1.TrainingJob(state=v1.TrainingJob.STATE_SUCCEEDED))
    fake.script = [[running, LOST], [running, ended]]
    events = form(fake.address, retry=STEADY).do(lambda client: client.trainings.watch("j1"))
    assert events == [running, running, ended]


def test_calls_name_their_document_and_their_token(fake, form):
    client = form(fake.address, token="secret", retry=STEADY)
    client.do(get)
    client.do(lambda client: client.documents.get(collection="law", document="d1"))
    client.do(lambda client: client.documents.get(document="no id"))
    client.do(lambda client: client.admin.status())
    headers = [call.metadata.get("docmem-document") for call in fake.tries]
    assert headers == ["default/d1", "law/d1", None, None]
    assert {call.metadata["authorization"] for call in fake.tries} == {"Bearer secret"}


def test_an_answer_is_cancelled_from_another_thread(fake):
    fake.script = [[STARTED, DELTA, Hang()]]
    with docmem.Client(fake.address) as client:
        answer = client.ask("d1", "Why?")
        assert next(answer) == "blue"
        threading.Timer(0.1, answer.cancel).start()
        with pytest.raises(docmem.CancelledError):
            next(answer)
    assert fake.tries[0].gone.wait(10)


def test_an_answer_is_cancelled_while_it_waits_for_its_next_try(fake):
    fake.script = [[Refusal(grpc.StatusCode.UNAVAILABLE, "STARTING", delay=30)]]
    with docmem.Client(fake.address) as client:
        answer = client.ask("d1", "Why?")
        threading.Timer(0.3, answer.cancel).start()
        began = time.monotonic()
        with pytest.raises(docmem.CancelledError):
            answer.read()
        assert time.monotonic() - began < 10


def test_leaving_an_answer_ends_its_call(fake):
    fake.script = [[STARTED, DELTA, Hang()]]
    with docmem.Client(fake.address) as client:
        with client.ask("d1", "Why?") as answer:
            assert next(answer) == "blue"
        assert fake.tries[0].gone.wait(10)
        with pytest.raises(docmem.CancelledError):
            answer.read()


def test_an_abandoned_answer_ends_its_call(fake):
    fake.script = [[STARTED, DELTA, Hang()]]
    with docmem.Client(fake.address) as client:
        for _ in client.ask("d1", "Why?"):
            break
        gc.collect()
        assert fake.tries[0].gone.wait(10)


@pytest.mark.parametrize("call", [get, lambda client: client.ask("d1", "Why?").read()])
def test_ctrl_c_ends_a_blocking_call(fake, call):
    fake.script = [[Hang()]]
    with docmem.Client(fake.address) as client:
        threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            call(client)
        assert fake.tries[0].gone.wait(10)


def test_a_call_that_is_not_repeated_finds_a_daemon_that_came_back(form):
    with FakeDaemon() as gone:
        address = gone.address
    client = form(address, retry=STEADY)
    with pytest.raises(docmem.UnavailableError):
        client.do(get)
    with FakeDaemon(address):
        client.do(lambda client: client.collections.create(name="law"))
