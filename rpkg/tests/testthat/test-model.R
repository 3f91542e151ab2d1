# Transformers over features: what R adds to the core, whose numbers have tests of their own.

table_of <- function(cells = 80, seed = 2) {
    truth <- cape_simulate_dag(6, edges.per.node = 1, seed = 1)
    cape_simulate_data(truth, cells, mechanism = "linear", seed = seed)
}
quick <- function(...) PretrainParam(epochs = 2L, ...)
trained <- cape_pretrain(table_of(), training = quick(), seed = 4)

test_that("a model is trained, says what it is, and comes back from a file and from saveRDS()", {
    expect_s4_class(trained, "CapeModel")
    expect_length(trained, 6)
    expect_identical(names(cape_history(trained)), c("epoch", "loss", "validation", "relative"))
    expect_output(show(trained), "a transformer of 6 features.*positions: trained.*best epoch")
    file <- tempfile(fileext = ".safetensors")
    expect_identical(cape_save(trained, file), file)
    x <- table_of(20, 5)
    expected <- predict(trained, x)
    expect_identical(dim(expected), c(20L, 64L))
    expect_identical(predict(cape_load(file), x), expected)
    kept <- tempfile()
    saveRDS(trained, kept)
    expect_identical(predict(readRDS(kept), x), expected)
    expect_identical(cape_load(file)@backbone, trained@backbone)
    expect_false(file.exists(paste0(file, ".new")))
    bytes <- readBin(file, "raw", file.size(file))
    writeBin(bytes[seq_len(length(bytes) / 2)], file)
    expect_error(cape_load(file), class = "capeError")
    expect_error(cape_load(tempfile()), "which is no file")
})

test_that("the same seed gives the same model on any number of threads", {
    again <- cape_pretrain(table_of(), training = quick(), seed = 4, num.threads = 2L)
    expect_identical(again@model, trained@model)
    expect_false(identical(cape_pretrain(table_of(), training = quick(), seed = 5)@model, trained@model))
    set.seed(9)
    one <- cape_pretrain(table_of(), training = quick())
    set.seed(9)
    expect_identical(cape_pretrain(table_of(), training = quick())@model, one@model)
})

test_that("features are matched by name, and their order does not matter", {
    x <- table_of(15, 5)
    rows <- predict(trained, x)
    expect_equal(predict(trained, x[6:1, ]), rows, tolerance = 1e-5)
    more <- rbind(x, other = 1)
    expect_identical(predict(trained, more), rows)
    expect_message(fewer <- predict(trained, x[-2, ]), "lacks 1 of the model's 6 features \\('gene2'\\)")
    gone <- x
    gone[2, ] <- NA
    expect_identical(predict(trained, gone), fewer)
    expect_error(predict(trained, x[1:2, ]), "lacks 4 of the model's 6 features.*max.missing = 0.5")
    expect_error(suppressMessages(predict(trained, x[1, , drop = FALSE] * Inf, max.missing = 1)), "infinite")
    rownames(x) <- paste0("x", 1:6)
    expect_error(predict(trained, x, max.missing = 1), "lacks 6")
})

test_that("a cell alone, one without values and the others have the vectors that they have together", {
    x <- table_of(12, 5)
    x[, 4] <- NA
    rows <- predict(trained, x)
    expect_true(all(is.na(rows[4, ])))
    expect_equal(predict(trained, x[, 7, drop = FALSE])[1, ], rows[7, ], tolerance = 1e-5)
    expect_equal(predict(trained, x[, 12:1]), rows[12:1, ], tolerance = 1e-5)
    vectors <- predict(trained, x, type = "features")
    expect_identical(dimnames(vectors), list(paste0("gene", 1:6), paste0("v", 1:64)))
    for (pooling in c("mean", "max")) {
        expect_false(isTRUE(all.equal(predict(trained, x, pooling = pooling), rows)))
    }
})

test_that("vectors go into experiments, counts are scaled as in the training", {
    counts <- matrix(rpois(8 * 40, 5), 8, dimnames = list(paste0("g", 1:8), paste0("c", 1:40)))
    counts[, 3] <- 0
    sce <- SingleCellExperiment::SingleCellExperiment(list(counts = counts))
    expect_warning(model <- suppressMessages(cape_pretrain(sce, training = quick(), seed = 1)), "without counts")
    expect_match(model@input$transformation, "log1p")
    out <- suppressMessages(cape_embed_cells(sce, model, name = "X"))
    expect_identical(dim(SingleCellExperiment::reducedDim(out, "X")), c(40L, 64L))
    expect_true(all(is.na(SingleCellExperiment::reducedDim(out, "X")[3, ])))
    genes <- suppressMessages(cape_embed_genes(sce[8:1, ], model))
    expect_identical(rownames(SummarizedExperiment::rowData(genes)$CAPE_model), paste0("g", 8:1))
    expect_warning(predict(model, log1p(counts)), "was trained on values with transformation")
    map <- suppressMessages(cape_attention_map(model, sce))
    expect_identical(dimnames(map), list(c(paste0("g", 1:8), "<cls>"), paste0("g", 1:8)))
    expect_true(all(map > 0) && all(rowSums(map) < 1.001))
    groups <- suppressMessages(cape_attention_map(model, sce, group = rep(c("a", "b"), 20), block = 2))
    expect_named(groups, c("a", "b"))
    expect_error(suppressMessages(cape_attention_map(model, sce, block = 3)), "'block' is 3")
})

test_that("positions come from a fit, a matrix by name, or nowhere", {
    x <- table_of()
    fit <- cape_calculate(x, dag = DagParam(sem = "linear"), embed = HyperbolicParam(dims = 8L), seed = 3)
    for (positions in c("cape", "cape.rotary", "cape.additive")) {
        model <- cape_pretrain(x, fit, positions = positions, training = quick(), seed = 1)
        expect_identical(model@positions, positions)
    }
    expect_identical(cape_pretrain(x, fit, training = quick(), seed = 1)@positions, "cape")
    sce <- cape_fit(x, dag = DagParam(sem = "linear"), embed = HyperbolicParam(dims = 8L), seed = 3)
    expect_identical(cape_pretrain(sce, assay.type = "values", training = quick(), seed = 1)@positions, "cape")
    wide <- cape_calculate(x, dag = DagParam(sem = "linear"), embed = HyperbolicParam(dims = 40L), seed = 3)
    expect_identical(cape_pretrain(x, wide, training = quick(), seed = 1)@backbone@values$width, 80L)
    loadings <- matrix(rnorm(7 * 3), 7, dimnames = list(c(paste0("gene", 6:1), "more"), NULL))
    one <- cape_pretrain(x, positions = loadings, training = quick(), seed = 1)
    expect_identical(one@model, cape_pretrain(x, positions = loadings[6:1, ], training = quick(), seed = 1)@model)
    expect_error(cape_pretrain(x, positions = loadings[1:3, ], training = quick()), "no row for 3 features")
    expect_error(cape_pretrain(x, positions = unname(loadings)), "without row names")
    expect_error(cape_pretrain(x, positions = "cape"), "needs a 'fit'")
    expect_error(cape_pretrain(x[1:4, ], fit), "lacks 2 features of the 6 of the fit")
    expect_error(cape_pretrain(x, fit, subset.row = 1:3), "'subset.row' is given beside a fit")
    expect_error(cape_pretrain(x, fit, model = BackboneParam(width = 10L)), "width is 10 and heads 4")
    expect_error(cape_pretrain(x, wide, model = BackboneParam()), "40 angles of a feature for 4 heads")
})

test_that("distances of the ball and the order of features are positions", {
    x <- table_of()
    fit <- cape_calculate(x, dag = DagParam(sem = "linear"), embed = HyperbolicParam(dims = 8L), seed = 3)
    models <- lapply(stats::setNames(nm = c("cape.distance", "cape.distance.trained", "relative", "relative.trained")),
        function(positions) {
            model <- cape_pretrain(x, fit, positions = positions, training = quick(), seed = 1)
            expect_identical(model@positions, positions)
            expect_true(all(is.finite(predict(model, x))))
            model
        })
    expect_length(unique(lapply(models, function(model) model@model)), 4L)
    file <- cape_save(models$cape.distance, tempfile(fileext = ".safetensors"))
    expect_identical(predict(cape_load(file), x), predict(models$cape.distance, x))
    # The order is that of the fit, else that of x, and counts; for distances it does not.
    turned <- cape_pretrain(x[6:1, ], positions = "relative", training = quick(), seed = 1)
    expect_identical(turned@features, paste0("gene", 6:1))
    expect_identical(cape_pretrain(x[6:1, ], fit, positions = "relative", training = quick(), seed = 1)@model,
        models$relative@model)
    expect_error(cape_pretrain(x, positions = "cape.distance"), "needs a 'fit'")
    expect_error(cape_pretrain(x, positions = "distance"), "'positions'")
    expect_error(cape_pretrain(x, fit, positions = "relative", model = BackboneParam(attention = "linear")), "exact")
})

test_that("hidden values tell how good a model is", {
    loss <- cape_hidden_loss(trained, table_of(40, 6), seed = 1)
    expect_named(loss, c("loss", "relative"))
    expect_true(all(loss > 0))
    expect_identical(cape_hidden_loss(trained, table_of(40, 6), seed = 1, num.threads = 2L), loss)
})

test_that("settings are checked where they are given", {
    expect_identical(BackboneParam("scgpt")@values$width, 512L)
    expect_identical(PretrainParam(epochs = 3)@values$epochs, 3L)
    expect_error(BackboneParam("gpt"), "'preset' is \"gpt\"")
    expect_error(BackboneParam(widht = 3), "no setting 'widht'")
    expect_error(BackboneParam(width = "a"), "must be a whole number")
    expect_error(BackboneParam(width = 2.5), "must be a whole number")
    expect_error(BackboneParam(norm.order = "before"), "norm.order")
    expect_error(BackboneParam("small", 16L), "by name")
    expect_error(PretrainParam(hidden = 1), "hidden")
    expect_error(cape_pretrain(table_of(), training = BackboneParam()), "'training'")
    expect_error(cape_pretrain(table_of(), preset = "bert"), "'preset'")
    expect_output(show(PretrainParam(epochs = 3L)), "\\* epochs +3")
})

test_that("a training that was killed at any moment goes on to the same model", {
    skip_on_os("windows")
    file <- tempfile(fileext = ".rds")
    code <- function(seconds) c(
        "library(capeOmics)",
        if (seconds < Inf) sprintf("system(sprintf('(sleep %g; kill -9 %%d) &', Sys.getpid()))", seconds),
        "x <- cape_simulate_data(cape_simulate_dag(8, seed = 1), 300, seed = 2)",
        "fit <- function(...) cape_pretrain(x, training = PretrainParam(epochs = 40L, patience = 40L), seed = 1, ...)",
        sprintf("resumed <- fit(checkpoint = %s, checkpoint.every = 0)", deparse(file)),
        "cat(identical(resumed@model, fit()@model))")
    seen <- 0
    for (seconds in c(1.6, 1.8, 2, 2.3)) {
        suppressWarnings(run_child(code(seconds), stderr = FALSE))
        seen <- seen + file.exists(file)
    }
    out <- run_child(code(Inf), stderr = FALSE)
    expect_identical(out[length(out)], "TRUE")
    expect_false(file.exists(file))
})

# A file of data/parity, if it is there.
parity <- function(...) {
    folder <- file.path(Sys.getenv("CAPE_TEST_DATA"), "parity")
    if (!nzchar(Sys.getenv("CAPE_TEST_DATA")) || !dir.exists(folder)) skip("no data/parity (set CAPE_TEST_DATA)")
    file.path(folder, ...)
}
# The doubles of a tensor of it.
parity_tensor <- function(file, name) {
    bytes <- readBin(file, "raw", file.size(file))
    n <- readBin(bytes, "integer", size = 8L)
    header <- rawToChar(bytes[8L + seq_len(n)])
    about <- regmatches(header, regexpr(paste0("\"", name, "\": ?\\{[^}]*"), header))
    at <- as.numeric(regmatches(about, regexec("data_offsets\": ?\\[([0-9]+), ?([0-9]+)", about))[[1L]][2:3])
    readBin(bytes[8L + n + seq.int(at[1L] + 1L, at[2L])], "double", diff(at) / 8)
}

test_that("models of scGPT and scBERT are loaded, compute what those do, and are saved as ours", {
    vocabulary <- c("<pad>", "<cls>", "<eoc>", paste0("g", 3:39))
    state <- parity("scgpt_torch_post", "weights.safetensors")
    model <- cape_load(state, "scgpt", vocabulary, BackboneParam("scgpt", heads = 4L, values = "continuous", zeros = TRUE))
    expect_identical(model@features, paste0("g", 3:39))
    expect_identical(model@positions, "trained")
    expect_identical(model@backbone@values$width, 32L)
    # A cell of the fixture, in bins; -1 where its values were hidden.
    cell <- matrix(c(8, 9, -1, 4, -1, 7, 3, 3, 8, 3, 0), dimnames = list(
        paste0("g", c(36, 5, 27, 4, 21, 16, 12, 18, 25, 8, 37)), NULL))
    rows <- suppressMessages(predict(model, cell, max.missing = 1))
    expected <- parity_tensor(parity("scgpt_torch_post", "io.f64.safetensors"), "out.cell_emb")
    expect_equal(unname(rows[1, ]), expected[1:32], tolerance = 1e-5)
    file <- cape_save(model, tempfile(fileext = ".safetensors"))
    again <- cape_load(file)
    expect_identical(suppressMessages(predict(again, cell, max.missing = 1)), rows)

    state <- parity("scbert_performer", "weights.safetensors")
    heads <- BackboneParam("scbert", heads = 3L)
    model <- cape_load(state, "scbert", paste0("g", 1:30), heads)
    expect_identical(model@positions, "fixed")
    counts <- matrix(2^rep_len(0:4, 90) - 1, 30, dimnames = list(paste0("g", 1:30), NULL))
    expect_true(all(is.finite(predict(model, counts))))
})

test_that("what is no state of scGPT or scBERT is refused", {
    ours <- cape_save(trained, tempfile(fileext = ".safetensors"))
    expect_error(cape_load(ours, "scgpt", "<cls>"), "no state of scGPT", class = "capeError")
    expect_error(cape_load(ours, "scbert", "a"), "no state of scBERT", class = "capeError")
    expect_error(cape_load(ours, "scgpt"), "'vocabulary' is NULL; for format = 'scgpt'")
    expect_error(cape_load(ours, "scgpt", 1:3), "'vocabulary' is an object of class integer")
    expect_error(cape_load(ours, "gpt"), "'format' is \"gpt\"")
    expect_error(cape_load(ours, vocabulary = "a"), "belong to files of other formats")
    expect_error(cape_load(ours, "scgpt", "<cls>", PretrainParam()), "'model'")
    state <- parity("scgpt_torch_post", "weights.safetensors")
    vocabulary <- c("<pad>", "<cls>", "<eoc>", paste0("g", 3:39))
    refused <- function(text, format = "scgpt", names = vocabulary, file = state, ...) {
        expect_error(cape_load(file, format, names, ...), text, class = "capeError")
    }
    heads <- BackboneParam("scgpt", heads = 4L)
    refused("has the shape \\[40, 32\\]; it must be \\[39, 32\\]", names = vocabulary[-40], model = heads)
    refused("no \"<cls>\"", names = sub("<cls>", "cls", vocabulary), model = heads)
    refused("two features are called \"g3\"", names = sub("g4$", "g3", vocabulary), model = heads)
    refused("heads 5", model = BackboneParam("scgpt", heads = 5L))
    refused("no state of scBERT", "scbert")
    refused("embeddings of batches", file = parity("scgpt_torch_batch", "weights.safetensors"), model = heads)
    cut <- tempfile()
    writeBin(readBin(state, "raw", 1e5), cut)
    refused("bytes", file = cut, model = heads)
})
