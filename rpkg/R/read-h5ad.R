# Files of anndata (0.5 to 0.11), and of MuData, which has several of it.

# `root` is where in the file it is.
read_h5ad <- function(h5, assay.type, root = "") {
    inside <- function(..., recycle0 = FALSE) paste0(root, ..., recycle0 = recycle0)
    uns <- if (h5_has(h5, inside("uns"))) read_element(h5, inside("uns")) else list()
    obs <- read_frame(h5, inside("obs"), uns)
    var <- read_frame(h5, inside("var"), uns)
    assay <- function(at, features) {
        turned <- h5_matrix(h5, at, in_file = TRUE)
        x <- BiocGenerics::t(turned)
        if (nrow(x) != features || ncol(x) != nrow(obs)) {
            h5_fail(h5, at, "is ", ncol(x), " x ", nrow(x), "; by the tables beside it it must be ", nrow(obs), " x ",
                features)
        }
        x
    }
    layers <- h5_names(h5, inside("layers"))
    assays <- lapply(stats::setNames(inside("layers/", layers, recycle0 = TRUE), layers), assay, nrow(var))
    logged <- "log1p" %in% names(uns)
    if (has_values(h5, inside("X"))) {
        main <- assay(inside("X"), nrow(var))
        name <- name_assay(h5, inside("X"), main, assay.type, layers, logged)
        assays <- c(stats::setNames(list(main), name), assays)
    } else if (!is.null(assay.type)) {
        cape_error("'assay.type' is ", quoted(assay.type), ", a name for X, which ", quoted(h5$path), " does not have")
    }

    raw <- NULL
    raw_at <- inside(if (h5_has(h5, inside("raw.X"))) c("raw.X", "raw.var") else c("raw/X", "raw/var"))
    if (has_values(h5, raw_at[1L])) {
        raw_var <- read_frame(h5, raw_at[2L], uns)
        values <- assay(raw_at[1L], nrow(raw_var))
        same <- identical(rownames(raw_var), rownames(var))
        name <- name_assay(h5, raw_at[1L], values, NULL, if (same) names(assays), logged,
            if (!same) paste0(" of altExp(x, \"raw\"), which has ", count_of(nrow(raw_var), "feature")))
        if (same) {
            assays <- c(assays, stats::setNames(list(values), name))
        } else {
            raw <- SingleCellExperiment::SingleCellExperiment(stats::setNames(list(values), name), rowData = raw_var,
                colData = obs[, 0L])
        }
    }
    if (length(assays) == 0L && is.null(raw)) {
        cape_error(quoted(h5$path), " has neither ", inside("X"), " nor layers: there are no values in it")
    }

    x <- SingleCellExperiment::SingleCellExperiment(unname(assays), rowData = var, colData = obs)
    SummarizedExperiment::assayNames(x) <- names(assays)
    if (!is.null(raw)) SingleCellExperiment::altExp(x, "raw") <- raw
    SingleCellExperiment::reducedDims(x) <- read_matrices(h5, inside("obsm"), ncol(x))
    for (name in h5_names(h5, inside("obsp"))) {
        SingleCellExperiment::colPair(x, name) <- read_pairs(h5, inside("obsp/", name), ncol(x))
    }
    for (name in h5_names(h5, inside("varp"))) {
        SingleCellExperiment::rowPair(x, name) <- read_pairs(h5, inside("varp/", name), nrow(x))
    }
    positions <- read_matrices(h5, inside("varm"), nrow(x))
    for (name in names(positions)) {
        if (name %in% names(var)) leave(h5, inside("varm/", name), "'var' has a column of this name")
        else SummarizedExperiment::rowData(x)[[name]] <- positions[[name]]
    }
    for (name in h5_names(h5, inside("raw/varm"))) leave(h5, inside("raw/varm/", name))
    S4Vectors::metadata(x) <- uns
    x
}

# One of the modalities of a file of MuData.
read_h5mu <- function(h5, assay.type, experiment) {
    modalities <- h5_names(h5, "mod")
    if (is.null(experiment)) {
        cape_error(quoted(h5$path), " has ", count_of(length(modalities), "table"), ": ",
            some_of(quoted(modalities), 20L), "; choose one, as in cape_read(path, experiment = ",
            dQuote(modalities[1L], FALSE), ")")
    }
    x <- read_h5ad(h5, assay.type, paste0("mod/", one_of(experiment, modalities, "experiment"), "/"))
    message(quoted(basename(h5$path)), ": of its tables (", some_of(quoted(modalities)), ") ", quoted(experiment),
        " is read; what it says of all of them together is left out.")
    x
}

has_values <- function(h5, at) h5_has(h5, at) && !identical(h5_attribute(h5, at, "encoding-type"), "null")

# Tables ------------------------------------------------------------------------------------------

# Up to anndata 0.6 the tables of obs and var are arrays of records, and the categories of their columns are in uns.
read_frame <- function(h5, at, uns = list()) {
    if (!h5_has(h5, at)) {
        h5_fail(h5, at, "is not there; every file of anndata has it")
    }
    if (h5_is_group(h5, at)) {
        index <- h5_attribute(h5, at, "_index")
        if (is.null(index)) index <- intersect(c("_index", "index"), h5_names(h5, at))[1L]
        order <- h5_attribute(h5, at, "column-order")
        columns <- setdiff(if (length(order) > 0L) order else h5_names(h5, at), c(index, "__categories"))
        names <- as_ids(read_element(h5, paste0(at, "/", index)), paste0(at, "/", index))
        columns <- lapply(stats::setNames(columns, columns), function(name) {
            or_leave(h5, paste0(at, "/", name), read_column(h5, at, name, length(names)))
        })
    } else {
        columns <- h5_value(h5, at)
        index <- intersect(c("index", "_index"), names(columns))[1L]
        if (!is.list(columns) || is.na(index)) {
            h5_fail(h5, at, "is not a table of anndata: it has no index")
        }
        names <- as_ids(columns[[index]], at)
        columns <- columns[setdiff(names(columns), index)]
        for (name in names(columns)) {
            categories <- uns[[paste0(name, "_categories")]]
            if (is.numeric(columns[[name]]) && !is.null(categories)) {
                columns[[name]] <- as_factor(h5, paste0(at, "/", name), columns[[name]], categories)
            }
        }
    }
    bad <- which(is.na(names) | !nzchar(names))
    if (length(bad) > 0L) {
        h5_fail(h5, at, "has no name for ", some_of(bad))
    }
    table <- as_frame(columns[!vapply(columns, is.null, NA)], length(names))
    rownames(table) <- names
    table
}

as_frame <- function(columns, n) {
    table <- S4Vectors::make_zero_col_DFrame(n)
    for (name in names(columns)) table[[name]] <- columns[[name]]
    table
}

read_column <- function(h5, table, name, n) {
    at <- paste0(table, "/", name)
    categories <- paste0(table, "/__categories/", name) # of anndata 0.7
    x <- if (h5_has(h5, categories)) as_factor(h5, at, h5_value(h5, at), h5_value(h5, categories))
        else read_element(h5, at)
    if (NROW(x) != n || is.list(x) && !is_table(x)) {
        h5_fail(h5, at, "has ", NROW(x), " values for ", n, " rows")
    }
    x
}

# Codes count from 0; -1 is a missing value. Levels are in the order of the file.
as_factor <- function(h5, at, codes, categories) {
    if (length(codes) > 0L && (!is.numeric(codes) || min(codes) < -1 || max(codes) >= length(categories))) {
        h5_fail(h5, at, "has codes of categories that are not there")
    }
    factor(as_ids(categories, at)[replace(codes, codes < 0, NA) + 1L], unique(as_ids(categories, at)))
}

# Anything that anndata writes: arrays with their dimensions as it has them.
read_element <- function(h5, at) {
    turned <- function(x) if (length(dim(x)) > 1L) aperm(x) else x
    if (!h5_is_group(h5, at)) {
        x <- h5_value(h5, at)
        return(if (is.list(x)) lapply(x, turned) else turned(x))
    }
    inside <- paste0(at, "/", h5_names(h5, at), recycle0 = TRUE)
    encoding <- h5_attribute(h5, at, "encoding-type")
    if (is.null(encoding)) {
        encoding <- if (is.null(h5_attribute(h5, at, "h5sparse_format"))) "dict" else "csr_matrix"
    }
    part <- function(name) h5_value(h5, paste0(at, "/", name))
    switch(encoding,
        categorical = as_factor(h5, at, part("codes"), part("categories")),
        `nullable-integer` = , `nullable-boolean` = , `nullable-string-array` =
            replace(part("values"), as.logical(part("mask")), NA),
        csr_matrix = , csc_matrix = h5_sparse(h5, at),
        dataframe = read_frame(h5, at),
        dict = {
            elements <- lapply(stats::setNames(inside, basename(inside)), function(at) {
                or_leave(h5, at, read_element(h5, at))
            })
            elements[!vapply(elements, is.null, NA)]
        },
        h5_fail(h5, at, "of the encoding ", quoted(encoding)))
}

# Matrices with a row for each of n cells or features.
read_matrices <- function(h5, at, n) {
    if (!h5_has(h5, at)) {
        return(list())
    }
    if (!h5_is_group(h5, at)) { # an array of records, up to anndata 0.6
        return(lapply(h5_value(h5, at), function(x) if (is.matrix(x)) t(x) else matrix(x)))
    }
    inside <- stats::setNames(paste0(at, "/", h5_names(h5, at), recycle0 = TRUE), h5_names(h5, at))
    matrices <- lapply(inside, function(at) or_leave(h5, at, {
        x <- read_element(h5, at)
        if (length(dim(x)) != 2L || nrow(x) != n) {
            h5_fail(h5, at, "is no matrix of ", n, " rows")
        }
        x
    }))
    matrices[!vapply(matrices, is.null, NA)]
}

# A graph of cells or features; a dense one is not read, as it may be larger than all the rest.
read_pairs <- function(h5, at, n) or_leave(h5, at, {
    if (!h5_is_group(h5, at)) {
        h5_fail(h5, at, "a dense matrix")
    }
    edges <- as(h5_sparse(h5, at), "TsparseMatrix")
    if (!identical(dim(edges), c(n, n))) {
        h5_fail(h5, at, "is ", nrow(edges), " x ", ncol(edges))
    }
    S4Vectors::SelfHits(edges@i + 1L, edges@j + 1L, nnode = n, x = edges@x)
})
