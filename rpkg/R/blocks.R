# Assays, features x cells, are looked at in blocks of cells, so that a file-backed one is never whole
# in memory. What a pass computes does not depend on how the assay is stored or cut.

# What is taken, and for classes of other packages the way to it.
check_table <- function(x, what) {
    if (is(x, "Seurat") || is(x, "MultiAssayExperiment") || inherits(x, c("DGEList", "EList", "ExpressionSet",
        "cell_data_set", "AnnDataR6", "anndata._core.anndata.AnnData", "dist")) || length(dim(x)) != 2L) {
        not_a_table(x, what)
    }
}

not_a_table <- function(x, what) {
    way <- c(
        Seurat = "make it one with as.SingleCellExperiment() of Seurat",
        Assay = "take its counts, as in GetAssayData(x, layer = \"counts\")",
        Assay5 = "take its counts, as in GetAssayData(x, layer = \"counts\")",
        ExpressionSet = "make it one with as(x, \"SummarizedExperiment\")",
        DGEList = "take x$counts with assay.type = \"counts\"",
        EList = "take x$E",
        MultiAssayExperiment = "take one of its experiments, as in x[[1]]",
        dist = "distances are not measurements")
    way <- way[intersect(class(x), names(way))][1L]
    cape_error(what, " is ", one_line(x), "; it must be a matrix (features x cells), a data frame of numbers, ",
        "a SummarizedExperiment or a SingleCellExperiment", if (!is.na(way)) paste0(": ", way))
}

# Numbers, and not something that is stored as numbers: factors, dates, the bits of an integer64.
are_numbers <- function(x) {
    (is.numeric(x) || is.logical(x)) && !inherits(x, "integer64")
}

# The matrix of a data frame, tibble, data.table or DataFrame.
frame_matrix <- function(x, what) {
    columns <- lapply(x, function(column) if (is(column, "Rle")) as.vector(column) else column)
    bad <- !vapply(columns, are_numbers, NA)
    if (any(bad)) {
        kinds <- vapply(columns[bad], function(column) class(column)[1L], "")
        cape_error(what, " has columns that are not numeric: ",
            some_of(paste0(quoted(names(columns)[bad]), " (", kinds, ")")),
            if (any(kinds == "integer64")) "; make them numbers with as.numeric()",
            if (which(bad)[1L] == 1L && sum(bad) == 1L) "; names of features belong into the row names")
    }
    names <- rownames(x)
    if (all(vapply(columns, function(column) length(dim(column)), 0L) == 0L)) {
        x <- matrix(as.double(unlist(columns, use.names = FALSE)), nrow(x), length(columns),
            dimnames = list(NULL, names(columns)))
    } else {
        x <- as.matrix(as.data.frame(x))
    }
    rownames(x) <- names
    x
}

is_frame <- function(x) is.data.frame(x) || is(x, "DataFrame")

# A double matrix, a dgCMatrix, or a DelayedMatrix.
standard_form <- function(x, what) {
    if (is_frame(x)) {
        x <- frame_matrix(x, what)
    }
    if (is.matrix(x)) {
        if (!are_numbers(x)) {
            cape_error(what, " is ", if (is.object(x)) paste0(class(x)[1L]) else typeof(x),
                "; it must be numeric")
        }
        x <- unclass(x)
        storage.mode(x) <- "double"
        return(x)
    }
    if (is(x, "sparseMatrix")) {
        return(as(as(as(x, "CsparseMatrix"), "dMatrix"), "generalMatrix"))
    }
    if (is(x, "Matrix")) {
        return(standard_form(as.matrix(x), what))
    }
    check_table(x, what)
    if (!is(x, "DelayedMatrix")) {
        x <- tryCatch(DelayedArray::DelayedArray(x), error = function(e) not_a_table(x, what))
    }
    type <- tryCatch(BiocGenerics::type(x), error = function(e) not_a_table(x@seed, what))
    if (!type %in% c("double", "integer", "logical")) {
        cape_error(what, " is ", type, "; it must be numeric")
    }
    x
}

# Cells of every block: all of them for a matrix in memory.
cell_blocks <- function(x) {
    n <- ncol(x)
    width <- max(1L, n)
    if (is(x, "DelayedMatrix")) {
        width <- max(1, floor(DelayedArray::getAutoBlockSize() / (8 * max(1, nrow(x)))))
    }
    lapply(seq.int(1L, length.out = ceiling(n / width)), function(b) {
        seq.int((b - 1L) * width + 1L, min(n, b * width))
    })
}

# Rows `rows` (NULL: all) of the cells of a block: a double matrix or a dgCMatrix without names.
take_block <- function(x, rows, cells) {
    whole <- length(cells) == ncol(x)
    if (!is.null(rows) || !whole) {
        x <- x[if (is.null(rows)) TRUE else rows, if (whole) TRUE else cells, drop = FALSE]
    }
    if (is(x, "DelayedMatrix")) {
        x <- as.matrix(x)
        storage.mode(x) <- "double"
    }
    x
}

# log1p of counts scaled to a common library size: the same operations on every stored value, and
# zeros stay zeros.
normalize_block <- function(block, factors) {
    if (is.null(factors)) {
        block
    } else if (is(block, "dgCMatrix")) {
        block@x <- log1p(block@x * rep.int(factors, diff(block@p)))
        block
    } else {
        log1p(block * rep(factors, each = nrow(block)))
    }
}

# Moments and oddities of every feature over all cells.
scan_rows <- function(x, rows = NULL, factors = NULL) {
    state <- scan_new(if (is.null(rows)) nrow(x) else length(rows))
    for (cells in cell_blocks(x)) {
        block <- normalize_block(take_block(x, rows, cells), factors[cells])
        state <- if (is(block, "dgCMatrix")) {
            scan_sparse(state, block@i, block@x, ncol(block))
        } else {
            scan_dense(state, block)
        }
    }
    variance <- scan_variance(state)
    state <- as.data.frame(state[, 1:6, drop = FALSE])
    names(state) <- c("n", "min", "max", "missing", "infinite", "fractional")
    state$variance <- variance
    state$varies <- state$n > 1 & state$max > state$min
    state
}

library_sizes <- function(x) {
    sums <- lapply(cell_blocks(x), function(cells) {
        block <- take_block(x, NULL, cells)
        if (is(block, "dgCMatrix")) cell_sums_sparse(block@p, block@x) else cell_sums_dense(block)
    })
    as.numeric(unlist(sums))
}

# What counts are multiplied by: the user's size factors, which count relative to their mean, or else the library
# size, brought to `target`. Cells without counts stay 0.
cell_factors <- function(sizes, own, target) {
    ifelse(sizes > 0, if (is.null(own)) target / sizes else mean(own[sizes > 0]) / own, 0)
}

# The chosen rows, dense and transformed.
read_rows <- function(x, rows, factors = NULL) {
    blocks <- lapply(cell_blocks(x), function(cells) {
        as.matrix(normalize_block(take_block(x, rows, cells), factors[cells]))
    })
    if (length(blocks) == 1L) blocks[[1L]] else do.call(cbind, blocks)
}
