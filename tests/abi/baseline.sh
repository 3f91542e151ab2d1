#!/bin/sh
# AVX instructions only where Highway chooses at run time: in functions of its namespaces N_AVX*.
# Usage: baseline.sh OBJDUMP ARCHIVE
set -eu
listing=$(mktemp)
trap 'rm -f "$listing"' EXIT
"$1" -d --no-show-raw-insn "$2" >"$listing"
awk '
  /^[0-9a-f]+ <.*>:$/ { n_symbols++; symbol = $2; allowed = symbol ~ /N_AVX/; next }
  /%[yz]mm|[ \t]v[a-z0-9]+ .*%xmm/ {
    n_avx++
    if (!allowed && !(symbol in reported)) { reported[symbol] = 1; n_bad++; print symbol, $0 }
  }
  END {
    printf "%d AVX instructions, %d functions that must not have any\n", n_avx, n_bad
    exit n_bad > 0 || n_symbols == 0
  }' "$listing"
