"""Both clients against the real daemon."""

import asyncio
import socket
import threading

import docmem
import pytest
from daemon import Daemon, eventually
from docmem import v1
from folders import ADAPTERS
from google.protobuf.field_mask_pb2 import FieldMask
from texts import document

ADAPTER = ADAPTERS / "all-modules"
QUESTION = "Which door is blue?"
ENDLESS = 100_000  # tokens: minutes on the tiny model, within its positions


@pytest.fixture(scope="module")
def name(daemon):
    """A document with two caches and an adapter."""
    with docmem.Client(daemon.address) as client:
        client.documents.ingest(document("d"), "d", ratios=[0.5, 0])
        client.adapters.upload("d", ADAPTER)
    return "d"


@pytest.fixture
def both(daemon, form):
    return form(daemon.address)


def kind(both):
    """For names that differ between the two clients."""
    return type(both).__name__


def test_an_ingestion_tells_its_progress_and_builds_its_caches(both):
    seen = []
    result = both.do(lambda client: client.documents.ingest(
        document(f"ingested {kind(both)}"), ratios=[0.9, 0], title="A report",
        labels={"kind": "report"}, progress=seen.append))
    assert [cache.ratio_ppm for cache in result.document.caches] == [900000, 0]
    assert result.document.title == "A report"
    phases = [progress.phase for progress in seen]
    assert phases[0] == "sending" and "prefilling" in phases and phases[-1] == "publishing"
    assert seen[0].fraction == 1.0
    listed = both.do(lambda client: client.documents.list(labels={"kind": "report"}))
    assert result.document.id in [found.id for found in listed]


def test_an_answer_comes_in_pieces_and_ends(both, name):
    answers = []

    def ask(client):
        answers.append(client.ask(
            name, QUESTION, max_tokens=24, mode=v1.MODE_BASE, ratio=0.5, log_probabilities=True))
        return answers[0]

    pieces = both.do(ask)
    [answer] = answers
    assert "".join(pieces) == answer.text
    assert answer.finished.reason == v1.Finished.REASON_LENGTH
    assert len(answer.log_probabilities) == answer.finished.answer_tokens == 24
    assert (answer.started.document, answer.started.ratio_ppm) == (name, 500000)
    assert answer.started.request_id == answer.request_id
    again = both.do(lambda client: client.ask(
        name, QUESTION, max_tokens=24, mode=v1.MODE_BASE, ratio=0.5).read())
    assert again == answer.text


def test_what_is_asked_reaches_the_model(both, name):
    def read(**options):
        return both.do(lambda client: client.ask(
            name, QUESTION, max_tokens=16, ratio=0.0, **options).read())

    plain = read(mode=v1.MODE_BASE)
    assert plain != read(mode=v1.MODE_BASE_KV_ADAPTER_DECODE)
    assert plain != read(mode=v1.MODE_BASE, instruction="Answer with one word.")
    assert plain != read(mode=v1.MODE_BASE, history=[("Who?", "Nobody.")])
    assert plain != read(mode=v1.MODE_BASE, sampling=v1.Sampling(temperature=2, seed=7))


def test_a_score_is_the_sum_of_its_tokens(both, name):
    scored = both.do(lambda client: client.score(name, QUESTION, "the door", ratio=0.5))
    assert scored.log_probability == pytest.approx(
        sum(token.log_probability for token in scored.tokens))


def test_errors_name_what_is_wrong(both, name):
    with pytest.raises(docmem.NotFoundError) as absent:
        both.do(lambda client: client.documents.get(document="absent"))
    assert absent.value.reason == "DOCUMENT_NOT_FOUND"
    with pytest.raises(docmem.InvalidArgumentError) as field:
        both.do(lambda client: client.ask(name, "", ratio=0.5).read())
    assert (field.value.reason, field.value.field) == ("INVALID_FIELD", "prompt.question")
    with pytest.raises(docmem.AlreadyExistsError) as exists:
        both.do(lambda client: client.documents.ingest("another text", name))
    assert exists.value.reason == "DOCUMENT_EXISTS"


def idle(daemon):
    with docmem.Client(daemon.address) as client:
        return client.admin.status().queue.running == 0


def test_a_deadline_ends_an_answer_here_and_there(both, daemon, name):
    with pytest.raises(docmem.DeadlineExceededError):
        both.do(lambda client: client.with_options(timeout=0.3).ask(
            name, QUESTION, max_tokens=ENDLESS, ratio=0.0).read())
    eventually(lambda: idle(daemon))


def test_a_cancelled_answer_ends_there_too(daemon, name):
    with docmem.Client(daemon.address) as client:
        answer = client.ask(name, QUESTION, max_tokens=ENDLESS, ratio=0.0)
        next(answer)
        answer.cancel()
        with pytest.raises(docmem.CancelledError):
            answer.read()
    eventually(lambda: idle(daemon))


def test_a_cancelled_task_ends_there_too(daemon, name):
    async def leave():
        async with docmem.AsyncClient(daemon.address) as client:
            answer = client.ask(name, QUESTION, max_tokens=ENDLESS, ratio=0.0)
            await anext(answer)
            reader = asyncio.create_task(answer.read())
            await asyncio.sleep(0.05)
            reader.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reader
            while (await client.admin.status()).queue.running:
                await asyncio.sleep(0.02)

    asyncio.run(asyncio.wait_for(leave(), 30))


def test_an_async_answer_can_be_cancelled_without_its_task(daemon, name):
    async def leave():
        async with docmem.AsyncClient(daemon.address) as client:
            answer = client.ask(name, QUESTION, max_tokens=ENDLESS, ratio=0.0)
            await anext(answer)
            answer.cancel()
            with pytest.raises(docmem.CancelledError):
                await answer.read()

    asyncio.run(leave())


def test_another_client_can_abort_an_answer(both, daemon, name):
    with docmem.Client(daemon.address) as asker:
        answer = asker.ask(name, QUESTION, max_tokens=ENDLESS, ratio=0.0)
        next(answer)
        assert both.do(lambda client: client.abort(request_id=answer.request_id)).found
        with pytest.raises(docmem.CancelledError) as aborted:
            answer.read()
    assert aborted.value.reason == "ABORTED_BY_CLIENT"


def test_threads_share_a_client(daemon, name):
    with docmem.Client(daemon.address) as client:
        def ask():
            texts.append(client.ask(name, QUESTION, max_tokens=8, ratio=0.5).read())

        texts = []
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(texts) == 8 and len(set(texts)) == 1


def test_an_adapter_comes_back_as_it_went(both, name, tmp_path):
    sent = []
    uploaded = both.do(lambda client: client.adapters.upload(name, ADAPTER, progress=sent.append))
    both.do(lambda client: client.adapters.download(
        name, tmp_path / "back", version=uploaded.version))
    assert sent[-1].fraction == 1.0
    files = {path.name: path.read_bytes() for path in (tmp_path / "back").iterdir()}
    assert files == {file: (ADAPTER / file).read_bytes() for file in files}
    assert "adapter_model.safetensors" in files
    assert uploaded in both.do(lambda client: client.adapters.list(document=name))
    with pytest.raises(FileExistsError, match="already there"):
        both.do(lambda client: client.adapters.download(name, tmp_path / "back"))


def test_an_exported_document_can_be_read_in_again(both, name, tmp_path):
    both.do(lambda client: client.documents.export(name, tmp_path / "d.docmem"))
    copy = f"copy-{kind(both)}"
    imported = both.do(lambda client: client.documents.import_(tmp_path / "d.docmem", copy))
    assert imported.id == copy
    assert both.do(lambda client: client.documents.text(copy)) == document("d")
    assert list(tmp_path.iterdir()) == [tmp_path / "d.docmem"]


def test_collections_are_made_changed_and_deleted(both):
    law = f"law-{kind(both)}"
    made = both.do(lambda client: client.collections.create(
        name=law, settings=v1.CollectionSettings(default_ratio_ppm=500000)))
    changed = both.do(lambda client: client.collections.update(
        name=law,
        settings=v1.CollectionSettings(retain_text=False),
        update_mask=FieldMask(paths=["retain_text"]),
        revision=made.revision,
    ))
    assert changed.settings.default_ratio_ppm == 500000
    ingested = both.do(lambda client: client.documents.ingest("A text.", collection=law))
    assert not ingested.document.text_retained
    names = [found.name for found in both.do(lambda client: client.collections.list(page_size=1))]
    assert {"default", law} <= set(names)
    both.do(lambda client: client.collections.delete(name=law, force=True))
    with pytest.raises(docmem.NotFoundError):
        both.do(lambda client: client.collections.get(name=law))


def test_a_training_is_watched_to_its_end(both):
    trained = f"trained-{kind(both)}"
    both.do(lambda client: client.documents.ingest(document(trained), trained, ratios=[0.5]))
    # Steps come from the moment one watches: enough of them that some are left by then.
    options = v1.TrainingOptions(
        qa=[v1.QaPair(question="Who?", answer="Nobody.")], epochs=300, rank=2, holdout=0)
    job = both.do(lambda client: client.trainings.start(document=trained, options=options))
    events = both.do(lambda client: client.trainings.watch(job.id))
    assert any(event.HasField("step") for event in events)
    assert events[-1].job.state == v1.TrainingJob.STATE_SUCCEEDED
    current = both.do(lambda client: client.adapters.get(document=trained))
    assert current.version == events[-1].job.adapter_version
    evaluation = v1.Evaluation(rows=[v1.Evaluation.Row(mode=v1.MODE_BASE, questions=1, rouge_l=1)])
    stored = both.do(lambda client: client.documents.set_evaluation(
        document=trained, evaluation=evaluation))
    assert stored.evaluation.rows == evaluation.rows


def test_caches_are_built_and_deleted(both, name):
    built = both.do(lambda client: client.documents.build_cache(
        name, ratios=[0.25], profiles=[v1.PROFILE_KNORM]))
    [cache] = built.caches
    assert (cache.ratio_ppm, cache.profile) == (250000, v1.PROFILE_KNORM)
    assert both.do(lambda client: client.documents.delete_cache(
        document=name, cache_id=cache.id)).deleted


def test_a_document_is_updated_and_prefetched(both, name):
    title = f"Of {kind(both)}"
    updated = both.do(lambda client: client.documents.update(
        document=name, values=v1.Document(title=title), update_mask=FieldMask(paths=["title"])))
    assert updated.title == title
    loaded = both.do(lambda client: client.documents.prefetch(documents=[name], wait=True))
    assert loaded.items[0].tier == v1.TIER_DEVICE
    residents = both.do(lambda client: client.admin.residents(page_size=1))
    assert name in [item.document for item in residents]


def test_the_daemon_tells_its_status(both):
    status = both.do(lambda client: client.admin.status())
    assert status.phase == v1.GetStatusResponse.PHASE_SERVING
    assert both.do(lambda client: client.admin.drain()).draining
    assert not both.do(lambda client: client.admin.drain(undo=True)).draining


def test_a_restart_is_survived(form, tmp_path):
    daemon = Daemon(tmp_path, "--listen", f"127.0.0.1:{free_port()}").start()
    try:
        client = form(daemon.address, retry=docmem.RetryPolicy(max_attempts=30))
        client.do(lambda client: client.documents.ingest(document("r"), "r", ratios=[0.5]))
        daemon.kill()
        notices = []

        def read(client):
            back.start()
            patient = client.with_options(on_retry=notices.append)
            return patient.ask("r", QUESTION, max_tokens=4).read()

        back = threading.Timer(0.3, daemon.start)
        assert client.do(read)
        back.join()
        assert notices and notices[0].why.lost
    finally:
        daemon.end()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
