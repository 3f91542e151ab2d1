#' Write a result to a file for other programs
#'
#' The graph, or the angles and positions of the features, in the formats that other programs read. The ending of
#' `path` says which. Files are written beside their place and renamed when they are whole. Numbers in text have 15
#' digits.
#'
#' @section Graphs:
#' * `.csv`, `.tsv`: the table of [cape_edges()], a line for every edge, the strongest first. Text in UTF-8; a field
#'   with a separator, a quote or a line break is quoted. Features without edges are not in it.
#' * `.graphml` (Gephi, Cytoscape, igraph, NetworkX): nodes with their `name` and, of a fit, `generality`, `radius` and
#'   `pagerank`; edges with `weight` (absolute), `sign` and what else [cape_edges()] has.
#' * `.sif` (Cytoscape): a line "cause, tab, `causes`, tab, effect" for every edge and one for every feature without
#'   edges. Beside `x.sif`, `x.edges.tsv` has the columns of [cape_edges()] by the name that Cytoscape gives an edge,
#'   and `x.nodes.tsv` those of [summary()][summaries] by the name of the feature: import both as tables, with the
#'   first column as the key. A name with a tab or a line break is an error.
#'
#' @section Arrays for Python:
#' * `.npz` (NumPy): `angles`, features x d in 32 bits, as [cape_fit()] stored them; `features`, the name of every row;
#'   `pairs`, the name of every column, which is the angle of one pair of columns of a query or key.
#' * `.safetensors`: a tensor `angles`, the same; `__metadata__` has `features` and `pairs`, each a list in JSON.
#'
#' @section anndata:
#' `.h5ad` (rhdf5) has what was found of the features, and no cells: `varp["cape_weights"]` (the signed weights, sparse;
#' the row is the cause, the column the effect), `varm["cape_embedding"]` (the Poincaré ball), `varm["cape_angles"]`,
#' `var["cape_generality"]`, `var["cape_radius"]` (NaN: no position), and in `uns["cape"]` versions, and what each of
#' these is. Of a [CapeDag-class] there are the weights alone. In Python it is added to a table by the features' names:
#' ```
#' cape = anndata.read_h5ad("cape.h5ad")
#' adata = adata[:, cape.var_names].copy()      # the features of the graph
#' adata.varm["cape_angles"] = cape.varm["cape_angles"]
#' adata.varp["cape_weights"] = cape.varp["cape_weights"]
#' ```
#'
#' @param x a [CapeFit-class], a SingleCellExperiment from [cape_fit()], of which this writes the features that it still
#'   has, or, where no angles are asked for, a [CapeDag-class].
#' @param path name of the file, which ends in `.csv`, `.tsv`, `.graphml`, `.sif`, `.npz`, `.safetensors` or `.h5ad`.
#'   Its folder must exist.
#' @param overwrite whether a file that is there is replaced; otherwise it is an error. Of a `.sif` this is about all
#'   three.
#' @param name under which [cape_fit()] stored the result.
#' @return `path`, invisibly; of a `.sif` the names of the three files.
#' @seealso [cape_read()] for files in, [cape_save()] for models, [conversions] for objects of other packages
#' @examples
#' truth <- cape_simulate_dag(6, edges.per.node = 1, seed = 1)
#' file <- cape_write(truth, tempfile(fileext = ".csv"))
#' read.csv(file)
#' @export
cape_write <- function(x, path, overwrite = FALSE, name = "CAPE") {
    x <- if (is(x, "CapeDag")) updateObject(x) else cape_result(x, name)
    path <- path.expand(check_string(path, "path"))
    check_flag(overwrite, "overwrite")
    ending <- tolower(sub(".*\\.", "", basename(path)))
    if (!grepl(".", basename(path), fixed = TRUE) || !ending %in% file_endings) {
        cape_error("'path' is ", quoted(path), "; it must end in ", some_of(paste0(".", file_endings), 10L))
    }
    if (ending %in% c("npz", "safetensors") && is(x, "CapeDag")) {
        cape_error("'x' is a CapeDag, which has no angles for ", quoted(path), "; write a CapeFit, as cape_fit() and ",
            "cape_calculate() make it")
    }
    if (!dir.exists(dirname(path))) {
        cape_error("'path' is ", quoted(path), "; its folder must exist")
    }
    files <- file_contents(x, path, ending)
    there <- names(files)[file.exists(names(files))]
    if (any(dir.exists(there)) || (length(there) > 0L && !overwrite)) {
        cape_error("'path' is ", quoted(path), "; there is already ", if (any(dir.exists(there))) "a folder ",
            some_of(quoted(there)), if (!any(dir.exists(there))) ": 'overwrite = TRUE' replaces it")
    }
    write_whole(files)
    invisible(names(files))
}

file_endings <- c("csv", "tsv", "graphml", "sif", "npz", "safetensors", "h5ad")

# By name of the file what it holds: bytes, or a function that writes it.
file_contents <- function(x, path, ending) {
    if (ending == "sif") {
        return(sif_files(x, path))
    }
    if (ending == "h5ad") need_package("rhdf5", path, "writing")
    content <- switch(ending,
        csv = table_bytes(cape_edges(x), ","),
        tsv = table_bytes(cape_edges(x), "\t"),
        graphml = function(file) igraph::write_graph(as(x, "igraph"), file, "graphml"),
        npz = npz_bytes(arrays_of(x)),
        safetensors = safetensors_bytes(arrays_of(x)),
        h5ad = function(file) write_h5ad(x, file))
    stats::setNames(list(content), path)
}

# All files are made before the first takes its place: an older one stays until then.
write_whole <- function(files, argument = "path") {
    new <- new_name(names(files))
    on.exit(for (file in new) remove_file(file))
    failed <- function(file, why = " (is the disk full?)") {
        cape_error("'", argument, "' ", quoted(file), " could not be written", why)
    }
    for (k in seq_along(files)) {
        remove_file(new[k])
        content <- files[[k]]
        tryCatch(if (is.raw(content)) writeBin(content, new[k]) else content(new[k]),
            error = function(e) failed(names(files)[k], paste0(": ", conditionMessage(e))))
        if (!file.exists(new[k]) || is.raw(content) && file.size(new[k]) != length(content)) failed(names(files)[k])
    }
    for (k in seq_along(files)) if (!file.rename(new[k], names(files)[k])) failed(names(files)[k])
}

# Text -------------------------------------------------------------------------------------------

# In UTF-8 with the same line ends everywhere, whatever the locale is.
text_bytes <- function(lines) charToRaw(paste0(enc2utf8(lines), "\n", collapse = "", recycle0 = TRUE))

table_bytes <- function(table, separator) {
    field <- function(x) {
        text <- ifelse(is.na(x), "", as.character(x))
        quote <- grepl(paste0("[", separator, "\"\r\n]"), text)
        text[quote] <- paste0("\"", gsub("\"", "\"\"", text[quote], fixed = TRUE), "\"")
        enc2utf8(text)
    }
    rows <- do.call(paste, c(unname(lapply(as.list(table), field)), sep = separator, recycle0 = TRUE))
    text_bytes(c(paste(colnames(table), collapse = separator), rows))
}

sif_files <- function(x, path) {
    edges <- cape_edges(x)
    nodes <- node_table(x)
    features <- rownames(nodes)
    # Fields are separated by tabs if the file has one, else by blanks.
    bad <- grepl(if (nrow(edges) > 0L) "[\t\r\n]" else "[[:space:]]", features)
    if (any(bad)) {
        cape_error("'x' has features whose names a .sif cannot have, for their ",
            if (nrow(edges) > 0L) "tabs or line breaks: " else "blanks (in a graph without edges): ",
            some_of(encodeString(features[bad], quote = "'")))
    }
    alone <- setdiff(features, c(edges$from, edges$to))
    lines <- c(paste(edges$from, "causes", edges$to, sep = "\t", recycle0 = TRUE), alone)
    edges <- cbind(name = paste0(edges$from, " (causes) ", edges$to, recycle0 = TRUE), as.data.frame(edges))
    beside <- function(what) sub("\\.sif$", paste0(".", what, ".tsv"), path, ignore.case = TRUE)
    stats::setNames(
        list(text_bytes(lines), table_bytes(edges, "\t"),
            table_bytes(cbind(name = features, as.data.frame(nodes)), "\t")),
        c(path, beside("edges"), beside("nodes")))
}
