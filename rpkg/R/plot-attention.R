#' Draw which feature attends to which
#'
#' The feature that attends is the row, the one that it attends to the column. Weights are shown as multiples of an
#' equal share (1 over the number of features), on a logarithmic scale: white is what a feature without preference
#' gives. The lowest row is that of the token that stands for the cell (`<cls>`).
#'
#' @param map what [cape_attention_map()] returned: a matrix, or a list of them with a panel for each group.
#' @param fit a [CapeFit-class], [CapeDag-class] or SingleCellExperiment from [cape_fit()] with these features, in whose
#'   causal order they are drawn, its edges (cause in the column, since an effect looks at its causes) as open
#'   squares; `NULL`: features that attend alike stand side by side (complete linkage of their rows).
#' @param limit the largest multiple of the scale; those beyond it are drawn as it.
#' @return A ggplot.
#' @seealso [cape_attention_map()]
#' @examples
#' truth <- cape_simulate_dag(6, edges.per.node = 1, seed = 1)
#' x <- cape_simulate_data(truth, 60, mechanism = "linear", seed = 2)
#' model <- cape_pretrain(x, training = PretrainParam(epochs = 2L), seed = 4)
#' cape_plot_attention(cape_attention_map(model, x), truth)
#' @export
cape_plot_attention <- function(map, fit = NULL, limit = 8) {
    limit <- check_number(limit, "limit", 1 + 1e-6, 1e6)
    maps <- if (is.list(map)) map else list(map)
    features <- if (length(maps) > 0L) colnames(maps[[1L]])
    for (one in maps) {
        if (!is.matrix(one) || !is.numeric(one) || is.null(features) || !identical(colnames(one), features) ||
            !identical(rownames(one), c(features, "<cls>"))) {
            cape_error("'map' is ", one_line(map), "; it must be what cape_attention_map() returns")
        }
    }
    if (length(maps) == 0L) cape_error("'map' has no group")
    edges <- NULL
    if (is.null(fit)) {
        mean <- Reduce(`+`, maps)[features, , drop = FALSE]
        order <- if (length(features) > 2L) features[stats::hclust(stats::dist(mean))$order] else features
    } else {
        dag <- if (is(fit, "SummarizedExperiment") || is(fit, "CapeFit")) cape_dag(fit) else as_dag(fit, "fit")
        if (!setequal(dag@features, features)) {
            cape_error("'fit' and 'map' have different features")
        }
        order <- if (length(dag@order) > 0L) dag@order else dag@features
        edges <- as.data.frame(cape_edges(dag))[c("from", "to")]
        edges$row <- factor(edges$to, rev(c(order, "<cls>")))
        edges$column <- factor(edges$from, order)
    }
    panels <- if (is.null(names(maps))) rep("", length(maps)) else names(maps)
    cells <- do.call(rbind, lapply(seq_along(maps), function(i) {
        data.frame(panel = panels[i], row = rep(rownames(maps[[i]]), ncol(maps[[i]])),
            column = rep(features, each = nrow(maps[[i]])), share = as.vector(maps[[i]]) * length(features))
    }))
    cells$panel <- factor(cells$panel, unique(panels))
    cells$row <- factor(cells$row, rev(c(order, "<cls>")))
    cells$column <- factor(cells$column, order)
    cells$share <- pmin(pmax(log2(cells$share), -log2(limit)), log2(limit))

    plot <- ggplot2::ggplot(cells, ggplot2::aes(.data$column, .data$row)) +
        ggplot2::geom_tile(ggplot2::aes(fill = .data$share)) +
        signed_fill("times an\nequal share", log2(limit), breaks = c(-1, 0, 1) * log2(limit),
            labels = c(paste0("1/", number(limit)), "1", number(limit))) +
        ggplot2::labs(x = "attended to", y = "attends") +
        matrix_axes(length(order))
    if (is.list(map)) plot <- plot + ggplot2::facet_wrap(ggplot2::vars(.data$panel))
    if (!is.null(edges) && nrow(edges) > 0L) {
        plot <- plot + ggplot2::geom_tile(data = edges, fill = NA, colour = "black", linewidth = 0.3)
    }
    plot
}
