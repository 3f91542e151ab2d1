# DREAM4's networks from their multifactorial samples: the area under the precision-recall curve of all
# ordered pairs, over that of a random ranking (the share of pairs that are edges).
#   R_LIBS=build/release/rlib CAPE_TEST_DATA=../shared/data Rscript bench/dream4.R
suppressPackageStartupMessages({
  library(SummarizedExperiment)
  library(capeOmics)
})
folder <- file.path(Sys.getenv("CAPE_TEST_DATA", "../shared/data"), "dream4")
files <- list.files(folder, "^dream4_[0-9_]+\\.RData$", full.names = TRUE)
if (length(files) == 0L) stop("no DREAM4 data in ", folder, "; set CAPE_TEST_DATA")

measure <- function(file) {
  name <- load(file)
  data <- get(name)
  samples <- grepl("^MF", colnames(data))
  x <- assay(data, "simulated")[, samples]
  truth <- metadata(data)$goldStandardAdjacencyMatrix
  truth <- 1 * (truth[rownames(x), rownames(x)] != 0)
  diag(truth) <- 0
  over_random <- function(graph) {
    suppressWarnings(cape_compare(graph, truth)$auprc) * (length(truth) - nrow(truth)) / sum(truth)
  }
  # The mean over five seeds of the fit.
  learned <- function(refine) {
    mean(vapply(1:5, function(seed) over_random(suppressWarnings(cape_learn_dag(x,
      DagParam(standardize = TRUE, refine = refine), seed = seed, num.threads = 2L, verbose = FALSE))), 0))
  }
  correlation <- abs(cor(t(x)))
  diag(correlation) <- 0
  data.frame(network = name, samples = sum(samples), edges = sum(truth), G = learned(FALSE), refined = learned(TRUE),
    correlation = over_random(correlation))
}
print(do.call(rbind, lapply(files, measure)), digits = 3, row.names = FALSE)
