# HDF5 files of other programs: those in $CAPE_TEST_DATA, and files that are written here by what the formats say.
skip_if_not_installed("rhdf5")
skip_if_not_installed("HDF5Array")

# An HDF5 file of arrays by path, each as its own program sees it (rows x columns), with attributes by path.
hdf5_file <- function(arrays, attributes = list(), ext = ".h5ad") {
    file <- tempfile(fileext = ext)
    rhdf5::h5createFile(file)
    groups <- unique(c(dirname(names(arrays)), setdiff(names(attributes), names(arrays))))
    parts <- strsplit(groups[groups != "."], "/", fixed = TRUE)
    groups <- unique(unlist(lapply(parts, function(p) vapply(seq_along(p), function(i) paste(p[seq_len(i)], collapse = "/"), ""))))
    for (group in setdiff(groups, c("", "."))) rhdf5::h5createGroup(file, group)
    for (at in names(arrays)) {
        x <- arrays[[at]]
        if (length(x) == 0L) {
            rhdf5::h5createDataset(file, at, rev(if (is.null(dim(x))) 0 else dim(x)), storage.mode = storage.mode(x), size = 8)
        } else {
            rhdf5::h5write(if (length(dim(x)) > 1L) aperm(x) else x, file, at)
        }
    }
    id <- rhdf5::H5Fopen(file)
    for (at in names(attributes)) {
        object <- rhdf5::H5Oopen(id, at)
        for (name in names(attributes[[at]])) rhdf5::h5writeAttribute(attributes[[at]][[name]], object, name)
        rhdf5::H5Oclose(object)
    }
    rhdf5::H5Fclose(id)
    file
}
read <- function(...) suppressMessages(cape_read(...))
refused <- function(file, text, ...) {
    error <- expect_error(read(file, ...), text, class = "capeError")
    expect_match(conditionMessage(error), basename(file), fixed = TRUE)
}
plain <- function(x) unname(as.matrix(x))

# A compressed matrix entry by entry; `along` is the number of rows of csr, or columns of csc.
entry_by_entry <- function(file, at, across) {
    part <- function(name) as.numeric(rhdf5::h5read(file, paste0(at, "/", name)))
    p <- part("indptr")
    i <- part("indices")
    values <- part("data")
    x <- matrix(0, across, length(p) - 1)
    for (j in seq_len(ncol(x))) for (k in seq_len(p[j + 1] - p[j]) + p[j]) x[i[k] + 1, j] <- values[k]
    x
}
fixture <- function(...) {
    file <- file.path(Sys.getenv("CAPE_TEST_DATA", "none"), ...)
    skip_if_not(file.exists(file), paste("there is no", basename(file), "in CAPE_TEST_DATA:"))
    file
}

# 10x ---------------------------------------------------------------------------------------------

few <- matrix(c(3, 0, 1, 7, 2, 0, 0, 5, 4, 9, 6, 8), 4)
compressed <- function(x, at, names = c("indptr", "indices", "data")) { # by column
    parts <- list(cumsum(c(0L, colSums(x != 0))), (row(x) - 1L)[x != 0], x[x != 0])
    stats::setNames(parts, paste0(at, "/", names))
}
ten_x_3 <- function(x = few, change = list(), types = "Gene Expression") {
    n <- nrow(x)
    arrays <- c(compressed(x, "matrix"), list(`matrix/shape` = dim(x), `matrix/barcodes` = paste0("AAAC", seq_len(ncol(x)), "-1"),
        `matrix/features/id` = paste0("ENSG", seq_len(n), recycle0 = TRUE), `matrix/features/name` = paste0("g", seq_len(n), recycle0 = TRUE),
        `matrix/features/feature_type` = rep(types, length.out = n), `matrix/features/genome` = rep("GRCh38", n)))
    hdf5_file(utils::modifyList(arrays, change), ext = ".h5")
}

test_that("10x .h5 of version 3: values, names, types", {
    x <- read(ten_x_3())
    expect_identical(plain(counts(x)), few)
    expect_s4_class(counts(x), "dgCMatrix")
    expect_identical(dimnames(x), list(paste0("g", 1:4), paste0("AAAC", 1:3, "-1")))
    expect_identical(as.list(rowData(x)), list(ID = paste0("ENSG", 1:4), Symbol = paste0("g", 1:4),
        Type = rep("Gene Expression", 4), genome = rep("GRCh38", 4)))
    types <- c("Gene Expression", "Antibody Capture", "Gene Expression", "Peaks")
    expect_message(x <- cape_read(ten_x_3(types = types)), "3 types: 2 of Gene Expression.*1 of Antibody Capture, 1 of Peaks")
    expect_identical(plain(counts(x)), few[c(1, 3), ])
    expect_identical(plain(counts(altExp(x, "Peaks"))), few[4, , drop = FALSE])
    # Names that are numbers, or twice there; one cell; no features; entries in any order, and twice.
    odd <- list(`matrix/features/name` = c("1e5", "007", "NA", "007"))
    expect_message(x <- cape_read(ten_x_3(change = odd)), "1 symbol for several features \\('007'\\).*their ids")
    expect_identical(rownames(x), c("1e5", "007_ENSG2", "NA", "007_ENSG4"))
    expect_identical(plain(counts(read(ten_x_3(few[, 2, drop = FALSE])))), few[, 2, drop = FALSE])
    expect_identical(dim(read(ten_x_3(few[0, ]))), c(0L, 3L))
    shuffled <- list(`matrix/indptr` = c(0L, 3L, 3L, 4L), `matrix/indices` = c(3L, 0L, 3L, 1L), `matrix/data` = c(1, 2, 4, 8))
    expect_identical(plain(counts(read(ten_x_3(change = shuffled)))), cbind(c(2, 0, 0, 5), 0, c(0, 8, 0, 0)))
    expect_identical(min(counts(read(ten_x_3(-few)))), -9)
})

test_that("10x .h5 of version 2: one genome of several", {
    genome <- function(name, x) c(compressed(x, name), stats::setNames(list(dim(x), paste0("B", seq_len(ncol(x))),
        paste0(name, seq_len(nrow(x))), paste0("g", seq_len(nrow(x)))), paste0(name, c("/shape", "/barcodes", "/genes", "/gene_names"))))
    one <- hdf5_file(genome("hg19", few), ext = ".h5")
    expect_identical(plain(counts(read(one))), few)
    expect_identical(unique(rowData(read(one))$genome), "hg19")
    expect_identical(read(one, experiment = "hg19"), read(one))
    two <- hdf5_file(c(genome("hg19", few), genome("mm10", 2 * few[1:2, ])), ext = ".h5")
    refused(two, "2 genomes: 'hg19', 'mm10'.*experiment = \"hg19\"")
    expect_identical(plain(counts(read(two, experiment = "mm10"))), 2 * few[1:2, ])
    expect_error(read(two, experiment = "mm"), "'experiment' is \"mm\"", class = "capeError")
    refused(ten_x_3(), "has but one", experiment = "GRCh38")
})

test_that("files of 10x that are damaged are refused with the place", {
    broken <- function(...) ten_x_3(change = list(...))
    refused(broken(`matrix/indices` = c(0L, 2L, 4L, 0L, 3L, 0L, 1L, 2L, 3L)), "'matrix/indices' has numbers from 0 to 4.*0 to 3")
    refused(broken(`matrix/indptr` = c(0L, 5L, 4L, 9L)), "'matrix/indptr'")
    refused(broken(`matrix/data` = 1:3), "3 values and 9 indices")
    refused(broken(`matrix/shape` = c(4L, 4L)), "'matrix/indptr' is not that of a matrix of 4 x 4")
    refused(broken(`matrix/barcodes` = c("a", "b")), "'matrix/barcodes' has 2 values.*3")
    refused(broken(`matrix/features/id` = c("a", "b")), "'matrix/features/id' has 2 values.*4")
    refused(hdf5_file(list(a = 1, `b/c` = 2), ext = ".h5"), "'a', 'b' at its top.*none of the files that are known")
    text <- tempfile(fileext = ".h5ad")
    writeLines("gene,s1", text)
    refused(text, "no HDF5 file")
    whole <- ten_x_3(matrix(1, 500, 20))
    half <- tempfile(fileext = ".h5")
    writeBin(readBin(whole, "raw", file.size(whole) / 2), half)
    refused(half, "cannot be read")
    rhdf5::h5errorHandling("suppress")
    on.exit(rhdf5::h5errorHandling("normal"))
    refused(half, "cannot be read")
})

# As files of Zstandard are where the filter is not there: the number of the filter of a compressed array is changed.
test_that("a filter that is not there is named", {
    file <- ten_x_3(matrix(as.numeric(1:2000), 100))
    at <- rhdf5::h5ls(file)
    bytes <- readBin(file, "raw", file.size(file))
    deflate <- grepRaw(charToRaw("deflate"), bytes, fixed = TRUE, all = TRUE)
    skip_if(length(deflate) == 0L, "filters are written in another form:")
    for (place in deflate) bytes[place - 8:7] <- as.raw(c(0x0f, 0x7d)) # 32015
    writeBin(bytes, file)
    refused(file, "'matrix/.*cannot be read.*32015")
})

test_that("10x files of Cell Ranger are read entry by entry", {
    for (name in c("tenx_v3.0.0.h5", "seurat_visium_filtered.h5", "tenxio_multiome_granulocyte.h5", "tenxio_atac.h5")) {
        file <- fixture("readers_10x", name)
        x <- read(file)
        n <- as.integer(rhdf5::h5read(file, "matrix/shape"))
        expect_identical(dim(x), n)
        expect_identical(plain(counts(x)), entry_by_entry(file, "matrix", n[1]))
        expect_identical(colnames(x), as.vector(rhdf5::h5read(file, "matrix/barcodes")))
        expect_identical(rowData(x)$ID, as.vector(rhdf5::h5read(file, "matrix/features/id")))
    }
    # The same cells in both forms.
    expect_identical(counts(read(fixture("readers_10x", "mtx_v3"))), counts(read(fixture("readers_10x", "tenx_v3.0.0.h5"))))
    file <- fixture("readers_10x", "tenx_v1.2.0_multiple_genomes.h5")
    refused(file, "'another_genome', 'hg19_chr21'")
    expect_identical(plain(counts(read(file, experiment = "hg19_chr21"))), entry_by_entry(file, "hg19_chr21", 343))
    expect_identical(metadata(read(fixture("readers_10x", "tenx_v1.2.0.h5")))$library_ids, "test")
})

# anndata -----------------------------------------------------------------------------------------

cells <- paste0("c", 1:3)
genes <- paste0("g", 1:4)
anndata <- function(change = list(), attributes = list(), ext = ".h5ad") {
    arrays <- c(list(`obs/_index` = cells, `obs/batch` = c(2.5, 1, 7), `var/_index` = genes, `var/length` = 1:4),
        compressed(few, "X"))
    about <- list(obs = list(`encoding-type` = "dataframe", `_index` = "_index", `column-order` = "batch"),
        var = list(`encoding-type` = "dataframe", `_index` = "_index", `column-order` = "length"),
        X = list(`encoding-type` = "csr_matrix", shape = c(3L, 4L)))
    hdf5_file(Filter(Negate(is.null), utils::modifyList(arrays, change)),
        Filter(Negate(is.null), utils::modifyList(about, attributes)), ext)
}
no_x <- list(`X/indptr` = NULL, `X/indices` = NULL, `X/data` = NULL)

test_that("X is csr, csc or dense, and named by its values", {
    for (form in c("csr", "csc", "old csr", "dense")) {
        arrays <- switch(form, csc = compressed(t(few), "X"), dense = c(no_x, list(X = t(few))), list())
        format <- if (form == "old csr") list(X = list(`encoding-type` = NULL, shape = NULL, h5sparse_format = "csr",
            h5sparse_shape = c(3L, 4L))) else list(X = list(`encoding-type` = paste0(form, "_matrix")))
        file <- anndata(arrays, if (form == "dense") list(X = NULL) else format)
        expect_message(x <- cape_read(file), "X holds whole numbers from 0 to 9.*assay 'counts'")
        expect_identical(plain(counts(x)), few)
        expect_identical(dimnames(x), list(genes, cells))
        expect_identical(as.list(colData(x)), list(batch = c(2.5, 1, 7)))
        expect_identical(as.list(rowData(x)), list(length = 1:4))
        expect_s4_class(counts(x), if (form == "dense") "DelayedMatrix" else "dgCMatrix")
    }
    named <- function(values, name, uns = list(), ...) {
        x <- read(anndata(c(no_x, list(X = t(values)), uns), list(X = NULL)), ...)
        expect_identical(assayNames(x), name)
        expect_equal(plain(assay(x)), values)
    }
    named(log1p(few), "logcounts")
    named(few - 1, "values")
    named(few * 10.5, "values")
    named(few * 10.5, "logcounts", list(`uns/log1p/base` = 2))
    named(replace(few, 3, NaN), "counts")
    named(replace(few, 3, Inf), "values")
    named(few, "values", assay.type = "values")
    named(few + 0.5, "counts", assay.type = "counts")
    x <- read(anndata(list(`layers/counts` = t(few), `layers/spliced` = t(few) / 2), list(X = list(`encoding-type` = "csr_matrix"))))
    expect_identical(assayNames(x), c("X", "counts", "spliced"))
    expect_identical(plain(assay(x, "spliced")), few / 2)
    expect_error(read(anndata(list(`layers/counts` = t(few))), assay.type = "counts"), "has already", class = "capeError")
})

test_that("a fit to a dense X in its file is that to the matrix", {
    x <- cape_simulate_data(cape_simulate_dag(5, seed = 1), 60, mechanism = "linear", seed = 2)
    file <- hdf5_file(list(X = t(x), `obs/_index` = paste0("c", 1:60), `var/_index` = rownames(x)))
    expect_identical(cape_edges(quick_fit(read(file), assay.type = "values")), cape_edges(quick_fit(x)))
})

test_that("categories of old and new encodings, missing values, strings", {
    file <- anndata(list(`obs/new/codes` = c(1L, -1L, 0L), `obs/new/categories` = c("b", "\u00e9"), `obs/old` = c(0L, 1L, -1L),
        `obs/__categories/old` = c(10, 9), `obs/whole/values` = c(5L, 6L, 7L), `obs/whole/mask` = c(0L, 1L, 0L),
        `obs/text/values` = c("x", "", "z"), `obs/text/mask` = c(0L, 1L, 0L), `obs/bad/codes` = c(0L, 5L, 0L), `obs/bad/categories` = "a"),
        list(obs = list(`column-order` = c("new", "old", "whole", "text", "bad")), `obs/new` = list(`encoding-type` = "categorical"),
            `obs/bad` = list(`encoding-type` = "categorical"), `obs/whole` = list(`encoding-type` = "nullable-integer"),
            `obs/text` = list(`encoding-type` = "nullable-string-array")))
    expect_message(x <- cape_read(file), "left out of it: obs/bad \\(has codes of categories that are not there\\)")
    expect_identical(as.list(colData(x)), list(new = factor(c("\u00e9", NA, "b"), c("b", "\u00e9")),
        old = factor(c("10", "9", NA), c("10", "9")), whole = c(5L, NA, 7L), text = c("x", NA, "z")))
    # Names that are numbers, and names that are there twice, are those of the file.
    odd <- read(anndata(list(`var/_index` = c(100000L, 7L, 7L, 400000L), `obs/_index` = c("1", "1", "02"))))
    expect_identical(dimnames(odd), list(c("100000", "7", "7", "400000"), c("1", "1", "02")))
    refused(anndata(list(`var/_index` = c("a", "", "c", "d"))), "'var' has no name for 2")
})

test_that("raw, layers, matrices, graphs and the rest come along, or are named", {
    raw <- rbind(few, 1)
    about <- list(`obsp/near` = list(`encoding-type` = "csr_matrix", shape = c(3L, 3L)))
    file <- anndata(c(list(`raw/X` = t(raw), `raw/var/_index` = c(genes, "g5"), `obsm/X_pca` = matrix(1:6 / 2, 3), `varm/PCs` = matrix(1:8, 4),
        `varm/length` = matrix(1:8, 4), `obsm/cube` = array(1:12, c(3, 2, 2)), `obsp/full` = diag(3), `uns/a/b` = "text"),
        compressed(t(rbind(c(0, 2, 0), 0, c(1, 0, 0))), "obsp/near")), about)
    said <- testthat::capture_messages(x <- cape_read(file))
    expect_match(said, "raw/X holds whole numbers from 0 to 9.*'counts' of altExp\\(x, \"raw\"\\), which has 5 features", all = FALSE)
    expect_match(said, "left out of it: obsm/cube.*obsp/full \\(a dense matrix\\), varm/length \\('var' has a column", all = FALSE)
    expect_identical(plain(counts(altExp(x, "raw"))), raw)
    expect_identical(plain(reducedDim(x, "X_pca")), matrix(1:6 / 2, 3))
    expect_identical(plain(rowData(x)$PCs), matrix(1:8, 4))
    expect_identical(plain(colPair(x, "near", asSparse = TRUE)), rbind(c(0, 2, 0), 0, c(1, 0, 0)))
    expect_identical(metadata(x), list(a = list(b = "text")))
    same <- anndata(list(`raw/X` = t(few), `raw/var/_index` = genes, X = t(log1p(few)), `X/indptr` = NULL, `X/indices` = NULL, `X/data` = NULL),
        list(X = NULL))
    expect_identical(assayNames(read(same)), c("logcounts", "counts"))
})

test_that("files of anndata that are damaged or of no known form are refused with the place", {
    refused(anndata(list(`X/indices` = rep(4L, 9))), "'X/indices' has numbers from 4 to 4")
    refused(anndata(attributes = list(X = list(`encoding-type` = "coo_matrix"))), "'X' is a group of the encoding 'coo_matrix'")
    refused(anndata(attributes = list(X = list(shape = c(3L, 5L)))), "'X' is 3 x 5; by the tables.*3 x 4")
    refused(anndata(c(no_x, list(X = 1:3)), list(X = NULL)), "'X' has the dimensions 3; it must be a matrix")
    refused(anndata(c(no_x, list(X = matrix("a", 3, 4))), list(X = NULL)), "'X' holds text")
    refused(anndata(no_x, list(X = NULL)), "neither X nor layers")
    refused(anndata(list(`obs/_index` = NULL)), "'obs/_index' is not there")
    expect_error(read(anndata(), features = "columns"), "for text files", class = "capeError")
    expect_identical(dim(read(anndata(list(`obs/_index` = "c", `obs/batch` = 1, X = t(few[, 1]), `X/indptr` = NULL, `X/indices` = NULL,
        `X/data` = NULL), list(X = NULL)))), c(4L, 1L))
    expect_identical(dim(read(anndata(c(no_x, list(`var/_index` = character(), `var/length` = integer(), X = matrix(0, 3, 0))),
        list(X = NULL)))), c(0L, 3L))
})

test_that("files of anndata 0.5 to 0.11 and of MuData are read to their values", {
    file <- fixture("readers_h5ad", "anndataR_example.h5ad")
    x <- read(file)
    csr <- entry_by_entry(file, "X", 100)
    expect_identical(plain(assay(x, "logcounts")), csr)
    expect_equal(log1p(plain(assay(x, "dense_X"))), csr, tolerance = 1e-6)
    expect_identical(t(plain(assay(x, "csc_counts"))), entry_by_entry(file, "layers/csc_counts", 50))
    expect_identical(plain(assay(x, "dense_counts")), plain(counts(x)))
    expect_identical(is.na(x$BoolNA), as.vector(rhdf5::h5read(file, "obs/BoolNA/mask") == "TRUE"))
    expect_identical(levels(x$leiden), as.character(0:5))
    file <- fixture("readers_h5ad", "anndata_v0.5.0.h5ad")
    x <- read(file)
    expect_identical(plain(assay(x, "logcounts")), entry_by_entry(file, "raw.X", 765))
    expect_identical(plain(assay(x, "values")), unname(rhdf5::h5read(file, "X")))
    codes <- rhdf5::h5read(file, "obs")$louvain
    expect_identical(as.character(x$louvain), as.vector(rhdf5::h5read(file, "uns/louvain_categories"))[codes + 1])
    expect_identical(dim(reducedDim(x, "X_umap")), c(700L, 2L))
    x <- read(fixture("readers_h5ad", "anndata_v0.7.8.h5ad"))
    expect_identical(dim(altExp(x, "raw")), c(40L, 30L))
    refused(fixture("readers_h5ad", "anndata_v0.11.4.h5ad"), "neither X nor layers")
    for (version in c("0.1.2", "0.2.4", "0.3.10", "0.4.1")) {
        file <- fixture("readers_h5ad", paste0("mudata_v", version, "_axis0.h5mu"))
        refused(file, "2 tables: 'mod1', 'mod2'; choose one")
        expect_equal(plain(assay(read(file, experiment = "mod2"))), unname(rhdf5::h5read(file, "mod/mod2/X")))
        expect_error(read(file, experiment = "mod3"), "\"mod1\", \"mod2\"", class = "capeError")
    }
})

# loom --------------------------------------------------------------------------------------------

loom <- function(change = list(), attributes = list()) {
    hdf5_file(utils::modifyList(list(matrix = few, `layers/spliced` = few / 2, `row_attrs/Gene` = c("a", "b", "b", "d"),
        `row_attrs/Accession` = paste0("E", 1:4), `col_attrs/CellID` = cells, `col_attrs/xy` = matrix(1:6, 3),
        `attrs/LOOM_SPEC_VERSION` = "3.0.0", `col_graphs/KNN/a` = c(0, 2), `col_graphs/KNN/b` = c(1, 0), `col_graphs/KNN/w` = c(0.5, 1)),
        change), attributes, ".loom")
}

test_that("loom: matrix, layers, attributes, graphs", {
    said <- testthat::capture_messages(x <- cape_read(loom()))
    expect_match(said, "matrix holds whole numbers from 0 to 9.*'counts'; it is dense and stays in the file", all = FALSE)
    expect_identical(lapply(as.list(assays(x)), plain), list(counts = few, spliced = few / 2))
    expect_identical(dimnames(x), list(c("a", "b_E2", "b_E3", "d"), cells))
    expect_identical(rowData(x)$Gene, c("a", "b", "b", "d"))
    expect_identical(plain(reducedDim(x, "xy")), matrix(1:6, 3))
    expect_identical(plain(colPair(x, "KNN", asSparse = TRUE)), rbind(c(0, 0.5, 0), 0, c(1, 0, 0)))
    expect_identical(metadata(x)$LOOM_SPEC_VERSION, "3.0.0")
    refused(loom(list(`attrs/LOOM_SPEC_VERSION` = "4.0.0")), "version 4.0.0 of loom; 2 and 3")
    refused(loom(list(`layers/spliced` = few[1:2, ])), "'layers/spliced' is 2 x 3; 'matrix' is 4 x 3")
    expect_message(cape_read(loom(list(`col_attrs/odd` = 1:2, `col_graphs/KNN/b` = c(1, 3)))), "left out of it: col_attrs/odd.*col_graphs/KNN")
})

test_that("loom files of other programs are read to their values", {
    for (name in c("L1_DRG_20_example.loom", "loompy_test.loom", "mpfc-starmap.loom")) {
        file <- fixture("readers_loom", name)
        x <- read(file)
        expect_equal(plain(assay(x)), unname(t(rhdf5::h5read(file, "matrix"))))
        expect_identical(rowData(x)$Gene, as.vector(rhdf5::h5read(file, "row_attrs/Gene")))
    }
    expect_identical(length(unique(read(fixture("readers_loom", "mpfc-starmap.loom"))$Clusters)), 16L)
})
