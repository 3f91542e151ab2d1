#' Draw the modules of a large graph
#'
#' A disc for every module ([cape_modules()]), under the name of its strongest regulator, which lies in the middle; the
#' other features lie around it, the stronger ones nearer. Lines are edges within a module, arrows all edges from one
#' module to another: the width is the sum of their absolute weights. Modules that rather cause others stand above
#' those that are rather caused.
#'
#' @inheritParams cape_neighbourhood
#' @param max.modules how many modules to draw, the largest first.
#' @param max.arrows how many arrows between modules to draw, the widest first.
#' @param labels how many features to name beside those that give their names to the modules, about as many in each.
#'   Names that would cover others are left out.
#' @return A ggplot.
#' @seealso [cape_plot_dag()], and [cape_plot_neighbourhood()] for one feature
#' @examples
#' cape_plot_modules(cape_simulate_dag(100, edges.per.node = 1, seed = 1))
#' @export
cape_plot_modules <- function(x, max.modules = 16L, max.arrows = 24L, labels = 45L, name = "CAPE") {
    dag <- the_graph(x, name)
    check_number(max.modules, "max.modules", 1, integer = TRUE)
    check_number(max.arrows, "max.arrows", 0, integer = TRUE)
    check_number(labels, "labels", 0, integer = TRUE)
    all <- as.data.frame(cape_modules(dag))
    if (nrow(all) == 0L) {
        return(no_edges())
    }
    nodes <- all[all$module %in% utils::head(unique(all$module), max.modules), ]
    edges <- as.data.frame(cape_edges(dag))
    edges <- edges[edges$from %in% nodes$feature & edges$to %in% nodes$feature, ]
    edges$a <- nodes$module[match(edges$from, nodes$feature)]
    edges$b <- nodes$module[match(edges$to, nodes$feature)]
    between <- module_arrows(edges[edges$a != edges$b, ])
    discs <- place_discs(nodes, between)
    nodes <- place_in_discs(nodes, discs)

    inner <- edges[edges$a == edges$b, ]
    at <- match(inner$from, nodes$feature)
    to <- match(inner$to, nodes$feature)
    lines <- data.frame(inner[c("from", "to")], x = nodes$x[at], y = nodes$y[at], xend = nodes$x[to],
        yend = nodes$y[to], effect = sign_label(inner$sign))
    arrows <- join_discs(utils::head(between, max.arrows), discs)
    rank <- stats::ave(seq_len(nrow(nodes)), nodes$module, FUN = seq_along)
    named <- nodes[rank > 1L & rank <= 1 + (labels %/% nrow(discs)), ]
    named <- uncovered(named[order(-named$strength), ], diff(range(discs$x - discs$r, discs$x + discs$r)))
    caption <- c(
        paste0(count_of(nrow(discs), "module"), if (nrow(nodes) < nrow(all))
            paste0(", the largest of ", length(unique(all$module))), ", with ", nrow(nodes), " of ",
            count_of(length(dag), "feature"), "; those above rather cause, those below are rather caused"),
        if (nrow(between) > nrow(arrows)) paste0("the ", nrow(arrows), " widest of ", nrow(between),
            " arrows between modules"))

    ggplot2::ggplot() +
        ggplot2::geom_segment(ggplot2::aes(.data$x, .data$y, xend = .data$xend, yend = .data$yend,
            linewidth = .data$weight), arrows, colour = "grey45", lineend = "butt",
            arrow = grid::arrow(length = grid::unit(2.2, "mm"), type = "closed"), key_glyph = key_line) +
        ggplot2::geom_polygon(ggplot2::aes(.data$x, .data$y, group = .data$module), circles(discs),
            fill = "grey96", colour = "grey70", linewidth = 0.3) +
        ggplot2::geom_segment(ggplot2::aes(.data$x, .data$y, xend = .data$xend, yend = .data$yend,
            colour = .data$effect), lines, linewidth = 0.25, alpha = 0.5) +
        ggplot2::geom_point(ggplot2::aes(.data$x, .data$y), nodes, size = point_size(nrow(nodes)) / 1.5) +
        ggplot2::geom_label(ggplot2::aes(.data$x, .data$y, label = short_names(.data$feature)), named, size = 2.4,
            vjust = 1.3, label.size = 0, label.padding = grid::unit(0.3, "mm"),
            fill = grDevices::adjustcolor("white", 0.8)) +
        ggplot2::geom_label(ggplot2::aes(.data$x, .data$y + .data$r, label = paste0(short_names(.data$module), " (",
            .data$n, ")")), discs, size = 3, vjust = -0.1, fontface = "bold", label.size = 0,
            label.padding = grid::unit(0.5, "mm"), fill = grDevices::adjustcolor("white", 0.8)) +
        sign_scale() +
        ggplot2::scale_linewidth_continuous("sum of |weight|", range = c(0.3, 2), breaks = few_breaks) +
        ggplot2::scale_y_continuous(expand = ggplot2::expansion(mult = c(0.02, 0.05))) +
        ggplot2::coord_equal() +
        ggplot2::labs(x = NULL, y = NULL, caption = in_lines(caption)) +
        bare_theme()
}

# The sum of the weights from one module to another, the largest first: from, to, weight.
module_arrows <- function(edges) {
    sums <- data.frame(from = edges$a, to = edges$b,
        weight = stats::ave(abs(edges$weight), edges$a, edges$b, FUN = sum))
    sums <- unique(sums)
    sums[order(-sums$weight), ]
}

# Discs whose area is the number of features, in rows: what rather causes comes first, and within a row each is near
# what it is tied to above.
place_discs <- function(nodes, arrows) {
    module <- unique(nodes$module)
    n <- as.vector(table(factor(nodes$module, module)))
    discs <- data.frame(module = module, n = n, r = sqrt(n) + 0.8, x = rep(0, length(n)), y = rep(0, length(n)))
    total <- function(end) vapply(module, function(m) sum(arrows$weight[arrows[[end]] == m]), 0)
    out <- total("from")
    into <- total("to")
    discs <- discs[order(-(out - into) / pmax(out + into, 1e-9), -n), ]
    page_of <- function(width) max(width, sqrt(1.7 * sum(width^2)))
    width <- 2 * discs$r + 2
    width <- pmax(width, (nchar(short_names(discs$module), "width") + 6) * 0.016 * page_of(width)) # of its name
    page <- page_of(width)
    row <- 1L + floor((cumsum(width) - width / 2) / page * 0.999)
    bottom <- 0
    for (k in unique(row)) {
        at <- which(row == k)
        tied <- vapply(discs$module[at], function(m) {
            to <- arrows[arrows$from == m | arrows$to == m, ]
            other <- match(ifelse(to$from == m, to$to, to$from), discs$module[row < k])
            if (all(is.na(other))) 0 else stats::weighted.mean(discs$x[other], to$weight, na.rm = TRUE)
        }, 0)
        at <- at[order(tied)]
        gap <- max(0, page - sum(width[at])) / (length(at) + 1)
        discs$x[at] <- cumsum(width[at] + gap) - width[at] / 2 - page / 2
        discs$y[at] <- bottom - max(discs$r[at])
        bottom <- bottom - 2 * max(discs$r[at]) - 0.09 * page
    }
    discs
}

# Like the seeds of a sunflower, the first in the middle.
place_in_discs <- function(nodes, discs) {
    k <- stats::ave(seq_len(nrow(nodes)), nodes$module, FUN = seq_along) - 1
    turn <- k * pi * (3 - sqrt(5))
    disc <- match(nodes$module, discs$module)
    data.frame(nodes, x = discs$x[disc] + sqrt(k) * cos(turn), y = discs$y[disc] + sqrt(k) * sin(turn))
}

# Names, the first first, that cover none before them; a letter is about a hundredth of the page wide.
uncovered <- function(named, page) {
    half <- nchar(short_names(named$feature), "width") * 0.005 * page
    kept <- integer()
    for (i in seq_len(nrow(named))) {
        near <- abs(named$x[kept] - named$x[i]) < half[kept] + half[i] & abs(named$y[kept] - named$y[i]) < 0.02 * page
        if (!any(near)) kept <- c(kept, i)
    }
    named[kept, ]
}

# From border to border, a little to the right, so that there is room for the arrow back.
join_discs <- function(arrows, discs) {
    place <- complex(real = discs$x, imaginary = discs$y)
    from <- match(arrows$from, discs$module)
    to <- match(arrows$to, discs$module)
    way <- place[to] - place[from]
    way <- way / Mod(way)
    beside <- way * complex(imaginary = -1) * 0.15 * min(discs$r)
    begin <- place[from] + way * discs$r[from] * 0.9 + beside # the disc is drawn over the arrow
    name <- ifelse(Im(way) < -0.7, 0.045 * diff(range(discs$x - discs$r, discs$x + discs$r)), 0) # above a disc
    end <- place[to] - way * (discs$r[to] + 0.3 + name) + beside
    data.frame(arrows, x = Re(begin), y = Im(begin), xend = Re(end), yend = Im(end))
}

circles <- function(discs) {
    turn <- seq(0, 2 * pi, length.out = 73L)
    data.frame(module = rep(discs$module, each = length(turn)), x = as.vector(outer(cos(turn), discs$r)) +
        rep(discs$x, each = length(turn)), y = as.vector(outer(sin(turn), discs$r)) + rep(discs$y, each = length(turn)))
}
