# What Cell Ranger writes: folders of three files, and HDF5 files of the versions 2 and 3.

read_10x <- function(folder) {
    matrix <- file_10x(folder, "matrix.mtx")
    prefix <- sub("matrix\\.mtx(\\.[a-z0-9]+)?$", "", basename(matrix))
    features_file <- file_10x(folder, c("features.tsv", "genes.tsv"), prefix)
    barcodes_file <- file_10x(folder, "barcodes.tsv", prefix)
    counts <- reading(matrix, {
        as(as(as(Matrix::readMM(matrix), "CsparseMatrix"), "dMatrix"), "generalMatrix")
    })
    features <- fields_10x(features_file, nrow(counts), matrix, "rows")
    barcodes <- fields_10x(barcodes_file, ncol(counts), matrix, "columns")
    column <- function(i) if (length(features) >= i) features[[i]] else features[[1L]]
    types <- if (length(features) >= 3L) features[[3L]] else rep("Gene Expression", nrow(counts))
    experiment_10x(counts, S4Vectors::DataFrame(ID = column(1L), Symbol = column(2L), Type = types), barcodes[[1L]],
        features_file)
}

# Of a file of version 3 (`genomes` is "matrix" then) or 2, which has a group for every genome.
read_10x_h5 <- function(h5, genomes, experiment) {
    if (length(genomes) > 1L && is.null(experiment)) {
        cape_error(quoted(h5$path), " has the counts of ", length(genomes), " genomes: ", some_of(quoted(genomes)),
            "; choose one, as in cape_read(path, experiment = ", dQuote(genomes[1L], FALSE), ")")
    }
    genome <- if (is.null(experiment)) genomes else one_of(experiment, genomes, "experiment")
    read <- function(name, n) {
        x <- h5_value(h5, paste0(genome, "/", name))
        if (length(x) != n) {
            h5_fail(h5, paste0(genome, "/", name), "has ", count_of(length(x), "value"),
                "; by 'shape' it must have ", n)
        }
        x
    }
    size <- read("shape", 2L)
    counts <- h5_columns(h5, genome, size)
    in_features <- setdiff(h5_names(h5, paste0(genome, "/features")), c("_all_tag_keys", "id", "name", "feature_type"))
    about <- if (h5_is_group(h5, paste0(genome, "/features"))) {
        data <- S4Vectors::DataFrame(ID = read("features/id", size[1L]), Symbol = read("features/name", size[1L]),
            Type = read("features/feature_type", size[1L]))
        for (name in in_features) {
            data[[name]] <- or_leave(h5, paste0(genome, "/features/", name), read(paste0("features/", name), size[1L]))
        }
        data
    } else {
        S4Vectors::DataFrame(ID = read("genes", size[1L]), Symbol = read("gene_names", size[1L]),
            Type = rep("Gene Expression", size[1L]), genome = rep(genome, size[1L]))
    }
    x <- experiment_10x(counts, about, read("barcodes", size[2L]), h5$path)
    S4Vectors::metadata(x) <- h5_attributes(h5, c("chemistry_description", "library_ids", "original_gem_groups"))
    x
}

genomes_10x <- function(h5) {
    parts <- c("barcodes", "data", "indices", "indptr", "shape")
    Filter(function(name) all(parts %in% h5_names(h5, name)), h5_names(h5))
}

# `features` has ID, Symbol and Type.
experiment_10x <- function(counts, features, barcodes, file) {
    dimnames(counts) <- list(symbols_10x(list(features$ID, features$Symbol), file), barcodes)
    types <- features$Type
    x <- SingleCellExperiment::SingleCellExperiment(list(counts = counts), rowData = features)
    # A third column may be anything; Cell Ranger's says what is a gene.
    if (length(unique(types)) == 1L || !"Gene Expression" %in% types) {
        return(x)
    }
    others <- setdiff(types, "Gene Expression")
    message(quoted(basename(file)), " has features of ", 1L + length(others), " types: ",
        sum(types == "Gene Expression"), " of Gene Expression are the table; ",
        paste0(vapply(others, function(type) sum(types == type), 0L), " of ", others, collapse = ", "),
        if (length(others) == 1L) " are in altExp()." else " are in altExps().")
    main <- x[types == "Gene Expression", ]
    SingleCellExperiment::altExps(main) <- stats::setNames(lapply(others, function(type) x[types == type, ]), others)
    main
}

# The one file of that name in the folder, compressed or not; without a prefix rather than with one.
file_10x <- function(folder, names, prefix = NULL) {
    known <- paste0("(", paste(gsub(".", "\\.", names, fixed = TRUE), collapse = "|"), ")(\\.(gz|bz2|xz))?$")
    found <- grep(paste0("(^|[._-])", known), list.files(folder), value = TRUE)
    if (is.null(prefix)) {
        plain <- grep(paste0("^", known), found, value = TRUE)
        if (length(plain) > 0L) found <- plain
    } else {
        found <- found[sub(known, "", found) == prefix]
    }
    if (length(found) == 0L) {
        cape_error("there is no ", paste0(prefix, names, collapse = " or "), " (or compressed) in ", quoted(folder))
    }
    if (length(found) > 1L) {
        cape_error(quoted(folder), " has several tables: ", some_of(quoted(found)), "; leave one of them in it")
    }
    file.path(folder, found)
}

# The columns of a file with a line for each of the matrix's rows or columns, and perhaps a line of column names.
fields_10x <- function(path, n, matrix, what) {
    lines <- text_lines(path)
    if (length(lines) == n + 1L && is_header(lines[1L])) {
        message(quoted(basename(path)), " has ", n + 1L, " lines, the matrix ", n, " ", what,
            ": its first line (", quoted(lines[1L]), ") is taken for column names.")
        lines <- lines[-1L]
    } else if (length(lines) != n) {
        cape_error(quoted(path), " has ", count_of(length(lines), "line"), "; it must have one for each of the ",
            n, " ", what, " of ", quoted(basename(matrix)))
    }
    fields <- lapply(strsplit(lines, "\t", fixed = TRUE), function(line) if (length(line) == 0L) "" else line)
    at_least <- function(i) vapply(fields, function(line) if (length(line) < i) "" else line[i], "")
    lapply(seq_len(min(3L, max(lengths(fields)))), at_least)
}

# A line too many is column names when it says so, and otherwise belongs to another matrix.
is_header <- function(line) {
    words <- gsub("[ ._\"-]", "", tolower(strsplit(line, "\t", fixed = TRUE)[[1L]]))
    any(words %in% c("gene", "genes", "geneid", "genename", "genesymbol", "ensembl", "ensemblid", "ensemblgeneid",
        "symbol", "symbols", "id", "ids", "name", "names", "feature", "features", "featureid", "featurename",
        "featuretype", "barcode", "barcodes", "cell", "cells", "cellid", "cellbarcode", "x"))
}

symbols_10x <- function(features, path) {
    id <- features[[1L]]
    symbol <- if (length(features) >= 2L) features[[2L]] else id
    symbol[!nzchar(symbol)] <- id[!nzchar(symbol)]
    if (any(!nzchar(symbol))) {
        cape_error(quoted(path), " has no name for feature ", some_of(which(!nzchar(symbol))))
    }
    twice <- symbol %in% symbol[duplicated(symbol)]
    if (any(twice)) {
        message(count_of(length(unique(symbol[twice])), "symbol"), " for several features (",
            some_of(quoted(unique(symbol[twice]))), "): told apart by ",
            if (all(symbol[twice] == id[twice])) "numbers." else "their ids.")
        symbol[twice & symbol != id] <- paste(symbol, id, sep = "_")[twice & symbol != id]
    }
    make.unique(symbol)
}

