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
        if (is.object(x)) x <- unclass(x)
        if (!is.double(x)) storage.mode(x) <- "double" # which copies in any case
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

# The numbers of these cells, cut into blocks: one for a matrix in memory.
cell_blocks <- function(x, cells = seq_len(ncol(x))) {
    n <- length(cells)
    width <- max(1L, n)
    if (is(x, "DelayedMatrix")) {
        width <- max(1, floor(DelayedArray::getAutoBlockSize() / (8 * max(1, nrow(x)))))
    }
    lapply(seq.int(1L, length.out = ceiling(n / width)), function(b) {
        cells[seq.int((b - 1L) * width + 1L, min(n, b * width))]
    })
}

# The cells of a block: a double matrix or a dgCMatrix.
take_block <- function(x, cells) {
    if (!identical(as.integer(cells), seq_len(ncol(x)))) { # they may be in another order, or some twice
        x <- x[, cells, drop = FALSE]
    }
    if (is(x, "DelayedMatrix")) {
        x <- as.matrix(x)
        storage.mode(x) <- "double"
    }
    x
}

# What the core needs to take an assay in blocks. Of a delayed one the rows are chosen where it is read, of
# others where they are looked at.
block_source <- function(x, rows = NULL) {
    if (is(x, "DelayedMatrix") && !is.null(rows)) {
        x <- x[rows, , drop = FALSE]
        rows <- NULL
    }
    list(x = x, rows = rows, read = function(cells) take_block(x, cells))
}

# Numbers of the core: log(1 + x).
logarithms <- c(none = 0L, natural = 1L, binary = 2L)

# Moments and oddities of the features `rows` (NULL: all) over all cells, of counts after their transformation if
# there are factors; variances within batches, if there are any.
scan_rows <- function(x, rows = NULL, factors = NULL, batch = NULL) {
    source <- block_source(x, rows)
    groups <- if (is.null(batch)) list(seq_len(ncol(x))) else unname(split(seq_len(ncol(x)), as.character(batch)))
    scan <- core_scan(nrow(source$x), source$rows, lapply(groups, cell_blocks, x = source$x), source$read, factors,
        logarithms[[if (is.null(factors)) "none" else "natural"]])
    scan <- as.data.frame(scan)
    names(scan) <- c("n", "detected", "missing", "infinite", "fractional", "min", "max", "variance")
    scan$varies <- scan$n > 1 & scan$max > scan$min
    scan
}

# Library sizes and numbers of detected features of all cells.
cell_sums <- function(x) {
    source <- block_source(x)
    sums <- as.data.frame(core_cell_sums(ncol(x), cell_blocks(x), source$read))
    names(sums) <- c("size", "detected")
    sums
}

# The chosen rows, dense and transformed.
read_rows <- function(x, rows, factors = NULL, logarithm = "natural") {
    if (!is.null(rows) && length(rows) == 0L) {
        return(matrix(0, 0L, ncol(x)))
    }
    source <- block_source(x, rows)
    core_transform(nrow(source$x), ncol(x), source$rows, cell_blocks(source$x), source$read, factors,
        logarithms[[if (is.null(factors)) "none" else logarithm]])
}
