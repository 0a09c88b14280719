# SPDX-License-Identifier: Apache-2.0
"""Calls gather_run of a library with good and bad indices, and prints what it returns and notes."""
import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
name = "gather_run" if hasattr(library, "gather_run") else "c_run"
run = getattr(library, name)
table = (ctypes.c_float * 210)(*range(210))
result = (ctypes.c_float * 21)()
memory = ctypes.create_string_buffer(256)
arena = (ctypes.addressof(memory) + 63) // 64 * 64
for indices in ([2, 29, 0], [2, 30, 0], [-7, 1, 2]):
    index = (ctypes.c_int32 * 3)(*indices)
    inputs = (ctypes.c_void_p * 2)(ctypes.addressof(table), ctypes.addressof(index))
    outputs = (ctypes.c_void_p * 1)(ctypes.addressof(result))
    status = run(inputs, outputs, ctypes.c_void_p(arena))
    notes = (ctypes.c_int64 * 2).from_address(arena)
    print(status, list(notes) if status else [result[0], result[7], result[14]])
