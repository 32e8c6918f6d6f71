# Everything a person or a machine does with this checkout. `make help` lists it.

# A Python of 3.11 or later; without a name, packaging/install looks for one.
PY ?=
BIN := .venv/bin
STAMP := .venv/.set-up
TESTS_STAMP := .venv/.set-up-tests
# Where the machine has no Node, `node` installs one here.
export PATH := $(PATH):$(CURDIR)/.venv/bin
# Tests start hundreds of Python processes: without compiled files each would compile agiraph again.
export PYTHONDONTWRITEBYTECODE :=
# Processes that run tests: more than two cores have, as tests mostly wait for what they started.
WORKERS ?= 5
# How long `make faults` may take; what is random goes on for as long as there is time.
MINUTES ?= 50
# Of the random choices in `make test`: a test that is run again makes the same ones.
SEED := $(shell od -An -N3 -tu4 /dev/urandom | tr -d ' ')
GOAL ?= Show me what you can do

.DEFAULT_GOAL := help
.PHONY: checks-beside-tests all-tests lint types more-types public-types layers web-compile web-units web web-types web-test web-check screenshots chromium node postgres programs all-programs help setup setup-tests up run test quick both check faults bench bench-web bench-peers lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv with agiraph (done by the others when needed)

$(STAMP): requirements.lock pyproject.toml packaging/install
	@PY="$(PY)" sh packaging/install requirements.lock
	@touch $@

setup-tests: $(TESTS_STAMP) ## Add the tools of the tests to .venv (done by the others when needed)

$(TESTS_STAMP): $(STAMP) requirements-tests.lock
	@PY="$(PY)" sh packaging/install requirements-tests.lock
	@touch $@

up: setup ## Start everything: API, web UI and background work; prints a link to sign in
	@$(BIN)/agiraph up

run: setup ## Run a goal in the terminal: GOAL="…"; without a key the scripted demo answers
	@$(BIN)/agiraph run "$(GOAL)"

# The checks run beside the tests and leave them most of the processor: tests often wait for what they
# started. They must not come so late that they run on alone when the tests are done.
test: setup-tests postgres chromium node programs web/node_modules/.package-lock.json ## All tests, on SQLite and PostgreSQL, in a browser, with kills; says what took how long
	@sh tests/timed "make test" 840 $(MAKE) --no-print-directory -j 2 checks-beside-tests all-tests

checks-beside-tests:
	@nice -n 5 sh tests/timed checks 420 env -u MAKEFLAGS $(MAKE) --no-print-directory types lint layers public-types web-compile web-units

all-tests:
	@sh tests/timed tests 830 $(BIN)/python tests/rerun.py -q --workers=$(WORKERS) --lean --seed=$(SEED) --hypothesis-seed=$(SEED)

quick: setup-tests ## The tests for every few minutes: on SQLite, without browsers, servers, kills and whole scenarios
	@sh tests/timed quick 120 $(BIN)/python -m pytest -q -p no:schemathesis --workers=$(WORKERS) --quick

both: setup-tests postgres chromium node programs ## All tests, each on both databases: `make test` leaves out what runs the same SQL again
	@$(BIN)/python tests/rerun.py -q --workers=$(WORKERS) --seed=$(SEED) --hypothesis-seed=$(SEED)

postgres:
	@sh tests/install-postgres
	@sh tests/install-bubblewrap

chromium:
	@sh tests/install-chromium

programs: setup node
	@sh tests/install claude-code mcp-npm mcp-pypi model

all-programs: setup node
	@sh tests/install codex dovecot gemini-cli open-webui opencode proxy

node: setup
	@sh tests/install-node

check: setup-tests ## Format, lint, types, public API, import layers
	@$(MAKE) --no-print-directory -j 2 -O types lint layers public-types
	@echo "check: clean"

lint:
	@$(BIN)/ruff format --check --quiet src tests bench
	@$(BIN)/ruff check --quiet src tests bench

types:
	@$(BIN)/pyrefly check --summary=none > .venv/pyrefly.log 2>&1 || { cat .venv/pyrefly.log; exit 1; }

# A slower type checker that finds a few other faults, such as keys that cannot be hashed.
more-types: setup-tests
	@$(BIN)/pyright --warnings

public-types:
	@# --verifytypes looks for the package with the first Python of the PATH.
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pyright --verifytypes agiraph --ignoreexternal > .venv/verifytypes.log || { sed -n '/^Symbols used/,$$p' .venv/verifytypes.log; exit 1; }

layers:
	@$(BIN)/lint-imports --no-cache > .venv/lint-imports.log || { cat .venv/lint-imports.log; exit 1; }

faults: setup-tests postgres chromium node programs all-programs more-types ## The long runs: kills at every point and at random, chaos, fuzzing; MINUTES=50 or more
	@$(BIN)/python -m pytest -q tests --long -m long --minutes=$(MINUTES) --workers=2

bench: setup-tests ## What a durable turn costs, against the floor of the same run; KEEP=1 writes it to the README
	@$(BIN)/python bench/run.py $(if $(KEEP),--keep)

bench-peers: setup-tests build/peers/.set-up ## The same work with other runtimes, in an environment of their own
	@$(BIN)/python -m bench.peers.run build/peers/bin/python $(if $(ONLY),--only $(ONLY))

build/peers/.set-up: bench/peers/requirements.txt
	@rm -rf build/peers && $(BIN)/python -m venv build/peers
	@build/peers/bin/pip install --quiet --disable-pip-version-check -r $<
	@touch $@

bench-web: setup-tests $(if $(PROFILE),node web/node_modules/.package-lock.json) ## What a frame of the web UI costs, with 10,000 events, 500 tasks, 100 teams and a slow line; PROFILE=1 says why
	@$(if $(PROFILE),cd web && AGIRAPH_WEB_OUT=../build/web-readable node_modules/.bin/vite build --minify false --logLevel warn)
	@$(BIN)/python -m bench.web.frames $(if $(PROFILE),--profile build/web-readable) $(if $(ONLY),--only $(ONLY))

# The tests' lock contains the other one: both name the same version of a package.
COMPILE := $(BIN)/pip-compile --quiet --allow-unsafe --generate-hashes --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-header
lock: setup ## Renew requirements.lock and requirements-tests.lock from pyproject.toml
	@$(BIN)/python -m pip install --quiet pip-tools
	@$(COMPILE) -o requirements.lock pyproject.toml
	@$(COMPILE) --extra dev -c requirements.lock -o requirements-tests.lock pyproject.toml

web: web/node_modules/.package-lock.json web-types ## Build the web UI into src/agiraph/web_dist (needs Node 20)
	@cd web && node_modules/tsc7/bin/tsc --noEmit && node_modules/.bin/vite build --logLevel warn
	@$(BIN)/python web/stamp.py

web-test: node web/node_modules/.package-lock.json ## The web UI's types and unit tests
	@$(MAKE) --no-print-directory -j 2 -O web-compile web-units

# tsc7 is TypeScript's native compiler. It has no JavaScript API, which openapi-typescript needs, so
# the older `typescript` stays for that; both would own .bin/tsc.
# Each of several checkers would work out the same types again. Half a gigabyte is enough to collect
# no garbage.
web-compile:
	@cd web && GOGC=off node_modules/tsc7/bin/tsc --noEmit --checkers 1

web-units:
	@cd web && node_modules/.bin/vitest run

web-check: web/node_modules/.package-lock.json ## The web UI's types and built files are what the sources give
	@cp web/src/api/types.ts web/node_modules/.types.before
	@$(MAKE) --no-print-directory web-types
	@cmp web/src/api/types.ts web/node_modules/.types.before || { echo "web-check: types.ts was stale; run make web" >&2; exit 1; }
	@cd web && node_modules/tsc7/bin/tsc --noEmit
	@cd web && AGIRAPH_WEB_OUT=node_modules/.rebuilt node_modules/.bin/vite build --logLevel warn
	@diff -rq --exclude=build.json web/node_modules/.rebuilt src/agiraph/web_dist || { echo "web-check: the built files are stale; run make web" >&2; exit 1; }
	@echo "web-check: clean"

screenshots: setup-tests chromium ## Every screen in both themes and three widths, into build/screenshots
	@for look in light dark narrow phone; do $(BIN)/python web/screenshots.py build/screenshots $$look || exit 1; done
	@mkdir -p docs/screenshots
	@cd build/screenshots && cp coordinator-light.png board-dark.png inbox-report-light.png ../../docs/screenshots/

web-types: setup web/node_modules/.package-lock.json
	@$(BIN)/python -m agiraph.api.schema > web/node_modules/.openapi.json
	@cd web && node_modules/.bin/openapi-typescript node_modules/.openapi.json -o src/api/types.ts > node_modules/.types.log 2>&1 || { cat node_modules/.types.log; exit 1; }

web/node_modules/.package-lock.json: web/package-lock.json
	@command -v npm >/dev/null || { echo "web: needs Node 20 with npm, for building only; the built pages are in src/agiraph/web_dist" >&2; exit 1; }
	@cd web && npm ci --no-audit --no-fund --loglevel=error || { echo "web: npm could not install web/package-lock.json; is a registry within reach (npm config get registry)?" >&2; exit 1; }

clean: ## Remove what set-up made
	@rm -rf .venv .pytest_cache .ruff_cache .hypothesis
