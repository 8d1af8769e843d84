#!/bin/sh
# run_demo.sh BUILD DATA LISTEN [TRACE...]: what `make run` does after building.
# Records the example workload under the collector, imports it beside the simulated series (both once) and
# the traces named, serves, prints the address to open.
set -eu
build=$1
data=${2:-${LACUNA_DATA:-$PWD/build/data}}
listen=${3:-127.0.0.1:7070}
shift 3 2>/dev/null || shift $#
lacuna=$build/lacuna
mkdir -p "$data"
chmod 700 "$data"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [ ! -f "$data/series-imported" ]; then
    "$lacuna" demo "$scratch/series" >/dev/null
    rm -f "$scratch"/series/*.truth.json
    "$lacuna" import --data "$data" --project series "$scratch"/series/*.json >/dev/null
    : >"$data/series-imported"
fi
if [ ! -f "$data/example-recorded" ]; then
    workload="$build/workload-cpu --cpu --batch 4 --steps 60 --workers 1 --fetch-ms 60"
    if [ -x "$build/workload" ] && "$build/workload" --check >/dev/null 2>&1; then
        workload="$build/workload --steps 200 --workers 1"
    fi
    echo "recording an example job: $workload"
    # shellcheck disable=SC2086
    if "$lacuna" run --quiet -o "$scratch/example-job" -- $workload; then
        "$lacuna" import --data "$data" --project example "$scratch/example-job" >/dev/null
        : >"$data/example-recorded"
    else
        echo "the example job could not be recorded; the simulated series is there" >&2
    fi
fi
[ $# -eq 0 ] || "$lacuna" import --data "$data" "$@"
rm -rf "$scratch"
trap - EXIT
exec "$lacuna" serve --data "$data" --listen "$listen"
