# What arguments carry - names, types, ids, tables - is read here and nowhere else.

# Where values named `given` lie among things named `wanted`: value[match_names(...)] is in the order of
# the things. Where both have names they are matched, and one that does not fit is an error; otherwise
# value i belongs to thing i, and the caller has compared the lengths.
match_names <- function(given, wanted, name, of) {
    if (is.null(given) || is.null(wanted) || identical(as.character(given), as.character(wanted))) {
        return(TRUE) # all, as they are
    }
    twice <- given[duplicated(given)]
    if (length(twice) > 0L || anyDuplicated(wanted) > 0L) {
        cape_error("'", name, "' cannot be matched to ", of, " by name: '",
            c(twice, wanted[duplicated(wanted)])[1L], "' is there more than once")
    }
    strange <- setdiff(given, wanted)
    if (length(strange) > 0L) {
        cape_error("'", name, "' has names that ", of, " do not have: ", some_of(quoted(strange)),
            "; remove the names to match by position")
    }
    missing <- setdiff(wanted, given)
    if (length(missing) > 0L) {
        cape_error("'", name, "' has names, but none for ", some_of(quoted(missing)), " of ", of)
    }
    match(wanted, given)
}

# integer64 says that it is numeric, but its bits are not those of doubles.
is_numbers <- function(x) is.numeric(x) && !inherits(x, "integer64")

# A column as a plain vector; Rle and arrays of one dimension keep their names.
plain_vector <- function(x, name) {
    if (is(x, "Rle")) x <- as.vector(x)
    if (inherits(x, "integer64")) {
        cape_error("'", name, "' is of type integer64; convert it with as.numeric() or as.character()")
    }
    if (!is.atomic(x) || length(dim(x)) > 1L) {
        cape_error("'", name, "' is ", one_line(x), "; it must be a vector")
    }
    if (length(dim(x)) == 1L) {
        names <- names(x)
        dim(x) <- NULL
        names(x) <- names
    }
    x
}

# Names of features as text. Ids that were read as numbers are written out: 400000, not 4e+05.
as_ids <- function(x, name) {
    x <- plain_vector(x, name)
    if (is.logical(x) && !all(is.na(x))) {
        cape_error("'", name, "' holds TRUE or FALSE; it must hold names of features")
    }
    text <- as.character(x)
    if (is.numeric(x) && !is.factor(x)) {
        whole <- which(is.finite(x) & x == round(x) & abs(x) < 2^53)
        text[whole] <- sprintf("%.0f", x[whole])
    }
    text
}

# The columns of a matrix or of a data frame of any kind (DataFrame, tibble, data.table), as a list, which
# is asked by [[ ]]: no part of a name stands for the whole.
table_columns <- function(x) {
    if (is.matrix(x)) {
        columns <- lapply(seq_len(ncol(x)), function(j) as.vector(x[, j]))
        names(columns) <- colnames(x)
        return(columns)
    }
    as.list(x)
}

# NULL for the numbers that a data frame gives to rows without names.
row_names <- function(x) rownames(if (is.data.frame(x)) as.matrix(x) else x)

is_table <- function(x) is.data.frame(x) || is(x, "DataFrame")
