#' Step I: learn a causal graph
#'
#' Samples should be many times as many as features. Where they are not, the graph has few edges, and
#' [cape_support()], which ranks all ordered pairs, is what to read: with 100 samples of 100 genes (DREAM4's
#' multifactorial sets 1 to 3, `standardize = TRUE`) its area under the precision-recall curve is .15, .16 and
#' .29 (means of five seeds), that of absolute correlation .11, .15 and .18.
#'
#' @inheritParams cape_fit
#' @param param a [DagParam()].
#' @param ... further arguments: `assay.type`, `subset.row`, `num.threads`, `verbose`, `knowledge`, `batch`,
#'   `perturbation`, `cell.weights`, `covariates`, `checkpoint` and `checkpoint.every`, as of [cape_fit()].
#' @return A [CapeDag-class], the same graph as [cape_fit()] learns with this seed.
#' @seealso [cape_embed_dag()] for Step II, [cape_support()], [cape_prune()], [cape_compare()]
#' @examples
#' truth <- cape_simulate_dag(6, edges.per.node = 1, seed = 1)
#' x <- cape_simulate_data(truth, 300, mechanism = "linear", seed = 2)
#' dag <- cape_learn_dag(x, DagParam(sem = "linear"), seed = 3)
#' dag
#' cape_edges(dag)
#' @name cape_learn_dag
#' @aliases cape_learn_dag,ANY-method cape_learn_dag,SingleCellExperiment-method
NULL

#' @rdname cape_learn_dag
#' @export
setGeneric("cape_learn_dag", function(x, ...) standardGeneric("cape_learn_dag"))

#' @rdname cape_learn_dag
#' @export
setMethod("cape_learn_dag", "ANY", function(x, param = DagParam(), seed = NULL, ...) {
    learn_dag(x, param, seed, ...)
})

#' @rdname cape_learn_dag
#' @export
setMethod("cape_learn_dag", "SingleCellExperiment", function(x, ..., altexp = NULL) {
    x <- experiment_of(x, altexp)
    callNextMethod(x, ...)
})

learn_dag <- function(x, param, seed, assay.type = NULL, subset.row = NULL, num.threads = 1L,
                      verbose = interactive(), knowledge = NULL, batch = NULL, perturbation = NULL,
                      cell.weights = NULL, covariates = NULL, checkpoint = NULL, checkpoint.every = 3) {
    check_class(param, "DagParam", "param")
    check_flag(verbose, "verbose")
    seed <- run_seed(seed)
    input <- cape_as_input(x, assay.type, subset.row, param, verbose, batch)
    prior <- prior_of(x, rownames(input$values), rownames(x), knowledge, batch, perturbation, cell.weights,
        input$cells, covariates)
    check_refinable(param, prior)
    chosen <- c(settings(param), run_settings(seed, num.threads))
    result <- with_checkpoint(checkpoint, checkpoint.every, function(store) {
        with_progress(verbose && say_start(input$values, chosen), function(progress) {
            with_features(rownames(input$values), core_learn_dag(input$values, prior, chosen, progress, store),
                colnames(input$values))
        })
    })
    dag <- new_dag(result, rownames(input$values), param, seed, prior$required)
    repeat_warnings(dag)
    dag
}

#' Cut a graph at another threshold
#'
#' The weights before pruning are kept, so another threshold costs no new fit. The result is always
#' acyclic: where edges above the threshold form a cycle, the weakest of them go, and are counted. Of a
#' refined fit the tests are left out, and the weights alone decide. Edges that `knowledge` required and the support
#' of all pairs ([cape_support()]) stay; warnings that the fit had of its own graph do not.
#'
#' @param x a [CapeFit-class], a [CapeDag-class], or a SingleCellExperiment from [cape_fit()].
#' @param tau edges with an absolute weight of at most `tau` are cut.
#' @return A [CapeDag-class]. The embedding of a fit belongs to its own graph: use [cape_embed_dag()]
#' for that of the new one.
#' @examples
#' A <- matrix(0, 3, 3, dimnames = list(letters[1:3], letters[1:3]))
#' A["a", "b"] <- 0.9
#' A["b", "c"] <- 0.8
#' A["c", "a"] <- 0.25
#' cape_edges(cape_prune(as(A, "CapeDag"), 0.2))
#' @export
cape_prune <- function(x, tau) {
    dag <- cape_dag(x)
    tau <- check_number(tau, "tau", 0)
    if (isTRUE(dag@info$refined)) {
        message("The refinement is left out: the graph is that of the weights above ", tau, ".")
    }
    cut <- with_features(dag@features,
        core_prune(dag@weights, dag@sign, match(dag@order, dag@features), dag@info$required, tau))
    dag@adjacency <- edges_to_matrix(cut, dag@features)
    dag@order <- dag@features[cut$order]
    dag@statistic <- new("dgCMatrix")
    dag@warnings <- character(0) # which the fit had of its own graph
    of_graph <- c("acyclic", "refined", "threshold", "effective_threshold", "n_removed_for_acyclicity")
    dag@info[of_graph] <- cut$info[of_graph]
    dag@info <- of_other_edges(dag@info)
    dag@info["suggestion"] <- list(NULL) # the threshold is the user's
    dag
}

# Making ------------------------------------------------------------------------------------------

new_dag <- function(result, features, param = NULL, seed = NA_integer_, required = NULL) {
    named <- function(x) {
        dimnames(x) <- list(features, features)
        x
    }
    adjacency <- edges_to_matrix(result, features)
    learned <- result$info$learned
    info <- result$info
    if (!isTRUE(info$refined && param@values$refine.fdr < 1)) info <- without_rate(info)
    new("CapeDag",
        features = features, adjacency = adjacency,
        weights = if (learned) named(result$weights) else adjacency,
        sign = if (learned) named(result$sign) else sign(adjacency),
        statistic = if (info$refined) named(result$statistic) else new("dgCMatrix"),
        support = if (learned) named(result$support) else new("dgCMatrix"),
        partners = if (learned) named(result$partners) else new("dgCMatrix"),
        bag.share = if (info$n_bags > 0L) named(result$bag_share) else new("dgCMatrix"),
        order = features[result$order],
        history = history_table(result$history,
            c("epoch", "loss", "reconstruction", "kl", "h", "rho", "alpha")),
        scaling = if (learned) {
            S4Vectors::DataFrame(center = result$center, scale = result$scale, row.names = features)
        } else {
            S4Vectors::DataFrame(row.names = features)
        },
        constant = features[result$constant],
        warnings = name_features(r_names(as.character(result$warnings)), features),
        info = c(info, list(required = required, suggestion = result$suggestion)),
        param = param, seed = seed)
}

# Of a graph whose edges are not those that were tested together.
without_rate <- function(info) {
    info[c("false_discovery_rate", "n_tested_pairs")] <- NA_real_
    info
}

# Of a graph whose edges are not those of the fit.
of_other_edges <- function(info) {
    info[c("rising_variance", "rising_variance_sd")] <- NA_real_
    without_rate(info)
}

edges_to_matrix <- function(edges, features) {
    n <- length(features)
    as(Matrix::sparseMatrix(i = edges$from, j = edges$to, x = edges$weight, dims = c(n, n),
        dimnames = list(features, features)), "generalMatrix")
}

history_table <- function(history, names) {
    if (is.null(history)) {
        history <- matrix(0, 0L, length(names))
    }
    colnames(history) <- names
    S4Vectors::DataFrame(history)
}

# From what the user brings -----------------------------------------------------------------------

# A CapeDag from anything that holds a graph.
as_dag <- function(x, name) {
    if (is(x, "CapeDag") || is(x, "CapeFit") || is(x, "SummarizedExperiment")) {
        return(cape_dag(x))
    }
    if (inherits(x, "integer64")) {
        cape_error("'", name, "' is of type integer64; convert it with as.numeric()")
    }
    if (inherits(x, "igraph") || is.matrix(x) || is(x, "Matrix")) {
        return(as(x, "CapeDag"))
    }
    if (is(x, "SelfHits")) {
        weight <- S4Vectors::mcols(x)[["weight"]]
        n <- S4Vectors::nnode(x)
        return(dag_from_edges(S4Vectors::from(x), S4Vectors::to(x),
            if (is.null(weight)) rep(1, length(x)) else as.numeric(weight), paste0("feature", seq_len(n))))
    }
    if (is_table(x)) {
        return(dag_from_table(table_columns(x), name))
    }
    cape_error("'", name, "' is ", one_line(x), "; it must be a CapeFit, a CapeDag, ",
        "a square matrix (row = cause), an igraph, a table of edges or a SelfHits")
}

# Columns from, to and, if not all are 1, weight. Factors tell of features without edges by their levels.
dag_from_table <- function(x, name) {
    if (!all(c("from", "to") %in% names(x))) {
        cape_error("'", name, "' has the columns ", some_of(quoted(names(x))),
            "; a table of edges has 'from', 'to' and, if not all are 1, 'weight'")
    }
    from <- as_ids(x[["from"]], name)
    to <- as_ids(x[["to"]], name)
    weight <- if (is.null(x[["weight"]])) rep(1, length(from)) else x[["weight"]]
    if (!is_numbers(weight) || anyNA(weight) || anyNA(from) || anyNA(to)) {
        cape_error("'", name, "' has missing ends, or weights that are not numbers")
    }
    features <- if (is.factor(x[["from"]]) && is.factor(x[["to"]])) {
        union(levels(x[["from"]]), levels(x[["to"]]))
    } else {
        unique(as.vector(rbind(from, to)))
    }
    dag_from_edges(match(from, features), match(to, features), as.numeric(weight), features)
}

dag_from_edges <- function(from, to, weight, features) {
    new_dag(with_features(features, core_describe_graph(length(features), from, to, weight)), features)
}

dag_from_matrix <- function(from) {
    n <- nrow(from)
    if (n != ncol(from)) {
        cape_error("the adjacency matrix is ", n, " x ", ncol(from), "; it must be square")
    }
    features <- rownames(from)
    if (is.null(features)) features <- colnames(from)
    if (is.null(features)) features <- paste0("feature", seq_len(n))
    if (!is.null(colnames(from)) && !setequal(colnames(from), features)) {
        cape_error("the adjacency matrix has other row names than column names")
    }
    from <- from[, match_names(colnames(from), features, "columns", "the rows of the adjacency matrix"),
        drop = FALSE]
    edges <- as(as(as(as(from, "CsparseMatrix"), "dMatrix"), "generalMatrix"), "TsparseMatrix")
    keep <- is.na(edges@x) | edges@x != 0
    dag_from_edges(edges@i[keep] + 1L, edges@j[keep] + 1L, edges@x[keep], as.character(features))
}

setAs("matrix", "CapeDag", function(from) {
    if (!is_numbers(from) && !is.logical(from)) {
        cape_error("the adjacency matrix is ", if (is.numeric(from)) "integer64" else typeof(from),
            "; it must be numeric")
    }
    dag_from_matrix(from)
})
setAs("Matrix", "CapeDag", function(from) dag_from_matrix(from))

setAs("igraph", "CapeDag", function(from) {
    if (!igraph::is_directed(from)) {
        cape_error("the igraph is undirected; causes and effects need a directed one")
    }
    n <- igraph::vcount(from)
    names <- igraph::vertex_attr(from, "name")
    ends <- igraph::as_edgelist(from, names = FALSE)
    weight <- igraph::edge_attr(from, "weight")
    if (is.null(weight)) weight <- rep(1, nrow(ends))
    sign <- igraph::edge_attr(from, "sign")
    if (!is.null(sign)) weight <- ifelse(sign < 0, -abs(weight), weight)
    dag_from_edges(as.integer(ends[, 1L]), as.integer(ends[, 2L]), as.numeric(weight),
        if (is.null(names)) paste0("feature", seq_len(n)) else as.character(names))
})

# To other packages -------------------------------------------------------------------------------

setAs("CapeDag", "igraph", function(from) {
    from <- updateObject(from)
    edges <- edge_table(from)
    graph <- igraph::make_empty_graph(length(from@features), directed = TRUE)
    graph <- igraph::set_vertex_attr(graph, "name", value = enc2utf8(from@features))
    igraph::add_edges(graph, rbind(edges$from, edges$to),
        attr = c(list(weight = abs(edges$weight), sign = edges$sign), edge_evidence(from, edges)))
})
setAs("CapeFit", "igraph", function(from) {
    from <- updateObject(from)
    graph <- as(from@dag, "igraph")
    for (name in c("generality", "radius", "pagerank")) {
        graph <- igraph::set_vertex_attr(graph, name, value = slot(from@embedding, name))
    }
    graph
})
setAs("CapeDag", "dgCMatrix", function(from) from@adjacency)
