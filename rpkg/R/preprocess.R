#' From counts to a table for learning
#'
#' Drops cells with few detected features and then features detected in few cells, scales every cell to
#' a common library size (over all features, kept or not), and takes log1p. Where `x` has `sizeFactors()` and no `target.sum` is given, cells are
#' divided by these (with a mean of 1) and log2(x + 1) is taken, as scuttle's `logNormCounts()` does. A sparse
#' assay stays sparse, a delayed one delayed. [cape_fit()] does the normalisation by itself, without the filters.
#'
#' @param x a SummarizedExperiment, SingleCellExperiment, or a matrix of counts, features x cells.
#' @param ... not used.
#' @param min.features,min.cells drop cells with fewer detected features, and features detected in fewer
#'   cells.
#' @param target.sum library size to which cells are scaled.
#' @param n.hvgs keep this many most variable features; `NULL` keeps all.
#' @param batch the batch of every cell, or the name of a column of `colData(x)`: the most variable features are
#'   then those of largest variance within batches.
#' @param assay.type name of the assay with the counts.
#' @param name of the new assay.
#' @return `x` with the kept features and cells, and the new assay; a matrix of the kept features and
#' cells if `x` is one.
#' @examples
#' counts <- cape_simulate_data(cape_simulate_dag(20, seed = 1), 50, counts = TRUE, seed = 2)
#' sce <- SingleCellExperiment::SingleCellExperiment(list(counts = counts))
#' cape_preprocess(sce, min.features = 5, n.hvgs = 10)
#' @export
cape_preprocess <- function(x, ..., min.features = 200L, min.cells = 3L, target.sum = 1e4,
                            n.hvgs = NULL, assay.type = "counts", name = "logcounts",
                            batch = NULL) {
    if (...length() > 0L) {
        cape_error("cape_preprocess() has no such argument: ", some_of(quoted(...names())))
    }
    check_number(min.features, "min.features", 0)
    check_number(min.cells, "min.cells", 0)
    check_number(target.sum, "target.sum", .Machine$double.xmin)
    experiment <- is(x, "SummarizedExperiment")
    batch <- per_cell(x, batch, "batch")
    if (anyNA(batch)) {
        cape_error("'batch' is missing for ", count_of(sum(is.na(batch)), "cell"))
    }
    source <- choose_assay(x, if (experiment) assay.type else "counts", verbose = FALSE)
    values <- source$values
    names <- if (is.null(rownames(x))) paste0("feature", seq_len(nrow(x)))
        else check_encoding(rownames(x), "row names of 'x'")
    cell_names <- if (is.null(colnames(x))) paste0("cell", seq_len(ncol(x))) else as.vector(colnames(x))
    scan <- scan_rows(values)
    check_finite(scan, source, names, cell_names, DagParam())
    negative <- which(scan$min < 0)
    if (length(negative) > 0L) {
        cape_error(source$what, " has negative values in ", count_of(length(negative), "feature"), " (",
            some_of(quoted(names[negative])), "); counts are not negative")
    }

    sums <- cell_sums(values)
    cells <- which(sums$detected >= min.features)
    rows <- which(scan_rows(values[, cells, drop = FALSE])$detected >= min.cells)
    if (length(cells) < 2L || length(rows) < 2L) {
        cape_error(count_of(length(cells), "cell"), " with at least ", min.features,
            " detected features and ", count_of(length(rows), "feature"), " detected in at least ",
            min.cells, " of them are left; 2 of each are needed. Lower min.features or min.cells")
    }
    values <- values[rows, cells, drop = FALSE]
    sizes <- replace(sums$size, setdiff(seq_along(sums$size), cells), 0) # of cells that are left out
    own <- if (missing(target.sum)) own_size_factors(x, sizes)
    factors <- with_features(NULL, core_cell_factors(sizes, own, target.sum), cell_names)[cells]
    if (!is.null(n.hvgs)) {
        check_number(n.hvgs, "n.hvgs", 2, length(rows), integer = TRUE)
        keep <- core_largest_variances(scan_rows(values, NULL, factors, batch[cells])$variance, n.hvgs)
        values <- values[keep, , drop = FALSE]
        rows <- rows[keep]
    }
    logarithm <- if (is.null(own)) "natural" else "binary"
    if (is(values, "DelayedMatrix")) { # the same operations, when they are asked for
        values <- log1p(BiocGenerics::t(BiocGenerics::t(values) * factors))
        if (logarithm == "binary") values <- values / log(2)
    } else if (is(values, "dgCMatrix")) {
        values@x <- core_transform_stored(values, factors, logarithms[[logarithm]])
    } else {
        dense <- read_rows(values, NULL, factors, logarithm)
        dimnames(dense) <- dimnames(values)
        values <- dense
    }
    if (!experiment) {
        return(values)
    }
    x <- x[rows, cells]
    SummarizedExperiment::assay(x, name, withDimnames = FALSE) <- values
    x
}
