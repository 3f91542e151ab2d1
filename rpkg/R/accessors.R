#' What a run found
#'
#' Accessors for a [CapeFit-class], for a SingleCellExperiment from [cape_fit()] and, where it makes
#' sense, for a [CapeDag-class] or [CapeEmbedding-class]. Of an experiment whose rows were chosen, doubled or
#' reordered after the fit they give the features that it still has, once each, in the order of its rows and
#' under the names that they had in the fit: the column `feature` of `rowData(x)[[name]]` travels with the rows.
#'
#' @param x one of these objects.
#' @param name under which [cape_fit()] stored the result.
#' @param sparse a dgCMatrix, or an ordinary matrix.
#' @param pruned the graph, with signed weights, or the weights before pruning (norms, without sign,
#'   for `sem = "mlp"`).
#' @param type coordinates in the Poincaré ball, or on the hyperboloid.
#' @param step of which step.
#' @return
#' * `cape_result()`: the [CapeFit-class].
#' * `cape_dag()`: the [CapeDag-class].
#' * `cape_weights()`: a matrix; the row is the cause, the column the effect.
#' * `cape_edges()`: a DataFrame of `from`, `to`, `weight` (signed) and `sign`, the strongest edge first;
#'   `sign` tells in which direction the effect moves. The weights of a refined graph say what an edge explains,
#'   from 0 to 1 in any units: the root of the share of the error of predicting the effect, from its other causes
#'   and on held-out cells, that goes with the cause (a partial correlation where relations are linear). They
#'   are small where other features carry the same information. The t of the test that kept an edge is its
#'   `statistic`. Without refinement the weights of `sem = "mlp"` are norms of a network's weights, not effects
#'   per unit. Of a learned graph there are `support`
#'   and, of the mean of fits to parts of the cells, `share`, see [cape_support()].
#' * `cape_embedding()`: a matrix of coordinates, a row for every feature.
#' * `cape_generality()`: 1 - |e| for every feature, e its point in the ball: near 1 for causally general
#'   features, near 0 for specific ones, `NA` for features without a position. One without edges that was put beside
#'   its partner (`coverage` of [HyperbolicParam()]) is farther out than that: nothing shows it to be general.
#' * `cape_history()`: a DataFrame with a row for every epoch; of a [CapeModel-class] too.
#' * `cape_params()`: a list of the parameter objects `dag`, `embed` and `rotary`.
#' @examples
#' truth <- cape_simulate_dag(6, edges.per.node = 1, seed = 1)
#' x <- cape_simulate_data(truth, 200, mechanism = "linear", seed = 2)
#' fit <- cape_calculate(x, dag = DagParam(sem = "linear"), embed = HyperbolicParam(dims = 8L),
#'     seed = 3)
#' cape_edges(fit)
#' cape_weights(fit)
#' head(cape_embedding(fit))
#' sort(cape_generality(fit), decreasing = TRUE)
#' tail(cape_history(fit), 3)
#' cape_params(fit)$rotary
#' @name accessors
NULL

#' @rdname accessors
#' @export
cape_result <- function(x, name = "CAPE") {
    if (is(x, "CapeFit")) {
        return(updateObject(x))
    }
    if (!is(x, "SummarizedExperiment")) {
        cape_error("'x' is ", one_line(x), "; it must be a CapeFit or the result of cape_fit()")
    }
    stored <- S4Vectors::metadata(x)
    fit <- stored[[check_string(name, "name")]]
    if (!is(fit, "CapeFit")) {
        fits <- names(stored)[vapply(stored, is, NA, "CapeFit")]
        cape_error("'x' has no result ", quoted(name), if (length(fits) > 0L) {
            paste0("; it has ", some_of(quoted(fits)), ": use cape_result(x, name)")
        } else {
            ": run cape_fit() first"
        })
    }
    others <- Filter(function(other) !identical(other, fit), unname(stored[names(stored) == name]))
    if (length(others) > 0L) {
        cape_error("'x' was bound together from objects with different results ", quoted(name),
            "; ask the objects themselves")
    }
    fit_at(updateObject(fit), stored_rows(x, fit, name))
}

# The row of every feature of the fit that x still has, in the order of x, by name of the feature. Rows that
# were doubled count once.
stored_rows <- function(x, fit, name) {
    table <- SummarizedExperiment::rowData(x)[[name]]
    if (is(table, "DataFrame") && !is.null(table$feature)) {
        feature <- table$feature
    } else if (!is.null(rownames(x))) {
        feature <- rownames(x)
    } else {
        cape_error("'x' does not tell which of its rows are the features of result ", quoted(name),
            ": rowData(x)[[", quoted(name), "]] and the row names are gone")
    }
    rows <- which(feature %in% fit@dag@features & !duplicated(feature))
    stats::setNames(rows, feature[rows])
}

# A fit restricted to some of its features; `rows` are named by them.
fit_at <- function(fit, rows) {
    features <- fit@dag@features
    at <- match(names(rows), features)
    if (!identical(at, seq_along(features))) {
        fit@dag <- dag_at(fit@dag, at)
        fit@embedding <- embedding_at(fit@embedding, at)
        fit@angles <- fit@angles[at, , drop = FALSE]
    }
    fit@rows <- unname(rows)
    fit
}

dag_at <- function(dag, at) {
    if (length(at) < length(dag)) {
        dag@info <- of_other_edges(dag@info)
    }
    for (name in c("adjacency", "weights", "sign", "statistic", "support", "partners", "bag.share")) {
        if (length(slot(dag, name)) > 0L) {
            slot(dag, name) <- slot(dag, name)[at, at, drop = FALSE]
        }
    }
    if (nrow(dag@scaling) > 0L) {
        dag@scaling <- dag@scaling[at, , drop = FALSE]
    }
    dag@features <- dag@features[at]
    dag@order <- dag@order[dag@order %in% dag@features]
    dag@constant <- dag@constant[dag@constant %in% dag@features]
    dag
}

embedding_at <- function(embedding, at) {
    embedding@features <- embedding@features[at]
    for (name in c("hyperboloid", "poincare")) {
        slot(embedding, name) <- slot(embedding, name)[at, , drop = FALSE]
    }
    for (name in c("generality", "radius", "pagerank")) {
        slot(embedding, name) <- slot(embedding, name)[at]
    }
    embedding
}

#' @rdname accessors
#' @export
cape_dag <- function(x, name = "CAPE") {
    if (is(x, "CapeDag")) updateObject(x) else cape_result(x, name)@dag
}

#' @rdname accessors
#' @export
cape_weights <- function(x, sparse = TRUE, pruned = TRUE, name = "CAPE") {
    dag <- cape_dag(x, name)
    weights <- if (check_flag(pruned, "pruned")) dag@adjacency else dag@weights
    if (check_flag(sparse, "sparse")) weights else as.matrix(weights)
}

#' @rdname accessors
#' @export
cape_edges <- function(x, name = "CAPE") {
    dag <- cape_dag(x, name)
    edges <- edge_table(dag)
    table <- S4Vectors::DataFrame(c(list(from = dag@features[edges$from], to = dag@features[edges$to],
        weight = edges$weight, sign = edges$sign), edge_evidence(dag, edges)))
    table[order(-abs(edges$weight), edges$from, edges$to), ]
}

#' How much speaks for each pair
#'
#' A ranking of all ordered pairs of features, beside the graph: for more pairs than the graph has edges, and
#' for cells that are too few to tell directions.
#'
#' The support of a pair is the absolute weight before pruning and, of up to 1,000 features, the stability
#' selection by the lasso on halves of the cells, each over its root mean square, the latter times
#' min(1, 5 features / cells). It is 0 where nothing speaks for the pair, and has no upper end. Its numbers can
#' be compared within a fit, not between fits. It is no graph: pairs may have support both ways, and edges drawn
#' of it may form cycles. `s + t(s)` ranks the pairs without their directions. A pair that `knowledge` forbids
#' has none.
#'
#' The share tells which part of the fits to 80 % of the cells, which are made where cells are few
#' ([DagParam()], `bags`), has a weight above the threshold there: a multiple of one over their number, from
#' 0 to 1. It is not the probability of the edge.
#'
#' [cape_prune()] keeps both. A graph that was not learned, but simulated or brought, has neither.
#'
#' @param x a [CapeFit-class], a [CapeDag-class], or a SingleCellExperiment from [cape_fit()], of which this
#'   gives the features that it still has.
#' @param sparse a dgCMatrix, or an ordinary matrix.
#' @param type the support, or the share of the fits to parts of the cells.
#' @param name under which [cape_fit()] stored the result.
#' @return A matrix with a row for every feature as the cause and a column for every feature as the effect, 0 on
#' the diagonal.
#' @seealso [cape_edges()], whose columns `support` and `share` are those of the graph's edges; [cape_stability()]
#' for whole fits to halves of the cells, with a bound on the edges that are false
#' @examples
#' truth <- cape_simulate_dag(8, edges.per.node = 1, seed = 1)
#' x <- cape_simulate_data(truth, 60, mechanism = "linear", seed = 2)
#' dag <- cape_learn_dag(x, DagParam(sem = "linear", bags = 4L), seed = 3)
#' support <- cape_support(dag, sparse = FALSE)
#' round(support, 2)
#' cape_support(dag, type = "share")
#' cape_compare(dag, truth, rank.by = "support")[c("auprc", "auroc")]
#' @export
cape_support <- function(x, sparse = TRUE, type = c("support", "share"), name = "CAPE") {
    dag <- cape_dag(x, name)
    check_flag(sparse, "sparse")
    support <- if (one_of(type, c("support", "share"), "type") == "support") support_of(dag) else share_of(dag)
    if (sparse) support else as.matrix(support)
}

support_of <- function(dag, name = "x") {
    if (length(dag@support) == 0L && dag@info$learned && length(dag) > 0L) {
        cape_error("'", name, "' has no support: it was learned by an earlier version, or restored from its weights")
    }
    if (length(dag@support) == 0L && !dag@info$learned) {
        cape_error("'", name, "' was not learned by cape_learn_dag() or cape_fit(), so its pairs have no support")
    }
    dag@support
}

share_of <- function(dag) {
    support_of(dag) # or an error
    if (dag@info$n_bags == 0L) {
        cape_error("'x' is one fit to all cells, so no pair has a share of fits to parts of them; ",
            "DagParam(bags = 10L) makes these")
    }
    dag@bag.share
}

#' @rdname accessors
#' @export
cape_embedding <- function(x, type = c("poincare", "hyperboloid"), name = "CAPE") {
    type <- one_of(type, c("poincare", "hyperboloid"), "type")
    slot(the_embedding(x, name), type)
}

#' @rdname accessors
#' @export
cape_generality <- function(x, name = "CAPE") the_embedding(x, name)@generality

#' @rdname accessors
#' @export
cape_history <- function(x, step = c("dag", "embedding"), name = "CAPE") {
    if (is(x, "CapeEmbedding") || is(x, "CapeModel")) {
        return(x@history)
    }
    if (one_of(step, c("dag", "embedding"), "step") == "dag") {
        cape_dag(x, name)@history
    } else {
        the_embedding(x, name)@history
    }
}

#' @rdname accessors
#' @export
cape_params <- function(x, name = "CAPE") {
    fit <- cape_result(x, name)
    list(dag = fit@dag@param, embed = fit@embedding@param, rotary = fit@rotary)
}

the_embedding <- function(x, name = "CAPE") {
    if (is(x, "CapeEmbedding")) x else cape_result(x, name)@embedding
}

# The edges by number of their ends, sorted by cause and effect.
edge_table <- function(dag) {
    edges <- entries(dag@adjacency)
    edges <- edges[order(edges$from, edges$to), ]
    list(from = edges$from, to = edges$to, weight = edges$value,
        sign = entries_at(dag@sign, edges$from, edges$to))
}

# What a learned graph knows of its edges beside their weights.
edge_evidence <- function(dag, edges) {
    known <- Filter(length, list(statistic = dag@statistic, support = dag@support, share = dag@bag.share))
    lapply(known, entries_at, edges$from, edges$to)
}

# What Step II embeds: the graph and, for features without edges, their partners. As covered_graph() of the core.
covered_edges <- function(dag) {
    edges <- edge_table(dag)
    if (length(dag@partners) == 0L) {
        return(edges)
    }
    pairs <- entries(dag@partners) # from the partner to the feature
    pairs <- pairs[!pairs$to %in% c(edges$from, edges$to), ]
    pairs <- pairs[order(match(dag@features[pairs$to], dag@order)), ]
    # What is joined has one number: 0 for all with edges.
    part <- seq_along(dag@features)
    part[c(edges$from, edges$to)] <- 0L
    closes_ring <- logical(nrow(pairs))
    for (k in seq_len(nrow(pairs))) {
        ends <- part[c(pairs$from[k], pairs$to[k])]
        closes_ring[k] <- ends[1L] == ends[2L]
        part[part == ends[2L]] <- ends[1L]
    }
    pairs <- pairs[!closes_ring, ]
    weakest <- if (length(edges$weight) > 0L) min(abs(edges$weight)) else 1
    forth <- pairs$value > 0
    list(from = c(edges$from, ifelse(forth, pairs$from, pairs$to)),
        to = c(edges$to, ifelse(forth, pairs$to, pairs$from)),
        weight = c(edges$weight, abs(pairs$value) * weakest))
}

# What a dgCMatrix stores.
entries <- function(x) data.frame(from = x@i + 1L, to = rep(seq_len(ncol(x)), diff(x@p)), value = x@x)

# Its values at pairs of row and column: Matrix looks them up one by one.
entries_at <- function(x, from, to) {
    place <- function(from, to) from + (to - 1) * nrow(x)
    stored <- entries(x)
    at <- match(place(from, to), place(stored$from, stored$to))
    ifelse(is.na(at), 0, stored$value[at])
}

#' @rdname CapeDag-class
#' @param x,object a `CapeDag`.
#' @export
setMethod("length", "CapeDag", function(x) length(x@features))

#' @rdname CapeDag-class
#' @export
setMethod("dim", "CapeDag", function(x) rep(length(x@features), 2L))

#' @rdname CapeDag-class
#' @export
setMethod("dimnames", "CapeDag", function(x) list(x@features, x@features))

#' @rdname CapeFit-class
#' @param x,object a `CapeFit`.
#' @export
setMethod("length", "CapeFit", function(x) length(x@dag@features))

#' @rdname CapeFit-class
#' @export
setMethod("dimnames", "CapeFit", function(x) dimnames(x@dag))
