# Everything runs in .venv, set up from the locked requirements; the second run needs no network.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
LOCKS := requirements/uv.txt requirements/lock.txt
# Several tests at once: five for each core, as most of them wait; `make test PROCESSES=1` says otherwise.
PROCESSES ?= auto
SIDE_BY_SIDE := --processes $(PROCESSES)

.PHONY: help run test check format bench conformance soak catalogue lock clean compiled page browser pictures alone

help: ## say what can be made
	@grep -hE '^[a-z]+:.*##' Makefile | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 20

$(STAMP): $(LOCKS) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Crow needs Python 3.11 or newer; say which with: make PYTHON=python3.12 ..."; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements/lock.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

# Where PYTHONDONTWRITEBYTECODE is set, each start would compile what it imports anew, which takes three times as long.
compiled: $(STAMP)
	@$(BIN)/python -m compileall -q src || true

# The page of `crow web`, with the node that pyright's package brings. Built once for each state of page/; where it cannot be
# built (npm's registry is out of reach), everything else works all the same, and one sentence says so.
page: $(STAMP)
	@$(BIN)/python hatch_build.py || echo "Everything but the page works without it; \`make page\` tries again."

browser: page ## install what the tests in a browser need, and say what is missing
	@$(BIN)/python -m tests.browser

pictures: compiled page ## make the pictures of README.md and docs/browser.md anew (needs a Chromium)
	@CROW_PICTURES=docs/pictures CROW_BROWSER_TESTS=required $(BIN)/python -m pytest -q tests/browser/test_pictures.py

run: compiled page ## set everything up and play the demo conversation
	@$(BIN)/crow demo

test: compiled page ## set everything up and run every test
	@command -v git >/dev/null || { echo "make test needs git: some tests compare with what it does."; exit 1; }
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -q $(SIDE_BY_SIDE)

alone: compiled page ## run the tests that failed once more, one after the other; not if there are more than three
	@$(BIN)/python -m tests.alone

check: $(STAMP) ## types, style
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright --warnings
	@$(BIN)/python hatch_build.py check

format: $(STAMP) ## lay out the code, and list where things are in docs/index.md
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(BIN)/python scripts/room_index.py

conformance: compiled page ## show each rule of the protocol, with real clients too (needs npm); writes docs/conformance.md
	@CROW_COLD_STARTS=1 $(BIN)/python -m tests.conformance

soak: compiled page ## the long runs: many more hostile lines, edits, shell lines, kills and damages, each with a new seed
	@export CROW_COLD_STARTS=1; $(BIN)/python -m pytest -q $(SIDE_BY_SIDE) -m slow --timeout 1800 || exit 1; \
	CROW_STEERING_SEEDS=500 $(BIN)/python -m pytest -q $(SIDE_BY_SIDE) --timeout 1800 tests/acp/test_steering_wires.py || exit 1; \
	CROW_FACES_SEEDS=200 CROW_FACES_ROUNDS=500 \
	$(BIN)/python -m pytest -q $(SIDE_BY_SIDE) --timeout 1800 tests/session/test_faces.py tests/session/test_faces_files.py tests/acp/test_faces.py || exit 1; \
	for seed in 1 2 3; do \
		CROW_POLICY_MUTANTS=40000 CROW_POLICY_SEED=$$seed CROW_HOSTILE_SEED=$$seed CROW_HOSTILE_LINES=50000 \
		$(BIN)/python -m pytest -q --timeout 1800 tests/policy/test_differential.py tests/policy/test_time.py tests/acp/test_hostile.py \
			tests/acp/test_cancel.py tests/acp/test_exits.py tests/commands/test_terminal.py || exit 1; \
		CROW_STORE_SECONDS=60 CROW_STORE_KILLS=200 CROW_STORE_DAMAGES=1500 CROW_STORE_SEED=$$seed \
		$(BIN)/python -m pytest -q --timeout 1800 tests/store || exit 1; \
		CROW_STEERING_SEEDS=1000 CROW_STEERING_FIRST=$${seed}000 \
		$(BIN)/python -m pytest -q --timeout 1800 tests/session/test_steering.py || exit 1; \
		CROW_CANCEL_SEEDS=1000 CROW_CANCEL_FIRST=$${seed}000 \
		$(BIN)/python -m pytest -q --timeout 1800 tests/session/test_running.py || exit 1; \
		CROW_RACES=2000 CROW_RACES_SEED=$$seed \
		$(BIN)/python -m pytest -q $(SIDE_BY_SIDE) --timeout 1800 tests/tools/test_races.py || exit 1; \
		CROW_FACES_KILLS=100 CROW_FACES_SEED=$$seed \
		$(BIN)/python -m pytest -q -m slow --timeout 1800 tests/acp/test_three_faces.py -k any_moment || exit 1; \
		CROW_KILLS=200 CROW_KILLS_SEED=$$seed \
		$(BIN)/python -m pytest -q --timeout 1800 tests/acp/test_kill.py || exit 1; \
		CROW_KILLS=60 CROW_KILLS_SEED=$$seed \
		$(BIN)/python -m pytest -q --timeout 3600 tests/acp/test_attach.py || exit 1; \
	done

bench: compiled page ## measure speed and memory against the targets
	@$(BIN)/python bench/run.py $(BENCH)

catalogue: $(STAMP) ## make the table of the vendors' models anew, from the newest source
	@$(BIN)/python scripts/catalogue.py

lock: ## resolve the dependencies anew
	@$(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --universal --upgrade --python-version 3.11 \
		--group dev pyproject.toml -o requirements/lock.txt
	@echo uv | $(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --universal --upgrade --python-version 3.11 \
		- -o requirements/uv.txt

clean: ## remove what was set up
	@rm -rf $(VENV) .pytest_cache .ruff_cache bench/results page/node_modules src/crow/web_server/built
