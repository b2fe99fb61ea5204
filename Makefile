# Every target sets up what it needs. You need Python 3.11 or newer, make and a network.
.DEFAULT_GOAL := help
.PHONY: help demo test test-browser test-interop test-windows screenshots check install bench soak model mutants fuzz \
	image release clean test-servers test-chromium test-packages test-release test-image test-chart

BIN := .venv/bin
READY := .venv/.ready
OUT ?= dist
export PYTHON

help:  ## print this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 24

demo: $(READY)  ## show the whole loop on this machine; press Ctrl-C to stop
	@$(BIN)/seb demo

test: $(READY) test-servers  ## run all tests
	$(BIN)/pytest -n 3 --dist worksteal --ignore tests/browser --ignore tests/interop --ignore tests/windows

test-browser: $(READY) test-chromium  ## run the tests of the console in a real browser
	$(BIN)/pytest tests/browser -n 2 --dist worksteal

screenshots: $(READY) test-chromium  ## take the pictures of the console in docs/images again
	SEB_SCREENSHOTS=docs/images $(BIN)/pytest tests/browser/test_screenshots.py -p no:randomly

test-interop: $(READY) test-servers  ## run the bridge against other people's clients and servers, and write the matrix
	@scripts/interop-programs >/dev/null || echo "Continuing without the programs of tests/interop" >&2
	COMPATIBILITY=write $(BIN)/pytest tests/interop -n 2 --dist worksteal

check: $(READY)  ## ruff, mypy, the import contracts, and the console's JavaScript
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini tests
	$(BIN)/lint-imports
	scripts/console-check

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

image:  ## build the container image with docker, podman or buildah; BASE= names its base
	scripts/image

release: $(READY)  ## build all files of a release into dist; CPYTHON= and WINDOWS_CPYTHON= name the Pythons inside
	$(BIN)/python -m release --python "$(or $(CPYTHON),$$(scripts/stand-in-python))" --out $(OUT) $(if $(ONLY),--only $(ONLY)) \
		$(if $(WINDOWS_CPYTHON),--windows-python $(WINDOWS_CPYTHON))

test-packages: $(READY)  ## install, upgrade, downgrade and purge the .deb in roots of Debian; needs root
	PYTHONPATH=tests $(BIN)/python -m proofs packages

test-release: $(READY)  ## build a release twice, and compare every byte; needs root and buildah
	PYTHONPATH=tests $(BIN)/python -m proofs release

test-image: $(READY)  ## build the image with buildah, and run it against the simulator; needs root
	PYTHONPATH=tests $(BIN)/python -m proofs image

test-chart: $(READY)  ## render the Helm chart, and validate it against the schemas of Kubernetes
	PYTHONPATH=tests $(BIN)/python -m proofs chart

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
	@command -v promtool >/dev/null || scripts/debian-packages prometheus >/dev/null \
		|| echo "Continuing without Prometheus" >&2
	@command -v systemd-analyze >/dev/null || scripts/debian-packages systemd >/dev/null || echo "Continuing without systemd-analyze" >&2
	@{ command -v zsh && command -v fish; } >/dev/null || scripts/debian-packages zsh fish >/dev/null \
		|| echo "Continuing without zsh and fish" >&2
	@command -v kcat >/dev/null || scripts/debian-packages kcat >/dev/null || echo "Continuing without kcat" >&2

# Chromium, and the fonts that the screenshots are taken with.
test-chromium:
	@scripts/debian-packages chromium fonts-inter fonts-jetbrains-mono >/dev/null || echo "Continuing without Chromium" >&2
	@scripts/javascript-libs tests/browser/tools >/dev/null || echo "Continuing without axe-core" >&2

$(READY): pyproject.toml constraints.txt scripts/venv
	@echo "Setting up .venv"
	@scripts/venv
	@touch $@
