#' Draw the Poincaré ball in three dimensions
#'
#' Points keep their norm |e|; with more than three coordinates their direction is that of the projection
#' on the three along which the points differ most. Edges are geodesics of the ball. When all points are
#' near the centre, the sphere drawn is one of a smaller norm, which the caption gives.
#'
#' @inheritParams cape_plot_poincare
#' @param labels how many of the most general features with edges to name.
#' @param azimuth,elevation the direction from which the picture is seen, in degrees.
#' @param interactive `FALSE`: a ggplot, in perspective; `TRUE`: a plotly object that can be turned, for
#'   which package plotly is needed.
#' @return A ggplot, or a plotly object.
#' @examples
#' truth <- cape_simulate_dag(10, seed = 1)
#' cape_plot_ball(cape_embed_dag(truth, HyperbolicParam(dims = 3L), seed = 1), truth)
#' @export
cape_plot_ball <- function(x, dag = NULL, max.edges = 100L, labels = 15L, colour.by = NULL, azimuth = 30,
                           elevation = 20, interactive = FALSE, name = "CAPE") {
    embedding <- the_embedding(x, name)
    check_number(max.edges, "max.edges", 0, integer = TRUE)
    check_number(labels, "labels", 0, integer = TRUE)
    check_number(azimuth, "azimuth")
    check_number(elevation, "elevation")
    dag <- graph_of(x, dag, name)
    edges <- if (is.null(dag)) NULL else as.data.frame(cape_edges(dag))
    linked <- if (NROW(edges) > 0L) embedding@features %in% c(edges$from, edges$to)
        else rep(TRUE, length(embedding@features))
    ball <- flatten(embedding@poincare, linked, 3L)
    colour <- point_colour(x, embedding@features, embedding@generality, "generality", colour.by, name)
    shown <- utils::head(edges, max.edges)
    paths <- ball_paths(shown, ball, embedding@features)
    reach <- max(0.05, sqrt(rowSums(ball^2)))
    rim <- if (reach > 0.75) 1 else ceiling(20 * 1.05 * reach) / 20
    if (check_flag(interactive, "interactive")) {
        return(turning_ball(ball, rim, embedding@features, colour, paths))
    }

    camera <- function(xyz) see_from(xyz / rim, azimuth * pi / 180, elevation * pi / 180)
    points <- data.frame(name = embedding@features, camera(ball), colour = colour$values,
        generality = unname(embedding@generality))
    points <- points[order(points$depth), ] # the nearest last, on top
    named <- points[points$name %in% embedding@features[linked], ]
    names <- place_labels(utils::head(named[order(-named$generality), ], labels), 1)
    plot <- ggplot2::ggplot() + globe(function(xyz) camera(rim * xyz))
    if (NROW(paths) > 0L) {
        drawn <- data.frame(camera(as.matrix(paths[c("x", "y", "z")])), paths[c("edge", "effect")])
        plot <- plot + ggplot2::geom_path(ggplot2::aes(.data$x, .data$y, group = .data$edge,
            colour = .data$effect), drawn, linewidth = 0.4, alpha = 0.6, key_glyph = key_line,
            arrow = grid::arrow(length = grid::unit(1.6, "mm"), type = "closed")) + sign_scale()
    }
    caption <- c(paste("sphere: |e| =", rim),
        if (ncol(embedding@poincare) > 3L) paste0("radius: |e| in ", ncol(embedding@poincare),
            " dimensions; direction: from the three main ones"),
        if (NROW(edges) > NROW(shown)) paste0("the ", nrow(shown), " strongest of ", nrow(edges), " edges"))
    plot + name_lines(names) +
        ggplot2::geom_point(ggplot2::aes(.data$x, .data$y, fill = .data$colour, size = .data$depth), points,
            shape = 21, stroke = 0.3) +
        name_labels(names) +
        ggplot2::scale_size_continuous(range = c(0.6, 1.3) * point_size(nrow(points)), guide = "none") +
        colour$scale +
        ggplot2::coord_equal(xlim = c(-1.1, 1.1), ylim = c(-1.1, 1.1)) +
        ggplot2::labs(x = NULL, y = NULL, caption = in_lines(caption)) +
        bare_theme()
}

# Perspective from five radii away: x to the right, y up, depth towards the eye.
see_from <- function(xyz, azimuth, elevation) {
    right <- c(-sin(azimuth), cos(azimuth), 0)
    towards <- c(cos(elevation) * cos(azimuth), cos(elevation) * sin(azimuth), sin(elevation))
    up <- c(-sin(elevation) * cos(azimuth), -sin(elevation) * sin(azimuth), cos(elevation))
    depth <- as.vector(xyz %*% towards)
    near <- 5 / (5 - depth)
    data.frame(x = as.vector(xyz %*% right) * near, y = as.vector(xyz %*% up) * near, depth = depth)
}

# The equator and two meridians of the unit sphere.
great_circles <- function() {
    turn <- seq(0, 2 * pi, length.out = 121L)
    list(cbind(cos(turn), sin(turn), 0), cbind(cos(turn), 0, sin(turn)), cbind(0, cos(turn), sin(turn)))
}

# The outline of the unit sphere and its great circles; what is behind is fainter.
globe <- function(camera) {
    turn <- seq(0, 2 * pi, length.out = 121L)
    circles <- great_circles()
    lines <- do.call(rbind, lapply(seq_along(circles), function(i) {
        seen <- camera(circles[[i]])
        data.frame(seen, circle = paste(i, cumsum(c(0, diff(seen$depth > 0) != 0))), front = seen$depth > 0)
    }))
    rim <- 5 / sqrt(24) # where the line of sight touches the sphere
    list(
        ggplot2::geom_path(ggplot2::aes(.data$x, .data$y, group = .data$circle, linetype = !.data$front), lines,
            colour = "grey80", linewidth = 0.25),
        ggplot2::scale_linetype_manual(values = c("solid", "dotted"), guide = "none"),
        ggplot2::geom_path(ggplot2::aes(.data$x, .data$y), data.frame(x = rim * cos(turn), y = rim * sin(turn)),
            colour = "grey55", linewidth = 0.4)
    )
}

# Geodesics that end before the points that they lead to.
ball_paths <- function(edges, ball, features) {
    from <- match(edges$from, features)
    to <- match(edges$to, features)
    do.call(rbind, lapply(seq_len(NROW(edges)), function(e) {
        path <- ball_geodesic(ball[from[e], ], ball[to[e], ])
        far <- sqrt(rowSums(sweep(path, 2L, ball[to[e], ])^2)) > 0.035
        if (sum(far) < 2L) {
            return(NULL)
        }
        data.frame(x = path[far, 1L], y = path[far, 2L], z = path[far, 3L], edge = e,
            effect = sign_label(edges$sign[e]))
    }))
}

mobius_add <- function(a, b) {
    ab <- sum(a * b)
    aa <- sum(a^2)
    bb <- sum(b^2)
    ((1 + 2 * ab + bb) * a + (1 - aa) * b) / (1 + 2 * ab + aa * bb)
}

# From a to b: a (+) t (x) (-a (+) b).
ball_geodesic <- function(a, b, n = 24L) {
    step <- mobius_add(-a, b)
    r <- sqrt(sum(step^2))
    if (r == 0) {
        return(matrix(a, n, length(a), byrow = TRUE))
    }
    t(vapply(seq(0, 1, length.out = n), function(t) mobius_add(a, tanh(t * atanh(r)) * step / r), a))
}

turning_ball <- function(ball, rim, features, colour, paths) {
    if (!requireNamespace("plotly", quietly = TRUE)) {
        cape_error("'interactive' is TRUE, which needs package plotly: install it, or leave it FALSE")
    }
    plot <- plotly::plot_ly()
    lines <- function(xyz, name, colour, width, legend) {
        plot <<- plotly::add_trace(plot, x = xyz[, 1L], y = xyz[, 2L], z = xyz[, 3L], type = "scatter3d",
            mode = "lines", name = name, line = list(color = colour, width = width), hoverinfo = "none",
            showlegend = legend, connectgaps = FALSE)
    }
    lines(rim * broken(great_circles()), "sphere", "lightgrey", 1, FALSE)
    for (sign in intersect(names(sign_colours), as.character(paths$effect))) {
        of_sign <- paths[paths$effect == sign, ]
        lines(broken(split(of_sign[c("x", "y", "z")], of_sign$edge)), sign, sign_colours[[sign]], 2, TRUE)
    }
    points <- function(chosen, ...) {
        plotly::add_trace(plot, x = ball[chosen, 1L], y = ball[chosen, 2L], z = ball[chosen, 3L],
            type = "scatter3d", mode = "markers", hoverinfo = "text",
            text = paste0(as_html(features), "<br>", as_html(colour$title), ": ", format(colour$values, digits = 3L))[chosen], ...)
    }
    if (is.numeric(colour$values)) {
        plot <- points(seq_along(features), showlegend = FALSE, marker = list(size = 4, color = colour$values,
            colorscale = "Viridis", showscale = TRUE, colorbar = list(title = colour$title, len = 0.5)))
    } else {
        colours <- group_colours(nlevels(colour$values))
        for (k in seq_len(nlevels(colour$values))) {
            level <- levels(colour$values)[k]
            plot <- points(which(colour$values == level), name = level, marker = list(size = 4, color = colours[k]))
        }
    }
    axis <- list(range = c(-rim, rim), title = "")
    plotly::layout(plot, scene = list(xaxis = axis, yaxis = axis, zaxis = axis, aspectmode = "cube"))
}

# Text is taken as HTML there.
as_html <- function(text) gsub("<", "&lt;", gsub("&", "&amp;", text, fixed = TRUE), fixed = TRUE)

# Lines one below the other, with a gap after each.
broken <- function(lines) do.call(rbind, lapply(lines, function(l) rbind(as.matrix(l), NA)))

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
