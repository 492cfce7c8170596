# Fleetdeck: `make help` lists the targets. `make up` and `make test` need nothing but Python 3.11 or newer (with venv) and a network.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
SERVERS ?= 6
PYTEST_WORKERS ?= 2
TESTS ?= tests
BIN := .venv/bin
SYSTEM_PACKAGES := chromium fonts-noto-cjk gettext gcc libc6-dev podman runc busybox-static nginx haproxy

.PHONY: help venv venv-dev lock up demo test lint fmt bench migrations openapi strings messages system-packages

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: venv ## Run the panel: Postgres, Valkey, web, worker, beat, prober and this machine's agent (Ctrl-C stops all)
	@exec $(BIN)/python manage.py up

demo: venv ## The same with a simulated fleet, in a data directory of its own (SERVERS=6)
	@exec $(BIN)/python manage.py up --demo --servers $(SERVERS)

test: system-packages venv-dev messages ## Lint, then every test (TESTS=tests/fleet for a part)
	@scripts/lint
	@$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadfile --no-loadscope-reorder $(TESTS)

lint: venv-dev ## Formatting, lint, types, layers, templates, scripts, missing migrations
	@scripts/lint

fmt: venv-dev ## Format the Python code and fix what ruff can fix
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

bench: system-packages venv-dev ## Measure against limits and peers in one run (written to build/bench)
	@$(BIN)/python -m tests.perf

migrations: venv-dev ## Write migrations for changed models
	@$(BIN)/python manage.py makemigrations

openapi: venv-dev ## Write docs/openapi.yaml anew from the code
	@$(BIN)/python manage.py spectacular --validate --fail-on-warn --file docs/openapi.yaml

strings: venv-dev ## Gather new strings of code and templates into frontend/locale (needs gettext)
	@for domain in django djangojs; do $(BIN)/python manage.py makemessages --domain $$domain --locale zh_Hans --no-obsolete --no-location \
	  --no-wrap --ignore "tests/*" --ignore "docs/*" --ignore "*/vendor/*" --ignore "var/*" --ignore "build/*"; done

messages: venv ## Compile the translations
	@$(BIN)/python -m panel.up.messages

venv: ## Make .venv hold what requirements/base.txt says (nothing to do when it does)
	@PYTHON=$(PYTHON) scripts/venv base

venv-dev: ## The same with the tools for tests and lint
	@PYTHON=$(PYTHON) scripts/venv dev

lock: venv-dev ## Resolve pyproject.toml again into requirements/*.txt
	@scripts/lock

system-packages: ## Install what the tests need from Debian (as root; otherwise name what is missing)
	@scripts/system-packages $(SYSTEM_PACKAGES)
