test_that("scores are rotated products within their bounds", {
    set.seed(1)
    q <- matrix(rnorm(12), 3)
    k <- matrix(rnorm(12), 3)
    m <- matrix(runif(6, -0.5, 0.5), 3)
    n <- matrix(runif(6, -0.5, 0.5), 3)
    s <- cape_scores(q, k, m, n, sd = 0.2)
    expect_equal(s$score, rowSums(cape_rotate(q, m) * cape_rotate(k, n)))
    expect_true(all(s$lower <= s$score & s$score <= s$upper))
    expect_equal(s$expected, exp(-0.04) * s$score)
    expect_error(cape_scores(1:4, 1:4, 0.1, 0.2), class = "capeError")
    expect_error(cape_scores(1:2, 1:2, 0.1, 0.2, sd = -1), "'sd' is -1")
})

test_that("the statements that hold do so, and those that do not are found out", {
    p <- cape_verify_properties(dims = 8L, draws = 60L, repeats = 5L, study = FALSE, seed = 3)
    false <- !p$checks$holds
    expect_identical(p$checks$statement[false], c("margin is positive when Cov(q_t, k_t) > 0 alone",
        "xi_N tends to 0 (it tends to E xi_N)"))
    expect_setequal(p$checks$label, c("prop_distance", "prop_specificity", "remark_specificity",
        "coro_attenuation", "prop_distinguish", "prop_unbias", "remark_approx", "prop_asymptotic"))
    expect_output(print(p), "- prop_distinguish")
    # The bound falls along both axes.
    surface <- matrix(p$surface$upper, length(unique(p$surface$distance)))
    expect_true(all(diff(surface) <= 0, na.rm = TRUE))
    expect_true(all(diff(t(surface)) <= 0, na.rm = TRUE))
    # The cloud gathers around its mean.
    spread <- function(n) sd(p$bias$bias[p$bias$n %in% n & p$bias$sigma == 0.3])
    expect_lt(spread(91:100), spread(1:10))
    expect_equal(min(p$accuracy$accuracy), exp(-(pi / 12)^2))
    for (plot in p$plots) expect_s3_class(plot, "ggplot")
    before <- .Random.seed
    again <- cape_verify_properties(dims = 8L, draws = 60L, repeats = 5L, study = FALSE, seed = 3)
    expect_identical(again$checks, p$checks)
    expect_identical(.Random.seed, before)
    expect_error(cape_verify_properties(sigma = -1), "'sigma' is -1")
})

test_that("quality is 1 for a chain in order, and needs the graph", {
    chain <- matrix(0, 4, 4, dimnames = rep(list(letters[1:4]), 2))
    chain[cbind(1:3, 2:4)] <- 0.9
    embedding <- cape_embed_dag(chain, HyperbolicParam(dims = 8L), seed = 1)
    quality <- cape_embedding_quality(embedding, chain)
    expect_identical(names(quality), c("distance", "strength", "parents_closer", "specificity", "precision"))
    expect_equal(quality$parents_closer, 1)
    expect_equal(quality$specificity, 1)
    expect_equal(quality$precision, 1)
    expect_error(cape_embedding_quality(embedding), "'dag' is NULL")
    expect_error(cape_embedding_quality(embedding, chain[1:3, 1:3]), "same features")
})
