#!/bin/sh
# Each line: folder, regex of project folders it may include. Everything else is an error.
# Also: third-party headers are confined to one file each.
set -eu
status=0
check() { # folder allowed
    bad=$(grep -RnE '^#include "(server|collector|analysis|kernels|tests)/' "$1" --include='*.[ch]' --include='*.cu' 2>/dev/null |
          grep -vE "#include \"($2)/" || true)
    [ -z "$bad" ] || { echo "layering: $1 may include only: $2"; echo "$bad"; status=1; }
}
confine() { # header file-regex
    bad=$(grep -RlF "#include <$1>" server collector analysis 2>/dev/null | grep -vE "$2" || true)
    [ -z "$bad" ] || { echo "layering: <$1> may be included only by $2"; echo "$bad"; status=1; }
}
check collector 'collector'
check analysis/model    'analysis/model|collector/include'
check analysis/import   'analysis/import|analysis/model|collector/include'
check analysis/diagnose 'analysis/diagnose|analysis/model'
check analysis/flame    'analysis/flame|analysis/model'
check analysis/compare  'analysis/compare|analysis/diagnose|analysis/flame|analysis/model'
check analysis  'analysis|collector/include'
check server    'server|analysis|collector/include'
confine sqlite3.h    '^(server/store|analysis/import)/'
confine json-c/json.h '^server/api/'
confine microhttpd.h '^server/http/'
confine cupti.h      '^collector/inject/cupti_'
exit $status
