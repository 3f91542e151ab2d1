test_that("graphs come from matrices and igraphs and go back", {
    dag <- cape_simulate_dag(12, seed = 1)
    expect_error(cape_simulate_dag(3, features = c("a", "b")), "'features' has 2 names; it must have 3")
    expect_error(cape_simulate_dag(2, features = c("a", "a")), "different from each other")
    expect_identical(as(cape_weights(dag, sparse = FALSE), "CapeDag")@adjacency, dag@adjacency)
    expect_identical(as(cape_weights(dag), "CapeDag"), as(cape_weights(dag, sparse = FALSE), "CapeDag"))
    back <- as(as(dag, "igraph"), "CapeDag")
    expect_identical(back@adjacency, dag@adjacency)
    expect_identical(dim(dag), c(12L, 12L))
    expect_identical(dimnames(dag), rep(list(dag@features), 2))
    expect_error(as(matrix(1:6, 2), "CapeDag"), "2 x 3; it must be square")
    expect_error(as(diag(2), "CapeDag"), class = "capeError")
    expect_error(as(matrix(c(0, NA, 0, 0), 2), "CapeDag"), class = "capeError")
    expect_error(as(igraph::make_ring(3), "CapeDag"), "undirected")
    expect_error(cape_compare(dag, "a"), "'true' is \"a\"")
})

test_that("edges are sorted by absolute weight and know their sign", {
    edges <- as.data.frame(cape_edges(cape_simulate_dag(12, seed = 1)))
    expect_false(is.unsorted(-abs(edges$weight)))
    expect_identical(edges$sign, sign(edges$weight))
})

test_that("simulation has a seed, an order, and cells in columns", {
    dag <- cape_simulate_dag(10, seed = 3)
    expect_identical(cape_simulate_dag(10, seed = 3), dag)
    expect_false(identical(cape_simulate_dag(10, seed = 4)@adjacency, dag@adjacency))
    expect_true(igraph::is_dag(as(dag, "igraph")))
    at <- match(dag@features, dag@order)
    edges <- cape_edges(dag)
    expect_true(all(match(edges$from, dag@order) < match(edges$to, dag@order)))
    x <- cape_simulate_data(dag, 7, seed = 1)
    expect_identical(dim(x), c(10L, 7L))
    expect_identical(rownames(x), dag@features)
    expect_identical(cape_simulate_data(dag, 7, seed = 1), x)
    counts <- cape_simulate_data(dag, 50, counts = TRUE, mean = 8, seed = 1)
    expect_type(counts, "integer")
    expect_true(all(counts >= 0))
    # The mean of 500 negative binomial counts around 8 with depths around 1.
    expect_equal(mean(counts), 8, tolerance = 0.25)
    cyclic <- matrix(c(0, 1, 1, 0), 2)
    expect_error(cape_simulate_data(cyclic, 5), class = "capeError")
    expect_error(cape_simulate_dag(0), "'n' is 0")
})

test_that("linear data follow their equation", {
    a <- matrix(0, 2, 2, dimnames = rep(list(c("a", "b")), 2))
    a["a", "b"] <- 1.5
    x <- cape_simulate_data(a, 5000, mechanism = "linear", seed = 1)
    # Slope of b on a; its standard error is 1 / sqrt(5000) = 0.014.
    expect_equal(unname(coef(lm(x["b", ] ~ x["a", ]))[2]), 1.5, tolerance = 0.04)
})

test_that("comparison counts a reversed edge once and matches features by name", {
    truth <- matrix(0, 4, 4, dimnames = rep(list(letters[1:4]), 2))
    truth["a", "b"] <- truth["b", "c"] <- truth["c", "d"] <- 1
    guess <- truth * 0
    guess["a", "b"] <- 1 # right
    guess["c", "b"] <- 1 # reversed
    guess["a", "d"] <- 1 # extra
    m <- cape_compare(guess, truth)
    expect_identical(unlist(m[c("shd", "correct", "reversed", "missing", "extra")]),
        c(shd = 3L, correct = 1L, reversed = 1L, missing = 1L, extra = 1L))
    expect_equal(m$tpr, 1 / 3)
    expect_equal(m$fdr, 2 / 3)
    order <- c("d", "b", "a", "c")
    expect_identical(cape_compare(guess[order, order], truth), m)
    expect_identical(cape_compare(as(as(guess, "CapeDag"), "igraph"), as(truth, "CapeDag")), m)
    expect_identical(cape_compare(truth, truth)$shd, 0L)
    expect_error(cape_compare(unname(guess), truth[1:3, 1:3]), "4 features and 'true' has 3")
})

test_that("causes are nearer the origin than their effects, and a brought graph may have cycles", {
    chain <- matrix(0, 4, 4, dimnames = rep(list(letters[1:4]), 2))
    chain[cbind(1:3, 2:4)] <- 0.9
    embedding <- cape_embed_dag(chain, HyperbolicParam(dims = 8L), seed = 1)
    expect_false(is.unsorted(embedding@radius))
    expect_equal(embedding@generality, 1 - sqrt(rowSums(embedding@poincare^2)))
    expect_equal(embedding@hyperboloid[, 1], sqrt(1 + rowSums(embedding@hyperboloid[, -1]^2)))
    expect_equal(sum(embedding@pagerank), 1)
    # Deep graphs and weights of any scale too.
    for (weight in c(1, 1e-300)) {
        deep <- data.frame(from = paste0("n", 1:119), to = paste0("n", 2:120), weight = weight)
        expect_warning(of_deep <- cape_embed_dag(deep, HyperbolicParam(dims = 16L), seed = 1), NA)
        expect_true(all(of_deep@radius[deep$from] < of_deep@radius[deep$to]))
        expect_identical(of_deep@info$n_out_of_order, 0)
    }
    cycle <- chain
    cycle["d", "a"] <- 0.5
    expect_warning(of_cycle <- cape_embed_dag(cycle, quick_embed(), seed = 1),
        "the graph has a cycle: [1-4] of 4 edges .*4 edges lie on cycles.*cape_prune")
    expect_true(all(is.finite(cape_embedding(of_cycle))))
    expect_gte(of_cycle@info$n_out_of_order, 1)
    expect_output(print(of_cycle), "with a cause no nearer the origin than its effect")
    expect_error(cape_embed_dag(1), "'dag' is 1")
    expect_error(cape_angles(embedding, scale = 0), "'scale' is 0")
})

test_that("own graphs come in many forms and give the same embedding", {
    table <- data.frame(from = c("a", "b", "a"), to = c("b", "c", "d"), weight = c(0.9, -0.5, 2))
    embed <- function(x) cape_embed_dag(x, quick_embed(), seed = 1)
    matrix <- matrix(0, 4, 4, dimnames = rep(list(letters[1:4]), 2))
    matrix[cbind(c("a", "b", "a"), c("b", "c", "d"))] <- table$weight
    expected <- embed(matrix)
    expect_identical(embed(table), expected)
    expect_identical(embed(S4Vectors::DataFrame(table)), expected)
    expect_identical(embed(as(as(matrix, "CapeDag"), "igraph")), expected)
    hits <- S4Vectors::SelfHits(c(1, 2, 1), c(2, 3, 4), nnode = 4L, weight = table$weight)
    expect_identical(unname(cape_embedding(embed(hits))), unname(cape_embedding(expected)))
    expect_identical(embed(Matrix::Matrix(matrix, sparse = TRUE)), expected)
    paired <- SingleCellExperiment(list(values = matrix(0, 4, 2)))
    rowPair(paired, "own") <- hits
    expect_identical(cape_embedding(embed(rowPair(paired, "own"))), cape_embedding(embed(hits)))
    # Weights and signs stay in the table of edges.
    expect_identical(as.data.frame(cape_edges(as(matrix, "CapeDag")))[c("from", "to", "weight", "sign")],
        data.frame(from = c("a", "a", "b"), to = c("d", "b", "c"), weight = c(2, 0.9, -0.5), sign = c(1, 1, -1)))
    # The sign and the scale of weights above 1 do not matter to positions.
    expect_equal(cape_embedding(embed(abs(matrix) / 2)), cape_embedding(expected), tolerance = 1e-12)
    levels <- c("alone", letters[1:4])
    with_alone <- embed(data.frame(from = factor(table$from, levels), to = factor(table$to, levels), weight = table$weight))
    expect_true(is.na(cape_generality(with_alone)[["alone"]]))
    expect_true(all(cape_embedding(with_alone)["alone", ] == 0))
    expect_identical(cape_embedding(with_alone)[letters[1:4], ], cape_embedding(expected))
    expect_identical(nrow(cape_embedding(embed(matrix(0, 1, 1)))), 1L)
    none <- embed(matrix(0, 3, 3))
    expect_true(all(is.na(cape_generality(none))) && all(cape_embedding(none) == 0))
    parts <- embed(data.frame(from = c("a", "c"), to = c("b", "d")))
    expect_true(all(is.finite(cape_embedding(parts))))
    expect_true(all(parts@radius[c("a", "c")] < parts@radius[c("b", "d")]))
    expect_error(embed(data.frame(a = 1)), "a table of edges has 'from'")
    expect_error(embed(data.frame(from = NA, to = "b")), "missing ends")
})

test_that("D: preprocessing filters, normalises and keeps storage", {
    counts <- small_counts(20, 40)
    counts[counts < 3] <- 0
    counts[1, ] <- 0
    counts[, 1] <- 0
    by_hand <- counts[-1, -1]
    by_hand <- log1p(t(t(by_hand) / colSums(by_hand)) * 1e4)
    sce <- SingleCellExperiment(list(counts = counts))
    done <- cape_preprocess(sce, min.features = 1)
    expect_equal(assay(done, "logcounts"), by_hand)
    expect_identical(assay(done, "counts"), counts[-1, -1])
    sparse <- cape_preprocess(as(counts, "CsparseMatrix"), min.features = 1)
    expect_s4_class(sparse, "dgCMatrix")
    expect_equal(as.matrix(sparse), by_hand)
    delayed <- cape_preprocess(DelayedArray::DelayedArray(counts), min.features = 1)
    expect_s4_class(delayed, "DelayedMatrix")
    expect_identical(as.matrix(delayed), as.matrix(sparse))
    top <- cape_preprocess(sce, min.features = 1, n.hvgs = 5)
    expect_identical(rownames(top), rownames(by_hand)[sort(order(-apply(by_hand, 1, var))[1:5])])
    expect_error(cape_preprocess(sce), "0 cells with at least 200")
    expect_error(cape_preprocess(sce, min.featurs = 1), "'min.featurs'")
    expect_error(cape_preprocess(counts - 1), "negative")
})

test_that("F6: the package links to Rcpp and RcppArmadillo alone", {
    file <- system.file("DESCRIPTION", package = "capeOmics")
    linking <- trimws(strsplit(read.dcf(file, "LinkingTo")[1], ",")[[1]])
    expect_setequal(linking, c("Rcpp", "RcppArmadillo"))
})

test_that("nothing but R's entry point and cape_* is exported by what is installed", {
    skip_if(!nzchar(Sys.which("nm")))
    for (file in list.files(system.file("libs", package = "capeOmics"), full.names = TRUE)) {
        symbols <- system2("nm", c("-D", "--defined-only", shQuote(file)), stdout = TRUE)
        names <- sub("@.*", "", sub("^.* [A-Za-z] ", "", symbols))
        expect_identical(grep("^(R_init_capeOmics|cape_.*|CAPE_1)$", names, value = TRUE, invert = TRUE), character(),
            info = basename(file))
    }
})

test_that("the core passes its self-test, and its estimate grows with the work", {
    expect_silent(capeOmics:::core_self_test())
    small <- cape_memory(1000, 100)
    large <- cape_memory(10000, 1000)
    expect_true(all(large > small))
    expect_gt(large[["attention"]], small[["attention"]])
    expect_lt(cape_memory(1000, 20000)[["attention"]], 8 * 20000^2 / 4) # never tokens x tokens
    expect_gt(cape_memory(1000, 100, heads = 2L, batch = 3L)[["attention"]], small[["attention"]])
    expect_error(cape_memory(0, 10), "'n' is 0")
})
