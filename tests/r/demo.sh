#!/usr/bin/env bash
# demo.sh RLIB DEMO_R SCRATCH: the demo on what users have: an .rds, a .csv.gz and a 10x folder of the
# same counts give the same edges, and four pictures each; what cannot be read is named.
set -euo pipefail
rlib=$1 demo=$2 scratch=$3
if ! command -v Rscript >/dev/null || [ ! -d "$rlib/capeOmics" ]; then
  echo "skipped: capeOmics is not installed in $rlib (scripts/test installs it)"
  exit 77
fi
export R_LIBS=$rlib${R_LIBS:+:$R_LIBS}
rm -rf "$scratch" && mkdir -p "$scratch/tenx" && cd "$scratch"
Rscript -e '
  suppressPackageStartupMessages(library(SingleCellExperiment))
  set.seed(1)
  level <- rgamma(80, 2, 0.1)
  counts <- rbind(rpois(80, level), rpois(80, 2 * level), matrix(rpois(240, 300), 3))
  dimnames(counts) <- list(paste0("gene", 1:5), paste0("cell", 1:80))
  saveRDS(SingleCellExperiment(list(counts = counts)), "sce.rds")
  write.csv(log1p(t(t(counts) / colSums(counts)) * 1e4), gzfile("values.csv.gz"))
  saveRDS(SingleCellExperiment(list(logcounts = log1p(t(t(counts) / colSums(counts)) * 1e4))), "values.rds")
  Matrix::writeMM(as(counts, "CsparseMatrix"), "tenx/matrix.mtx")
  write.table(data.frame(paste0("ENSG", 1:5), rownames(counts), "Gene Expression"), gzfile("tenx/features.tsv.gz"),
              sep = "\t", quote = FALSE, row.names = FALSE, col.names = FALSE)
  writeLines(colnames(counts), "tenx/barcodes.tsv")' >/dev/null
run() { Rscript "$demo" "$@" >"$1.log" 2>&1 || { cat "$1.log"; exit 1; }; }
run from-rds sce.rds
run from-10x tenx
run from-values values.rds
run from-csv values.csv.gz
cmp from-rds/edges.csv from-10x/edges.csv
pairs() { cut -d, -f1,2 "$1/edges.csv" | sort; } # a .csv has 15 digits: the numbers may differ
cmp <(pairs from-values) <(pairs from-csv)
[ "$(wc -l <from-rds/edges.csv)" -gt 1 ]
for output in from-*/; do
  for file in dag.png adjacency.png poincare.png history.png sce.rds; do [ -s "$output$file" ]; done
done
if Rscript "$demo" refused "$demo" >refused.log 2>&1; then echo "a .R file was taken for data"; exit 1; fi
grep -q 'it must be a 10x folder (of matrix.mtx), an .h5 of 10x, .*, or a .csv' refused.log
