"""Starting, restarting, and what a start refuses."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import grpc
import pytest
from client import refusal, refused
from daemon import BINARIES, NOT_SERVING, SERVING, SETTING_FREE, TINY_LLAMA, eventually
from folders import adapter
from stubs import v1
from texts import document

Phase = v1.GetStatusResponse.Phase
# Large enough that its load can be watched.
REAL_MODEL = Path(os.environ["DOCMEM_SMOLLM2"])


def run_docmemd(*arguments, **environment):
    return subprocess.run(
        [BINARIES / "docmemd", *arguments],
        env={**SETTING_FREE, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_while_the_model_loads_only_status_and_liveness_answer(make_daemon):
    daemon = make_daemon("--dtype", "auto", "--device-budget", "64MiB", model=REAL_MODEL).launch()
    client = daemon.client()
    status = client.status()
    assert status.phase in (Phase.PHASE_OPENING_REGISTRY, Phase.PHASE_LOADING_MODEL)
    assert not status.HasField("model")
    assert status.version and status.api_revision > 0 and status.limits.max_text_bytes > 0
    assert daemon.liveness() == SERVING
    assert daemon.readiness() == NOT_SERVING
    assert daemon.health("docmem.v1.QueryService") == NOT_SERVING
    for call in (
        lambda: client.ask("any"),
        lambda: client.ingest("text", "any"),
        lambda: client.document("any"),
        lambda: client.residents(),
        lambda: client.admin.Drain(v1.DrainRequest()),
    ):
        assert refused(call, "UNAVAILABLE", "STARTING").retry

    phases, parts = [status.phase], [status.load_progress]

    def serving():
        seen = client.status()
        phases.append(seen.phase)
        parts.append(seen.load_progress)
        return seen.phase == Phase.PHASE_SERVING

    eventually(serving, 120)
    assert phases == sorted(phases) and Phase.PHASE_LOADING_MODEL in phases
    assert parts == sorted(parts) and parts[-1] == 1.0
    eventually(lambda: daemon.readiness() == SERVING)
    assert client.status().model.family == "llama"
    assert daemon.stop() == 0


def test_a_signal_while_the_model_loads_ends_the_process_with_success(make_daemon):
    daemon = make_daemon("--dtype", "auto", "--device-budget", "64MiB", model=REAL_MODEL).launch()
    assert daemon.client().status().phase != Phase.PHASE_SERVING
    daemon.terminate()
    assert daemon.wait(30) == 0
    events = [line["event"] for line in daemon.log_lines()]
    assert "serving" not in events and events[-1] == "stopped"


def test_status_tells_model_limits_and_budgets(client):
    status = client.status()
    assert status.phase == Phase.PHASE_SERVING and not status.draining
    assert status.model.name == "tiny-llama" and status.model.dtype == "float32"
    assert (status.model.layers, status.model.positions, status.model.vocabulary) == (
        2, 131072, 600)
    assert status.model.prompt_format == "chatml"
    for digest in ("weights", "config", "tokenizer", "prompt_format"):
        assert len(getattr(status.model, f"{digest}_digest")) in (32, 64), digest
    assert status.limits.max_message_bytes == 4 << 20
    assert status.limits.max_adapter_rank == 64
    budgets = {tier.tier: tier.budget_bytes for tier in status.tiers}
    assert budgets[v1.TIER_DEVICE] == 64 << 20 and budgets[v1.TIER_DISK] > 0
    assert status.collections == 1


def test_documents_adapters_and_pins_survive_a_restart(make_daemon):
    daemon = make_daemon().start()
    client = daemon.client()
    client.collections.Create(v1.CreateCollectionRequest(name="books"))
    for name in ("pinned", "plain"):
        client.ingest(document(name), name, collection="books", ratio_ppm=[900000, 0],
                      title=name, labels={"kind": "report"}, pin=name == "pinned")
        client.upload(name, adapter(), collection="books")
    answers = {name: client.ask(name, collection="books") for name in ("pinned", "plain")}
    before = [client.document(name, collection="books") for name in ("pinned", "plain")]
    generation = client.status().generation

    daemon.restart()
    client = daemon.client()
    status = client.status()
    assert status.generation and status.generation != generation
    assert (status.documents, status.caches, status.adapters) == (2, 4, 2)
    assert [client.document(name, collection="books") for name in ("pinned", "plain")] == before
    # Fault 75: what was wished to be loaded is loaded again, and nothing else.
    eventually(lambda: len(client.residents()) == 2)
    residents = client.residents()
    assert {item.document for item in residents} == {"pinned"}
    assert all(item.pinned and item.tier == v1.TIER_DEVICE for item in residents)
    # Fault 40: no token of a stored document is computed again.
    for name, found in (("pinned", v1.TIER_DEVICE), ("plain", v1.TIER_DISK)):
        eventually(lambda: not any(item.loading for item in client.residents()))
        answer = client.ask(name, collection="books")
        assert answer.finished.document_tokens_prefilled == 0
        assert (answer.started.cache_tier, answer.started.adapter_tier) == (found, found)
        assert answer.tokens == answers[name].tokens
        assert answer.log_probabilities == pytest.approx(answers[name].log_probabilities, abs=1e-4)
    loads = daemon.metrics()['docmem_loads_total{kind="cache",result="ok",tier="device"}']
    assert loads == 2


def test_a_killed_daemon_comes_back_with_what_it_had(make_daemon):
    daemon = make_daemon().start()
    client = daemon.client()
    client.ingest(document("kept"), "kept", pin=True)
    answer, generation = client.ask("kept"), client.status().generation
    daemon.kill()
    client = daemon.start().client()
    assert client.status().generation != generation
    assert client.ask("kept").tokens == answer.tokens
    eventually(lambda: [item.document for item in client.residents()] == ["kept"])


def test_one_daemon_per_data_folder(daemon, client, make_daemon):
    code, log = make_daemon("--data", daemon.data).refusal()
    assert code == 1 and "another process" in log
    assert client.status().phase == Phase.PHASE_SERVING


@pytest.mark.parametrize("listener", ["--listen", "--health-listen", "--metrics-listen"])
def test_one_daemon_per_port(daemon, client, make_daemon, listener):
    taken = {
        "--listen": daemon.address,
        "--health-listen": daemon.health_address,
        "--metrics-listen": daemon.log_lines()[0]["metrics"],
    }[listener]
    code, log = make_daemon(listener, taken).refusal()
    assert code == 1 and taken in log, log
    assert client.status().phase == Phase.PHASE_SERVING


def test_a_budget_above_the_memory_limit_is_refused_with_the_arithmetic(make_daemon):
    code, log = make_daemon("--device-budget", "64TiB").refusal()
    assert code == 1
    for part in ("weights", "--device-budget 67108864 MiB", "reserve", "limit"):
        assert part in log, log


def test_a_start_logs_the_arithmetic_with_the_largest_cache_of_one_ingestion(make_daemon):
    daemon = make_daemon("--device-budget", "64MiB", "--dtype", "float32").start()
    [line] = [line for line in daemon.log_lines() if line["event"] == "memory"]
    # Two layers of two heads, each row a key, a value and its position.
    cache = (131_072 - 512) * 2 * 2 * (2 * 64 * 4 + 4) / 2**20
    for part in ("weights", "--device-budget 64 MiB", f"cache at ratio 0 {cache:.0f} MiB"):
        assert part in line["needed"], line
    parts = [int(mib) for mib in re.findall(r"(\d+) MiB", line["needed"])]
    assert abs(sum(parts[:-1]) - parts[-1]) <= len(parts), "each part is rounded"
    assert line["limit_mib"] >= parts[-1]


@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
def test_the_data_folder_keeps_its_compute_type(make_daemon, tmp_path, dtype):
    # Fault 6: `auto` is settled once, and the settled type is what is compared.
    daemon = make_daemon("--dtype", dtype, folder=tmp_path / "one").start()
    client = daemon.client()
    assert client.status().model.dtype == dtype
    # Only weights are int8.
    made = client.ingest(document("dtype"), "d").document
    assert [cache.kv_dtype for cache in made.caches] == [v1.KV_DTYPE_BFLOAT16]
    before = client.ask("d")
    daemon.kill()
    code, log = make_daemon("--dtype", "float32", folder=tmp_path / "one").refusal()
    assert code == 1 and f"--dtype {dtype}" in log
    daemon = make_daemon("--dtype", "auto", folder=tmp_path / "one").start()
    client = daemon.client()
    assert client.status().model.dtype == dtype
    assert client.ask("d").log_probabilities == before.log_probabilities


def test_settings_come_from_flag_variable_file_and_default_in_this_order(tmp_path):
    file = tmp_path / "docmemd.toml"
    file.write_text('model = "from-file"\nmax_queue = 7\nmax_sequences = 7\nthreads = 7\n')
    done = run_docmemd("--config", file, "--data", "d", "--threads", "3", "--check-config",
                       DOCMEM_THREADS="4", DOCMEM_MAX_SEQUENCES="5")
    assert done.returncode == 0, done.stderr
    settings = tomllib.loads(done.stdout)
    assert settings["model"] == "from-file" and settings["max_queue"] == 7
    assert settings["max_sequences"] == 5 and settings["threads"] == 3
    assert settings["listen"] == "127.0.0.1:7600"


@pytest.mark.parametrize("line, said", [
    ("max_quue = 7", "max_quue"),
    ("max_queue = -1", "max_queue"),
    ('device_budget = "-5MiB"', "device_budget"),
    ("insecure = 3", "insecure"),
    ("max_queue =", "expected value"),
])
def test_a_wrong_line_of_the_settings_file_is_named(tmp_path, line, said):
    file = tmp_path / "docmemd.toml"
    file.write_text(f'model = "m"\ndata = "d"\n{line}\n')
    done = run_docmemd("--config", file, "--check-config")
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert f"{file}:3" in done.stderr, done.stderr


@pytest.mark.parametrize("arguments", [
    ["--no-such-flag"],
    ["--model", "m"],
    ["--model", "m", "--data", "d", "--max-queue", "-1"],
    ["--model", "m", "--data", "d", "--listen", "nonsense"],
    ["--model", "m", "--data", "d", "--listen", "0.0.0.0:0"],
    ["--model", "m", "--data", "d", "--listen", "0.0.0.0:0", "--insecure"],
])
def test_wrong_usage_exits_with_2(arguments):
    done = run_docmemd(*arguments)
    assert done.returncode == 2 and done.stderr.startswith("docmemd: ")


def test_help_and_version():
    for flag in ("--help", "--version"):
        done = run_docmemd(flag)
        assert done.returncode == 0 and done.stdout and not done.stderr


def test_an_address_for_all_needs_two_flags(make_daemon):
    daemon = make_daemon("--listen", "0.0.0.0:0", "--insecure", "--no-auth").start()
    port = daemon.address.rsplit(":", 1)[1]
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        grpc.channel_ready_future(channel).result(timeout=20)


def test_a_start_without_its_model_says_so(make_daemon, tmp_path):
    code, log = make_daemon(model=tmp_path / "absent").refusal()
    assert code == 1 and "absent" in log


def test_the_daemon_goes_on_after_refusals(client):
    assert refusal(lambda: client.ask("absent")).code == grpc.StatusCode.NOT_FOUND
    client.ingest(document("after"), "after")
    assert client.ask("after").finished
    assert TINY_LLAMA.name == client.status().model.name
