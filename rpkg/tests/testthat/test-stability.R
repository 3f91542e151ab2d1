linear <- function(...) DagParam(sem = "linear", epochs = 40L, ...)

test_that("stability selection finds the chain, the same for any seed of R and any number of workers", {
    x <- chain_data(400L)
    stable <- suppressWarnings(cape_stability(x, times = 12, param = linear(), seed = 5))
    expect_setequal(paste(cape_edges(stable$dag)$from, cape_edges(stable$dag)$to), c("x1 x2", "x2 x3"))
    expect_true(all(stable$frequency >= 0 & stable$frequency <= 1))
    expect_identical(stable$edges$frequency[1], max(stable$frequency))
    # Meinshausen and Buhlmann's bound by hand: 3 features have 6 ordered pairs.
    expect_equal(stable$expected.false, mean(stable$n.found)^2 / (0.5 * 6))
    set.seed(9)
    before <- .Random.seed
    again <- suppressWarnings(cape_stability(x, times = 12, param = linear(), seed = 5,
        BPPARAM = BiocParallel::MulticoreParam(2)))
    expect_identical(again, stable)
    expect_identical(.Random.seed, before)
    expect_output(print(stable), "12 subsamples of 50 %.*2 edges in at least 75 %")
    other <- suppressWarnings(cape_stability(x, times = 12, param = linear(), seed = 6))
    expect_false(identical(other$n.found, stable$n.found) && identical(other$edges$weight, stable$edges$weight))
})

test_that("knowledge and batches go into every subsample", {
    x <- chain_data(60L)
    known <- cape_knowledge(required = data.frame(from = "x3", to = "x1"))
    batch <- c("alone", "alone", rep(c("a", "b"), 29))
    stable <- suppressWarnings(cape_stability(x, times = 4, param = linear(), seed = 1, knowledge = known,
        batch = batch, perturbation = c("x2", rep(NA, 59)), cell.weights = rep(1:2, 30), covariates = seq(0, 1, length.out = 60)))
    expect_identical(stable$frequency["x3", "x1"], 1)
})

test_that("groups get graphs over the same features, and their differences are listed", {
    x <- chain_data(200L)
    reversed <- x[3:1, ]
    rownames(reversed) <- rownames(x)
    both <- cbind(x, reversed)
    dags <- suppressWarnings(cape_learn_dags(both, rep(c("one", "two"), each = 200), linear(), seed = 1))
    expect_named(dags, c("one", "two"))
    alone <- suppressWarnings(cape_learn_dag(x, linear(), seed = 1))
    expect_identical(cape_weights(dags$one), cape_weights(alone))
    d <- as.data.frame(cape_difference(dags$one, dags$two))
    expect_identical(sort(paste(d$from, d$to, d$in.graph)), c("x1 x2 a", "x2 x1 b", "x2 x3 a", "x3 x2 b"))
    expect_equal(d$difference, d$weight.b - d$weight.a)
    expect_identical(nrow(cape_difference(dags$one, dags$one)), 2L)
    expect_true(all(cape_difference(dags$one, dags$one)$in.graph == "both"))
    expect_error(cape_learn_dags(both, rep("a", 3)), "'by' has 3 values")
    expect_error(cape_learn_dags(both, c(rep("a", 395), rep("b", 5))), "group 'b' has fewer than 10 cells")
    expect_error(cape_learn_dags(both, NULL), "'by' is NULL")
    expect_error(cape_difference(dags$one, diag(2) * 0), "other features|features")
})

test_that("the path over thresholds is that of cape_prune()", {
    dag <- suppressWarnings(cape_learn_dag(chain_data(200L), linear(), seed = 1))
    path <- cape_threshold_path(dag, c(0, 0.3, 50))
    expect_identical(path$edges, vapply(c(0, 0.3, 50), function(tau) nrow(cape_edges(cape_prune(dag, tau))), 0L))
    expect_identical(path$edges[3], 0L)
    expect_identical(nrow(cape_threshold_path(dag)), 20L)
    expect_error(cape_threshold_path(dag, -1), "'thresholds' is -1")
})

test_that("what cannot be asked is named", {
    x <- chain_data(30L)
    expect_error(cape_stability(x, cutoff = 0.5), "'cutoff' is 0.5; it must be above 0.5")
    expect_error(cape_stability(x, times = 1), "'times' is 1")
    expect_error(cape_stability(x, fraction = 0.2), "is 6; at least 10 are needed")
})

test_that("a threshold is suggested for a plain fit, and refused for what it cannot be told of", {
    truth <- cape_simulate_dag(12, edges.per.node = 1, seed = 1)
    x <- cape_simulate_data(truth, 400, mechanism = "linear", seed = 2)
    dag <- cape_learn_dag(x, DagParam(sem = "linear", refine = FALSE), seed = 3)
    suggestion <- cape_suggest_threshold(dag, x, seed = 4)
    expect_named(suggestion, c("threshold", "tested", "causes", "differing"))
    expect_identical(suggestion$tested, 12)
    expect_identical(cape_suggest_threshold(dag, x, seed = 4, num.threads = 2L), suggestion)
    # `differing` counts the edges of the cut graph against the causes that tests keep.
    edges <- nrow(cape_edges(cape_prune(dag, suggestion$threshold)))
    expect_lte(abs(edges - suggestion$causes), suggestion$differing)
    expect_error(cape_suggest_threshold(dag, x[1:6, ]), "'x' does not have the features of 'dag'")
    expect_error(cape_suggest_threshold(as(as.matrix(cape_weights(dag)), "CapeDag"), x), "'dag' was not learned")
})
