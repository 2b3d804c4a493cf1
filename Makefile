# A short front for CMake. Every target first runs the set-up step, which
# installs the Debian packages that are missing and nothing when all are there.

BUILD   ?= build
PRESET  ?= release
JOBS    ?= $(shell nproc)

.PHONY: all setup build install demo test test-long bench bench-router bench-preload bench-host \
        bench-gpu asan tsan clean format

all: build

setup:
	@tools/setup

build: setup
	@cmake --preset $(PRESET) -B $(BUILD) $(CMAKE_ARGS) >$(BUILD).log 2>&1 || { cat $(BUILD).log; rm -f $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
	@cmake --build $(BUILD) -j $(JOBS)

demo: build
	@tools/demo $(BUILD)

test: build
	@test/run $(BUILD)

test-long: build
	@test/long $(BUILD)

bench: build
	@bench/run $(BUILD)
	@bench/run $(BUILD) --suite tables
	@bench/run $(BUILD) --suite tablets

# Query shapes that must not lose to SQLite. ROUTER passes options: --quick, --only NAME, …
bench-router: build
	@mkdir -p bench/out
	@$(BUILD)/router --dir bench/out $(ROUTER)

# Needs a machine with a GPU. GPU passes options: --parts ssb,tpch --ssb 1, …
bench-gpu: build
	@bench/gpu/run $(BUILD) $(GPU)

bench-preload: build
	@bench/preload/run $(BUILD)

install: build
	@cmake --install $(BUILD)

bench-host: build
	@$(BUILD)/host_time

asan:
	@$(MAKE) test PRESET=asan BUILD=build-asan

tsan:
	@$(MAKE) test PRESET=tsan BUILD=build-tsan

format:
	@git ls-files '*.c' '*.h' '*.cu' | xargs clang-format -i

clean:
	rm -rf build build-*
