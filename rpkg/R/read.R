#' Read a table from a file
#'
#' A table of features in rows and cells or samples in columns, from what Cell Ranger, anndata, MuData, loom and
#' spreadsheets write, with every name as it is in the file: nothing is taken for a number, a logical or a missing value
#' because it looks like one. What cannot be read without a guess is an error that names the file, the place in it
#' and what was found there.
#'
#' @section 10x:
#' A folder of `matrix.mtx`, `features.tsv` (or `genes.tsv`) and `barcodes.tsv`, plain or compressed, also with a prefix
#' of their own as in GEO (`GSM1_matrix.mtx.gz`), or an `.h5` of Cell Ranger 2 or 3 and later. Row names are the symbols;
#' one that is empty is replaced by its id, one that is there twice gets its id as a suffix. `rowData(x)` has `ID`,
#' `Symbol` and `Type`, and what else an `.h5` has of features. A line of column names in a folder's files is left out,
#' which a message says. Features of other types than genes (antibodies, guides, peaks) are no genes and do not
#' count in library sizes: they become `altExp(x, type)`, which a message says.
#'
#' @section anndata and MuData:
#' `.h5ad` of anndata 0.5 to 0.11 (packages rhdf5 and, for dense matrices, HDF5Array). `X` is assay `"counts"` if it
#' holds whole numbers and none below 0, `"logcounts"` if none is below 0 and all are below 30 or `uns` has `log1p`, else
#' `"values"`, which [cape_fit()] uses when its `assay.type` says so; a message tells. Layers are assays by their
#' names. Values of `raw` are an assay if its features are those of `X`, else `altExp(x, "raw")`. Sparse matrices are read
#' sparse; dense ones stay in the file, and are read when they are needed. `obs` and `var` are `colData(x)` and
#' `rowData(x)`, categories factors with their levels in the order of the file, `obsm` the `reducedDims(x)`, `varm` matrices
#' in `rowData(x)`, sparse `obsp` and `varp` `colPairs(x)` and `rowPairs(x)`, `uns` `metadata(x)`. A message names what is
#' left out.
#'
#' An `.h5mu` holds several of these: `experiment` chooses one, without what the file says of all together.
#'
#' @section loom:
#' Versions 2 and 3 (rhdf5, HDF5Array). `matrix` is named as `X` above, layers by their names; both stay in the file. Row names
#' are `Gene`, told apart by `Accession`, column names `CellID`; matrices among the attributes of columns are
#' `reducedDims(x)`, graphs `colPairs(x)` and `rowPairs(x)`.
#'
#' @section Text files:
#' Separated by commas, semicolons or tabs, as the first two lines show; with decimal points, or, between
#' semicolons or tabs, decimal commas; in UTF-8 with or without a byte order mark, or in UTF-16 with one; plain or
#' compressed. The first line names the samples and the first column the features, or the other way round with
#' `features = "columns"`; as nothing in a file tells the two apart, a message says which was taken for which. Lines
#' without text above the first are left out. Empty fields, `NA`, `N/A`, `#N/A` and
#' `NaN` are missing values. Rows and columns without a name and a value, as spreadsheets leave them, are left out.
#'
#' @param path a 10x folder; an `.h5ad`, `.h5mu`, `.loom` or `.h5` file, of which what is in it tells the kind; a `.csv`,
#'   `.tsv`, `.tab` or `.txt` file, also compressed (`.gz`, `.bz2`, `.xz`); or an `.rds` file, which is returned as
#'   [readRDS()] gives it.
#' @param assay.type name of the assay that a text file, `X` of anndata or `matrix` of loom becomes: `"counts"` are
#'   normalised by [cape_fit()], `"values"` and `"logcounts"` are used as they are. `NULL`: `"values"` of a text file, else
#'   by the values, see below. That of 10x is `"counts"`.
#' @param features where a text file has its features: in `"rows"`, or in `"columns"`, with a sample in each row.
#' @param experiment of a file that holds several tables the name of one: of an `.h5mu` the modality, of an `.h5` of Cell
#'   Ranger 2 the genome, of an `.rds` with a MultiAssayExperiment (QFeatures is one) the experiment. Such files are errors
#'   without it, which tell the names; an `.rds` is given whole.
#' @return A SingleCellExperiment, features in rows; what an `.rds` file holds as it is.
#' @examples
#' file <- tempfile(fileext = ".csv")
#' writeLines(c("gene;s1;s2;s3", "TP53;1,5;2;0,25", "NA;0;1,75;3"), file)
#' SummarizedExperiment::assay(cape_read(file))
#' @export
cape_read <- function(path, assay.type = NULL, features = c("rows", "columns"), experiment = NULL) {
    path <- path.expand(check_string(path, "path"))
    if (!is.null(assay.type)) check_string(assay.type, "assay.type")
    if (!is.null(experiment)) check_string(experiment, "experiment")
    features <- one_of(features, c("rows", "columns"), "features")
    ends_in <- function(endings) grepl(paste0("\\.(", endings, ")$"), path, ignore.case = TRUE)
    if (!file.exists(path)) {
        cape_error("'path' is ", quoted(path), "; there is no such file or folder")
    }
    kind <- if (dir.exists(path)) "10x"
        else if (ends_in("(csv|tsv|tab|txt)(\\.(gz|bz2|xz))?")) "text"
        else if (ends_in("rds")) "rds"
        else if (ends_in("h5ad|h5mu|h5|hdf5|loom")) "hdf5"
        else cape_error("'path' is ", quoted(path), "; it must be a 10x folder (of matrix.mtx), an .h5 of 10x, an ",
            ".h5ad, .h5mu, .loom or .rds, or a .csv, .tsv, .tab or .txt file, which may be compressed (.gz, .bz2, .xz)")
    if (features == "columns" && kind != "text") {
        cape_error("'features' is \"columns\", which is for text files; ", quoted(path), " is none")
    }
    if (!is.null(experiment) && kind %in% c("10x", "text")) {
        cape_error("'experiment' is ", quoted(experiment), "; ", quoted(path), " has but one")
    }
    switch(kind,
        `10x` = read_10x(path),
        text = text_experiment(path, if (is.null(assay.type)) "values" else assay.type, features),
        rds = read_rds(path, experiment),
        hdf5 = with_h5(path, function(h5) read_hdf5(h5, assay.type, experiment)))
}

# What a file is, it tells by what is in it.
read_hdf5 <- function(h5, assay.type, experiment) {
    genomes <- genomes_10x(h5)
    kind <- if (h5_is_group(h5, "mod")) "h5mu"
        else if (h5_has(h5, "obs") && h5_has(h5, "var")) "h5ad"
        else if (length(genomes) > 0L) "10x"
        else if (h5_has(h5, "matrix") && h5_is_group(h5, "row_attrs") && h5_is_group(h5, "col_attrs")) "loom"
        else cape_error(quoted(h5$path), " has ", some_of(quoted(h5_names(h5))), " at its top, so it is none of the ",
            "files that are known: an .h5ad has 'obs' and 'var', an .h5mu 'mod', an .h5 of 10x 'matrix' or the names of ",
            "genomes, a .loom 'matrix', 'row_attrs' and 'col_attrs'")
    if (!is.null(experiment) && !(kind == "h5mu" || length(genomes) > 0L && genomes[1L] != "matrix")) {
        cape_error("'experiment' is ", quoted(experiment), "; ", quoted(h5$path), " has but one")
    }
    switch(kind,
        h5mu = read_h5mu(h5, assay.type, experiment),
        h5ad = read_h5ad(h5, assay.type),
        `10x` = read_10x_h5(h5, genomes, experiment),
        loom = read_loom(h5, assay.type))
}

# The name of an assay that the file has none for: by its values, of which a block of cells is read at a time.
name_assay <- function(h5, at, values, assay.type, taken = NULL, logged = FALSE, of = NULL) {
    seen <- if (is.null(assay.type)) kind_of_values(values, logged) else list(name = assay.type)
    name <- seen$name
    if (name %in% taken) {
        if (!is.null(assay.type)) {
            cape_error("'assay.type' is ", quoted(name), ", which ", quoted(h5$path), " has already")
        }
        name <- utils::tail(make.unique(c(taken, basename(at))), 1L)
    }
    message(quoted(basename(h5$path)), ": ", at, seen$what, " is assay ", quoted(name), of,
        if (is(values, "DelayedMatrix")) "; it is dense and stays in the file", ".")
    name
}

kind_of_values <- function(values, logged) {
    look <- function(x) {
        x <- x[!is.na(x)]
        c(low = min(x, Inf), high = max(x, -Inf), fractions = sum(x != round(x)))
    }
    seen <- if (is(values, "sparseMatrix")) {
        cbind(look(values@x), look(if (length(values@x) < prod(dim(values))) 0 else numeric()))
    } else {
        vapply(cell_blocks(values), function(cells) look(take_block(values, cells)), numeric(3L))
    }
    low <- min(seen["low", ], Inf)
    high <- max(seen["high", ], -Inf)
    if (low > high) {
        return(list(name = "values", what = " holds no numbers and"))
    }
    range <- paste(" from", signif(low, 3L), "to", signif(high, 3L))
    if (low >= 0 && is.finite(high) && sum(seen["fractions", ]) == 0) {
        list(name = "counts", what = paste0(" holds whole numbers", range, ", as counts do, and"))
    } else if (low >= 0 && (logged || high < 30)) {
        list(name = "logcounts", what = paste0(" holds numbers", range, ", as logarithms of counts do, and"))
    } else {
        list(name = "values", what = paste0(" holds numbers", range, " and"))
    }
}

# One that holds several tables gives one of them.
read_rds <- function(path, experiment) {
    x <- reading(path, readRDS(path))
    if (is.null(experiment)) {
        return(x)
    }
    if (!is(x, "MultiAssayExperiment")) {
        cape_error("'experiment' is ", quoted(experiment), "; ", quoted(path), " holds ", one_line(x),
            ", not a MultiAssayExperiment")
    }
    x[[one_of(experiment, names(x), "experiment")]]
}

# What R says of a file that it cannot read, warnings of files cut short included, with the file's name.
reading <- function(path, code, hint = NULL) {
    failed <- function(e) {
        if (inherits(e, "capeError")) stop(e)
        cape_error(quoted(path), " cannot be read: ", conditionMessage(e), hint)
    }
    tryCatch(code, error = failed, warning = failed)
}
