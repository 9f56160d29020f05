# Two commands for a newcomer (demo, test), the rest for those who work on kbh. `make help` lists them.
# Everything real is in CMakePresets.json and scripts/; this file only gives it short names.
.DEFAULT_GOAL := build
.PHONY: build all demo test soak bench asan format lint dist help clean

JOBS ?= $(shell nproc)
export JOBS

## build    build/kbh and build/kbh-worker (the default)
build:
	@scripts/build release kbh kbh-worker

## all      those, and every test and benchmark
all:
	@scripts/build release

## demo     install what is missing, build, grade a shipped top-k submission on the CPU deck
demo:
	@scripts/install-packages build
	@scripts/build release kbh kbh-worker
	build/kbh grade kernels/05_topk/host-cpu --problem 05_topk --deck cpu

## test     install what is missing, build, run every test that this machine can run
test:
	@scripts/install-packages build test
	@scripts/build release
	@scripts/run-tests build

## asan     the same tests under AddressSanitizer and UndefinedBehaviorSanitizer
asan:
	@scripts/install-packages build test
	@scripts/build asan
	@scripts/run-tests build-asan

## soak     grades and kills for MINUTES (default 10), watching for leaks and leftovers
soak: build
	@scripts/soak

## bench    the harness's own cost (Google Benchmark); FILTER=regex picks some
bench:
	@scripts/install-packages build test
	@scripts/build release kbh kbh-worker harness_benchmarks
	build/harness_benchmarks --benchmark_filter='$(or $(FILTER),.)'

## format   apply .clang-format to every source
format:
	@scripts/install-packages lint
	@scripts/format

## lint     check the format, then clang-tidy over src/ (only what changed since it last passed)
lint:
	@scripts/install-packages build lint
	@scripts/format --check
	@scripts/build release --configure-only
	@scripts/lint

## dist     kbh-VERSION-linux-x86_64.tar.zst, which needs nothing installed; unpacked and tried by scripts/dist-test
dist:
	@scripts/install-packages build dist
	@scripts/build portable
	@scripts/dist

## clean    remove every build folder
clean:
	rm -rf build build-dev build-asan build-portable

## help     this list
help:
	@sed -n 's/^## /  make /p' Makefile
