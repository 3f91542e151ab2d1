# What is written is read here by others: R's own readers, igraph, NumPy and anndata where they are installed.

odd <- c("a,\"b\" ; c", "g\u00e9n\u03b2 <&>", "1e5", "NA", "alone")
odd_fit <- function() {
    x <- chain_data(300L)
    set.seed(2)
    x <- rbind(x, x["x3", ] + rnorm(300), rnorm(300)) # x3 -> x4; the last has no causes and no effects
    rownames(x) <- odd
    quick_fit(x)
}
fit <- odd_fit()
folder <- function() {
    folder <- tempfile()
    dir.create(folder)
    folder
}
written <- function(x, to, ...) cape_write(x, file.path(folder(), to), ...)
bytes <- function(file) readBin(file, "raw", file.size(file))

# A Python with these modules, or none.
python_with <- function(modules) {
    code <- shQuote(paste("import", modules))
    for (python in unique(c(Sys.which("python3"), "/usr/bin/python3"))) {
        if (nzchar(python) && file.exists(python) &&
            suppressWarnings(system2(python, c("-c", code), stdout = FALSE, stderr = FALSE)) == 0) {
            return(python)
        }
    }
    skip(paste("there is no Python with", modules))
}
run_python <- function(python, lines) {
    script <- tempfile(fileext = ".py")
    writeLines(enc2utf8(lines), script, useBytes = TRUE)
    out <- system2(python, script, stdout = TRUE, stderr = TRUE)
    if (!is.null(attr(out, "status"))) stop(paste(out, collapse = "\n"))
    out
}

# Tables ------------------------------------------------------------------------------------------

test_that("tables of edges have every name and number", {
    edges <- as.data.frame(cape_edges(fit))
    expect_gt(nrow(edges), 2)
    for (name in c("e.csv", "E.TSV")) {
        reader <- if (name == "e.csv") utils::read.csv else utils::read.delim
        back <- reader(written(fit, name), encoding = "UTF-8", na.strings = character(),
            colClasses = c(from = "character", to = "character"))
        expect_identical(names(back), names(edges))
        expect_identical(back[c("from", "to")], edges[c("from", "to")])
        expect_equal(back[-(1:2)], edges[-(1:2)], tolerance = 1e-14)
    }
    # By hand; nothing but the header without edges; line ends are the same everywhere.
    two <- as(matrix(c(0, 0, -0.5, 0), 2, dimnames = list(c("a\tb", "c"), NULL)), "CapeDag")
    expect_identical(rawToChar(bytes(written(two, "x.tsv"))), "from\tto\tweight\tsign\n\"a\tb\"\tc\t-0.5\t-1\n")
    expect_identical(readLines(written(two, "x.csv")), c("from,to,weight,sign", "a\tb,c,-0.5,-1"))
    none <- as(matrix(0, 2, 2), "CapeDag")
    expect_identical(readLines(written(none, "x.csv")), "from,to,weight,sign")
})

test_that("a .sif has every edge and feature, and tables beside it whose keys are Cytoscape's names", {
    files <- written(fit, "net.v2.SIF")
    expect_identical(basename(files), c("net.v2.SIF", "net.v2.edges.tsv", "net.v2.nodes.tsv"))
    lines <- strsplit(readLines(files[1], encoding = "UTF-8"), "\t", fixed = TRUE)
    edges <- cape_edges(fit)
    pairs <- do.call(rbind, lines[lengths(lines) == 3])
    expect_identical(pairs, cbind(edges$from, "causes", edges$to))
    expect_identical(unlist(lines[lengths(lines) == 1]), setdiff(odd, c(edges$from, edges$to)))
    expect_true("alone" %in% unlist(lines[lengths(lines) == 1]))
    read <- function(file) utils::read.delim(file, encoding = "UTF-8", na.strings = "", check.names = FALSE)
    expect_identical(read(files[2])$name, paste0(edges$from, " (causes) ", edges$to))
    nodes <- utils::read.delim(files[3], encoding = "UTF-8", na.strings = character(), colClasses = "character")
    expect_identical(nodes$name, odd)
    expect_equal(as.numeric(nodes$generality), cape_generality(fit), tolerance = 1e-14, ignore_attr = TRUE)
    expect_named(read(written(as(diag(0, 2), "CapeDag"), "x.sif")[3]),
        c("name", "causes", "effects", "strongest_cause", "strongest_effect"))

    bad <- function(names, edge) as(matrix(c(0, 0, edge, 0), 2, dimnames = list(names, NULL)), "CapeDag")
    expect_error(written(bad(c("a\tb", "c"), 1), "x.sif"), "tabs or line breaks: 'a\\\\tb'", class = "capeError")
    expect_error(written(bad(c("a\nb", "c"), 1), "x.sif"), "line breaks", class = "capeError")
    # Without a tab in the file blanks separate.
    expect_error(written(bad(c("a b", "c"), 0), "x.sif"), "blanks.*'a b'", class = "capeError")
    expect_identical(readLines(written(bad(c("a b", "c"), 1), "x.sif")[1]), "a b\tcauses\tc")
    expect_identical(readLines(written(bad(c("ab", "c"), 0), "x.sif")[1]), c("ab", "c"))
})

test_that("igraph reads the .graphml as it was", {
    file <- written(fit, "x.graphml")
    graph <- tryCatch(igraph::read_graph(file, "graphml"), error = function(e) skip("igraph reads no GraphML"))
    names <- igraph::vertex_attr(graph, "name")
    Encoding(names) <- "UTF-8" # which igraph does not say
    expect_identical(names, odd)
    graph <- igraph::set_vertex_attr(graph, "name", value = names)
    back <- as(graph, "CapeDag")
    expect_equal(as.matrix(cape_weights(back)), as.matrix(cape_weights(fit)), tolerance = 1e-14)
    known <- is.finite(cape_generality(fit))
    expect_equal(igraph::vertex_attr(graph, "generality")[known], unname(cape_generality(fit)[known]),
        tolerance = 1e-14)
    expect_error(written(as(matrix(0, 1, 1, dimnames = list("a\001", NULL)), "CapeDag"), "x.graphml"),
        "could not be written", class = "capeError")
})

# Arrays ------------------------------------------------------------------------------------------

floats <- function(raw, size) {
    matrix(readBin(raw, "double", prod(size), size = 4, endian = "little"), size[1], byrow = TRUE)
}

test_that("safetensors: header and numbers by the format's description", {
    skip_if_not_installed("jsonlite")
    raw <- bytes(written(fit, "a.safetensors"))
    length <- readBin(raw, "integer", 2, size = 4, endian = "little")
    expect_identical(length[2], 0L)
    expect_identical((8 + length[1]) %% 8, 0)
    text <- rawToChar(raw[8 + seq_len(length[1])])
    Encoding(text) <- "UTF-8"
    header <- jsonlite::fromJSON(text)
    size <- dim(cape_angles(fit))
    expect_identical(header$angles,
        list(dtype = "F32", shape = size, data_offsets = c(0L, as.integer(4 * prod(size)))))
    expect_identical(jsonlite::fromJSON(header$`__metadata__`$features), odd)
    expect_identical(jsonlite::fromJSON(header$`__metadata__`$pairs), colnames(cape_angles(fit)))
    numbers <- raw[-seq_len(8 + length[1])]
    expect_length(numbers, 4 * prod(size))
    expect_equal(floats(numbers, size), unname(fit@angles), tolerance = 1e-6)
})

test_that("a fit of which no feature is left is written as well", {
    none <- capeOmics:::fit_at(fit, stats::setNames(integer(), character()))
    expect_identical(readLines(written(none, "x.sif")[1]), character())
    inside <- folder()
    utils::unzip(written(none, "a.npz"), exdir = inside)
    about <- function(file) rawToChar(bytes(file.path(inside, file))[-(1:10)])
    expect_match(about("angles.npy"), "'shape': (0, 4), }", fixed = TRUE)
    expect_match(about("features.npy"), "'descr': '<U1', 'fortran_order': False, 'shape': (0,), }", fixed = TRUE)
})

test_that("JSON text is what another reader takes for it", {
    skip_if_not_installed("jsonlite")
    hard <- c("\\", "\"", "\\\"", "a\tb\r\n", "\001\037", "\u00e9\u03b2\U1F600", "/", "")
    expect_identical(jsonlite::fromJSON(paste0("[", paste(capeOmics:::json_text(hard), collapse = ","), "]")), hard)
})

test_that("npz: zip and arrays by the formats' descriptions", {
    inside <- folder()
    file <- written(fit, "a.npz")
    expect_setequal(basename(utils::unzip(file, exdir = inside)), c("angles.npy", "features.npy", "pairs.npy"))
    raw <- bytes(file.path(inside, "angles.npy"))
    expect_identical(raw[1:8], c(as.raw(0x93), charToRaw("NUMPY"), as.raw(1:0)))
    header <- readBin(raw[9:10], "integer", size = 2, endian = "little")
    expect_identical((10 + header) %% 64, 0)
    size <- dim(cape_angles(fit))
    expect_match(rawToChar(raw[10 + seq_len(header)]), fixed = TRUE,
        sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", size[1], size[2]))
    expect_equal(floats(raw[-seq_len(10 + header)], size), unname(fit@angles), tolerance = 1e-6)
    # The check values of CRC-32 in the catalogue of checks, and of nothing.
    expect_identical(rev(capeOmics:::crc32(charToRaw("123456789"))), as.raw(c(0xCB, 0xF4, 0x39, 0x26)))
    expect_identical(capeOmics:::crc32(raw()), raw(4))
})

test_that("Python reads both by name", {
    python <- python_with("numpy")
    npz <- written(fit, "a.npz")
    safe <- written(fit, "a.safetensors")
    out <- run_python(python, c("import json, struct, zipfile, numpy",
        sprintf("npz, safe = %s, %s", shQuote(npz), shQuote(safe)),
        "assert zipfile.ZipFile(npz).testzip() is None",
        "z = numpy.load(npz)",
        "raw = open(safe, 'rb').read()",
        "n, = struct.unpack('<Q', raw[:8])",
        "header = json.loads(raw[8:8 + n])",
        "about = header['__metadata__']",
        "assert json.loads(about['features']) == z['features'].tolist()",
        "assert json.loads(about['pairs']) == z['pairs'].tolist()",
        "a = numpy.frombuffer(raw[8 + n:], '<f4').reshape(header['angles']['shape'])",
        "assert (a == z['angles']).all() and a.dtype == z['angles'].dtype == numpy.float32",
        "print(ascii(z['features'].tolist()))",
        "for row in a: print(*['%.9g' % x for x in row])"))
    expect_identical(out[1], "['a,\"b\" ; c', 'g\\xe9n\\u03b2 <&>', '1e5', 'NA', 'alone']")
    expect_equal(as.matrix(utils::read.table(text = out[-1])), unname(fit@angles), tolerance = 1e-6, ignore_attr = TRUE)
})

test_that("the example in the vignette rotates as cape_attend() does", {
    vignette <- file.path("..", "..", "vignettes", "capeOmics.Rmd")
    skip_if_not(file.exists(vignette), "there is no vignette here:")
    python <- python_with("numpy, torch")
    lines <- readLines(vignette, encoding = "UTF-8")
    code <- lines[seq(which(lines == "```python") + 1, length(lines))]
    code <- code[seq_len(which(code == "```")[1] - 1)]
    size <- 2L * ncol(fit@angles)
    tokens <- odd[c(4, 1, 2)]
    numbers <- function(seed) matrix(sin(seed * seq_len(3 * size)), 3, dimnames = list(tokens, NULL))
    tensor <- function(name, x) {
        sprintf("%s = torch.tensor([%s]).reshape(1, 1, 3, %d)", name, toString(sprintf("%.9g", t(x))), size)
    }
    at <- dirname(written(fit, "angles.npz"))
    out <- run_python(python, c("import os, torch", sprintf("os.chdir(%s)", shQuote(at)),
        sprintf("genes = [%s]", paste0("'", tokens, "'", collapse = ", ")),
        tensor("q", numbers(1)), tensor("k", numbers(2)), tensor("v", numbers(3)), code,
        "for row in out[0, 0].tolist(): print(*row)"))
    expect_equal(as.matrix(utils::read.table(text = out)),
        cape_attend(numbers(1), numbers(2), numbers(3), fit@angles[tokens, ]), tolerance = 1e-5, ignore_attr = TRUE)
})

test_that("what is written of an experiment are the features that it still has", {
    counts <- small_counts()
    sce <- suppressWarnings(suppressMessages(
        cape_fit(counts, dag = quick_dag(), embed = quick_embed(), seed = 1, verbose = FALSE)))
    chosen <- sce[c("g5", "g2"), ]
    inside <- folder()
    utils::unzip(written(chosen, "a.npz"), exdir = inside)
    raw <- bytes(file.path(inside, "angles.npy"))
    expect_equal(floats(utils::tail(raw, 2 * 4 * 4), c(2, 4)), unname(cape_result(sce)@angles[c("g5", "g2"), ]),
        tolerance = 1e-6)
    expect_error(written(chosen, "a.npz", name = "other"), "no result 'other'", class = "capeError")
    expect_error(written(counts, "a.npz"), "must be a CapeFit", class = "capeError")
})

# anndata -----------------------------------------------------------------------------------------

test_that("anndata opens the .h5ad, matched by names", {
    skip_if_not_installed("rhdf5")
    python <- python_with("anndata")
    unplaced <- fit
    unplaced@embedding@generality[5] <- unplaced@embedding@radius[5] <- NA
    file <- written(unplaced, "x.h5ad")
    none <- written(as(matrix(0, 2, 2, dimnames = list(c("u", "v"), NULL)), "CapeDag"), "none.h5ad")
    out <- run_python(python, c("import warnings", "warnings.simplefilter('ignore')", "import anndata, numpy",
        sprintf("a, none = [anndata.read_h5ad(f) for f in (%s, %s)]", shQuote(file), shQuote(none)),
        "print(ascii(a.var_names.tolist()))",
        "w = a.varp['cape_weights']",
        "print(type(w).__name__, a.n_obs, a.uns['cape']['version'], *a.var.columns, *sorted(a.varm), *none.var_names)",
        "assert none.varp['cape_weights'].nnz == 0 and none.varp['cape_weights'].shape == (2, 2)",
        "assert numpy.isnan(a.var['cape_generality'].iloc[4]) and a.var['cape_generality'].iloc[:4].notna().all()",
        "turned = a[:, ['alone', '1e5', 'NA']].copy()", # as a user adds a table
        "for m in (w.toarray(), a.varm['cape_angles'], a.varm['cape_embedding'], turned.varm['cape_angles']):",
        "    for row in m: print(*['%.17g' % x for x in row])"))
    expect_identical(out[1], "['a,\"b\" ; c', 'g\\xe9n\\u03b2 <&>', '1e5', 'NA', 'alone']")
    expect_identical(out[2], paste("csr_matrix 0", utils::packageVersion("capeOmics"),
        "cape_generality cape_radius cape_angles cape_embedding u v"))
    rows <- function(at) unname(as.matrix(utils::read.table(text = out[at])))
    expect_identical(rows(3:7), unname(as.matrix(cape_weights(fit))))
    expect_identical(rows(8:12), unname(fit@angles))
    expect_identical(rows(13:17), unname(cape_embedding(fit)))
    expect_identical(rows(18:20), unname(fit@angles[c("alone", "1e5", "NA"), ]))
})

test_that("the .h5ad says how it is encoded, in the words of anndata", {
    skip_if_not_installed("rhdf5")
    file <- written(fit, "x.h5ad")
    attributes <- function(at) rhdf5::h5readAttributes(file, at)
    expect_identical(as.vector(attributes("/")$`encoding-type`), "anndata")
    expect_identical(as.vector(attributes("varp/cape_weights")$shape), c(5L, 5L))
    expect_identical(as.vector(attributes("var")$`column-order`), c("cape_generality", "cape_radius"))
    expect_identical(dim(rhdf5::h5read(file, "varm/cape_angles")), rev(dim(fit@angles)))
    expect_length(rhdf5::h5validObjects(), 0) # all is closed
    # There are no cells in it, which the reader of tables says.
    expect_error(suppressMessages(cape_read(file)), "neither X nor layers", class = "capeError")
})

# Files -------------------------------------------------------------------------------------------

test_that("files are whole, or as they were", {
    inside <- folder()
    at <- function(name) file.path(inside, name)
    cape_write(fit, at("x.npz"))
    before <- bytes(at("x.npz"))
    expect_error(cape_write(fit, at("x.npz")), "there is already '.*x.npz': 'overwrite = TRUE'", class = "capeError")
    expect_identical(cape_write(fit, at("x.npz"), overwrite = TRUE), at("x.npz"))
    expect_identical(bytes(at("x.npz")), before)
    # One of the files of a .sif: none is written.
    writeLines("mine", at("net.nodes.tsv"))
    expect_error(cape_write(fit, at("net.sif")), "net.nodes.tsv", class = "capeError")
    expect_identical(readLines(at("net.nodes.tsv")), "mine")
    # A writer that fails half way: no file is replaced, and nothing is left beside them.
    half <- function(file) {
        writeLines("half", file)
        stop("no more room")
    }
    files <- stats::setNames(list(charToRaw("new"), half), c(at("x.npz"), at("net.nodes.tsv")))
    expect_error(capeOmics:::write_whole(files), "net.nodes.tsv' could not be written: no more room",
        class = "capeError")
    expect_identical(bytes(at("x.npz")), before)
    expect_setequal(list.files(inside), c("x.npz", "net.nodes.tsv"))
    # Nowhere to write to.
    dir.create(at("e.csv.new"))
    expect_error(suppressWarnings(cape_write(fit, at("e.csv"))), "e.csv' could not be written: ", class = "capeError")
    expect_true(dir.exists(at("e.csv.new")) && !file.exists(at("e.csv")))
    dir.create(at("d.csv"))
    expect_error(cape_write(fit, at("d.csv"), overwrite = TRUE), "a folder", class = "capeError")
})

test_that("what cannot be written is said", {
    refused <- function(text, ...) expect_error(cape_write(...), text, class = "capeError")
    refused("must end in .csv, .tsv, .graphml", fit, file.path(tempdir(), "x.xlsx"))
    refused("must end in", fit, file.path(tempdir(), "csv"))
    refused("must end in", fit, file.path(tempdir(), "x.csv.gz"))
    refused("folder must exist", fit, file.path(tempdir(), "nowhere", "x.csv"))
    refused("'path'", fit, NA_character_)
    refused("'path'", fit, c("a.csv", "b.csv"))
    refused("'overwrite'", fit, file.path(tempdir(), "x.csv"), overwrite = NA)
    refused("no angles", fit@dag, file.path(tempdir(), "x.npz"))
    refused("no angles", fit@dag, file.path(tempdir(), "x.safetensors"))
    refused("must be a CapeFit", mtcars, file.path(tempdir(), "x.csv"))
})
