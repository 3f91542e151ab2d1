#!/bin/sh
# The other compiler: the core built with GCC 14 serves programs built with GCC or with this build's
# compiler. Skipped where there is no GCC 14.
# Usage: gcc.sh CMAKE SOURCE_DIR WORK_DIR CC CXX NM
set -eu
cmake=$1 source=$2 work=$3 cc=$4 cxx=$5 nm=$6
here=$(cd "$(dirname "$0")" && pwd)
command -v g++-14 >/dev/null && command -v gcc-14 >/dev/null || exit 77
"$cmake" -G Ninja -S "$source" -B "$work/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=gcc-14 \
         -DCMAKE_CXX_COMPILER=g++-14 -DCAPE_BUILD_TESTS=OFF
"$cmake" --build "$work/build"
"$here/install.sh" "$cmake" "$work/build" "$work/gcc" gcc-14 g++-14 "$nm"
"$here/install.sh" "$cmake" "$work/build" "$work/gcc-for-other" "$cc" "$cxx" "$nm"
