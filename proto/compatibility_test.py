#!/usr/bin/env python3
"""The comparison finds what breaks a client and lets additions pass."""

import unittest

from google.protobuf import descriptor_pb2, text_format

import compatibility

BASE = """
file { name: "a.proto" package: "p"
  message_type { name: "M"
    field { name: "x" number: 1 type: TYPE_UINT32 label: LABEL_OPTIONAL json_name: "x" }
    field { name: "y" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "y" } }
  enum_type { name: "E" value { name: "E_UNSPECIFIED" number: 0 } value { name: "E_A" number: 1 } }
  service { name: "S" method { name: "Go" input_type: ".p.M" output_type: ".p.M" } }
}
"""


def parse(text: str):
    return text_format.Parse(text, descriptor_pb2.FileDescriptorSet())


class CompatibilityTest(unittest.TestCase):

    def problems(self, change) -> list:
        changed = parse(BASE)
        change(changed.file[0])
        return compatibility.breaks(parse(BASE).SerializeToString(), changed.SerializeToString())

    def test_equal_sets_and_additions_pass(self):
        def add(file):
            file.message_type[0].field.add(name="z", number=3)
            file.enum_type[0].value.add(name="E_B", number=2)
            file.service[0].method.add(name="Stop", input_type=".p.M", output_type=".p.M")
        self.assertEqual(self.problems(lambda file: None), [])
        self.assertEqual(self.problems(add), [])

    def test_a_removed_field_passes_only_with_its_number_reserved(self):
        def remove(file):
            del file.message_type[0].field[1]

        def remove_and_reserve(file):
            remove(file)
            file.message_type[0].reserved_range.add(start=2, end=3)
        self.assertRegex(self.problems(remove)[0], "isn't reserved")
        self.assertEqual(self.problems(remove_and_reserve), [])

    def test_a_changed_type_or_name_of_a_field_is_found(self):
        def retype(file):
            file.message_type[0].field[0].type = descriptor_pb2.FieldDescriptorProto.TYPE_UINT64

        def rename(file):
            file.message_type[0].field[0].name = "other"
        self.assertRegex(self.problems(retype)[0], r"p\.M\.x: type")
        self.assertRegex(self.problems(rename)[0], r"p\.M\.x: name")

    def test_removed_messages_enums_values_and_rpcs_are_found(self):
        self.assertRegex(self.problems(lambda f: f.message_type.pop())[0], "message is gone")
        self.assertRegex(self.problems(lambda f: f.enum_type.pop())[0], "enum is gone")
        self.assertRegex(self.problems(lambda f: f.enum_type[0].value.pop())[0], "E_A = 1 is gone")
        self.assertRegex(self.problems(lambda f: f.service[0].method.pop())[0], "RPC is gone")

    def test_a_call_that_becomes_a_stream_is_found(self):
        def stream(file):
            file.service[0].method[0].server_streaming = True
        self.assertRegex(self.problems(stream)[0], "streaming changed")


if __name__ == "__main__":
    unittest.main()
