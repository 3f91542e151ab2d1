#!/bin/sh
# What the documents show works as it stands, for a stranger with an installed CAPE: every C and C++ block
# compiles, a block of CMake configures and builds the program beside it, and a "cc" line does its work.
# Usage: documents.sh CMAKE BUILD_DIR WORK_DIR CC CXX DOCUMENTS...
set -eu
cmake=$1 build=$2 work=$3 cc=$4 cxx=$5
shift 5
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$work"
mkdir -p "$work"
DESTDIR= "$cmake" --install "$build" --prefix "$work/first" >"$work/install.log"
prefix=$work/prefix
mv "$work/first" "$prefix"
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name cape.pc)")
export PKG_CONFIG_PATH
cflags=$(pkg-config --cflags cape)

fail() { echo "$*" >&2; exit 1; }
quiet() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "$block: $*"; }; }
configure() { # DIRECTORY
  quiet "$cmake" -G Ninja -S "$1" -B "$1/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_CXX_COMPILER="$cxx"
  quiet "$cmake" --build "$1/build"
}

# Blocks become DOCUMENT.NUMBER.LANGUAGE.
for document in "$@"; do
  awk -v stem="$work/$(basename "$document" .md)." '
    /^ *```/ && file { close(file); file = ""; next }
    /^ *```/ { sub(/^ *```/, ""); file = stem sprintf("%02d.", ++n) ($0 == "" ? "txt" : $0); next }
    file { print >file }' "$document"
done
# A language that nothing below looks at needs its own test (R: tests/r/readme.sh).
for block in "$work"/*.[0-9][0-9].*; do
  case ${block##*.} in
    c | cmake | cpp | r | sh | txt) ;;
    *) fail "$block: of a language that this test does not know" ;;
  esac
done

# C. What is no file of its own is compiled after the blocks before it: functions as they are, statements
# in a function that has the variables that the text speaks of (fragment.h) and may hide them.
functions=$work/functions.h
: >"$functions"
for block in "$work"/*.c; do
  if grep -q '^#include' "$block"; then
    quiet "$cc" -std=c11 -Wall -Wextra -Werror -c -o "$work/block.o" $cflags "$block"
  elif grep -q '^}' "$block"; then
    cat "$block" >>"$functions"
  else
    { cat "$here/fragment.h" "$functions"
      echo "void fragment(FRAGMENT_VARIABLES);"
      echo "void fragment(FRAGMENT_VARIABLES) { {"
      cat "$block"
      echo "} }"; } >"$work/fragment.c"
    quiet "$cc" -std=c11 -Wall -Werror -Wno-unused-function -Wno-unused-variable -c -o "$work/block.o" $cflags \
          "$work/fragment.c"
  fi
done

# What a shell block does with a compiler, with the C program of its document.
for block in "$work"/*.sh; do
  grep '^cc ' "$block" | sed "s|^cc |$cc |" >"$work/commands" || true
  [ -s "$work/commands" ] || continue
  rm -rf "$work/shell"
  mkdir "$work/shell"
  for program in "${block%.*.sh}".*.c; do
    ! grep -q '^#include' "$program" || { cp "$program" "$work/shell/program.c"; break; }
  done
  (cd "$work/shell" && quiet sh -eu "$work/commands")
done

# CMake, word for word, with the C or C++ program of its document.
for block in "$work"/*.cmake; do
  stem=${block%.*.cmake}
  language=c
  ! grep -q '^project(.* CXX)' "$block" || language=cpp
  mkdir "$block.program"
  cp "$block" "$block.program/CMakeLists.txt"
  for program in "$stem".*."$language"; do
    ! grep -q 'int main(' "$program" || cp "$program" "$block.program/program.$language"
  done
  configure "$block.program"
done

# The same C++ program, compiled in other ways.
cpp=$(grep -l 'CXX)' "$work"/*.cmake | head -n 1).program
cp "$cpp/CMakeLists.txt" "$work/lists"
for block in "CMAKE_CXX_STANDARD 23" "CMAKE_CXX_EXTENSIONS OFF"; do
  rm -rf "$cpp/build"
  sed "s|^find_package|set($block)\n&|" "$work/lists" >"$cpp/CMakeLists.txt"
  configure "$cpp"
done

# Nothing of what is installed names the tree that it was built in.
source=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$build/CMakeCache.txt")
! grep -rIF "$source/" "$prefix" || fail "the installed files name the source tree"

# What modules need and is not there is said by find_package, in one sentence.
refused() { # SENTENCE LISTS CMAKE_ARGUMENTS...
  sentence=$1
  rm -rf "$work/refused"
  mkdir "$work/refused"
  printf '%s\n' "$2" >"$work/refused/CMakeLists.txt"
  shift 2
  if "$cmake" -S "$work/refused" -B "$work/refused/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" \
              "$@" >"$work/log" 2>&1; then
    fail "configured, though: $sentence"
  fi
  tr -s ' \n' ' ' <"$work/log" | grep -qF "$sentence" || { cat "$work/log" >&2; fail "not said: $sentence"; }
}
lists='cmake_minimum_required(VERSION 3.28)
project(Program CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(Cape REQUIRED)'
changed() { printf '%s\n' "$lists" | sed "$1"; }
refused "the generator is 'Unix Makefiles', but C++20 modules need Ninja" "$lists" -G "Unix Makefiles" \
        -DCMAKE_CXX_COMPILER="$cxx"
refused "the project has not enabled CXX" "$(changed 's/CXX)/C)/')" -G Ninja
refused "CMAKE_CXX_STANDARD is 17, but modules need 20" "$(changed 's/D 20)/D 17)/')" -G Ninja \
        -DCMAKE_CXX_COMPILER="$cxx"
refused "sources are not scanned for modules" "$(changed 's/3.28/3.20/')" -G Ninja -DCMAKE_CXX_COMPILER="$cxx"
if command -v g++-12 >/dev/null; then
  refused "the C++ compiler is GNU 12" "$lists" -G Ninja -DCMAKE_CXX_COMPILER=g++-12
fi
