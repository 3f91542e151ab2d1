# A result belongs to its features, wherever their rows go.

fitted_six <- function(name = "CAPE", ...) {
    x <- cape_simulate_data(cape_simulate_dag(6, seed = 1), 200, mechanism = "linear", seed = 2)
    sce <- SingleCellExperiment(list(logcounts = rbind(unused = rep(c(-1, 1), 100), x)))
    rowData(sce)$kind <- c("none", letters[1:6])
    suppressWarnings(cape_fit(sce, subset.row = c(3, 2, 4:7), dag = quick_dag(epochs = 100L),
        embed = quick_embed(), seed = 1, verbose = FALSE, name = name, ...))
}

expect_travels <- function(x, whole, features) {
    fit <- cape_result(x)
    expect_identical(fit@dag@features, features)
    expect_true(validObject(fit@dag))
    expect_identical(cape_weights(x), cape_weights(whole)[features, features, drop = FALSE])
    expect_identical(cape_embedding(x), cape_embedding(whole)[features, , drop = FALSE])
    expect_identical(cape_embedding(x, "hyperboloid"),
        cape_embedding(whole, "hyperboloid")[features, , drop = FALSE])
    expect_identical(cape_angles(x), cape_angles(whole)[features, , drop = FALSE])
    expect_identical(fit@angles, whole@angles[features, , drop = FALSE])
    expect_identical(cape_generality(x), cape_generality(whole)[features])
    expect_identical(fit@embedding@pagerank, whole@embedding@pagerank[features])
    all_edges <- as.data.frame(cape_edges(whole))
    kept <- all_edges[all_edges$from %in% features & all_edges$to %in% features, ]
    edges <- as.data.frame(cape_edges(x))
    key <- function(edges) sort(paste(edges$from, edges$to, edges$weight))
    expect_identical(key(edges), key(kept))
    expect_identical(fit@dag@order, intersect(whole@dag@order, features))
}

test_that("b09: accessors follow rows that were chosen, reordered, doubled and renamed", {
    sce <- fitted_six()
    whole <- cape_result(sce)
    f <- rownames(sce)
    expect_setequal(whole@dag@features, f[-1])
    for (rows in list(1:3, 7:1, c(5, 2), 4, c(2, 2, 6, 2), c(TRUE, FALSE, TRUE, FALSE, TRUE, FALSE, TRUE))) {
        part <- sce[rows, ]
        at <- unique(seq_along(f)[rows])
        expect_travels(part, whole, f[setdiff(at, 1)])
    }
    expect_travels(sce[1, ], whole, character())
    expect_travels(sce[5:3, 1:20][2:3, ], whole, f[4:3])
    renamed <- sce[c(3, 2, 7), ]
    rownames(renamed) <- c("C", "A", "F")
    expect_travels(renamed, whole, f[c(3, 2, 7)])
    rownames(renamed) <- NULL
    expect_travels(renamed, whole, f[c(3, 2, 7)])
    expect_travels(readRDS({
        saveRDS(sce[3:1, ], path <- tempfile())
        path
    }), whole, f[3:2])
    expect_output(show(cape_result(sce[1:3, ])), "among 2 features")
    expect_output(summary(cape_result(sce[4, ])), "among 1 feature")
})

test_that("b09: colours follow the rows in every picture", {
    sce <- fitted_six()
    f <- rownames(sce)
    kinds <- stats::setNames(rowData(sce)$kind, f)
    for (rows in list(1:7, 7:1, c(6, 3, 4))) {
        part <- sce[rows, ]
        disk <- Find(function(layer) all(c("name", "colour") %in% names(layer$data)),
            cape_plot_poincare(part, colour.by = "kind")$layers)$data
        ball <- Find(function(layer) all(c("name", "colour", "depth") %in% names(layer$data)),
            cape_plot_ball(part, colour.by = "kind")$layers)$data
        radius <- cape_plot_radius(part, colour.by = "kind")$data
        for (points in list(disk, ball, radius)) {
            expect_identical(as.character(points$colour), unname(kinds[points$name]))
        }
        expect_setequal(ball$name, setdiff(f[rows], "unused"))
        edges <- cape_edges(part) # features without any are not in the disk, unless none has one
        expect_setequal(disk$name, if (nrow(edges) > 0) c(edges$from, edges$to) else ball$name)
    }
    values <- stats::setNames(1:6, f[7:2])
    expect_equal(ggplot2::ggplot_build(cape_plot_poincare(sce, colour.by = values))$data,
        ggplot2::ggplot_build(cape_plot_poincare(sce, colour.by = rev(values)))$data)
    expect_error(cape_plot_poincare(sce, colour.by = stats::setNames(1:6, letters[1:6])),
        "has names, but none for 6 features")
})

test_that("results under another name are found by accessors and plots", {
    sce <- fitted_six("run")
    fit <- cape_result(sce, "run")
    expect_error(cape_edges(sce), "no result 'CAPE'; it has 'run'")
    expect_identical(cape_edges(sce, name = "run"), cape_edges(fit))
    expect_identical(cape_weights(sce, name = "run"), cape_weights(fit))
    expect_identical(cape_dag(sce, name = "run"), cape_dag(fit))
    expect_identical(cape_embedding(sce, name = "run"), cape_embedding(fit))
    expect_identical(cape_generality(sce, name = "run"), cape_generality(fit))
    expect_identical(cape_history(sce, name = "run"), cape_history(fit))
    expect_identical(cape_params(sce, name = "run"), cape_params(fit))
    expect_identical(cape_angles(sce, name = "run"), cape_angles(fit))
    expect_identical(cape_embedding_quality(sce, name = "run"), cape_embedding_quality(fit))
    for (plot in list(cape_plot_dag, cape_plot_adjacency, cape_plot_poincare, cape_plot_ball, cape_plot_radius,
        cape_plot_strength, cape_plot_history)) {
        expect_s3_class(plot(sce, name = "run"), "ggplot")
        expect_error(plot(sce), "no result 'CAPE'; it has 'run'")
    }
})

test_that("what is the user's own is not overwritten, and a result is", {
    x <- chain_data(50)
    own <- SingleCellExperiment(list(logcounts = x), rowData = DataFrame(CAPE = 1:3))
    fit <- function(x, ...) suppressWarnings(cape_fit(x, dag = quick_dag(), embed = quick_embed(), seed = 1,
        verbose = FALSE, ...))
    expect_error(fit(own), "rowData\\(x\\) already has 'CAPE'.*another 'name'", class = "capeError")
    expect_identical(rowData(fit(own, name = "run"))$CAPE, 1:3)
    noted <- SingleCellExperiment(list(logcounts = x), metadata = list(CAPE = "mine"))
    expect_error(fit(noted), "metadata\\(x\\) already has 'CAPE'")
    paired <- SingleCellExperiment(list(logcounts = x))
    rowPair(paired, "CAPE") <- S4Vectors::SelfHits(1, 2, nnode = 3)
    expect_error(fit(paired), "rowPairs\\(x\\) already has 'CAPE'")
    twice <- fit(fit(SingleCellExperiment(list(logcounts = x)))[3:1, ])
    expect_identical(cape_result(twice)@dag@features, c("x3", "x2", "x1"))
    rowData(twice)$CAPE <- c("my", "own", "words")
    expect_error(fit(twice), "rowData\\(x\\) already has 'CAPE'")
    expect_identical(cape_result(twice)@dag@features, c("x3", "x2", "x1"))
    rownames(twice) <- NULL
    expect_error(cape_edges(twice), "does not tell which of its rows")
})

test_that("b10: every group has a colour of its own", {
    for (n in c(1, 2, 8, 9, 10, 30, 40, 41, 100)) {
        expect_length(unique(capeOmics:::group_colours(n)), n)
    }
    truth <- cape_simulate_dag(12, seed = 1)
    embedding <- cape_embed_dag(truth, HyperbolicParam(dims = 4L, epochs = 20L), seed = 1)
    for (groups in list(letters[1:12], factor(rep(1:4, 3), levels = 1:9), rep(c(TRUE, FALSE), 6))) {
        for (plot in list(cape_plot_poincare, cape_plot_ball, cape_plot_radius)) {
            expect_silent(drawn <- ggplot2::ggplot_build(plot(embedding, truth, colour.by = groups)))
            fills <- unlist(lapply(drawn$data, function(layer) if (21 %in% layer$shape) layer$fill))
            expect_length(setdiff(fills, "grey85"), length(unique(groups)))
        }
    }
})

test_that("a feature may be called as the drawing calls its bends", {
    names <- c("edge 3 in layer 1", "b", "c")
    chain <- matrix(0, 3, 3, dimnames = list(names, names))
    chain[1, 2] <- chain[2, 3] <- 1
    chain[1, 3] <- 0.5
    expect_setequal(cape_plot_dag(chain)$layers[[2]]$data$name, names)
    expect_identical(nrow(subset(cape_plot_dag(chain)$layers[[1]]$data, weight == 0.5)), 3L)
})
