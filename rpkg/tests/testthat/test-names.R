# Where an argument has names they are matched, and one that does not fit is an error.
chain <- function(features) {
    A <- matrix(0, length(features), length(features), dimnames = list(features, features))
    A[cbind(seq_along(features)[-1L] - 1L, seq_along(features)[-1L])] <- seq(0.3, 0.9, length.out = length(features) - 1L)
    A
}

test_that("graphs are compared by name, whatever form and order they come in", {
    A <- chain(letters[1:5])
    dag <- as(A, "CapeDag")
    p <- c(3, 1, 5, 2, 4)
    same <- cape_compare(dag, dag)
    expect_identical(same$shd, 0L)
    expect_identical(cape_compare(cape_edges(dag), dag), same)
    expect_identical(cape_compare(dag, as.data.frame(cape_edges(dag))), same)
    expect_identical(cape_compare(dag, A[p, p]), same)
    columns <- A[p, p]
    rownames(columns) <- NULL
    expect_identical(cape_compare(A, columns), same)
    rows <- A[p, p]
    colnames(rows) <- NULL
    expect_identical(cape_compare(A, rows), same)
    # Rows in one order and columns in another: matched, or refused where they differ.
    expect_identical(as.matrix(as(as(A[, p], "CapeDag"), "dgCMatrix")), A)
    other <- A
    colnames(other)[1] <- "z"
    expect_error(as(other, "CapeDag"), "other row names")
    # Without names by position, and then the numbers of features agree.
    expect_identical(cape_compare(unname(A), A), same)
    expect_error(cape_compare(unname(A), A[1:3, 1:3]), "5 features and 'true' has 3")
})

test_that("features of one graph alone are left out with a count; a table of edges lacks none", {
    A <- chain(letters[1:5])
    # b, c, d are in both: b -> c and c -> d of the truth, of which the estimate has the first.
    estimated <- A[1:4, 1:4]
    estimated["c", "d"] <- 0
    truth <- A[2:5, 2:5]
    expect_message(compared <- cape_compare(estimated, truth), "3 features.*1 that only.*1 that only")
    expect_identical(compared[c("shd", "correct", "missing", "extra")],
        data.frame(shd = 1L, correct = 1L, missing = 1L, extra = 0L))
    # The table names b, c alone; a -> b and c -> d count as missing.
    table <- data.frame(from = "b", to = "c")
    expect_identical(cape_compare(table, A[1:4, 1:4])$missing, 2L)
    expect_error(cape_compare(A, chain(c("x", "y"))), "no feature in common")
})

test_that("graphs of one feature are compared", {
    one <- as(matrix(0, 1, 1, dimnames = list("a", "a")), "CapeDag")
    expect_identical(cape_compare(one, one)$shd, 0L)
    expect_identical(nrow(cape_difference(one, one)), 0L)
})

test_that("differences are by name", {
    A <- chain(letters[1:4])
    p <- c(4, 2, 1, 3)
    expect_true(all(cape_difference(A, A[p, p])$difference == 0))
    found <- cape_difference(A, data.frame(from = c("a", "b"), to = c("b", "c"), weight = c(0.3, 1)))
    expect_identical(found$in.graph[match(c("a", "b", "c"), found$from)], c("both", "both", "a"))
})

test_that("the quality of an embedding is that of the graph, in any order", {
    A <- chain(letters[1:5])
    embedding <- cape_embed_dag(A, HyperbolicParam(dims = 4L, epochs = 20L), seed = 1)
    p <- c(2, 5, 1, 4, 3)
    right <- cape_embedding_quality(embedding, A)
    expect_equal(cape_embedding_quality(embedding, A[p, p]), right)
    expect_equal(cape_embedding_quality(embedding, cape_edges(as(A, "CapeDag"))), right)
    expect_equal(cape_embedding_quality(embedding, unname(A)), right)
    expect_error(cape_embedding_quality(embedding, A[1:4, 1:4]), "'e' in one")
})

test_that("values of cells go by the cells' names", {
    x <- chain_data(60L)
    colnames(x) <- paste0("cell", 1:60)
    p <- order(colnames(x))
    batch <- stats::setNames(rep(c("u", "v", "w"), 20), colnames(x))
    weights <- stats::setNames(seq_len(60) / 60, colnames(x))
    target <- stats::setNames(rep(c("x2", NA, NA), 20), colnames(x))
    flags <- matrix(0, 1, 60, dimnames = list("x2", colnames(x)))
    flags[1, ] <- !is.na(target)
    prior <- function(...) capeOmics:::prior_of(x, rownames(x), ...)
    right <- prior(batch = batch, cell.weights = weights, perturbation = target)
    expect_identical(right, prior(batch = unname(batch), cell.weights = unname(weights),
        perturbation = unname(target)))
    expect_identical(right, prior(batch = batch[p], cell.weights = weights[p], perturbation = target[p]))
    expect_identical(right, prior(batch = factor(batch)[p], cell.weights = array(weights[p], 60,
        list(names(weights)[p])), perturbation = flags[, p, drop = FALSE]))
    names(batch)[1] <- "stranger"
    expect_error(prior(batch = batch), "'batch' has names that the cells of 'x' do not have: 'stranger'")
    expect_error(prior(batch = batch[c(2, 2:60)]), "more than once")
    by <- stats::setNames(rep(c("g", "h"), each = 30), colnames(x))
    learn <- function(by) cape_learn_dags(x, by = by, param = quick_dag(), seed = 1)
    expect_identical(learn(by[p]), learn(by))
})

test_that("perturbations that name no feature are refused, not ignored", {
    x <- chain_data(60L)
    prior <- function(perturbation) capeOmics:::prior_of(x, rownames(x), perturbation = perturbation)
    expect_error(prior(rep(c("x1", "x1;x2"), 30)), "1 label.*'x1;x2'.*matrix")
    expect_error(prior(rep(c("x1", "control"), 30)), "'control'; NA marks")
    flags <- matrix(0, 2, 60, dimnames = list(c("x1", "y"), NULL))
    flags[, 1:5] <- 1
    expect_error(prior(flags), "'y'")
    flags[1, 1] <- NA
    expect_error(prior(flags), "none missing")
})

test_that("attention matches mask, bias and values to the tokens by name", {
    set.seed(1)
    f <- letters[1:5]
    p <- c(3, 1, 5, 2, 4)
    x <- matrix(rnorm(20), 5, dimnames = list(f, NULL))
    mask <- stats::setNames(c(TRUE, TRUE, FALSE, TRUE, TRUE), f)
    bias <- matrix(rnorm(25), 5, dimnames = list(f, f))
    right <- cape_attend(x, x, x, mask = unname(mask), bias = unname(bias))
    expect_equal(cape_attend(x, x, x[p, ], mask = mask[p], bias = bias[p, rev(p)]), right)
    expect_equal(cape_attend(x, x, x, mask = cbind(mask)[p, , drop = FALSE], bias = bias), right)
    expect_equal(cape_attend(x, x, x, mask = mask, bias = array(bias, c(5, 5, 1), list(f, f, NULL))[p, , , drop = FALSE]),
        right)
    names(mask)[1] <- "z"
    expect_error(cape_attend(x, x, x, mask = mask), "'mask' has names that the keys do not have: 'z'")
    phi <- matrix(runif(10), 5, dimnames = list(f, NULL))
    expect_equal(cape_rotate(x, phi[p, ]), cape_rotate(x, phi))
    expect_equal(cape_scores(x, x[p, ], phi, phi[p, ]), cape_scores(x, x, phi, phi))
})

test_that("tiers have an order, ids are written out, and every table is read alike", {
    expect_error(cape_knowledge(tiers = c(tf = "pre", target = "post")), "text has no order")
    expect_error(cape_knowledge(tiers = factor(c(a = "2", b = "10"))), "text has no order")
    expect_identical(cape_knowledge(tiers = ordered(c(a = "pre", b = "post"), c("pre", "post")))@values$tiers,
        c(a = 1L, b = 2L))
    edges <- data.frame(from = c(400000, 7), to = c(100000L, 3L))
    ends <- cbind(c("400000", "7"), c("100000", "3"))
    expect_identical(cape_knowledge(required = edges)@values$required, ends)
    expect_identical(cape_edges(cape_dag_of(edges))$from, c("400000", "7"))
    tibble <- structure(edges, class = c("tbl_df", "tbl", "data.frame"))
    expect_identical(cape_knowledge(forbidden = tibble)@values$forbidden, ends)
    expect_identical(cape_knowledge(forbidden = S4Vectors::DataFrame(edges))@values$forbidden, ends)
    rle <- S4Vectors::DataFrame(from = S4Vectors::Rle(c("a", "a")), to = c("b", "c"))
    expect_identical(cape_knowledge(forbidden = rle)@values$forbidden, cbind(c("a", "a"), c("b", "c")))
    big <- structure(c(1, 2), class = "integer64")
    expect_error(cape_knowledge(required = data.frame(from = I(big), to = 1:2)), "integer64")
    expect_error(cape_knowledge(required = list(1, 2)), "table")
})

test_that("no part of a column's name stands for the whole", {
    table <- data.frame(from = c("a", "b"), to = c("b", "c"), weight_pvalue = c(0.01, 0.9))
    expect_identical(cape_edges(cape_dag_of(table))$weight, c(1, 1))
})

test_that("the checkpoint's name is no pattern", {
    folder <- tempfile()
    dir.create(folder)
    other <- file.path(folder, "fit1.rds")
    saveRDS(1, other)
    capeOmics:::with_checkpoint(file.path(folder, "fit[1].rds"), 3, function(store) NULL)
    expect_true(file.exists(other))
    own <- file.path(folder, "fit*.rds")
    saveRDS(as.raw(1), own)
    capeOmics:::with_checkpoint(own, 3, function(store) NULL)
    expect_identical(list.files(folder), "fit1.rds")
})

test_that("regulators that the table lacks are left out with a count, and edges may be given twice", {
    x <- chain_data(60L)
    prior <- function(...) capeOmics:::prior_of(x, rownames(x), rownames(x), cape_knowledge(...))
    expect_message(known <- prior(regulators = c("x3", "TP53", "GATA1")),
        "Of the 3 regulators.*does not have 2: 'TP53', 'GATA1'")
    expect_identical(known$regulators, 3L)
    expect_error(suppressMessages(prior(regulators = "TP53")), "none of the regulators")
    expect_error(prior(roots = "TP53"), "'TP53'")
    twice <- data.frame(from = c("x1", "x1", "x2"), to = c("x2", "x2", "x3"))
    expect_identical(prior(required = twice), prior(required = twice[-1, ]))
    expect_identical(prior(forbidden = twice), prior(forbidden = twice[-1, ]))
})
