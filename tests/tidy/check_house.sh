#!/bin/sh
# House rules that no compiler checks. Prints each breach; exit status 1 when there is one.
set -u
status=0
breach() { # what, lines
    [ -z "$2" ] || { echo "$1:"; echo "$2" | head -n 10; status=1; }
}
own='git ls-files -co --exclude-standard --'
c_files=$($own 'collector/*.[ch]' 'analysis/*.[ch]' 'server/*.[ch]' 'tests/*.[ch]')
code=$($own '*.c' '*.h' '*.cu' '*.ts' '*.tsx' '*.mjs' '*.py' '*.sh' Makefile | grep -v tests/tidy/check_house.sh)

# shellcheck disable=SC2086
breach 'functions that cannot be used safely' \
    "$(grep -nE '\b(sprintf|strcpy|strcat|strtok|gets|atoi|atol|atof|localtime|gmtime|sscanf|vsprintf|tmpnam|mktemp)\(' $c_files /dev/null)"
# shellcheck disable=SC2086
breach 'left unfinished' "$(grep -nE '\b(TODO|FIXME|XXX|HACK|DO-NOT-SUBMIT)\b' $code /dev/null)"
breach 'file names that stand twice' \
    "$($own '*.c' '*.h' | sed 's#.*/##' | sort | uniq -d)"
# a reader who looks a type up by its name finds one
# shellcheck disable=SC2046
breach 'tags of ours that are defined twice' \
    "$(grep -hoE '\b(struct|union|enum) lac_[a-z0-9_]+ \{' $(echo "$c_files" | grep -v '^tests/') | cut -d ' ' -f 2 | sort | uniq -d)"
# shellcheck disable=SC2086
breach 'C files of more than 900 lines' "$(wc -l $c_files /dev/null | awk '$1 > 900 && $2 != "total" {print $2 ": " $1 " lines"}')"
# 0, 1 and 100 explain themselves; texts.c and what_if.c print and read numbers
# shellcheck disable=SC2046
breach 'thresholds of the diagnosis without a name (put them into *_thresholds.h)' \
    "$(grep -nE '[<>]=? ?-?[0-9]*\.[0-9]+' $(echo "$c_files" | grep '^analysis/diagnose/.*\.c$' | grep -v '/result/') /dev/null |
       grep -vE '[<>]=? ?-?(0|1|100)\.0([^0-9]|$)')"
# shellcheck disable=SC2086
breach 'comments whose end stands alone behind one line (a rule or a sentence that was wrapped)' \
    "$(awk 'FNR == 1 { open = "" }
            open != "" { if ($0 ~ /^[ \t]*\*( ?-+ ?\*)?\/$/) print open; open = "" }
            /^[ \t]*\/\*+ [^ ]/ && !/\*\// { open = FILENAME ":" FNR ": " $0 }' $c_files /dev/null)"
breach 'addresses of a package registry' "$(git grep -nIE 'registry\.(npmjs|yarnpkg)|deb\.debian\.org|pypi\.org' -- . ':!tests/tidy/check_house.sh')"
version_of() { sed -n "s/.*$1 = \([0-9]*\).*/\1/p" "$2"; }
breach 'server/store/FORMAT.md has another version than the code' \
    "$(grep -qF "trace file is **$(version_of LAC_TRACE_FORMAT_VERSION server/store/trace/trace_file.h)**" server/store/FORMAT.md || echo 'of trace files'
       grep -qF "user_version = $(version_of LAC_CATALOG_VERSION server/store/catalog.h))" server/store/FORMAT.md || echo 'of the catalog')"
for folder in collector collector/base analysis analysis/model analysis/import analysis/diagnose analysis/flame analysis/compare server server/store server/http server/api server/demo kernels web tests tests/simulator $(find analysis/diagnose analysis/import collector server -mindepth 1 -type d -not -name documents -not -name __pycache__ -not -path "*/include*" -not -name inject -not -name embed); do
    [ ! -d "$folder" ] || [ -z "$(ls "$folder" 2>/dev/null)" ] || [ -f "$folder/README.md" ] || { echo "no README.md in $folder"; status=1; }
done
exit $status
