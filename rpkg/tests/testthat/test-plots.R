draws <- function(plot) {
    file <- tempfile(fileext = ".png")
    ggplot2::ggsave(file, plot, width = 6, height = 5, dpi = 50)
    file.size(file) > 1000
}

test_that("every plot is a ggplot that draws without a warning", {
    truth <- cape_simulate_dag(10, seed = 1)
    fit <- quick_fit(cape_simulate_data(truth, 200, seed = 2))
    plots <- list(dag = cape_plot_dag(fit), adjacency = cape_plot_adjacency(fit, truth),
        alone = cape_plot_adjacency(fit), poincare = cape_plot_poincare(fit), history = cape_plot_history(fit),
        truth = cape_plot_dag(truth), embedding = cape_plot_poincare(fit@embedding, truth),
        graph = cape_plot_poincare(truth), epochs = cape_plot_history(fit@embedding))
    for (name in names(plots)) {
        expect_s3_class(plots[[name]], "ggplot")
        expect_silent(drawn <- draws(plots[[name]]))
        expect_true(drawn, info = name)
    }
})

test_that("plots of graphs without edges, and of single features, draw", {
    empty <- as(matrix(0, 3, 3), "CapeDag")
    expect_true(draws(cape_plot_dag(empty)))
    expect_true(draws(cape_plot_adjacency(empty)))
    expect_true(draws(cape_plot_poincare(cape_embed_dag(empty, quick_embed(), seed = 1), empty)))
    expect_error(cape_plot_history(empty), "not learned")
    one <- cape_embed_dag(matrix(0, 1, 1), quick_embed(), seed = 1)
    expect_true(draws(cape_plot_poincare(one, matrix(0, 1, 1))))
    expect_error(cape_plot_poincare(one), "'dag' is NULL.*cape_plot_ball", class = "capeError")
    expect_true(draws(cape_plot_ball(cape_embed_dag(empty, HyperbolicParam(dims = 1L, epochs = 5L), seed = 1))))
})

test_that("labels of a layer do not overlap, and a large graph shows its strongest edges", {
    dag <- cape_simulate_dag(60, seed = 1)
    plot <- cape_plot_dag(dag, max.edges = 50L)
    expect_match(plot$labels$caption, "the 50 strongest of [0-9]+ edges")
    # They hang together.
    ends <- unique(plot$layers[[1]]$data[c("from", "to")])
    expect_identical(nrow(ends), 50L)
    expect_identical(igraph::count_components(igraph::graph_from_data_frame(ends)), 1)
    nodes <- plot$layers[[2]]$data
    for (row in split(nodes, round(nodes$y, 6))) {
        row <- row[order(row$x), ]
        gap <- diff(row$x) - (row$width[-1] + row$width[-nrow(row)]) / 2
        expect_true(all(gap > -1e-8))
    }
})

test_that("pictures of the embedding colour points, and draw with and without edges", {
    truth <- cape_simulate_dag(12, seed = 1)
    x <- cape_simulate_data(truth, 100, mechanism = "linear", seed = 2)
    sce <- suppressWarnings(cape_fit(x, dag = quick_dag(), embed = quick_embed(), seed = 1, verbose = FALSE))
    rowData(sce)$kind <- rep(c("a", "b"), 6)
    plots <- list(ball = cape_plot_ball(sce), radius = cape_plot_radius(sce), strength = cape_plot_strength(sce),
        kinds = cape_plot_poincare(sce, colour.by = "kind"), values = cape_plot_ball(sce, colour.by = 1:12),
        alone = cape_plot_ball(cape_result(sce)@embedding), few = cape_plot_strength(sce, max.pairs = 2L))
    for (name in names(plots)) {
        expect_s3_class(plots[[name]], "ggplot")
        expect_silent(drawn <- draws(plots[[name]]))
        expect_true(drawn, info = name)
    }
    expect_error(cape_plot_poincare(sce, colour.by = "nothing"), "'colour.by' is 'nothing'")
    expect_error(cape_plot_radius(sce, colour.by = 1:3), "has 3 values")
})

test_that("the ball can be turned where plotly is installed, and says what it needs where it is not", {
    truth <- cape_simulate_dag(12, seed = 1)
    embedding <- cape_embed_dag(truth, HyperbolicParam(dims = 3L), seed = 1)
    if (!requireNamespace("plotly", quietly = TRUE)) {
        expect_error(cape_plot_ball(embedding, truth, interactive = TRUE), "needs package plotly")
        skip("plotly is not installed")
    }
    traces <- function(...) plotly::plotly_build(cape_plot_ball(embedding, ..., interactive = TRUE))$x$data
    of_mode <- function(traces, mode) Filter(function(trace) trace$mode == mode, traces)
    drawn <- traces(truth)
    markers <- of_mode(drawn, "markers")
    expect_length(markers, 1L)
    e <- unname(embedding@poincare)
    expect_equal(cbind(markers[[1]]$x, markers[[1]]$y, markers[[1]]$z), e, ignore_attr = TRUE)
    expect_equal(as.numeric(markers[[1]]$marker$color), unname(embedding@generality), ignore_attr = TRUE)
    # The sphere, and the edges by sign: as many lines as there are edges, with a gap after each.
    lines <- of_mode(drawn, "lines")
    edges <- cape_edges(truth)
    expect_setequal(vapply(lines, `[[`, "", "name"),
        c("sphere", if (any(edges$sign > 0)) "raises", if (any(edges$sign < 0)) "lowers"))
    gaps <- vapply(lines, function(line) sum(is.na(as.numeric(line$x))), 0)
    expect_gte(sum(gaps), nrow(edges))
    # A trace for every kind; and without edges.
    kinds <- of_mode(traces(truth, colour.by = rep(c("a", "b"), 6)), "markers")
    expect_identical(vapply(kinds, `[[`, "", "name"), c("a", "b"))
    expect_identical(vapply(kinds, function(kind) length(kind$x), 0L), c(6L, 6L))
    expect_length(of_mode(traces(), "lines"), 1L)
})

test_that("a geodesic of the ball has the length of its distance, and norms survive flattening", {
    a <- c(0.5, 0.3, -0.1)
    b <- c(-0.4, 0.6, 0.2)
    path <- capeOmics:::ball_geodesic(a, b, 50)
    steps <- vapply(1:49, function(i) capeOmics:::ball_distance(path[i, ], path[i + 1, ]), 0)
    expect_equal(sum(steps), capeOmics:::ball_distance(a, b))
    e <- matrix(runif(40, -0.3, 0.3), 8)
    for (dims in 2:3) {
        expect_equal(rowSums(capeOmics:::flatten(e, rep(TRUE, 8), dims)^2), rowSums(e^2))
    }
})

test_that("an edge over several layers is drawn around the labels between", {
    chain <- matrix(0, 3, 3, dimnames = rep(list(letters[1:3]), 2))
    chain["a", "b"] <- chain["b", "c"] <- 1
    chain["a", "c"] <- 0.5
    paths <- cape_plot_dag(chain)$layers[[1]]$data
    long <- paths[paths$weight == 0.5, ]
    expect_identical(nrow(long), 3L)
    labels <- cape_plot_dag(chain)$layers[[2]]$data
    middle <- labels[labels$name == "b", ]
    expect_gt(abs(long$x[2] - middle$x), middle$width / 2)
})

test_that("an edge in the disk is a geodesic: its points add up to the distance of its ends", {
    a <- c(0.5, 0.3)
    b <- c(-0.4, 0.6)
    complex_of <- function(p) complex(real = p[1], imaginary = p[2])
    path <- capeOmics:::geodesics(c(complex_of(a), 0i), c(complex_of(b), 0i), 50)
    expect_identical(path[, 2], rep(0i, 50)) # from a point to itself
    path <- cbind(Re(path[, 1]), Im(path[, 1]))
    distance <- function(u, v) acosh(1 + 2 * sum((u - v)^2) / ((1 - sum(u^2)) * (1 - sum(v^2))))
    steps <- vapply(1:49, function(i) distance(path[i, ], path[i + 1, ]), 0)
    expect_equal(sum(steps), distance(a, b))
    expect_equal(path[50, ], b)
})

test_that("a map of attention is drawn in the order of a graph or of what is alike, group by group", {
    truth <- cape_simulate_dag(6, edges.per.node = 1, seed = 1)
    x <- cape_simulate_data(truth, 60, mechanism = "linear", seed = 2)
    model <- cape_pretrain(x, training = PretrainParam(epochs = 1L), seed = 4)
    map <- cape_attention_map(model, x)
    plot <- cape_plot_attention(map, truth, limit = 2)
    drawn <- ggplot2::layer_data(plot, 1)
    expect_identical(nrow(drawn), 42L)
    expect_identical(nrow(ggplot2::layer_data(plot, 2)), nrow(cape_edges(truth)))
    expect_identical(levels(plot$data$row)[1L], "<cls>")
    expect_identical(levels(plot$data$column), truth@order)
    at <- plot$data$row == "gene2" & plot$data$column == "gene5"
    expect_equal(plot$data$share[at], log2(min(max(6 * map["gene2", "gene5"], 0.5), 2)))
    # An edge is drawn where its effect attends to its cause.
    edge <- cape_edges(truth)[1, ]
    square <- plot$layers[[2L]]$data[1, ]
    expect_identical(c(as.character(square$column), as.character(square$row)), c(edge$from, edge$to))
    maps <- cape_attention_map(model, x, group = rep(c("a", "b"), 30))
    expect_identical(levels(cape_plot_attention(maps)$data$panel), c("a", "b"))
    expect_setequal(levels(cape_plot_attention(maps)$data$column), paste0("gene", 1:6))
    expect_silent(ggplot2::ggplotGrob(cape_plot_attention(maps)))
    expect_error(cape_plot_attention(map[1:3, ]), "cape_attention_map")
    expect_error(cape_plot_attention(list()), "no group")
    expect_error(cape_plot_attention(map, cape_simulate_dag(5, seed = 1)), "different features")
    expect_error(cape_plot_attention(map, limit = 1), "'limit'")
})
