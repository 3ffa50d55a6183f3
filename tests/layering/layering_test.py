"""Every #include keeps the direction of dependencies; the checker catches what it should."""

from pathlib import Path

import layering
import pytest
import sizes

ROOT = Path(__file__).resolve().parents[2]


def test_every_include_keeps_the_direction_of_dependencies():
    assert layering.complaints(ROOT) == []


def test_headers_form_no_ring():
    assert layering.cycles(ROOT) == []


def test_sizes_are_reported():
    print(sizes.report(ROOT))
    assert "test to production" in sizes.report(ROOT)


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("file", "include"),
    [
        ("engine/text/a.h", '"engine/model/b.h"'),
        ("engine/formats/a.cc", '"engine/engine.h"'),
        ("engine/model/a.cc", '"adapter_store/types.h"'),
        ("engine/model/a.cc", '"absl/status/status.h"'),
        ("engine/model/a.cc", "<grpcpp/grpcpp.h>"),
        ("engine/model/a.cc", "<sqlite3.h>"),
        ("engine/model/a.cc", "<engine/formats/error.h>"),
        ("engine/model/a.cc", '"engine/model/absent.h"'),
        ("engine/model/a.cc", '"engine/model/testing.h"'),
        ("engine/newcomer/a.cc", '"engine/formats/error.h"'),
        ("adapter_store/files/a.cc", "<torch/torch.h>"),
        ("adapter_store/files/a.cc", '"adapter_store/registry/b.h"'),
        ("adapter_store/resident_cache.cc", '"adapter_store/files/b.h"'),
        ("adapter_store/resident_cache.cc", '"adapter_store/registry/b.h"'),
        ("adapter_store/types.h", '"adapter_store/files/b.h"'),
        ("client/a.cc", '"server/errors/b.h"'),
        ("eval/a.cc", '"adapter_store/types.h"'),
        ("eval/a.cc", '"server/errors/b.h"'),
        ("eval/a.cc", "<grpcpp/grpcpp.h>"),
        ("engine/a.cc", '"eval/b.h"'),
        ("server/query/a.cc", '"docmem/v1/query.pb.h"'),
        ("server/query/a.cc", '"docmem/v1/query.grpc.pb.h"'),
        ("server/query/a.cc", '"google/rpc/status.pb.h"'),
        ("server/errors/a.cc", '"docmem/v1/query.pb.h"'),
        ("server/errors/a.cc", '"server/query/b.h"'),
        ("engine/a.cc", '"docmem/v1/query.pb.h"'),
    ],
)
def test_a_forbidden_include_is_named(tmp_path, file, include):
    files = {name: "" for name in [
        "engine/model/b.h", "engine/engine.h", "engine/formats/error.h", "adapter_store/types.h",
        "adapter_store/registry/b.h", "adapter_store/files/b.h", "server/errors/b.h",
        "server/query/b.h", "engine/model/testing.h", "eval/b.h",
    ]}
    write(tmp_path, files | {file: f"#include {include}\n"})
    [complaint] = layering.complaints(tmp_path)
    assert complaint.startswith(f"{file} includes {include[1:-1]}: ")


@pytest.mark.parametrize(
    ("file", "include"),
    [
        ("engine/model/a.cc", '"engine/formats/b.h"'),
        ("engine/model/a_test.cc", '"engine/text/b.h"'),
        ("engine/engine.cc", '"engine/artifacts/b.h"'),
        ("adapter_store/adapter_store.cc", '"adapter_store/resident_cache.h"'),
        ("adapter_store/resident_cache_test.cc", '"adapter_store/types.h"'),
        ("adapter_store/files/a_test.cc", '"adapter_store/store_test_util.h"'),
        ("adapter_store/store_test_util.h", '"adapter_store/resident_cache.h"'),
        ("server/services/a.cc", '"docmem/v1/query.pb.h"'),
        ("server/errors/a.cc", '"google/rpc/status.pb.h"'),
        ("server/query/a.cc", '"engine/text/b.h"'),
        ("client/a.cc", "<grpcpp/grpcpp.h>"),
        ("eval/a.cc", '"engine/engine.h"'),
        ("eval/a.cc", "<CLI/CLI.hpp>"),
    ],
)
def test_an_include_to_the_left_passes(tmp_path, file, include):
    files = {name: "" for name in [
        "engine/engine.h", "engine/formats/b.h", "engine/text/b.h", "engine/artifacts/b.h", "adapter_store/types.h",
        "adapter_store/resident_cache.h", "adapter_store/store_test_util.h",
    ]}
    write(tmp_path, files | {file: f"#include {include}\n"})
    assert layering.complaints(tmp_path) == []


def test_a_ring_of_headers_is_named(tmp_path):
    write(tmp_path, {
        "engine/text/a.h": '#include "engine/text/b.h"\n',
        "engine/text/b.h": '#include "engine/text/a.h"\n',
    })
    assert layering.cycles(tmp_path) == ["engine/text/a.h -> engine/text/b.h -> engine/text/a.h"]


def test_a_file_over_its_aim_is_reported(tmp_path):
    write(tmp_path, {"engine/text/a.h": "int a;\n" * 201, "engine/text/b.h": "int b;\n" * 200})
    assert sizes.too_long(tmp_path) == ["engine/text/a.h: 201 lines, aim at 200"]
