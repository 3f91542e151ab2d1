# Tables in text files.

text_experiment <- function(path, assay.type, features) {
    assays <- list(read_text_table(path, features))
    names(assays) <- assay.type
    SingleCellExperiment::SingleCellExperiment(assays)
}

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
