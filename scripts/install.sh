#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the missing packages.
#   scripts/install.sh              the Debian packages of the list below
#   scripts/install.sh --python DIR also the Python packages of tests and benches, into DIR
#   scripts/install.sh --offload    also the libraries of kernels that --offload loads
#   scripts/install.sh --opencl     also an OpenCL device that runs on the processor
#   scripts/install.sh --cuda DIR   only the compiler of CUDA kernels, into the environment in DIR
set -eu

if [ "${1-}" = --cuda ]; then
  exec "$2/bin/pip" install -q --disable-pip-version-check nvidia-cuda-nvrtc==13.5.37
fi

packages="
  gcc g++ libc6-dev make meson ninja-build pkg-config cmake
  libjansson-dev libxxhash-dev libminizip-dev libisl-dev
  nanopb libnanopb-dev protobuf-compiler libonnx-dev
  llvm-19-dev clang-19 libclang-rt-19-dev
  libcmocka-dev coinor-cbc libonnx-testdata python3 python3-venv mandoc zsh
"
[ "${1-}" != --offload ] || packages="$packages libdnnl-dev"
[ "${1-}" != --opencl ] || packages="$packages ocl-icd-libopencl1 pocl-opencl-icd"

missing=
for package in $packages; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=absent
  [ "$status" = installed ] || missing="$missing $package"
done

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

if [ -n "$missing" ]; then
  if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    echo "install.sh: these packages are missing, and only root can install them:$missing" >&2
    exit 1
  fi
  echo "installing:$missing"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi

[ "${1-}" = --python ] || exit 0
venv=$2
wanted=$(dirname "$0")/requirements.txt
cmp -s "$wanted" "$venv/requirements.txt" && exit 0
echo "installing the Python packages of tests and benches into $venv"
/usr/bin/python3 -m venv "$venv"
"$venv/bin/pip" install -q --disable-pip-version-check -r "$wanted"
cp "$wanted" "$venv/requirements.txt"
