#' Draw the Poincaré disk
#'
#' The radius of a point is its true norm |e| = 1 - generality, in d dimensions; its angle comes from
#' the two directions along which the points spread most. Edges are geodesics of the disk from the cause
#' to the effect.
#'
#' @param x a [CapeFit-class] or SingleCellExperiment from [cape_fit()], or a [CapeEmbedding-class].
#' @param dag the graph whose edges are drawn, as for [cape_compare()]; that of `x` by default.
#' @param max.edges how many edges to draw, the strongest first.
#' @param labels how many of the most general features to name.
#' @return A ggplot.
#' @examples
#' truth <- cape_simulate_dag(12, seed = 1)
#' cape_plot_poincare(cape_embed_dag(truth, HyperbolicParam(dims = 8L), seed = 1), truth)
#' @export
cape_plot_poincare <- function(x, dag = NULL, max.edges = 150L, labels = 15L) {
    embedding <- the_embedding(x)
    check_number(max.edges, "max.edges", 0, integer = TRUE)
    check_number(labels, "labels", 0, integer = TRUE)
    if (is.null(dag) && !is(x, "CapeEmbedding")) {
        dag <- cape_dag(x)
    }
    points <- disk_points(embedding)
    edges <- if (is.null(dag)) NULL else as.data.frame(cape_edges(as_dag(dag, "dag")))
    shown <- utils::head(edges, max.edges)
    named <- utils::head(points[order(-points$generality), ], labels)
    caption <- c(
        if (ncol(embedding@poincare) > 2L) paste0("radius is |e| in ", ncol(embedding@poincare),
            " dimensions; angle from the two main directions"),
        if (NROW(edges) > NROW(shown)) paste0("the ", nrow(shown), " strongest of ", nrow(edges), " edges"))

    # The scale is the cloud's, not the ball's, when all points lie near the centre.
    reach <- max(0.05, max(1 - points$generality))
    rim <- if (reach > 0.75) 1 else reach * 1.15
    plot <- ggplot2::ggplot() + rings(rim)
    if (NROW(shown) > 0L) {
        plot <- plot + ggplot2::geom_path(
            ggplot2::aes(.data$x, .data$y, group = .data$edge, colour = .data$effect),
            edge_paths(shown, points), linewidth = 0.35, alpha = 0.45,
            arrow = grid::arrow(length = grid::unit(1.6, "mm"), type = "closed")) + sign_scale()
    }
    plot +
        ggplot2::geom_point(ggplot2::aes(.data$x, .data$y, fill = .data$generality), points, shape = 21,
            size = 2.6, stroke = 0.3) +
        ggplot2::geom_label(ggplot2::aes(.data$x, .data$y, label = .data$name), spread_labels(named, rim),
            size = 2.8, label.size = 0, fill = grDevices::adjustcolor("white", 0.8),
            label.padding = grid::unit(0.5, "mm")) +
        ggplot2::scale_fill_viridis_c("generality", option = "C") +
        ggplot2::coord_equal(xlim = c(-rim, rim), ylim = c(-rim, rim)) +
        ggplot2::labs(x = NULL, y = NULL, caption = paste(caption, collapse = "; ")) +
        bare_theme()
}

# Rows: name, x, y, generality.
disk_points <- function(embedding) {
    e <- embedding@poincare
    norm <- sqrt(rowSums(e^2))
    flat <- if (ncol(e) < 2L) {
        cbind(e, 0)
    } else if (ncol(e) == 2L) {
        e
    } else {
        axes <- svd(e, nu = 0L, nv = 2L)$v
        # The sign of a singular vector is arbitrary: its largest part is made positive.
        turn <- apply(axes, 2L, function(v) sign(v[which.max(abs(v))]))
        e %*% (axes * rep(turn, each = nrow(axes)))
    }
    length <- sqrt(rowSums(flat^2))
    stretch <- ifelse(length > 0, norm / length, 0)
    data.frame(name = embedding@features, x = flat[, 1L] * stretch, y = flat[, 2L] * stretch,
        generality = unname(embedding@generality))
}

# Circles at whole steps of the Euclidean radius, and the rim of the disk.
rings <- function(rim) {
    turn <- seq(0, 2 * pi, length.out = 181L)
    radii <- pretty(c(0, rim), 4L)
    radii <- radii[radii > 0 & radii <= rim]
    circles <- do.call(rbind, lapply(radii, function(r) {
        data.frame(r = r, x = r * cos(turn), y = r * sin(turn))
    }))
    list(
        ggplot2::geom_path(ggplot2::aes(.data$x, .data$y, group = .data$r), circles, colour = "grey85",
            linewidth = 0.3),
        ggplot2::annotate("text", x = 0, y = -radii, label = paste0("|e| = ", radii), colour = "grey60",
            size = 2.6, vjust = -0.4)
    )
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

edge_paths <- function(edges, points) {
    from <- match(edges$from, points$name)
    to <- match(edges$to, points$name)
    do.call(rbind, lapply(seq_len(nrow(edges)), function(e) {
        path <- geodesic(c(points$x[from[e]], points$y[from[e]]), c(points$x[to[e]], points$y[to[e]]))
        data.frame(path[seq_len(nrow(path) - 1L), ], edge = e, effect = sign_label(edges$sign[e]))
    }))
}

# Names start beside their points and push each other apart.
spread_labels <- function(named, rim) {
    if (nrow(named) == 0L) {
        return(named)
    }
    width <- 0.019 * rim * (nchar(named$name) + 1)
    height <- 0.055 * rim
    named$y <- named$y + 0.7 * height
    for (round in 1:200) {
        moved <- FALSE
        for (i in seq_len(nrow(named) - 1L)) {
            for (j in (i + 1L):nrow(named)) {
                dx <- named$x[j] - named$x[i]
                dy <- named$y[j] - named$y[i]
                over_x <- (width[i] + width[j]) - abs(dx)
                over_y <- height - abs(dy)
                if (over_x > 0 && over_y > 0) {
                    step <- over_y / 2 * if (dy >= 0) 1 else -1
                    named$y[i] <- named$y[i] - step
                    named$y[j] <- named$y[j] + step
                    moved <- TRUE
                }
            }
        }
        if (!moved) break
    }
    named
}
