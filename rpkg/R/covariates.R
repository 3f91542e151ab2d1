# What drives features from outside and is known of every cell, as columns of numbers.

# Of the cells used: a column for a number or flag, and for labels one less than there are, each 1 in its cells.
covariate_values <- function(x, covariates, cells) {
    if (is.null(covariates)) {
        return(matrix(0, 0L, 0L))
    }
    columns <- covariate_columns(x, covariates)
    as.matrix(do.call(cbind, lapply(names(columns), function(name) {
        covariate_numbers(columns[[name]][cells], paste0("covariates$", name))
    })))
}

# By name, each with a value for every cell of x, in its order.
covariate_columns <- function(x, covariates) {
    known <- if (is(x, "SummarizedExperiment")) names(SummarizedExperiment::colData(x))
    if (is.character(covariates) && length(covariates) > 0L && all(covariates %in% known)) {
        return(as.list(SummarizedExperiment::colData(x)[unique(covariates)]))
    }
    if (!is_table(covariates) && !is.matrix(covariates)) {
        if (is.character(covariates) && length(covariates) != ncol(x)) {
            cape_error("'covariates' names ", some_of(quoted(setdiff(covariates, known))), "; it must name columns of ",
                "colData(x)", if (length(known) > 0L) paste0(" (", some_of(known), ")"), ", or be a table with a row, ",
                "or a vector with a value, for each of ", ncol(x), " cells")
        }
        return(list(values = per_cell(x, covariates, "covariates")))
    }
    if (nrow(covariates) != ncol(x)) {
        cape_error("'covariates' has ", count_of(nrow(covariates), "row"), "; it must have one for each of ", ncol(x),
            " cells")
    }
    order <- match_names(row_names(covariates), colnames(x), "covariates", "the cells of 'x'")
    columns <- table_columns(covariates)
    if (is.null(names(columns))) names(columns) <- paste0("column", seq_along(columns))
    twice <- names(columns)[duplicated(names(columns))]
    if (length(twice) > 0L) {
        cape_error("'covariates' has the column ", quoted(twice[1L]), " more than once")
    }
    lapply(columns, function(values) unname(values)[order])
}

covariate_numbers <- function(values, name) {
    values <- plain_vector(values, name)
    if (anyNA(values)) {
        cape_error("'", name, "' is missing for ", count_of(sum(is.na(values)), "cell"))
    }
    if (length(unique(values)) < 2L) {
        message("'", name, "' is the same for all cells and explains nothing.")
        return(NULL)
    }
    if (is.factor(values) || is.character(values)) {
        labels <- unique(as.character(values))
        return(1 * outer(as.character(values), labels[-1L], "=="))
    }
    if (!is.logical(values) && (!is_numbers(values) || inherits(values, c("Date", "POSIXt", "difftime")))) {
        cape_error("'", name, "' is ", one_line(values), "; it must hold numbers, flags or labels")
    }
    if (!all(is.finite(values))) {
        cape_error("'", name, "' is ", values[!is.finite(values)][1L], " for cell ", which(!is.finite(values))[1L],
            "; it must be finite")
    }
    as.numeric(values)
}
