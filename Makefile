# Thin: every rule hands over to meson or to a script.
BUILD ?= build
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)

all: build

# Debian packages (with sudo where not root).
deps:
	@./deps.sh

# Also what only tests need. A build configured before libpmix was there is configured again.
deps-check:
	@./deps.sh mpi
	@[ ! -e $(BUILD)/build.ninja ] || [ -e $(BUILD)/sbin/slurmstepd-pmix ] || ! pkg-config --exists pmix || meson setup --reconfigure --clearcache $(BUILD) >/dev/null

$(BUILD)/build.ninja:
	@command -v meson >/dev/null && command -v protoc-c >/dev/null || ./deps.sh
	meson setup $(BUILD) --prefix $(PREFIX) >/dev/null

# Every command and daemon can be run from build/bin and build/sbin.
build: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS) --quiet

# A distributed training starts, loses a node, restarts from its checkpoint and finishes.
demo: deps build
	@examples/demo.sh $(BUILD)

# All tests; the last line is "N passed, N failed, N skipped".
check: deps-check build
	@/usr/bin/python3 test/check.py --build $(BUILD) $(CHECK)

bench: deps build
	@test/bench/run.sh $(BUILD) $(BENCH)

install: build
	@meson configure $(BUILD) --prefix $(PREFIX) >/dev/null
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD) --quiet >/dev/null

clean:
	rm -rf $(BUILD) $(BUILD)-asan

.PHONY: all deps deps-check build demo check bench install clean
