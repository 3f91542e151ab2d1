# What missing values cost a graph: SHD, and of it missing, extra and reversed edges, of the fit with
# missing = "mask" beside the fits of the complete table, of the cells without gaps, and of a table whose gaps
# are the means of their features. 1,000 cells; ER graphs with two edges a node; means over the seeds.
#   R_LIBS=build/release/rlib Rscript bench/missing.R [seeds] [nodes] [mechanisms]
suppressPackageStartupMessages(library(capeOmics))
arguments <- commandArgs(TRUE)
n_seeds <- if (length(arguments) > 0L) as.integer(arguments[1L]) else 3L
nodes <- if (length(arguments) > 1L) as.integer(strsplit(arguments[2L], ",")[[1L]]) else c(3L, 10L, 30L)
mechanisms <- if (length(arguments) > 2L) strsplit(arguments[3L], ",")[[1L]] else c("linear", "mlp")
cells <- 1000L

at_random <- function(x, fraction) {
  x[runif(length(x)) < fraction] <- NA
  x
}
# Every other feature, by the value of its known neighbour.
given_observed <- function(x, fraction) {
  for (j in seq(1L, nrow(x) - 1L, 2L)) {
    chance <- plogis(2 * scale(x[j + 1L, ])[, 1L])
    x[j, runif(cells) < fraction * chance / mean(chance)] <- NA
  }
  x
}
at_means <- function(x) {
  means <- rowMeans(x, na.rm = TRUE)
  x[is.na(x)] <- means[row(x)[is.na(x)]]
  x
}
errors <- function(x, truth, mechanism) {
  if (ncol(x) < 50L) return(c(shd = NA, missing = NA, extra = NA, reversed = NA))
  dag <- suppressWarnings(cape_learn_dag(x, DagParam(sem = mechanism, missing = "mask"), seed = 1, num.threads = 2L,
    verbose = FALSE))
  unlist(cape_compare(dag, truth)[c("shd", "missing", "extra", "reversed")])
}

for (mechanism in mechanisms) for (m in nodes) {
  rows <- list()
  for (seed in seq_len(n_seeds)) {
    truth <- cape_simulate_dag(m, edges.per.node = if (m < 5L) 1L else 2L, seed = seed)
    full <- cape_simulate_data(truth, cells, mechanism, seed = seed)
    set.seed(seed)
    add <- function(gaps, fraction, table, result) {
      rows[[length(rows) + 1L]] <<- data.frame(gaps = gaps, fraction = fraction, table = table, t(result))
    }
    add("none", 0, "complete", errors(full, truth, mechanism))
    for (gaps in c("at random", "given observed")) for (fraction in c(0.1, 0.2, 0.33, 0.5)) {
      x <- if (gaps == "at random") at_random(full, fraction) else given_observed(full, fraction)
      whole <- x[, colSums(is.na(x)) == 0, drop = FALSE]
      add(gaps, fraction, "mask", errors(x, truth, mechanism))
      add(gaps, fraction, "cells without gaps", errors(whole, truth, mechanism))
      add(gaps, fraction, "means", errors(at_means(x), truth, mechanism))
    }
  }
  rows <- do.call(rbind, rows)
  groups <- unique(rows[1:3])
  means <- do.call(rbind, lapply(seq_len(nrow(groups)), function(g) {
    these <- rows[rows$gaps == groups$gaps[g] & rows$fraction == groups$fraction[g] & rows$table == groups$table[g], ]
    data.frame(groups[g, ], t(colMeans(these[4:7])), se = sd(these$shd) / sqrt(nrow(these)))
  }))
  cat(mechanism, m, "nodes,", n_seeds, "graphs\n")
  print(means, digits = 2, row.names = FALSE)
}
