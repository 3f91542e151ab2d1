#' Attention scores and their bounds
#'
#' @param q,k matrices with a row for every score and an even number D of columns, or vectors for one
#'   score.
#' @param phi.m,phi.n matrices of angles in radians with D/2 columns, or vectors: those of the query's
#'   feature and of the key's.
#' @param sd standard deviation, in radians, of Gaussian noise in every angle.
#' @return A data frame with a row for every score: `score`, q' R(phi.n - phi.m) k; `lower` and `upper`, the
#' bounds between which it lies for angles of at most pi/4; `expected`, its mean under the noise.
#' @seealso [cape_verify_properties()]
#' @examples
#' cape_scores(c(1, 0), c(1, 0), 0.5, -0.2, sd = 0.1)
#' @export
cape_scores <- function(q, k, phi.m, phi.n, sd = 0) {
    check_number(sd, "sd", 0)
    at <- function(x, name) {
        x[match_names(row_names(x), row_names(q), name, "the rows of 'q'"), , drop = FALSE]
    }
    if (length(dim(q)) == 2L) {
        if (length(dim(k)) == 2L) k <- at(k, "k")
        if (length(dim(phi.m)) == 2L) phi.m <- at(phi.m, "phi.m")
        if (length(dim(phi.n)) == 2L) phi.n <- at(phi.n, "phi.n")
    }
    phi.m <- number_matrix(phi.m, "phi.m")
    noise <- matrix(sd, nrow(phi.m), ncol(phi.m))
    as.data.frame(core_scores(number_matrix(q, "q"), number_matrix(k, "k"), phi.m,
        number_matrix(phi.n, "phi.n"), noise, noise))
}

#' What an embedding keeps of its graph
#'
#' @param x a [CapeFit-class] or SingleCellExperiment from [cape_fit()], or a [CapeEmbedding-class].
#' @param dag the graph to compare with, as for [cape_compare()], matched by name; that of `x` by default.
#' @param name under which [cape_fit()] stored the result.
#' @return A data frame with one row, over the features that have edges: `distance`, rank correlation of
#' distance with the number of undirected steps; `strength`, of distance with the strength of the best
#' directed path (as -log); `parents_closer`, share of edges whose cause is nearer the origin;
#' `specificity`, rank correlation of radius with minus the number of descendants; `precision`, mean
#' average precision of neighbours by distance. All are 1 at best, and 0 for a graph without edges.
#' @examples
#' truth <- cape_simulate_dag(20, seed = 1)
#' cape_embedding_quality(cape_embed_dag(truth, HyperbolicParam(dims = 16L), seed = 1), truth)
#' @export
cape_embedding_quality <- function(x, dag = NULL, name = "CAPE") {
    embedding <- the_embedding(x, name)
    named <- is.null(dag) || has_names(dag)
    table <- is_table(dag)
    dag <- graph_of(x, dag, name)
    if (is.null(dag)) {
        cape_error("'dag' is NULL, and an embedding alone has no graph; it must be the graph to compare with")
    }
    at <- match(dag@features, embedding@features)
    if (!named && length(dag) == length(embedding@features)) {
        at <- seq_along(at)
    } else if (anyNA(at) || (!table && length(at) != length(embedding@features))) {
        cape_error("'dag' and 'x' do not have the same features: ", some_of(quoted(c(
            dag@features[is.na(at)], setdiff(embedding@features, dag@features)))), " in one of them only")
    }
    edges <- edge_table(dag)
    radius <- acosh(pmax(1, embedding@hyperboloid[, 1L]))
    as.data.frame(with_features(embedding@features,
        core_compare_embedding(length(embedding@features), at[edges$from], at[edges$to], edges$weight,
            core_distances(unname(embedding@hyperboloid)), radius)))
}

# The graph whose edges belong to an embedding, or NULL.
graph_of <- function(x, dag, name) {
    if (!is.null(dag)) as_dag(dag, "dag")
        else if (!is(x, "CapeEmbedding")) cape_dag(x, name)
}
