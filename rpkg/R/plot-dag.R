#' Draw the causal graph
#'
#' Causes stand above their effects, arrows point from cause to effect; the width of an arrow is the
#' weight, or the support, its colour the sign. Of a large graph, the strongest edges and their ends are drawn, and the
#' caption says so.
#'
#' @param x a [CapeFit-class], [CapeDag-class], SingleCellExperiment from [cape_fit()], square matrix or
#'   igraph.
#' @param max.edges how many edges to draw, the strongest first.
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
    shown <- utils::head(edges, max.edges)
    shown$effect <- sign_label(shown$sign)
    drawn <- if (isolated) dag@features else dag@features[dag@features %in% c(shown$from, shown$to)]
    caption <- c(
        if (nrow(edges) > nrow(shown)) paste0("the ", nrow(shown), " strongest of ", nrow(edges), " edges",
            if (edge.by == "support") ", by support"),
        if (length(dag) > length(drawn)) paste0(length(dag) - length(drawn), " of ", length(dag),
            " features without an edge here are not drawn"))

    layered_plot(shown[c("from", "to", "weight", "size", "effect")], drawn,
        if (edge.by == "weight") "|weight|" else edge.by) +
        sign_scale() + ggplot2::labs(caption = paste(caption, collapse = "; "))
}
