#' Read a table from a file
#'
#' A table of features in rows and cells or samples in columns, from a 10x folder or a text file, with every name as
#' it is in the file: nothing is taken for a number, a logical or a missing value because it looks like one. What
#' cannot be read without a guess is an error that names the file, the line and the text.
#'
#' @section 10x folders:
#' `matrix.mtx`, `features.tsv` (or `genes.tsv`) and `barcodes.tsv`, plain or compressed, also with a prefix of their
#' own as in GEO (`GSM1_matrix.mtx.gz`). Row names are the symbols; one that is empty is replaced by its id, one that is
#' there twice gets its id as a suffix. `rowData(x)` has `ID`, `Symbol` and `Type`. A line of column names is left out,
#' which a message says. Features of other types than genes (antibodies, guides, peaks) are no genes and do not
#' count in library sizes: they become `altExp(x, type)`, which a message says.
#'
#' @section Text files:
#' Separated by commas, semicolons or tabs, as the first two lines show; with decimal points, or, between
#' semicolons or tabs, decimal commas; in UTF-8 with or without a byte order mark, or in UTF-16 with one; plain or
#' compressed. The first line names the samples and the first column the features, or the other way round with
#' `features = "columns"`; as nothing in a file tells the two apart, a message says which was taken for which. Lines
#' without text above the first are left out. Empty fields, `NA`, `N/A`, `#N/A` and
#' `NaN` are missing values. Rows and columns without a name and a value, as spreadsheets leave them, are left out.
#'
#' @param path a 10x folder; a `.csv`, `.tsv`, `.tab` or `.txt` file, also compressed (`.gz`, `.bz2`, `.xz`); or an
#'   `.rds` file, which is returned as [readRDS()] gives it.
#' @param assay.type name of the assay that a text file becomes: `"counts"` are normalised by [cape_fit()],
#'   `"values"` and `"logcounts"` are used as they are. That of a 10x folder is `"counts"`.
#' @param features where a text file has its features: in `"rows"`, or in `"columns"`, with a sample in each row.
#' @return A SingleCellExperiment, features in rows; what an `.rds` file holds as it is.
#' @examples
#' file <- tempfile(fileext = ".csv")
#' writeLines(c("gene;s1;s2;s3", "TP53;1,5;2;0,25", "NA;0;1,75;3"), file)
#' SummarizedExperiment::assay(cape_read(file))
#' @export
cape_read <- function(path, assay.type = "values", features = c("rows", "columns")) {
    path <- path.expand(check_string(path, "path"))
    check_string(assay.type, "assay.type")
    features <- one_of(features, c("rows", "columns"), "features")
    text <- grepl("\\.(csv|tsv|tab|txt)(\\.(gz|bz2|xz))?$", path, ignore.case = TRUE)
    if (features == "columns" && file.exists(path) && (dir.exists(path) || !text)) {
        cape_error("'features' is \"columns\", which is for text files; ", quoted(path), " is none")
    }
    if (dir.exists(path)) {
        return(read_10x(path))
    }
    if (!file.exists(path)) {
        cape_error("'path' is ", quoted(path), "; there is no such file or folder")
    }
    if (grepl("\\.rds$", path, ignore.case = TRUE)) {
        return(reading(path, readRDS(path)))
    }
    if (text) {
        assays <- list(read_text_table(path, features))
        names(assays) <- assay.type
        return(SingleCellExperiment::SingleCellExperiment(assays))
    }
    cape_error("'path' is ", quoted(path), "; it must be a 10x folder (of matrix.mtx), an .rds, or a .csv, .tsv, .tab ",
        "or .txt file, which may be compressed (.gz, .bz2, .xz)")
}

# What R says of a file that it cannot read, warnings of files cut short included, with the file's name.
reading <- function(path, code) {
    failed <- function(e) {
        if (inherits(e, "capeError")) stop(e)
        cape_error(quoted(path), " cannot be read: ", conditionMessage(e))
    }
    tryCatch(code, error = failed, warning = failed)
}

# 10x ---------------------------------------------------------------------------------------------

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
    dimnames(counts) <- list(symbols_10x(features, features_file), barcodes[[1L]])

    column <- function(i) if (length(features) >= i) features[[i]] else features[[1L]]
    types <- if (length(features) >= 3L) features[[3L]] else rep("Gene Expression", nrow(counts))
    x <- SingleCellExperiment::SingleCellExperiment(list(counts = counts),
        rowData = S4Vectors::DataFrame(ID = column(1L), Symbol = column(2L), Type = types))
    # A third column may be anything; Cell Ranger's says what is a gene.
    if (length(unique(types)) == 1L || !"Gene Expression" %in% types) {
        return(x)
    }
    others <- setdiff(types, "Gene Expression")
    message(quoted(basename(features_file)), " has features of ", 1L + length(others), " types: ",
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
            some_of(quoted(unique(symbol[twice]))), "): told apart by their ids.")
        symbol[twice & symbol != id] <- paste(symbol, id, sep = "_")[twice & symbol != id]
    }
    make.unique(symbol)
}

# Text --------------------------------------------------------------------------------------------

# A file in UTF-8 without a mark, which may be `path` itself: scan() takes the mark for a part of the first field, and
# leaves other encodings to the locale.
in_utf8 <- function(path, read) {
    marks <- list("UTF-8" = as.raw(c(0xef, 0xbb, 0xbf)), "UTF-16LE" = as.raw(c(0xff, 0xfe)),
        "UTF-16BE" = as.raw(c(0xfe, 0xff)))
    start <- bytes_of(path, 3L)
    marked <- names(marks)[vapply(marks, function(mark) identical(start[seq_along(mark)], mark), NA)]
    if (length(marked) == 0L) {
        return(read(path))
    }
    plain <- tempfile()
    on.exit(unlink(plain))
    bytes <- bytes_of(path, Inf)[-seq_along(marks[[marked]])]
    if (marked != "UTF-8") bytes <- iconv(list(bytes), marked, "UTF-8", toRaw = TRUE)[[1L]]
    writeBin(bytes, plain)
    read(plain)
}

bytes_of <- function(path, n) {
    connection <- gzfile(path, "rb") # of any compression, or none
    on.exit(close(connection))
    bytes <- list()
    while (n > 0 && length(more <- readBin(connection, "raw", min(n, 1e7))) > 0L) {
        bytes <- c(bytes, list(more))
        n <- n - length(more)
    }
    as.raw(unlist(bytes))
}

text_lines <- function(path) {
    lines <- reading(path, in_utf8(path, function(plain) {
        connection <- file(plain, "rt")
        on.exit(close(connection))
        withCallingHandlers(readLines(connection, encoding = "UTF-8"), warning = function(w) {
            if (grepl("incomplete final line", conditionMessage(w))) invokeRestart("muffleWarning")
        })
    }))
    check_utf8(lines, path, "line")
    while (length(lines) > 0L && !nzchar(lines[length(lines)])) lines <- lines[-length(lines)]
    lines
}

check_utf8 <- function(text, path, what) {
    bad <- which(!validUTF8(text))
    if (length(bad) > 0L) {
        cape_error(quoted(path), " is not in UTF-8: ", what, " ", bad[1L], " is ",
            quoted(iconv(text[bad[1L]], "latin1", "ASCII", sub = "byte")), "; save it in UTF-8")
    }
}

read_text_table <- function(path, features) {
    text <- reading(path, in_utf8(path, function(plain) {
        skip <- match(TRUE, grepl("[^ \t,;\"]", readLines(plain, 1000L, warn = FALSE), useBytes = TRUE), nomatch = 1L) - 1L
        separator <- separator_of(plain, skip, path)
        list(separator = separator, fields = scan_fields(plain, separator, skip = skip),
            widths = utils::count.fields(plain, separator, quote = "\"", comment.char = "", skip = skip))
    }))
    # What a line is, and what a column.
    line <- if (features == "rows") "feature" else "sample"
    column <- if (features == "rows") "sample" else "feature"
    widths <- text$widths[!is.na(text$widths)] # NA: a field goes on in the next line
    n <- if (length(widths) > 1L) widths[2L] else 0L
    header <- text$fields[seq_len(widths[1L])]
    body <- text$fields[-seq_len(widths[1L])]
    if (n < 2L || !widths[1L] %in% c(n - 1L, n)) {
        cape_error(quoted(path), " has ", widths[1L], " fields in its first line and ", n, " in the second; it must ",
            "have the names of the ", column, "s there, and here the name of a ", line, " and its values, separated ",
            "by commas, semicolons or tabs")
    }
    odd <- which(widths[-1L] != n)
    if (length(odd) > 0L) {
        cape_error(quoted(path), " has ", count_of(widths[odd[1L] + 1L], "field"), " in the line of ",
            quoted(body[sum(widths[seq_len(odd[1L])][-1L]) + 1L]), "; its others have ", n)
    }
    body <- matrix(body, ncol = n, byrow = TRUE)
    across <- if (widths[1L] == n) header[-1L] else header
    down <- body[, 1L]
    body <- body[, -1L, drop = FALSE]
    check_utf8(across, path, paste("the name of", column))
    check_utf8(down, path, paste("the name of", line))
    check_utf8(c(body), path, "field")

    # What spreadsheets leave beside and below a table.
    blank <- array(!nzchar(trimws(body)), dim(body))
    columns <- nzchar(trimws(across)) | colSums(!blank) > 0
    rows <- nzchar(trimws(down)) | rowSums(!blank) > 0
    body <- body[rows, columns, drop = FALSE]
    dimnames(body) <- list(down[rows], across[columns])
    for (side in 1:2) {
        unnamed <- which(!nzchar(trimws(dimnames(body)[[side]])))
        if (length(unnamed) > 0L) {
            cape_error(quoted(path), " has values but no name for ", c(line, column)[side], " ", unnamed[1L])
        }
    }
    for (side in 2:1) {
        names <- dimnames(body)[[side]]
        number <- suppressWarnings(as.numeric(sub(",", ".", names, fixed = TRUE)))
        if (length(number) > 0L && !anyNA(number) && (anyDuplicated(number) > 0L || any(number != round(number)))) {
            cape_error("the first ", c("column", "line")[side], " of ", quoted(path), " holds numbers (", some_of(names),
                "); it must have the names of the ", c(line, column)[side], "s")
        }
    }
    values <- as_values(body, path, text$separator, line)
    if (features == "columns") values <- t(values)
    message(quoted(basename(path)), ": ", count_of(nrow(values), "feature"), " (", some_of(rownames(values), 2L),
        ") in its ", features, ", ", count_of(ncol(values), "sample"), " (", some_of(colnames(values), 2L), ").")
    values
}

scan_fields <- function(path, separator, ...) {
    scan(path, "", sep = separator, quote = "\"", na.strings = character(), comment.char = "", encoding = "UTF-8",
        quiet = TRUE, ...)
}

# That by which the first two lines have the same number of fields, or else the second has one more (as write.table()
# has it); of several the one by which there are most.
separator_of <- function(plain, skip, path) {
    separators <- c(",", ";", "\t")
    lines <- readLines(plain, skip + 2L, warn = FALSE)
    lines <- lines[seq_along(lines) > skip]
    if (length(lines) < 2L) {
        cape_error(quoted(path), " has ", count_of(length(lines), "line"),
            "; it must have one of names and one of values")
    }
    count <- function(line, separator) {
        suppressWarnings(length(scan(text = line, what = "", sep = separator, quote = "\"", quiet = TRUE)))
    }
    first <- vapply(separators, count, 0L, line = lines[1L])
    second <- vapply(separators, count, 0L, line = lines[2L])
    fits <- (second > 1L) * (2L * (first == second) + (first == second - 1L))
    best <- separators[order(-fits, -first)][1L]
    if (max(first, second) < 2L) {
        cape_error("the first lines of ", quoted(path),
            " have no commas, semicolons or tabs that separate their fields")
    }
    best
}

as_values <- function(text, path, separator, line) {
    values <- suppressWarnings(matrix(as.numeric(text), nrow(text), ncol(text), dimnames = dimnames(text)))
    values[is.nan(values)] <- NA
    odd <- which(is.na(values))
    odd <- odd[!trimws(text[odd]) %in% c("", "NA", "N/A", "#N/A", "NaN", "nan", "na")]
    if (length(odd) > 0L && separator != "," && are_decimal_commas(text, text[odd], separator)) {
        values[odd] <- as.numeric(sub(",", ".", text[odd], fixed = TRUE))
        odd <- integer()
    }
    if (length(odd) > 0L) {
        at <- arrayInd(odd[1L], dim(text))
        whole <- all(is.na(values[, at[2L]]))
        cape_error(quoted(path), ": ", quoted(text[odd[1L]]), " of ", line, " ", quoted(rownames(text)[at[1L]]),
            " in column ", quoted(colnames(text)[at[2L]]), " is not numeric",
            if (grepl("[0-9],[0-9]", text[odd[1L]])) "; numbers must be without separators of thousands"
            else if (whole) "; the column has no numbers: leave it out")
    }
    values
}

# A comma is a decimal one where no number has a point. Between tabs it may also group thousands, as in 1,234: where all
# look like that nothing is certain.
are_decimal_commas <- function(text, odd, separator) {
    all(grepl("^ *[-+]?[0-9]*,[0-9]+([eE][-+]?[0-9]+)? *$", odd)) && !any(grepl(".", text, fixed = TRUE)) &&
        (separator == ";" || !all(grepl("^ *[-+]?[1-9][0-9]{0,2},[0-9]{3} *$", odd)))
}
