"""Python stubs of the wire contract, made from the proto files when this module is imported.

`v1` has all messages and enum values of docmem.v1; `SERVICES` the stub class of every service.
"""

import atexit
import importlib
import shutil
import sys
import tempfile
import types
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

PROTO = Path(__file__).resolve().parents[2] / "proto"
SERVICE_FILES = ("collection", "document", "adapter", "training", "query", "admin")
MESSAGE_FILES = ("common", "errors", *SERVICE_FILES)


def _make_stubs():
    folder = tempfile.mkdtemp(prefix="docmem-stubs-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    options = [f"-I{PROTO}", f"-I{well_known}", f"--python_out={folder}"]
    options += [f"--grpc_python_out={folder}"]
    protos = [f"docmem/v1/{name}.proto" for name in MESSAGE_FILES]
    if protoc.main(["protoc", *options, *protos]) != 0:
        raise RuntimeError("the stubs couldn't be made from the proto files")
    sys.path.insert(0, folder)


def _messages():
    names = {}
    for file in MESSAGE_FILES:
        module = importlib.import_module(f"docmem.v1.{file}_pb2")
        names |= {name: value for name, value in vars(module).items() if name[0].isupper()}
    return types.SimpleNamespace(**names)


def _services():
    services = {}
    for file in SERVICE_FILES:
        module = importlib.import_module(f"docmem.v1.{file}_pb2_grpc")
        services[file] = getattr(module, f"{file.capitalize()}ServiceStub")
    return services


def _descriptors():
    """Service name → descriptor, of all services of the contract."""
    found = {}
    for file in SERVICE_FILES:
        module = importlib.import_module(f"docmem.v1.{file}_pb2")
        for service in module.DESCRIPTOR.services_by_name.values():
            found[service.full_name] = service
    return found


_make_stubs()
v1 = _messages()
SERVICES = _services()
DESCRIPTORS = _descriptors()
