#' Draw what is around a feature, and the ways between two
#'
#' `cape_plot_neighbourhood()` draws the causes of features above them and their effects below, up to so many edges
#' away, with all edges between those. `cape_plot_paths()` draws all directed ways from one feature to another. The
#' width of an arrow is the weight, its colour the sign and, of a graph that was learned, it is the fainter the less
#' supports the edge ([cape_support()]). The features that were asked for are dark.
#'
#' @inheritParams cape_neighbourhood
#' @param max.features how many features to draw. Of a neighbourhood the nearest and then the strongest come first,
#'   causes and effects by turns; of ways the features on the strongest ones. The caption says how many there are.
#' @return A ggplot. It is an error if no directed way leads from `from` to `to`; the message says what else joins
#' them.
#' @seealso [cape_neighbourhood()] for the table
#' @examples
#' dag <- cape_simulate_dag(30, seed = 1)
#' cape_plot_neighbourhood(dag, "gene7")
#' @export
cape_plot_neighbourhood <- function(x, features, hops = 2L, max.features = 40L, name = "CAPE") {
    dag <- the_graph(x, name)
    features <- check_features(features, dag, "features")
    check_number(hops, "hops", 1, integer = TRUE)
    check_number(max.features, "max.features", 1, integer = TRUE)
    near <- neighbours(dag, features, hops)
    near <- near[order(near$hops, -near$strength), ]
    turn <- stats::ave(seq_len(nrow(near)), near$side, FUN = seq_along)
    drawn <- near$feature[order(near$side != "asked", turn)]
    drawn <- utils::head(drawn, max(max.features, length(features)))
    caption <- paste0(some_of(features), ": ", count_of(sum(near$side == "cause"), "cause"), " above, ",
        count_of(sum(near$side == "effect"), "effect"), " below",
        if (any(near$side == "both")) paste0(", ", sum(near$side == "both"), " between"), ", within ",
        count_of(hops, "edge"),
        if (length(drawn) < nrow(near)) paste0("; the nearest and strongest ", length(drawn), " of these ", nrow(near),
            " features"))
    plot_among(dag, drawn, features, caption)
}

#' @rdname cape_plot_neighbourhood
#' @param from,to names of the cause and of the effect.
#' @examples
#' edges <- cape_edges(dag)
#' cape_plot_paths(dag, dag@order[1], tail(dag@order, 1))
#' @export
cape_plot_paths <- function(x, from, to, max.features = 40L, name = "CAPE") {
    dag <- the_graph(x, name)
    from <- one_feature(from, dag, "from")
    to <- one_feature(to, dag, "to")
    check_number(max.features, "max.features", 2, integer = TRUE)
    if (from == to) {
        cape_error("'from' and 'to' are both ", quoted(from), "; a way leads from one feature to another")
    }
    start <- match(from, dag@features)
    end <- match(to, dag@features)
    forth <- reached(dag, start, length(dag))
    back <- reached(dag, end, length(dag), back = TRUE)
    if (is.infinite(forth$hops[end])) {
        no_way(dag, from, to)
    }
    # What the strongest way through a feature costs: all that lies on that way is drawn with it.
    through <- forth$cost + back$cost
    on <- which(is.finite(through))
    drawn <- utils::head(on[order(through[on], forth$hops[on])], max.features)
    drawn <- union(c(start, end), drawn)
    caption <- paste0("the ways from ", from, " to ", to, ", the strongest ",
        paste(dag@features[way_to(end, forth$before)], collapse = " -> "),
        if (length(drawn) < length(on)) paste0("; ", length(drawn), " of ", length(on),
            " features, those on the strongest ways"))
    plot_among(dag, dag@features[drawn], c(from, to), caption)
}

# All edges among some features.
plot_among <- function(dag, drawn, asked, caption) {
    edges <- as.data.frame(cape_edges(dag))
    edges <- edges[edges$from %in% drawn & edges$to %in% drawn, ]
    edges$size <- abs(edges$weight)
    edges$effect <- sign_label(edges$sign)
    layered_plot(edges, dag@features[dag@features %in% drawn], "|weight|", asked) + sign_scale() +
        ggplot2::labs(caption = in_lines(caption))
}

# Captions do not end at the border.
in_lines <- function(text) paste(strwrap(paste(text, collapse = "; "), 95L), collapse = "\n")

one_feature <- function(feature, dag, name) {
    feature <- check_features(feature, dag, name)
    if (length(feature) != 1L) {
        cape_error("'", name, "' has ", count_of(length(feature), "feature"), "; it must be one")
    }
    feature
}

way_to <- function(end, before) {
    way <- end
    while (!is.na(before[way[1L]])) way <- c(before[way[1L]], way)
    way
}

no_way <- function(dag, from, to) {
    ends <- match(c(from, to), dag@features)
    far <- length(dag)
    both <- function(back) {
        dag@features[is.finite(reached(dag, ends[1L], far, back)$hops + reached(dag, ends[2L], far, back)$hops)]
    }
    cape_error("no directed way leads from ", quoted(from), " to ", quoted(to), "; ",
        if (is.finite(reached(dag, ends[2L], far)$hops[ends[1L]])) {
            "one leads from 'to' to 'from'"
        } else if (length(common <- both(TRUE)) > 0L) {
            paste0("both are effects of ", some_of(quoted(common)))
        } else if (length(common <- both(FALSE)) > 0L) {
            paste0("both are causes of ", some_of(quoted(common)))
        } else {
            "they have neither a cause nor an effect in common"
        })
}
