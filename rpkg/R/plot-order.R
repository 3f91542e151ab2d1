#' How radius and distance follow the graph
#'
#' `cape_plot_radius()`: the radius of every feature with edges (causal specificity) against its PageRank
#' (causal generality). `cape_plot_strength()`: for every pair of a feature and a descendant, the
#' hyperbolic distance against the strength of the best directed path between them.
#'
#' @inheritParams cape_plot_poincare
#' @param labels how many of the most general features to name.
#' @param max.pairs how many pairs to draw, spread evenly over the strengths if there are more.
#' @return A ggplot.
#' @seealso [cape_embedding_quality()] for the numbers
#' @examples
#' truth <- cape_simulate_dag(30, seed = 1)
#' embedding <- cape_embed_dag(truth, HyperbolicParam(dims = 16L), seed = 1)
#' cape_plot_radius(embedding, truth)
#' cape_plot_strength(embedding, truth)
#' @export
cape_plot_radius <- function(x, dag = NULL, labels = 15L, colour.by = NULL, name = "CAPE") {
    embedding <- the_embedding(x, name)
    check_number(labels, "labels", 0, integer = TRUE)
    colour <- point_colour(x, embedding@features, embedding@generality, "generality", colour.by, name)
    points <- data.frame(name = embedding@features, pagerank = unname(embedding@pagerank),
        radius = unname(embedding@radius), colour = colour$values)
    points <- points[!is.na(points$radius), ]
    named <- utils::head(points[order(points$radius), ], labels)
    ggplot2::ggplot(points, ggplot2::aes(.data$pagerank, .data$radius)) +
        ggplot2::geom_point(ggplot2::aes(fill = .data$colour), shape = 21, size = point_size(nrow(points)),
            stroke = 0.25) +
        ggplot2::geom_text(ggplot2::aes(label = .data$name), named, size = 2.6, vjust = -0.9,
            check_overlap = TRUE) +
        colour$scale +
        ggplot2::scale_x_log10(expand = ggplot2::expansion(mult = 0.08)) +
        ggplot2::scale_y_continuous(expand = ggplot2::expansion(mult = c(0.05, 0.1))) +
        ggplot2::labs(x = "PageRank (generality in the graph)", y = "radius (specificity in the embedding)",
            caption = correlation_text(points$pagerank, points$radius)) +
        property_theme()
}

#' @rdname cape_plot_radius
#' @export
cape_plot_strength <- function(x, dag = NULL, max.pairs = 5000L, name = "CAPE") {
    embedding <- the_embedding(x, name)
    check_number(max.pairs, "max.pairs", 1, integer = TRUE)
    dag <- graph_of(x, dag, name)
    if (is.null(dag)) {
        cape_error("'dag' is NULL, and an embedding alone has no graph; it must be the graph whose paths are drawn")
    }
    edges <- edge_table(dag)
    # As strengths, like in the embedding: shares of the largest weight if that is above 1.
    weight <- abs(edges$weight) / max(1, abs(edges$weight))
    strength <- with_features(dag@features, core_path_strengths(length(dag), edges$from, edges$to, weight))
    distance <- core_distances(unname(embedding@hyperboloid))
    at <- which(strength > 0 & row(strength) != col(strength), arr.ind = TRUE)
    pairs <- data.frame(strength = strength[at], distance = distance[at],
        kind = ifelse(entries_at(dag@adjacency, at[, 1L], at[, 2L]) != 0, "edge", "longer path"))
    # Evenly through the range of strengths, so that the choice needs no random numbers.
    drawn <- pairs[order(pairs$strength), ]
    if (nrow(drawn) > max.pairs) {
        drawn <- drawn[round(seq(1, nrow(drawn), length.out = max.pairs)), ]
    }
    ggplot2::ggplot(drawn, ggplot2::aes(.data$strength, .data$distance, colour = .data$kind)) +
        ggplot2::geom_point(size = max(0.5, point_size(nrow(drawn)) / 1.5), alpha = if (nrow(drawn) > 500L) 0.4 else 0.8) +
        ggplot2::scale_colour_manual(NULL, values = c(edge = "#B2182B", `longer path` = "grey55")) +
        ggplot2::scale_x_log10() +
        ggplot2::labs(x = "strength of the best path", y = "hyperbolic distance", caption = paste0(
            if (nrow(drawn) < nrow(pairs)) paste0(nrow(drawn), " of ", nrow(pairs), " pairs; "),
            correlation_text(pairs$strength, pairs$distance))) +
        property_theme()
}

correlation_text <- function(a, b) {
    if (length(unique(a)) < 2L || length(unique(b)) < 2L) {
        return("")
    }
    paste("rank correlation", number(stats::cor(a, b, method = "spearman")))
}
