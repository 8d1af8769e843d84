#!/bin/sh
# Shell and Python scripts through shellcheck and pyflakes, where these are installed.
set -u
cd "$(dirname "$0")/../.." || exit 1
status=0
own='git ls-files -co --exclude-standard --'
if command -v shellcheck >/dev/null 2>&1; then
    # shellcheck disable=SC2046
    shellcheck -x $($own '*.sh' '.ci/*') || status=1
else
    echo "skip: no shellcheck, shell scripts are not checked"
fi
pyflakes=$(command -v pyflakes3 || command -v pyflakes || true)
if [ -n "$pyflakes" ]; then
    # shellcheck disable=SC2046
    "$pyflakes" $($own '*.py') || status=1
else
    echo "skip: no pyflakes, Python scripts are not checked"
fi
exit $status
