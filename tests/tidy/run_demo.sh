#!/bin/sh
# run_demo.sh BUILD DATA LISTEN [TRACE...]: what `make run` does after building.
# Serves, runs the example workload under the collector, which pushes it to that server, imports the simulated
# series, and prints the address: of the recorded job where there is a GPU, else of the list. The second time
# all of it is there already.
set -eu
build=$1
data=${2:-${LACUNA_DATA:-$PWD/build/data}}
listen=${3:-127.0.0.1:7070}
shift 3 2>/dev/null || shift $#
lacuna=$build/lacuna
mkdir -p "$data"
chmod 700 "$data"

server=
interrupted=
scratch=$(mktemp -d)
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$scratch"' EXIT
trap 'exit 143' TERM HUP

# Ctrl-C goes to the server as well: it ends, and this script after it.
trap 'interrupted=1' INT
"$lacuna" serve --data "$data" --listen "$listen" --port-file "$scratch/port" --log-level warn >"$scratch/said" &
server=$!
while [ ! -f "$scratch/port" ] || ! grep -q '^  stop' "$scratch/said"; do
    kill -0 "$server" 2>/dev/null || { wait "$server" && exit 0 || exit $?; }
    sleep 0.05
done
url=$(sed -n 's/^  open  *\(.*\)\/#key=.*/\1/p' "$scratch/said")

has_gpu=
if [ -x "$build/workload" ] && "$build/workload" --check >/dev/null 2>&1; then
    has_gpu=1
fi
example=$(cat "$data/example-recorded" 2>/dev/null || :)
# in staging while it is imported, also when the server was stopped meanwhile
if [ -z "$example" ] || { [ ! -d "$data/staging/$example" ] && [ ! -f "$data/traces/$example.db" ]; }; then
    workload="$build/workload-cpu --cpu --batch 4 --steps 100 --workers 1 --fetch-ms 30 --sync-every-op"
    if [ -n "$has_gpu" ]; then
        workload="$build/workload --steps 200 --workers 1"
    fi
    echo "recording an example job: lacuna run --server $url -- $workload"
    # shellcheck disable=SC2086
    "$lacuna" run -o "$scratch/example-job" --server "$url" --token-file "$data/local.token" --project example \
        -- $workload 2>"$scratch/run" || echo "the example job ended with status $?" >&2
    cat "$scratch/run" >&2
    [ -z "$interrupted" ] || exit 130
    example=$(sed -n "s|^lacuna: $url/t/||p" "$scratch/run")
    if [ -n "$example" ]; then
        echo "$example" >"$data/example-recorded"
    else
        echo "the example job could not be recorded; the simulated series is there" >&2
    fi
fi

# last, so that the series is on top of the list
if [ ! -f "$data/series-imported" ]; then
    "$lacuna" demo "$scratch/series" >/dev/null
    rm -f "$scratch"/series/*.truth.json
    "$lacuna" import --data "$data" --project series "$scratch"/series/*.json >/dev/null
    : >"$data/series-imported"
fi
[ $# -eq 0 ] || "$lacuna" import --data "$data" "$@"

# a job without a GPU shows little of what this is for: then the list opens
opens=${has_gpu:+${example:+t/$example}}

# the key only on a terminal, as serve does it, and never in the arguments of a program
key="...   with the key in $data/local.token"
[ ! -t 1 ] || read -r key <"$data/local.token"
echo
while IFS= read -r line; do
    case $line in
    '  open '*) printf '  open     %s/%s#key=%s\n' "$url" "$opens" "$key" ;;
    *) printf '%s\n' "$line" ;;
    esac
done <"$scratch/said"
wait "$server" && status=0 || status=$?
if [ -n "$interrupted" ]; then
    wait "$server" || : # until it has written what it has to
    status=0
fi
server=
exit "$status"
