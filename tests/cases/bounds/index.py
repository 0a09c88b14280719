# SPDX-License-Identifier: Apache-2.0
"""Writes int32 numbers as a .npy file: index.py FILE NUMBER ..."""
import struct
import sys

numbers = [int(n) for n in sys.argv[2:]]
header = f"{{'descr': '<i4', 'fortran_order': False, 'shape': ({len(numbers)},), }}"
header += " " * (63 - (10 + len(header)) % 64) + "\n"
with open(sys.argv[1], "wb") as f:
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    f.write(struct.pack(f"<{len(numbers)}i", *numbers))
