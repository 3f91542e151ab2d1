#' Edges that hold over subsamples
#'
#' Step I on many random halves of the cells (stability selection, Meinshausen and Bühlmann, Journal of the
#' Royal Statistical Society B 72, 2010): how often every edge was found, the graph of those found often
#' enough, and a bound on how many of them are expected to be false.
#'
#' Features are chosen and counts are normalised once, on all cells. The bound is the authors' Theorem 1,
#' q^2 / ((2 cutoff - 1) p), where q is the mean number of edges found and p the number of ordered pairs of
#' features. It assumes that false edges are exchangeable and that the method is no worse than guessing.
#'
#' Of a half of few cells, each fit is the mean of 10 to parts of that ([DagParam()], `bags`), and takes as much longer;
#' `DagParam(bags = 0L)` makes one fit of it. Of a fit to all cells, `cape_support(fit, type = "share")` tells how many
#' of its parts found an edge, without another fit and without a bound.
#'
#' @inheritParams cape_learn_dag
#' @param ... further arguments: `assay.type`, `subset.row`, `knowledge`, `batch`, `perturbation` and
#'   `cell.weights`, `covariates`, as of [cape_fit()]; `num.threads`, of each fit (1 by default); and `verbose`, whether to say
#'   which assay is used. There is no `checkpoint`: it holds the state of one fit.
#' @param times number of subsamples.
#' @param fraction of the cells in each; the bound needs a half.
#' @param cutoff edges in at least this share of the subsamples are kept; above a half.
#' @param seed a whole number, or `NULL` to draw it from R's random numbers; it determines the subsamples too.
#' @param BPPARAM how the subsamples are spread, a [BiocParallel::BiocParallelParam-class]; the result does
#'   not depend on it.
#' @return A list of class `cape_stability`: `frequency`, a dgCMatrix (row: cause); `edges`, a DataFrame of
#' `from`, `to`, `frequency`, `weight` (the mean where it was found) and `sign` of all edges found; `dag`, a
#' [CapeDag-class] of the edges above the cutoff, acyclic; `n.found`, the number of edges in every
#' subsample; `expected.false`, the bound; and `times`, `fraction`, `cutoff`, `seed`.
#' @examples
#' truth <- cape_simulate_dag(5, seed = 1)
#' x <- cape_simulate_data(truth, 200, mechanism = "linear", seed = 2)
#' stable <- cape_stability(x, times = 10, param = DagParam(sem = "linear"), seed = 3)
#' stable
#' cape_compare(stable$dag, truth)
#' @export
cape_stability <- function(x, times = 50L, fraction = 0.5, cutoff = 0.75, param = DagParam(),
                           seed = NULL, ..., BPPARAM = BiocParallel::SerialParam()) {
    check_number(times, "times", 2, integer = TRUE)
    check_number(fraction, "fraction", 0.05, 0.95)
    check_number(cutoff, "cutoff", 0, 1)
    if (cutoff <= 0.5) {
        cape_error("'cutoff' is ", cutoff, "; it must be above 0.5 (the bound exists there only)")
    }
    check_class(param, "DagParam", "param")
    check_bpparam(BPPARAM)
    seed <- run_seed(seed)
    table <- study_table(x, param, ...)
    n <- ncol(table$values)
    size <- floor(fraction * n)
    if (size < 10L) {
        cape_error("a fraction of ", fraction, " of ", n, " cells is ", size, "; at least 10 are needed")
    }
    drawn <- with_seed(seed, replicate(times, sort(sample.int(n, size)), simplify = FALSE))
    dags <- BiocParallel::bplapply(drawn, learn_cells, table = table, param = param, seed = seed,
        BPPARAM = BPPARAM)

    features <- rownames(table$values)
    found <- Reduce(`+`, lapply(dags, function(dag) presence(dag@adjacency)))
    total <- Reduce(`+`, lapply(dags, function(dag) dag@adjacency))
    frequency <- found / times
    edges <- entries(found)
    edges$total <- entries_at(total, edges$from, edges$to)
    edges$mean <- edges$total / edges$value
    edges$frequency <- edges$value / times
    edges <- edges[order(-edges$frequency, -abs(edges$mean)), ]

    # Where frequent edges form a cycle, the rarest of them goes.
    frequent <- edges[edges$frequency >= cutoff, ]
    kept <- edge_table(cape_prune(dag_from_edges(frequent$from, frequent$to, frequent$frequency, features), 0))
    weight <- entries_at(total, kept$from, kept$to) / entries_at(found, kept$from, kept$to)
    dag <- dag_from_edges(kept$from, kept$to, nonzero(weight), features)
    n_found <- vapply(dags, function(dag) length(dag@adjacency@x), 0L)
    p <- length(features) * (length(features) - 1)
    edges <- S4Vectors::DataFrame(from = features[edges$from], to = features[edges$to],
        frequency = edges$frequency, weight = edges$mean, sign = sign(edges$total))
    structure(list(frequency = frequency, edges = edges, dag = dag, n.found = n_found,
        expected.false = mean(n_found)^2 / ((2 * cutoff - 1) * p), times = times, fraction = fraction,
        cutoff = cutoff, seed = seed), class = "cape_stability")
}

#' @export
print.cape_stability <- function(x, ...) {
    kept <- sum(x$edges$frequency >= x$cutoff)
    cat("Stability selection over ", x$times, " subsamples of ", 100 * x$fraction, " % of the cells\n",
        "edges found: ", round(mean(x$n.found), 1), " a subsample, ", nrow(x$edges), " in all\n",
        kept, if (kept == 1) " edge" else " edges", " in at least ", 100 * x$cutoff,
        " % of them; expected to be false: at most ", signif(x$expected.false, 2), "\n", sep = "")
    shown <- utils::head(as.data.frame(x$edges), 10)
    if (nrow(shown) > 0) print(shown, row.names = FALSE, digits = 3)
    invisible(x)
}

#' A graph for every group of cells
#'
#' Step I on each group (cell type, condition, donor) over the same features, and the edges in which two
#' graphs differ.
#'
#' Features are chosen on all cells, so that the graphs can be compared. A feature that does not vary within
#' a group has no edges there.
#'
#' @inheritParams cape_stability
#' @param by the group of every cell, or the name of a column of `colData(x)`.
#' @return `cape_learn_dags()`: a list of [CapeDag-class] objects, named by group.
#' @examples
#' truth <- cape_simulate_dag(5, seed = 1)
#' x <- cbind(cape_simulate_data(truth, 150, mechanism = "linear", seed = 2),
#'     cape_simulate_data(truth, 150, mechanism = "linear", seed = 3))
#' dags <- cape_learn_dags(x, by = rep(c("old", "young"), each = 150),
#'     param = DagParam(sem = "linear"), seed = 4)
#' cape_difference(dags$old, dags$young)
#' @export
cape_learn_dags <- function(x, by, param = DagParam(), seed = NULL, ...,
                            BPPARAM = BiocParallel::SerialParam()) {
    check_class(param, "DagParam", "param")
    check_bpparam(BPPARAM)
    seed <- run_seed(seed)
    groups <- per_cell(x, by, "by")
    if (is.null(groups) || anyNA(groups)) {
        cape_error("'by' is ", if (is.null(groups)) "NULL" else "missing for some cells",
            "; it must give a group for every cell")
    }
    groups <- split(seq_along(groups), as.character(groups))
    table <- study_table(x, param, ...)
    groups <- lapply(groups, function(cells) which(table$cells %in% cells))
    small <- names(which(lengths(groups) < 10L))
    if (length(small) > 0L) {
        cape_error("group ", some_of(quoted(small)), " has fewer than 10 cells",
            if (length(table$cells) < ncol(x)) " that say something", "; leave it out of 'x'")
    }
    BiocParallel::bplapply(groups, learn_cells, table = table, param = param, seed = seed,
        BPPARAM = BPPARAM)
}

#' @rdname cape_learn_dags
#' @param a,b two graphs over the same features, as [cape_compare()] takes them.
#' @return `cape_difference()`: a DataFrame of all edges of either graph: `from`, `to`, `weight.a`, `weight.b`
#' (0: no edge), `difference` (b - a) and `in.graph` (`"a"`, `"b"` or `"both"`), the largest difference first.
#' @export
cape_difference <- function(a, b) {
    tables <- c(is_table(a), is_table(b))
    a <- as_dag(a, "a")
    b <- as_dag(b, "b")
    features <- compared_features(a@features, b@features, tables)
    missing <- setdiff(c(a@features, b@features), features)
    if (length(missing) > 0L) {
        cape_error("'a' and 'b' have other features: ", some_of(quoted(missing)), " in one of them only")
    }
    over <- function(dag) {
        edges <- edge_table(dag)
        at <- match(dag@features, features)
        edges_to_matrix(list(from = at[edges$from], to = at[edges$to], weight = edges$weight), features)
    }
    a <- over(a)
    b <- over(b)
    edges <- entries(presence(a) + presence(b))
    first <- entries_at(a, edges$from, edges$to)
    second <- entries_at(b, edges$from, edges$to)
    table <- S4Vectors::DataFrame(from = features[edges$from], to = features[edges$to],
        weight.a = first, weight.b = second, difference = second - first,
        in.graph = ifelse(first == 0, "b", ifelse(second == 0, "a", "both")))
    table[order(-abs(second - first), edges$from, edges$to), ]
}

#' The graph at every threshold
#'
#' How many edges a graph keeps at each threshold, from its weights before pruning, without another fit.
#' Where the numbers hardly change over a range, the choice within it does not matter; see
#' [cape_suggest_threshold()] for a choice by tests, and [cape_stability()] for one with a bound on its errors.
#'
#' @param x a [CapeFit-class], a [CapeDag-class], or a SingleCellExperiment from [cape_fit()].
#' @param thresholds at which; `NULL`: 20 over the range of the weights.
#' @return A DataFrame of `threshold`, `edges`, and `removed`: edges above the threshold that were cut
#' because they closed a cycle.
#' @examples
#' x <- cape_simulate_data(cape_simulate_dag(6, edges.per.node = 1, seed = 1), 200, mechanism = "linear", seed = 2)
#' cape_threshold_path(cape_learn_dag(x, DagParam(sem = "linear"), seed = 3), c(0.1, 0.2, 0.4))
#' @export
cape_threshold_path <- function(x, thresholds = NULL) {
    dag <- cape_dag(x)
    if (is.null(thresholds)) {
        thresholds <- seq(0, max(0, abs(dag@weights@x)), length.out = 20L)
    }
    if (!is.numeric(thresholds) || length(thresholds) == 0L || any(!is.finite(thresholds)) || any(thresholds < 0)) {
        cape_error("'thresholds' is ", one_line(thresholds), "; it must hold finite numbers that are not negative")
    }
    cuts <- lapply(thresholds, function(tau) suppressMessages(cape_prune(dag, tau)))
    S4Vectors::DataFrame(threshold = thresholds,
        edges = vapply(cuts, function(cut) length(cut@adjacency@x), 0L),
        removed = vapply(cuts, function(cut) as.integer(cut@info$n_removed_for_acyclicity), 0L))
}

#' Which threshold the data speak for
#'
#' The causes of 60 features, drawn by the seed, are tested by regressions that do or do not have them,
#' on cells that these were not trained on; the threshold is the one whose graph has the fewest edges
#' into those features that are too many or missing. Fits with the defaults of more than 5,000 features, which
#' are not refined, follow it by themselves; this is for the others, say with `refine = FALSE`.
#'
#' @param dag what was learned from `x`: a [CapeDag-class], a [CapeFit-class], or a SingleCellExperiment from
#'   [cape_fit()].
#' @param x the table that it was learned from, without missing values, and `assay.type` and `subset.row` as then.
#' @param assay.type,subset.row,seed,num.threads,verbose as of [cape_fit()].
#' @return A data frame with one row: `threshold`, for [cape_prune()]; `tested`, the number of features whose
#'   causes were tested; `causes`, how many the tests keep; `differing`, how many edges into those
#'   features the weights above the threshold have too many or lack. `tested` is 0 where no weight is above
#'   0.02: there is no threshold to be found then.
#' @seealso [cape_threshold_path()]
#' @examples
#' truth <- cape_simulate_dag(7, seed = 1)
#' x <- cape_simulate_data(truth, 500, mechanism = "linear", seed = 2)
#' dag <- cape_learn_dag(x, DagParam(sem = "linear", refine = FALSE), seed = 3)
#' suggestion <- cape_suggest_threshold(dag, x, seed = 4)
#' suggestion
#' cape_prune(dag, suggestion$threshold)
#' @export
cape_suggest_threshold <- function(dag, x, assay.type = NULL, subset.row = NULL, seed = NULL, num.threads = 1L,
                                   verbose = interactive()) {
    dag <- cape_dag(dag)
    check_flag(verbose, "verbose")
    if (is.null(dag@param)) {
        cape_error("'dag' was not learned by cape_learn_dag() or cape_fit(), so no model says how to test its edges")
    }
    if (is.null(subset.row) && all(dag@features %in% rownames(x))) {
        subset.row <- dag@features # however they were chosen
    }
    values <- suppressMessages(cape_as_input(x, assay.type, subset.row, dag@param, FALSE))$values
    if (!setequal(rownames(values), dag@features)) {
        cape_error("'x' does not have the features of 'dag': it must be the table that 'dag' was learned from")
    }
    values <- values[dag@features, , drop = FALSE]
    edges <- entries(dag@weights)
    chosen <- c(settings(dag@param), run_settings(run_seed(seed), num.threads))
    result <- with_progress(verbose, function(progress) {
        with_features(dag@features,
            core_suggest_threshold(values, edges$from, edges$to, abs(edges$value), chosen, progress),
            colnames(values))
    })
    as.data.frame(as.list(result))
}

# Shared -------------------------------------------------------------------------------------------

# The features that are used, in all cells that say something (`cells`), and what is known of them: for many
# fits on some of the cells.
study_table <- function(x, param, assay.type = NULL, subset.row = NULL, knowledge = NULL, batch = NULL,
                        perturbation = NULL, cell.weights = NULL, covariates = NULL, num.threads = 1L, verbose = FALSE,
                        checkpoint = NULL) {
    check_flag(verbose, "verbose")
    if (!is.null(checkpoint)) {
        cape_error("'checkpoint' is given; it holds the state of one fit, and these are many")
    }
    input <- cape_as_input(x, assay.type, subset.row, param, verbose, batch)
    prior <- prior_of(x, rownames(input$values), rownames(x), knowledge, batch, perturbation, cell.weights,
        input$cells, covariates)
    check_refinable(param, prior)
    list(threads = run_threads(num.threads), values = input$values, cells = input$cells, prior = prior)
}

learn_cells <- function(cells, table, param, seed) {
    prior <- table$prior
    if (length(prior$batch) > 0L) {
        batch <- prior$batch[cells]
        cells <- cells[batch %in% batch[duplicated(batch)]] # a cell alone in its batch says nothing
        prior$batch <- prior$batch[cells]
    }
    if (length(prior$weights) > 0L) prior$weights <- prior$weights[cells]
    if (length(prior$covariates) > 0L) prior$covariates <- prior$covariates[cells, , drop = FALSE]
    at <- match(prior$perturbed[, 1L], cells)
    prior$perturbed <- cbind(at, prior$perturbed[, 2L])[!is.na(at), , drop = FALSE]
    values <- table$values[, cells, drop = FALSE]
    result <- with_features(rownames(values),
        core_learn_dag(values, prior, c(settings(param), run_settings(seed, table$threads)), NULL), colnames(values))
    new_dag(result, rownames(table$values), param, seed, prior$required)
}

# 1 where a sparse matrix has an entry.
presence <- function(x) {
    x@x[] <- 1
    x
}

nonzero <- function(weight) ifelse(weight == 0, 1e-6, weight)
