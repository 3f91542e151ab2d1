#!/usr/bin/env bash
# readme.sh RLIB README SCRATCH: the R blocks of the README run as they stand, one after another.
set -euo pipefail
rlib=$1 readme=$2 scratch=$3
if ! command -v Rscript >/dev/null || [ ! -d "$rlib/capeOmics" ]; then
  echo "skipped: capeOmics is not installed in $rlib (scripts/test installs it)"
  exit 77
fi
rm -rf "$scratch" && mkdir -p "$scratch"
awk '/^```/ { inside = $0 == "```r"; next } inside' "$readme" >"$scratch/readme.R"
grep -q cape_fit "$scratch/readme.R"
cd "$scratch"
R_LIBS=$rlib${R_LIBS:+:$R_LIBS} exec Rscript -e 'options(warn = 2); suppressPackageStartupMessages(source("readme.R"))'
