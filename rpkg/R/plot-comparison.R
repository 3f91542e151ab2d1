#' Draw two graphs on top of each other
#'
#' The edges of both, by which of them has them; of many, a part that hangs together, as [cape_plot_dag()] chooses it.
#' The width is the larger of the two absolute weights.
#'
#' @param a,b a [CapeFit-class], [CapeDag-class], SingleCellExperiment from [cape_fit()], square matrix or igraph, as of
#'   [cape_difference()]: over the same features.
#' @param labels what to call them.
#' @param max.edges how many edges to draw.
#' @param name under which [cape_fit()] stored the result.
#' @return A ggplot. The numbers in its legend are those of all edges, drawn or not.
#' @seealso [cape_difference()] for the table, [cape_compare()] for scores, [cape_plot_adjacency()]
#' @examples
#' truth <- cape_simulate_dag(6, edges.per.node = 1, seed = 1)
#' x <- cape_simulate_data(truth, 300, mechanism = "linear", seed = 2)
#' found <- cape_learn_dag(x, DagParam(sem = "linear"), seed = 3)
#' cape_plot_comparison(found, truth, labels = c("found", "true"))
#' @export
cape_plot_comparison <- function(a, b, labels = c("a", "b"), max.edges = 40L, name = "CAPE") {
    if (is(a, "SummarizedExperiment")) a <- cape_dag(a, name)
    if (is(b, "SummarizedExperiment")) b <- cape_dag(b, name)
    if (!is.character(labels) || length(labels) != 2L || anyNA(labels) || labels[1L] == labels[2L]) {
        cape_error("'labels' is ", one_line(labels), "; it must be two different names")
    }
    check_number(max.edges, "max.edges", 1, integer = TRUE)
    edges <- as.data.frame(cape_difference(a, b))
    kinds <- c(paste("only", labels), "both", "both, of opposite sign")
    colours <- c("#D55E00", "#0072B2", "grey30", "#CC79A7")
    kind <- match(edges$in.graph, c("a", "b", "both"))
    kind[edges$weight.a * edges$weight.b < 0] <- 4L
    counted <- paste0(kinds, " (", tabulate(kind, 4L), ")")
    edges$effect <- factor(counted[kind], counted)
    edges$size <- pmax(abs(edges$weight.a), abs(edges$weight.b))
    edges <- edges[order(-edges$size), ]
    shown <- connected_edges(edges, max.edges)
    features <- as_dag(a, "a")@features
    linked <- features %in% c(shown$from, shown$to)
    drawn <- if (length(features) <= 30L) features else features[linked]
    caption <- c(
        if (nrow(edges) > nrow(shown)) paste0("the ", nrow(shown), " strongest of ", nrow(edges),
            " edges that hang together, from ", attr(shown, "start")),
        if (length(features) > length(drawn)) paste0(length(features) - length(drawn), " of ", length(features),
            " features without an edge here are not drawn"))
    layered_plot(shown[c("from", "to", "size", "effect")], drawn, "|weight|") +
        ggplot2::scale_colour_manual("edges of", values = stats::setNames(colours, counted),
            limits = counted[tabulate(kind, 4L) > 0L]) +
        ggplot2::labs(caption = in_lines(caption))
}
