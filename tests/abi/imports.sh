#!/bin/sh
# Our objects neither print, nor end the process, nor draw from a hidden random state.
# Usage: imports.sh NM ARCHIVE
set -eu
imports=$("$1" -A -u "$2")
[ -n "$imports" ] || { echo "nm lists nothing" >&2; exit 1; }
if echo "$imports" | grep -E ' (exit|_exit|abort|quick_exit|__assert_fail|printf|puts|putchar|fprintf|fputs|vprintf|rand|srand|random|drand48|_ZSt4cout|_ZSt4cerr|_ZSt4clog|_ZSt5wcout)(@.*)?$' >&2; then
  exit 1
fi
