#!/usr/bin/env bash
# testthat.sh RLIB TESTS: the R package's tests against the installed package in RLIB.
set -euo pipefail
rlib=$1 tests=$2
if ! command -v Rscript >/dev/null || [ ! -d "$rlib/capeOmics" ]; then
  echo "skipped: capeOmics is not installed in $rlib (scripts/test installs it)"
  exit 77
fi
R_LIBS=$rlib${R_LIBS:+:$R_LIBS} exec Rscript -e '
  library(testthat)
  library(capeOmics)
  options(warn = 1)
  test_dir(commandArgs(TRUE)[1], package = "capeOmics", load_package = "installed",
           reporter = c("summary", "fail"), stop_on_failure = TRUE)' "$tests"
