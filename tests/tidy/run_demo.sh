#!/bin/sh
# run_demo.sh LACUNA DATA LISTEN [TRACE...]: what `make run` does after building.
# Imports the simulated series (once) and the traces named, serves, prints the address to open.
set -eu
lacuna=$1
data=${2:-${LACUNA_DATA:-$PWD/build/data}}
listen=${3:-127.0.0.1:7070}
shift 3 2>/dev/null || shift $#
mkdir -p "$data"
if [ ! -f "$data/demo-imported" ]; then
    demo=$(mktemp -d)
    trap 'rm -rf "$demo"' EXIT
    "$lacuna" demo "$demo"
    "$lacuna" import --data "$data" --project demo "$demo"/[0-9]-*.json
    : >"$data/demo-imported"
    rm -rf "$demo"
    trap - EXIT
fi
[ $# -eq 0 ] || "$lacuna" import --data "$data" "$@"
exec "$lacuna" serve --data "$data" --listen "$listen"
