#!/usr/bin/env python3
"""Compares the protos with the committed descriptor set and fails on what would break a client.

Exit code 0: equal; 1: something breaks, or the set must be renewed with --update (which itself
refuses to write over a break).
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2

FOLDER = pathlib.Path(__file__).resolve().parent
COMMITTED = FOLDER / "descriptors.binpb"
FIELD_FACTS = ("name", "type", "type_name", "label", "proto3_optional", "json_name")


def compile_set(protoc: str) -> bytes:
    """The descriptor set of all our protos, without source positions."""
    files = sorted(str(path.relative_to(FOLDER)) for path in (FOLDER / "docmem").rglob("*.proto"))
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "set.binpb"
        subprocess.run([protoc, f"-I{FOLDER}", f"--descriptor_set_out={out}", *files], check=True)
        return out.read_bytes()


def messages_of(prefix, messages):
    for message in messages:
        name = f"{prefix}.{message.name}"
        yield name, message
        yield from messages_of(name, message.nested_type)


def field_facts(message) -> dict:
    """What a client relies on, of each field by number."""
    members = {}
    for field in message.field:
        facts = {fact: getattr(field, fact) for fact in FIELD_FACTS}
        if field.HasField("oneof_index"):
            facts["oneof"] = message.oneof_decl[field.oneof_index].name
        members[field.number] = facts
    return members


def reserved_numbers(kind, inclusive: bool) -> set:
    return {n for span in kind.reserved_range for n in range(span.start, span.end + inclusive)}


def compare_members(name, old, new, reserved):
    """Problems among numbered members: fields of a message or values of an enum."""
    for number, was in old.items():
        now = new.get(number)
        if now is None:
            if number not in reserved:
                yield f"{name}: {was['name']} = {number} is gone and its number isn't reserved"
            continue
        for fact in was.keys() | now.keys():
            if was.get(fact) != now.get(fact):
                yield f"{name}.{was['name']}: {fact} was {was.get(fact)!r}, is {now.get(fact)!r}"


def enums_of(file):
    for enum in file.enum_type:
        yield f"{file.package}.{enum.name}", enum
    for name, message in messages_of(file.package, file.message_type):
        for enum in message.enum_type:
            yield f"{name}.{enum.name}", enum


def compare_messages(old, new):
    for name, before in old.items():
        if name not in new:
            yield f"{name}: the message is gone"
            continue
        after = new[name]
        yield from compare_members(name, field_facts(before), field_facts(after),
                                   reserved_numbers(after, False))


def compare_enums(old, new):
    for name, before in old.items():
        if name not in new:
            yield f"{name}: the enum is gone"
            continue
        values = [{value.number: {"name": value.name} for value in enum.value}
                  for enum in (before, new[name])]
        yield from compare_members(name, *values, reserved_numbers(new[name], True))


def compare_services(old, new):
    for name, before in old.items():
        methods = {method.name: method for method in new[name].method} if name in new else {}
        for method in before.method:
            if method.name not in methods:
                yield f"{name}.{method.name}: the RPC is gone"
            elif methods[method.name] != method:
                yield f"{name}.{method.name}: its types or streaming changed"


def breaks(old_set: bytes, new_set: bytes) -> list:
    """What a client built on `old_set` could trip over, one line each."""
    sets = [descriptor_pb2.FileDescriptorSet.FromString(data) for data in (old_set, new_set)]

    def collect(of):
        return [dict(pair for file in files.file for pair in of(file)) for files in sets]

    problems = list(compare_messages(*collect(lambda f: messages_of(f.package, f.message_type))))
    problems += compare_enums(*collect(enums_of))
    problems += compare_services(
        *collect(lambda f: ((f"{f.package}.{service.name}", service) for service in f.service)))
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--protoc", default="protoc")
    parser.add_argument("--update", action="store_true", help="renew the committed set")
    arguments = parser.parse_args()
    now = compile_set(arguments.protoc)
    committed = COMMITTED.read_bytes() if COMMITTED.exists() else b""
    problems = breaks(committed, now)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return 1
    if arguments.update:
        COMMITTED.write_bytes(now)
    elif now != committed:
        print("The protos grew: run `proto/compatibility.py --update` and commit the result.",
              file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
