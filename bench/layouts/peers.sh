#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tables of LayoutBench: all queries as layoutbench answered them, and a sample of them asked of
# isl alone, of plain enumeration, and of TVM where it can be installed (into BUILD/tvm).
#   bench/layouts/peers.sh BUILD VENV
set -eu
build=$1
python=$2/bin/python
here=$(dirname "$0")
made=$build/layoutpeers
mkdir -p "$made"

if [ ! -x "$build/tvm/bin/python" ]; then
  /usr/bin/python3 -m venv "$build/tvm"
  "$build/tvm/bin/pip" install -q --disable-pip-version-check --only-binary :all: \
    -r "$here/requirements-tvm.txt" || echo "peers.sh: TVM cannot be installed here" >&2
fi
tvm_python=$python
"$build/tvm/bin/python" -c 'import numpy, tvm' 2>/dev/null && tvm_python=$build/tvm/bin/python

"$python" "$here/peers.py" sample "$here/queries.jsonl" > "$made/sample.jsonl"
"$python" "$here/peers.py" points "$made/sample.jsonl" > "$made/points.jsonl"
"$tvm_python" "$here/peers.py" tvm "$made/sample.jsonl" > "$made/tvm.jsonl"
set -- "$made/points.jsonl" "$made/tvm.jsonl"
if [ -x "$build/bench/layouts/isl_alone" ]; then
  "$build/bench/layouts/isl_alone" "$made/sample.jsonl" > "$made/isl.jsonl"
  set -- "$made/isl.jsonl" "$@"
fi
"$python" "$here/report.py" "$build/layoutbench.jsonl" --peers "$@"
