# The cells that a model reads: those of a matrix in memory as they are, features x cells; of a sparse or file-backed
# assay those that are asked for, when they are, so that it is never dense as a whole.

# Like the matrix of the transformed values of `rows` in all cells, for the glue and for the functions below. A
# feature whose row is NA is missing. factors: as for read_rows(), in which the factor of a cell without values is NA.
# complete: whether all other values are known not to be missing.
stream_cells <- function(x, rows, factors, logarithm, complete) {
    known <- which(!is.na(rows))
    source <- block_source(x, rows[known])
    cells <- replace(seq_len(ncol(x)), which(is.na(factors)), NA_integer_)
    structure(list(read = source$read, n_rows = nrow(source$x), rows = source$rows, places = known,
        n_features = length(rows), cells = cells, factors = factors,
        logarithm = logarithms[[if (is.null(factors)) "none" else logarithm]],
        complete = complete && length(known) > 0L, names = NULL), class = "cape_cells")
}

# The transformed values of these rows: a matrix, or of an assay that is no matrix a stream of its cells.
cells_of <- function(x, rows, factors, logarithm, complete) {
    if (!is.matrix(x)) {
        return(stream_cells(x, rows, factors, logarithm, complete))
    }
    silent <- which(is.na(factors))
    values <- read_rows(x, rows[!is.na(rows)], if (!is.null(factors)) replace(factors, silent, 0), logarithm)
    if (anyNA(rows)) {
        known <- values
        values <- matrix(NA_real_, length(rows), ncol(x))
        values[!is.na(rows), ] <- known
    }
    if (length(silent) > 0L) {
        values[, silent] <- NA
    }
    values
}

#' @export
dim.cape_cells <- function(x) c(x$n_features, length(x$cells))

#' @export
dimnames.cape_cells <- function(x) x$names

#' @export
`[.cape_cells` <- function(x, i, j, drop = FALSE) {
    x$names <- list(x$names[[1L]], x$names[[2L]][j])
    x$cells <- x$cells[j]
    x
}

# With names; a matrix in place, so that it must be ours alone.
with_dimnames <- function(cells, names) {
    if (inherits(cells, "cape_cells")) cells$names <- names else core_set_dimnames(cells, names)
    cells
}

# f() of every cell, from matrices of some of them.
for_each_cell <- function(cells, f) {
    if (is.matrix(cells)) {
        return(f(cells))
    }
    some <- max(1L, 2^21 %/% nrow(cells))
    at <- seq_len(ncol(cells))
    unlist(lapply(unname(split(at, (at - 1L) %/% some)), function(block) f(core_cells_values(cells, block))))
}

# Which cells have a value.
have_values <- function(cells) {
    if (inherits(cells, "cape_cells") && cells$complete) {
        return(!is.na(cells$cells))
    }
    for_each_cell(cells, function(values) colSums(!is.na(values)) > 0)
}
# Which cells have one above 0.
have_counts <- function(cells) for_each_cell(cells, function(values) colSums(values, na.rm = TRUE) > 0)
