suppressPackageStartupMessages(library(SingleCellExperiment))

# Quick settings: what is tested here is the R layer, not how well the graph is learned.
quick_dag <- function(...) {
    given <- list(...)
    quick <- list(sem = "linear", epochs = 40L, refine = FALSE)
    do.call(DagParam, c(given, quick[setdiff(names(quick), names(given))]))
}
quick_embed <- function(...) HyperbolicParam(dims = 4L, epochs = 20L, ...)

# cape_calculate() with them, without warnings about convergence.
quick_fit <- function(x, ..., dag = quick_dag(), embed = quick_embed(), seed = 1, verbose = FALSE) {
    suppressWarnings(cape_calculate(x, ..., dag = dag, embed = embed, seed = seed, verbose = verbose))
}

nothing_known <- function(x) capeOmics:::prior_of(x, rownames(x))

# Counts of a few genes in a few cells, dense with names.
small_counts <- function(genes = 8L, cells = 30L, seed = 1) {
    old <- if (exists(".Random.seed", globalenv())) get(".Random.seed", globalenv())
    on.exit(if (!is.null(old)) assign(".Random.seed", old, globalenv()))
    set.seed(seed)
    x <- matrix(rpois(genes * cells, 3), genes, cells)
    dimnames(x) <- list(paste0("g", seq_len(genes)), paste0("c", seq_len(cells)))
    x
}

# The linear chain x1 -> x2 -> x3 as features x cells.
chain_data <- function(n = 2000L) {
    old <- if (exists(".Random.seed", globalenv())) get(".Random.seed", globalenv())
    on.exit(if (!is.null(old)) assign(".Random.seed", old, globalenv()))
    set.seed(7)
    x1 <- rnorm(n)
    x2 <- 0.8 * x1 + rnorm(n)
    x3 <- 0.8 * x2 + rnorm(n)
    rbind(x1 = x1, x2 = x2, x3 = x3)
}

# R code in a process of its own that uses the same library; `file` is where it is written.
child_args <- function(code) {
    file <- tempfile(fileext = ".R")
    libraries <- paste(deparse(.libPaths()), collapse = "")
    writeLines(c(paste0(".libPaths(", libraries, ")"),
        "library(capeOmics)", code), file)
    file
}
run_child <- function(code, stderr = TRUE) {
    system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", child_args(code)), stdout = TRUE,
        stderr = stderr)
}

cape_dag_of <- function(table) capeOmics:::as_dag(table, "table")
