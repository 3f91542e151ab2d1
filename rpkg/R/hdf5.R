# What is read of HDF5 files, whoever wrote them. Their arrays have their dimensions in the reverse order in R.

# read(h5) with the file open. `h5$left` gathers what is left out; one message at the end says it.
with_h5 <- function(path, read) {
    need_package("rhdf5", path)
    if (!rhdf5::H5Fis_hdf5(path)) {
        cape_error(quoted(path), " is no HDF5 file, as its name says that it is")
    }
    id <- reading(path, {
        id <- rhdf5::H5Fopen(path, "H5F_ACC_RDONLY")
        if (!is(id, "H5IdComponent")) stop("HDF5 refuses it") # where rhdf5 was told not to make errors
        id
    }, " (is it whole?)")
    on.exit(rhdf5::H5Fclose(id))
    index <- reading(path, rhdf5::h5ls(id))
    h5 <- list(path = path, id = id, left = new.env(),
        index = data.frame(at = sub("^/+", "", paste0(index$group, "/", index$name)), type = index$otype,
            class = index$dclass, dim = index$dim))
    x <- read(h5)
    left <- sort(unlist(as.list(h5$left)))
    if (length(left) > 0L) {
        message(quoted(basename(path)), ": left out of it: ", some_of(left, 20L), ".")
    }
    x
}

need_package <- function(package, path, doing = "reading") {
    if (!requireNamespace(package, quietly = TRUE)) {
        cape_error(doing, " ", quoted(path), " needs package ", package, ": BiocManager::install(\"", package, "\")")
    }
}

h5_fail <- function(h5, at, ...) cape_error(quoted(h5$path), ": ", quoted(at), " ", ...)

# Leave out what cannot be read, for a reason that the message has.
leave <- function(h5, at, why = NULL) {
    assign(at, paste0(at, if (!is.null(why)) paste0(" (", why, ")")), envir = h5$left)
    NULL
}

or_leave <- function(h5, at, code) {
    tryCatch(code, error = function(e) {
        leave(h5, at, sub(paste0(quoted(h5$path), ": ", quoted(at), " "), "", conditionMessage(e), fixed = TRUE))
    })
}

h5_has <- function(h5, at) at %in% h5$index$at
h5_is_group <- function(h5, at) at %in% h5$index$at[h5$index$type == "H5I_GROUP"]
h5_class <- function(h5, at) h5$index$class[match(at, h5$index$at)]
# Names of what is in a group; "" is the file itself.
h5_names <- function(h5, at = "") {
    inside <- h5$index$at[dirname(h5$index$at) == if (nzchar(at)) at else "."]
    basename(inside)
}

# In the order of R.
h5_dim <- function(h5, at) {
    as.numeric(strsplit(h5$index$dim[match(at, h5$index$at)], " x ", fixed = TRUE)[[1L]])
}

h5_attribute <- function(h5, at, name) {
    object <- rhdf5::H5Oopen(h5$id, if (nzchar(at)) at else "/")
    on.exit(rhdf5::H5Oclose(object))
    if (!rhdf5::H5Aexists(object, name)) {
        return(NULL)
    }
    attribute <- rhdf5::H5Aopen(object, name)
    on.exit(rhdf5::H5Aclose(attribute), add = TRUE, after = FALSE)
    as.vector(rhdf5::H5Aread(attribute))
}

# Those of the file itself that it has, by name.
h5_attributes <- function(h5, names) {
    values <- lapply(stats::setNames(names, names), function(name) h5_attribute(h5, "", name))
    values[!vapply(values, is.null, NA)]
}

# An array as plain R has it: a vector if it has one dimension, logicals for true and false, integers where all fit.
h5_value <- function(h5, at) {
    if (!h5_has(h5, at)) {
        h5_fail(h5, at, "is not there")
    }
    if (h5_is_group(h5, at)) {
        h5_fail(h5, at, "is a group; it must be an array")
    }
    x <- tryCatch(
        suppressWarnings(rhdf5::h5read(h5$id, at, bit64conversion = "double", compoundAsDataFrame = FALSE)),
        error = function(e) h5_fail(h5, at, "cannot be read: ", conditionMessage(e), filters_of(h5, at)))
    if (is.list(x)) lapply(x, plain_array) else plain_array(x, integer = identical(h5_class(h5, at), "INTEGER"))
}

plain_array <- function(x, integer = FALSE) {
    size <- dim(x)
    if (is.factor(x) && setequal(levels(x), c("FALSE", "TRUE"))) {
        x <- x == "TRUE"
    } else if (is.raw(x) || (integer && all(abs(x) <= .Machine$integer.max, na.rm = TRUE))) {
        x <- as.integer(x) # bytes, and the integers of 64 bits that others write by default
    } else if (is.character(x)) {
        x <- enc2utf8(x)
    }
    dim(x) <- if (length(size) > 1L) size
    x
}

# Filters of an array that cannot be read: of most, the compression is not among those that rhdf5 has.
filters_of <- function(h5, at) {
    data <- rhdf5::H5Dopen(h5$id, at)
    on.exit(rhdf5::H5Dclose(data))
    list <- rhdf5::H5Dget_create_plist(data)
    on.exit(rhdf5::H5Pclose(list), add = TRUE, after = FALSE)
    n <- tryCatch(rhdf5::H5Pget_nfilters(list), error = function(e) 0L)
    if (n == 0L) {
        return(NULL)
    }
    numbers <- vapply(seq_len(n), function(i) as.numeric(rhdf5::H5Pget_filter(list, i)[[1L]]), 0)
    paste0(" (its filters of HDF5 are ", some_of(numbers), ")")
}

# Matrices ----------------------------------------------------------------------------------------

# A matrix of rows x columns as the file's own program has them, and as its writer calls it: an array, or a group of
# `data`, `indices` and `indptr`. Arrays of an assay stay in the file.
h5_matrix <- function(h5, at, in_file = FALSE) {
    if (h5_is_group(h5, at)) {
        return(h5_sparse(h5, at))
    }
    if (length(h5_dim(h5, at)) != 2L) {
        h5_fail(h5, at, "has the dimensions ", h5$index$dim[match(at, h5$index$at)], "; it must be a matrix")
    }
    if (!h5_class(h5, at) %in% c("FLOAT", "INTEGER", "ENUM")) {
        kind <- h5_class(h5, at)
        h5_fail(h5, at, "holds ", if (kind == "STRING") "text" else kind, "; it must hold numbers")
    }
    if (!in_file || 0 %in% h5_dim(h5, at)) {
        return(t(h5_value(h5, at)))
    }
    need_package("HDF5Array", h5$path)
    # It warns that the file is open, which it is to be read.
    x <- tryCatch(suppressWarnings(HDF5Array::HDF5Array(h5$path, at)),
        error = function(e) h5_fail(h5, at, "cannot be read: ", conditionMessage(e)))
    BiocGenerics::t(x)
}

h5_sparse <- function(h5, at) {
    format <- h5_attribute(h5, at, "encoding-type")
    if (is.null(format)) format <- h5_attribute(h5, at, "h5sparse_format")
    size <- h5_attribute(h5, at, "shape")
    if (is.null(size)) size <- h5_attribute(h5, at, "h5sparse_shape")
    if (is.null(format) || !format %in% c("csr", "csc", "csr_matrix", "csc_matrix") || length(size) != 2L) {
        h5_fail(h5, at, "is a group ", if (is.null(format)) "without an encoding" else paste("of the encoding",
            quoted(format)), "; it must be an array, or a csr_matrix or csc_matrix with a shape")
    }
    by_row <- startsWith(format, "csr")
    x <- h5_columns(h5, at, if (by_row) rev(size) else size)
    if (by_row) Matrix::t(x) else x
}

# `indptr` says which entries of `indices` (rows, from 0) and `data` are of each column.
h5_columns <- function(h5, at, size) {
    inside <- function(name) paste0(at, "/", name)
    p <- h5_value(h5, inside("indptr"))
    if (length(p) != size[2L] + 1 || anyNA(p) || p[1L] != 0 || any(diff(p) < 0)) {
        h5_fail(h5, inside("indptr"), "is not that of a matrix of ", size[1L], " x ", size[2L])
    }
    n <- p[length(p)]
    if (n > .Machine$integer.max) {
        h5_fail(h5, at, "has ", n, " values, more than a sparse matrix in memory can have; HDF5Array::H5ADMatrix() ",
            "or HDF5Array::TENxMatrix() leaves them in the file")
    }
    i <- h5_value(h5, inside("indices"))
    x <- as.double(h5_value(h5, inside("data")))
    if (length(i) != n || length(x) != n) {
        h5_fail(h5, at, "has ", length(x), " values and ", length(i), " indices; by 'indptr' there are ", n)
    }
    if (n > 0 && (min(i) < 0 || max(i) >= size[1L])) {
        h5_fail(h5, inside("indices"), "has numbers from ", min(i), " to ", max(i), "; they must be from 0 to ",
            size[1L] - 1)
    }
    sorted <- n < 2 || all(diff(i) > 0 | seq_len(n - 1) %in% p)
    if (sorted) {
        return(new("dgCMatrix", i = as.integer(i), p = as.integer(p), x = x, Dim = as.integer(size)))
    }
    # Entries in any order; what is there twice is a sum, as the programs that write it have it.
    as(Matrix::sparseMatrix(i = i + 1L, p = p, x = x, dims = size), "generalMatrix")
}
