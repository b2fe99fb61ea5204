# Every target sets up what it needs: a Python 3.11 or newer, make and a network are enough.
.DEFAULT_GOAL := help
.PHONY: help demo test check install bench soak image clean far-sides

BIN := .venv/bin
READY := .venv/.ready
IMAGE ?= scheduled-events-bridge
DOCKER ?= docker
export PYTHON

help:  ## print this
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 18

demo: $(READY)  ## see scheduled events flow, on this machine alone; Ctrl-C ends it
	@$(BIN)/seb demo

test: $(READY) far-sides  ## prove it
	$(BIN)/pytest -n 3 --dist worksteal

check: $(READY)  ## ruff, mypy and the import contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini tests
	$(BIN)/lint-imports

install: $(READY)  ## make .venv with the bridge and its tools
	@echo "The bridge is installed: $(BIN)/seb --help"

bench: $(READY)  ## measure
	@set -e; for script in $(wildcard bench/*.py); do echo "== $$script"; $(BIN)/python $$script; done

soak: $(READY) far-sides  ## the long proofs
	$(BIN)/pytest -m soak

image:  ## build the container image
	$(DOCKER) build --tag $(IMAGE) .

clean:  ## remove what the other targets made
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

# The brokers and clients that tests meet: at once when they are there. What cannot be had, the tests do
# without, and say so; in CI they fail.
far-sides:
	@scripts/kafka-libs >/dev/null || echo "Going on with an in-memory stand-in for Kafka" >&2
	@command -v mosquitto_sub >/dev/null || scripts/debian-packages mosquitto mosquitto-clients >/dev/null \
		|| echo "Going on without Mosquitto" >&2
	@scripts/javascript-libs >/dev/null || echo "Going on without the JavaScript SDK" >&2
	@scripts/debian-packages rsyslog rsyslog-gnutls >/dev/null || echo "Going on without rsyslog" >&2
	@command -v kcat >/dev/null || scripts/debian-packages kcat >/dev/null || echo "Going on without kcat" >&2

$(READY): pyproject.toml constraints.txt scripts/venv
	@echo "Setting up .venv"
	@scripts/venv
	@touch $@
