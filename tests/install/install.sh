#!/bin/sh
# An installed CAPE, moved to another place, serves three programs outside the tree: C++ with
# find_package and import, C with find_package, C with pkg-config.
# Usage: install.sh CMAKE BUILD_DIR WORK_DIR CC CXX NM
set -eu
cmake=$1 build=$2 work=$3 cc=$4 cxx=$5 nm=$6
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$work"
mkdir -p "$work"
unset OPENBLAS_CORETYPE # the programs look whether the library chooses its kernel
DESTDIR= "$cmake" --install "$build" --prefix "$work/first" >"$work/install.log"
prefix=$work/prefix
mv "$work/first" "$prefix"

# Nothing that is private is installed.
if find "$prefix" -name 'arma.hpp' -o -name 'vector_math.hpp' -o -name '*.hpp' | grep .; then exit 1; fi

"$cmake" -G Ninja -S "$here/consumer" -B "$work/consumer" -DCMAKE_BUILD_TYPE=Release \
         -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_PREFIX_PATH="$prefix"
"$cmake" --build "$work/consumer"
"$work/consumer/consumer"
"$nm" "$work/consumer/consumer" | grep -q cape_choose_blas_kernel # linked though nothing calls it

"$cmake" -S "$here/c_consumer" -B "$work/c_consumer" -G Ninja -DCMAKE_C_COMPILER="$cc" \
         -DCMAKE_PREFIX_PATH="$prefix"
"$cmake" --build "$work/c_consumer"
"$work/c_consumer/c_consumer"

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name cape.pc)")
export PKG_CONFIG_PATH
[ "$(pkg-config --modversion cape)" = 0.1.0 ]
# shellcheck disable=SC2046
"$cc" -std=c11 -o "$work/pkg_config" "$here/c_consumer/main.c" $(pkg-config --cflags --libs cape) \
      "-Wl,-rpath,$(pkg-config --variable=libdir cape)"
"$work/pkg_config"
"$nm" -D "$work/pkg_config" | grep -q 'U cape_pagerank_with@CAPE_1' # bound to the version of the ABI
