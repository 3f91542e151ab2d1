#' Draw the strongest regulators
#'
#' A bar for every feature: the sum of the absolute weights of the edges to its effects, divided by what happens to
#' these. The number of effects stands at its end.
#'
#' @inheritParams cape_neighbourhood
#' @param n how many features to draw, the strongest first.
#' @return A ggplot.
#' @seealso [cape_plot_neighbourhood()] for what is around one of them, [cape_plot_modules()]
#' @examples
#' cape_plot_regulators(cape_simulate_dag(60, seed = 1), n = 10L)
#' @export
cape_plot_regulators <- function(x, n = 20L, name = "CAPE") {
    dag <- the_graph(x, name)
    check_number(n, "n", 1, integer = TRUE)
    edges <- as.data.frame(cape_edges(dag))
    if (nrow(edges) == 0L) {
        return(no_edges())
    }
    strength <- out_strength(dag)
    regulators <- dag@features[order(-strength)]
    regulators <- utils::head(regulators[regulators %in% edges$from], n)
    edges <- edges[edges$from %in% regulators, ]
    bars <- data.frame(regulator = factor(edges$from, rev(regulators)), weight = abs(edges$weight),
        effect = sign_label(edges$sign))
    ends <- data.frame(regulator = factor(regulators, rev(regulators)), strength = unname(strength[regulators]),
        effects = as.vector(table(factor(edges$from, regulators))))
    total <- sum(strength > 0)
    caption <- c("at the end of a bar: the number of effects",
        if (total > length(regulators)) paste("the", length(regulators), "strongest of", total,
            "features with effects"))
    ggplot2::ggplot(bars, ggplot2::aes(.data$weight, .data$regulator)) +
        ggplot2::stat_summary(ggplot2::aes(fill = .data$effect), fun = sum, geom = "col",
            position = ggplot2::position_stack(reverse = TRUE), width = 0.75, orientation = "y") +
        ggplot2::geom_text(ggplot2::aes(.data$strength, .data$regulator, label = .data$effects), ends, hjust = -0.3,
            size = 2.8, colour = "grey30") +
        ggplot2::scale_fill_manual("the cause ... the effect", values = sign_colours) +
        ggplot2::scale_y_discrete(labels = short_names) +
        ggplot2::scale_x_continuous(expand = ggplot2::expansion(mult = c(0, 0.08))) +
        ggplot2::labs(x = "sum of |weight| to effects", y = NULL, caption = in_lines(caption)) +
        ggplot2::theme_minimal(base_size = 10) +
        ggplot2::theme(panel.grid.major.y = ggplot2::element_blank(), panel.grid.minor = ggplot2::element_blank(),
            legend.position = "bottom", plot.caption = ggplot2::element_text(colour = "grey40"))
}
