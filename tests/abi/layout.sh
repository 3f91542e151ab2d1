#!/bin/sh
# The structs and enums that cross the interface are as published. Usage: layout.sh PROGRAM LIST
set -eu
"$1" | diff -u "$2" - && exit 0
echo "The layout differs from $2. Fields may be added at the end of a struct; nothing else." >&2
exit 1
