"""One table over every RPC: what a wrong argument is refused with, and the field it names."""

import pytest
from client import ask_request, memory, refusal, refused
from folders import adapter
from stubs import DESCRIPTORS, v1
from texts import document

FIELD = ("INVALID_ARGUMENT", "INVALID_FIELD")
LIMIT = ("INVALID_ARGUMENT", "LIMIT_EXCEEDED")
NO_DOCUMENT = ("NOT_FOUND", "DOCUMENT_NOT_FOUND")
NO_COLLECTION = ("NOT_FOUND", "COLLECTION_NOT_FOUND")

LONG_ID = "a" * 129
QUESTION = 65536
HUGE_PAGE = {"page_size": 1001}
BAD_TOKEN = {"page_token": "bm90IG91cnM"}
FAR_ENUM = 99
ENDLESS_LABELS = {f"k{n}": "v" for n in range(33)}
# What an RPC on one training refuses: the rows' names, ids and refusals.
JOBS = [
    ("empty", "", *FIELD, "job_id"),
    ("bad id", "../training-1", *FIELD, "job_id"),
    ("long id", LONG_ID, *FIELD, "job_id"),
    ("unknown", "training-99", "NOT_FOUND", "JOB_NOT_FOUND", None),
    ("padded id", "training-01", "NOT_FOUND", "JOB_NOT_FOUND", None),
]


@pytest.fixture(scope="module")
def client(daemon):
    client = daemon.client()
    client.ingest(document("d"), "d")
    client.upload("d", adapter())
    return client


def ask(**fields):
    return lambda c: c.queries.Ask(ask_request("d", **fields))


def question(text="q", **prompt):
    return lambda c: c.queries.Ask(v1.AskRequest(
        memory=memory("d"), prompt=v1.Prompt(question=text, **prompt)))


def score(text="a", **selection):
    return lambda c: c.score("d", text, **selection)


def ingest(text="text", name="new", **fields):
    return lambda c: c.ingest(text, name, **fields)


def rpc(service, method, **fields):
    descriptor = DESCRIPTORS[f"docmem.v1.{service[:-1].capitalize()}Service"]
    name = descriptor.methods_by_name[method].input_type.name
    return lambda c: getattr(getattr(c, service), method)(getattr(v1, name)(**fields))


def imported(chunk=None, header=True, **fields):
    messages = [v1.ImportDocumentRequest(header=v1.ImportHeader(**fields))] if header else []
    if chunk is not None:
        messages.append(v1.ImportDocumentRequest(chunk=chunk))
    return lambda c: c.documents.Import(iter(messages))


def query(method, **fields):
    name = {"Abort": "AbortRequest", "Ask": "AskRequest", "Score": "ScoreRequest"}[method]
    return lambda c: getattr(c.queries, method)(getattr(v1, name)(**fields))


def admin(method, **fields):
    return lambda c: getattr(c.admin, method)(getattr(v1, f"{method}Request")(**fields))


def update(*paths, **values):
    return rpc("documents", "Update", document="d", values=v1.Document(**values),
               update_mask={"paths": paths})


def settings(*paths, **values):
    return rpc("collections", "Update", name="default",
               settings=v1.CollectionSettings(**values), update_mask={"paths": paths})


CASES = {
    # Ask and Score
    "Ask: no prompt": (query("Ask", memory=memory("d")), *FIELD, "prompt.question"),
    "Ask: no question": (question(""), *FIELD, "prompt.question"),
    "Ask: long question": (question("q" * (QUESTION + 1)), *LIMIT, "prompt.question"),
    "Ask: long instruction": (question(instruction="i" * 8193), *LIMIT, "prompt.instruction"),
    "Ask: 65 turns": (question(history=[v1.Turn(question="q")] * 65), None, None,
                      "prompt.history"),
    "Ask: empty turn": (question(history=[v1.Turn(answer="a")]), *FIELD,
                        "prompt.history.question"),
    "Ask: long turn": (question(history=[v1.Turn(question="q" * (QUESTION + 1))]), *LIMIT,
                       "prompt.history.question"),
    "Ask: long earlier answer": (
        question(history=[v1.Turn(question="q", answer="a" * (QUESTION + 1))]), *LIMIT,
        "prompt.history.answer"),
    "Ask: unknown document": (lambda c: c.ask("none"), *NO_DOCUMENT, None),
    "Ask: bad document": (lambda c: c.ask("../d"), *FIELD, "memory.document"),
    "Ask: long document": (lambda c: c.ask(LONG_ID), *FIELD, "memory.document"),
    "Ask: bad collection": (ask(collection="a b"), *FIELD, "memory.collection"),
    "Ask: unknown collection": (ask(collection="none"), *NO_COLLECTION, None),
    "Ask: unknown mode": (ask(mode=FAR_ENUM), *FIELD, "memory.mode"),
    "Ask: unknown scope": (ask(adapter_scope=FAR_ENUM), *FIELD, "memory.adapter_scope"),
    "Ask: unknown profile": (ask(profile=FAR_ENUM, ratio=5), *FIELD, "memory.profile"),
    "Ask: ratio above 1": (ask(ratio=1_000_001), *FIELD, "memory.ratio_ppm"),
    "Ask: profile without ratio": (ask(profile=1), *FIELD, "memory.profile"),
    "Ask: build without ratio": (ask(build_if_missing=True), *FIELD, "memory.build_if_missing"),
    "Ask: bad cache id": (ask(cache_id="/etc/passwd"), *FIELD, "memory.cache_id"),
    "Ask: unknown cache": (ask(cache_id="0" * 64), "NOT_FOUND", "CACHE_NOT_FOUND", None),
    "Ask: BASE with version": (ask(mode=v1.MODE_BASE, adapter_version=1), *FIELD,
                               "memory.adapter_version"),
    "Ask: answer-only prefill": (
        ask(mode=v1.MODE_ADAPTER_PREFILL, adapter_scope=v1.ADAPTER_SCOPE_ANSWER_ONLY), *FIELD,
        "memory.adapter_scope"),
    "Ask: unknown version": (ask(adapter_version=9), "NOT_FOUND", "ADAPTER_NOT_FOUND", None),
    "Ask: hot": (ask(sampling=v1.Sampling(temperature=2.1)), *FIELD, "sampling.temperature"),
    "Ask: cold": (ask(sampling=v1.Sampling(temperature=-1)), *FIELD, "sampling.temperature"),
    "Ask: NaN": (ask(sampling=v1.Sampling(temperature=float("nan"))), *FIELD,
                 "sampling.temperature"),
    "Ask: top_p": (ask(sampling=v1.Sampling(top_p=1.1)), *FIELD, "sampling.top_p"),
    "Ask: negative top_p": (ask(sampling=v1.Sampling(top_p=-0.1)), *FIELD, "sampling.top_p"),
    "Ask: 17 stops": (ask(stop=["x"] * 17), None, None, "stop"),
    "Ask: empty stop": (ask(stop=[""]), *FIELD, "stop"),
    "Ask: long stop": (ask(stop=["x" * 257]), *LIMIT, "stop"),
    "Ask: bad request id": (ask(request_id="a/b"), *FIELD, "request_id"),
    "Ask: too many tokens": (ask(max_tokens=131072), "INVALID_ARGUMENT", "CONTEXT_TOO_LONG",
                             "max_tokens"),
    "Ask: unknown priority": (ask(priority=FAR_ENUM), *FIELD, "priority"),
    "Score: no answer": (score(""), *FIELD, "answer"),
    "Score: long answer": (score("a" * (QUESTION + 1)), *LIMIT, "answer"),
    "Score: no question": (query("Score", memory=memory("d"), answer="a"), *FIELD,
                           "prompt.question"),
    "Score: unknown document": (lambda c: c.score("none", "a"), *NO_DOCUMENT, None),
    "Score: ratio": (score(ratio=2_000_000), *FIELD, "memory.ratio_ppm"),
    "Abort: empty": (query("Abort"), *FIELD, "request_id"),
    "Abort: bad id": (query("Abort", request_id="\n"), *FIELD, "request_id"),
    "Abort: long id": (query("Abort", request_id=LONG_ID), *FIELD, "request_id"),
    # Ingest
    "Ingest: empty": (ingest(""), *FIELD, "chunk"),
    "Ingest: not UTF-8": (ingest(b"ab\xff"), *FIELD, "chunk"),
    "Ingest: surrogate": (ingest(b"ab\xed\xa0\x80"), *FIELD, "chunk"),
    "Ingest: cut character": (ingest("ü".encode()[:1]), *FIELD, "chunk"),
    "Ingest: bad id": (ingest(name=".hidden"), *FIELD, "document"),
    "Ingest: bad collection": (ingest(collection="-/-"), *FIELD, "collection"),
    "Ingest: unknown collection": (ingest(collection="none"), *NO_COLLECTION, None),
    "Ingest: ratio": (ingest(ratio_ppm=[0, 1_000_001]), *FIELD, "ratio_ppm"),
    "Ingest: 9 ratios": (ingest(ratio_ppm=[*range(9)]), None, None, "ratio_ppm"),
    "Ingest: 6 profiles": (ingest(profiles=[1] * 6), None, None, "profiles"),
    "Ingest: unknown profile": (ingest(profiles=[FAR_ENUM]), *FIELD, "profiles"),
    "Ingest: unknown dtype": (ingest(kv_dtype=FAR_ENUM), *FIELD, "kv_dtype"),
    "Ingest: long system text": (ingest(system_text="s" * 8193), *LIMIT, "system_text"),
    "Ingest: long title": (ingest(title="t" * 513), *LIMIT, "title"),
    "Ingest: 33 labels": (ingest(labels=ENDLESS_LABELS), *LIMIT, "labels"),
    "Ingest: bad label": (ingest(labels={"a b": "v"}), *FIELD, "labels key"),
    "Ingest: long label": (ingest(labels={"k": "v" * 257}), *LIMIT, "labels value"),
    "Ingest: replace without revision": (ingest(replace=True), *FIELD, "revision"),
    # Documents
    "Get: empty": (rpc("documents", "Get"), *FIELD, "document"),
    "Get: unknown": (rpc("documents", "Get", document="none"), *NO_DOCUMENT, None),
    "BatchGet: empty": (rpc("documents", "BatchGet"), *FIELD, "documents"),
    "BatchGet: 1001": (rpc("documents", "BatchGet", documents=["d"] * 1001), *FIELD,
                       "documents"),
    "BatchGet: bad id": (rpc("documents", "BatchGet", documents=["d", ".."]), *FIELD, "document"),
    "List: page": (rpc("documents", "List", **HUGE_PAGE), *FIELD, "page_size"),
    "List: token": (rpc("documents", "List", **BAD_TOKEN), *FIELD, "page_token"),
    "List: order": (rpc("documents", "List", order=FAR_ENUM), *FIELD, "order"),
    "List: labels": (rpc("documents", "List", labels=ENDLESS_LABELS), *LIMIT, "labels"),
    "Update: no mask": (update(), *FIELD, "update_mask"),
    "Update: unknown path": (update("revision"), *FIELD, "update_mask"),
    "Update: long title": (update("title", title="t" * 513), *LIMIT, "values.title"),
    "Update: labels": (update("labels", labels=ENDLESS_LABELS), *LIMIT, "values.labels"),
    "Update: text back": (update("text_retained", text_retained=True), *FIELD,
                          "values.text_retained"),
    "Update: bad cache": (update("default_cache_id", default_cache_id=""), *FIELD,
                          "values.default_cache_id"),
    "Update: revision": (rpc("documents", "Update", document="d", revision=999,
                             update_mask={"paths": ["title"]}),
                         "ABORTED", "REVISION_MISMATCH", None),
    "Delete: empty": (rpc("documents", "Delete"), *FIELD, "document"),
    "Delete: unknown": (rpc("documents", "Delete", document="none"), *NO_DOCUMENT, None),
    "GetText: empty": (rpc("documents", "GetText"), *FIELD, "document"),
    "GetText: unknown": (rpc("documents", "GetText", document="none"), *NO_DOCUMENT, None),
    "Prefetch: empty": (rpc("documents", "Prefetch"), *FIELD, "documents"),
    "Prefetch: 101": (rpc("documents", "Prefetch", documents=["d"] * 101), *FIELD, "documents"),
    "Prefetch: cache of two": (rpc("documents", "Prefetch", documents=["d", "d"],
                                   cache_id="0" * 64), *FIELD, "cache_id"),
    "Prefetch: unknown cache": (rpc("documents", "Prefetch", documents=["d"], cache_id="0" * 64),
                                "NOT_FOUND", "CACHE_NOT_FOUND", None),
    "Prefetch: tier": (rpc("documents", "Prefetch", documents=["d"], tier=v1.TIER_DISK), *FIELD,
                       "tier"),
    "BuildCache: empty": (rpc("documents", "BuildCache"), *FIELD, "document"),
    "BuildCache: unknown": (rpc("documents", "BuildCache", document="none"), *NO_DOCUMENT, None),
    "BuildCache: ratio": (rpc("documents", "BuildCache", document="d", ratio_ppm=[1_000_001]),
                          *FIELD, "ratio_ppm"),
    "BuildCache: mode": (rpc("documents", "BuildCache", document="d", mode=FAR_ENUM), *FIELD,
                         "mode"),
    "BuildCache: long system text": (rpc("documents", "BuildCache", document="d",
                                         system_text="s" * 8193), *LIMIT, "system_text"),
    "BuildCache: version without use": (rpc("documents", "BuildCache", document="d",
                                            adapter_version=1), *FIELD, "adapter_version"),
    "DeleteCache: empty": (rpc("documents", "DeleteCache", document="d"), *FIELD, "cache_id"),
    "DeleteCache: unknown": (rpc("documents", "DeleteCache", document="d", cache_id="0" * 64),
                             "NOT_FOUND", "CACHE_NOT_FOUND", None),
    # Adapters
    "Adapter.Upload: no document": (lambda c: c.upload("", adapter()), *FIELD, "document"),
    "Adapter.Upload: unknown": (lambda c: c.upload("none", adapter()), *NO_DOCUMENT, None),
    "Adapter.Upload: scope": (lambda c: c.upload("d", adapter(), scope=FAR_ENUM), *FIELD, "scope"),
    "Adapter.Upload: format digest": (
        lambda c: c.upload("d", adapter("rslora"), prompt_format_digest="xyz"), *FIELD,
        "prompt_format_digest"),
    "Adapter.Upload: text digest": (
        lambda c: c.upload("d", adapter("rslora"), text_digest="AB" * 32), *FIELD,
        "text_digest"),
    "Adapter.Get: empty": (rpc("adapters", "Get"), *FIELD, "document"),
    "Adapter.Get: version": (rpc("adapters", "Get", document="d", version=9), "NOT_FOUND",
                             "ADAPTER_NOT_FOUND", None),
    "Adapter.List: unknown": (rpc("adapters", "List", document="none"), *NO_DOCUMENT, None),
    "Adapter.List: page": (rpc("adapters", "List", document="d", **HUGE_PAGE), *FIELD,
                           "page_size"),
    "Adapter.List: token": (rpc("adapters", "List", document="d", **BAD_TOKEN), *FIELD,
                            "page_token"),
    "Adapter.Download: empty": (rpc("adapters", "Download"), *FIELD, "document"),
    "Adapter.Download: version": (rpc("adapters", "Download", document="d", version=9),
                                  "NOT_FOUND", "ADAPTER_NOT_FOUND", None),
    "Adapter.SetCurrent: empty": (rpc("adapters", "SetCurrent"), *FIELD, "document"),
    "Adapter.SetCurrent: version": (rpc("adapters", "SetCurrent", document="d", version=9),
                                    "NOT_FOUND", "ADAPTER_NOT_FOUND", None),
    "Adapter.Delete: no version": (rpc("adapters", "Delete", document="d"), *FIELD, "version"),
    "Adapter.Delete: current": (rpc("adapters", "Delete", document="d", version=1),
                                "FAILED_PRECONDITION", "ADAPTER_IS_CURRENT", None),
    # Trainings
    "Training.Start: empty": (rpc("trainings", "Start"), *FIELD, "document"),
    "Training.Start: bad id": (rpc("trainings", "Start", document="../d"), *FIELD, "document"),
    "Training.Start: unknown": (rpc("trainings", "Start", document="none"), *NO_DOCUMENT, None),
    "Training.Start: collection": (rpc("trainings", "Start", collection="a b", document="d"),
                                   *FIELD, "collection"),
    "Training.Start: supervision": (
        rpc("trainings", "Start", document="d", options={"supervision": FAR_ENUM}), *FIELD,
        "options.supervision"),
    **{f"Training.{method}: {what}": (rpc("trainings", method, job_id=job), *why)
       for method in ("Get", "Watch", "Cancel") for what, job, *why in JOBS},
    "Training.List: bad id": (rpc("trainings", "List", document=".d"), *FIELD, "document"),
    "Training.List: unknown": (rpc("trainings", "List", document="none"), *NO_DOCUMENT, None),
    "Training.List: collection": (rpc("trainings", "List", collection="none"), *NO_COLLECTION,
                                  None),
    "Training.List: page": (rpc("trainings", "List", **HUGE_PAGE), *FIELD, "page_size"),
    "Training.List: token": (rpc("trainings", "List", **BAD_TOKEN), *FIELD, "page_token"),
    # Collections
    "Collection.Create: empty": (rpc("collections", "Create"), *FIELD, "name"),
    "Collection.Create: bad": (rpc("collections", "Create", name="a/b"), *FIELD, "name"),
    "Collection.Create: exists": (rpc("collections", "Create", name="default"), "ALREADY_EXISTS",
                                  "COLLECTION_EXISTS", None),
    "Collection.Create: ratio": (
        rpc("collections", "Create", name="x", settings={"default_ratio_ppm": 1_000_001}), *FIELD,
        "settings.default_ratio_ppm"),
    "Collection.Create: mode": (
        rpc("collections", "Create", name="x", settings={"default_mode": FAR_ENUM}), *FIELD,
        "settings.default_mode"),
    "Collection.Get: empty": (rpc("collections", "Get"), *FIELD, "name"),
    "Collection.Get: unknown": (rpc("collections", "Get", name="none"), *NO_COLLECTION, None),
    "Collection.List: page": (rpc("collections", "List", **HUGE_PAGE), *FIELD, "page_size"),
    "Collection.List: token": (rpc("collections", "List", **BAD_TOKEN), *FIELD, "page_token"),
    "Collection.Update: no mask": (settings(), *FIELD, "update_mask"),
    "Collection.Update: path": (settings("name"), *FIELD, "update_mask"),
    "Collection.Update: unknown": (rpc("collections", "Update", name="none",
                                       update_mask={"paths": ["retain_text"]}), *NO_COLLECTION,
                                   None),
    "Collection.Delete: empty": (rpc("collections", "Delete"), *FIELD, "name"),
    "Collection.Delete: unknown": (rpc("collections", "Delete", name="none"), *NO_COLLECTION,
                                   None),
    # Archives
    "Export: document": (rpc("documents", "Export"), *FIELD, "document"),
    "Export: unknown": (rpc("documents", "Export", document="none"), *NO_DOCUMENT, None),
    "Import: id": (imported(document=LONG_ID), *FIELD, "document"),
    "Import: collection": (imported(collection="../x"), *FIELD, "collection"),
    "Import: revision": (imported(replace=True), *FIELD, "revision"),
    "Import: no archive": (imported(chunk=b"twelve bytes"), "INVALID_ARGUMENT", "IMPORT_INVALID",
                           None),
    "Import: order": (imported(chunk=b"x", header=False), "INVALID_ARGUMENT", "STREAM_INCOMPLETE",
                      "part"),
    # Admin
    "ListResident: page": (admin("ListResident", **HUGE_PAGE), *FIELD, "page_size"),
    "ListResident: token": (admin("ListResident", **BAD_TOKEN), *FIELD, "page_token"),
    "ListResident: tier": (admin("ListResident", tier=FAR_ENUM), *FIELD, "tier"),
    "ListResident: kind": (admin("ListResident", kind=FAR_ENUM), *FIELD, "kind"),
    "ListResident: text": (admin("ListResident", kind=v1.ARTIFACT_KIND_TEXT), *FIELD, "kind"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_argument_is_refused_by_name(client, name):
    call, code, reason, field = CASES[name]
    before = client.status()
    if code is None:  # a count above a fixed number: either of the two reasons says so
        why = refusal(lambda: call(client))
        assert why.code.name == "INVALID_ARGUMENT" and why.field == field, why
        assert why.reason in ("INVALID_FIELD", "LIMIT_EXCEEDED")
    else:
        why = refused(lambda: call(client), code, reason, field)
    assert why.message and len(why.message) <= 1024
    after = client.status()
    assert (after.documents, after.caches, after.adapters, after.collections) == (
        before.documents, before.caches, before.adapters, before.collections)


def test_every_rpc_that_takes_arguments_is_in_the_table():
    rpcs = set()
    for service in DESCRIPTORS.values():
        short = service.name.removesuffix("Service")
        prefix = "" if short in ("Document", "Query", "Admin") else f"{short}."
        rpcs |= {prefix + method.name for method in service.methods}
    assert {name.split(":")[0] for name in CASES} == rpcs - NOT_HERE


# Without arguments, in route_test.py (Route), or in evaluation_test.py (SetEvaluation).
NOT_HERE = {"GetStatus", "Drain", "Route", "SetEvaluation"}
