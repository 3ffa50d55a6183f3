#!/usr/bin/env python3
"""DocMem at work, with the real daemon, the real client and a real model.

Ingests Debian's Social Contract at three compression ratios, trains an adapter on some questions of
demo/qa.json (or uploads one that was trained elsewhere), asks all of them five ways, restarts the
daemon and asks once more from what is on disk. Exits 1 unless the adapter, with every token of the
document evicted, is at least 30 ROUGE-L points above the base model.

`./dev demo` sets everything up and runs this.
"""

import argparse
import json
import shutil
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import demo_document
from demo_daemon import Daemon, ProgramError
from demo_report import Terminal, megabytes, one_line, print_answers, print_table
from rouge_score.rouge_scorer import RougeScorer

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT_ID = "debian-social-contract"
MAX_TOKENS = 40
REQUIRED_GAIN = 30.0
CONCURRENT_QUESTIONS = 8
TIMED_QUESTIONS = 3
POLL_S = 0.5
UNDER_WAY = ("STATE_QUEUED", "STATE_TRAINING")
RECIPE = ["--rank", "3", "--alpha", "6", "--epochs", "12", "--batch-size", "10", "--holdout", "0"]


@dataclass(frozen=True)
class Way:
    """One way to answer: who decodes, behind which cache."""

    name: str
    mode: str
    ratio: str

    @property
    def ratio_ppm(self):
        return round(float(self.ratio) * 1e6)


BASE, ADAPTER = "base", "base-kv-adapter-decode"
WAYS = [
    Way("base     ρ=0", BASE, "0"),
    Way("base     ρ=0.9", BASE, "0.9"),
    Way("base     ρ=1", BASE, "1"),
    Way("adapter  ρ=0.9", ADAPTER, "0.9"),
    Way("adapter  ρ=1", ADAPTER, "1"),
]
BASE_ALONE, ADAPTER_ALONE = WAYS[2], WAYS[4]


@dataclass(frozen=True)
class Answer:
    text: str
    rouge_l: float


class DemoError(Exception):
    """The demo didn't show what it must."""


def ask(daemon, way, question, max_tokens=MAX_TOKENS):
    arguments = ["--mode", way.mode, "--ratio", way.ratio, "--max-tokens", str(max_tokens)]
    reply = daemon.call("ask", DOCUMENT_ID, question, *arguments)
    if reply["finished"]["documentTokensPrefilled"] != 0:
        raise DemoError(f"{way.name}: the document was read again, though its cache is stored")
    return reply


def start(terminal, daemon):
    began = time.monotonic()
    model = daemon.start()["model"]
    terminal.line(
        f"    {model['name']} ({model['family']}, {model['parameters']} parameters, "
        f"{model['dtype']}, {model['device']}), ready in {time.monotonic() - began:.1f} s"
    )


def stop(terminal, daemon):
    code = daemon.stop()
    if code != 0:
        raise DemoError(f"docmemd ended with exit code {code} after SIGTERM")
    terminal.line("    SIGTERM: exit code 0")


def ingest(terminal, daemon, path, kv_dtype):
    ratios = list(dict.fromkeys(way.ratio for way in WAYS))
    began = time.monotonic()
    result = daemon.call("ingest", str(path), "--id", DOCUMENT_ID, "--ratio", ",".join(ratios),
                         *(["--kv-dtype", kv_dtype] if kv_dtype else []))
    seconds = time.monotonic() - began
    document = result["document"]
    terminal.line(
        f"    {document['textBytes']} bytes, {document['documentTokens']} tokens, caches for ρ = "
        f"{', '.join(ratios)} from one reading, {seconds:.1f} s"
    )
    return document


def train_adapter(terminal, daemon, folder, questions):
    """Trains on the questions that are `seen` and on their paraphrases; returns the adapter."""
    pairs = [{"question": wording, "answer": item["answer"]}
             for item in questions if item["seen"]
             for wording in (item["question"], *item["paraphrases"])]
    file = folder / "pairs.jsonl"
    file.write_text("".join(json.dumps(pair) + "\n" for pair in pairs), encoding="utf-8")
    began = time.monotonic()
    job = daemon.call("train", DOCUMENT_ID, "--qa", str(file), *RECIPE)
    shown = 0
    while job["state"] in UNDER_WAY:
        time.sleep(POLL_S)
        job = daemon.call("jobs", "show", job["id"])
        for step in range(shown + 1, job["step"] + 1):
            terminal.progress(step, job["totalSteps"], f"steps, loss {job['loss']:.3f}")
        shown = job["step"]
    if job["state"] != "STATE_SUCCEEDED":
        raise DemoError(f"the training ended in {job['state']}: {job['message']}")
    terminal.line(
        f"    {len(pairs)} pairs, {job['step']} steps, loss {job['loss']:.3f}, "
        f"{job['tokensPerSecond']:.0f} tokens/s, {time.monotonic() - began:.1f} s"
    )
    return describe_adapter(terminal, daemon)


def upload_adapter(terminal, daemon, peft_folder):
    """Gives the document an adapter of a PEFT folder; returns the adapter."""
    daemon.call("adapter", "upload", DOCUMENT_ID, str(peft_folder))
    return describe_adapter(terminal, daemon)


def describe_adapter(terminal, daemon):
    adapter = daemon.call("adapter", "show", DOCUMENT_ID)
    modules = adapter["modules"]
    terminal.line(
        f"    version {adapter['version']}: rank {max(m['rank'] for m in modules)} on "
        f"{', '.join(m['name'].removesuffix('_proj') for m in modules)}, "
        f"{megabytes(int(adapter['deviceBytes']))} in memory"
    )
    return adapter


def ask_all(terminal, daemon, questions):
    """{way: [Answer of each question]}; several questions at a time share the engine's steps."""
    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    answers = {way.name: [] for way in WAYS}
    jobs = [(way, item) for way in WAYS for item in questions]
    began = time.monotonic()
    with ThreadPoolExecutor(CONCURRENT_QUESTIONS) as pool:
        replies = pool.map(lambda job: ask(daemon, job[0], job[1]["question"]), jobs)
        tokens = 0
        for done, ((way, item), reply) in enumerate(zip(jobs, replies), start=1):
            score = scorer.score(item["answer"], reply["answer"])["rougeL"].fmeasure
            answers[way.name].append(Answer(reply["answer"], 100 * score))
            tokens += reply["finished"]["answerTokens"]
            terminal.progress(done, len(jobs), "asked")
    seconds = time.monotonic() - began
    terminal.line(f"    {len(jobs)} answers, {tokens} tokens, {seconds:.1f} s")
    return answers


def first_token_seconds(daemon, way, questions):
    """Median over a few questions asked one at a time, with memories loaded."""
    replies = [ask(daemon, way, item["question"], 1) for item in questions[:TIMED_QUESTIONS]]
    return statistics.median(reply["finished"]["firstTokenSeconds"] for reply in replies)


def mean_score(answers, questions, seen):
    return statistics.mean(
        answer.rouge_l for answer, item in zip(answers, questions) if item["seen"] == seen
    )


def table_rows(daemon, document, adapter, questions, answers):
    caches = {cache["ratioPpm"]: cache for cache in document["caches"]}
    return [
        {
            "name": way.name,
            "trained": mean_score(answers[way.name], questions, True),
            "new": mean_score(answers[way.name], questions, False),
            "cache_bytes": int(caches[way.ratio_ppm]["deviceBytes"]),
            "adapter_bytes": int(adapter["deviceBytes"]) if way.mode == ADAPTER else 0,
            "first_token_seconds": first_token_seconds(daemon, way, questions),
        }
        for way in WAYS
    ]


def ask_from_disk(terminal, daemon, item):
    reply = ask(daemon, ADAPTER_ALONE, item["question"])
    finished = reply["finished"]
    width = terminal.columns - 6
    terminal.line(f"    {one_line(item['question'], width)}")
    terminal.line(f"    {terminal.green(one_line(reply['answer'], width))}")
    terminal.line(
        f"    documentTokensPrefilled {finished['documentTokensPrefilled']}, "
        f"loaded from disk in {1000 * finished['seconds']['load']:.0f} ms, "
        f"first token after {1000 * finished['firstTokenSeconds']:.0f} ms"
    )


def check_gain(terminal, rows):
    scores = {row["name"]: row["trained"] for row in rows}
    gain = scores[ADAPTER_ALONE.name] - scores[BASE_ALONE.name]
    text = f"Without any token of the document the adapter gains {gain:.1f} ROUGE-L points"
    if gain < REQUIRED_GAIN:
        raise DemoError(f"{text}; at least {REQUIRED_GAIN:.0f} are required")
    terminal.step(f"{text} (required: {REQUIRED_GAIN:.0f})")


def run(terminal, options):
    folder = options.folder
    shutil.rmtree(folder / "data", ignore_errors=True)
    (folder / "docmemd.log").unlink(missing_ok=True)
    questions = json.loads((ROOT / "demo/qa.json").read_text(encoding="utf-8"))["questions"]
    path = demo_document.provide(folder / "social-contract.txt")
    with Daemon(options.binaries, options.model, folder) as daemon:
        terminal.step("Starting docmemd")
        start(terminal, daemon)
        terminal.step("Ingesting Debian's Social Contract")
        document = ingest(terminal, daemon, path, options.kv_dtype)
        if options.adapter:
            terminal.step(f"Uploading its adapter from {options.adapter}")
            adapter = upload_adapter(terminal, daemon, options.adapter)
        else:
            terminal.step("Training its adapter")
            adapter = train_adapter(terminal, daemon, folder, questions)
        terminal.step(f"Asking {len(questions)} questions {len(WAYS)} ways")
        answers = ask_all(terminal, daemon, questions)
        print_answers(terminal, questions, WAYS, answers)
        rows = table_rows(daemon, document, adapter, questions, answers)
        full_bytes = int(document["caches"][0]["fullBytes"])
        terminal.line()
        terminal.step(f"Results (full KV cache: {megabytes(full_bytes)})")
        print_table(terminal, rows, full_bytes)
        terminal.line()
        terminal.step("Restarting docmemd and asking from what is on disk")
        stop(terminal, daemon)
        start(terminal, daemon)
        ask_from_disk(terminal, daemon, questions[0])
        stop(terminal, daemon)
    check_gain(terminal, rows)


def parse_options():
    parser = argparse.ArgumentParser(description="Shows DocMem at work.")
    parser.add_argument("--binaries", type=Path, default=ROOT / "build/release/bin")
    parser.add_argument("--model", type=Path, default=ROOT / "build/models/smollm2-135m-instruct")
    parser.add_argument("--folder", type=Path, default=ROOT / "build/demo", help="for its files")
    parser.add_argument("--adapter", type=Path, metavar="FOLDER",
                        help="upload this PEFT adapter, such as demo/adapter, instead of training")
    parser.add_argument("--kv-dtype", help="of the caches, such as int8; default: the model's")
    return parser.parse_args()


def main():
    terminal = Terminal()
    began = time.monotonic()
    try:
        run(terminal, parse_options())
    except FileNotFoundError as error:
        sys.exit(f"demo: {error.filename} isn't there: run ./dev demo, which makes what is missing")
    except (DemoError, ProgramError, demo_document.DocumentError, OSError) as error:
        sys.exit(f"{terminal.red('demo:')} {error}")
    except KeyboardInterrupt:
        sys.exit("\ndemo: stopped")
    terminal.line(f"    {time.monotonic() - began:.0f} s in all")


if __name__ == "__main__":
    main()
