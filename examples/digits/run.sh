#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The demo that `make run` starts with `run.sh BUILD/pleat`: checks, plans, runs and verifies the
# network of the digits example.
set -eu
pleat=$1
here=$(dirname "$0")
show() { printf '\n$ pleat %s\n' "$*"; "$pleat" "$@"; }

show check "$here/digits.onnx"
show plan "$here/digits.onnx"
printf '\n$ digits %s\n' "$here"
"$(dirname "$pleat")/examples/digits/digits" "$here"
show verify "$here/digits.onnx"
