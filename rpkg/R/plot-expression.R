#' Draw the values of features in causal order
#'
#' A heat map: features in rows, causes above their effects, and cells in columns. Every feature is scaled over all
#' cells to mean 0 and standard deviation 1; counts are normalised as by [cape_fit()], and what is missing is grey.
#' Within a group, cells are in the order of the first principal component of what is shown.
#'
#' @param x a SingleCellExperiment from [cape_fit()] or, with `dag`, anything that [cape_fit()] takes.
#' @param features names of features of the graph, such as those of a module or of a neighbourhood.
#' @param dag the graph, as for [cape_compare()]; that of `x` by default.
#' @param assay.type which assay, as of [cape_fit()].
#' @param group `NULL`, the name of a column of `colData(x)`, or a group for every cell: a panel for each.
#' @param max.cells how many cells to draw, evenly from all in their order.
#' @param limit values further from 0 than this are drawn as it.
#' @param name under which [cape_fit()] stored the result.
#' @return A ggplot.
#' @seealso [cape_modules()], [cape_neighbourhood()]
#' @examples
#' truth <- cape_simulate_dag(20, edges.per.node = 1, seed = 1)
#' x <- cape_simulate_data(truth, 200, seed = 2)
#' around <- cape_neighbourhood(truth, truth@order[1], hops = 2L)$feature
#' cape_plot_expression(x, around, truth)
#' @export
cape_plot_expression <- function(x, features, dag = NULL, assay.type = NULL, group = NULL, max.cells = 400L,
                                 limit = 2.5, name = "CAPE") {
    check_number(max.cells, "max.cells", 1, integer = TRUE)
    check_number(limit, "limit", 1e-6)
    stored <- if (is.null(dag)) cape_result(x, name)
    dag <- if (is.null(dag)) stored@dag else as_dag(dag, "dag")
    features <- check_features(features, dag, "features")
    order <- if (length(dag@order) > 0L) dag@order else dag@features
    features <- order[order %in% features]
    rows <- if (is.null(stored)) rows_named(features, x) else stored@rows[match(features, dag@features)]
    scaled <- scaled_rows(shown_values(x, rows, assay.type))
    groups <- per_cell(x, group, "group")
    groups <- if (is.null(groups)) rep(1L, ncol(scaled)) else droplevels(addNA(factor(groups), ifany = TRUE))
    cells <- order(groups, first_component(scaled))
    drawn <- cells[unique(round(seq(1, length(cells), length.out = min(max.cells, length(cells)))))]
    tiles <- data.frame(feature = factor(rep(features, length(drawn)), rev(features)),
        cell = rep(seq_along(drawn), each = length(features)), group = rep(groups[drawn], each = length(features)),
        value = pmin(pmax(as.vector(scaled[, drawn]), -limit), limit))
    ggplot2::ggplot(tiles, ggplot2::aes(.data$cell, .data$feature)) +
        ggplot2::geom_raster(ggplot2::aes(fill = .data$value)) +
        (if (!is.null(group)) ggplot2::facet_grid(cols = ggplot2::vars(.data$group), scales = "free_x",
            space = "free_x")) +
        ggplot2::scale_fill_gradient2("standard\ndeviations", low = "#2166AC", mid = "white", high = "#B2182B",
            limits = c(-limit, limit), na.value = "grey80") +
        ggplot2::scale_y_discrete(labels = if (length(features) <= 60L) short_names, expand = c(0, 0)) +
        ggplot2::scale_x_continuous(breaks = NULL, expand = c(0, 0)) +
        ggplot2::labs(x = paste0(length(drawn), if (length(drawn) < length(cells)) paste(" of", length(cells)),
            " cells"), y = "causes above, effects below") +
        ggplot2::theme_minimal(base_size = 10) +
        ggplot2::theme(panel.grid = ggplot2::element_blank(), panel.spacing = grid::unit(1, "mm"), strip.clip = "off",
            strip.text.x = if (nlevels(groups) > 3L) ggplot2::element_text(angle = 35, hjust = 0, vjust = 0)
                else ggplot2::element_text())
}

rows_named <- function(features, x) {
    rows <- match(features, feature_names(x))
    if (anyNA(rows)) {
        cape_error("'x' lacks ", count_of(sum(is.na(rows)), "feature"), " of 'features': ",
            some_of(quoted(features[is.na(rows)])))
    }
    rows
}

# Counts are scaled and logarithms taken as for a fit; a cell without counts has no values.
shown_values <- function(x, rows, assay.type) {
    source <- choose_assay(x, assay.type, FALSE)
    scan <- scan_rows(source$values, if (source$counts) NULL else rows)
    if (any(scan$infinite > 0)) {
        cape_error(source$what, " has ", count_of(sum(scan$infinite), "infinite value"), "; values must be finite")
    }
    if (!(source$counts && are_counts(scan, source))) {
        return(read_rows(source$values, rows))
    }
    scaling <- cell_scaling(x, source$values)
    factors <- core_cell_factors(scaling$sizes, scaling$own, as.numeric(registry_default("preprocess.target_sum")))
    values <- read_rows(source$values, rows, factors, if (is.null(scaling$own)) "natural" else "binary")
    values[, scaling$sizes == 0] <- NA
    values
}

# Rows of mean 0 and standard deviation 1; those that do not vary are 0.
scaled_rows <- function(values) {
    centred <- values - rowMeans(values, na.rm = TRUE)
    deviation <- sqrt(rowSums(centred^2, na.rm = TRUE) / pmax(1, rowSums(!is.na(centred)) - 1))
    centred / ifelse(deviation > 0, deviation, 1)
}

# Of every column; missing values count as the mean. The sign is that of the largest part.
first_component <- function(scaled) {
    scaled[is.na(scaled)] <- 0
    axis <- svd(tcrossprod(scaled), nu = 1L, nv = 0L)$u
    as.vector(crossprod(scaled, axis)) * sign(axis[which.max(abs(axis))])
}
