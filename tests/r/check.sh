#!/usr/bin/env bash
# check.sh RLIB PREFIX RPKG SCRATCH: the tarball builds with its vignette rendered, and R CMD check finds
# neither errors nor warnings; the examples of the help give none either. The tests of the package run apart
# (r.testthat).
set -euo pipefail
rlib=$1 prefix=$2 rpkg=$3 scratch=$4
if ! command -v R >/dev/null || [ ! -d "$rlib/capeOmics" ]; then
  echo "skipped: capeOmics is not installed in $rlib (scripts/test installs it)"
  exit 77
fi
rm -rf "$scratch" && mkdir -p "$scratch" && cd "$scratch"
export CAPE_HOME=$prefix R_LIBS=$rlib${R_LIBS:+:$R_LIBS} _R_CHECK_FORCE_SUGGESTS_=false
R CMD build "$rpkg" >build.log 2>&1 || { cat build.log; exit 1; }
R CMD check --no-manual --no-tests --no-vignettes capeOmics_*.tar.gz >check.log 2>&1 || { cat check.log; exit 1; }
tail -20 check.log
if grep -E '(ERROR|WARNING)$|^Status: .*(ERROR|WARNING)' check.log || # a "!" would not end the script
  grep -A 2 '^Warning' capeOmics.Rcheck/capeOmics-Ex.Rout; then exit 1; fi
[ -s capeOmics.Rcheck/capeOmics/doc/capeOmics.html ]
