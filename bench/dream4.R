# DREAM4's networks from their multifactorial samples: the area under the precision-recall curve of all
# ordered pairs (random: the share of pairs that are edges), means over seeds of the fit (default: five) and
# their standard errors. Columns are standardized but where it says raw. Forests are those of GENIE3, in
# ranger, if that is installed.
#   R_LIBS=build/release/rlib CAPE_TEST_DATA=../shared/data Rscript bench/dream4.R [SEEDS]
# The multifactorial samples of 100 genes were a challenge of their own, with networks of their own, which are
# in goldstandard_insilico100_multifactorial_K.csv; those in the objects' metadata belong to the other samples.
suppressPackageStartupMessages({
  library(SummarizedExperiment)
  library(capeOmics)
})
folder <- file.path(Sys.getenv("CAPE_TEST_DATA", "../shared/data"), "dream4")
files <- list.files(folder, "^dream4_[0-9_]+\\.RData$", full.names = TRUE)
if (length(files) == 0L) stop("no DREAM4 data in ", folder, "; set CAPE_TEST_DATA")
seeds <- as.integer(c(commandArgs(TRUE), 5)[1])
# The best entry of the challenge: V. A. Huynh-Thu et al., PLoS ONE 2010, table 1.
winner <- c(dream4_100_01 = 0.154, dream4_100_02 = 0.155, dream4_100_03 = 0.231, dream4_100_04 = 0.208,
            dream4_100_05 = 0.197)

true_network <- function(name, data) {
  genes <- rownames(data)
  truth <- matrix(0, length(genes), length(genes), dimnames = list(genes, genes))
  if (length(genes) == 100L) {
    number <- as.integer(sub(".*_", "", name))
    edges <- read.csv(file.path(folder, sprintf("goldstandard_insilico100_multifactorial_%d.csv", number)))
    truth[cbind(edges$Source, edges$Target)] <- 1
  } else {
    truth[] <- metadata(data)$goldStandardAdjacencyMatrix[genes, genes] != 0
  }
  diag(truth) <- 0
  truth
}

# Of every gene, how much each other one does for a forest's prediction of it (V. A. Huynh-Thu et al., 2010).
forests <- function(x, seed) {
  if (!requireNamespace("ranger", quietly = TRUE)) return(NULL)
  x <- scale(t(x))
  importance <- vapply(seq_len(ncol(x)), function(gene) {
    forest <- ranger::ranger(x = x[, -gene], y = x[, gene], num.trees = 500, importance = "impurity",
                             seed = seed, num.threads = 2)
    append(unname(forest$variable.importance), 0, after = gene - 1L)
  }, numeric(ncol(x)))
  dimnames(importance) <- list(colnames(x), colnames(x))
  importance
}

measure <- function(file) {
  name <- load(file)
  data <- get(name)
  x <- assay(data, "simulated")[, grepl("^MF", colnames(data))]
  truth <- true_network(name, data)
  area <- function(graph) if (is.null(graph)) NA else suppressWarnings(cape_compare(graph, truth)$auprc)
  over_seeds <- function(of) {
    values <- vapply(seq_len(seeds), of, 0)
    sprintf("%.3f (%.3f)", mean(values), sd(values) / sqrt(seeds))
  }
  learn <- function(seed, ...) {
    suppressWarnings(cape_learn_dag(x, DagParam(...), seed = seed, num.threads = 2L, verbose = FALSE))
  }
  correlation <- abs(cor(t(x)))
  diag(correlation) <- 0
  fits <- lapply(seq_len(seeds), learn, standardize = TRUE)
  raw <- lapply(seq_len(seeds), learn)
  data.frame(network = name, samples = ncol(x), edges = sum(truth),
             random = sum(truth) / (length(truth) - nrow(truth)), correlation = area(correlation),
             winner = unname(winner[name]), forests = over_seeds(function(seed) area(forests(x, seed))),
             support = over_seeds(function(k) area(cape_support(fits[[k]], sparse = FALSE))),
             weights = over_seeds(function(k) area(abs(cape_weights(fits[[k]], sparse = FALSE, pruned = FALSE)))),
             graph = over_seeds(function(k) area(fits[[k]])), kept = mean(vapply(fits, function(f) nrow(cape_edges(f)), 0)),
             raw.support = over_seeds(function(k) area(cape_support(raw[[k]], sparse = FALSE))))
}
for (file in files) print(measure(file), digits = 3, row.names = FALSE)
