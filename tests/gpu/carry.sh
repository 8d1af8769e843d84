#!/bin/sh
# carry.sh BUILD TO: what `make test-gpu` needs on a machine that builds nothing and has none of the server's libraries.
set -eu
build=$1
to=$2
rm -rf "$to"
mkdir -p "$to/lib" "$to/cupti"
for part in lacuna lacuna-node liblacuna.so python workload workload-cpu kinds; do
    [ ! -e "$build/$part" ] || cp -R "$build/$part" "$to/"
done
strip "$to/lacuna" 2>/dev/null || :
# the C library and its loader are those of the machine there
ldd "$build/lacuna" | awk '$2 == "=>" && $3 ~ /^\// && $1 !~ /^lib(c|m|pthread|dl|rt)\.so|^ld-/ { print $3 }' | while read -r library; do
    cp -L "$library" "$to/lib/"
done
# for programs in C, where neither a CUDA toolkit nor PyTorch brings one
for library in /usr/local/cuda/lib64/libcupti.so.[0-9]* /usr/local/cuda/extras/CUPTI/lib64/libcupti.so.[0-9]*; do
    [ ! -f "$library" ] || { cp -L "$library" "$to/cupti/" && break; }
done
du -sm "$to" | awk '{ print "carry " $2 ": " $1 " MB" }'
