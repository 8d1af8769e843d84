#!/bin/sh
# check_symbols.sh FILE...: no symbol newer than glibc 2.17, so that it loads in the containers people train in; and the libraries are asked for
# in which glibc had its symbols before 2.34 took them in: a process that loads a file without them ends at the first call.
set -eu
status=0
for file in "$@"; do
    newer=$(objdump -T "$file" | grep -oE 'GLIBC_2\.[0-9]+(\.[0-9]+)?\)? +[A-Za-z_0-9]+' | tr -d ')' |
        awk '{split($1, v, "[_.]"); if (v[3] + 0 > 17) print}')
    [ -z "$newer" ] || { echo "$file needs symbols newer than glibc 2.17:"; echo "$newer"; status=1; }
    asked=$(objdump -T "$file" | awk '/\*UND\*/ { print $NF }')
    for pair in libdl.so.2:'dl(open|sym|close|error|addr|vsym)' libpthread.so.0:'pthread_(create|join|detach|setname_np|key_create|sigmask)'; do
        if echo "$asked" | grep -qxE "${pair#*:}" && ! objdump -p "$file" | grep -q "NEEDED *${pair%%:*}\$"; then
            echo "$file calls $(echo "$asked" | grep -xE "${pair#*:}" | tr '\n' ' ')and does not ask for ${pair%%:*}"
            status=1
        fi
    done
done
exit $status
