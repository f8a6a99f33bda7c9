# Targets for people; `make help` lists them. Everything runs on the Node that npm installs (node_modules/.bin/node).
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
export PATH := $(CURDIR)/node_modules/.bin:/usr/local/go/bin:$(PATH)
export NODE_NO_WARNINGS := 1

UNIT_TESTS := 'packages/**/*.test.ts' 'apps/**/*.test.ts' 'tools/**/*.test.ts'
E2E_TESTS := 'tests/e2e/**/*.test.ts'

.PHONY: help quickstart setup serve dev test test-unit test-go test-e2e lint bench gen clean

help: ## Show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 14

quickstart: setup ## Set up what is missing, start a server if none runs, and run the main job once
	@node tools/quickstart.ts

setup: ## Install what a server needs (system packages, npm packages, guest daemon, guest kernel)
	@tools/setup.sh

serve: setup ## Run the server in the foreground (AENV_LISTEN=HOST:PORT moves it)
	@exec bin/aenv-server

dev: ## Run the server and restart it when a source file changes
	@exec node --watch --watch-preserve-output apps/server/src/main.ts

test: ## Install what tests need and run all of them
	@tools/setup.sh --tests
	@$(MAKE) --no-print-directory test-unit test-go test-e2e

test-unit: ## Unit and property tests (Node)
	@node --test --test-concurrency=2 --test-timeout=120000 $(UNIT_TESTS)

test-go: ## Tests of the guest daemon
	@cd aenvd && go vet ./... && go test ./...

test-e2e: ## The whole product with real VMs, a real registry and the e2b SDK
	@node --test --test-concurrency=1 --test-timeout=900000 $(E2E_TESTS)

lint: ## Formatter, linter, types, dependency arrows
	@npm run --silent lint

bench: ## Ratios to a floor that drives bare QEMU
	@node bench/run.ts

gen: ## Write what is generated: protocol types and the tables in docs/
	@npm run --silent gen
	@node tools/gen-docs.ts

clean: ## Remove what was built (not the state in AENV_HOME, not installed packages)
	@rm -rf node_modules packages/*/node_modules apps/*/node_modules tools/*/node_modules aenvd/bin .cache dist bench/results
