# SPDX-License-Identifier: Apache-2.0
"""Copies onnx.proto and adds the fields that later releases have, so that models with these fields
are read whichever release is installed.
    newer_fields.py INPUT OUTPUT"""
import re
import sys

FIELDS = {
    "NodeProto": ["optional string overload = 8;"],
    "FunctionProto": ["repeated AttributeProto attribute_proto = 11;",
                      "optional string overload = 13;"],
}


def extended(text, message, fields):
    start = re.search(rf"^message {message} \{{$", text, re.MULTILINE).end()
    body = text[start:text.index("\n}", start)]
    missing = [field for field in fields if f" {field.split()[2]} = " not in body]
    return text[:start] + "".join(f"\n  {field}" for field in missing) + text[start:]


def main():
    source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        text = file.read()
    for message, fields in FIELDS.items():
        text = extended(text, message, fields)
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)


main()
