"""docmem eval: questions in several ways, scored, stored with the document."""

import json
import subprocess

import pytest
from client import refused
from daemon import BINARIES
from folders import adapter
from rouge_score.rouge_scorer import RougeScorer
from stubs import v1
from texts import document

QUESTIONS = [
    {"question": "Which door is blue?", "answers": ["The ninth one.", "Door nine"]},
    {"question": "Who paints it?", "answer": "My aunt, twice a week.", "note": "ignored"},
    {"question": "When?", "answer": "At six."},
]
WAYS = [(mode, ratio) for mode in (v1.MODE_BASE, v1.MODE_BASE_KV_ADAPTER_DECODE)
        for ratio in (0, 900_000)]


@pytest.fixture(scope="module")
def client(daemon):
    client = daemon.client()
    client.ingest(document("d"), "d", ratio_ppm=[900_000, 0])
    client.upload("d", adapter())
    return client


@pytest.fixture(scope="module")
def run(daemon, folder):
    questions = folder / "questions.jsonl"
    questions.write_text("\n".join(json.dumps(item) for item in QUESTIONS) + "\n\n")

    def run(*arguments, code=0):
        done = subprocess.run(
            [BINARIES / "docmem", "--address", daemon.address, "--output", "json", "eval", *arguments,
             "--qa", questions, "--max-tokens", "12"],
            capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout or done.stderr)

    return run


def test_every_way_is_scored_and_the_table_is_stored(client, run):
    table = run("d")
    scorer = RougeScorer(["rougeL"], use_stemmer=False)
    caches = {cache.ratio_ppm: cache.device_bytes for cache in client.document("d").caches}
    adapter_bytes = client.adapters.Get(v1.GetAdapterRequest(document="d")).device_bytes
    assert len(table["rows"]) == len(WAYS) and table["adapterVersion"] == 1
    for row, (mode, ratio) in zip(table["rows"], WAYS, strict=True):
        assert (row["mode"], row["ratioPpm"]) == (v1.Mode.Name(mode), ratio)
        assert row["questions"] == len(QUESTIONS) and row["firstTokenSeconds"] > 0
        scores = []
        for item in QUESTIONS:
            text = client.ask("d", item["question"], mode=mode, ratio=ratio, max_tokens=12).text
            scores.append(max(scorer.score(reference, text)["rougeL"].fmeasure
                              for reference in item.get("answers") or [item["answer"]]))
        assert row["rougeL"] == pytest.approx(sum(scores) / len(scores))
        with_adapter = mode == v1.MODE_BASE_KV_ADAPTER_DECODE
        assert int(row["memoryBytes"]) == caches[ratio] + with_adapter * adapter_bytes
    stored = client.document("d").evaluation
    assert [row.rouge_l for row in stored.rows] == [row["rougeL"] for row in table["rows"]]
    assert stored.HasField("create_time") and stored.questions_digest == table["questionsDigest"]


def test_a_table_can_be_printed_only_and_caches_built(client, run):
    client.documents.SetEvaluation(v1.SetEvaluationRequest(document="d"))
    assert not client.document("d").HasField("evaluation")
    table = run("d", "--ratio", "0.5", "--mode", "base", "--build", "--no-store")
    assert [row["ratioPpm"] for row in table["rows"]] == [500_000]
    assert not client.document("d").HasField("evaluation")
    assert run("d", "--ratio", "0.7", code=1)["error"]["reason"] == "CACHE_NOT_FOUND"


@pytest.mark.parametrize("row, field", [
    (v1.Evaluation.Row(mode=v1.MODE_BASE, rouge_l=1.5), "rouge_l"),
    (v1.Evaluation.Row(mode=v1.MODE_BASE, rouge_l=float("nan")), "rouge_l"),
    (v1.Evaluation.Row(mode=v1.MODE_BASE, ratio_ppm=2_000_000), "ratio_ppm"),
    (v1.Evaluation.Row(), "mode"),
    (v1.Evaluation.Row(mode=v1.MODE_BASE, first_token_seconds=-1), "first_token_seconds"),
])
def test_tables_that_cannot_be_are_refused(client, row, field):
    request = v1.SetEvaluationRequest(document="d", evaluation=v1.Evaluation(rows=[row]))
    why = refused(lambda: client.documents.SetEvaluation(request),
                  "INVALID_ARGUMENT", "INVALID_FIELD")
    assert field in why.message
    refused(lambda: client.documents.SetEvaluation(
        v1.SetEvaluationRequest(document="d", evaluation=v1.Evaluation())),
            "INVALID_ARGUMENT", "INVALID_FIELD")
