#!/bin/sh
# What libcape.so exports is the published list and nothing else.
# Usage: symbols.sh NM LIBRARY LIST
set -eu
"$1" -D --defined-only "$2" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort |
  diff -u "$3" - && exit 0
echo "The exported symbols differ from $3 (-: no longer there, +: new)." >&2
echo "A new symbol: add it to the list. A lost one: a new SOVERSION." >&2
exit 1
