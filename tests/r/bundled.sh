#!/usr/bin/env bash
# bundled.sh SOURCE SCRATCH: the tarball of the R package builds and installs from its own copy of the
# core, without a network, without libcape on the machine, and then fits. A missing cmake is
# named in one sentence.
set -euo pipefail
source=$1 scratch=$2
command -v R >/dev/null || { echo "skipped: no R"; exit 77; }
rm -rf "$scratch" && mkdir -p "$scratch/lib" && cd "$scratch"
R CMD build --no-build-vignettes "$source/rpkg" >build.log 2>&1 || { cat build.log; exit 1; }
tarball=$(echo "$PWD"/capeOmics_*.tar.gz)

offline=()
unshare -rn true 2>/dev/null && offline=(unshare -rn)
unset CAPE_HOME
export CAPE_FORCE_BUNDLED=1
"${offline[@]}" R CMD INSTALL --library="$scratch/lib" "$tarball" >install.log 2>&1 ||
  { tail -40 install.log; exit 1; }
R_LIBS=$scratch/lib Rscript -e '
  library(capeOmics)
  set.seed(1)
  x <- matrix(rnorm(300), 5)
  fit <- suppressWarnings(cape_calculate(x, seed = 1))
  stopifnot(all(is.finite(cape_embedding(fit))))'

# Without cmake on the PATH: a refusal that names it.
mkdir bin
for tool in $(compgen -c | sort -u | grep -vE '^(cmake.*|ctest|cpack)$'); do
  path=$(type -P "$tool" 2>/dev/null) && ln -sf "$path" "bin/$tool" 2>/dev/null || true
done
if PATH=$PWD/bin R CMD INSTALL --library="$scratch/lib" "$tarball" >refused.log 2>&1; then
  echo "an installation without cmake succeeded"
  exit 1
fi
grep -qiE 'cmake (is|was) not|cmake.*(missing|not found)' refused.log || { echo "the refusal does not name cmake:"; tail -5 refused.log; exit 1; }
