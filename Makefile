# Developer entry points; `make help` lists them, CI runs exactly `make test`.
#   make SAN=1 ...       address + undefined sanitizers (own build folder)
#   make SAN=thread ...  thread sanitizer
#   make V=1             show command lines
#   make T=name test     only the tests whose name or path contains `name`
CC      ?= gcc
CLANG   ?= clang
BUILD   := build/$(if $(SAN),san-$(SAN),release)
VERSION := 0.1.0

# not with sanitizers: the build without them has said it, GCC then warns of what is not so, and warnings are a sixth of the compiler's time
WARN    := $(if $(SAN),-w,-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion \
           -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wundef -Wvla \
           -Wformat=2 -Wcast-qual -Wwrite-strings -Wswitch-enum -Wimplicit-fallthrough \
           -Wdouble-promotion -Wnull-dereference -Werror)
# what a stack says of a place needs -g1 alone: a tenth less to compile than -g, half as much to link
CFLAGS  ?= $(if $(SAN),-O1,-O2) -g1
# LAC_WERROR= (empty) for compilers that warn about more than those we test with
BASE_CFLAGS := -std=c17 -D_GNU_SOURCE -DLAC_VERSION='"$(VERSION)"' -iquote . -iquote collector/include -iquote $(BUILD)/gen \
               -fvisibility=hidden -fno-omit-frame-pointer $(WARN) $(CFLAGS)
ALL_CFLAGS  := $(BASE_CFLAGS) -MMD -MP
ifeq ($(SAN),1)
  ALL_CFLAGS += -fsanitize=address,undefined -fno-sanitize-recover=all
else ifneq ($(SAN),)
  ALL_CFLAGS += -fsanitize=$(SAN)
endif
Q := $(if $(V),,@)

# ---- libraries: from archives where the distribution ships them, so that build/lacuna is one file
has_archive = $(filter /%,$(shell $(CC) -print-file-name=lib$(1).a))
lib         = $(if $(and $(if $(SAN),,y),$(call has_archive,$(1))),-l:lib$(1).a,-l$(1))
# each is asked for at its first use and kept: the compiler and pkg-config would otherwise run ten times for every program that is linked
ANALYSIS_LIBS = $(eval ANALYSIS_LIBS := $(call lib,zstd) $(call lib,isal) $(call lib,sqlite3) -lm -lpthread -ldl)$(ANALYSIS_LIBS)
MARKDOWN_LIBS = $(eval MARKDOWN_LIBS := $(call lib,cmark-gfm-extensions) $(call lib,cmark-gfm))$(MARKDOWN_LIBS)
SERVER_LIBS   = $(eval SERVER_LIBS := $(call lib,microhttpd) $(call lib,json-c) $(call lib,sodium) $(MARKDOWN_LIBS) $(ANALYSIS_LIBS) \
                $(if $(call has_archive,microhttpd),-lgnutls))$(SERVER_LIBS)
CHECK_CFLAGS  = $(eval CHECK_CFLAGS := $(shell pkg-config --cflags check) \
                $(if $(wildcard /usr/local/cuda/include/cupti.h),-isystem /usr/local/cuda/include))$(CHECK_CFLAGS)
CHECK_LIBS    = $(eval CHECK_LIBS := $(shell pkg-config --libs check))$(CHECK_LIBS)

# ---- sources: every folder, however deep
sources = $(sort $(shell find $(1) -name '*.c' 2>/dev/null))
ANALYSIS_SRCS := $(call sources,collector/base analysis)
SERVER_SRCS   := $(filter-out server/http/embed/% server/dist/%,$(call sources,server))
SUPPORT_SRCS  := $(call sources,tests/support)
WEB_SRCS      := $(shell find web -path web/node_modules -prune -o -path web/dist -prune -o -type f -print 2>/dev/null)
ANALYSIS_OBJS := $(ANALYSIS_SRCS:%.c=$(BUILD)/%.o) $(BUILD)/gen/finding_documents.o
SERVER_OBJS   := $(SERVER_SRCS:%.c=$(BUILD)/%.o) $(BUILD)/gen/web_assets.o $(BUILD)/gen/collector_assets.o
SUPPORT_OBJS  := $(SUPPORT_SRCS:%.c=$(BUILD)/%.o)
SIMULATOR_OBJS := $(patsubst %.c,$(BUILD)/%.o,$(filter-out %/simulator_main.c,$(wildcard tests/simulator/*.c)))
UNIT_TESTS    := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(sort $(wildcard tests/unit/test_*.c)))
OOM_TESTS     := $(patsubst tests/oom/%.c,$(BUILD)/tests/%,$(sort $(wildcard tests/oom/oom_*.c)))
# `make test` runs them with sanitizers, and without these alone: they leave something out there (tests/run.py asks their sources the same),
# or run once more over PostgreSQL (tests/integration/test_catalog.py)
PLAIN_TESTS   := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(shell grep -l __SANITIZE_ADDRESS__ tests/unit/test_*.c)) \
                 $(addprefix $(BUILD)/tests/,test_store_catalog test_store_lost test_people test_journal_rows test_ingest test_catalog_postgres)
HAVE_LTTNG    := $(wildcard /usr/include/lttng/tracepoint.h /usr/include/*/lttng/tracepoint.h)
BENCHES       := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(filter-out $(if $(HAVE_LTTNG),,%/bench_lttng.c),$(sort $(wildcard tests/bench/bench_*.c))))
FUZZERS       := $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
FUZZ_REPLAYS  := $(if $(filter 1,$(SAN)),$(FUZZERS:%=$(BUILD)/tests/fuzz_%))
C_FILES       := $(sort $(shell find collector analysis server kernels tests -name '*.[ch]' 2>/dev/null))
CLANG_TIDY    ?= clang-tidy-19# 14 lacks misc-include-cleaner and ignores it silently
FUZZ_SECONDS  ?= 60
prefix        ?= /usr/local

.DEFAULT_GOAL := default
.PHONY: default sqlite-extension dist node-side sanitized aarch64 aarch64-tests kernels all run test traces test-gpu gpu-carry test-programs thread-tests no-fuzzers soak hangs bench fuzz format lint lint-quick install deps web help clean
.DELETE_ON_ERROR:
.SECONDARY:

default: deps                              ## what `make` alone does: install what building needs, then `all`
	$(Q)$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc)) all

all: $(BUILD)/lacuna                       ## build build/lacuna (everything that needs no GPU)
	$(Q)ln -sf $(BUILD:build/%=%)/lacuna build/lacuna

run: deps                                  ## build, serve, record and push an example job, print its address (and the demo series, and TRACE=file)
	$(Q)$(MAKE) --no-print-directory -j2 all kernels
	$(Q)sh tests/tidy/run_demo.sh $(BUILD) "$(DATA)" "$(LISTEN)" $(TRACE)

test: deps                                 ## all tests that need no GPU
	$(Q)$(MAKE) --no-print-directory -j2 all test-programs aarch64
	$(Q)python3 tests/run.py --build --filter "$(T)"

test-gpu:                                  ## the checks that need a GPU, in one call; results in $$OUT or build/gpu
	$(Q)python3 tests/gpu/run_gpu.py

gpu-carry: all kernels                     ## build/carry: all that `make test-gpu` needs on a machine that builds nothing
	$(Q)sh tests/gpu/carry.sh $(BUILD) build/carry

traces:                                    ## fetch the public real traces that some tests read (36 MB, once), into build/traces
	$(Q)python3 tests/traces/fetch.py

soak: deps                                 ## the checks of `make test` at full scale (an hour or more)
	$(Q)$(MAKE) --no-print-directory -j2 all test-programs unit-tests aarch64 fuzzers sanitized
	$(Q)$(MAKE) --no-print-directory -j2 SAN=thread thread-tests
	$(Q)LACUNA_SOAK=1 python3 tests/run.py --filter "$(T)"

hangs: all                                 ## HANG_SEEDS (100) jobs of each kind that hangs or only seems to, HANG_JOBS (6) at a time: how soon each is told, into build/hangs.tsv
	$(Q)nice python3 tests/integration/hang_seeds.py --seeds $(or $(HANG_SEEDS),100) --jobs $(or $(HANG_JOBS),6)

bench: deps                                ## speed and memory into build/bench.json (BENCH=import|store|analyze|http|sql|flame|journal|formats|nvtx|cupti|start|spool|viewer|perfetto|difference|scale)
	$(Q)$(MAKE) --no-print-directory -j2 all benches
	$(Q)python3 tests/bench/bench.py --group "$(BENCH)"

fuzz: deps fuzzers                         ## FUZZ_SECONDS (60) on each target, or on T=name alone
	$(Q)set -e; for f in $(if $(T),$(T),$(FUZZERS)); do echo "fuzz $$f"; mkdir -p build/fuzz/corpus-$$f tests/fuzz/corpus/$$f; \
	  build/fuzz/fuzz_$$f -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=4096 -timeout=20 -verbosity=0 -artifact_prefix=build/fuzz/ \
	    build/fuzz/corpus-$$f tests/fuzz/corpus/$$f; done

format:                                    ## rewrite C and web sources with clang-format and prettier
	$(Q)clang-format -i $(C_FILES)
	$(Q)cd web && npm run --silent format

# clang-tidy, a stamp a file: only what changed since is looked at again
TIDY_FILES := $(sort $(shell find analysis server collector tests/simulator -name '*.c' 2>/dev/null))
TIDY_FLAGS  = -std=c17 -D_GNU_SOURCE -DLAC_VERSION='"$(VERSION)"' -iquote . -iquote collector/include
build/tidy/%.ok: %.c .clang-tidy
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(TIDY_FLAGS) -MM -MP -MT $@ -MF $(@:.ok=.d) $<
	$(Q)$(CLANG_TIDY) --quiet $< -- $(TIDY_FLAGS) >$(@:.ok=.log) 2>/dev/null && : >$@ || { cat $(@:.ok=.log); exit 1; }

lint: deps                                 ## formatting, house rules, clang-tidy, scripts, TypeScript
	$(Q)$(MAKE) --no-print-directory lint-quick
	$(Q)$(MAKE) --no-print-directory -s -j2 unit-tests # with warnings: their sanitized build has none
	$(Q)$(MAKE) --no-print-directory -s -j2 -k $(TIDY_FILES:%.c=build/tidy/%.ok)
	$(Q)$(MAKE) --no-print-directory web/node_modules/.stamp
	$(Q)cd web && npm run --silent lint && npm run --silent typecheck
lint-quick:
	$(Q)sh tests/tidy/check_layers.sh
	$(Q)sh tests/tidy/check_house.sh
	$(Q)python3 tests/tidy/check_dialect.py
	$(Q)sh tests/tidy/check_scripts.sh
	$(Q)clang-format --dry-run -Werror $(C_FILES)

install: all                               ## into DESTDIR and prefix (/usr/local)
	install -D -m 755 $(BUILD)/lacuna $(DESTDIR)$(prefix)/bin/lacuna
	install -D -m 644 LICENSE $(DESTDIR)$(prefix)/share/doc/lacuna/LICENSE
	install -D -m 644 README.md $(DESTDIR)$(prefix)/share/doc/lacuna/README.md

deps:                                      ## install what is missing (Debian, Ubuntu), or say what to install
	$(Q)sh .ci/deps $(filter test soak bench lint fuzz,$(MAKECMDGOALS))

help:                                      ## this list
	@grep -hE '^[a-z-]+:.*##' $(firstword $(MAKEFILE_LIST)) | sed -E 's/:.*## +/\t/' | expand -t 12

clean:                                     ## remove everything that was built
	rm -rf build web/dist

# ---- C
$(BUILD)/lacuna: $(BUILD)/server/main.o $(BUILD)/libserver.a $(BUILD)/libanalysis.a
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ $(SERVER_LIBS) -o $@
$(BUILD)/libanalysis.a: $(ANALYSIS_OBJS)
	$(Q)rm -f $@ && ar rcs $@ $^
# everything of the server but main.c, so that tests can link it
$(BUILD)/libserver.a: $(filter-out $(BUILD)/server/main.o,$(SERVER_OBJS))
	$(Q)rm -f $@ && ar rcs $@ $^
$(BUILD)/%.o: %.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -c $< -o $@

# the tables of `lacuna sql` for the sqlite3 shell: of the same objects, with the SQLite of the program that loads it
sqlite-extension: $(BUILD)/lacuna_sqlite.so  ## build/lacuna_sqlite.so: `.load build/lacuna_sqlite` in the sqlite3 shell
	$(Q)ln -sf $(BUILD:build/%=%)/lacuna_sqlite.so build/lacuna_sqlite.so
$(BUILD)/lacuna_sqlite.so: $(BUILD)/server/sql/shell_extension.o $(BUILD)/libserver.a $(BUILD)/libanalysis.a
	$(Q)$(CC) -shared -Wl,-z,defs -Wl,-z,text $(LDFLAGS) $^ -lzstd -lisal -lsqlite3 -ljson-c -lm -lpthread -ldl -o $@

# ---- what is injected into the user's processes: C and pthreads only, its own flags (it may never abort, unwind or unload)
INJECT_SRCS   := $(wildcard collector/inject/*.c) collector/base/byte_size.c collector/base/debug.c collector/base/io_full.c collector/base/utf8.c collector/base/write_signals.c
# without sanitizers in every build, so that those of this machine share what build/release has
NODE_BUILD    := $(if $(SAN),build/release,$(BUILD))
INJECT_CFLAGS := -std=c17 -D_GNU_SOURCE -iquote . -iquote collector/include -fPIC -fvisibility=hidden -fno-stack-protector \
                 $(filter-out -Wnull-dereference,$(WARN)) -O2 -g1
$(NODE_BUILD)/liblacuna.so: $(INJECT_SRCS) $(wildcard collector/base/*.h collector/inject/*.h collector/include/lacuna/*.h)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(INJECT_CFLAGS) -shared -Wl,-z,nodelete -Wl,-z,defs -Wl,-soname,liblacuna.so $(INJECT_SRCS) -Wl,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -o $@

# the Python hook: an extension for every Python from 3.7 on (abi3, no Python headers needed) and two modules
$(NODE_BUILD)/python/.stamp: $(wildcard collector/python/*.c) $(wildcard collector/python/*.h) collector/inject/api.h collector/include/lacuna/spool.h $(wildcard collector/python/*.py)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(INJECT_CFLAGS) -shared $(filter %.c,$^) -Wl,--no-as-needed -l:libdl.so.2 -o $(@D)/_lacuna.abi3.so
	$(Q)rm -f $(@D)/*.py && cp collector/python/*.py $(@D)/ && touch $@

# the launcher: dynamic, a C library and nothing else, its own entry point (collector/launch/start.S says why)
NODE_SRCS := $(wildcard $(foreach room,base sample gather hang push launch,collector/$(room)/*.c))
$(NODE_BUILD)/lacuna-node: $(NODE_SRCS) collector/launch/start.S collector/base/old_symbols.h $(wildcard collector/*/*.h collector/include/lacuna/*.h)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -fPIC,$(INJECT_CFLAGS)) -DLAC_VERSION='"$(VERSION)"' -fPIE -pie -nostartfiles collector/launch/start.S $(NODE_SRCS) -Wl,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -o $@

node-side: $(BUILD)/liblacuna.so $(BUILD)/lacuna-node $(BUILD)/python/.stamp

# all of that for aarch64, with what tests run of it under qemu-user
AARCH64_CC ?= aarch64-linux-gnu-gcc
HAVE_AARCH64 = $(shell echo 'int main(void) { return 0; }' | $(AARCH64_CC) -xc -o /dev/null - 2>/dev/null && echo yes)
aarch64:                                   ## the collector for aarch64, into build/aarch64 (needs gcc-aarch64-linux-gnu)
	$(Q)$(if $(HAVE_AARCH64),$(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j2) CC=$(AARCH64_CC) BUILD=build/aarch64 node-side aarch64-tests,echo "skip: no $(AARCH64_CC) with a C library: the collector for aarch64 is not built")
aarch64-tests: $(BUILD)/workload-cpu $(BUILD)/stand_in/libcupti_stand_in.so $(BUILD)/aarch64_job
$(BUILD)/aarch64_job: tests/integration/aarch64_job.c collector/python/python_abi.h
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(INJECT_CFLAGS) -rdynamic $< -lpthread -ldl -o $@

# a scriptable stand-in for libcupti, for tests of the conversation with it
$(NODE_BUILD)/stand_in/libcupti_stand_in.so: tests/stand_in/cupti_stand_in.c tests/stand_in/cupti_stand_in_gpu.c tests/stand_in/cupti_stand_in.h collector/inject/cupti_abi.h
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(INJECT_CFLAGS) -shared $(filter %.c,$^) -lpthread -o $@

# and for libnvidia-ml, of a driver with GPM and of an older one; each alone in a folder for LD_LIBRARY_PATH
$(NODE_BUILD)/stand_in/nvml/libnvidia-ml.so.1: STAND_IN_FLAGS :=
$(NODE_BUILD)/stand_in/nvml-old/libnvidia-ml.so.1: STAND_IN_FLAGS := -DWITHOUT_GPM
$(NODE_BUILD)/stand_in/nvml/libnvidia-ml.so.1 $(NODE_BUILD)/stand_in/nvml-old/libnvidia-ml.so.1: tests/stand_in/nvml_stand_in.c collector/base/nvml_abi.h
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(INJECT_CFLAGS) $(STAND_IN_FLAGS) -shared -Wl,-soname,libnvidia-ml.so.1 $< -o $@

ifneq ($(SAN),)
$(addprefix $(BUILD)/,liblacuna.so lacuna-node stand_in/libcupti_stand_in.so stand_in/nvml/libnvidia-ml.so.1 stand_in/nvml-old/libnvidia-ml.so.1): $(BUILD)/%: $(NODE_BUILD)/%
	$(Q)mkdir -p $(@D) && cp $< $@
$(BUILD)/python/.stamp: $(NODE_BUILD)/python/.stamp
	$(Q)mkdir -p $(@D) && cp $(<D)/*.* $(@D) && touch $@
endif

# ---- what is distributed (server/dist): the same program, which starts on every system from glibc 2.17 on
DIST      := build/dist
DIST_LIBC := 2.17
LIBC_NONSHARED = $(shell $(CC) -print-file-name=libc_nonshared.a)
$(DIST)/stubs/.stamp: server/dist/link_stubs.py
	$(Q)python3 $< $(@D) $(DIST_LIBC) "$(CC)" && touch $@
$(DIST)/tls_stubs.c: server/dist/tls_stubs.py
	$(Q)mkdir -p $(@D)
	$(Q)python3 $< $(call has_archive,microhttpd) >$@
# -nostdlib: nothing may come from the C library of this machine but its code for every program (libc_nonshared.a). Twice: for a package,
# whose libraries the system has, and with its one library beside it
DIST_ARCHIVES = $(foreach l,microhttpd json-c sodium cmark-gfm-extensions cmark-gfm zstd sqlite3,$(call has_archive,$(l))) $(LIBC_NONSHARED) $(shell $(CC) -print-libgcc-file-name)
DIST_SHARED   = $(shell $(CC) -print-file-name=libisal.so.2)
DIST_LACUNA  := server/dist/old_libc.c collector/launch/start.S $(DIST)/tls_stubs.c $(DIST)/stubs/.stamp $(BUILD)/server/main.o $(BUILD)/libserver.a $(BUILD)/libanalysis.a
$(DIST)/beside/lacuna: DIST_PATH = -Wl,-rpath,'$$ORIGIN'
$(DIST)/lacuna $(DIST)/beside/lacuna: $(DIST_LACUNA)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(BASE_CFLAGS) -fPIE -pie -nostdlib -DLAC_RUN_CONSTRUCTORS -s -Wl,-z,relro,-z,now $(DIST_PATH) $(filter %.c %.S %.o,$^) \
	  -Wl,--start-group $(filter %.a,$^) $(DIST_ARCHIVES) -Wl,--end-group -l:libisal.so.2 \
	  -Wl,--no-as-needed $(addprefix $(DIST)/stubs/,libc.so.6 libm.so.6 libpthread.so.0 libdl.so.2) -Wl,--as-needed $(DIST)/stubs/ld-linux-x86-64.so.2 -o $@

DIST_MISSING = $(strip $(if $(filter x86_64,$(shell uname -m)),,x86-64) $(foreach l,microhttpd json-c sodium cmark-gfm-extensions cmark-gfm zstd sqlite3,$(if $(call has_archive,$(l)),,lib$(l).a)))
DIST_OUT  := $(DIST)/out
DIST_ONLY := # wheel: that alone
.PHONY: dist-missing
dist-missing:
	@echo $(DIST_MISSING)
dist: all                                  ## tarballs, wheel and .deb of what can be installed, with checksums and list of parts, into build/dist/out
	$(Q)$(if $(DIST_MISSING),echo "make dist needs what is not here: $(DIST_MISSING)" >&2; exit 1)
	$(Q)$(MAKE) --no-print-directory -j2 $(DIST)/lacuna $(DIST)/beside/lacuna
	$(Q)$(if $(DIST_ONLY),,$(MAKE) --no-print-directory aarch64)
	$(Q)python3 server/dist/make_dist.py --only "$(DIST_ONLY)" --version $(VERSION) --program $(DIST)/lacuna --beside $(DIST)/beside/lacuna --shared $(DIST_SHARED) \
	  $(addprefix --archive ,$(DIST_ARCHIVES)) --node x86_64=$(BUILD)=strip $(if $(HAVE_AARCH64),--node aarch64=build/aarch64=$(AARCH64_CC:gcc=strip)) $(DIST_OUT)

# ---- kernels/: the example workload; the GPU's device needs nvcc, the rest builds anywhere
NVCC         ?= $(firstword $(wildcard /usr/local/cuda/bin/nvcc) $(shell command -v nvcc 2>/dev/null))
NVCC_FLAGS   ?= -O2 -std=c++17 -gencode arch=compute_75,code=sm_75 -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]
WORKLOAD     := kernels/workload.c kernels/loader.c kernels/ranges.c
WORKLOAD_DEP := $(WORKLOAD) $(wildcard kernels/*.h)
kernels: $(BUILD)/workload-cpu $(if $(NVCC),$(BUILD)/workload $(BUILD)/kinds)   ## the example workload
$(BUILD)/workload-cpu: $(WORKLOAD_DEP) kernels/device_cpu.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(WORKLOAD) kernels/device_cpu.c -lpthread -ldl -o $@
$(BUILD)/device_cuda.o: kernels/device_cuda.cu kernels/device.h
	$(Q)mkdir -p $(@D)
	$(Q)$(NVCC) $(NVCC_FLAGS) -I. -c $< -o $@
$(BUILD)/workload: $(WORKLOAD_DEP) $(BUILD)/device_cuda.o
	$(Q)$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(WORKLOAD) $(BUILD)/device_cuda.o -L$(dir $(NVCC))../lib64 -lcudart_static $(call lib,stdc++) -static-libgcc -lpthread -ldl -lrt -lm -o $@

$(BUILD)/kinds.o: kernels/kinds.cu kernels/ranges.h
	$(Q)mkdir -p $(@D)
	$(Q)$(NVCC) $(NVCC_FLAGS) -I. -c $< -o $@
$(BUILD)/kinds: $(BUILD)/kinds.o kernels/ranges.c
	$(Q)$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) kernels/ranges.c $< -L$(dir $(NVCC))../lib64 -lcudart_static $(call lib,stdc++) -static-libgcc -lpthread -ldl -lrt -lm -o $@

# ---- tests: a test program may use everything
# with threads of their own: `make soak` runs these under the thread sanitizer too (THREADED in tests/run.py)
thread-tests: $(addprefix $(BUILD)/tests/,test_http_server test_store_trace test_store_catalog test_ingest test_crew test_convert_crew)
STAND_INS  := $(BUILD)/stand_in/libcupti_stand_in.so $(BUILD)/stand_in/nvml/libnvidia-ml.so.1 $(BUILD)/stand_in/nvml-old/libnvidia-ml.so.1
sanitized: web/dist/.stamp build/embed_assets node-side $(STAND_INS)
	$(Q)$(MAKE) --no-print-directory SAN=1 test-programs
# of a test's own source, whose loops are short: optimized, it takes half of what compiling a test costs; undefined behavior is looked for in the product
TEST_CFLAGS := -O0 -g1 $(if $(filter 1,$(SAN)),-fno-sanitize=undefined)
TEST_UBSAN  := $(if $(filter 1,$(SAN)),-lubsan)
# one thread: make already keeps the cores busy
TEST_LINKER := $(if $(shell command -v ld.lld),-fuse-ld=lld -Xlinker --threads=1)
unit-tests: $(UNIT_TESTS) $(OOM_TESTS)
WHOLE_JOBS := $(BUILD)/python/.stamp $(BUILD)/workload-cpu $(BUILD)/bench/bench_ranges $(BUILD)/bench/bench_training $(BUILD)/simulator
test-programs: $(if $(SAN),unit-tests $(FUZZ_REPLAYS),sqlite-extension $(PLAIN_TESTS) $(WHOLE_JOBS)) $(BUILD)/liblacuna.so $(BUILD)/lacuna-node $(STAND_INS)
$(BUILD)/libsupport.a: $(SUPPORT_OBJS)
	$(Q)mkdir -p $(@D) && rm -f $@ && ar rcs $@ $^
# random training loops with the truth beside them, for the tests of the diagnosis
$(BUILD)/libsimulator.a: $(SIMULATOR_OBJS)
	$(Q)mkdir -p $(@D) && rm -f $@ && ar rcs $@ $^
$(BUILD)/simulator: $(BUILD)/tests/simulator/simulator_main.o $(BUILD)/libsimulator.a $(BUILD)/libserver.a $(BUILD)/libanalysis.a
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ $(ANALYSIS_LIBS) -o $@
$(BUILD)/libnode.a: $(patsubst %.c,$(BUILD)/%.o,$(filter-out %/node_main.c,$(NODE_SRCS)))
	$(Q)rm -f $@ && ar rcs $@ $^
$(BUILD)/tests/%: tests/unit/%.c $(BUILD)/libsupport.a $(BUILD)/libsimulator.a $(BUILD)/libserver.a $(BUILD)/libanalysis.a $(BUILD)/libnode.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(TEST_CFLAGS) $(CHECK_CFLAGS) $< $(filter %.a,$^) $(TEST_LINKER) $(TEST_UBSAN) $(CHECK_LIBS) $(SERVER_LIBS) -o $@
$(BUILD)/tests/%: tests/oom/%.c $(BUILD)/libsupport.a $(BUILD)/libserver.a $(BUILD)/libanalysis.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(TEST_CFLAGS) $(filter %.c %.a,$^) $(TEST_LINKER) $(TEST_UBSAN) $(SERVER_LIBS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc -o $@
# the fuzz targets without libFuzzer, of the same objects (tests/fuzz/replay_main.c)
$(BUILD)/tests/fuzz_%: tests/fuzz/fuzz_%.c $(BUILD)/tests/fuzz/replay_main.o $(BUILD)/libsupport.a $(BUILD)/libserver.a $(BUILD)/libanalysis.a $(BUILD)/libnode.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(filter %.c %.o %.a,$^) $(TEST_LINKER) $(SERVER_LIBS) -o $@

benches: $(BENCHES) $(BUILD)/liblacuna.so $(BUILD)/lacuna-node $(BUILD)/python/.stamp $(BUILD)/stand_in/libcupti_stand_in.so
$(BUILD)/bench/bench_ranges: tests/bench/bench_ranges.c kernels/ranges.c kernels/ranges.h
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(filter %.c,$^) -lpthread -ldl -o $@
# LTTng-UST's macros are not written for our warnings
$(BUILD)/bench/bench_lttng: tests/bench/bench_lttng.c tests/bench/lttng_events.h
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -iquote . $(CFLAGS) $< -llttng-ust -llttng-ust-common -ldl -o $@
$(BUILD)/bench/%: tests/bench/%.c $(BUILD)/libsupport.a $(BUILD)/libserver.a $(BUILD)/libanalysis.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(filter %.c %.a,$^) $(SERVER_LIBS) -o $@

# fuzzers: clang's libFuzzer over instrumented objects of their own; server/ code they need is named in FUZZ_SERVER_SRCS
FUZZ_SERVER_SRCS := $(call sources,server/store) $(wildcard server/http/query.c server/http/framing.c server/base/*.c server/objects/*.c server/json/json_*.c server/json/flame_*.c server/reports/document.c server/reports/markdown.c server/reports/part.c server/reports/snapshot*.c server/export/redact.c server/export/report_html.c server/export/report_svg.c server/export/report_timeline.c server/export/report_words.c server/export/picture.c server/export/text_page.c) server/ingest/upload_metadata.c server/api/tus_request.c
FUZZ_CFLAGS := $(BASE_CFLAGS) -Wno-unused-command-line-argument -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all
FUZZ_NODE_SRCS := $(filter-out %/node_main.c,$(wildcard $(foreach room,sample gather hang push launch,collector/$(room)/*.c)))
FUZZ_OBJS   := $(patsubst %.c,build/fuzz/%.o,$(ANALYSIS_SRCS) $(FUZZ_SERVER_SRCS) $(FUZZ_NODE_SRCS) $(SUPPORT_SRCS))
HAVE_FUZZER  = $(shell find "$$($(CLANG) -print-resource-dir 2>/dev/null)/lib" -name 'libclang_rt.fuzzer*' 2>/dev/null | head -n 1)
.PHONY: fuzzers have-fuzzer
fuzzers: $(if $(HAVE_FUZZER),$(FUZZERS:%=build/fuzz/fuzz_%),no-fuzzers)
no-fuzzers:
	@echo "skip: no clang with libFuzzer, the fuzz targets are neither built nor run"
have-fuzzer:
	@test -n "$(HAVE_FUZZER)"
build/fuzz/%.o: %.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -MMD -MP -fsanitize=fuzzer-no-link -c $< -o $@
# the list above is in the Makefile: an object that joins it may be of a file older than the archive
build/fuzz/libfuzz.a: $(FUZZ_OBJS) Makefile
	$(Q)rm -f $@ && ar rcs $@ $(filter %.o,$^)
build/fuzz/fuzz_%: tests/fuzz/fuzz_%.c build/fuzz/libfuzz.a
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer $(filter %.c %.a,$^) $(TEST_LINKER) -lcmark-gfm-extensions -lcmark-gfm -lzstd -lisal -lsqlite3 -ljson-c -lm -lpthread -ldl -o $@

# ---- page: bundled by esbuild, then embedded with its gzip form and an ETag
web: web/dist/.stamp                       ## the page alone
web/node_modules/.stamp: web/package.json web/package-lock.json
	$(Q)cd web && npm ci --no-audit --no-fund --silent && touch node_modules/.stamp
# LACUNA_LANG=de: the page in the language of web/text/de.json; another one than before builds it anew
WEB_LANG := build/web-language
$(shell mkdir -p build && printf '%s' '$(or $(LACUNA_LANG),en)' | cmp -s - $(WEB_LANG) || printf '%s' '$(or $(LACUNA_LANG),en)' >$(WEB_LANG))
web/dist/.stamp: web/node_modules/.stamp $(WEB_SRCS) $(WEB_LANG)
	$(Q)cd web && npm run --silent build && touch dist/.stamp
build/embed_assets: server/http/embed/embed_assets.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=c17 -D_GNU_SOURCE -O2 $(WARN) $< -lisal -o $@
$(BUILD)/gen/web_assets.c: build/embed_assets web/dist/.stamp
	$(Q)mkdir -p $(@D)
	$(Q)build/embed_assets $@ web/dist
# a document for each finding, with the thresholds that it quotes; one without a document does not build
DOCUMENTS := analysis/diagnose/findings/documents
$(BUILD)/gen/finding_documents.c: $(DOCUMENTS)/embed_documents.py $(wildcard $(DOCUMENTS)/../*/*.md) $(shell find analysis/diagnose -name '*_thresholds.h') analysis/diagnose/result/finding_registry.def
	$(Q)mkdir -p $(@D)
	$(Q)python3 $< $@ analysis/diagnose
$(BUILD)/gen/finding_documents.o: $(BUILD)/gen/finding_documents.c
	$(Q)$(CC) $(ALL_CFLAGS) -c $< -o $@
# taken in with .incbin, which the compiler's dependency file does not tell
$(BUILD)/server/api/openapi.o: server/api/openapi.json
$(BUILD)/server/cli/cmd_skill.o: server/cli/SKILL.md
# the collector travels inside the program: lacuna run writes it out where it is not installed
$(BUILD)/gen/collector_assets.c: build/embed_assets $(BUILD)/liblacuna.so $(BUILD)/lacuna-node $(BUILD)/python/.stamp
	$(Q)rm -rf $(BUILD)/gen/collector && mkdir -p $(BUILD)/gen/collector/python
	$(Q)cp $(BUILD)/liblacuna.so $(BUILD)/lacuna-node $(BUILD)/gen/collector && cp $(BUILD)/python/*.* $(BUILD)/gen/collector/python
	$(Q)strip --strip-unneeded $(BUILD)/gen/collector/liblacuna.so $(BUILD)/gen/collector/lacuna-node $(BUILD)/gen/collector/python/*.so
	$(Q)build/embed_assets $@ $(BUILD)/gen/collector lac_collector
$(BUILD)/gen/%_assets.o: $(BUILD)/gen/%_assets.c
	$(Q)$(CC) $(ALL_CFLAGS) -c $< -o $@

-include $(shell find $(BUILD) build/fuzz build/tidy -name '*.d' 2>/dev/null)
