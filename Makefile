# Every target makes its own .venv from the lock; all it needs is python3 (3.11 or newer) and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCKED := $(VENV)/.locked
INSTALLED := $(VENV)/.installed
BROWSER := $(VENV)/.browser
# Tests in which the API server has a part: rights, admission, deletion, and what controllers make of watches. What agents do
# to Git and hosts, and what the CLI prints, is the same beside either; what it answers to the contract is recorded.
OF_THE_API_SERVER := $(addprefix tests/,api attacks bundles deploy e2e graph http pipelines runtime supplychain/test_jobs.py)
# What `make test` leaves to targets of their own, all of which `.ci/run` calls.
OF_THE_PLANE := tests/local/plane tests/local/contract
OF_RESILIENCE := tests/resilience
OF_THE_BROWSER := tests/browser
CODE := kardinal kardinal_agent kardinal_controller kardinal_local kardinal_supplychain tests hack

# Tests start hundreds of processes: each would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help ui dist demo test test-plane test-resilience test-ui test-ui-all lint fmt crds docs bench lock assets kube-up renderers test-kube test-kube-fast test-hosts test-every-host test-registry test-supplychain test-cartographer test-chain-kills test-gitops test-gitops-fast test-lives test-walk test-corpus test-catalog-oracle test-catalog-merge test-cel test-graph test-kubectl contract-record builtins bench-hostile bench-localplane soak

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | while IFS='	' read -r name text; do \
		printf '  make %-16s %s\n' "$$name" "$$text"; done

ui: ## build the web page, with Node from PATH or PyPI, a minute the first time
	@$(PYTHON) -m hack.page build

dist: $(INSTALLED) ## make sdist and wheel with the built page, which need no Node where they are installed
	$(BIN)/python -m hack.page dist

.PHONY: pictures
pictures: $(BROWSER) ui ## take pictures of the web page into build/pictures, and those of the documentation, minutes
	$(BIN)/python -m hack.docs.pictures $(ARGS)

demo: $(INSTALLED) ## watch a Bundle walk through three environments on this machine
	@mkdir -p build; $(PYTHON) -m hack.page build >build/page.log 2>&1 </dev/null & # its page says that it is being built
	$(BIN)/kardinal demo

test: $(INSTALLED) ## run the tests of the product
	@$(BIN)/python -m hack.hosts.descriptions >/dev/null || echo "GITHUB: NOT RUN; its tests need its published descriptions" >&2
	$(BIN)/python -m hack.page test
	$(BIN)/pytest $(addprefix --ignore=,$(OF_THE_PLANE) $(OF_RESILIENCE) $(OF_THE_BROWSER))

test-plane: $(INSTALLED) ## run the local plane's own suites, and record that they passed with all that they depend on
	$(BIN)/python -m hack.plane_suites

test-resilience: $(INSTALLED) ## kill processes, live whole lives, and let hosts fail
	$(BIN)/pytest $(OF_RESILIENCE)

test-kube: assets ## run the contract, controller and end-to-end tests on a real API server
	$(BIN)/pytest --target=assets

test-kube-fast: assets ## run those of controllers and end to end in which the API server has a part
	$(BIN)/pytest --target=assets $(OF_THE_API_SERVER)

# The stories of a file share a plane and a window, so that one worker runs them all.
test-ui: $(BROWSER) ui ## try the web page in Chromium, which is on PATH (Debian: chromium) or Playwright's own
	$(BIN)/pytest --dist=loadfile -m "not long_story" $(OF_THE_BROWSER)

test-ui-all: $(BROWSER) ui ## the same with the stories that take too long for every change
	$(BIN)/pytest --dist=loadfile $(OF_THE_BROWSER)

test-hosts: $(INSTALLED) ## run the tests of hosts that use a real Gitea, which Go builds in some 5 minutes once
	$(BIN)/python -m hack.gitea.assets
	$(BIN)/pytest --gitea tests/hosts tests/supplychain/test_flux_source.py

test-every-host: $(INSTALLED) ## run at every host what "make test" shows at one
	$(BIN)/pytest --every-host tests/agent tests/resilience/faults

test-registry: $(INSTALLED) ## ask a real registry for digests, seconds after a build of minutes
	$(BIN)/python -m hack.registry.assets
	$(BIN)/pytest -n0 tests/registries tests/bundles/test_tags.py

test-supplychain: renderers ## run supply chains with real parts and stand-ins: ytt, a registry, Flux's source-controller, builds, two minutes after builds of minutes
	$(BIN)/python -m hack.registry.assets
	$(BIN)/python -m hack.fluxsource.assets
	SUPPLYCHAIN=1 $(BIN)/pytest -n2 --timeout=170 $(wildcard tests/supplychain/test_ytt*.py) tests/supplychain/test_standins.py tests/supplychain/test_flux_source.py tests/supplychain/test_road.py

test-cartographer: assets renderers ## run the tests of Cartographer, which Go fetches, on the local plane and on a real API server, minutes
	SUPPLYCHAIN=1 $(BIN)/pytest tests/supplychain/test_public_cases.py
	SUPPLYCHAIN=1 $(BIN)/pytest --target=assets tests/supplychain/test_public_cases.py

test-chain-kills: $(INSTALLED) ## kill the program of supply chains 1,000 times, minutes; KILLS=200: so many times
	KILLS=$(or $(KILLS),1000) $(BIN)/pytest -k wherever_the_program_is_killed tests/supplychain/test_owner_runs.py tests/supplychain/test_runnable_runs.py

test-gitops: assets renderers ## promote to real GitOps tools on a real API server, some minutes after builds of minutes
	$(BIN)/python -m hack.flux.assets
	$(BIN)/python -m hack.rollouts.assets
	$(BIN)/python -m hack.flagger.assets
	$(BIN)/python -m hack.argocd.assets
	GITOPS=1 $(BIN)/pytest -n0 --timeout=600 tests/gitops

test-gitops-fast: assets ## promote to a real Flux on a real API server, a minute after a build of minutes
	$(BIN)/python -m hack.flux.assets
	GITOPS=1 $(BIN)/pytest -n0 --timeout=200 tests/gitops/test_promotions.py

test-lives: $(INSTALLED) ## kill controller and agent in 2,000 whole lives of Bundles, 40 minutes on an idle machine; LIVES=20: in so many
	LIVES=$(or $(LIVES),2000) $(BIN)/pytest tests/resilience/lives

test-walk: $(INSTALLED) ## kill controller and agent while 21 Bundles walk through a real Gitea, minutes; WALK=3: so many
	$(BIN)/python -m hack.gitea.assets
	WALK=$(or $(WALK),21) $(BIN)/pytest --gitea -n0 -rP tests/hosts/test_gitea_walk.py

test-corpus: renderers ## compare our edits with those of kustomize on 200 kustomizations, minutes; fetches Go modules of others
	$(BIN)/python -m hack.renderers.corpus
	CORPUS=1 $(BIN)/pytest -n2 tests/corpus

test-catalog-merge: $(INSTALLED) ## merge 10,000 generated hierarchies by reclass-rs and by the rules alone, some minutes
	KARDINAL_HIERARCHIES=10000 $(BIN)/pytest tests/catalog/test_merge_by_the_rules.py

test-catalog-oracle: renderers ## compare catalogs of fixtures and 300 random hierarchies with Commodore, which pip installs beside the project, half an hour; HIERARCHIES=20: so many
	$(BIN)/python -m hack.catalog_oracle check
	HIERARCHIES=$(or $(HIERARCHIES),300) $(BIN)/pytest -n2 --timeout=300 tests/catalog/test_generated_hierarchies.py

test-cel: $(INSTALLED) ## compare our CEL with the published tests, which Go converts, and with Google's CEL, minutes
	$(BIN)/python -m hack.celspec.assets
	ORACLE=20000 $(BIN)/pytest -n2 --timeout=1200 -rs tests/cel

test-graph: $(INSTALLED) ## hold the Graph engine to its invariants in 2,000 random Graphs, half an hour; GRAPHS=100 SEED=2: so many others
	GRAPHS=$(or $(GRAPHS),2000) $(BIN)/pytest -n2 --timeout=3600 --hypothesis-seed=$(or $(SEED),1) tests/graph/test_invariants.py tests/graph/test_reconciler_walks.py

test-kubectl: $(INSTALLED) ## run the kubectl tests with every kubectl on this machine
	$(BIN)/pytest --kubectl=all tests/local/contract

soak: assets ## an hour: hundreds of kills, thousands of hostile requests and fuzzed sequences, behaviours deleted
	$(BIN)/pytest --soak --timeout=0 tests/local/plane/baddays tests/local/plane/hostile
	FUZZ_INPUTS=100000 $(BIN)/pytest --timeout=0 tests/fuzz
	$(BIN)/python -m tests.local.contract.fuzz --sequences 5000 --patience 20
	$(BIN)/python -m hack.mutations

lint: $(INSTALLED) ## check style, types, the direction of imports and that what is cited exists
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports
	$(BIN)/python -m hack.lint.citations
	$(BIN)/python -m hack.lint.assignments
	$(BIN)/python -m hack.page lint

fmt: $(INSTALLED) ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python -m hack.page format

crds: $(INSTALLED) ## regenerate crds/ from the models
	$(BIN)/python -m kardinal.promotion.api.crds crds
	$(BIN)/python -m kardinal_supplychain.api.crds crds/supplychain

docs: $(INSTALLED) ## regenerate the types of the page, and what docs/ shows of the CLI, steps, states, the contract suite and the bytes of others
	$(BIN)/python -m hack.docs.cli_reference docs/cli.md
	$(BIN)/python -m hack.docs.steps docs/steps.md
	$(BIN)/python -m hack.docs.states docs/states.md
	$(BIN)/python -m hack.docs.contract docs/contract.md
	$(BIN)/python -m hack.docs.limits docs/local-plane-limits.md
	$(BIN)/python -m hack.docs.foreign_bytes docs/security.md
	$(BIN)/python -m hack.docs.supply_chains docs/supply-chains-reference.md
	$(BIN)/python -m hack.docs.page_types kardinal_controller/ui/page/src/api/types.ts

bench: $(INSTALLED) ## measure promotions on this machine, some minutes; ARGS="--api real": on a real API server
	$(BIN)/python -m hack.bench.promotion $(ARGS)

bench-hostile: $(INSTALLED) ## measure /healthz and memory beside hostile hosts, clients, repositories and charts, half an hour
	$(BIN)/python -m hack.bench.hostile $(ARGS)

bench-localplane: assets ## measure the local plane beside a real API server, some 10 minutes; ARGS=lists: that part
	$(BIN)/python -m hack.bench.localplane $(ARGS)

assets: $(INSTALLED) ## build the real API server that tests compare with; needs Go 1.26, minutes the first time
	$(BIN)/python -m hack.kube.assets

renderers: $(INSTALLED) ## build kustomize, helm and ytt that rendering is tested with; needs Go 1.26, two minutes the first time
	$(BIN)/python -m hack.renderers.assets

kube-up: $(INSTALLED) ## run a real API server in the foreground and print its kubeconfig; ARGS=--nodes adds a node
	$(BIN)/python -m hack.kube.cluster --definitions crds $(ARGS)

builtins: assets ## regenerate what the local plane knows of built-in kinds from the real API server
	$(BIN)/python -m hack.kube.builtin_schemas
	$(BIN)/python -m hack.kube.protobuf_tables
	$(BIN)/python -m hack.kube.bootstrap_policy

contract-record: assets ## record anew what the real API server answers
	$(BIN)/pytest --target=assets --record tests/local/contract

# uv is the one tool that is not in the lock: it writes the lock. Its output is what pip-compile would write.
LOCK := uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --custom-compile-command "make lock"
lock: ## lock what pyproject.toml asks for, with hashes for pip; ARGS=--upgrade raises versions
	$(LOCK) $(ARGS) pyproject.toml --output-file requirements.txt
	$(LOCK) $(ARGS) --constraint requirements.txt pyproject.toml --extra catalog --output-file requirements-catalog.txt
	$(LOCK) $(ARGS) --constraint requirements-catalog.txt pyproject.toml --extra catalog --group dev --output-file requirements-dev.txt
	$(LOCK) $(ARGS) --constraint requirements-dev.txt --group build --output-file requirements-build.txt
	$(LOCK) $(ARGS) --constraint requirements-dev.txt --group browser --output-file requirements-browser.txt
	$(LOCK) $(ARGS) hack/catalog_oracle/requirements.in --output-file hack/catalog_oracle/requirements.txt

# What is imported is compiled when it is, which is a fraction of what is installed.
PIP := $(BIN)/python -m pip install --disable-pip-version-check --no-compile --quiet --quiet

$(LOCKED): requirements-build.txt requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "kardinal needs Python 3.11 or newer, and '$(PYTHON)' is not (`$(PYTHON) --version 2>&1`)." >&2; \
		echo "Name another one: make PYTHON=python3.13 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes --requirement requirements-build.txt
	$(PIP) --require-hashes --requirement requirements-dev.txt
	@touch $@

$(BROWSER): $(INSTALLED) requirements-browser.txt
	$(PIP) --require-hashes --requirement requirements-browser.txt
	@touch $@

$(INSTALLED): $(LOCKED) pyproject.toml
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@
