#' Draw the causal graph
#'
#' Causes stand above their effects, arrows point from cause to effect; the width of an arrow is the
#' weight, its colour the sign. Of a large graph, the strongest edges and their ends are drawn, and the
#' caption says so.
#'
#' @param x a [CapeFit-class], [CapeDag-class], SingleCellExperiment from [cape_fit()], square matrix or
#'   igraph.
#' @param max.edges how many edges to draw, the strongest first.
#' @param isolated whether to draw features without edges.
#' @return A ggplot.
#' @examples
#' cape_plot_dag(cape_simulate_dag(10, seed = 1))
#' @export
cape_plot_dag <- function(x, max.edges = 40L, isolated = length(dag) <= 30L) {
    dag <- as_dag(x, "x")
    check_number(max.edges, "max.edges", 1, integer = TRUE)
    check_flag(isolated, "isolated")
    edges <- as.data.frame(cape_edges(dag))
    shown <- utils::head(edges, max.edges)
    linked <- dag@features[dag@features %in% c(shown$from, shown$to)]
    alone <- if (isolated) setdiff(dag@features, linked) else character()
    nodes <- place_nodes(linked, alone, shown)

    arrows <- data.frame(shown,
        x = nodes$x[match(shown$from, nodes$name)], y = nodes$y[match(shown$from, nodes$name)],
        xend = nodes$x[match(shown$to, nodes$name)], yend = nodes$y[match(shown$to, nodes$name)])
    arrows <- shorten(arrows, 0.26)
    arrows$effect <- sign_label(arrows$sign)
    caption <- c(
        if (nrow(edges) > nrow(shown)) paste0("the ", nrow(shown), " strongest of ", nrow(edges), " edges"),
        if (length(dag) > nrow(nodes)) paste0(length(dag) - nrow(nodes), " of ", length(dag),
            " features without an edge here are not drawn"))

    ggplot2::ggplot() +
        ggplot2::geom_segment(ggplot2::aes(.data$x, .data$y, xend = .data$xend, yend = .data$yend,
            colour = .data$effect, linewidth = abs(.data$weight)), arrows,
            arrow = grid::arrow(length = grid::unit(2.2, "mm"), type = "closed"),
            linejoin = "mitre", alpha = 0.75) +
        ggplot2::geom_label(ggplot2::aes(.data$x, .data$y, label = .data$name), nodes, size = 3,
            fill = "white", label.size = 0.25, label.padding = grid::unit(1.2, "mm")) +
        sign_scale() +
        ggplot2::scale_linewidth_continuous("|weight|", range = c(0.3, 1.3), limits = c(0, NA)) +
        ggplot2::scale_x_continuous(expand = ggplot2::expansion(add = 0.8)) +
        ggplot2::scale_y_continuous(expand = ggplot2::expansion(add = 0.5)) +
        ggplot2::labs(x = NULL, y = NULL, caption = paste(caption, collapse = "; ")) +
        bare_theme()
}

sign_label <- function(sign) {
    factor(c("lowers", "unknown", "raises")[sign + 2], c("raises", "lowers", "unknown"))
}

sign_scale <- function() {
    ggplot2::scale_colour_manual("the cause ... the effect",
        values = c(raises = "#B2182B", lowers = "#2166AC", unknown = "grey45"), drop = TRUE)
}

bare_theme <- function() {
    ggplot2::theme_minimal(base_size = 11) +
        ggplot2::theme(panel.grid = ggplot2::element_blank(), axis.text = ggplot2::element_blank(),
            plot.caption = ggplot2::element_text(colour = "grey40"))
}

# Layers from causes down to effects (Sugiyama); features without edges in rows underneath.
place_nodes <- function(linked, alone, edges) {
    nodes <- data.frame(name = character(), x = numeric(), y = numeric())
    if (length(linked) > 0L) {
        graph <- igraph::graph_from_data_frame(edges[c("from", "to")], directed = TRUE,
            vertices = data.frame(name = linked))
        at <- igraph::layout_with_sugiyama(graph, hgap = 1, vgap = 1, maxiter = 200)$layout
        nodes <- data.frame(name = linked, x = at[, 1L], y = at[, 2L])
        nodes <- stagger(nodes)
    }
    if (length(alone) > 0L) {
        wide <- max(6L, ceiling(sqrt(length(alone))), ceiling(diff(range(c(nodes$x, 0)))))
        rank <- seq_along(alone) - 1L
        bottom <- if (nrow(nodes) > 0L) min(nodes$y) else 0
        left <- if (nrow(nodes) > 0L) min(nodes$x) else 0
        nodes <- rbind(nodes, data.frame(name = alone, x = left + rank %% wide,
            y = bottom - 1 - rank %/% wide))
    }
    nodes
}

# Names of one layer go up and down a little, so that neighbours do not cover each other.
stagger <- function(nodes) {
    for (layer in unique(nodes$y)) {
        at <- which(nodes$y == layer)
        if (length(at) > 4L) {
            shift <- rep_len(c(0, 0.3, -0.3), length(at))
            nodes$y[at[order(nodes$x[at])]] <- layer + shift
        }
    }
    nodes
}

# Segments that end before the names they point from and to.
shorten <- function(arrows, gap) {
    dx <- arrows$xend - arrows$x
    dy <- arrows$yend - arrows$y
    length <- sqrt(dx^2 + dy^2)
    part <- ifelse(length > 0, pmin(gap / length, 0.4), 0)
    arrows$x <- arrows$x + part * dx
    arrows$y <- arrows$y + part * dy
    arrows$xend <- arrows$xend - part * dx
    arrows$yend <- arrows$yend - part * dy
    arrows
}
