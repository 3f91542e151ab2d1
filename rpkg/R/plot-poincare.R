#' Draw the graph in the Poincaré disk
#'
#' A picture made for the eye: roots, features without causes, are in the middle, every level of the graph (the most
#' edges on a way from a root) is a ring around them, and every feature lies in the sector of its strongest cause.
#' The edges are geodesics of the disk, the strongest ones arrows; of the others those from the strongest cause of a
#' feature are grey lines. Features without edges are counted in the caption. The positions that Step II computes have
#' more dimensions: [cape_plot_ball()] draws these, [cape_plot_radius()] their radii.
#'
#' @param x a [CapeFit-class] or SingleCellExperiment from [cape_fit()], a [CapeDag-class], a square matrix or igraph,
#'   or a [CapeEmbedding-class] together with its graph, `dag`.
#' @param dag the graph that is drawn, as for [cape_compare()]; that of `x` by default.
#' @param max.edges how many edges are arrows, the strongest first.
#' @param labels how many features with edges to name: of an embedding the most general, of a graph alone those with the
#'   largest sum of absolute weights to their effects.
#' @param colour.by what colours the points: `NULL` for generality (of a graph alone, that sum), the name of a column of
#'   `rowData(x)`, or a vector with a value for every feature: by name if it has names, else in the order of the
#'   features of the result. Up to eight groups have colours that the colour-blind tell apart; of more, neighbours
#'   differ in lightness.
#' @param name under which [cape_fit()] stored the result.
#' @return A ggplot.
#' @seealso [cape_plot_dag()], [cape_plot_ball()]
#' @examples
#' truth <- cape_simulate_dag(12, seed = 1)
#' cape_plot_poincare(truth)
#' cape_plot_poincare(cape_embed_dag(truth, HyperbolicParam(dims = 8L), seed = 1), truth)
#' @export
cape_plot_poincare <- function(x, dag = NULL, max.edges = 150L, labels = 15L, colour.by = NULL,
                               name = "CAPE") {
    check_number(max.edges, "max.edges", 0, integer = TRUE)
    check_number(labels, "labels", 0, integer = TRUE)
    embedded <- is(x, "CapeEmbedding") || is(x, "CapeFit") || is(x, "SummarizedExperiment")
    embedding <- if (embedded) the_embedding(x, name)
    if (is.null(dag) && is(x, "CapeEmbedding")) {
        cape_error("'dag' is NULL, and an embedding alone has no graph; give the graph that was embedded, or see ",
            "cape_plot_ball()")
    }
    dag <- if (is.null(dag)) the_graph(x, name) else as_dag(dag, "dag")
    if (embedded && !setequal(dag@features, embedding@features)) {
        cape_error("'x' and 'dag' have different features")
    }
    if (embedded) dag <- dag_at(dag, match(embedding@features, dag@features))
    general <- if (embedded) embedding@generality else out_strength(dag)
    colour <- point_colour(x, dag@features, general, if (embedded) "generality" else "strength of\neffects", colour.by,
        name, if (embedded) "identity" else "sqrt")
    edges <- as.data.frame(cape_edges(dag))
    alone <- NROW(edges) > 0L & !dag@features %in% c(edges$from, edges$to)

    points <- cbind(disk_places(dag_at(dag, which(!alone))), general = unname(general)[!alone],
        colour = colour$values[!alone])
    shown <- utils::head(edges, max.edges)
    rest <- edges[seq_len(nrow(edges)) > nrow(shown), ]
    rest <- rest[rest$from == points$name[points$parent][match(rest$to, points$name)], ]
    names <- place_labels(utils::head(points[order(-points$general), ], labels), 1)
    plot <- ggplot2::ggplot() + rings(level_rims(points$level))
    if (nrow(shown) < nrow(edges)) {
        plot <- plot + ggplot2::geom_path(ggplot2::aes(.data$x, .data$y, group = .data$edge),
            edge_paths(rest, points, 0), linewidth = 0.2, colour = "grey75")
    }
    if (nrow(shown) > 0L) {
        plot <- plot + ggplot2::geom_path(
            ggplot2::aes(.data$x, .data$y, group = .data$edge, colour = .data$effect), edge_paths(shown, points, 0.03),
            linewidth = 0.35, alpha = if (nrow(shown) > 60L) 0.45 else 0.7, key_glyph = key_line,
            arrow = grid::arrow(length = grid::unit(1.6, "mm"), type = "closed")) + sign_scale()
    }
    caption <- c("made for the eye: rings are levels of the graph, not |e|",
        "features lie in the sector of their strongest cause",
        if (nrow(shown) < nrow(edges)) paste0("arrows: the ", nrow(shown), " strongest of ", nrow(edges),
            " edges, grey: the others from the strongest cause of a feature"),
        if (!dag@info$acyclic) "levels are those without the weakest edges of cycles",
        if (any(alone)) paste(count_of(sum(alone), "feature"), "without edges not drawn"))
    plot +
        name_lines(names) +
        ggplot2::geom_point(ggplot2::aes(.data$x, .data$y, fill = .data$colour), points, shape = 21,
            size = point_size(nrow(points)), stroke = 0.25) +
        level_labels(level_rims(points$level)) + name_labels(names) +
        colour$scale +
        ggplot2::coord_equal(xlim = c(-1.15, 1.15), ylim = c(-1.05, 1.05), expand = FALSE) +
        ggplot2::labs(x = NULL, y = NULL, caption = in_lines(caption)) +
        bare_theme()
}

# Of every feature, the sum of the absolute weights of the edges to its effects.
out_strength <- function(dag) Matrix::rowSums(abs(dag@adjacency))

# Many points are drawn smaller.
point_size <- function(n) max(0.8, min(2.4, 24 / sqrt(n)))

# What colours the points, and its scale: `values` of the features (whose scale `trans` transforms), a column of
# rowData(x), or given values.
point_colour <- function(x, features, values, title, colour.by, name, trans = "identity") {
    values <- unname(values)
    if (!is.null(colour.by)) trans <- "identity"
    if (is.character(colour.by) && length(colour.by) == 1L && length(features) != 1L) {
        title <- colour.by
        if (!is(x, "SummarizedExperiment") || !title %in% names(SummarizedExperiment::rowData(x))) {
            cape_error("'colour.by' is ", quoted(title), "; it must be a column of rowData(x), or values for ",
                count_of(length(features), "feature"))
        }
        values <- plain_vector(SummarizedExperiment::rowData(x)[[title]], "colour.by")[cape_result(x, name)@rows]
    } else if (!is.null(colour.by)) {
        title <- "colour.by"
        values <- plain_vector(colour.by, "colour.by")
        if (!is.null(names(values))) {
            unknown <- setdiff(features, names(values))
            if (length(unknown) > 0L) {
                cape_error("'colour.by' has names, but none for ", count_of(length(unknown), "feature"), ": ",
                    some_of(quoted(unknown)))
            }
            values <- values[features]
        }
    }
    if (length(values) != length(features)) {
        cape_error("'colour.by' has ", count_of(length(values), "value"), "; it must have one for each of ",
            count_of(length(features), "feature"))
    }
    if (is.numeric(values)) {
        return(list(values = as.numeric(values), title = title, scale = list(
            ggplot2::scale_fill_viridis_c(title, option = "C", na.value = "grey85", breaks = few_breaks,
                trans = trans),
            ggplot2::guides(fill = ggplot2::guide_colourbar(barwidth = grid::unit(40, "mm"),
                barheight = grid::unit(3, "mm"), order = 1L)))))
    }
    values <- factor(values)
    list(values = values, title = title, scale = list(
        ggplot2::scale_fill_manual(title, values = group_colours(nlevels(values)), na.value = "grey85"),
        ggplot2::guides(fill = ggplot2::guide_legend(order = 1L, override.aes = list(size = 3)))))
}

# Up to eight groups have colours that the colour-blind tell apart; of more, neighbours on the circle of hues differ in
# lightness too.
group_colours <- function(n) {
    if (n <= 8L) {
        return(unname(grDevices::palette.colors(9L, "Okabe-Ito"))[1L + seq_len(n)])
    }
    grDevices::hcl(seq(15, 375, length.out = n + 1L)[seq_len(n)], 65, rep_len(c(75, 55, 40), n))
}

# At most three round numbers within the limits, so that they do not touch each other.
few_breaks <- function(limits) {
    breaks <- pretty(limits, 4L)
    breaks <- breaks[breaks >= limits[1L] & breaks <= limits[2L]]
    breaks[c(TRUE, logical(max(0, ceiling(length(breaks) / 3) - 1)))]
}

# A circle at the outer border of every level.
rings <- function(rims) {
    turn <- seq(0, 2 * pi, length.out = 181L)
    circles <- data.frame(r = rep(rims, each = length(turn)), x = as.vector(outer(cos(turn), rims)),
        y = as.vector(outer(sin(turn), rims)))
    ggplot2::geom_path(ggplot2::aes(.data$x, .data$y, group = .data$r), circles, colour = "grey88",
        linewidth = 0.3)
}

# In the gap below: 1, 2 and so on, as many as there is room for.
level_labels <- function(rims) {
    middle <- (c(0, rims[-length(rims)]) + rims) / 2
    named <- integer()
    for (i in seq_along(middle)[-1L]) {
        if (middle[i] - max(0, middle[named]) > 0.06) named <- c(named, i)
    }
    if (length(named) == 0L) {
        return(NULL)
    }
    level <- paste0(rep(c("", "level "), c(length(named) - 1L, 1L)), named - 1L)
    ggplot2::annotate("text", x = 0, y = -middle[named], label = level, colour = "grey45", size = 2.6)
}

# Names where place_labels() has put them, and the lines to their points.
name_lines <- function(names) {
    ggplot2::geom_segment(ggplot2::aes(.data$x, .data$y, xend = .data$label_x, yend = .data$label_y), names,
        colour = "grey60", linewidth = 0.2)
}

name_labels <- function(names) {
    ggplot2::geom_label(ggplot2::aes(.data$label_x, .data$label_y, label = short_names(.data$name)), names,
        size = 2.7, label.size = 0, fill = grDevices::adjustcolor("white", 0.85),
        label.padding = grid::unit(0.4, "mm"))
}

# Geodesics of the disk from a to b, complex numbers, a column for each: move a to the origin, go straight, move back.
geodesics <- function(a, b, n = 24L) {
    w <- (b - a) / (1 - Conj(a) * b)
    r <- Mod(w)
    z <- outer(seq(0, 1, length.out = n), atanh(r), function(t, length) tanh(t * length)) *
        rep(ifelse(r > 0, w / r, 0), each = n)
    start <- rep(a, each = n)
    (z + start) / (1 + Conj(start) * z)
}

# Paths that end a gap before the point that they lead to.
edge_paths <- function(edges, points, gap) {
    place <- complex(real = points$x, imaginary = points$y)
    to <- place[match(edges$to, points$name)]
    path <- geodesics(place[match(edges$from, points$name)], to)
    far <- which(Mod(path - rep(to, each = nrow(path))) >= gap)
    edge <- col(path)[far]
    data.frame(x = Re(path)[far], y = Im(path)[far], edge = edge, effect = sign_label(edges$sign[edge]))
}

# Names start outside of their points and go up or down until they cover neither each other nor the
# points that are named.
place_labels <- function(named, rim) {
    if (nrow(named) == 0L) {
        return(data.frame(named, label_x = numeric(), label_y = numeric()))
    }
    half_width <- 0.0135 * rim * (nchar(short_names(named$name), "width") + 1)
    half_height <- 0.028 * rim
    out <- sqrt(named$x^2 + named$y^2)
    unit_x <- ifelse(out > 0, named$x / out, 0)
    unit_y <- ifelse(out > 0, named$y / out, 1)
    x <- named$x + unit_x * (0.05 * rim + half_width)
    y <- named$y + unit_y * 0.07 * rim
    x <- pmax(pmin(x, 1.15 * rim - half_width), half_width - 1.15 * rim)
    placed <- integer()
    for (i in order(-out)) {
        others <- rbind(
            cbind(x[placed], y[placed], half_width[placed] + half_width[i], rep(2 * half_height, length(placed))),
            cbind(named$x, named$y, half_width[i] + 0.02 * rim, half_height + 0.025 * rim))
        free <- function(at) !any(abs(others[, 1L] - x[i]) < others[, 3L] & abs(others[, 2L] - at) < others[, 4L])
        steps <- half_height / 2 * c(0, rbind(1:60, -(1:60)))
        fits <- Find(free, y[i] + steps * if (unit_y[i] < 0) -1 else 1)
        if (!is.null(fits)) y[i] <- fits
        placed <- c(placed, i)
    }
    data.frame(named, label_x = x, label_y = y)
}
