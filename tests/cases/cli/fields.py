"""Prints the names of the fields of a JSON object, of lists those of the first item."""
import json
import sys


def show(value, indent):
    if isinstance(value, dict):
        for key in value:
            print(" " * indent + key)
            show(value[key], indent + 2)
    elif isinstance(value, list) and value:
        show(value[0], indent)


show(json.load(sys.stdin), 0)
