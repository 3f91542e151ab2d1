# A file of anndata 0.8 and later. Its arrays have their dimensions in the reverse order in R.

write_h5ad <- function(x, file) {
    dag <- cape_dag(x)
    id <- rhdf5::H5Fcreate(file)
    on.exit(rhdf5::H5Fclose(id))
    encode(id, "/", "anndata", "0.1.0")
    put_group(id, "obs", "dataframe", "0.2.0")
    put_group(id, "var", "dataframe", "0.2.0")
    columns <- if (is(x, "CapeFit")) {
        list(cape_generality = x@embedding@generality, cape_radius = x@embedding@radius)
    }
    put_frame(id, "obs", character(), list())
    put_frame(id, "var", dag@features, columns)

    put_group(id, "varp", "dict", "0.1.0")
    put_sparse(id, "varp/cape_weights", dag@adjacency)
    about <- list(
        version = run_versions()$capeOmics,
        cape_weights = paste("signed weights of the causal graph; A[m, n] is the weight of m -> n: the row is the",
            "cause, the column the effect; nothing stored: no edge"))
    if (is(x, "CapeFit")) {
        put_group(id, "varm", "dict", "0.1.0")
        put_array(id, "varm/cape_embedding", x@embedding@poincare)
        put_array(id, "varm/cape_angles", x@angles)
        about <- c(about, list(
            fitted_with = x@versions$capeOmics,
            cape_embedding = "coordinates of the features in the Poincare ball",
            cape_angles = "rotary angles in radians: column j rotates columns 2j and 2j + 1, from 0, of a query or key",
            cape_generality = "1 - |e|, e the point in the ball: near 1 causally general; NaN without a position",
            cape_radius = "hyperbolic distance to the origin: causal specificity; NaN without a position"))
    }
    put_group(id, "uns", "dict", "0.1.0")
    put_group(id, "uns/cape", "dict", "0.1.0")
    for (name in names(about)) put_text(id, paste0("uns/cape/", name), about[[name]], scalar = TRUE)
}

put_group <- function(id, at, type, version) {
    rhdf5::h5createGroup(id, at)
    encode(id, at, type, version)
}

encode <- function(id, at, type, version) {
    put_attribute(id, at, "encoding-type", type)
    put_attribute(id, at, "encoding-version", version)
}

put_attribute <- function(id, at, name, value, scalar = TRUE) {
    object <- rhdf5::H5Oopen(id, at)
    on.exit(rhdf5::H5Oclose(object))
    if (is.character(value)) {
        type <- text_type()
        space <- text_space(value, scalar)
        on.exit(rhdf5::H5Sclose(space), add = TRUE, after = FALSE)
        attribute <- rhdf5::H5Acreate(object, name, type, space)
        on.exit(rhdf5::H5Aclose(attribute), add = TRUE, after = FALSE)
        if (length(value) > 0L) rhdf5::H5Awrite(attribute, value)
    } else {
        rhdf5::h5writeAttribute(value, object, name)
    }
}

# Text in UTF-8, of any length: one piece, or a vector, which may be empty.
text_type <- function() {
    type <- rhdf5::H5Tcopy("H5T_C_S1")
    rhdf5::H5Tset_size(type, NULL) # variable
    rhdf5::H5Tset_cset(type, "UTF-8")
    type
}

text_space <- function(value, scalar) {
    if (scalar) rhdf5::H5Screate("H5S_SCALAR") else rhdf5::H5Screate_simple(length(value))
}

put_text <- function(id, at, value, scalar = FALSE) {
    space <- text_space(value, scalar)
    on.exit(rhdf5::H5Sclose(space))
    data <- rhdf5::H5Dcreate(id, at, text_type(), space)
    if (length(value) > 0L) rhdf5::H5Dwrite(data, enc2utf8(value))
    rhdf5::H5Dclose(data)
    encode(id, at, if (scalar) "string" else "string-array", "0.2.0")
}

# A vector, or a matrix of rows x columns as anndata has it.
put_array <- function(id, at, values) {
    values <- unname(if (is.matrix(values)) t(values) else values)
    size <- if (is.matrix(values)) dim(values) else length(values)
    if (is.double(values)) values[is.na(values)] <- NaN # the NA of R is no number of others
    rhdf5::h5createDataset(id, at, size, storage.mode = storage.mode(values), level = 0)
    if (length(values) > 0L) suppressMessages(rhdf5::h5write(values, id, at))
    encode(id, at, "array", "0.2.0")
}

put_frame <- function(id, at, names, columns) {
    put_attribute(id, at, "_index", "_index")
    put_attribute(id, at, "column-order", as.character(names(columns)), scalar = FALSE)
    put_text(id, paste0(at, "/_index"), names)
    for (name in names(columns)) put_array(id, paste0(at, "/", name), columns[[name]])
}

# By row, as anndata has it.
put_sparse <- function(id, at, x) {
    by_row <- Matrix::t(x)
    put_group(id, at, "csr_matrix", "0.1.0")
    put_attribute(id, at, "shape", dim(x))
    put_array(id, paste0(at, "/data"), by_row@x)
    put_array(id, paste0(at, "/indices"), by_row@i)
    put_array(id, paste0(at, "/indptr"), by_row@p)
}
