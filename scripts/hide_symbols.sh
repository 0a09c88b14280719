#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# hide_symbols.sh PATTERN IN.a OUT.a: makes one object of a static library, in which only the symbols
# that match PATTERN are global, and OUT.a of this object.
set -e
object="$3.o"
rm -f "$3"
${LD:-ld} -r -o "$object" --whole-archive "$2"
${OBJCOPY:-objcopy} --wildcard --keep-global-symbol="$1" "$object"
${AR:-ar} rcs "$3" "$object"
rm -f "$object"
