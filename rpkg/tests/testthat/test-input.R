table_of <- function(x, assay.type = NULL, subset.row = NULL, param = DagParam()) {
    capeOmics:::cape_as_input(x, assay.type, subset.row, param, FALSE)
}

test_that("D1: the assay is logcounts if present, else counts, normalised, with one message", {
    counts <- small_counts()
    logs <- log1p(t(t(counts) / colSums(counts)) * 1e4)
    both <- SingleCellExperiment(list(counts = counts, logcounts = logs))
    expect_message(input <- table_of(both), "'logcounts'")
    expect_equal(input$values, logs)
    expect_identical(input$input$transformation, "none")
    only <- SingleCellExperiment(list(counts = counts))
    said <- capture_messages(input <- table_of(only))
    expect_length(said, 1)
    expect_match(said, "'counts', scaled to 10,000 a cell and log-transformed")
    expect_equal(input$values, logs)
    expect_match(input$input$transformation, "log1p")
    expect_silent(input <- table_of(only, "counts"))
    expect_equal(input$values, logs)
})

test_that("D1: an error lists the assays and how to choose", {
    x <- small_counts() + 0.5
    expect_error(table_of(SingleCellExperiment(list(X = x))), "'X'.*assay.type = \"X\"", class = "capeError")
    expect_equal(table_of(SingleCellExperiment(list(X = x)), "X")$values, x)
    expect_error(table_of(SingleCellExperiment(list(X = x)), "Y"), "no assay 'Y'; it has 'X'")
    unnamed <- SummarizedExperiment(x)
    expect_error(table_of(unnamed), "no names.*assay.type = 1")
    expect_equal(table_of(unnamed, 1)$values, x)
    expect_error(table_of(SummarizedExperiment(rowData = DataFrame(a = 1:3))), "no assays")
})

test_that("D2: counts that are not, and logarithms that are not, are told with the evidence", {
    counts <- small_counts()
    logs <- log1p(counts)
    expect_warning(input <- table_of(SingleCellExperiment(list(counts = logs)), "counts"),
        "not whole numbers and none above 2.*used as they are")
    expect_equal(input$values, logs)
    expect_identical(input$input$transformation, "none")
    corrected <- logs - 1
    expect_warning(input <- table_of(SingleCellExperiment(list(counts = corrected)), "counts"),
        "negative values \\(down to -1\\)")
    expect_equal(input$values, corrected)
    expect_warning(table_of(SingleCellExperiment(list(counts = counts * 10 + 0.25)), "counts"),
        "normalised as counts all the same")
    expect_warning(input <- table_of(SingleCellExperiment(list(logcounts = counts * 20)), "logcounts"),
        "only whole numbers, up to [0-9]+, like counts")
    expect_equal(input$values, counts * 20)
    expect_message(table_of(counts), "whole numbers.*assay.type = \"counts\"")
    expect_equal(table_of(counts, "counts")$values, log1p(t(t(counts) / colSums(counts)) * 1e4))
})

test_that("D3: missing values are counted and named, masked on request, infinite ones refused", {
    x <- matrix(rnorm(60), 5, 12, dimnames = list(letters[1:5], LETTERS[1:12]))
    bad <- x
    bad[2, 3] <- NA
    expect_error(table_of(bad), "1 missing value in 1 feature \\('b'\\), the first in cell 'C'.*\"mask\"")
    expect_error(table_of(as(bad, "CsparseMatrix")), "1 missing value in 1 feature \\('b'\\)")
    expect_error(table_of(DelayedArray::DelayedArray(bad)), "cell 'C'")
    expect_equal(table_of(bad, param = DagParam(missing = "mask"))$values, bad)
    worse <- x
    worse[1, 1] <- Inf
    expect_error(table_of(worse, param = DagParam(missing = "mask")), "1 infinite value.*'a'.*cell 'A'")
    counts <- small_counts()
    counts[1, 2] <- -1
    expect_warning(table_of(counts, "counts"), "negative values \\(down to -1\\)")
})

test_that("D3: a fit with masked values is finite", {
    x <- chain_data(200)
    x[2, 5] <- NA
    fit <- quick_fit(x, dag = quick_dag(missing = "mask"))
    expect_true(all(is.finite(cape_weights(fit, pruned = FALSE, sparse = FALSE))))
    expect_true(all(is.finite(cape_embedding(fit))))
})

test_that("D4: every storage gives the same table; text is refused by name", {
    x <- small_counts()
    storage.mode(x) <- "double"
    x[x < 3] <- 0
    sparse <- as(x, "CsparseMatrix")
    forms <- list(sparse = sparse, rows = as(sparse, "RsparseMatrix"), triplets = as(sparse, "TsparseMatrix"),
        frame = as.data.frame(x), delayed = DelayedArray::DelayedArray(x),
        delayed_sparse = DelayedArray::DelayedArray(sparse), dense = Matrix::Matrix(x, sparse = FALSE))
    for (form in names(forms)) {
        expect_identical(table_of(forms[[form]], "counts")$values, table_of(x, "counts")$values, info = form)
    }
    integers <- x
    storage.mode(integers) <- "integer"
    expect_identical(table_of(integers, "counts")$values, table_of(x, "counts")$values)
    expect_identical(table_of(sparse > 0, "values")$values, table_of((x > 0) * 1, "values")$values)
    expect_identical(table_of(as(sparse > 0, "nMatrix"), "values")$values, table_of((x > 0) * 1, "values")$values)
    expect_identical(table_of(x > 0, "values")$values, table_of((x > 0) * 1, "values")$values)
    expect_error(table_of(x, "Counts"), "'assay.type' is 'Counts'; for a matrix it must be \"counts\"")
    text <- matrix(as.character(x), nrow(x), dimnames = dimnames(x))
    expect_error(table_of(SingleCellExperiment(list(counts = text)), "counts"), "assay 'counts' is character")
    expect_error(table_of(data.frame(a = 1:3, b = letters[1:3])), "not numeric: 'b'")
    expect_error(table_of(1:10), "must be a matrix")
    expect_error(table_of(list(1)), "must be a matrix")
})

test_that("D5: a delayed matrix gives the same bits in blocks of any size, of the chosen rows alone", {
    old <- DelayedArray::getAutoBlockSize()
    on.exit(suppressMessages(DelayedArray::setAutoBlockSize(old)))
    m <- chain_data(60) * 7.3
    delayed <- DelayedArray::DelayedArray(m / 2) * 2
    for (bytes in c(1, 100, 1e8)) {
        suppressMessages(DelayedArray::setAutoBlockSize(bytes))
        expect_identical(table_of(delayed)$values, table_of(m)$values)
        expect_identical(table_of(delayed[3:1, 50:1])$values, table_of(m[3:1, 50:1])$values)
        expect_identical(unname(table_of(delayed, subset.row = c("x3", "x1"))$values), unname(m[c("x3", "x1"), ]))
    }
    expect_identical(quick_fit(delayed), quick_fit(m))
    counts <- small_counts(40, 25) + 0.125
    counts[counts < 2] <- 0
    suppressMessages(DelayedArray::setAutoBlockSize(8 * 40))
    same <- suppressWarnings(table_of(DelayedArray::DelayedArray(counts * 10), "counts"))
    expect_identical(same, suppressWarnings(table_of(counts * 10, "counts")))
    expect_identical(same, suppressWarnings(table_of(as(counts * 10, "CsparseMatrix"), "counts")))
})

test_that("D5: a file on disk is as good as memory", {
    skip_if_not_installed("HDF5Array")
    m <- chain_data(100)
    on_disk <- HDF5Array::writeHDF5Array(m, tempfile(fileext = ".h5"), name = "x", with.dimnames = TRUE)
    expect_identical(quick_fit(on_disk), quick_fit(m))
})

test_that("D6: a large sparse matrix is not made dense", {
    x <- Matrix::sparseMatrix(i = 1, j = 1, x = 5, dims = c(50000, 50000))
    before <- sum(gc(reset = TRUE)[, 2])
    expect_error(suppressMessages(quick_fit(x)), "at least 2 features with variance.*got 1 and 50000")
    i <- rep(c(1, 77, 4711), each = 40)
    x <- Matrix::sparseMatrix(i = i, j = seq_along(i) * 100, x = seq_along(i) %% 7 + 1, dims = c(50000, 50000))
    said <- capture_messages(input <- table_of(x))
    expect_match(said, "Of 50000 features, the 3 that vary are used", all = FALSE)
    expect_identical(input$rows, c(1L, 77L, 4711L))
    expect_identical(dim(input$values), c(3L, 50000L))
    expect_lt(sum(gc()[, 6]) - before, 500) # MB; the grid as doubles would be 20 GB
})

test_that("D7: features need names that tell them apart", {
    x <- unname(small_counts(5) * 1.5)
    expect_message(input <- table_of(x), "feature1 to feature5")
    expect_identical(rownames(input$values), paste0("feature", 1:5))
    rownames(x) <- c("ENSG00000141510.17", "ENSA", "TP53", NA, "")
    expect_error(table_of(x), "missing or empty at 4, 5")
    rownames(x) <- c("ENSG00000141510.17", "ENSA", "TP53", "TP53", "é")
    expect_message(input <- table_of(x), "'TP53'.*'TP53.1'")
    expect_identical(rownames(input$values), c("ENSG00000141510.17", "ENSA", "TP53", "TP53.1", "é"))
})

test_that("D8: too few features or cells are refused before any work, with the numbers", {
    sce <- SingleCellExperiment(list(logcounts = small_counts(5, 30) * 1.5))
    expect_error(table_of(sce[, 0]), "at least 2 features with variance and 10 cells; got 5 and 0")
    expect_error(table_of(sce[1, ]), "got 1 and 30")
    expect_error(table_of(sce[, 1:9]), "got 5 and 9")
    expect_error(table_of(sce, subset.row = 2), "got 1 and 30")
    same <- sce
    assay(same)[2:5, ] <- 1
    expect_error(table_of(same), "got 1 and 30")
    few <- quick_fit(small_counts(3, 10) * 1.5, dag = quick_dag(batch.size = 128L))
    expect_true(all(is.finite(cape_embedding(few))))
})

test_that("subset.row takes names, numbers and flags, in their order, and refuses the rest", {
    x <- small_counts(6) * 1.5
    expect_identical(table_of(x, subset.row = c("g4", "g2"))$rows, c(4L, 2L))
    expect_identical(table_of(x, subset.row = c(4, 2))$values, x[c(4, 2), ])
    expect_identical(table_of(x, subset.row = c(FALSE, TRUE, TRUE, FALSE, FALSE, FALSE))$rows, 2:3)
    expect_error(table_of(x, subset.row = c("g1", "no", "nor")), "2 features of 3.*'no', 'nor'")
    expect_error(table_of(x, subset.row = c(1, 7)), "not row numbers of 'x' \\(1 to 6\\): 7")
    expect_error(table_of(x, subset.row = c(1, 1.5)), "1.5")
    expect_error(table_of(x, subset.row = c(TRUE, FALSE)), "length 2")
    expect_error(table_of(x, subset.row = c(1, 1, 2)), "twice: 'g1'")
    expect_error(table_of(x, subset.row = list(1)), "must hold names, numbers or flags")
})

test_that("library sizes are those of all features, whichever are chosen", {
    x <- small_counts(6)
    expect_equal(table_of(x, "counts", subset.row = 2:3)$values, log1p(t(t(x) / colSums(x)) * 1e4)[2:3, ])
})

test_that("of more than 500 features the 500 most variable are taken, and a message says so", {
    set.seed(1)
    x <- matrix(rnorm(600 * 12), 600, 12) * rep(seq(3, 0.1, length.out = 600), 12)
    rownames(x) <- paste0("g", 1:600)
    said <- capture_messages(input <- table_of(x))
    expect_match(said, "Of 600 features, the 500 most variable are used.*seconds.*memory|minutes.*memory", all = FALSE)
    expect_identical(input$rows, sort(order(-apply(x, 1, var))[1:500]))
    expect_length(table_of(x, subset.row = 1:510)$rows, 510)
    expect_identical(suppressMessages(table_of(as(x, "CsparseMatrix"))$rows), input$rows)
})

variances <- function(x) capeOmics:::scan_rows(capeOmics:::standard_form(x, "x"))$variance

test_that("A10: variances are those of base R, however far from 0 and however small the values are", {
    set.seed(3)
    noise <- matrix(rnorm(20 * 40), 20, 40) * rep(c(1, 0.1), 10)
    for (offset in c(0, 1, -1e6, 1e8, 1e12)) {
        x <- noise + offset
        expect_equal(variances(x), apply(x, 1, var), tolerance = 1e-6, info = offset)
    }
    for (unit in c(1e-140, 1e-30, 1e30, 1e140)) {
        expect_equal(variances(noise * unit) / unit^2, apply(noise, 1, var), info = unit)
    }
    holes <- noise + 1e8
    holes[cbind(1:20, 1:20)] <- NA
    expect_equal(variances(holes), apply(holes, 1, var, na.rm = TRUE), tolerance = 1e-6)
    expect_identical(variances(matrix(1e8 + 0.1, 2, 40)), c(0, 0))
    # Values whose squares no double holds have the largest variance, none is NaN.
    expect_identical(variances(rbind(noise[1, ] * 1e200, noise[1, ]))[1], Inf)
})

test_that("A10: the variance does not depend on how the assay is stored or cut", {
    old <- DelayedArray::getAutoBlockSize()
    on.exit(suppressMessages(DelayedArray::setAutoBlockSize(old)))
    set.seed(4)
    x <- matrix(rnorm(15 * 30, 1e9), 15, 30)
    x[sample(length(x), 200)] <- 0
    expect_equal(variances(x), apply(x, 1, var))
    expect_identical(variances(as(x, "CsparseMatrix")), variances(x))
    for (bytes in c(8 * 15, 8 * 15 * 7, 1e8)) {
        suppressMessages(DelayedArray::setAutoBlockSize(bytes))
        expect_identical(variances(DelayedArray::DelayedArray(x)), variances(x))
    }
})

test_that("A10: features are chosen by variance at an offset of 1e8, in the fit and in cape_preprocess()", {
    set.seed(5)
    sd <- rep(c(1, 1, 0.1, 1, 1, 1), 100)
    x <- 1e8 + matrix(rnorm(600 * 20), 600, 20) * sd
    rownames(x) <- paste0("g", 1:600)
    expect_identical(suppressMessages(table_of(x))$rows, which(sd == 1))
    expect_identical(suppressMessages(table_of(as(x, "CsparseMatrix")))$rows, which(sd == 1))
    counts <- round(exp(10 + matrix(rnorm(60 * 20), 60, 20) * rep(c(0.3, 3e-3), 30)))
    kept <- cape_preprocess(counts, min.features = 0, n.hvgs = 30)
    logs <- log1p(t(t(counts) / colSums(counts)) * 1e4)
    expect_equal(unname(as.matrix(kept)), logs[sort(order(-apply(logs, 1, var))[1:30]), ])
})

test_that("b02: what is stored as numbers and is none is refused with its class", {
    columns <- lapply(1:12, function(i) structure(rnorm(4), class = "integer64"))
    frame <- structure(columns, names = paste0("c", 1:12), row.names = paste0("g", 1:4), class = "data.frame")
    expect_error(table_of(frame), "not numeric: 'c1' \\(integer64\\).*as.numeric\\(\\)", class = "capeError")
    expect_error(cape_fit(frame), "integer64", class = "capeError")
    frame <- as.data.frame(matrix(rnorm(48), 4, 12))
    for (odd in list(factor(1:4), as.Date("2020-01-01") + 1:4, Sys.time() + 1:4, letters[1:4])) {
        frame$V5 <- odd
        expect_error(table_of(frame), paste0("not numeric: 'V5' \\(", class(odd)[1]), class = "capeError")
        expect_error(cape_fit(DataFrame(frame)), "not numeric: 'V5'", class = "capeError")
    }
    m <- matrix(rnorm(48), 4, 12, dimnames = list(letters[1:4], NULL))
    for (class in c("integer64", "Date", "POSIXct", "difftime")) {
        expect_error(table_of(structure(m, class = c(class, if (class == "POSIXct") "POSIXt"))), class, class = "capeError")
    }
    factors <- structure(rep(1:2, 24), dim = c(4L, 12L), levels = c("a", "b"), class = "factor")
    expect_error(table_of(factors), "factor", class = "capeError")
    sce <- SingleCellExperiment(list(logcounts = m))
    assay(sce, "logcounts", withDimnames = FALSE) <- structure(m, dimnames = NULL, class = "integer64")
    expect_error(table_of(sce), "integer64", class = "capeError")
    expect_error(table_of(matrix(complex(48, 1), 4)), "complex", class = "capeError")
})

test_that("b03: tables of other kinds are as good as data frames", {
    m <- chain_data(12)
    colnames(m) <- paste0("c", 1:12)
    expect_identical(table_of(DataFrame(m))$values, m)
    rle <- DataFrame(m)
    rle$c2 <- S4Vectors::Rle(rle$c2)
    expect_identical(table_of(rle)$values, m)
    skip_if_not_installed("tibble")
    expect_identical(unname(table_of(tibble::as_tibble(m))$values), unname(m))
})

test_that("b51: objects of other packages are refused by their class, with the way to go", {
    fake <- function(class) structure(list(counts = matrix(1, 3, 12)), class = class)
    expect_error(cape_fit(fake("DGEList")), "class DGEList.*must be a matrix.*x\\$counts", class = "capeError")
    expect_error(cape_fit(fake("EList")), "class EList.*x\\$E", class = "capeError")
    expect_error(cape_calculate(dist(matrix(rnorm(30), 10))), "class dist.*not measurements", class = "capeError")
    expect_error(cape_learn_dag(list(a = 1)), "class list.*must be a matrix", class = "capeError")
    for (fit in list(cape_fit, cape_calculate, cape_learn_dag, cape_preprocess)) {
        for (x in list(NULL, 1:3, "a", sum, new.env(), quote(a), array(1, c(2, 3, 4)), DagParam())) {
            expect_error(fit(x), class = "capeError")
        }
        if (requireNamespace("SeuratObject", quietly = TRUE)) {
            utils::data("pbmc_small", package = "SeuratObject", envir = environment())
            expect_error(fit(pbmc_small), "class Seurat.*as.SingleCellExperiment", class = "capeError")
            expect_error(fit(pbmc_small[["RNA"]]), "class Assay.*GetAssayData", class = "capeError")
        }
        if (requireNamespace("Biobase", quietly = TRUE)) {
            expect_error(fit(Biobase::ExpressionSet(chain_data(12))), "class ExpressionSet.*SummarizedExperiment",
                class = "capeError")
        }
    }
})

test_that("b11: names in latin1 are taken, bytes of no encoding are refused by name, before the work", {
    x <- chain_data(60)
    latin <- "5\xb5M"
    rownames(x)[2] <- latin
    expect_error(cape_fit(x), "not valid in their encoding at 2 \\('5<b5>M'\\).*latin1", class = "capeError")
    expect_error(cape_preprocess(exp(x), min.features = 0), "not valid in their encoding", class = "capeError")
    Encoding(latin) <- "latin1"
    rownames(x)[2] <- latin
    fit <- quick_fit(x)
    expect_identical(fit@dag@features[2], "5\u00b5M")
    expect_identical(Encoding(fit@dag@features[2]), "UTF-8")
    expect_s3_class(cape_plot_dag(fit), "ggplot")
    expect_s3_class(cape_plot_poincare(fit), "ggplot")
    expect_identical(table_of(x, subset.row = c("x1", "5\u00b5M"))$rows, 1:2)
    graph <- matrix(0, 2, 2, dimnames = rep(list(c("a", "5\xb5M")), 2))
    expect_error(cape_plot_dag(graph), "not valid in their encoding.*5<b5>M")
})
