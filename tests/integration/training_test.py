"""Training in the daemon: adapters that answer, beside questions, across cancels and crashes."""

import json
import subprocess
import time

import pytest
from client import refused
from daemon import BINARIES, eventually
from stubs import v1
from texts import document

State = v1.TrainingJob
DOORS = [
    ("Which door is blue?", "The ninth one."),
    ("Who paints it?", "My aunt, twice a week."),
    ("What is hidden there?", "Three silver keys."),
    ("When does the ferry leave?", "At six."),
]
# Enough for the tiny model to know them by heart.
BY_HEART = {"epochs": 150, "learning_rate": 0.02, "batch_size": 4, "rank": 8}
LONG = {"epochs": 1000, "batch_size": 1}


def ended(client, job):
    def end():
        now = client.training(job.id)
        return now if now.state >= State.STATE_SUCCEEDED else None

    return eventually(end, 120)


def hash_of(client, document, version=1):
    return client.adapters.Get(v1.GetAdapterRequest(document=document, version=version)).hash


@pytest.fixture(scope="module")
def client(daemon):
    return daemon.client()


def test_the_trained_adapter_answers_by_heart_and_stops_by_itself(client):
    client.ingest(document("heart"), "heart", ratio_ppm=[1_000_000])  # as it is trained
    job = client.train("heart", DOORS, **BY_HEART)
    assert job.state in (State.STATE_QUEUED, State.STATE_TRAINING) and job.options.alpha == 16
    jobs, steps = client.watch_training(job.id)
    assert jobs[-1].state == State.STATE_SUCCEEDED, jobs[-1].message
    assert jobs[-1].adapter_version == 1 and jobs[-1].qa_given == len(DOORS)
    assert [step.step for step in steps] == sorted({step.step for step in steps})
    assert steps[-1].step == steps[-1].total_steps == 150
    assert steps[-1].loss < 0.1 < steps[0].loss
    adapter = client.adapters.Get(v1.GetAdapterRequest(document="heart"))
    assert adapter.training_job_id == job.id and adapter.version == 1
    for question, answer in DOORS:
        given = client.ask("heart", question, mode=v1.MODE_BASE_KV_ADAPTER_DECODE)
        assert given.text == answer
        assert given.finished.reason == v1.Finished.REASON_END_OF_TURN


def test_questions_are_answered_while_it_trains(client):
    client.ingest(document("busy"), "busy")
    alone = client.ask("busy", mode=v1.MODE_BASE).tokens
    job = client.train("busy", DOORS, **LONG)
    eventually(lambda: client.training(job.id).step > 2)
    for _ in range(3):
        assert client.ask("busy", mode=v1.MODE_BASE).tokens == alone
    client.ingest(document("meanwhile"), "meanwhile")
    assert client.training(job.id).state == State.STATE_TRAINING
    cancelled = client.trainings.Cancel(v1.CancelTrainingRequest(job_id=job.id))
    assert cancelled.state == State.STATE_CANCELLED
    refused(lambda: client.trainings.Cancel(v1.CancelTrainingRequest(job_id=job.id)),
            "FAILED_PRECONDITION", "JOB_FINISHED")
    assert client.document("busy").adapter_count == 0


def test_ingestion_can_ask_for_it(client):
    result = client.ingest(document("after"), "after",
                           train_after=v1.TrainingOptions(
                               supervision=v1.SUPERVISION_RAW_CONTEXT, epochs=1))
    job = ended(client, client.training(result.training_job_id))
    assert job.state == State.STATE_SUCCEEDED, job.message
    assert client.document("after").current_adapter_version == 1
    refused(lambda: client.ingest(document("no"), "no", train_after=v1.TrainingOptions(rank=99)),
            "INVALID_ARGUMENT", "INVALID_FIELD")
    refused(lambda: client.document("no"), "NOT_FOUND", "DOCUMENT_NOT_FOUND")


def test_lists_are_newest_first_and_by_document(client):
    for name in ("one", "two"):
        client.ingest(document(name), name)
    ids = [ended(client, client.train(name, DOORS, epochs=1)).id for name in ("one", "two", "one")]
    listed = client.trainings.List(v1.ListTrainingJobsRequest(document="one")).jobs
    assert [job.id for job in listed] == [ids[2], ids[0]]
    first = client.trainings.List(v1.ListTrainingJobsRequest(page_size=1))
    assert [job.id for job in first.jobs] == [ids[2]] and first.next_page_token
    client.delete("one")
    refused(lambda: client.training(ids[0]), "NOT_FOUND", "JOB_NOT_FOUND")


@pytest.mark.parametrize("options", [
    {"rank": 0}, {"dropout": 1.5}, {"epochs": 5000}, {"modules": ["embed"]},
    {"synthetic_pairs": 9999}, {"synthetic_pairs": 0},
    {"supervision": v1.SUPERVISION_RAW_CONTEXT, "synthetic_pairs": 3}, {"learning_rate": -1.0},
])
def test_options_out_of_range_are_refused_by_name(client, options):
    client.ingest(document("options"), "options")
    reason = "LIMIT_EXCEEDED" if options.get("synthetic_pairs") == 9999 else "INVALID_FIELD"
    why = refused(lambda: client.train("options", **options), "INVALID_ARGUMENT", reason)
    named = "qa" if options.get("supervision") else next(iter(options))
    assert named in why.message, why.message


def test_the_command_follows_it(daemon, client, tmp_path):
    client.ingest(document("command"), "command")
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text("".join(json.dumps({"question": q, "answer": a}) + "\n" for q, a in DOORS))
    done = subprocess.run(
        [BINARIES / "docmem", "--address", daemon.address, "train", "command", "--qa", pairs,
         "--epochs", "2", "--keep-current", "--follow"],
        capture_output=True, text=True, timeout=120, check=True)
    assert "succeeded" in done.stdout and "4 given" in done.stdout
    made = client.document("command")
    assert (made.adapter_count, made.current_adapter_version) == (1, 0)


@pytest.mark.parametrize("gently", [True, False])
def test_a_restart_goes_on_to_the_same_weights(make_daemon, gently):
    """With other ids, since the text and all else that training sees are the same."""
    options = {"epochs": 60, "batch_size": 1, "dropout": 0.1}
    daemon = make_daemon("--checkpoint-seconds", 0).start()
    client = daemon.client()
    for name in ("whole", "cut"):
        client.ingest(document("same"), name)
    assert ended(client, client.train("whole", DOORS, **options)).state == State.STATE_SUCCEEDED
    wanted = hash_of(client, "whole")

    job = client.train("cut", DOORS, **options)
    behind = client.train("cut", DOORS, epochs=1)
    eventually(lambda: client.training(job.id).step > 40)
    began = time.monotonic()
    client = daemon.restart(gently).client()
    print(f"restart {time.monotonic() - began:.1f} s")
    resumed = client.training(job.id)
    assert resumed.step > 10 or resumed.state == State.STATE_SUCCEEDED  # not from the start
    assert ended(client, behind).adapter_version == 2
    assert client.training(job.id).state == State.STATE_SUCCEEDED
    assert hash_of(client, "cut") == wanted
    assert hash_of(client, "cut", version=2) != wanted
    left = 'docmem_resident_items{kind="checkpoint",tier="disk"}'
    eventually(lambda: daemon.metrics()[left] == 0)  # a job has ended before its file is gone
