#' Compare a graph with the true one
#'
#' @param estimated,true a [CapeFit-class], [CapeDag-class], square matrix (the row is the cause),
#'   igraph, or table of edges. With names on both sides features are matched by name, and features
#'   that one side lacks are left out, with a message that counts them; a table of edges lacks none:
#'   those that it does not name have no edges. Without names the numbers of features must agree.
#' @param rank.by what ranks the ordered pairs of `estimated` for `auprc` and `auroc`: its edges, by strength, and
#'   then the weights before pruning; or [cape_support()], which fits have that were learned.
#' @return A data frame with one row: `shd`, the structural Hamming distance (a reversed edge counts
#' once); the numbers of true, estimated, correct, reversed, missing and extra edges; `tpr`, `fdr`,
#' `fpr`, `precision`, `recall`, `f1`; and the areas `auprc` and `auroc` of the ranking of all ordered
#' pairs by strength (refined edges by their t statistic, before all others), or by support.
#' @examples
#' truth <- cape_simulate_dag(6, edges.per.node = 1, seed = 1)
#' x <- cape_simulate_data(truth, 300, mechanism = "linear", seed = 2)
#' cape_compare(cape_learn_dag(x, DagParam(sem = "linear"), seed = 3), truth)
#' @export
cape_compare <- function(estimated, true, rank.by = c("edges", "support")) {
    rank.by <- one_of(rank.by, c("edges", "support"), "rank.by")
    named <- has_names(estimated) && has_names(true)
    tables <- c(is_table(estimated), is_table(true))
    estimated <- as_dag(estimated, "estimated")
    true <- as_dag(true, "true")
    if (named) {
        features <- compared_features(estimated@features, true@features, tables)
        if (length(features) == 0L) {
            cape_error("'estimated' and 'true' have no feature in common; they have ",
                some_of(quoted(estimated@features)), ", and ", some_of(quoted(true@features)))
        }
        left <- c(estimated = length(setdiff(estimated@features, features)),
            true = length(setdiff(true@features, features)))
        if (any(left > 0L)) {
            message("Compared over the ", count_of(length(features), "feature"), " of both; left out: ",
                left[["estimated"]], " that only 'estimated' has, ", left[["true"]], " that only 'true' has.")
        }
    } else if (length(estimated) != length(true)) {
        cape_error("'estimated' has ", length(estimated), " features and 'true' has ", length(true))
    } else {
        features <- true@features <- estimated@features
    }
    strength <- if (rank.by == "edges") edge_scores(estimated) else support_of(estimated, "estimated")
    over <- function(x, dag) placed(as.matrix(x), dag@features, features)
    truth <- over(true@adjacency, true)
    graph <- core_compare_graphs(over(estimated@adjacency, estimated), truth)
    scores <- core_compare_scores(over(strength, estimated), truth)
    as.data.frame(c(graph, scores))
}

# A table of edges tells of no feature without edges: it is taken to have all of the other graph's.
compared_features <- function(a, b, tables) {
    if (tables[1L]) a <- union(a, b)
    if (tables[2L]) b <- union(b, a)
    intersect(a, b)
}

# A matrix over the features `from` as one over `to`; 0 where it has none.
placed <- function(x, from, to) {
    at <- match(to, from)
    known <- !is.na(at)
    out <- matrix(0, length(to), length(to))
    out[known, known] <- x[at[known], at[known]]
    out
}

has_names <- function(x) {
    if (inherits(x, "igraph")) {
        !is.null(igraph::vertex_attr(x, "name"))
    } else {
        is(x, "CapeFit") || is(x, "SummarizedExperiment") || is_table(x) || !is.null(rownames(x)) ||
            !is.null(colnames(x))
    }
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
