# Pictures of a graph in layers, causes above effects, with an arrow for every edge.

# `edges` has the columns from, to, size (the width of an arrow), effect (its colour, whose scale the caller adds) and,
# if it is to be seen, support (how solid it is). Features without an edge follow; `asked` are set off.
layered_plot <- function(edges, features, width, asked = character()) {
    linked <- features[features %in% c(edges$from, edges$to)]
    places <- place_nodes(linked, setdiff(features, linked), edges)
    nodes <- places[!places$bend, ]
    dark <- nodes$name %in% asked

    # Names are printed so large that the widest row of them fits a page.
    wide <- diff(range(nodes$x - nodes$width / 2, nodes$x + nodes$width / 2))
    high <- diff(range(nodes$y)) + 1
    size <- max(1.5, min(3.2, 3.2 * page_width / wide))
    arrows <- route_arrows(edges, places, 0.018 * high * size / 3.2)
    arrows$solid <- if (is.null(arrows$support)) rep(0.75, nrow(arrows)) else arrows$support

    ggplot2::ggplot() +
        ggplot2::geom_path(ggplot2::aes(.data$x, .data$y, group = .data$edge, colour = .data$effect,
            linewidth = .data$size, alpha = .data$solid), arrows,
            arrow = grid::arrow(length = grid::unit(0.6 * size, "mm"), type = "closed"),
            linejoin = "round", key_glyph = key_line) +
        ggplot2::geom_label(ggplot2::aes(.data$x, .data$y, label = short_names(.data$name)), nodes, size = size,
            fill = ifelse(dark, "grey20", "white"), colour = ifelse(dark, "white", "black"), label.size = 0.2,
            label.padding = grid::unit(0.35 * size, "mm")) +
        ggplot2::scale_linewidth_continuous(width, range = c(0.25, 1.2), breaks = few_breaks) +
        (if (is.null(arrows$support)) ggplot2::scale_alpha_identity() else
            ggplot2::scale_alpha_continuous("support", range = c(0.3, 1), breaks = few_breaks)) +
        ggplot2::expand_limits(x = c(nodes$x - nodes$width / 2, nodes$x + nodes$width / 2)) +
        ggplot2::scale_x_continuous(expand = ggplot2::expansion(mult = 0.03)) +
        ggplot2::scale_y_continuous(expand = ggplot2::expansion(mult = 0.05)) +
        ggplot2::guides(colour = ggplot2::guide_legend(order = 1L), linewidth = ggplot2::guide_legend(order = 2L),
            alpha = ggplot2::guide_legend(order = 3L)) +
        ggplot2::labs(x = NULL, y = NULL) +
        bare_theme()
}

no_edges <- function() ggplot2::ggplot() + ggplot2::labs(caption = "the graph has no edges") + bare_theme()

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

page_width <- 90 # in characters of the usual size

label_width <- function(name) nchar(short_names(name), "width") + 3

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
    nodes <- fold_rows(nodes)
    for (layer in unique(nodes$y)) {
        row <- which(nodes$y == layer)
        nodes$x[row] <- spread(nodes$x[row], nodes$width[row])
    }
    nodes$x <- nodes$x - min(nodes$x - nodes$width / 2)
    nodes
}

# A layer that is wider than a page becomes several rows, one below the other, by turns from left to right.
fold_rows <- function(nodes) {
    rows <- ceiling(tapply(nodes$width, nodes$y, sum) / page_width)
    below <- c(0, cumsum(rows))[match(nodes$y, as.numeric(names(rows)))]
    turn <- stats::ave(nodes$x, nodes$y, FUN = function(x) rank(x, ties.method = "first") - 1)
    nodes$y <- below + turn %% rows[as.character(nodes$y)]
    nodes$x <- nodes$x * min(1, page_width / diff(range(0, nodes$x)))
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
    none <- data.frame(x = numeric(), y = numeric(), edge = integer(), edges[0L, ])
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
        data.frame(x = x, y = y, edge = e, edges[rep(e, n), ], row.names = NULL)
    })))
}

# The part of the way from the middle of a label to dx, dy that is inside of it.
within_label <- function(label, dx, dy, box) {
    min(if (dx == 0) Inf else (label$width / 2 - 0.5) / abs(dx), if (dy == 0) Inf else box / abs(dy), 0.45)
}
