# What Bioconductor asks of a package.

test_that("the help of every function and class says what is returned", {
    pages <- tools::Rd_db("capeOmics")
    tags <- lapply(pages, function(page) vapply(page, function(part) attr(part, "Rd_tag"), ""))
    with_value <- vapply(tags, function(tags) "\\value" %in% tags, NA)
    expect_identical(setdiff(names(pages)[!with_value], "capeOmics-package.Rd"), character())
})

test_that("no function sets R's seed; a seed has its own stream", {
    package <- asNamespace("capeOmics")
    calls <- lapply(ls(package, all.names = TRUE), function(name) all.names(body(as.function(
        if (is.function(package[[name]])) package[[name]] else function() NULL))))
    expect_false("set.seed" %in% unlist(calls))
    draw <- function(seed) capeOmics:::with_seed(seed, runif(4000))
    expect_identical(draw(5), draw(5))
    # Uniform, and seeds that are near each other have nothing in common: bounds of 5 standard errors.
    expect_lt(abs(mean(draw(1)) - 0.5), 5 / sqrt(12 * 4000))
    first <- vapply(0:1999, function(seed) capeOmics:::with_seed(seed, runif(2)), numeric(2))
    expect_lt(max(abs(rowMeans(first) - 0.5)), 5 / sqrt(12 * 2000))
    expect_lt(abs(cor(first[1, ], first[2, ])), 5 / sqrt(2000))
    expect_lt(abs(cor(first[1, -1], first[1, -2000])), 5 / sqrt(2000))
    expect_length(draw(.Machine$integer.max), 4000)
})

test_that("the news are read", {
    skip_if_not_installed("xml2")
    skip_if_not_installed("commonmark")
    news <- utils::news(package = "capeOmics")
    expect_true("0.1.0" %in% news$Version)
    expect_match(news$Text[1], "cape_fit")
})
