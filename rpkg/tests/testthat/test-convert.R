chain <- as(matrix(c(0, 0, 0, 0.9, 0, 0, 0, -0.8, 0), 3, dimnames = list(c("a", "b c", "\u03b2"), NULL)), "CapeDag")
ring <- as(matrix(c(0, 1, 1, 0), 2, dimnames = list(c("a", "b"), NULL)), "CapeDag")
fit <- quick_fit(chain_data(300L))

test_that("edges as a data frame", {
    expect_identical(as.data.frame(chain),
        data.frame(from = c("a", "b c"), to = c("b c", "\u03b2"), weight = c(0.9, -0.8), sign = c(1, -1)))
    expect_identical(as.data.frame(fit), as.data.frame(cape_edges(fit)))
    expect_identical(nrow(as.data.frame(as(diag(0, 2), "CapeDag"))), 0L)
})

test_that("igraph's generic gives the graph with all that is known of edges and nodes", {
    graph <- igraph::as.igraph(chain)
    expect_identical(igraph::as_edgelist(graph), cbind(c("a", "b c"), c("b c", "\u03b2")))
    expect_identical(igraph::edge_attr(graph), list(weight = c(0.9, 0.8), sign = c(1, -1)))
    graph <- igraph::as.igraph(fit)
    ends <- igraph::as_edgelist(graph)
    expect_identical(igraph::edge_attr(graph, "support"), cape_support(fit, sparse = FALSE)[ends])
    expect_identical(igraph::edge_attr(graph, "weight"), abs(cape_weights(fit, sparse = FALSE)[ends]))
    expect_identical(igraph::vertex_attr(graph, "generality"), unname(cape_generality(fit)))
    expect_identical(cape_weights(as(graph, "CapeDag")), cape_weights(fit))
})

test_that("dagitty's text", {
    expect_identical(cape_dagitty(chain),
        "dag {\n\"a\"\n\"b c\"\n\"\u03b2\"\n\"a\" -> \"b c\"\n\"b c\" -> \"\u03b2\"\n}\n")
    expect_identical(cape_dagitty(as(matrix(0, 1, 1, dimnames = list("x", NULL)), "CapeDag")), "dag {\n\"x\"\n}\n")
    expect_identical(cape_dagitty(fit), cape_dagitty(fit@dag))
    expect_error(cape_dagitty(ring), "cycle.*cape_prune", class = "capeError")
    for (name in c("a\"b", "a\\b", "a\nb")) {
        bad <- as(matrix(0, 1, 1, dimnames = list(name, NULL)), "CapeDag")
        expect_error(cape_dagitty(bad), "dagitty cannot have", class = "capeError")
    }
    expect_error(cape_dagitty(mtcars), "must be a CapeFit", class = "capeError")
    skip_if_not_installed("dagitty")
    expect_setequal(names(dagitty::dagitty(cape_dagitty(chain))), chain@features)
    expect_identical(dagitty::parents(dagitty::dagitty(cape_dagitty(chain)), "b c"), "a")
})

test_that("a network of bnlearn", {
    skip_if_not_installed("bnlearn")
    for (x in list(chain, fit)) {
        network <- bnlearn::as.bn(x)
        expect_identical(bnlearn::nodes(network), dimnames(x)[[1]])
        edges <- as.data.frame(x)
        pairs <- function(from, to) sort(paste(from, "->", to))
        expect_identical(pairs(bnlearn::arcs(network)[, 1], bnlearn::arcs(network)[, 2]), pairs(edges$from, edges$to))
    }
    expect_error(bnlearn::as.bn(ring), "cycle", class = "capeError")
})

test_that("tidy() and glance()", {
    skip_if_not_installed("generics")
    expect_identical(generics::tidy(fit), as.data.frame(fit))
    row <- generics::glance(fit)
    expect_identical(unlist(row[c("n_features", "n_edges")], use.names = FALSE), c(3L, nrow(as.data.frame(fit))))
    expect_identical(row$seed, 1L)
    expect_true(row$learned && row$acyclic)
    row <- generics::glance(ring)
    expect_identical(dim(row), c(1L, 9L))
    expect_identical(row[c("n_edges", "acyclic", "learned")],
        data.frame(n_edges = 2L, acyclic = FALSE, learned = FALSE))
})
