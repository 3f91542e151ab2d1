# From what the user has to what Step I reads: a dense table of the chosen features, features x cells.
# Nothing is transposed here or later: the core takes the same memory as cells x features.

# What Step I takes when there are more features than this and no choice was made.
most_features <- 500L

# `cells` of the result are the cells of x that it holds: those without counts, or without a value, are not
# among them, and everything else is as if `x` did not have them. With `batch` features are chosen by their
# variance within batches. With `stream` values that are no matrix are those of cells_of().
cape_as_input <- function(x, assay.type, subset.row, param, verbose, batch = NULL, stream = FALSE) {
    source <- choose_assay(x, assay.type, verbose)
    names <- feature_names(x)
    cells <- if (is.null(colnames(x))) paste0("cell", seq_len(ncol(x))) else as.vector(colnames(x))
    batch <- per_cell(x, batch, "batch")
    rows <- if (is.null(subset.row)) NULL else subset_rows(subset.row, names, rownames(x))
    if (ncol(x) < 10L || nrow(x) < 2L || (!is.null(rows) && length(rows) < 2L)) {
        too_small(if (is.null(rows)) nrow(x) else length(rows), ncol(x))
    }

    # Counts: library sizes and doubts are over all features, whichever are chosen.
    used <- seq_len(ncol(x))
    declared <- source$counts
    scan <- scan_rows(source$values, if (declared) NULL else rows)
    at <- if (declared || is.null(rows)) seq_along(names) else rows
    check_finite(scan, source, names[at], cells, param, at)
    if (declared) {
        source$counts <- are_counts(scan, source)
    } else {
        doubt_logs(scan, source)
    }
    # Where 0 is the least, a cell that has nothing else says nothing.
    counted <- (declared || source$log) && min(scan$min) >= 0
    scaling <- NULL
    if (source$counts) {
        scaling <- c(cell_scaling(x, source$values), list(cells = cells))
        used <- which(scaling$sizes > 0)
    }
    if (is.null(assay.type) && declared) {
        message("Using assay 'counts', ", if (is.null(scaling)) "as it is." else scaling$said, source$others)
    } else if (!is.null(scaling$own)) {
        message("Counts are ", scaling$said)
    }

    known <- if (!is.null(scaling)) NULL else if (declared && !is.null(rows)) scan[rows, ] else scan
    # Without its silent cells the table may have other features of large variance, and so again.
    repeat {
        if (length(used) < 10L) {
            too_small(if (is.null(rows)) nrow(x) else length(rows), length(used))
        }
        table <- chosen_values(source$values, rows, used, scaling, batch[used], known, stream)
        speaks <- if (counted) have_counts(table$values) else have_values(table$values)
        if (all(speaks) || !any(speaks)) {
            break
        }
        used <- used[speaks]
    }
    if (table$n_varying < 2L) {
        too_small(table$n_varying, length(used))
    }
    if (is.null(rows) && nrow(x) > most_features) {
        say_choice(nrow(x), table$n_varying, length(used), param)
    }
    empty <- setdiff(seq_len(ncol(x)), used)
    if (length(empty) > 0L) {
        warning(count_of(length(empty), "cell"), if (counted) " without counts in the features used"
            else " without a value", " (", some_of(quoted(cells[empty])), "): left out of the fit", call. = FALSE)
    }
    values <- with_dimnames(table$values, list(unique_names(names, table$rows), cells[used]))
    list(values = values, rows = table$rows, cells = used, input = list(
        n_features = nrow(x), n_cells = ncol(x), empty = cells[empty], assay = source$name,
        transformation = if (is.null(scaling)) "none" else scaling$transformation))
}

# How counts are scaled: by the user's size factors, with a mean of 1, or to a common library size.
cell_scaling <- function(x, values) {
    sizes <- cell_sums(values)$size
    own <- own_size_factors(x, sizes)
    if (is.null(own)) {
        return(list(sizes = sizes, said = "scaled to 10,000 a cell and log-transformed.",
            transformation = "counts scaled to 10,000 a cell, log1p"))
    }
    list(sizes = sizes, own = own, said = "scaled by sizeFactors(x) and log-transformed (base 2).",
        transformation = "counts scaled by sizeFactors(x), log2(x + 1)")
}

own_size_factors <- function(x, sizes) {
    own <- if (is(x, "SingleCellExperiment")) SingleCellExperiment::sizeFactors(x)
    bad <- which(sizes > 0 & !(is.finite(own) & own > 0))
    if (!is.null(own) && length(bad) > 0L) {
        cape_error("sizeFactors(x) has ", count_of(length(bad), "value"), " that ",
            if (length(bad) == 1L) "is not a positive number" else "are not positive numbers", ", the first (",
            own[bad[1L]], ") for cell ", bad[1L],
            "; sizeFactors(x) <- NULL has cells scaled by their library sizes")
    }
    if (is.null(own)) NULL else as.numeric(own)
}

# The rows that are used, transformed, of the cells `used`. `scan` is that of all cells, if it is known.
chosen_values <- function(values, rows, used, scaling, batch, scan = NULL, stream = FALSE) {
    if (length(used) < ncol(values)) {
        values <- values[, used, drop = FALSE]
        scan <- NULL
    }
    own <- scaling$own
    factors <- if (!is.null(scaling)) {
        sizes <- replace(scaling$sizes, setdiff(seq_along(scaling$sizes), used), 0) # of cells that are left out
        target <- as.numeric(registry_default("preprocess.target_sum"))
        with_features(NULL, core_cell_factors(sizes, own, target), scaling$cells)[used]
    }
    # What varies between batches alone causes no edges, so it does not count where features are chosen either.
    within <- if (is.null(rows) && nrow(values) > most_features && length(batch) > 0L) batch
    if (is.null(scan) || !is.null(within)) {
        scan <- scan_rows(values, rows, factors, within)
    }
    if (is.null(rows)) {
        rows <- choose_rows(scan)
    }
    logarithm <- if (is.null(own)) "natural" else "binary"
    list(values = if (stream) cells_of(values, rows, factors, logarithm, sum(scan$missing) == 0)
        else read_rows(values, rows, factors, logarithm), rows = rows, n_varying = sum(scan$varies))
}

too_small <- function(features, cells) {
    cape_error("needs at least 2 features with variance and 10 cells; got ", features, " and ", cells)
}

# Assays ------------------------------------------------------------------------------------------

# values: in a standard form; counts: whether they are declared to be counts.
choose_assay <- function(x, assay.type, verbose) {
    if (!is(x, "SummarizedExperiment")) {
        declared <- if (is.null(assay.type)) "x" else check_string(assay.type, "assay.type")
        if (!declared %in% c("x", "values", "counts", "logcounts")) {
            cape_error("'assay.type' is ", quoted(declared), "; for a matrix it must be \"counts\" (to be ",
                "normalised), \"logcounts\" or \"values\"")
        }
        return(list(values = standard_form(x, "'x'"), name = declared, what = "'x'",
            counts = declared == "counts", log = declared == "logcounts"))
    }
    available <- SummarizedExperiment::assayNames(x)
    if (length(SummarizedExperiment::assays(x, withDimnames = FALSE)) == 0L) {
        cape_error("'x' has no assays")
    }
    name <- assay.type
    if (is.null(name)) {
        # exprs: what cytometry (CATALYST) calls its transformed values.
        known <- c("logcounts", "exprs", "counts")
        name <- known[known %in% available][1L]
        if (is.na(name)) {
            no_assay("'x' has no assay 'logcounts', 'exprs' or 'counts'", available)
        }
        if (name != "counts" && (verbose || length(available) > 1L)) {
            message("Using assay ", quoted(name), " as it is.")
        }
    }
    if (is.numeric(name)) {
        n <- length(SummarizedExperiment::assays(x, withDimnames = FALSE))
        index <- check_number(name, "assay.type", 1, n, integer = TRUE)
        name <- if (is.null(available) || !nzchar(available[index])) paste0("#", index)
            else available[index]
    } else {
        index <- match(check_string(name, "assay.type"), available)
        if (is.na(index)) {
            no_assay(paste0("'x' has no assay ", quoted(name)), available)
        }
    }
    what <- paste0("assay ", quoted(name))
    values <- SummarizedExperiment::assay(x, index, withDimnames = FALSE)
    others <- setdiff(available, name)
    list(values = standard_form(values, what), name = name, what = what,
        counts = name == "counts", log = name %in% c("logcounts", "exprs"),
        others = if (length(others) > 0L) paste0(" The other assays (", some_of(quoted(others)),
            ") are used with assay.type."))
}

no_assay <- function(problem, available) {
    if (length(available) == 0L) {
        cape_error(problem, ": its assays have no names. Name them, ",
            "as in assayNames(x) <- \"logcounts\", or choose one by number, as in assay.type = 1")
    }
    cape_error(problem, "; it has ", some_of(quoted(available)),
        ". Choose one with assay.type, as in assay.type = ", dQuote(available[1L], FALSE))
}

# Names -------------------------------------------------------------------------------------------

feature_names <- function(x) {
    names <- rownames(x)
    if (is.array(names)) names <- as.vector(names) # as h5read() gives them
    if (is.null(names)) {
        message("'x' has no row names: its features are called feature1 to feature", nrow(x), ".")
        return(paste0("feature", seq_len(nrow(x))))
    }
    bad <- which(is.na(names) | !nzchar(names))
    if (length(bad) > 0L) {
        cape_error("row names of 'x' are missing or empty at ", some_of(bad),
            "; every feature needs a name")
    }
    check_encoding(names, "row names of 'x'")
}

# Names in UTF-8. Those of an array from a file may be an array themselves.
check_encoding <- function(names, what) {
    names <- as.vector(names)
    bad <- which(!validEnc(names) | Encoding(names) == "bytes")
    if (length(bad) > 0L) {
        shown <- iconv(names[bad], "latin1", "ASCII", sub = "byte")
        cape_error(what, " are not valid in their encoding at ", some_of(paste0(bad, " (", quoted(shown), ")")),
            "; say what they are, as in Encoding(names) <- \"latin1\", or rename them")
    }
    enc2utf8(names)
}

# Names of the chosen rows, made unique where they are not.
unique_names <- function(names, rows) {
    names <- names[rows]
    twice <- unique(names[duplicated(names)])
    if (length(twice) > 0L) {
        message(count_of(length(twice), "feature name"), " not unique (", some_of(quoted(twice)),
            "): told apart by a suffix, as in ", quoted(make.unique(rep(twice[1L], 2L))[2L]), ".")
        names <- make.unique(names)
    }
    names
}

# Rows by name, number or flag, in the order given.
subset_rows <- function(subset.row, names, given) {
    n <- length(names)
    if (is.factor(subset.row)) {
        subset.row <- as.character(subset.row)
    } else if (is(subset.row, "Rle")) {
        subset.row <- as.vector(subset.row)
    }
    if (inherits(subset.row, "integer64")) {
        cape_error("'subset.row' is of type integer64; convert it with as.numeric()")
    }
    if (is.character(subset.row)) {
        rows <- match(subset.row, given)
        if (anyNA(rows)) {
            cape_error("'subset.row' names ", count_of(sum(is.na(rows)), "feature"), " of ",
                length(rows), " that 'x' does not have: ", some_of(quoted(subset.row[is.na(rows)])))
        }
    } else if (is.logical(subset.row)) {
        if (length(subset.row) != n || anyNA(subset.row)) {
            cape_error("'subset.row' is logical with length ", length(subset.row),
                if (anyNA(subset.row)) " and missing values", "; it needs TRUE or FALSE for each of ",
                n, " features")
        }
        rows <- unname(which(subset.row[match_names(names(subset.row), given, "subset.row", "the rows of 'x'")]))
    } else if (is.numeric(subset.row)) {
        bad <- is.na(subset.row) | subset.row < 1 | subset.row > n | subset.row != round(subset.row)
        if (any(bad)) {
            cape_error("'subset.row' has values that are not row numbers of 'x' (1 to ", n, "): ",
                some_of(subset.row[bad]))
        }
        rows <- as.integer(subset.row)
    } else {
        cape_error("'subset.row' is ", one_line(subset.row),
            "; it must hold names, numbers or flags of rows, or be NULL")
    }
    if (anyDuplicated(rows)) {
        cape_error("'subset.row' has features twice: ",
            some_of(quoted(names[unique(rows[duplicated(rows)])])))
    }
    rows
}

choose_rows <- function(scan) {
    if (nrow(scan) <= most_features) {
        return(seq_len(nrow(scan)))
    }
    core_largest_variances(ifelse(scan$varies, scan$variance, -1), min(sum(scan$varies), most_features))
}

say_choice <- function(n, n_varying, n_cells, param) {
    taken <- min(n_varying, most_features)
    cost <- core_estimate(n_cells, taken, settings(param))
    message("Of ", n, " features, the ", taken, if (n_varying > taken) " most variable" else " that vary", " are used",
        " (subset.row chooses others); this will take about ", duration(cost[["seconds"]]),
        " on one thread and ", size(cost[["bytes"]]), " of memory.")
}

duration <- function(seconds) {
    if (seconds < 1) "a second"
        else if (seconds < 120) paste(signif(seconds, 2), "seconds")
        else if (seconds < 7200) paste(signif(seconds / 60, 2), "minutes")
        else paste(signif(seconds / 3600, 2), "hours")
}

size <- function(bytes) {
    if (bytes < 1e9) paste(max(1, signif(bytes / 1e6, 2)), "MB") else paste(signif(bytes / 1e9, 2), "GB")
}

# Doubts ------------------------------------------------------------------------------------------

# Infinite values are always an error, missing ones unless they are to be masked.
check_finite <- function(scan, source, names, cells, param, at = seq_along(names)) {
    fail <- function(which_rows, n, is_bad, kind, advice) {
        first <- at[which_rows[1L]]
        row <- as.vector(read_rows(source$values, first))
        cape_error(source$what, " has ", count_of(n, paste(kind, "value")), " in ",
            count_of(length(which_rows), "feature"), " (", some_of(quoted(names[which_rows])),
            "), the first in cell ", quoted(cells[which(is_bad(row))[1L]]), advice)
    }
    bad <- which(scan$infinite > 0)
    if (length(bad) > 0L) {
        fail(bad, sum(scan$infinite), is.infinite, "infinite", "; values must be finite")
    }
    bad <- which(scan$missing > 0)
    if (length(bad) > 0L && param@values$missing == "fail") {
        fail(bad, sum(scan$missing), is.na, "missing",
            "; to have missing values drawn given the rest of their cell use dag = DagParam(missing = \"mask\")")
    }
}

# Declared counts are believed when they are whole numbers, normalised with a warning when they are
# not, and used as they are, with a warning, when they can only be something else.
are_counts <- function(scan, source) {
    smallest <- min(scan$min)
    largest <- max(scan$max)
    if (smallest < 0) {
        warning(source$what, " holds negative values (down to ", signif(smallest, 4),
            "), so these are not counts: used as they are, without normalisation", call. = FALSE)
        return(FALSE)
    }
    n <- sum(scan$fractional)
    if (n > 0 && largest < 30) {
        warning(source$what, " holds ", n, " values that are not whole numbers and none above ",
            signif(largest, 4), ", like logarithms of counts: used as they are, without another ",
            "logarithm; if they are right as counts, normalise them first and say ",
            "assay.type = \"logcounts\"", call. = FALSE)
        return(FALSE)
    }
    if (n > 0) {
        warning(source$what, " holds ", n, " values that are not whole numbers (the largest is ",
            signif(largest, 6), "): normalised as counts all the same", call. = FALSE)
    }
    TRUE
}

doubt_logs <- function(scan, source) {
    whole <- sum(scan$fractional) == 0 && min(scan$min) >= 0
    largest <- max(scan$max)
    if (whole && source$log && largest > 50) {
        warning(source$what, " holds only whole numbers, up to ", largest, ", like counts and unlike ",
            "logarithms: used as it is; if these are counts, use assay.type = \"counts\"",
            call. = FALSE)
    } else if (whole && !source$log && !source$counts && largest > 1) {
        message(source$what, " holds only whole numbers, as counts do, and is used as it is; ",
            if (source$what == "'x'") "assay.type = \"counts\" has counts normalised."
            else "an assay named \"counts\" is normalised.")
    }
}
