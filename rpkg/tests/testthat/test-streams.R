# Cells that are not dense in memory go to the models as they are asked for.

skip_if_not_installed("HDF5Array")

counts_of <- function(genes = 30L, cells = 120L) {
    x <- small_counts(genes, cells)
    x[x < 3] <- 0
    x[, 7] <- 0 # a cell without counts
    x[1:3, 9] <- 0
    x
}
quick <- function(...) PretrainParam(epochs = 2L, batch.cells = 16L, ...)
tiny <- BackboneParam(width = 8L, heads = 2L, blocks = 1L, feed.forward = 8L)
# The same values as they may be stored.
on_disk <- function(x, file = tempfile(fileext = ".h5")) {
    HDF5Array::writeHDF5Array(x, file, "x", chunkdim = pmin(dim(x), c(5L, 7L)), with.dimnames = TRUE)
}
forms <- list(
    sparse = function(x) as(x, "CsparseMatrix"),
    hdf5 = on_disk,
    delayed = function(x) DelayedArray::DelayedArray(as(x, "CsparseMatrix"))[nrow(x):1, ][nrow(x):1, ])
# A matrix that tells watch$seen() of every read, how many cells it has, before it gives them.
setClass("WatchedSeed", representation(x = "matrix", watch = "environment"), where = globalenv())
setMethod("dim", "WatchedSeed", function(x) dim(x@x), where = globalenv())
setMethod("dimnames", "WatchedSeed", function(x) dimnames(x@x), where = globalenv())
setMethod(DelayedArray::extract_array, "WatchedSeed", function(x, index) {
    out <- DelayedArray::extract_array(x@x, index)
    if (length(out) > 0L) x@watch$seen(ncol(out))
    out
}, where = globalenv())
watched <- function(x, seen) DelayedArray::DelayedArray(new("WatchedSeed", x = x, watch = list2env(list(seen = seen))))
silently <- function(code) suppressMessages(suppressWarnings(code))
# Everything that reads cells.
results <- function(x, ...) silently({
    model <- cape_pretrain(x, assay.type = "counts", model = tiny, training = quick(), seed = 1, ...)
    of <- function(type, ...) predict(model, x, type, assay.type = "counts", ...)
    list(model = model, cells = of("cells"), mean = of("cells", pooling = "mean"), features = of("features"),
        map = cape_attention_map(model, x, group = rep(1:2, length.out = ncol(x)), assay.type = "counts"),
        loss = cape_hidden_loss(model, x, seed = 1, assay.type = "counts"))
})

test_that("the form of the counts changes no bit of a training, of vectors, maps and losses", {
    x <- counts_of()
    expected <- results(x)
    expect_true(all(is.na(expected$cells[7, ])))
    for (form in names(forms)) {
        expect_identical(results(forms[[form]](x)), expected, label = form)
    }
    some <- results(x, subset.row = c(20, 4:11))
    for (form in names(forms)) {
        expect_identical(results(forms[[form]](x), subset.row = c(20, 4:11)), some, label = form)
    }
    expect_identical(results(forms$hdf5(x), num.threads = 2L), expected)
})

test_that("neither with size factors, missing values, other features, or values as they are", {
    x <- counts_of()
    own <- seq(0.2, 3, length.out = ncol(x))
    own[7] <- 0
    experiment <- function(x) {
        sce <- SingleCellExperiment(list(counts = x))
        sizeFactors(sce) <- own
        sce
    }
    expected <- results(experiment(x))
    for (form in names(forms)) {
        expect_identical(results(experiment(forms[[form]](x))), expected, label = form)
    }
    model <- expected$model
    vectors <- function(x, ...) silently(predict(model, x, assay.type = "counts", ...))
    fewer <- rbind(other = 5, x[c(9:30, 2), c(5, 1, 12, 7)]) # a part of the features, in another order
    for (form in names(forms)) {
        expect_identical(vectors(forms[[form]](fewer)), vectors(fewer), label = form)
    }
    values <- x - 3 # no counts, with gaps and a cell without a value
    values[sample.int(length(values), 200)] <- NA
    values[, 11] <- NA
    trained <- function(x) silently(cape_pretrain(x, model = tiny, training = quick(), seed = 1))
    expected <- trained(values)
    rows <- predict(expected, values)
    expect_true(all(is.na(rows[11, ])) && !anyNA(rows[-11, ]))
    for (form in names(forms)) {
        expect_identical(trained(forms[[form]](values)), expected, label = form)
        expect_identical(predict(expected, forms[[form]](values)), rows, label = form)
    }
})

test_that("batches that begin the cells anew, and as many as all cells, are the right cells", {
    for (n in c(32L, 54L, 60L)) { # of 32, 28 are trained on, which two batches of 16 more than fill
        x <- small_counts(40L, n)
        fits <- lapply(c(list(x), lapply(forms, function(form) form(x))), function(form) {
            silently(cape_pretrain(form, model = tiny, training = PretrainParam(epochs = 2L), seed = 1,
                assay.type = "counts"))@model
        })
        for (fit in fits[-1L]) expect_identical(fit, fits[[1L]])
    }
})

test_that("blocks of cells are read, and never the whole", {
    x <- small_counts(500L, 9000L)
    largest <- 0L
    table <- watched(x, function(n) largest <<- max(largest, n))
    stream <- capeOmics:::cells_of(table, 1:500, NULL, "natural", FALSE)
    expect_identical(dim(stream), c(500L, 9000L))
    expect_identical(capeOmics:::have_values(stream), rep(TRUE, 9000))
    expect_identical(largest, 4194L) # of 2^21 values
    model <- silently(cape_pretrain(x[, 1:100], model = tiny, training = quick(length = 8L), seed = 1,
        assay.type = "counts"))
    largest <- 0L
    loss <- capeOmics:::core_model_hidden_loss(model@model, stream, c(pretrain.length = "4"), NULL)
    expect_true(all(is.finite(loss)))
    expect_identical(largest, 4192L) # whole batches of 8 cells
})

test_that("an error of reading comes through as it is, and the training goes on later", {
    x <- counts_of()
    stop_at <- Inf
    calls <- 0L
    table <- watched(x, function(n) {
        calls <<- calls + 1L
        if (calls >= stop_at) {
            stop(structure(class = c("diskError", "error", "condition"), list(message = "the disk is gone", call = NULL)))
        }
    })
    file <- tempfile()
    train <- function() silently(cape_pretrain(table, assay.type = "counts", model = tiny, training = quick(), seed = 1,
        checkpoint = file))
    expected <- train()
    all <- calls
    expect_gt(all, 5)
    for (at in seq_len(all)) {
        unlink(file)
        calls <- 0L
        stop_at <- at
        expect_error(train(), "the disk is gone", class = "diskError")
    }
    stop_at <- Inf
    expect_true(file.exists(file)) # after an epoch
    expect_identical(train(), expected)
    expect_false(file.exists(file))
    # An interrupt while a file is read is one of the call.
    calls <- 0L
    table <- watched(x, function(n) {
        calls <<- calls + 1L
        if (calls == all) rlang::interrupt()
    })
    expect_identical(tryCatch(train(), interrupt = function(e) "interrupted"), "interrupted")

    # A read that gives something else.
    stream <- capeOmics:::cells_of(as(x, "CsparseMatrix"), 1:30, NULL, "natural", FALSE)
    reads <- function(read) {
        stream$read <- read
        capeOmics:::core_model_embed_cells(expected@model, stream, "cls", character(), NULL)
    }
    x <- x + 0
    expect_identical(dim(reads(function(cells) x[, cells])), c(120L, 8L))
    expect_error(reads(function(cells) x[, cells][, -1]), class = "capeError")
    expect_error(reads(function(cells) x[-1, cells]), class = "capeError")
    expect_error(reads(function(cells) as(x, "CsparseMatrix")[-1, cells]), class = "capeError")
    expect_error(reads(function(cells) x[, cells] + Inf), "value", class = "capeError")
    expect_error(reads(function(cells) "a"))
    expect_error(reads(function(cells) NULL))
})

test_that("a file that is gone or has changed is told", {
    x <- counts_of()
    file <- tempfile(fileext = ".h5")
    stored <- on_disk(x, file)
    model <- silently(cape_pretrain(stored, assay.type = "counts", model = tiny, training = quick(), seed = 1))
    stream <- capeOmics:::cells_of(stored, 1:30, NULL, "natural", FALSE)
    embed <- function() capeOmics:::core_model_embed_cells(model@model, stream, "cls", character(), NULL)
    expect_identical(dim(embed()), c(120L, 8L))
    kept <- file.rename(file, paste0(file, ".away"))
    expect_error(embed())
    on_disk(x[, 1:50], file) # fewer cells
    expect_error(embed())

    # Other values since a training was interrupted: it does not go on with them.
    checkpoint <- tempfile()
    train <- function(x) silently(cape_pretrain(x, assay.type = "counts", model = tiny,
        training = PretrainParam(epochs = 3L, batch.cells = 16L), seed = 1, checkpoint = checkpoint))
    calls <- 0L
    last <- Inf
    table <- watched(x, function(n) {
        calls <<- calls + 1L
        if (calls == last) stop("gone")
    })
    train(table)
    last <- calls # in the third epoch
    calls <- 0L
    expect_error(train(table), "gone")
    expect_true(file.exists(checkpoint))
    x[2, 5:15] <- x[2, 5:15] + 10
    expect_error(train(on_disk(x)), "another table, model, options or seed", class = "capeError")
})
