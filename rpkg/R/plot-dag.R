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
    dag <- if (is(x, "SummarizedExperiment")) cape_dag(x, name) else as_dag(x, "x")
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
    linked <- dag@features[dag@features %in% c(shown$from, shown$to)]
    alone <- if (isolated) setdiff(dag@features, linked) else character()
    places <- place_nodes(linked, alone, shown)
    nodes <- places[!places$bend, ]

    # Names are printed so large that the widest row of them fits a page.
    wide <- diff(range(nodes$x - nodes$width / 2, nodes$x + nodes$width / 2))
    high <- diff(range(nodes$y)) + 1
    size <- max(1.5, min(3.2, 3.2 * 90 / wide))
    box <- 0.018 * high * size / 3.2
    arrows <- route_arrows(shown, places, box)
    caption <- c(
        if (nrow(edges) > nrow(shown)) paste0("the ", nrow(shown), " strongest of ", nrow(edges), " edges",
            if (edge.by == "support") ", by support"),
        if (length(dag) > nrow(nodes)) paste0(length(dag) - nrow(nodes), " of ", length(dag),
            " features without an edge here are not drawn"))

    ggplot2::ggplot() +
        ggplot2::geom_path(ggplot2::aes(.data$x, .data$y, group = .data$edge, colour = .data$effect,
            linewidth = .data$size), arrows,
            arrow = grid::arrow(length = grid::unit(0.6 * size, "mm"), type = "closed"),
            linejoin = "round", alpha = 0.75, key_glyph = key_line) +
        ggplot2::geom_label(ggplot2::aes(.data$x, .data$y, label = .data$name), nodes, size = size,
            fill = "white", label.size = 0.2, label.padding = grid::unit(0.35 * size, "mm")) +
        sign_scale() +
        ggplot2::scale_linewidth_continuous(if (edge.by == "weight") "|weight|" else edge.by, range = c(0.25, 1.2),
            breaks = function(limits) pretty(limits, 3L)) +
        ggplot2::scale_x_continuous(expand = ggplot2::expansion(mult = 0.03, add = 5)) +
        ggplot2::scale_y_continuous(expand = ggplot2::expansion(mult = 0.05)) +
        ggplot2::labs(x = NULL, y = NULL, caption = paste(caption, collapse = "; ")) +
        bare_theme()
}

sign_label <- function(sign) {
    factor(c("lowers", "unknown", "raises")[sign + 2], c("raises", "lowers", "unknown"))
}

sign_colours <- c(raises = "#B2182B", lowers = "#2166AC", unknown = "#737373")

sign_scale <- function() {
    ggplot2::scale_colour_manual("the cause ... the effect", values = sign_colours, drop = TRUE)
}

# A line without the arrow head, which does not fit a legend.
key_line <- function(data, params, size) {
    params$arrow <- NULL
    ggplot2::draw_key_path(data, params, size)
}

bare_theme <- function() {
    ggplot2::theme_minimal(base_size = 10) +
        ggplot2::theme(panel.grid = ggplot2::element_blank(), axis.text = ggplot2::element_blank(),
            legend.position = "bottom", legend.box = "vertical", legend.margin = ggplot2::margin(2, 0, 2, 0),
            legend.spacing.y = grid::unit(0, "mm"), plot.caption = ggplot2::element_text(colour = "grey40"),
            plot.caption.position = "plot")
}

# Layout ------------------------------------------------------------------------------------------

# x in characters, y in rows. Every connected part is laid out in layers, from causes down to effects
# (Sugiyama); the parts are set in lines like words, the largest first; features without edges follow.
# An edge over several layers has a place of its own in each of them (`bend`), so that it does not run
# behind a label; `key` is the name of a feature, or the number of the edge and the layer.
place_nodes <- function(linked, alone, edges) {
    blocks <- list()
    if (length(linked) > 0L) {
        rows <- data.frame(edges[c("from", "to")], edge = seq_len(nrow(edges)))
        graph <- igraph::graph_from_data_frame(rows, directed = TRUE,
            vertices = data.frame(name = linked))
        parts <- igraph::components(graph, mode = "weak")
        for (part in order(-parts$csize)) {
            members <- which(parts$membership == part)
            blocks[[length(blocks) + 1L]] <- place_part(igraph::induced_subgraph(graph, members))
        }
    }
    blocks <- c(blocks, lapply(alone, function(name) {
        data.frame(key = name, name = name, x = 0, y = 0, width = label_width(name), bend = FALSE)
    }))
    set_in_lines(blocks)
}

label_width <- function(name) nchar(name) + 3

place_part <- function(graph) {
    name <- igraph::vertex_attr(graph, "name")
    drawn <- igraph::layout_with_sugiyama(graph, hgap = 1, vgap = 1, maxiter = 200)
    at <- rbind(drawn$layout, drawn$layout.dummy)
    layer <- match(at[, 2L], sort(unique(at[, 2L]))) - 1
    extended <- drawn$extd_graph
    edge <- igraph::edge_attr(graph, "edge")[igraph::edge_attr(extended, "orig")]
    ends <- igraph::as_edgelist(extended, names = FALSE)
    bends <- seq_len(nrow(at))[-seq_along(name)]
    key <- c(name, bend_key(edge[match(bends, ends[, 1L])], layer[bends]))
    nodes <- data.frame(key = key, name = c(name, rep(NA, length(bends))),
        x = at[, 1L] * stats::median(label_width(name)), y = layer,
        width = c(label_width(name), rep(3, length(bends))), bend = seq_along(key) %in% bends)
    for (layer in unique(nodes$y)) {
        row <- which(nodes$y == layer)
        nodes$x[row] <- spread(nodes$x[row], nodes$width[row])
    }
    nodes$x <- nodes$x - min(nodes$x - nodes$width / 2)
    nodes
}

# Positions in the same order and near the given ones, at which labels do not overlap.
spread <- function(x, width) {
    rising <- order(x)
    half <- width[rising] / 2
    offset <- c(0, cumsum(half[-1L] + half[-length(half)]))
    # The nearest positions that rise by at least the widths: isotonic regression of what is left.
    x[rising] <- stats::isoreg(x[rising] - offset)$yf + offset
    x
}

set_in_lines <- function(blocks) {
    widths <- vapply(blocks, function(b) max(b$x + b$width / 2), 0)
    heights <- vapply(blocks, function(b) max(b$y) + 1, 0)
    # A row is about as high as twelve characters are wide, a page a little wider than high.
    page <- max(widths, sqrt(1.2 * 12 * sum(widths * heights)))
    left <- 0
    bottom <- 0
    tallest <- 0
    for (b in seq_along(blocks)) {
        if (left > 0 && left + widths[b] > page) {
            left <- 0
            bottom <- bottom - tallest
            tallest <- 0
        }
        blocks[[b]]$x <- blocks[[b]]$x + left
        blocks[[b]]$y <- blocks[[b]]$y - (heights[b] - 1) + bottom
        left <- left + widths[b] + 2
        tallest <- max(tallest, heights[b])
    }
    do.call(rbind, blocks)
}

bend_key <- function(edge, layer) sprintf("edge %d in layer %d", as.integer(edge), as.integer(layer))

# Paths from the border of one label to that of the other, through the bends between; `box` is half a
# label's height.
route_arrows <- function(edges, places, box) {
    none <- data.frame(x = numeric(), y = numeric(), edge = integer(), weight = numeric(), size = numeric(),
        effect = sign_label(0)[0L])
    nodes <- places[!places$bend, ]
    do.call(rbind, c(list(none), lapply(seq_len(nrow(edges)), function(e) {
        from <- nodes[match(edges$from[e], nodes$key), ]
        to <- nodes[match(edges$to[e], nodes$key), ]
        bends <- places[startsWith(places$key, paste0("edge ", e, " in layer ")) & places$bend, ]
        bends <- bends[order(bends$y, decreasing = from$y > to$y), ]
        x <- c(from$x, bends$x, to$x)
        y <- c(from$y, bends$y, to$y)
        n <- length(x)
        leave <- within_label(from, x[2L] - x[1L], y[2L] - y[1L], box)
        arrive <- within_label(to, x[n - 1L] - x[n], y[n - 1L] - y[n], 1.3 * box)
        x[c(1L, n)] <- c(x[1L] + leave * (x[2L] - x[1L]), x[n] + arrive * (x[n - 1L] - x[n]))
        y[c(1L, n)] <- c(y[1L] + leave * (y[2L] - y[1L]), y[n] + arrive * (y[n - 1L] - y[n]))
        data.frame(x = x, y = y, edge = e, weight = edges$weight[e], size = edges$size[e],
            effect = sign_label(edges$sign[e]))
    })))
}

# The part of the way from the middle of a label to dx, dy that is inside of it.
within_label <- function(label, dx, dy, box) {
    min(if (dx == 0) Inf else (label$width / 2 - 0.5) / abs(dx), if (dy == 0) Inf else box / abs(dy), 0.45)
}
