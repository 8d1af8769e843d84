#!/bin/sh
# check_symbols.sh FILE...: no symbol newer than glibc 2.17, so that it loads in the containers people train in.
set -eu
status=0
for file in "$@"; do
    newer=$(objdump -T "$file" | grep -oE 'GLIBC_2\.[0-9]+(\.[0-9]+)?\)? +[A-Za-z_0-9]+' | tr -d ')' |
        awk '{split($1, v, "[_.]"); if (v[3] + 0 > 17) print}')
    [ -z "$newer" ] || { echo "$file needs symbols newer than glibc 2.17:"; echo "$newer"; status=1; }
done
exit $status
