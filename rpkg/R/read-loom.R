# Files of loom, versions 2 and 3: a dense matrix, features x cells, with attributes and graphs of both.

read_loom <- function(h5, assay.type) {
    about <- c(h5_attributes(h5, c("LOOM_SPEC_VERSION", "CreationDate", "last_modified")), loom_attributes(h5, "attrs"))
    version <- about$LOOM_SPEC_VERSION
    if (!is.null(version) && !grepl("^[23]\\.", version)) {
        cape_error(quoted(h5$path), " is of version ", version, " of loom; 2 and 3 are known")
    }
    main <- h5_matrix(h5, "matrix", in_file = TRUE)
    layers <- h5_names(h5, "layers")
    assays <- lapply(stats::setNames(paste0("layers/", layers, recycle0 = TRUE), layers), function(at) {
        x <- h5_matrix(h5, at, in_file = TRUE)
        if (!identical(dim(x), dim(main))) {
            h5_fail(h5, at, "is ", nrow(x), " x ", ncol(x), "; 'matrix' is ", nrow(main), " x ", ncol(main))
        }
        x
    })
    assays <- c(stats::setNames(list(main), name_assay(h5, "matrix", main, assay.type, layers)), assays)

    rows <- loom_attributes(h5, "row_attrs", nrow(main))
    columns <- loom_attributes(h5, "col_attrs", ncol(main))
    symbols <- first_of(rows, c("Gene", "var_names", "rownames", "Symbol", "Accession"))
    if (!is.null(symbols)) {
        symbols <- as_ids(symbols, "row_attrs")
        ids <- if (is.null(rows$Accession)) symbols else as_ids(rows$Accession, "row_attrs/Accession")
        symbols <- symbols_10x(list(ids, symbols), h5$path)
    }
    cells <- first_of(columns, c("CellID", "obs_names", "colnames", "Cell", "Barcode"))
    wide <- vapply(columns, is.matrix, NA) # coordinates
    x <- SingleCellExperiment::SingleCellExperiment(assays, reducedDims = columns[wide],
        rowData = as_frame(rows, nrow(main)), colData = as_frame(columns[!wide], ncol(main)))
    dimnames(x) <- list(symbols, if (!is.null(cells)) as_ids(cells, "col_attrs"))
    for (name in h5_names(h5, "row_graphs")) {
        SingleCellExperiment::rowPair(x, name) <- loom_graph(h5, paste0("row_graphs/", name), nrow(x))
    }
    for (name in h5_names(h5, "col_graphs")) {
        SingleCellExperiment::colPair(x, name) <- loom_graph(h5, paste0("col_graphs/", name), ncol(x))
    }
    S4Vectors::metadata(x) <- about
    x
}

# Of `n` rows or columns, with a value or a row of a matrix for each; any number without `n`.
loom_attributes <- function(h5, group, n = NULL) {
    names <- h5_names(h5, group)
    values <- lapply(stats::setNames(paste0(group, "/", names, recycle0 = TRUE), names), function(at) or_leave(h5, at, {
        x <- h5_value(h5, at)
        if (is.matrix(x)) x <- if (nrow(x) == 1L) x[1L, ] else t(x)
        if (length(dim(x)) > 2L || is.list(x) || !is.null(n) && NROW(x) != n) {
            h5_fail(h5, at, "is not one value or more for each of ", n)
        }
        x
    }))
    values[!vapply(values, is.null, NA)]
}

first_of <- function(values, names) values[[intersect(names, names(values))[1L]]]

# Edges from a to b, counted from 0, of weight w.
loom_graph <- function(h5, at, n) or_leave(h5, at, {
    part <- function(name) as.numeric(h5_value(h5, paste0(at, "/", name)))
    from <- part("a")
    to <- part("b")
    if (length(from) != length(to) || any(c(from, to) < 0 | c(from, to) >= n)) {
        h5_fail(h5, at, "has ends that are not among the ", n)
    }
    S4Vectors::SelfHits(from + 1, to + 1, nnode = n, x = part("w"))
})
