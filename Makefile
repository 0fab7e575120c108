# `make` lists the targets. Each sets up what it needs by itself; nothing is done twice.

PYTHON ?= python3
VENV := .venv
# A built engine keeps its profile until PROFILE is given; the first one is quick.
PROFILE ?= $(or $(patsubst $(VENV)/.engine-%,%,$(firstword $(wildcard $(VENV)/.engine-*))),quick)
DIST_PROFILE ?= release
BASE ?= main
BIN := $(VENV)/bin
# Cases drawn by proptest and Hypothesis follow from the committed Rust sources: another engine has others, and whoever has its commit repeats a failure.
# `make test SEED=` draws anew, and so does `make soak`.
SEED ?= $(shell printf %d 0x$$(git rev-parse HEAD:crates 2>/dev/null | cut -c 1-15) 2>/dev/null)
DRAWN := $(if $(SEED),PROPTEST_RNG_SEED=$(SEED))
# All cores; a file of tests, which may share fixtures, runs on one of them.
PYTEST := $(BIN)/pytest -n $(shell getconf _NPROCESSORS_ONLN) --dist loadfile $(if $(SEED),--hypothesis-seed=$(SEED))
# Without the guest of the linux backend and the examples, which alone need `ackclock-sim` compiled as a library: `make test-deep` has them.
CARGO_TEST := cargo test --workspace --exclude ackclock-guest --locked --quiet
WASM := wasm32-unknown-unknown
LAB := python/ackclock/_lab/lab.html
RUST := Cargo.toml Cargo.lock $(shell find crates -path crates/wasm -prune -o '(' -name '*.rs' -o -name Cargo.toml ')' -print)

# One interpreter for every build of the extension.
export PYO3_PYTHON = $(abspath $(BIN)/python)

.DEFAULT_GOAL := help
.PHONY: help setup test rust-tests test-deep soak fuzz reproduce check mutants bench docs lab lab-maybe site dist dist-test linux selftests lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | while IFS="$$(printf '\t')" read -r name text; do printf '  make %-10s %s\n' "$$name" "$$text"; done

setup: $(VENV)/.engine-$(PROFILE) ## environment .venv with the compiled engine; does nothing when up to date

soak: setup $(VENV)/.dev fuzz ## the tests that take minutes: kills, full disks, damaged stores, lost schedulers; then `make fuzz`
	$(BIN)/pytest -m long

fuzz: $(VENV)/.packages ## fuzz every reader and the TCP endpoint, FUZZ_SECONDS each (60)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-fuzz.lock
	$(BIN)/python tools/fuzz.py

reproduce: setup ## re-run the study of Proportional Rate Reduction and write report/report.html
	$(BIN)/ackclock study run prr --scale quick --out report

# The engine and the tests of Rust share nothing that is built, and each alone leaves a core idle for half of its time.
test: $(VENV)/.packages ## everything that guards behaviour, Rust and Python; it names what it leaves out
	@$(MAKE) --no-print-directory -j2 setup rust-tests $(VENV)/.collected
	$(DRAWN) $(CARGO_TEST) --tests
	cargo test --package ackclock-link --doc --locked --quiet
	@echo 'left out: Rust tests of the guest of the linux backend, run by `make test-deep`'
	$(PYTEST)

rust-tests: $(VENV)/.packages
	$(CARGO_TEST) --tests --no-run

# PROPTEST_CASES stands above what a test asks for. Those of PCC's theorems are six long simulations each, and hold for most starts.
test-deep: setup $(VENV)/.dev ## what takes longer: whole studies and their causes, every cell of the benchmark, the real kernel at length
	$(DRAWN) PROPTEST_CASES=10000 cargo test --workspace --locked --quiet -- --skip theorems::
	$(PYTEST) -m deep

check: setup $(VENV)/.dev ## lints, types, import contracts, sizes, stubs, docs
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
	$(BIN)/python tools/check_crates.py
	$(BIN)/python tools/check_sizes.py
	$(BIN)/python tools/check_prose.py
	$(BIN)/python tools/lint_page.py
	$(BIN)/python tools/notices.py --check
	$(BIN)/python tools/licences.py
	$(BIN)/python tools/plotly_js.py --check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/python -m mypy.stubtest ackclock._engine
	$(BIN)/python tools/tables.py --check
	$(BIN)/python tools/reference.py --check
	$(BIN)/python tools/kernel_keys.py --check
	$(BIN)/python tools/doc_examples.py --check
	$(BIN)/python tools/pictures.py --check
	$(BIN)/python tools/public_names.py
	$(BIN)/python tools/controllers.py --check
	$(BIN)/python tools/contract.py --check
	$(BIN)/python tools/lessons.py --check
	$(BIN)/python tools/study_numbers.py --check
	$(BIN)/python tools/book.py --check
	$(BIN)/python tools/proofs.py --check
	$(BIN)/python tools/arena.py --check
	$(BIN)/python tools/known.py --check

mutants: setup $(VENV)/.dev $(BIN)/cargo-mutants ## plant faults in what a change touches (BASE, main) and say which no test notices; ten minutes at most
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python tools/mutants.py --base $(BASE)

$(BIN)/cargo-mutants:
	cargo install cargo-mutants --version 27.1.0 --locked --quiet --root $(VENV) --target-dir target/cargo-mutants

bench: ## ns of CPU per packet, beside the yardstick, of an engine as in wheels
	@$(MAKE) --no-print-directory setup PROFILE=release
	$(BIN)/ackclock bench

docs: setup ## write _tables.pyi and the reference from what the engine describes, and renew outputs and pictures in the pages
	$(BIN)/python tools/tables.py
	$(BIN)/python tools/reference.py
	$(BIN)/python tools/kernel_keys.py
	$(BIN)/python tools/doc_examples.py
	$(BIN)/python tools/pictures.py
	$(BIN)/python tools/controllers.py
	$(BIN)/python tools/contract.py
	$(BIN)/python tools/lessons.py
	$(BIN)/python tools/study_numbers.py
	$(BIN)/python tools/book.py
	$(BIN)/python tools/proofs.py
	$(BIN)/python tools/arena.py
	$(BIN)/python tools/known.py

lab: setup $(LAB) ## the simulator in a page, python/ackclock/_lab/lab.html; needs Rust's target wasm32-unknown-unknown

$(LAB): $(RUST) $(wildcard crates/wasm/Cargo.toml crates/wasm/src/* web/* python/ackclock/_scenarios/*.toml python/ackclock/_lessons/*.toml) python/ackclock/controllers.py tools/lab.py | $(VENV)/.packages
	@test -d "$$(rustc --print sysroot)/lib/rustlib/$(WASM)" || { echo "make lab needs Rust's target $(WASM): rustup target add $(WASM)" >&2; exit 3; }
	cargo build --package ackclock-wasm --target $(WASM) --profile lab --locked --quiet
	$(BIN)/python tools/lab.py target/$(WASM)/lab/ackclock_wasm.wasm

# For what holds the page where it can be built, and says so where it cannot.
lab-maybe: setup
	@if test -d "$$(rustc --print sysroot)/lib/rustlib/$(WASM)"; then $(MAKE) --no-print-directory lab; \
	else echo "LEFT OUT: the lab; it needs Rust's target $(WASM): rustup target add $(WASM)"; fi

site: setup lab-maybe $(VENV)/.dev $(VENV)/.docs ## the documentation as a site, in site/: every script of the gallery run, no dead link; needs no network
	MPLBACKEND=Agg $(BIN)/python -m sphinx -E -c docs -b html -d $(VENV)/.doctrees -W --keep-going -q . site
	cp site/README.html site/index.html
	mkdir -p site/lab
	if test -f $(LAB); then cp $(LAB) site/lab/index.html; fi
	$(BIN)/python tools/links.py site

dist: setup lab-maybe ## wheel (for every CPython from 3.11 on) and source distribution, in dist/
	rm -rf dist
	$(BIN)/python tools/linux_sources.py
	$(BIN)/python tools/man_pages.py
	$(BIN)/python tools/train.py $(DIST_PROFILE) $(BIN)/maturin build --profile $(DIST_PROFILE) --strip --locked --out dist
	$(BIN)/maturin sdist --out dist

dist-test: dist ## install both into an empty environment and run a scenario there
	tools/dist_test.sh

linux: setup ## build the kernel of the linux backend, minutes the first time; with it `make test` tests against it
	$(BIN)/ackclock linux build

selftests: setup ## play the kernel's own packet scripts on both backends; needs `make linux`
	$(BIN)/python tools/selftests.py

lock: setup ## choose the newest versions of all Python packages anew
	$(BIN)/python -m pip install --quiet pip-tools
	$(BIN)/python tools/lock.py

clean: ## remove everything that was built
	rm -rf $(VENV) target report site dist docs/gallery python/ackclock/linux/sources.tar.xz ackclock._engine.data .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis python/ackclock/*.so
	find python tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.packages: requirements.lock tools/toolchain.sh
	@PYTHON="$(PYTHON)" tools/toolchain.sh
	test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	@echo "packages of Python: $$(grep -c "==" requirements.lock), some 200 MB"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --require-hashes -r requirements.lock
	@touch $@

# After the engine: two at once would install into one environment.
$(VENV)/.dev: requirements-dev.lock $(VENV)/.packages | setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

# Bytecode of tests and of what they import, once and beside Cargo: otherwise each worker compiles all of it for itself.
$(VENV)/.collected: $(VENV)/.dev
	$(BIN)/pytest --collect-only -qqq >/dev/null
	@touch $@

$(VENV)/.docs: requirements-docs.lock $(VENV)/.packages
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	@touch $@

# A profile of Cargo each; the last one built is the one that is installed.
$(VENV)/.engine-$(PROFILE): $(VENV)/.packages pyproject.toml $(RUST)
	@echo "the engine, with profile $(PROFILE): a minute or two the first time"
	VIRTUAL_ENV="$(abspath $(VENV))" PIP_QUIET=1 $(BIN)/python tools/train.py $(PROFILE) $(BIN)/maturin develop --profile $(PROFILE) --locked
	@rm -f $(VENV)/.engine $(VENV)/.engine-*
	@touch $@
