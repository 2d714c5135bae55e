# Every target sets up what it needs, on a fresh machine too: see .ci/setup. Nothing here asks a question.
# PYTHON=… names the interpreter for a new .venv.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.PHONY: help demo test check bench soak install lock clean

PY := .venv/bin/python
BINDIR ?= $(HOME)/.local/bin
UV := uv==0.13.9

help:  ## this page
	@echo 'firm: one node, one daemon, teams of agents and their work'
	@echo
	@sed -n 's/^\([a-z]*\):.*##  *\(.*\)/  make \1\t\2/p' Makefile | expand -t 16
	@echo
	@echo 'The first call sets up .venv and takes a minute; later ones start at once.'
	@echo 'Longer: README.md. How it is built: docs/architecture.md.'

demo: .venv/.run  ## a node in a temporary folder, from start to stop, with every step shown
	@.ci/setup compile
	@$(PY) examples/demo.py

# The tests wait for processes as often as they compute; more than eight at a time only get in each other's way.
WORKERS ?= $(shell n=$$(nproc); echo $$((n < 7 ? n + 1 : 8)))

test: check  ## the checks, then the suite in random order
	@.ci/setup compile
	@$(PY) -m pytest -n $(WORKERS) --dist worksteal

check: .venv/.dev  ## style, types, floors, budgets, generated files; .ci/check NAME… runs some
	@.ci/check

bench: .venv/.dev  ## figures against a floor measured in the same run
	@.ci/setup compile
	@$(PY) -m benchmarks

soak: .venv/.dev  ## the long random tests: crashes under load
	@.ci/setup compile
	@$(PY) -m pytest -m soak -o timeout=3600 -o faulthandler_timeout=3000

install: .venv/.run  ## links firm and firm-daemon into ~/.local/bin (BINDIR=… elsewhere)
	@.ci/setup compile
	@mkdir -p "$(BINDIR)"
	@for name in firm firm-daemon; do \
	  link="$(BINDIR)/$$name"; target="$(CURDIR)/.venv/bin/$$name"; \
	  if [ -e "$$link" ] && [ "$$(readlink "$$link")" != "$$target" ]; then \
	    echo "$$link exists and is not ours; remove it or choose another folder: make install BINDIR=…" >&2; exit 1; \
	  fi; \
	  ln -sfn "$$target" "$$link"; echo "$$link -> $$target"; \
	done
	@case ":$$PATH:" in *":$(BINDIR):"*) ;; *) echo 'Add $(BINDIR) to your PATH to call them by name.' ;; esac

lock:  ## pins requirements*.in again; UPGRADE=--upgrade takes newer releases
	@tool=$$(mktemp -d); trap 'rm -rf "$$tool"' EXIT; \
	python3 -m venv "$$tool"; "$$tool/bin/pip" install -qq --disable-pip-version-check $(UV); \
	for name in requirements requirements-dev; do \
	  echo "pinning $$name.lock …"; \
	  "$$tool/bin/uv" pip compile -q --universal --python-version 3.11 --generate-hashes $(UPGRADE) \
	    --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' \
	    $$([ $$name = requirements ] || echo --constraints requirements.lock) -o $$name.lock $$name.in; \
	done

clean:  ## removes .venv, caches and bytecode
	@rm -rf .venv .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.run: requirements.lock pyproject.toml .ci/setup
	@.ci/setup run

.venv/.dev: requirements-dev.lock requirements.lock pyproject.toml .ci/setup
	@.ci/setup dev
