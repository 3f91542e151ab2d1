test_that("ablations give encodings of one shape, each without its part", {
    truth <- cape_simulate_dag(8, seed = 1)
    x <- cape_simulate_data(truth, 200, mechanism = "linear", seed = 2)
    a <- suppressWarnings(cape_ablate(x, dag = quick_dag(), embed = quick_embed(), seed = 3))
    expect_named(a, c("full", "null", "no_csl", "no_hyperbolic", "no_rotary"))
    for (one in a) expect_identical(dim(one$positions), c(8L, 4L))
    fit <- quick_fit(x, seed = 3)
    expect_identical(a$full$positions, fit@angles)
    expect_true(all(a$null$positions == 0))
    expect_equal(a$no_rotary$positions, cape_embedding(fit))
    expect_false(isTRUE(all.equal(a$no_csl$positions, a$full$positions)))
    expect_identical(a$no_hyperbolic$embedding@param@values$space, "euclidean")
    expect_output(print(a), "no_rotary .* to add")
    expect_error(cape_ablate(x, variants = "half"), "'variants' is")
})

test_that("a sensitivity sweep is a tidy table and a plot", {
    truth <- cape_simulate_dag(8, seed = 1)
    fit <- quick_fit(cape_simulate_data(truth, 200, mechanism = "linear", seed = 2))
    s <- cape_sensitivity(fit, tau = c(0.1, 0.4), k = 1:2, lambda = 0.1, embed = quick_embed(), seed = 1)
    expect_identical(s$parameter, c("tau", "tau", "k", "k", "lambda_g"))
    expect_true(all(diff(s$edges[1:2]) <= 0))
    expect_true(all(is.finite(as.matrix(s[-1]))))
    expect_identical(cape_sensitivity(fit, tau = c(0.1, 0.4), k = 1:2, lambda = 0.1, embed = quick_embed(), seed = 1), s)
    expect_s3_class(cape_plot_sensitivity(s), "ggplot")
    expect_error(cape_sensitivity(fit, tau = NULL, k = NULL, lambda = NULL), "all empty")
    if (!requireNamespace("BiocParallel", quietly = TRUE)) {
        expect_error(cape_sensitivity(fit, BPPARAM = 1), "needs package BiocParallel")
    } else {
        expect_identical(cape_sensitivity(fit, tau = c(0.1, 0.4), k = 1:2, lambda = 0.1, embed = quick_embed(),
            seed = 1, BPPARAM = BiocParallel::SerialParam()), s)
    }
})
