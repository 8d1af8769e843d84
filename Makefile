# Developer entry points; `make help` lists them, CI runs exactly `make test`.
#   make SAN=1 ...       address + undefined sanitizers (own build folder)
#   make SAN=thread ...  thread sanitizer
#   make V=1             show command lines
#   make T=name test     only the tests whose name contains `name`
CC      ?= gcc
CLANG   ?= clang
BUILD   := build/$(if $(SAN),san-$(SAN),release)
VERSION := 0.1.0

WARN    := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion \
           -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wundef -Wvla \
           -Wformat=2 -Wcast-qual -Wwrite-strings -Wswitch-enum -Wimplicit-fallthrough \
           -Wdouble-promotion -Wnull-dereference -Werror
CFLAGS  ?= -O2 -g
ALL_CFLAGS := -std=c17 -D_GNU_SOURCE -DLAC_VERSION='"$(VERSION)"' -iquote . -fvisibility=hidden -fno-omit-frame-pointer \
              $(WARN) $(CFLAGS) -MMD -MP
ifeq ($(SAN),1)
  ALL_CFLAGS += -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
else ifneq ($(SAN),)
  ALL_CFLAGS += -O1 -fsanitize=$(SAN)
endif
Q := $(if $(V),,@)

PKGS          := libmicrohttpd json-c sqlite3 libzstd libsodium
PKG_CFLAGS    = $(shell pkg-config --cflags $(PKGS))
CHECK_CFLAGS  = $(shell pkg-config --cflags check)
CHECK_LIBS    = $(shell pkg-config --libs check)
ANALYSIS_LIBS := -lzstd -lisal -lsqlite3 -lm -lpthread
SERVER_LIBS   := -lmicrohttpd -ljson-c -lsodium $(ANALYSIS_LIBS)

ANALYSIS_SRCS := $(sort $(shell find analysis -name '*.c' 2>/dev/null))
SERVER_SRCS   := $(sort $(shell find server -name '*.c' 2>/dev/null))
SUPPORT_SRCS  := $(sort $(shell find tests/support -name '*.c' 2>/dev/null))
ANALYSIS_OBJS := $(ANALYSIS_SRCS:%.c=$(BUILD)/%.o)
SERVER_OBJS   := $(SERVER_SRCS:%.c=$(BUILD)/%.o)
SUPPORT_OBJS  := $(SUPPORT_SRCS:%.c=$(BUILD)/%.o)
UNIT_TESTS    := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(sort $(wildcard tests/unit/test_*.c)))
OOM_TESTS     := $(patsubst tests/oom/%.c,$(BUILD)/tests/%,$(sort $(wildcard tests/oom/oom_*.c)))
FUZZERS       := $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))

.DEFAULT_GOAL := all
.PHONY: all
.DELETE_ON_ERROR:
.SECONDARY:

all: $(BUILD)/libanalysis.a $(BUILD)/libserver.a

$(BUILD)/libanalysis.a: $(ANALYSIS_OBJS)
	$(Q)rm -f $@ && ar rcs $@ $^
# everything of the server but main.c, so that tests can link it
$(BUILD)/libserver.a: $(filter-out $(BUILD)/server/main.o,$(SERVER_OBJS))
	$(Q)rm -f $@ && ar rcs $@ $^
$(BUILD)/%.o: %.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -c $< -o $@
# a unit test may use everything: analysis, server and tests/support
$(BUILD)/tests/%: tests/unit/%.c $(SUPPORT_OBJS) $(BUILD)/libserver.a $(BUILD)/libanalysis.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(CHECK_CFLAGS) $^ $(CHECK_LIBS) $(SERVER_LIBS) -o $@
$(BUILD)/tests/%: tests/oom/%.c $(SUPPORT_OBJS) $(BUILD)/libserver.a $(BUILD)/libanalysis.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $^ $(SERVER_LIBS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc -o $@
build/fuzz/%: tests/fuzz/fuzz_%.c $(ANALYSIS_SRCS)
	$(Q)mkdir -p $(@D)/corpus-$*
	$(Q)$(CLANG) $(filter-out -MMD -MP,$(ALL_CFLAGS)) -Wno-unused-command-line-argument -O1 -fsanitize=fuzzer,address,undefined \
	    -fno-sanitize-recover=all $^ $(ANALYSIS_LIBS) -o $@

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
