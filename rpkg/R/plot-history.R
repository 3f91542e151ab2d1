#' Draw the training history
#'
#' Of a fit: the loss of Step I, its acyclicity h, the penalty rho and the multiplier alpha (log scales),
#' and the loss of Step II.
#'
#' @param x a [CapeFit-class], [CapeDag-class], [CapeEmbedding-class], or SingleCellExperiment from
#'   [cape_fit()].
#' @param name under which [cape_fit()] stored the result.
#' @return A ggplot.
#' @examples
#' x <- cape_simulate_data(cape_simulate_dag(6, edges.per.node = 1, seed = 1), 200, seed = 2)
#' cape_plot_history(cape_learn_dag(x, DagParam(refine = FALSE), seed = 3))
#' @export
cape_plot_history <- function(x, name = "CAPE") {
    lines <- list()
    add <- function(panel, history, column, log = FALSE) {
        value <- history[[column]]
        if (log) value <- ifelse(value > 0, log10(value), NA)
        lines[[length(lines) + 1L]] <<- data.frame(panel = panel, line = column, epoch = history$epoch,
            value = value)
    }
    if (!is(x, "CapeEmbedding")) {
        history <- cape_history(x, name = name)
        if (nrow(history) == 0L) {
            cape_error("this graph was not learned, so it has no history")
        }
        add("Step I: loss", history, "loss")
        for (column in c("reconstruction", "kl")) {
            if (any(history[[column]] != 0)) add("Step I: loss", history, column)
        }
        add("Step I: acyclicity, log10", history, "h", log = TRUE)
        add("Step I: penalty and multiplier, log10", history, "rho", log = TRUE)
        add("Step I: penalty and multiplier, log10", history, "alpha", log = TRUE)
    }
    if (!is(x, "CapeDag")) {
        history <- the_embedding(x, name)@history
        for (column in c("loss", "contrastive", "ranking")) {
            add("Step II: loss", history, column)
        }
    }
    lines <- do.call(rbind, lines)
    lines$panel <- factor(lines$panel, unique(lines$panel))
    lines$line <- factor(lines$line, unique(lines$line))
    ggplot2::ggplot(lines, ggplot2::aes(.data$epoch, .data$value, colour = .data$line)) +
        ggplot2::geom_line(na.rm = TRUE, linewidth = 0.6) +
        ggplot2::facet_wrap(ggplot2::vars(.data$panel), scales = "free") +
        ggplot2::scale_colour_brewer(NULL, palette = "Dark2") +
        ggplot2::labs(x = "epoch", y = NULL) +
        ggplot2::theme_bw(base_size = 11) +
        ggplot2::theme(panel.grid.minor = ggplot2::element_blank(),
            strip.background = ggplot2::element_blank(),
            strip.text = ggplot2::element_text(face = "bold", hjust = 0), legend.position = "bottom")
}
