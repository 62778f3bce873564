# Thin: every rule hands over to meson or to a script under test/.
BUILD ?= build
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)

all: build
deps:
	./deps.sh
$(BUILD)/build.ninja:
	@command -v meson >/dev/null && command -v protoc-c >/dev/null || ./deps.sh
	meson setup $(BUILD) --prefix $(PREFIX)
build: $(BUILD)/build.ninja
	ninja -C $(BUILD) -j $(JOBS)
.PHONY: all deps build
