# Thin: every rule hands over to meson or to a script.
BUILD ?= build
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)

all: build

# Debian packages (with sudo where not root).
deps:
	@./deps.sh

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
check: deps build
	@/usr/bin/python3 test/check.py --build $(BUILD) $(CHECK)

bench: deps build
	@test/bench/run.sh $(BUILD) $(BENCH)

install: build
	@meson configure $(BUILD) --prefix $(PREFIX) >/dev/null
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD) --quiet >/dev/null

clean:
	rm -rf $(BUILD) $(BUILD)-asan

.PHONY: all deps build demo check bench install clean
