#' Draw the Poincaré disk
#'
#' The radius of a point is its true norm |e| = 1 - generality, in d dimensions; its angle comes from
#' the two directions along which the points spread most. Edges are geodesics of the disk from the cause
#' to the effect.
#'
#' @param x a [CapeFit-class] or SingleCellExperiment from [cape_fit()], or a [CapeEmbedding-class].
#' @param dag the graph whose edges are drawn, as for [cape_compare()]; that of `x` by default.
#' @param max.edges how many edges to draw, the strongest first.
#' @param labels how many of the most general features with edges to name.
#' @param colour.by what colours the points: `NULL` for generality, the name of a column of `rowData(x)`, or
#'   a vector with a value for every feature: by name if it has names, else in the order of the features of
#'   the result.
#' @param name under which [cape_fit()] stored the result.
#' @return A ggplot.
#' @examples
#' truth <- cape_simulate_dag(12, seed = 1)
#' cape_plot_poincare(cape_embed_dag(truth, HyperbolicParam(dims = 8L), seed = 1), truth)
#' @export
cape_plot_poincare <- function(x, dag = NULL, max.edges = 150L, labels = 15L, colour.by = NULL,
                               name = "CAPE") {
    embedding <- the_embedding(x, name)
    check_number(max.edges, "max.edges", 0, integer = TRUE)
    check_number(labels, "labels", 0, integer = TRUE)
    dag <- graph_of(x, dag, name)
    edges <- if (is.null(dag)) NULL else as.data.frame(cape_edges(dag))
    colour <- point_colour(x, embedding, colour.by, name)
    # Features without edges lie anywhere: they neither turn the picture nor are they named.
    linked <- if (NROW(edges) > 0L) embedding@features %in% c(edges$from, edges$to)
        else rep(TRUE, length(embedding@features))
    points <- disk_points(embedding, linked)
    points$colour <- colour$values
    shown <- utils::head(edges, max.edges)
    caption <- c(
        if (ncol(embedding@poincare) > 2L) paste0("radius: |e| in ", ncol(embedding@poincare),
            " dimensions; angle: from the two main directions"),
        if (NROW(edges) > NROW(shown)) paste0("the ", nrow(shown), " strongest of ", nrow(edges), " edges"))

    # When all points are near the centre, the picture ends not far outside of them.
    reach <- max(0.05, sqrt(points$x^2 + points$y^2))
    rim <- if (reach > 0.75) 1 else reach * 1.15
    names <- place_labels(utils::head(points[linked, ][order(-points$generality[linked]), ], labels), rim)
    plot <- ggplot2::ggplot() + rings(rim)
    paths <- if (NROW(shown) > 0L) edge_paths(shown, points, 0.03 * rim)
    if (!is.null(paths)) {
        plot <- plot + ggplot2::geom_path(
            ggplot2::aes(.data$x, .data$y, group = .data$edge, colour = .data$effect), paths,
            linewidth = 0.35, alpha = if (nrow(shown) > 60L) 0.3 else 0.5, key_glyph = key_line,
            arrow = grid::arrow(length = grid::unit(1.6, "mm"), type = "closed")) + sign_scale()
    }
    plot +
        name_lines(names) +
        ggplot2::geom_point(ggplot2::aes(.data$x, .data$y, fill = .data$colour), points, shape = 21,
            size = point_size(nrow(points)), stroke = 0.25) +
        ring_labels(rim) + name_labels(names) +
        colour$scale +
        ggplot2::coord_equal(xlim = c(-1.15, 1.15) * rim, ylim = c(-1.05, 1.05) * rim) +
        ggplot2::labs(x = NULL, y = NULL, caption = paste(caption, collapse = "; ")) +
        bare_theme()
}

# Many points are drawn smaller.
point_size <- function(n) max(0.8, min(2.4, 24 / sqrt(n)))

# What colours the points, and its scale: generality, a column of rowData(x), or given values.
point_colour <- function(x, embedding, colour.by, name) {
    title <- "generality"
    values <- unname(embedding@generality)
    if (is.character(colour.by) && length(colour.by) == 1L && length(embedding@features) != 1L) {
        title <- colour.by
        if (!is(x, "SummarizedExperiment") || !title %in% names(SummarizedExperiment::rowData(x))) {
            cape_error("'colour.by' is ", quoted(title), "; it must be a column of rowData(x), or values for ",
                count_of(length(embedding@features), "feature"))
        }
        values <- plain_vector(SummarizedExperiment::rowData(x)[[title]], "colour.by")[cape_result(x, name)@rows]
    } else if (!is.null(colour.by)) {
        title <- "colour.by"
        values <- plain_vector(colour.by, "colour.by")
        if (!is.null(names(values))) {
            unknown <- setdiff(embedding@features, names(values))
            if (length(unknown) > 0L) {
                cape_error("'colour.by' has names, but none for ", count_of(length(unknown), "feature"), ": ",
                    some_of(quoted(unknown)))
            }
            values <- values[embedding@features]
        }
    }
    if (length(values) != length(embedding@features)) {
        cape_error("'colour.by' has ", count_of(length(values), "value"), "; it must have one for each of ",
            count_of(length(embedding@features), "feature"))
    }
    scale <- if (is.numeric(values)) {
        list(ggplot2::scale_fill_viridis_c(title, option = "C", na.value = "grey85",
            breaks = few_breaks),
            ggplot2::guides(fill = ggplot2::guide_colourbar(barwidth = grid::unit(40, "mm"),
                barheight = grid::unit(3, "mm"), order = 1L)))
    } else {
        list(ggplot2::scale_fill_manual(title, values = group_colours(nlevels(factor(values))), na.value = "grey85"),
            ggplot2::guides(fill = ggplot2::guide_legend(override.aes = list(size = 3), order = 1L)))
    }
    list(values = if (is.numeric(values)) as.numeric(values) else factor(values), scale = scale, title = title)
}

# A colour of its own for each of any number of groups: those of a palette made for few as long as they last.
group_colours <- function(n) {
    if (n <= 8L) {
        return(utils::head(grDevices::palette.colors(8L, "Set 2"), n))
    }
    # Neighbours on the circle of hues differ in lightness too.
    grDevices::hcl(seq(15, 375, length.out = n + 1L)[seq_len(n)], 65, rep_len(c(75, 55, 40), n))
}

# At most three round numbers within the limits, so that they do not touch each other.
few_breaks <- function(limits) {
    breaks <- pretty(limits, 4L)
    breaks <- breaks[breaks >= limits[1L] & breaks <= limits[2L]]
    breaks[c(TRUE, logical(max(0, ceiling(length(breaks) / 3) - 1)))]
}

# Rows: name, x, y, generality.
disk_points <- function(embedding, linked) {
    flat <- flatten(embedding@poincare, linked, 2L)
    data.frame(name = embedding@features, x = flat[, 1L], y = flat[, 2L],
        generality = unname(embedding@generality))
}

# Points of the ball in 2 or 3 dimensions, with their norms: with more coordinates than that, the
# direction is that of the projection on those along which the points differ most.
flatten <- function(e, linked, dims) {
    if (ncol(e) <= dims) {
        return(cbind(e, matrix(0, nrow(e), dims - ncol(e))))
    }
    norm <- sqrt(rowSums(e^2))
    flat <- main_directions(e, linked, dims)
    length <- sqrt(rowSums(flat^2))
    flat * ifelse(length > 0 & norm > 0, norm / length, 0)
}

main_directions <- function(e, linked, dims) {
    e <- sweep(e, 2L, colMeans(e[linked, , drop = FALSE]))
    axes <- svd(e[linked, , drop = FALSE], nu = 0L, nv = dims)$v
    # The sign of a singular vector is arbitrary: its largest part is made positive.
    turn <- apply(axes, 2L, function(v) if (v[which.max(abs(v))] < 0) -1 else 1)
    flat <- e %*% (axes * rep(turn, each = nrow(axes)))
    cbind(flat, matrix(0, nrow(flat), dims - ncol(flat)))
}

# Circles at whole steps of the Euclidean radius, and the rim of the disk.
rings <- function(rim) {
    turn <- seq(0, 2 * pi, length.out = 181L)
    circles <- do.call(rbind, lapply(ring_radii(rim), function(r) {
        data.frame(r = r, x = r * cos(turn), y = r * sin(turn))
    }))
    ggplot2::geom_path(ggplot2::aes(.data$x, .data$y, group = .data$r), circles, colour = "grey85",
        linewidth = 0.3)
}

ring_radii <- function(rim) {
    radii <- pretty(c(0, rim), 4L)
    radii[radii > 0 & radii <= rim + 1e-9]
}

# Above points and edges, which would hide them.
ring_labels <- function(rim) {
    radii <- ring_radii(rim)
    ggplot2::annotate("label", x = 0, y = -radii, label = paste0("|e| = ", radii), colour = "grey45",
        size = 2.5, label.size = 0, label.padding = grid::unit(0.3, "mm"),
        fill = grDevices::adjustcolor("white", 0.75))
}

# Names where place_labels() has put them, and the lines to their points.
name_lines <- function(names) {
    ggplot2::geom_segment(ggplot2::aes(.data$x, .data$y, xend = .data$label_x, yend = .data$label_y), names,
        colour = "grey60", linewidth = 0.2)
}

name_labels <- function(names) {
    ggplot2::geom_label(ggplot2::aes(.data$label_x, .data$label_y, label = .data$name), names,
        size = 2.7, label.size = 0, fill = grDevices::adjustcolor("white", 0.85),
        label.padding = grid::unit(0.4, "mm"))
}

# Geodesic from a to b in the disk: move a to the origin, go straight, move back.
geodesic <- function(a, b, n = 24L) {
    za <- complex(real = a[1L], imaginary = a[2L])
    zb <- complex(real = b[1L], imaginary = b[2L])
    w <- (zb - za) / (1 - Conj(za) * zb)
    r <- Mod(w)
    if (r == 0) {
        return(cbind(x = rep(a[1L], n), y = rep(a[2L], n)))
    }
    z <- w / r * tanh(seq(0, 1, length.out = n) * atanh(r))
    path <- (z + za) / (1 + Conj(za) * z)
    cbind(x = Re(path), y = Im(path))
}

# Paths that end before the point that they lead to.
edge_paths <- function(edges, points, gap) {
    from <- match(edges$from, points$name)
    to <- match(edges$to, points$name)
    do.call(rbind, lapply(seq_len(nrow(edges)), function(e) {
        end <- c(points$x[to[e]], points$y[to[e]])
        path <- geodesic(c(points$x[from[e]], points$y[from[e]]), end)
        far <- sqrt((path[, 1L] - end[1L])^2 + (path[, 2L] - end[2L])^2) > gap
        if (sum(far) < 2L) {
            return(NULL)
        }
        data.frame(path[far, ], edge = e, effect = sign_label(edges$sign[e]))
    }))
}

# Names start outside of their points and go up or down until they cover neither each other nor the
# points that are named.
place_labels <- function(named, rim) {
    if (nrow(named) == 0L) {
        return(data.frame(named, label_x = numeric(), label_y = numeric()))
    }
    half_width <- 0.0135 * rim * (nchar(named$name) + 1)
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
