#!/bin/sh
# Functions of ours that no product uses: the program, the launcher, the injected library. Each is linked
# from sections of its own, not optimized, and what the linker drops is listed, with the tests that use it.
#   sh tests/tidy/find_unused.sh [BUILD]      (build/unused; a whole build of its own, a minute)
set -eu
build=${1:-build/unused}
cc=${CC:-gcc}
own='^(lac|run_|cmd)'
mkdir -p "$build"
make --no-print-directory -j2 BUILD="$build" CFLAGS='-O0 -g -ffunction-sections -fno-inline' \
    LDFLAGS='-Wl,--gc-sections,--print-gc-sections' "$build/lacuna" >"$build/link.log" 2>&1 || { tail "$build/link.log"; exit 1; }

# what the linker dropped of our objects: libserver.a, libanalysis.a and main.o
dropped() { sed -nE "s/.*removing unused section '\.text\.([A-Za-z0-9_]+)' in file '([^']*)'.*/\1/p" "$1"; }
dropped "$build/link.log" | grep -E "$own" | sort -u >"$build/program.txt" || true
# members of an archive that nothing asked for are not even looked at
nm "$build/lacuna" | awk '$2 ~ /[Tt]/ {print $3}' | sort -u >"$build/kept.txt"
find "$build/server" "$build/analysis" -name '*.o' -exec nm {} + | awk '$2 == "T" {print $3}' | sort -u |
    comm -23 - "$build/kept.txt" | grep -E "$own" | sort -u - "$build/program.txt" >"$build/all.txt" || true

alone() { # name, entry points, sources...
    name=$1 entries=$2
    shift 2
    roots=$(for entry in $entries; do printf ' -Wl,-u,%s' "$entry"; done)
    # shellcheck disable=SC2086
    $cc -std=c17 -D_GNU_SOURCE -DLAC_VERSION='"0"' -iquote . -iquote collector/include -O0 -g -ffunction-sections -fno-inline \
        -Wl,--gc-sections,--print-gc-sections $roots "$@" -lpthread -ldl -o "$build/$name" >"$build/$name.log" 2>&1 ||
        { tail "$build/$name.log"; exit 1; }
    dropped "$build/$name.log" | grep -E "$own" >>"$build/all.txt" || true
}
: >"$build/node.txt"
alone node '' collector/base/*.c collector/sample/*.c collector/gather/*.c collector/hang/*.c collector/push/*.c collector/launch/*.c
alone liblacuna.so '' -shared -fPIC -fvisibility=hidden collector/inject/*.c collector/base/byte_size.c collector/base/debug.c collector/base/io_full.c collector/base/utf8.c collector/base/write_signals.c

sort "$build/all.txt" | uniq | while read -r name; do
    # used by another product, as what launcher and program share
    if nm "$build/lacuna" "$build/node" "$build/liblacuna.so" 2>/dev/null | grep -qE " [Tt] $name\$"; then continue; fi
    where=$(git grep -lwE "$name" -- 'collector/*.h' 'analysis/*.h' 'server/*.h' | head -n 1)
    users=$(git grep -lwE "$name" -- tests | tr '\n' ' ')
    echo "$name  ${where:-static}  ${users:-(nobody)}"
done
