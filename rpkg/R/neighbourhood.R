#' What is around a feature
#'
#' The causes and the effects of features, those of these, and so on, up to so many edges away.
#'
#' @param x a [CapeFit-class], [CapeDag-class], SingleCellExperiment from [cape_fit()], square matrix or
#'   igraph.
#' @param features names of one feature or several.
#' @param hops how many edges away.
#' @param name under which [cape_fit()] stored the result.
#' @return A DataFrame with a row for every feature there, the nearest and strongest first: `feature`; `side`, which is
#' `"asked"`, `"cause"`, `"effect"` or, of a cause of one of several features that is an effect of another, `"both"`;
#' `hops`, the edges of the shortest way; and `strength`, the product of the absolute weights along the strongest way of
#' at most `hops` edges (shares of the largest weight if that is above 1).
#' @seealso [cape_plot_neighbourhood()]
#' @examples
#' cape_neighbourhood(cape_simulate_dag(30, seed = 1), "gene7")
#' @export
cape_neighbourhood <- function(x, features, hops = 2L, name = "CAPE") {
    dag <- the_graph(x, name)
    features <- check_features(features, dag, "features")
    check_number(hops, "hops", 1, integer = TRUE)
    around <- neighbours(dag, features, hops)
    around <- around[order(around$hops, -around$strength), ]
    S4Vectors::DataFrame(around, row.names = NULL)
}

# In the order of the features of the graph.
neighbours <- function(dag, features, hops) {
    start <- match(features, dag@features)
    effects <- reached(dag, start, hops)
    causes <- reached(dag, start, hops, back = TRUE)
    side <- ifelse(is.finite(causes$hops), ifelse(is.finite(effects$hops), "both", "cause"), "effect")
    near <- data.frame(feature = dag@features, side = replace(side, start, "asked"),
        hops = pmin(causes$hops, effects$hops), strength = exp(-pmin(causes$cost, effects$cost)))
    near[is.finite(near$hops), ]
}

# From the features `start` along the edges, or back along them: of every feature how many edges away it is, the cost of
# the strongest way of at most `hops` edges (minus the logarithm of the product of its weights, which may be too small
# for a number), and the feature before it on that way. Inf where there is none.
reached <- function(dag, start, hops, back = FALSE) {
    edges <- edge_table(dag)
    price <- -log(abs(edges$weight) / max(1, abs(edges$weight)))
    from <- if (back) edges$to else edges$from
    to <- if (back) edges$from else edges$to
    near <- data.frame(hops = rep(Inf, length(dag)), cost = Inf, before = NA_integer_)
    near[start, c("hops", "cost")] <- 0
    for (hop in seq_len(min(hops, length(dag)))) {
        cost <- near$cost[from] + price
        best <- order(cost)
        best <- best[!duplicated(to[best])]
        best <- best[cost[best] < near$cost[to[best]]]
        if (length(best) == 0L) {
            break
        }
        near$cost[to[best]] <- cost[best]
        near$before[to[best]] <- from[best]
        near$hops[to[best]] <- pmin(near$hops[to[best]], hop)
    }
    near
}

# What a picture or a table of a graph is of.
the_graph <- function(x, name = "CAPE") if (is(x, "SummarizedExperiment")) cape_dag(x, name) else as_dag(x, "x")

# Names of features of the graph, once each. An error says which are like those that it does not have.
check_features <- function(features, dag, name) {
    features <- unique(as_ids(features, name))
    if (length(features) == 0L || anyNA(features)) {
        cape_error("'", name, "' is ", one_line(features), "; it must have names of features, and none missing")
    }
    unknown <- setdiff(features, dag@features)
    if (length(unknown) > 0L) {
        near <- similar_names(unknown[1L], dag@features)
        cape_error("'", name, "' has ", some_of(quoted(unknown)), ", which ",
            if (length(unknown) == 1L) "is no feature" else "are no features", " of the graph",
            if (length(near) > 0L) paste0("; similar to ", quoted(unknown[1L]), ": ", some_of(quoted(near))))
    }
    features
}

# At most three, without regard to case, with the fewest letters to change.
similar_names <- function(text, names) {
    changes <- as.vector(utils::adist(enc2utf8(text), enc2utf8(names), ignore.case = TRUE))
    near <- order(changes)
    names[utils::head(near[changes[near] <= max(1, nchar(text) / 3)], 3L)]
}
