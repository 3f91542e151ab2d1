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
    flags <- matrix(0:2, 3, 60, dimnames = list(rownames(x), NULL))
    expect_error(prior(flags), "with 2; it must hold 0 and 1")
    expect_identical(prior(flags == 1), prior((flags == 1) + 0))
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

test_that("what the core numbers is named, and names stay as they are", {
    x <- rbind(chain_data(60L), column_7 = 0, h_t = 1)
    said <- suppressWarnings(cape_learn_dag(x, quick_dag(), seed = 1))@warnings
    expect_match(said[1], "'column_7'.*'h_t'")
    expect_no_match(said[1], "counted")
    expect_error(cape_dag_of(data.frame(from = c("TP53", "TP53"), to = "MDM2")),
        "'TP53' -> 'MDM2' \\(weight 1\\) is given twice")
    expect_error(cape_dag_of(data.frame(from = c("A", "MEF2C"), to = c("B", "MEF2C"))), "'MEF2C' -> 'MEF2C'")
    f <- paste0("GENE", LETTERS[1:14])
    A <- chain(f)
    A[A > 0] <- 1
    expect_error(cape_simulate_data(A, 50, mechanism = "quadratic", noise.scale = 3, seed = 1), "node 'GENE[A-N]'")
    named <- function(...) capeOmics:::name_features(c(...), c("row 3", "a -> 2", "1"))
    expect_identical(named("the edge from column 1 to column 2 (counted from 1) is required"),
        "the edge from feature 'row 3' to feature 'a -> 2' is required")
    expect_identical(named("columns without variance: 1, 3 (counted from 1)."),
        "features without variance: 'row 3', '1'.")
    said <- capeOmics:::r_names
    expect_identical(said("x: row 0, column 9 (counted from 0)"), "x: row 1, column 10 (counted from 1)")
    expect_identical(said("pairs are collinear: 0 and 2, 5 and 9 (counted from 0)."),
        "pairs are collinear: 1 and 3, 6 and 10 (counted from 1).")
    expect_identical(said("edge 0 -> 99999999 (weight 0; nodes counted from 0)"),
        "edge 1 -> 100000000 (weight 0; nodes counted from 1)")
    expect_identical(said("h is 0; dag.lambda is 0"), "h is 0; lambda is 0")
    expect_identical(named("the strongest path 0 -> 1 (nodes counted from 0) is 0"),
        "the strongest path 'row 3' -> 'a -> 2' is 0")
    both <- function(text) capeOmics:::name_features(said(text), c("cell 1", "g2"), c("row 1", "feature 2"))
    expect_identical(both("the first is Inf at row 1, column 0 (counted from 0); only NaN can stand for row 1"),
        "the first is Inf at cell 'feature 2', feature 'cell 1'; only NaN can stand for row 1")
    expect_identical(named("x is 1 at row 2, column 1 (counted from 1)"),
        "x is 1 at row 2, feature 'row 3' (counted from 1)")
    forbidden <- data.frame(from = "x1", to = "x2")
    expect_error(cape_learn_dag(x[1:3, ], quick_dag(), seed = 1,
        knowledge = cape_knowledge(required = forbidden, forbidden = forbidden)),
        "feature 'x1' to feature 'x2' is required")
})

test_that("numbers that count nothing from 0 stay as they are", {
    said <- capeOmics:::r_names
    for (text in c("roots has the number 7; it must lie in [0, 5)", "row 0 of x is short", "0 -> 1",
        "indices[3] is 4; indices must lie in [0, 3) and increase", "n is 0; it must lie in [0, 3]",
        "index is 3; there are 2 warnings, counted from 0", "row 3 (counted from 1)")) {
        expect_identical(said(text), text)
    }
    expect_identical(said("row 3 (counted from 0): a norm is 2; it must lie in [0, 1)"),
        "row 4 (counted from 1): a norm is 2; it must lie in [0, 1)")
    expect_identical(said("edge 3 -> 5 (nodes counted from 0) has an end that is no node; there are 5"),
        "edge 4 -> 6 (nodes counted from 1) has an end that is no node; there are 5")
    expect_identical(said("row 0 (counted from 0): row 0 of column 2 (counted from 0): 0 -> 1 in row 0"),
        "row 1 (counted from 1): row 1 of column 3 (counted from 1): 0 -> 1 in row 0")
    expect_identical(said(character()), character())
})

test_that("messages on cells have their names", {
    x <- chain_data(60L)
    colnames(x) <- paste0("row ", 1:60)
    x[2, 9] <- 2e300
    expect_error(cape_learn_dag(x, quick_dag(), seed = 1, assay.type = "values"), paste0("cell 'row 9', feature '",
        rownames(x)[2], "'"), class = "capeError")
    # Cells that are left out count where the user has them.
    counts <- matrix(rpois(40 * 12, 5), 12, 40, dimnames = list(paste0("g", 1:12), paste0("c", 1:40)))
    counts[, 2] <- 0
    counts[, 5] <- 1e308
    expect_error(cape_learn_dag(counts, quick_dag(), seed = 1, assay.type = "counts"), "cell 'c5' cannot be scaled",
        class = "capeError")
})

test_that("counts beyond the integers are numbers", {
    A <- matrix(c(0, 0, 1, 0), 2)
    x <- cape_simulate_data(A, 100000, mechanism = "linear", counts = TRUE, mean = 1e6, dispersion = 1e3, seed = 1)
    expect_false(anyNA(x))
    expect_gt(max(x), .Machine$integer.max)
    expect_type(cape_simulate_data(A, 10, counts = TRUE, seed = 1), "integer")
})

test_that("settings are checked, and go through a list unchanged", {
    for (p in list(DagParam(refine = TRUE, lambda = 0.1), DagParam(), HyperbolicParam(dims = 8L), RotaryParam(0.5))) {
        expect_identical(do.call(class(p)[1], as.list(p)), p)
        typo <- p
        typo@values$lamda <- 1
        expect_error(validObject(typo), "'lamda'")
    }
    expect_error(DagParam(threshold = "0.3"), "'threshold' is \"0.3\"; it must be a number")
    for (bad in list("1", factor("1"), TRUE, 1:2, numeric(), list(1), 1i, Sys.Date(), structure(1, class = "integer64"),
        NULL)) {
        expect_error(DagParam(epochs = bad), "epochs", class = "capeError")
        expect_error(HyperbolicParam(dims = bad), "dims", class = "capeError")
        expect_error(RotaryParam(bad), "scale", class = "capeError")
    }
    expect_error(DagParam(epochs = NA), "'epochs' is NA; it must be a number")
    expect_identical(DagParam(candidates = NA), DagParam())
    expect_identical(HyperbolicParam(burn.in = NA_real_, temperature = NA), HyperbolicParam())
    bad <- DagParam()
    bad@values$lamda <- 1
    expect_error(cape_learn_dag(chain_data(60L), bad, seed = 1), "'lamda'")
    expect_error(cape_simulate_dag(5, edges.per.node = 20), "'edges.per.node' is 20; with 5 features")
})

test_that("many fits take the arguments of one", {
    x <- chain_data(60L)
    one <- cape_stability(x, times = 2, param = quick_dag(), seed = 1)
    expect_identical(cape_stability(x, times = 2, param = quick_dag(), seed = 1, num.threads = 2L,
        verbose = FALSE), one)
    expect_error(cape_stability(x, times = 2, checkpoint = "file"), "'checkpoint' is given")
    by <- rep(c("g", "h"), 30)
    expect_identical(cape_learn_dags(x, by, quick_dag(), seed = 1, num.threads = 2L, verbose = FALSE),
        cape_learn_dags(x, by, quick_dag(), seed = 1))
})

test_that("R's kinds of random numbers stay, also before the first draw", {
    said <- run_child(paste("RNGkind('Wichmann-Hill'); rm(.Random.seed); capeOmics:::with_seed(1, runif(1));",
        "cat(RNGkind()[1])"))
    expect_match(paste(said, collapse = ""), "Wichmann-Hill")
})

test_that("a refinement that is asked for and cannot be done is refused before the fit", {
    x <- chain_data(60L)
    always <- quick_dag(refine = TRUE)
    target <- rep(c("x2", NA), 30)
    for (call in list(function(...) cape_learn_dag(x, always, seed = 1, ...),
        function(...) cape_calculate(x, dag = always, seed = 1, ...),
        function(...) cape_stability(x, times = 2, param = always, seed = 1, ...))) {
        expect_error(call(perturbation = target), "'refine' is TRUE, but .*'perturbation'", class = "capeError")
        expect_error(call(cell.weights = seq_len(60)), "'cell.weights'")
    }
    expect_no_error(suppressWarnings(cape_learn_dag(x, always, seed = 1, cell.weights = rep(2, 60))))
    expect_no_error(suppressWarnings(cape_learn_dag(x, always, seed = 1, cell.weights = rep(0:2, c(5, 0, 55)))))
    x[1, 1] <- NA
    expect_no_error(suppressWarnings(cape_learn_dag(x, quick_dag(refine = TRUE, missing = "mask"), seed = 1)))
})

test_that("every number of every function is checked for its type and length before the work", {
    x <- chain_data(60L)
    dag <- cape_dag_of(chain(letters[1:4]))
    v <- matrix(0.5, 4, 4)
    calls <- list(
        n = function(v) cape_simulate_dag(v), edges.per.node = function(v) cape_simulate_dag(4, edges.per.node = v),
        min.weight = function(v) cape_simulate_dag(4, min.weight = v),
        max.weight = function(v) cape_simulate_dag(4, max.weight = v),
        seed = function(v) cape_simulate_dag(4, seed = v), n = function(v) cape_simulate_data(dag, v),
        noise.scale = function(v) cape_simulate_data(dag, 5, noise.scale = v),
        mean = function(v) cape_simulate_data(dag, 5, mean = v),
        dispersion = function(v) cape_simulate_data(dag, 5, dispersion = v),
        tau = function(v) cape_prune(dag, v), seed = function(v) cape_fit(x, seed = v),
        num.threads = function(v) cape_calculate(x, num.threads = v),
        num.threads = function(v) cape_learn_dag(x, num.threads = v),
        num.threads = function(v) cape_embed_dag(dag, num.threads = v),
        num.threads = function(v) cape_stability(x, num.threads = v),
        times = function(v) cape_stability(x, times = v), fraction = function(v) cape_stability(x, fraction = v),
        cutoff = function(v) cape_stability(x, cutoff = v), BPPARAM = function(v) cape_stability(x, BPPARAM = v),
        BPPARAM = function(v) cape_learn_dags(x, rep(1:2, 30), BPPARAM = v),
        k = function(v) cape_sensitivity(dag, k = v), lambda = function(v) cape_sensitivity(dag, lambda = v),
        tau = function(v) cape_sensitivity(dag, tau = v), n = function(v) cape_memory(v, 5),
        m = function(v) cape_memory(5, v), heads = function(v) cape_memory(5, 5, heads = v),
        batch = function(v) cape_memory(5, 5, batch = v), heads = function(v) cape_attend(v1, v1, v1, heads = v),
        scale = function(v) cape_attend(v1, v1, v1, scale = v),
        features = function(v) cape_attend(v1, v1, v1, method = "linear", features = v),
        num.threads = function(v) cape_attend(v1, v1, v1, num.threads = v))
    v1 <- v
    wrong <- list("1", factor("1"), list(1), 1i, NA_character_, structure(1, class = "integer64"), Inf)
    for (i in seq_along(calls)) {
        for (value in wrong) {
            expect_error(calls[[i]](value), paste0("'", names(calls)[i], "' is "), class = "capeError",
                info = paste(names(calls)[i], class(value)[1]))
        }
    }
    for (i in which(!names(calls) %in% c("k", "lambda", "tau"))) {
        for (value in list(c(1, 2), numeric())) {
            expect_error(calls[[i]](value), paste0("'", names(calls)[i], "' is "), class = "capeError")
        }
    }
    expect_error(cape_sensitivity(dag, k = 1.5), "'k' is 1.5; it must hold whole numbers")
    expect_error(cape_fit(x, cell.weights = rep("1", 60)), "'cell.weights' is an object of class character")
    expect_error(cape_fit(x, cell.weights = c(-2, rep(1, 59))), "'cell.weights' is -2 for cell 1")
})

test_that("row names that are an array are names, and ablations take what a fit takes", {
    x <- chain_data(60L)
    colnames(x) <- paste0("cell", 1:60)
    arrays <- x
    dimnames(arrays) <- lapply(dimnames(x), function(names) array(names, length(names)))
    embed <- quick_embed()
    expect_identical(quick_fit(arrays), quick_fit(x))
    suppressWarnings(expect_s4_class(cape_fit(arrays, dag = quick_dag(), embed = embed, seed = 1),
        "SingleCellExperiment"))
    batch <- rep(1:2, 30)
    ablate <- function(...) suppressWarnings(cape_ablate(x, c("no_csl", "full"), quick_dag(), embed, seed = 1, ...))
    expect_identical(ablate(batch = batch)$full$positions, quick_fit(x, batch = batch)@angles)
    expect_identical(ablate(num.threads = 2L, subset.row = 2:3)$full$positions, quick_fit(x, subset.row = 2:3)@angles)
    expect_error(ablate(batch = "none"), "'batch'")
})

test_that("flags of rows go by name, and integer64 is refused wherever numbers are taken", {
    x <- chain_data(60L)
    rows <- function(subset.row) capeOmics:::cape_as_input(x, NULL, subset.row, DagParam(), FALSE)$rows
    flags <- c(x1 = FALSE, x2 = TRUE, x3 = TRUE)
    expect_identical(rows(flags), 2:3)
    expect_identical(rows(flags[c(3, 1, 2)]), 2:3)
    expect_identical(rows(unname(flags)), 2:3)
    expect_error(rows(c(x1 = TRUE, x2 = TRUE, y = FALSE)), "'subset.row' has names.*'y'", class = "capeError")
    bits <- function(x) structure(x, class = "integer64")
    expect_error(rows(bits(c(1, 2))), "integer64", class = "capeError")
    expect_error(cape_compare(bits(matrix(0, 2, 2)), matrix(0, 2, 2)), "integer64", class = "capeError")
    sce <- suppressWarnings(cape_fit(x, dag = quick_dag(), embed = quick_embed(), seed = 1, verbose = FALSE))
    expect_error(cape_plot_poincare(sce, colour.by = bits(c(1, 2, 3))), "integer64", class = "capeError")
    expect_error(cape_plot_poincare(sce, colour.by = list(1, 2, 3)), "must be a vector", class = "capeError")
    SummarizedExperiment::rowData(sce)$n <- I(list(1, 2, 3))
    expect_error(cape_plot_poincare(sce, colour.by = "n"), "must be a vector", class = "capeError")
})

test_that("a graph is no table of edges", {
    A <- matrix(c(0, 0, 1, 0), 2, dimnames = rep(list(c("a", "b")), 2))
    expect_error(cape_knowledge(forbidden = A), "'forbidden' is a square matrix", class = "capeError")
    expect_error(cape_knowledge(required = A[, 2:1]), "square matrix", class = "capeError")
    expect_s4_class(cape_knowledge(forbidden = matrix(c("a", "b", "b", "c"), 2)), "CapeKnowledge")
    expect_s4_class(cape_knowledge(forbidden = rbind(a = c(from = "a", to = "b"), b = c("b", "c"))), "CapeKnowledge")
})
