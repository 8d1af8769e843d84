#!/bin/sh
# replay.sh FUZZER CORPUS SECONDS: every committed input, then SECONDS of new ones from a fixed seed.
set -eu
fuzzer=$1 corpus=$2 seconds=$3
if [ ! -x "$fuzzer" ] && [ -z "$(find build/fuzz -maxdepth 1 -type f -name 'fuzz_*' 2>/dev/null)" ] && ! make -s have-fuzzer; then
    echo "skip: no clang with libFuzzer"
    echo "0 passed, 0 failed"
    exit 0
fi
[ -d "$corpus" ] || { echo "no corpus in $corpus"; exit 1; }
scratch=$(mktemp -d)
keep_and_clean() { # an input that broke something is kept in build/fuzz
    find "$scratch" -maxdepth 1 \( -name 'crash-*' -o -name 'timeout-*' -o -name 'oom-*' -o -name 'leak-*' \) -exec mv {} build/fuzz/ \;
    rm -rf "$scratch"
}
trap keep_and_clean EXIT
"$fuzzer" -runs=0 -timeout=20 -rss_limit_mb=4096 -artifact_prefix="$scratch/" "$corpus" >"$scratch/log" 2>&1 ||
    { tail -n 60 "$scratch/log"; exit 1; }
mkdir "$scratch/new"
"$fuzzer" -max_total_time="$seconds" -seed=1 -timeout=20 -rss_limit_mb=4096 -artifact_prefix="$scratch/" \
    "$scratch/new" "$corpus" >"$scratch/log" 2>&1 || { tail -n 60 "$scratch/log"; exit 1; }
