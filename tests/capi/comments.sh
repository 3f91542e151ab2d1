#!/bin/sh
# Every function of the header has a comment of its own, directly above it, and every line fits the page.
# Usage: comments.sh HEADER
set -eu
awk '
  /^CAPE_API/ {
    n_functions++
    if (!commented) {
      match($0, /cape_[a-z0-9_]*\(/)
      print FILENAME ":" FNR ": " substr($0, RSTART, RLENGTH - 1) " has no comment of its own"
      n_bad++
    }
  }
  length > 100 { print FILENAME ":" FNR ": longer than 100 columns"; n_bad++ }
  { commented = /\*\/$/ }
  END {
    printf "%d functions, %d faults\n", n_functions, n_bad
    exit n_bad > 0 || n_functions == 0
  }' "$1"
