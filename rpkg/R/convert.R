#' Results as objects of other packages
#'
#' A [CapeFit-class] or [CapeDag-class] as what the packages take that people go on with. Only igraph comes with this
#' one; the others are needed where they are named.
#'
#' * `as.data.frame(x)`: the edges, as [cape_edges()] has them.
#' * `igraph::as.igraph(x)`, the same as `as(x, "igraph")`: a directed graph of the features by name; edges have
#'   `weight`, the absolute weight, `sign`, and what else [cape_edges()] has; nodes of a fit `generality`, `radius` and
#'   `pagerank`.
#' * `bnlearn::as.bn(x)`: the structure, without weights. A graph with a cycle is an error.
#' * `cape_dagitty(x)`: the structure in the language of dagitty, for `dagitty::dagitty()` or dagitty.net. A graph with
#'   a cycle, or a name with a double quote, a backslash or a line break, is an error.
#' * `generics::tidy(x)`: the edges, as [cape_edges()] has them; `generics::glance(x)`: one row, numbers of features and
#'   edges and what there is to know of the graph as a whole: `acyclic`, `learned`, `refined`, `threshold` (below it
#'   weights are no edges), `false_discovery_rate` (see [CapeDag-class]), `n_bags`, `seed`; `NA` where it is not known.
#'
#' @param x a [CapeFit-class] or [CapeDag-class].
#' @param row.names,optional are those of [as.data.frame()]; names of rows, or NULL.
#' @param ... nothing; for `as.bn` passed on to bnlearn.
#' @return What is named above.
#' @seealso [cape_write()] for files
#' @examples
#' truth <- cape_simulate_dag(4, edges.per.node = 1, seed = 1)
#' as.data.frame(truth)
#' igraph::as.igraph(truth)
#' cat(cape_dagitty(truth))
#' @name conversions
NULL

#' @rdname conversions
#' @export
as.data.frame.CapeDag <- function(x, row.names = NULL, optional = FALSE, ...) {
    as.data.frame(cape_edges(x), row.names = row.names, optional = optional)
}

#' @rdname conversions
#' @export
as.data.frame.CapeFit <- as.data.frame.CapeDag

#' @exportS3Method igraph::as.igraph
as.igraph.CapeDag <- function(x, ...) as(x, "igraph")

#' @exportS3Method igraph::as.igraph
as.igraph.CapeFit <- as.igraph.CapeDag

#' @exportS3Method bnlearn::as.bn
as.bn.CapeDag <- function(x, ...) {
    bnlearn::as.bn(acyclic_graph(x, "a network of bnlearn"), ...)
}

#' @exportS3Method bnlearn::as.bn
as.bn.CapeFit <- as.bn.CapeDag

#' @rdname conversions
#' @export
cape_dagitty <- function(x) {
    graph <- acyclic_graph(x, "a dag of dagitty")
    features <- igraph::vertex_attr(graph, "name")
    bad <- grepl("[\"\\\\\r\n]", features)
    if (any(bad)) {
        cape_error("'x' has features whose names dagitty cannot have, for their quotes, backslashes or line breaks: ",
            some_of(encodeString(features[bad], quote = "'")))
    }
    name <- paste0("\"", features, "\"", recycle0 = TRUE)
    ends <- igraph::as_edgelist(graph, names = FALSE)
    lines <- c(name, paste(name[ends[, 1L]], "->", name[ends[, 2L]], recycle0 = TRUE))
    paste0("dag {\n", paste0(lines, "\n", collapse = "", recycle0 = TRUE), "}\n")
}

acyclic_graph <- function(x, what) {
    dag <- cape_dag(x)
    graph <- as(dag, "igraph")
    if (!igraph::is_dag(graph)) {
        cape_error("'x' has a cycle, which ", what, " cannot have; cape_prune(x, 0) removes the weakest edges of ",
            "cycles")
    }
    graph
}

#' @exportS3Method generics::tidy
tidy.CapeDag <- function(x, ...) as.data.frame(cape_edges(x))

#' @exportS3Method generics::tidy
tidy.CapeFit <- tidy.CapeDag

#' @exportS3Method generics::glance
glance.CapeDag <- function(x, ...) {
    dag <- cape_dag(x)
    data.frame(n_features = length(dag), n_edges = length(dag@adjacency@x),
        dag@info[c("acyclic", "learned", "refined", "threshold", "false_discovery_rate", "n_bags")],
        seed = x@seed)
}

#' @exportS3Method generics::glance
glance.CapeFit <- glance.CapeDag
