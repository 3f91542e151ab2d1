#!/bin/sh
# Our objects neither print, nor end the process, nor draw from a hidden random state.
# Usage: imports.sh NM ARCHIVE
set -eu
found=$("$1" -A -u "$2" | grep -E ' (exit|_exit|abort|quick_exit|__assert_fail|printf|puts|putchar|fprintf|fputs|vprintf|rand|srand|random|drand48|_ZSt4cout|_ZSt4cerr|_ZSt4clog|_ZSt5wcout)(@.*)?$' || true)
[ -z "$found" ] && exit 0
echo "$found" >&2
exit 1
