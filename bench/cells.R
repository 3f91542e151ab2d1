# What it costs to train a transformer on, and to embed, cells that are not dense in memory: seconds and the most
# memory that the process had, for 2,000 genes x 20,000 cells of counts, most of them 0. The model is so small, and its
# cells so short, that the reading of cells counts; 2 epochs.
#   R_LIBS=build/release/rlib Rscript bench/cells.R FORM [folder], FORM: dense, sparse or hdf5
suppressPackageStartupMessages({
    library(capeOmics)
    library(Matrix)
    library(HDF5Array)
})
arguments <- commandArgs(TRUE)
form <- arguments[1L]
folder <- if (length(arguments) > 1L) arguments[2L] else tempdir()
genes <- 2000L
cells <- 20000L
file <- file.path(folder, paste0("cells-", form, ".h5"))
make <- function() {
    set.seed(1)
    n <- genes * 200L # of a cell group of 2,000
    parts <- lapply(1:10, function(part) {
        sparseMatrix(sample.int(genes, 2L * n, TRUE), sample.int(2000L, 2L * n, TRUE),
            x = 1 + rpois(2L * n, rep_len(exp(seq(0, 2, length.out = 13)), 2L * n)), dims = c(genes, 2000L),
            use.last.ij = TRUE)[, seq_len(cells / 10L)]
    })
    x <- do.call(cbind, parts)
    dimnames(x) <- list(paste0("g", seq_len(genes)), paste0("c", seq_len(cells)))
    as(x, "CsparseMatrix")
}
if (form == "hdf5" && !file.exists(file)) { # in this process it would count
    x <- make()
    writeHDF5Array(as.matrix(x), file, "counts", chunkdim = c(genes, 100L), with.dimnames = TRUE)
    cat("written:", file, "- run once more\n")
    quit()
}
x <- switch(form, dense = as.matrix(make()), sparse = make(), hdf5 = HDF5Array(file, "counts"))
invisible(gc())
peak <- function() {
    line <- grep("VmHWM", readLines("/proc/self/status"), value = TRUE)
    round(as.numeric(gsub("[^0-9]", "", line)) / 1024)
}
before <- peak()
told <- function(what, time) {
    cat(sprintf("%s, %s: %.1f s, peak %d MB (%d MB before)\n", form, what, time[["elapsed"]], peak(), before))
}
told("training", system.time(model <- suppressMessages(cape_pretrain(x, assay.type = "counts", subset.row = rownames(x),
    model = BackboneParam(width = 16L, heads = 2L, blocks = 1L, feed.forward = 16L, zeros = FALSE),
    training = PretrainParam(epochs = 2L, length = 32L, batch.cells = 16L), seed = 1,
    num.threads = 2L))))
told("embedding", system.time(rows <- suppressMessages(predict(model, x, assay.type = "counts", num.threads = 2L))))
cat("hash of the model and the vectors:", substr(rlang::hash(list(model@model, rows)), 1L, 12L), "\n")
