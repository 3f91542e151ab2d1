#' Compare a graph with the true one
#'
#' @param estimated,true a [CapeFit-class], [CapeDag-class], square matrix (the row is the cause) or
#'   igraph. With names on both sides features are matched by name.
#' @return A data frame with one row: `shd`, the structural Hamming distance (a reversed edge counts
#' once); the numbers of true, estimated, correct, reversed, missing and extra edges; `tpr`, `fdr`,
#' `fpr`, `precision`, `recall`, `f1`; and the areas `auprc` and `auroc` of the ranking of all ordered
#' pairs by strength (refined edges by their t statistic, before all others).
#' @examples
#' truth <- cape_simulate_dag(6, seed = 1)
#' x <- cape_simulate_data(truth, 300, mechanism = "linear", seed = 2)
#' cape_compare(cape_learn_dag(x, DagParam(sem = "linear"), seed = 3), truth)
#' @export
cape_compare <- function(estimated, true) {
    named <- has_names(estimated) && has_names(true)
    estimated <- as_dag(estimated, "estimated")
    true <- as_dag(true, "true")
    if (length(estimated) != length(true)) {
        cape_error("'estimated' has ", length(estimated), " features and 'true' has ", length(true))
    }
    truth <- as.matrix(true@adjacency)
    if (named) {
        at <- match(estimated@features, true@features)
        if (anyNA(at)) {
            cape_error("'true' does not have these features of 'estimated': ",
                some_of(quoted(estimated@features[is.na(at)])))
        }
        truth <- truth[at, at]
    }
    truth <- unname(truth)
    graph <- core_compare_graphs(unname(as.matrix(estimated@adjacency)), truth)
    scores <- core_compare_scores(unname(edge_scores(estimated)), truth)
    as.data.frame(c(graph, scores))
}

has_names <- function(x) {
    if (inherits(x, "igraph")) !is.null(igraph::vertex_attr(x, "name"))
        else is(x, "CapeFit") || is(x, "SummarizedExperiment") || !is.null(rownames(x))
}

# Strength of every ordered pair. Edges that passed the held-out tests come before all others.
edge_scores <- function(dag) {
    scores <- abs(as.matrix(dag@weights))
    if (length(dag@statistic) > 0L) {
        kept <- as.matrix(dag@adjacency) != 0
        largest <- max(scores)
        if (largest > 0) scores <- scores / largest
        scores[kept] <- 1 + as.matrix(dag@statistic)[kept]
    }
    scores
}
