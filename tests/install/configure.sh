#!/bin/sh
# A generator or compiler that cannot build modules stops the configuration with one sentence that
# names what was found and what is needed. Usage: configure.sh CMAKE SOURCE_DIR WORK_DIR
set -eu
cmake=$1 source=$2 work=$3
rm -rf "$work"
mkdir -p "$work"

# refused NAME SENTENCE CMAKE_ARGUMENTS...
refused() {
  name=$1 sentence=$2
  shift 2
  if "$cmake" -S "$source" -B "$work/$name" "$@" >"$work/$name.log" 2>&1; then
    echo "$name: the configuration went through" >&2
    exit 1
  fi
  # CMake wraps its messages: compare them as one line.
  if ! tr -s ' \n' ' ' <"$work/$name.log" | grep -qF "$sentence"; then
    cat "$work/$name.log" >&2
    exit 1
  fi
}

refused makefiles "The generator is 'Unix Makefiles', but C++20 modules need Ninja" -G "Unix Makefiles"
if command -v g++-12 >/dev/null; then
  refused gcc12 "but C++20 modules need Clang 16 or GCC 14, or newer" -G Ninja -DCMAKE_CXX_COMPILER=g++-12
  grep -q "The C++ compiler is GNU 12" "$work/gcc12.log"
else
  echo "g++-12 is not there: not tried"
fi
