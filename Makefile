# Every target sets up what it needs. You need Python 3.11 or newer, make and a network.
.DEFAULT_GOAL := help
.PHONY: help demo test check install bench soak model mutants fuzz image clean test-servers test-windows

BIN := .venv/bin
READY := .venv/.ready
IMAGE ?= scheduled-events-bridge
DOCKER ?= docker
export PYTHON

help:  ## print this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 22

demo: $(READY)  ## show the whole loop on this machine; press Ctrl-C to stop
	@$(BIN)/seb demo

test: $(READY) test-servers  ## run all tests
	$(BIN)/pytest -n 3 --dist worksteal

check: $(READY)  ## ruff, mypy and the import contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini tests
	$(BIN)/lint-imports

install: $(READY)  ## create .venv with the bridge and its tools
	@echo "The bridge is installed: $(BIN)/seb --help"

bench: $(READY) test-servers  ## compare speed and memory with baselines; ONLY=storm measures one group
	@$(BIN)/python -m bench $(if $(ONLY),--only $(ONLY))

soak: $(READY) test-servers  ## play 10 minutes of faults against three bridges, and judge them
	@PYTHONPATH=tests $(BIN)/python -m soak

model: $(READY)  ## explore every order of events in small worlds of approvals
	PYTHONPATH=tests $(BIN)/python -m model

mutants: $(READY) test-servers  ## break one promise at a time; each error must be found
	PYTHONPATH=tests $(BIN)/python -m mutants

fuzz: $(READY)  ## give hostile input to every reader, for MINUTES=10 in total
	FUZZ_MINUTES=$(or $(MINUTES),10) $(BIN)/pytest -m fuzz -n 2 --dist load --timeout 0

test-windows: $(READY) test-servers  ## run the tests for Windows, under Wine
	@scripts/test-windows

image:  ## build the container image
	$(DOCKER) build --tag $(IMAGE) .

clean:  ## remove what the other targets created
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

# Installs the brokers and clients that tests use, unless they are installed. Without one of them, tests
# use a stand-in or are skipped, and say so. In CI they fail.
test-servers:
	@scripts/kafka-libs >/dev/null || echo "Continuing with an in-memory stand-in for Kafka" >&2
	@command -v mosquitto_sub >/dev/null || scripts/debian-packages mosquitto mosquitto-clients >/dev/null \
		|| echo "Continuing without Mosquitto" >&2
	@scripts/javascript-libs >/dev/null || echo "Continuing without the JavaScript SDK" >&2
	@scripts/debian-packages rsyslog rsyslog-gnutls >/dev/null || echo "Continuing without rsyslog" >&2
	@command -v kcat >/dev/null || scripts/debian-packages kcat >/dev/null || echo "Continuing without kcat" >&2

$(READY): pyproject.toml constraints.txt scripts/venv
	@echo "Setting up .venv"
	@scripts/venv
	@touch $@
