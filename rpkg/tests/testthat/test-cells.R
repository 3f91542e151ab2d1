# Cells that say nothing, and what is known of cells.

# Counts of a chain of genes, with a level of its own in every batch.
counted_cells <- function(n = 60L) {
    set.seed(11)
    log <- 0.7 * chain_data(n) + 2
    counts <- rbind(matrix(rpois(3 * n, exp(log)), 3), matrix(rpois(5 * n, 20), 5))
    dimnames(counts) <- list(paste0("g", 1:8), paste0("c", seq_len(n)))
    counts + 1
}

with_empty <- function(counts, at) {
    counts[, at] <- 0
    counts
}

same_fit <- function(a, b) {
    a@input$n_cells <- b@input$n_cells <- a@input$empty <- b@input$empty <- NULL
    expect_identical(a, b)
}

test_that("a cell without counts counts for nothing, stays in its place, and a warning names it", {
    counts <- counted_cells()
    at <- c(1L, 7L, 60L)
    sce <- SingleCellExperiment(list(counts = with_empty(counts, at)))
    expect_warning(input <- suppressMessages(capeOmics:::cape_as_input(sce, NULL, NULL, DagParam(), FALSE)),
        "3 cells without counts.*'c1', 'c7', 'c60'.*left out")
    expect_identical(input$cells, setdiff(1:60, at))
    full <- suppressMessages(quick_fit(SingleCellExperiment(list(counts = counts))[, -at]))
    same_fit(suppressMessages(quick_fit(sce)), full)
    same_fit(suppressMessages(quick_fit(SingleCellExperiment(list(counts = as(counts(sce), "CsparseMatrix"))))), full)
    same_fit(suppressMessages(quick_fit(SingleCellExperiment(list(counts = DelayedArray::DelayedArray(counts(sce)))))),
        full)
    fitted <- suppressMessages(suppressWarnings(cape_fit(sce, dag = quick_dag(), embed = quick_embed(), seed = 1,
        verbose = FALSE)))
    expect_identical(colnames(fitted), colnames(counts))
    expect_output(show(cape_result(fitted)), "x 57 cells")
    expect_identical(cape_result(fitted)@input$empty, c("c1", "c7", "c60"))
    expect_identical(quick_fit(counts[, -at], assay.type = "counts")@input$empty, character())
})

test_that("a cell whose only counts are in features that are not used says nothing either", {
    counts <- counted_cells()
    counts[1:4, c(3, 9)] <- 0
    whole <- quick_fit(counts[, -c(3, 9)], assay.type = "counts", subset.row = 1:4)
    expect_warning(capeOmics:::cape_as_input(counts, "counts", 1:4, DagParam(), FALSE), "2 cells.*'c3', 'c9'")
    same_fit(quick_fit(counts, assay.type = "counts", subset.row = 1:4), whole)
    # The choice of 500 features is made without such cells.
    set.seed(12)
    many <- matrix(rpois(520 * 30, 3), 520, 30, dimnames = list(paste0("g", 1:520), paste0("c", 1:30)))
    many[501:520, ] <- 1
    many[, 4] <- 0
    many[501, 4] <- 1000
    some <- function(x) suppressMessages(suppressWarnings(capeOmics:::cape_as_input(x, "counts", NULL, DagParam(),
        FALSE)))
    expect_identical(some(many)[c("values", "rows")], some(many[, some(many)$cells])[c("values", "rows")])
})

test_that("logarithms of an empty cell, and samples without a value, are left out", {
    logs <- log1p(counted_cells())
    logs[, 5] <- 0
    sce <- function(x) SingleCellExperiment(list(logcounts = x))
    expect_warning(capeOmics:::cape_as_input(sce(logs), NULL, NULL, DagParam(), FALSE), "1 cell without.*'c5'")
    same_fit(quick_fit(sce(logs)), quick_fit(sce(logs[, -5])))
    values <- chain_data(50)
    colnames(values) <- paste0("s", 1:50)
    values[, c(2, 50)] <- NA
    masked <- quick_dag(missing = "mask")
    expect_warning(capeOmics:::cape_as_input(values, NULL, NULL, masked, FALSE), "2 cells without a value.*'s2', 's50'")
    same_fit(quick_fit(values, dag = masked), quick_fit(values[, -c(2, 50)], dag = masked))
    holes <- counted_cells()
    holes[2, 3] <- NA
    holes[, 8] <- NA
    same_fit(quick_fit(holes, assay.type = "counts", dag = masked),
        quick_fit(holes[, -8], assay.type = "counts", dag = masked))
    # A value of 0 is a value where 0 is not the least.
    values <- chain_data(50)
    values[, 4] <- 0
    expect_silent(input <- capeOmics:::cape_as_input(values, NULL, NULL, DagParam(), FALSE))
    expect_identical(input$cells, 1:50)
})

test_that("what is given for every cell stays with its cell when others are left out", {
    counts <- counted_cells()
    at <- c(2L, 31L)
    batch <- rep(c("a", "b", "c"), 20)
    batch[2] <- "alone" # a batch that has only an empty cell
    weights <- seq(0.5, 1.5, length.out = 60)
    hit <- rep(c("g1", NA, NA, "g3"), 15)
    empty <- with_empty(counts, at)
    fit <- function(x, keep, ...) quick_fit(x[, keep], assay.type = "counts", batch = batch[keep],
        cell.weights = weights[keep], perturbation = hit[keep])
    same_fit(fit(empty, 1:60), fit(empty, -at))
    learn <- function(x, keep) suppressWarnings(cape_learn_dag(x[, keep], quick_dag(), seed = 1,
        assay.type = "counts", batch = batch[keep], cell.weights = weights[keep], perturbation = hit[keep],
        verbose = FALSE))
    expect_identical(learn(empty, 1:60), learn(empty, -at))
    by <- rep(c("old", "young"), 30)
    groups <- function(x, keep) suppressWarnings(cape_learn_dags(x[, keep], by[keep], quick_dag(), seed = 1,
        assay.type = "counts", cell.weights = weights[keep]))
    expect_identical(groups(empty, 1:60), groups(empty, -at))
    stable <- function(x, keep) suppressWarnings(cape_stability(x[, keep], times = 2L, param = quick_dag(), seed = 1,
        assay.type = "counts", cell.weights = weights[keep]))
    expect_identical(stable(empty, 1:60), stable(empty, -at))
})

test_that("too few cells are left: the numbers say so", {
    counts <- with_empty(counted_cells(), 5:60)
    expect_error(suppressWarnings(quick_fit(counts, assay.type = "counts")), "got 8 and 4")
    expect_error(suppressWarnings(quick_fit(counts * 0, assay.type = "counts")), "got 8 and 0")
})

test_that("size factors are honoured, with the values that scuttle's logNormCounts() gives", {
    counts <- counted_cells()
    sce <- SingleCellExperiment(list(counts = counts))
    own <- seq(0.2, 3, length.out = 60)
    sizeFactors(sce) <- own
    logs <- log2(t(t(counts) / (own / mean(own))) + 1)
    expect_message(input <- capeOmics:::cape_as_input(sce, NULL, NULL, DagParam(), FALSE), "scaled by sizeFactors")
    expect_equal(input$values, logs)
    expect_match(input$input$transformation, "sizeFactors\\(x\\), log2\\(x \\+ 1\\)")
    input <- suppressMessages(capeOmics:::cape_as_input(sce, "counts", c(5, 2), DagParam(), FALSE))
    expect_equal(input$values, logs[c(5, 2), ])
    # Empty cells have a size factor of 0 and are not asked for it.
    counts(sce)[, 3] <- 0
    own[3] <- 0
    sizeFactors(sce) <- own
    input <- suppressWarnings(suppressMessages(capeOmics:::cape_as_input(sce, NULL, NULL, DagParam(), FALSE)))
    expect_equal(input$values, log2(t(t(counts[, -3]) / (own[-3] / mean(own[-3]))) + 1))
    own[5] <- NA
    sizeFactors(sce) <- own
    expect_error(suppressMessages(quick_fit(sce)), "sizeFactors\\(x\\) has 1 value.*for cell 5", class = "capeError")
})

test_that("cape_preprocess() honours size factors, unless a library size is asked for, and batches", {
    counts <- counted_cells()
    counts[, 3] <- 0
    sce <- SingleCellExperiment(list(counts = counts))
    own <- seq(0.2, 3, length.out = 60)
    sizeFactors(sce) <- own
    logs <- log2(t(t(counts) / (own / mean(own[-3]))) + 1)
    for (form in list(identity, function(x) as(x, "CsparseMatrix"), DelayedArray::DelayedArray)) {
        counts(sce) <- form(counts)
        expect_equal(as.matrix(logcounts(cape_preprocess(sce, min.features = 0))), logs)
        expect_equal(as.matrix(logcounts(cape_preprocess(sce, min.features = 0, target.sum = 50))),
            log1p(t(t(counts) * 50 / pmax(1, colSums(counts)))))
    }
    own[5] <- -1
    sizeFactors(sce) <- own
    expect_error(cape_preprocess(sce, min.features = 0), "1 value that is not.*-1", class = "capeError")
    # Only the last two features vary within batches.
    x <- cbind(matrix(c(1, 9, 5, 5), 4, 10), matrix(c(9, 1, 5, 5), 4, 10))
    x[3:4, ] <- x[3:4, ] + rep(c(1, -1, -1, 1), 10)
    dimnames(x) <- list(letters[1:4], NULL)
    batch <- rep(1:2, each = 10)
    expect_identical(rownames(cape_preprocess(x, min.features = 0, n.hvgs = 2)), c("a", "b"))
    expect_identical(rownames(cape_preprocess(x, min.features = 0, n.hvgs = 2, batch = batch)), c("c", "d"))
    expect_error(cape_preprocess(x, min.features = 0, batch = batch[-1]), "19 values", class = "capeError")
})

test_that("a threshold is suggested for the features of the graph, however they were chosen", {
    set.seed(14)
    batch <- rep(c("p", "q"), each = 30)
    x <- matrix(rnorm(600 * 60), 600, 60, dimnames = list(paste0("g", 1:600), NULL))
    x[501:600, ] <- x[501:600, ] * 0.1 + rep(c(0, 8), each = 100 * 30)
    dag <- suppressMessages(suppressWarnings(cape_learn_dag(x, quick_dag(epochs = 1L), seed = 1, batch = batch,
        verbose = FALSE)))
    expect_s3_class(cape_suggest_threshold(dag, x, seed = 1, verbose = FALSE), "data.frame")
})

test_that("the choice of 500 features is made within batches", {
    set.seed(13)
    batch <- rep(c("p", "q"), each = 20)
    x <- matrix(rnorm(600 * 40), 600, 40, dimnames = list(paste0("g", 1:600), NULL))
    x[501:600, ] <- x[501:600, ] * 0.1 + rep(c(0, 8), each = 100 * 20)
    rows <- function(...) suppressMessages(capeOmics:::cape_as_input(x, NULL, NULL, DagParam(), FALSE, ...))$rows
    expect_true(all(501:600 %in% rows()))
    expect_identical(rows(batch), 1:500)
    expect_identical(suppressMessages(capeOmics:::cape_as_input(as(x, "CsparseMatrix"), NULL, NULL, DagParam(), FALSE,
        factor(batch)))$rows, 1:500)
    fit <- suppressMessages(suppressWarnings(cape_learn_dag(x, quick_dag(epochs = 1L), seed = 1, batch = batch,
        verbose = FALSE)))
    expect_identical(fit@features, rownames(x)[1:500])
})

test_that("transformed values beside counts are used: logcounts, then CATALYST's exprs", {
    counts <- counted_cells() * 1.3
    sce <- SingleCellExperiment(list(counts = counts, exprs = asinh(counts / 5)))
    expect_message(input <- capeOmics:::cape_as_input(sce, NULL, NULL, DagParam(), FALSE), "'exprs' as it is")
    expect_equal(input$values, asinh(counts / 5))
    assay(sce, "exprs")[, 4] <- 0
    expect_warning(input <- suppressMessages(capeOmics:::cape_as_input(sce, NULL, NULL, DagParam(), FALSE)),
        "1 cell without counts.*'c4'")
    expect_equal(input$values, asinh(counts / 5)[, -4])
    said <- capture_messages(suppressWarnings(capeOmics:::cape_as_input(
        SingleCellExperiment(list(counts = counts, other = counts)), NULL, NULL, DagParam(), FALSE)))
    expect_match(said, "Using assay 'counts'.*The other assays \\('other'\\) are used with assay.type", all = FALSE)
})
