#!/bin/sh
# docs/c-api.md shows the examples as they are, and the options as the library describes them.
# Usage: documentation.sh DOCUMENT LIST_OPTIONS SOURCES...
set -eu
document=$1 list_options=$2
shift 2
"$list_options" | cat "$@" - | while IFS= read -r line; do
  grep -qxF -- "$line" "$document" && continue
  echo "not in $document (the table of options is the output of list_options): $line" >&2
  exit 1
done
documented=$(grep -cE '^\| [a-z]+\.[a-z_0-9]+ \|' "$document")
known=$("$list_options" | grep -cE '^\| [a-z]+\.[a-z_0-9]+ \|')
[ "$documented" = "$known" ] && exit 0
echo "$document has $documented options, the library $known" >&2
exit 1
