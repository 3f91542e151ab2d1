#' Draw the causal graph
#'
#' Causes stand above their effects, arrows point from cause to effect; the width of an arrow is the
#' weight, or the support, its colour the sign. Of a large graph a part that hangs together is drawn, and the
#' caption says so: it begins with the feature whose effects are the strongest, in the largest connected part, and
#' grows by the strongest edge that touches it. [cape_plot_modules()] draws all of a large graph,
#' [cape_plot_neighbourhood()] what is around a feature. The names of some 60 edges can be read.
#'
#' @param x a [CapeFit-class], [CapeDag-class], SingleCellExperiment from [cape_fit()], square matrix or
#'   igraph.
#' @param max.edges how many edges to draw.
#' @param isolated whether to draw features without edges; `NULL`: if there are at most 30 features.
#' @param edge.by what the width of an arrow is, its absolute weight or, of a graph that was learned, its support
#'   ([cape_support()]), which then also decides which edges are the strongest.
#' @param name under which [cape_fit()] stored the result.
#' @return A ggplot.
#' @examples
#' cape_plot_dag(cape_simulate_dag(10, seed = 1))
#' @export
cape_plot_dag <- function(x, max.edges = 40L, isolated = NULL, edge.by = c("weight", "support"), name = "CAPE") {
    edge.by <- one_of(edge.by, c("weight", "support"), "edge.by")
    dag <- the_graph(x, name)
    check_number(max.edges, "max.edges", 1, integer = TRUE)
    isolated <- if (is.null(isolated)) length(dag) <= 30L else check_flag(isolated, "isolated")
    edges <- as.data.frame(cape_edges(dag))
    edges$size <- abs(edges$weight)
    if (edge.by == "support") {
        support_of(dag) # or an error
        edges$size <- edges$support
        edges <- edges[order(-edges$size), ]
    }
    shown <- connected_edges(edges, max.edges)
    shown$effect <- sign_label(shown$sign)
    drawn <- if (isolated) dag@features else dag@features[dag@features %in% c(shown$from, shown$to)]
    caption <- c(
        if (nrow(edges) > nrow(shown)) paste0("the ", nrow(shown), " strongest of ", nrow(edges), " edges",
            if (edge.by == "support") ", by support", " that hang together, from ", attr(shown, "start")),
        if (length(dag) > length(drawn)) paste0(length(dag) - length(drawn), " of ", length(dag),
            " features without an edge here are not drawn"))

    layered_plot(shown[c("from", "to", "weight", "size", "effect")], drawn,
        if (edge.by == "weight") "|weight|" else edge.by) +
        sign_scale() + ggplot2::labs(caption = in_lines(caption))
}

# From the feature with the strongest effects in the largest connected part, edges that touch what is drawn, the
# strongest first; then, if that part has no more, those of the rest. `edges` come with the largest size first.
connected_edges <- function(edges, n) {
    if (nrow(edges) <= n) {
        return(edges)
    }
    part <- igraph::components(igraph::graph_from_data_frame(edges[c("from", "to")]))
    largest <- names(which(part$membership == which.max(part$csize)))
    effects <- tapply(edges$size, factor(edges$from, intersect(edges$from, largest)), sum)
    start <- names(which.max(effects))
    inside <- edges$from == start | edges$to == start
    taken <- integer()
    for (k in seq_len(n)) {
        nearest <- setdiff(which(inside), taken)[1L]
        if (is.na(nearest)) nearest <- setdiff(seq_len(nrow(edges)), taken)[1L]
        taken <- c(taken, nearest)
        ends <- c(edges$from[nearest], edges$to[nearest])
        inside <- inside | edges$from %in% ends | edges$to %in% ends
    }
    structure(edges[sort(taken), ], start = start)
}
