#' Draw adjacency matrices
#'
#' The cause is the row, the effect the column; features are in the topological order of the true graph,
#' if there is one, so that a right estimate lies above the diagonal too. Edges of more than 150 features are
#' drawn larger than their cell, to be seen.
#'
#' @param x the estimate, as for [cape_compare()].
#' @param true the true graph, or `NULL`.
#' @param name under which [cape_fit()] stored the result `x`.
#' @return A ggplot.
#' @examples
#' truth <- cape_simulate_dag(8, edges.per.node = 1, seed = 1)
#' x <- cape_simulate_data(truth, 300, mechanism = "linear", seed = 2)
#' cape_plot_adjacency(cape_learn_dag(x, DagParam(sem = "linear"), seed = 3), truth)
#' @export
cape_plot_adjacency <- function(x, true = NULL, name = "CAPE") {
    estimate <- if (is(x, "SummarizedExperiment")) cape_dag(x, name) else as_dag(x, "x")
    truth <- if (is.null(true)) NULL else as_dag(true, "true")
    if (!is.null(truth) && !setequal(truth@features, estimate@features)) {
        cape_error("'x' and 'true' have different features")
    }
    guide <- if (is.null(truth)) estimate else truth
    order <- if (length(guide@order) > 0L) guide@order else guide@features
    panels <- c(if (!is.null(truth)) "true", "estimated")
    cells <- rbind(if (!is.null(truth)) adjacency_cells(truth, "true"), adjacency_cells(estimate, "estimated"))
    cells$panel <- factor(cells$panel, panels)
    cells$from <- factor(cells$from, rev(order))
    cells$to <- factor(cells$to, order)
    n <- length(order)
    limit <- if (nrow(cells) > 0L) max(abs(cells$weight)) else 1
    side <- max(1, n / 150) # else the edges of many features are too small to be seen

    # A graph without edges has its panel too.
    frame <- data.frame(panel = factor(panels, panels), from = factor(order[1L], rev(order)),
        to = factor(order[1L], order))

    ggplot2::ggplot(cells, ggplot2::aes(.data$to, .data$from)) +
        ggplot2::geom_blank(data = frame) +
        ggplot2::geom_abline(slope = -1, intercept = n + 1, colour = "grey75", linetype = "dotted") +
        ggplot2::geom_tile(ggplot2::aes(fill = .data$weight), width = side, height = side) +
        ggplot2::facet_wrap(ggplot2::vars(.data$panel), drop = FALSE) +
        ggplot2::labs(x = "effect", y = "cause") +
        signed_fill("weight", limit) +
        matrix_axes(n)
}

# Blue below nothing, red above it.
signed_fill <- function(title, limit, ...) {
    ggplot2::scale_fill_gradient2(title, low = "#2166AC", mid = "white", high = "#B2182B", limits = c(-limit, limit), ...)
}

# What pictures of n x n matrices share: square cells, and names as long as they can be read.
matrix_axes <- function(n) {
    few <- n <= 40L
    names <- if (few) ggplot2::waiver() else NULL
    list(
        ggplot2::scale_x_discrete(drop = FALSE, labels = names),
        ggplot2::scale_y_discrete(drop = FALSE, labels = names),
        ggplot2::coord_equal(),
        ggplot2::theme_bw(base_size = 11),
        ggplot2::theme(panel.grid = ggplot2::element_blank(),
            axis.ticks = if (few) ggplot2::element_line() else ggplot2::element_blank(),
            axis.text.x = ggplot2::element_text(angle = 90, hjust = 1, vjust = 0.5),
            strip.background = ggplot2::element_blank(),
            strip.text = ggplot2::element_text(face = "bold"))
    )
}

adjacency_cells <- function(dag, panel) {
    edges <- as.data.frame(cape_edges(dag))
    data.frame(edges[c("from", "to", "weight")], panel = rep(panel, nrow(edges)))
}
