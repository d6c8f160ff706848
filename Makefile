# Everything people do with this repository. `make help` prints this list.

PYTHON ?= python3
JOBS   ?= 2
VENV   := .venv
BIN    := $(VENV)/bin
# Python compiles the modules that are imported, once; pip would compile all of them, which takes as long as the rest.
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(PYTHONDONTWRITEBYTECODE),,--no-compile)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

##@ Start here

.PHONY: demo
demo: $(VENV)/.runs  ## Compile a layer of BERT for a tight chip, show how its tensors rotate, compare with ONNX Runtime
	@$(BIN)/t10 demo

# Parts that use one core each run side by side, so that none is idle; tests with time limits do not run beside them.
.PHONY: test
test: dev  ## The whole suite: style, types, import contracts, docs, lit, pytest
	@$(MAKE) -j$(JOBS) --output-sync types lint contracts docs-check lit
	@$(MAKE) pytest

.PHONY: help
help:  ## Print this list
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\nSettings: PYTHON=%s (3.10 or newer), JOBS=%s\n' '$(PYTHON)' '$(JOBS)'

##@ Set up

.PHONY: dev
dev: $(VENV)/.runs $(VENV)/.installed  ## Make .venv, install T10 in it in place, build the native modules, install what tests need

$(VENV)/.made:
	@$(PYTHON) tools/make_venv.py $(VENV)
	@touch $@

# Sources in Python are used where they are; only these files need another installation. The instruction records become C++.
NATIVE := $(wildcard $(foreach depth,* */*,python/t10/$(depth)/*.cpp python/t10/$(depth)/*.h)) \
  $(wildcard python/t10/isa/instructions/*.py) python/t10/isa/generate.py python/t10/isa/record.py

# What `make demo` needs. Packages are fetched while the native modules are built.
$(VENV)/.runs: $(VENV)/.made pyproject.toml CMakeLists.txt $(NATIVE)
	@echo "installing T10 and what it imports into $(VENV) (the first time: some 200 MB, about a minute)"
	@$(MAKE) -j2 $(VENV)/.packages $(VENV)/.built
	@touch $@

$(VENV)/.packages: $(VENV)/.made pyproject.toml
	@$(BIN)/python tools/requirements.py > $@.txt
	@$(PIP) --requirement $@.txt
	@touch $@

$(VENV)/.built: $(VENV)/.made pyproject.toml CMakeLists.txt $(NATIVE)
	@$(PIP) --no-deps --editable .
	@touch $@

$(VENV)/.installed: $(VENV)/.made pyproject.toml | $(VENV)/.runs
	@echo "installing what the suite needs into $(VENV) (the first time: some 150 MB)"
	@$(BIN)/python tools/requirements.py dev > $@.txt
	@$(PIP) --requirement $@.txt
	@touch $@

##@ One part of the suite

.PHONY: lint
lint: dev  ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

.PHONY: types
types: dev  ## pyright, strict
	@$(BIN)/basedpyright

.PHONY: contracts
contracts: dev  ## import-linter: who may import whom
	@$(BIN)/lint-imports

.PHONY: docs-check
docs-check: dev  ## Are the generated pages up to date?
	@$(BIN)/python tools/gen_docs.py --check

.PHONY: lit
lit: dev  ## lit: test/**/*.mlir
	@$(BIN)/lit -sv -j$(JOBS) test

.PHONY: pytest
pytest: dev  ## pytest: test/unit and test/e2e; of slow tests one of forty, of others 3 cases, drawn by the commit
	@$(BIN)/pytest -q -n $(JOBS) --dist worksteal --draw-slow

.PHONY: quick
quick: dev  ## pytest without the slow tests, a draw of the sampled ones, then lit
	@$(BIN)/pytest -q -n $(JOBS) --dist worksteal --draw-slow -m "not slow"
	@$(BIN)/lit -sv -j$(JOBS) test

.PHONY: conformance
conformance: dev  ## All tests of the onnx package, and operator x type x engine (`make pytest` runs a slice of them)
	@$(BIN)/t10 conformance -j $(JOBS)
	@$(BIN)/t10 conformance --only 'light/*'
	@$(BIN)/t10 conformance -j $(JOBS) --only 'grid/*'

.PHONY: fits
fits: dev  ## 200 random models on random small memories, on every engine (`make pytest` runs a slice of them)
	@$(BIN)/python benchmarks/fits.py --count 200 --poplar-host 0.1 --jobs $(JOBS)

.PHONY: stages
stages: dev  ## The three stages of the search one by one against native search: every partition of all models on 64 cores
	@$(BIN)/python tools/check_stages.py test-64

.PHONY: small-models
small-models: dev  ## Random small models on chips with more cores than elements: read back, proved, simulated (`make pytest` runs a slice)
	@$(BIN)/python tools/check_small_models.py 1000

.PHONY: fuzz
fuzz: dev  ## Damaged models, IR and files of every other kind at every door (`make pytest` runs a slice)
	@$(BIN)/python tools/fuzz_models.py --count 20000 --tests
	@$(BIN)/python tools/fuzz_models.py --count 2000 --level text
	@$(BIN)/python tools/fuzz_models.py --count 2000 --level ir
	@$(BIN)/python tools/fuzz_doors.py --count 20000

.PHONY: exhaustive
exhaustive: dev  ## pytest with all tests and cases of which `make pytest` draws some by the commit
	@T10_ALL_CASES=1 $(BIN)/pytest -q -n $(JOBS) --dist worksteal

.PHONY: mutants
mutants: dev  ## Would the tests notice? All mutants of test/mutants, one by one (`make pytest` draws some by the commit)
	@$(BIN)/python tools/mutants.py

.PHONY: page
page: $(VENV)/.runs  ## Open report.html in a headless Chromium, which npm fetches: two widths, light and dark; pictures in build/page
	@mkdir -p build/page
	@npm install --silent --no-audit --no-fund --prefix build/page @sparticuz/chromium@147 puppeteer-core@24
	@$(BIN)/t10 demo -o build/page/demo --quiet
	@$(BIN)/t10 compare build/page/demo build/page/demo -o build/page/compare.html --quiet
	@cp build/page/demo/report.html build/page/report.html
	@$(BIN)/t10 compile examples/models/mlp.onnx --chip test-2x16 --stages 2 --no-program -o build/page/staged --quiet
	@$(BIN)/t10 report build/page/staged --quiet
	@cp build/page/staged/report.html build/page/stages.html
	@node tools/check_page.cjs build/page build/page/report.html build/page/compare.html build/page/stages.html

.PHONY: pictures
pictures: page  ## Renew docs/images: pictures of report.html, and of a plan as `t10 explain` draws it
	@cp build/page/report-*.png docs/images/
	@$(BIN)/python tools/make_pictures.py

.PHONY: site
site: $(VENV)/.made  ## The documentation as a web site with search, in build/site/html
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'mkdocs>=1.6,<2' 'mkdocs-material==9.8.2'
	@$(BIN)/python tools/make_site.py build/site/pages
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

##@ Before a commit

.PHONY: format
format: dev  ## Rewrite the sources in the house format
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

.PHONY: check
check: format test  ## format, then what CI runs

.PHONY: docs
docs: dev  ## Rewrite the generated pages of docs/
	@$(BIN)/python tools/gen_docs.py

##@ Other

.PHONY: bench
bench: dev  ## Run every script of benchmarks/
	@for script in benchmarks/*.py benchmarks/planner benchmarks/torch_exports benchmarks/real_exports; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

.PHONY: dist
dist: $(VENV)/.made  ## The source distribution of this commit and a wheel for this Python, in dist/
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	@$(BIN)/python tools/make_dist.py

.PHONY: clean
clean:  ## Remove builds and caches, keep .venv
	@rm -rf build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find python dialect passes test tools -name __pycache__ -prune -exec rm -rf {} +

.PHONY: distclean
distclean: clean  ## Remove .venv and the native modules too
	@rm -rf $(VENV)
	@find python/t10 \( -name '*.so' -o -name '*.a' \) -delete
