# The commands of this repository. `make demo` and `make test` need Python ≥ 3.11 and nothing else of ours.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SITE ?=
QUESTION ?=

# Images of Python switch this on: each of our processes would compile all that it imports, for three times the seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install models chromium demo test test-all test-cluster check check-types check-style check-javascript check-house check-constraints quality bench wheel release-check lock tree reference docs pictures clean

help:
	@echo "make demo [SITE=https://…] [QUESTION=…]   index a documentation site, serve it, ask a question"
	@echo "make test                                 every test but the exhaustive ones"
	@echo "make test-all                             those too: single kills, the demo, jobs on a cluster"
	@echo "make test-cluster                         only clusters of several nodes and hosts (hosts: Linux, as root)"
	@echo "make check                                format, lint, types, architecture"
	@echo "make check-constraints                    whether constraints.txt installs on every Python and platform promised"
	@echo "make quality                              benchmarks/results/ray-docs*.md anew, from the index of the Ray documentation"
	@echo "make bench [BENCH='retrieval peers']       docs/benchmarks.md anew: every table, or those named"
	@echo "make bench BENCH=scale SIZES=10k,100k,1m   benchmarks/results/scale.md with a million chunks: half an hour more"
	@echo "make docs                                 the documentation site, in .site/html"
	@echo "make wheel                                dist/: a wheel and an sdist"
	@echo "make release-check                        the steps of a release, against registries on this machine"
	@echo "make install                              only create $(VENV) and install"
	@echo "make chromium                             the browser that the tests of the pages need (Debian, as root)"

# `make install EXTRAS=` installs what a node of a cluster needs: nothing for tests and documentation.
EXTRAS ?= [dev]
install: $(VENV)/.installed models

# The default model as ONNX Runtime reads it, made once and kept under RAYDEX_HOME: else the first run makes it.
MODELS := from jobs.environment import home; from pipelines.embedding import load_embedder; \
  from pipelines.indexing.settings import choose_model; load_embedder(choose_model("auto"), device="cpu", cache=home() / "models")
models: $(VENV)/.installed
	@$(BIN)/python -c '$(MODELS)'

# PyPI's torch for Linux brings CUDA, 4 GB more. A Linux without NVIDIA's driver takes the build for CPUs, where its index can be
# reached; `make install TORCH_INDEX=` takes PyPI's, `TORCH_INDEX=https://download.pytorch.org/whl/cu130` one for a certain CUDA.
NVIDIA = $(shell command -v nvidia-smi || ls /dev/nvidiactl 2> /dev/null)
TORCH_INDEX ?= $(if $(filter Linux,$(shell uname -s)),$(if $(NVIDIA),,https://download.pytorch.org/whl/cpu))

# Bytes of disk, in GB: .venv has 2.5 with torch for CPUs and 6.2 with CUDA, and pip unpacks in the folder for temporary files.
DISK_CPU := 3.5
DISK_CUDA := 8
define CHECK_DISK
import os, shutil, sys
folder, needed, instead = sys.argv[1:]
folder = os.path.realpath(folder if os.path.exists(folder) else ".")
free = shutil.disk_usage(folder).free / 1e9
if free < float(needed):
    sys.exit("the install needs %s GB of disk in %s, which has %.1f GB: free some%s" % (needed, folder, free, instead))
endef
export CHECK_DISK
check_disk = $(PYTHON) -c "$$CHECK_DISK" $(VENV)

# uv installs in a quarter of pip's time. It does not read pip's settings, so it is told pip's index; where that is not enough
# (a proxy, an index with a password, no wheel of uv), pip does it. On a terminal both show what they do. Most modules are never
# imported, so Python compiles them when they are. Older releases of pip read the indexes three times as slowly. Like pip,
# uv trusts the system's certificates, which may include a company's own.
export UV_SYSTEM_CERTS ?= 1
PIP := 26.3
UV := 0.13.9
QUIET = $(if $(MAKE_TERMOUT),,--quiet)
PIP_INSTALL = $(BIN)/python -m pip install $(QUIET) --disable-pip-version-check --no-compile
UV_INSTALL = index=`$(BIN)/python -m pip config list | sed -n "s/^.*\.index-url='\(.*\)'$$/\1/p" | tail -n 1`; \
  $(BIN)/python -m uv pip install $(QUIET) --python $(BIN)/python $${index:+--default-index "$$index"}
ALL := -c constraints.txt -e '.$(EXTRAS)'
HAS_TORCH = ls $(VENV)/lib/python3*/site-packages/torch/version.py > /dev/null 2>&1
$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Raydex needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": set PYTHON=python3.11 (or newer)")'
	@$(HAS_TORCH) || $(check_disk) $(DISK_CPU) ""
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (some minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile pip==$(PIP) uv==$(UV) || \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile pip==$(PIP)
	@test -z "$(TORCH_INDEX)" || $(HAS_TORCH) || \
	  $(PIP_INSTALL) --index-url $(TORCH_INDEX) --timeout 5 --retries 0 --no-deps -c constraints.txt torch 2> /dev/null || \
	  echo "no torch comes from $(TORCH_INDEX): taking the one of your package index, on Linux perhaps with CUDA"
	@test "`uname -s`" != Linux || $(HAS_TORCH) || $(check_disk) $(DISK_CUDA) ", or set DISK_CUDA=$(DISK_CPU) if your package index has torch for CPUs"
	@$(HAS_TORCH) || $(PIP_INSTALL) --no-deps -c constraints.txt torch
	@$(UV_INSTALL) $(ALL) || { echo "uv can't install here: taking pip"; $(PIP_INSTALL) $(ALL); }
	@touch $@

# The tests of the pages skip, with the reason, where there is no browser: so this never fails.
chromium:
	@command -v chromium-headless-shell > /dev/null || command -v chromium > /dev/null || command -v google-chrome > /dev/null || \
	  { test "`id -u`" = 0 && command -v apt-get > /dev/null && apt-get update -qq && \
	    { apt-get install -qq -y chromium-headless-shell || apt-get install -qq -y chromium; } > /dev/null 2>&1; } || \
	  echo "no chromium: tests of the pages will be skipped (on Debian, as root: apt-get install chromium-headless-shell)"

demo: install
	@$(BIN)/raydex demo $(if $(SITE),--site '$(SITE)') $(if $(QUESTION),--question '$(QUESTION)')

# Each worker has a Postgres of its own, one has Ray and Serve (tests/kit/scheduling.py). Models under test are tiny:
# threads of several workers would only wait for each other.
WORKERS ?= 3
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(WORKERS)

# TESTS is a file or a folder: one process starts sooner than several workers.
test: $(VENV)/.installed
	@$(if $(TESTS),OMP_NUM_THREADS=1 $(BIN)/python -m pytest,$(PYTEST)) -m 'not exhaustive' $(TESTS)

test-all: $(VENV)/.installed
	@$(PYTEST)

# One after the other: each starts clusters of its own, and measures how long they take.
test-cluster: $(VENV)/.installed
	@$(BIN)/python -m pytest tests/cluster

# Whether constraints.txt installs on the Pythons and platforms that are promised: asks the package index.
check-constraints: $(VENV)/.installed
	@$(BIN)/python .ci/constraints.py $(BIN)/uv

# With --jobs the types are read beside all else.
check: check-types check-style check-javascript check-house

check-types: $(VENV)/.installed
	@$(BIN)/pyrefly check --output-format min-text

check-style: $(VENV)/.installed
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/oxlint --quiet pipelines serve
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yaml deploy/github/raydex.yaml
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.compose-spec deploy/compose.yaml

check-house: $(VENV)/.installed
	@$(BIN)/python -m pytest -q tests/unit/house/test_architecture.py

# The types of JavaScript are checked where npm can install the compiler: nothing else of ours needs Node.
TYPESCRIPT := 5.9.3
TSC := $(VENV)/js/node_modules/.bin/tsc
SCRIPTS := jsconfig.json pipelines/insights/page/jsconfig.json pipelines/evaluation/experiments/jsconfig.json
check-javascript: $(VENV)/.installed
	@if $(MAKE) --no-print-directory --silent $(VENV)/js/.typescript-$(TYPESCRIPT) 2> /dev/null; \
	then for config in $(SCRIPTS); do $(TSC) --project $$config || exit; done; \
	else echo "npm can't install TypeScript here: the types of JavaScript were not checked"; fi

$(VENV)/js/.typescript-$(TYPESCRIPT):
	@npm install --no-save --no-package-lock --silent --prefix $(VENV)/js typescript@$(TYPESCRIPT)
	@touch $@

# One table for each sweep; what is trained is read from models/ (docs/training.md), and a run without it is listed as failed.
RAYDEX_DATA ?= ../shared/data
quality: install
	@for sweep in ray-docs ray-docs-chunks ray-docs-trained; do \
	  $(BIN)/python -m jobs.experiment benchmarks/sweeps/$$sweep.yaml --dataset "$(RAYDEX_DATA)/eval-dev.jsonl" \
	    --baseline default --write benchmarks/results/$$sweep.md || exit; \
	done

# One table for each benchmark; what can't run here is skipped with the reason.
BENCH ?=
SIZES ?=
bench: install
	@$(BIN)/python -m benchmarks $(BENCH) $(if $(SIZES),--sizes $(SIZES))

# What `pip install` takes anywhere: the version is pyproject.toml's, the demo's documents are inside.
wheel: $(VENV)/.installed
	@$(BIN)/python -m hatchling build --clean

# The steps of a release, against registries on this machine (deploy/release/rehearse.py --help).
STAND_IN ?=
release-check: $(VENV)/.installed
	@$(BIN)/python deploy/release/rehearse.py $(if $(STAND_IN),--stand-in $(STAND_IN))

# Pins every package to what is installed now; torch without its build tag, so that any build of it will do.
lock:
	@$(BIN)/python -m pip freeze --exclude-editable | sed 's/^torch==\([0-9.]*\)+.*/torch==\1/' > constraints.txt

# The tree of docs/architecture.md, from the first lines of the modules.
tree: $(VENV)/.installed
	@$(BIN)/python docs/tree.py --write

# docs/settings.md, from the classes of the settings and the words of docs/settings.yaml.
reference: $(VENV)/.installed
	@$(BIN)/python docs/reference.py --write

# Broken links are errors. The pages of the reference that only the site has are made anew each time.
ZENSICAL := 0.0.73
docs: reference $(VENV)/.zensical-$(ZENSICAL)
	@$(BIN)/python docs/site_pages.py

$(VENV)/.zensical-$(ZENSICAL): $(VENV)/.installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check zensical==$(ZENSICAL)
	@touch $@

# docs/images/*.svg from the texts beside them, by D2 (npm has it as WebAssembly).
D2 := 0.1.33
pictures: $(VENV)/js/.d2-$(D2)
	@$(BIN)/python docs/waterfall.py
	@node docs/pictures.mjs $(VENV)/js/node_modules/@terrastruct/d2/dist/node-esm/index.js docs/images

$(VENV)/js/.d2-$(D2):
	@npm install --no-save --no-package-lock --silent --prefix $(VENV)/js @terrastruct/d2@$(D2)
	@touch $@

clean:
	rm -rf dist .site .cache $(VENV) .pytest_cache .ruff_cache .hypothesis
