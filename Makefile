# SPDX-License-Identifier: Apache-2.0
# make         build only: the command is build/pleat
# make run     the demo: compile a small network, classify digits with it, check the answers
# make test    every test, one closing line
# make bench   kernels and whole models beside their peers
# make bench-model   the cost model's predictions beside the time of each kernel
# Each first installs what is missing.
BUILD ?= build
VENV ?= $(BUILD)/venv
CASES ?=

.PHONY: all run test bench bench-model bless packages python device
all: packages $(BUILD)/build.ninja
	ninja -C $(BUILD)

run: all
	examples/digits/run.sh $(BUILD)/pleat

test: python device all
	$(VENV)/bin/python scripts/test.py --build $(BUILD) $(CASES)

bench: python all
	$(VENV)/bin/python bench/bench.py --pleat $(BUILD)/pleat
	$(VENV)/bin/python bench/saved.py --pleat $(BUILD)/pleat
	$(VENV)/bin/python bench/start.py --pleat $(BUILD)/pleat
	$(VENV)/bin/python bench/scale.py --pleat $(BUILD)/pleat
	$(VENV)/bin/python bench/copies.py
	$(BUILD)/bench/layouts/layoutbench bench/layouts/queries.jsonl > $(BUILD)/layoutbench.jsonl
	bench/layouts/peers.sh $(BUILD) $(VENV)
	$(VENV)/bin/python bench/layouts/growth.py --bench $(BUILD)/bench/layouts/layoutbench

bench-model: python all
	$(VENV)/bin/python bench/model.py --pleat $(BUILD)/pleat

# Rewrite the expected outputs of the text cases; read the difference before committing it.
bless: all
	python3 scripts/cases.py --pleat $(BUILD)/pleat --bless $(CASES)

packages:
	@scripts/install.sh

# An OpenCL device for the tests that need one, which are left out where it cannot be installed.
device: packages
	@scripts/install.sh --opencl || echo "no OpenCL device: its tests are left out"

python: packages
	@scripts/install.sh --python $(VENV)

$(BUILD)/build.ninja:
	meson setup $(BUILD)
