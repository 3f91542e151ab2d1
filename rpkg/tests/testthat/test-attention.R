softmax_rows <- function(s) {
    e <- exp(s - apply(s, 1, max))
    e / rowSums(e)
}
rotate_by_hand <- function(v, phi) {
    odd <- seq(1, ncol(v), 2)
    out <- v
    out[, odd] <- v[, odd] * cos(phi) - v[, odd + 1] * sin(phi)
    out[, odd + 1] <- v[, odd] * sin(phi) + v[, odd + 1] * cos(phi)
    out
}

test_that("C1: pairs are interleaved, and rotation can be undone", {
    expect_equal(cape_rotate(1:4, c(pi / 6, pi / 3)), c(-0.1339746, 2.2320508, -1.9641016, 4.5980762), tolerance = 1e-7)
    set.seed(1)
    v <- matrix(rnorm(24), 4, 6, dimnames = list(letters[1:4], NULL))
    phi <- matrix(runif(12, -3, 3), 4, 3)
    expect_equal(cape_rotate(v, phi), rotate_by_hand(v, phi))
    expect_equal(cape_rotate(cape_rotate(v, phi), phi, inverse = TRUE), v)
    expect_error(cape_rotate(v, phi[, 1:2]), class = "capeError")
    expect_error(cape_rotate(v[, 1:5], phi), class = "capeError")
    expect_error(cape_rotate("a", 1), "'v' is")
})

test_that("attention equals its definition, for every head, with a mask", {
    set.seed(2)
    q <- matrix(rnorm(7 * 8), 7, 8, dimnames = list(paste0("q", 1:7), NULL))
    k <- matrix(rnorm(5 * 8), 5, 8)
    v <- matrix(rnorm(5 * 8), 5, 8, dimnames = list(NULL, paste0("d", 1:8)))
    phi <- list(query = matrix(rnorm(7 * 2), 7), key = matrix(rnorm(5 * 2), 5))
    mask <- c(TRUE, TRUE, FALSE, TRUE, TRUE)
    by_hand <- function(h) {
        at <- (h - 1) * 4 + 1:4
        s <- rotate_by_hand(q[, at], phi$query) %*% t(rotate_by_hand(k[, at], phi$key)) / sqrt(4)
        s[, !mask] <- -Inf
        list(scores = s, out = softmax_rows(s) %*% v[, at])
    }
    out <- cape_attend(q, k, v, phi, heads = 2L, mask = mask)
    expect_equal(out, cbind(by_hand(1)$out, by_hand(2)$out), ignore_attr = TRUE)
    expect_identical(dimnames(out), list(rownames(q), colnames(v)))
    scores <- cape_attend(q, k, angles = phi, heads = 2L, mask = mask)
    expect_identical(dim(scores), c(7L, 5L, 2L))
    expect_equal(scores[, , 2], by_hand(2)$scores, ignore_attr = TRUE)
    expect_identical(cape_attend(q, k, v, phi, heads = 2L, mask = mask, num.threads = 2L), out)
    plain <- cape_attend(q, k, v, scale = 1)
    expect_equal(plain, softmax_rows(q %*% t(k)) %*% v, ignore_attr = TRUE)
    each <- lapply(phi, function(p) cbind(p, p))
    expect_equal(cape_attend(q, k, v, each, heads = 2L, mask = mask), out)
})

test_that("C2: a query without real keys gets zeros", {
    x <- matrix(rnorm(8), 4, 2)
    expect_identical(cape_attend(x, x, x, mask = rep(FALSE, 4)), matrix(0, 4, 2))
})

test_that("batches are arrays, one answer each", {
    set.seed(3)
    q <- array(rnorm(3 * 4 * 2), c(3, 4, 2))
    out <- cape_attend(q, q, q)
    expect_equal(out[, , 2], cape_attend(q[, , 2], q[, , 2], q[, , 2]))
    mask <- cbind(c(TRUE, FALSE, TRUE), TRUE)
    masked <- cape_attend(q, q, q, mask = mask)
    expect_equal(masked[, , 1], cape_attend(q[, , 1], q[, , 1], q[, , 1], mask = mask[, 1]))
    expect_equal(masked[, , 2], out[, , 2])
    expect_identical(dim(cape_attend(q, q, heads = 2L)), c(3L, 3L, 2L, 2L))
})

test_that("a fit's angles can be used as they are", {
    fit <- quick_fit(chain_data(100))
    set.seed(1)
    x <- matrix(rnorm(3 * 16), 3)
    expect_identical(cape_attend(x, x, x, fit, heads = 2L), cape_attend(x, x, x, cape_angles(fit), heads = 2L))
    expect_identical(cape_attend(x, x, x, fit@embedding, heads = 2L), cape_attend(x, x, x, fit, heads = 2L))
})

test_that("C3: shapes that do not fit are refused with both numbers", {
    x <- matrix(0, 3, 7)
    expect_error(cape_attend(x, x, x, matrix(0, 3, 3)), "7 columns; to rotate pairs", class = "capeError")
    expect_error(cape_attend(x, x, x, heads = 2L), "7 columns, which 2 heads")
    expect_error(cape_attend(x, x[, 1:6]), "'query' has 7 columns and 'key' has 6")
    expect_error(cape_attend(x, x, x[1:2, ]), "'value' has 2 tokens and 'key' has 3")
    y <- matrix(0, 3, 4)
    expect_error(cape_attend(y, y, y, matrix(0, 3, 3)), "3 x 3; for 3 tokens and 1 heads of 4 columns they must be 3 x 2")
    expect_error(cape_attend(y, y, y, mask = TRUE), "'mask'.*each of 3 keys")
    expect_error(cape_attend(y, y, y, list(a = 1)), "'query' and 'key'")
})

test_that("a mask of the wrong orientation is refused", {
    q <- array(rnorm(24), c(3, 4, 2))
    mask <- matrix(c(TRUE, TRUE, FALSE), 3, 2)
    expect_error(cape_attend(q, q, q, mask = t(mask)), "'mask' is 2 x 3; it must be keys x batch: 3 x 2")
    expect_identical(dim(cape_attend(q, q, q, mask = mask)), dim(q))
})

test_that("angles are matched to tokens by name where both have names", {
    set.seed(6)
    genes <- paste0("gene", 1:6)
    x <- matrix(rnorm(24), 6, 4, dimnames = list(genes, NULL))
    phi <- matrix(runif(12, -1, 1), 6, 2, dimnames = list(genes, NULL))
    out <- cape_attend(x, x, x, phi)
    shuffled <- phi[c(4, 2, 6, 1, 3, 5), ]
    expect_identical(cape_attend(x, x, x, shuffled), out)
    some <- c(2, 5)
    expect_equal(cape_attend(x[some, ], x[some, ], angles = phi), cape_attend(x, x, angles = phi)[some, some])
    expect_identical(cape_attend(x, x, x, unname(phi)), out)
    expect_equal(cape_attend(unname(x), unname(x), angles = shuffled),
        cape_attend(unname(x), unname(x), angles = unname(shuffled)))
    expect_error(cape_attend(x, x, x, phi[-3, ]), "no row for 'gene3' of 'query'", class = "capeError")
    twice <- rbind(phi, phi[2, , drop = FALSE])
    expect_error(cape_attend(x, x, x, twice), "two rows named 'gene2'")
})

test_that("a bias is added to the scores, and may shut pairs out", {
    set.seed(7)
    q <- matrix(rnorm(3 * 4), 3)
    k <- matrix(rnorm(5 * 4), 5)
    bias <- matrix(rnorm(15), 3, 5)
    bias[1, ] <- -Inf
    bias[2, 3] <- -Inf
    scores <- q %*% t(k) / 2 + bias
    expect_equal(cape_attend(q, k, bias = bias), scores)
    out <- cape_attend(q, k, k, bias = bias)
    expect_identical(out[1, ], rep(0, 4))
    expect_equal(out[2:3, ], (softmax_rows(scores[2:3, ]) %*% k))
    each <- array(c(bias, 2 * bias), c(3, 5, 2))
    expect_equal(cape_attend(q, k, heads = 2L, bias = each)[, , 2],
        q[, 3:4] %*% t(k[, 3:4]) / sqrt(2) + 2 * bias)
    expect_error(cape_attend(q, k, k, bias = t(bias)), "'bias'.*3 x 5", class = "capeError")
    expect_error(cape_attend(q, k, k, bias = bias * NA), "bias has a value")
})

test_that("the linear method tends to the exact one and is seeded", {
    set.seed(8)
    x <- matrix(rnorm(40 * 8) / 2, 40, 8)
    exact <- cape_attend(x, x, x, heads = 2L)
    linear <- function(features, seed = 1L, ...) {
        cape_attend(x, x, x, heads = 2L, method = "linear", features = features, seed = seed, ...)
    }
    errors <- vapply(c(16, 4096), function(r) {
        sqrt(mean(vapply(1:10, function(seed) mean((linear(r, seed) - exact)^2), 0)))
    }, 0)
    expect_lt(errors[2], errors[1] / 4)
    expect_identical(linear(64L), linear(64L, num.threads = 2L))
    expect_false(identical(linear(64L), linear(64L, 2L)))
    phi <- matrix(0.3, 40, 2) # the same turn of all cancels
    expect_equal(cape_attend(x, x, x, phi, heads = 2L, method = "linear", seed = 1L), linear(256L))
    expect_error(cape_attend(x, x, method = "linear"), "no scores", class = "capeError")
    expect_error(linear(0L), "features")
    expect_error(cape_attend(x, x, x, method = "fast"), "'method'.*\"exact\"")
    expect_error(linear(4L, bias = matrix(0, 40, 40)), "'bias' is given")
})
