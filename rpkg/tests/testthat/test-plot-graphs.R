# What pictures of graphs draw. The graphs are small enough to know the answer, or it is worked out by igraph.

graph_of_edges <- function(...) {
    edges <- do.call(rbind, list(...))
    cape_dag_of(data.frame(from = edges[, 1], to = edges[, 2], weight = as.numeric(edges[, 3])))
}
layer_of <- function(plot, geom) {
    Find(function(layer) inherits(layer$geom, geom), plot$layers)$data
}
arrows_of <- function(plot) unique(layer_of(plot, "GeomPath")[c("from", "to")])
pairs_of <- function(edges) paste(edges$from, edges$to)
height_of <- function(plot) with(layer_of(plot, "GeomLabel"), stats::setNames(y, name))

# u -> v -> gene -> w -> x, a bypass v -> w, and what is further away or beside it.
around <- function() {
    graph_of_edges(c("u", "v", 0.9), c("v", "gene", -0.5), c("gene", "w", 0.8), c("w", "x", -0.4), c("v", "w", 0.1),
        c("t", "u", 0.7), c("x", "y", 0.6), c("v", "side", 0.3), c("other", "w", 0.2))
}

test_that("a neighbourhood has the causes above, the effects below, and no more", {
    dag <- around()
    near <- as.data.frame(cape_neighbourhood(dag, "gene", hops = 2))
    expect_identical(near$feature, c("gene", "w", "v", "u", "x"))
    expect_identical(near$side, c("asked", "effect", "cause", "cause", "effect"))
    expect_equal(near$hops, c(0, 1, 1, 2, 2))
    expect_equal(near$strength, c(1, 0.8, 0.5, 0.45, 0.32))
    plot <- cape_plot_neighbourhood(dag, "gene", hops = 2)
    y <- height_of(plot)
    expect_setequal(names(y), near$feature)
    expect_true(all(y[c("u", "v")] > y["gene"]) && all(y[c("w", "x")] < y["gene"]))
    expect_setequal(pairs_of(arrows_of(plot)), c("u v", "v gene", "gene w", "w x", "v w"))
    # Colour: the sign. Width: the weight. Dark: what was asked for.
    drawn <- ggplot2::layer_data(plot, 1L)
    at <- layer_of(plot, "GeomPath")
    expect_identical(unique(drawn$colour[pairs_of(at) == "v gene"]), "#2166AC")
    expect_identical(unique(drawn$colour[pairs_of(at) == "u v"]), "#B2182B")
    width <- tapply(drawn$linewidth, pairs_of(at), unique)
    expect_identical(names(sort(width)), c("v w", "w x", "v gene", "gene w", "u v"))
    labels <- ggplot2::layer_data(plot, 2L)
    expect_identical(labels$label[labels$fill == "grey20"], "gene")
    expect_setequal(names(height_of(cape_plot_neighbourhood(dag, "gene", hops = 1))), c("v", "gene", "w"))
})

test_that("a neighbourhood is what igraph finds, of several features too", {
    dag <- cape_simulate_dag(200, edges.per.node = 2, seed = 3)
    graph <- as(dag, "igraph")
    for (asked in list("gene40", c("gene7", "gene90", "gene151"))) {
        for (hops in c(1, 2, 5)) {
            away <- function(mode) apply(igraph::distances(graph, asked, mode = mode, weights = NA), 2, min)
            near <- as.data.frame(cape_neighbourhood(dag, asked, hops))
            up <- away("in")
            down <- away("out")
            expect_setequal(near$feature, dag@features[pmin(up, down) <= hops])
            expect_equal(near$hops, unname(pmin(up, down)[near$feature]))
            expect_setequal(near$feature[near$side == "both"], setdiff(dag@features[up <= hops & down <= hops], asked))
        }
    }
    # All ways: the strongest has the smallest sum of minus the logarithms.
    far <- as.data.frame(cape_neighbourhood(dag, "gene40", 200))
    weight <- igraph::E(graph)$weight
    cost <- pmin(igraph::distances(graph, "gene40", mode = "out", weights = -log(weight / max(1, weight))),
        igraph::distances(graph, "gene40", mode = "in", weights = -log(weight / max(1, weight))))
    expect_equal(far$strength, unname(exp(-cost[1, far$feature])))
})

test_that("of a hub the nearest and strongest are drawn, causes as well as effects, in rows that fit", {
    effects <- paste0("effect", 1:300)
    hub <- rbind(data.frame(from = "hub", to = effects, weight = seq(1, 0.1, length.out = 300)),
        data.frame(from = c("cause1", "cause2"), to = "hub", weight = c(0.01, 0.02)),
        data.frame(from = "effect1", to = "beyond", weight = 1))
    plot <- cape_plot_neighbourhood(cape_dag_of(hub), "hub", max.features = 30)
    y <- height_of(plot)
    expect_setequal(names(y), c("hub", "cause1", "cause2", effects[1:27]))
    expect_true(all(y[c("cause1", "cause2")] > y["hub"]) && all(y[effects[1:27]] < y["hub"]))
    nodes <- layer_of(plot, "GeomLabel")
    expect_lte(max(tapply(nodes$width, nodes$y, sum)), 90)
    expect_match(gsub("\n", " ", plot$labels$caption), "2 causes above, 301 effects below.*30 of these 304 features")
})

test_that("the support of a learned graph is how solid its arrows are", {
    x <- cape_simulate_data(cape_simulate_dag(8, edges.per.node = 1, seed = 1), 100, mechanism = "linear", seed = 2)
    dag <- cape_learn_dag(x, quick_dag(), seed = 3)
    edges <- cape_edges(dag)
    plot <- cape_plot_neighbourhood(dag, edges$from[1], hops = 8)
    at <- layer_of(plot, "GeomPath")
    expect_equal(at$support, edges$support[match(pairs_of(at), pairs_of(edges))])
    alpha <- ggplot2::layer_data(plot, 1L)$alpha
    expect_gt(length(unique(alpha)), 1L)
    expect_equal(stats::cor(alpha, at$support), 1)
})

test_that("the ways between two features are all of these, the strongest first", {
    dag <- around()
    plot <- cape_plot_paths(dag, "u", "w")
    expect_setequal(pairs_of(arrows_of(plot)), c("u v", "v gene", "gene w", "v w"))
    expect_match(plot$labels$caption, "u -> v -> gene -> w$") # .9 x .5 x .8 against .9 x .1
    expect_setequal(names(height_of(cape_plot_paths(dag, "u", "x"))), c("u", "v", "gene", "w", "x"))
    # Fewer features than lie on the ways: whole ways, the strongest.
    two <- graph_of_edges(c("a", "b", 0.9), c("b", "z", 0.9), c("a", "c", 0.5), c("c", "z", 0.5))
    expect_setequal(names(height_of(cape_plot_paths(two, "a", "z", max.features = 3))), c("a", "b", "z"))
    # A product of 400 weights is no longer a number.
    long <- data.frame(from = paste0("g", 1:400), to = paste0("g", 2:401), weight = 0.001)
    expect_identical(nrow(arrows_of(cape_plot_paths(cape_dag_of(long), "g1", "g401", max.features = 500))), 400L)
    # Around a cycle of weights 1.
    ring <- graph_of_edges(c("a", "b", 1), c("b", "a", 1), c("b", "z", 1))
    expect_match(cape_plot_paths(ring, "a", "z")$labels$caption, "a -> b -> z$")
})

test_that("wrong questions about a neighbourhood say what would be right", {
    dag <- cape_simulate_dag(30, seed = 1)
    wrong <- function(code, message) expect_error(code, message, class = "capeError")
    wrong(cape_plot_neighbourhood(dag, "GENE31"), "'features' has 'GENE31', which is no feature.*similar.*'gene1'")
    wrong(cape_plot_neighbourhood(dag, c("gene1", "x", "y")), "'x', 'y', which are no features of the graph$")
    wrong(cape_plot_neighbourhood(dag, character()), "must have names of features")
    wrong(cape_plot_neighbourhood(dag, NA), "none missing")
    wrong(cape_plot_neighbourhood(dag, TRUE), "'features' holds TRUE or FALSE")
    for (hops in list(0, -1, 1.5, NA, "2", 1:2)) wrong(cape_plot_neighbourhood(dag, "gene1", hops), "'hops' is")
    wrong(cape_plot_neighbourhood(dag, "gene1", max.features = 0), "'max.features' is 0")
    wrong(cape_plot_paths(dag, "gene1", "gene1"), "both 'gene1'")
    wrong(cape_plot_paths(dag, c("gene1", "gene2"), "gene3"), "'from' has 2 features")
    wrong(cape_plot_paths(dag, "gene1", "nothing"), "'to' has 'nothing'")
    asked <- around()
    wrong(cape_plot_paths(asked, "w", "u"), "from 'w' to 'u'; one leads from 'to' to 'from'")
    wrong(cape_plot_paths(asked, "side", "gene"), "both are effects of 't', 'u', 'v'|both are effects of 'u', 'v', 't'")
    wrong(cape_plot_paths(asked, "t", "other"), "both are causes of 'w', 'x', 'y'")
    wrong(cape_plot_paths(matrix(0, 2, 2), "feature1", "feature2"), "neither a cause nor an effect in common")
})

test_that("features without edges, and names of all kinds, have their neighbourhood", {
    expect_identical(names(height_of(cape_plot_neighbourhood(matrix(0, 1, 1), "feature1"))), "feature1")
    expect_identical(nrow(arrows_of(cape_plot_neighbourhood(matrix(0, 3, 3), "feature2"))), 0L)
    names <- c("HLA-DRA; \u03b22m", "new\nline", "%d ~ `x` {a}", "400000")
    chain <- matrix(0, 4, 4, dimnames = list(names, names))
    chain[cbind(1:3, 2:4)] <- 1
    for (name in names) {
        plot <- cape_plot_neighbourhood(chain, name, hops = 3)
        expect_setequal(layer_of(plot, "GeomLabel")$name, names)
        expect_identical(sum(ggplot2::layer_data(plot, 2L)$fill == "grey20"), 1L)
    }
    expect_identical(cape_neighbourhood(chain, 400000)$feature[1], "400000") # an id that was read as a number
})

test_that("the disk has a ring for every level, and children in the sector of their strongest cause", {
    for (n in c(10, 100, 1000)) {
        dag <- cape_simulate_dag(n, edges.per.node = 2, seed = 1)
        points <- layer_of(cape_plot_poincare(dag), "GeomPoint")
        graph <- as(dag, "igraph")
        # The longest way from a root: the shortest for weights -1.
        tops <- which(igraph::degree(graph, mode = "in") == 0 & igraph::degree(graph) > 0)
        longest <- apply(igraph::distances(graph, tops, mode = "out", weights = rep(-1, igraph::ecount(graph)),
            algorithm = "bellman-ford"), 2, min)
        expect_equal(points$level, -unname(longest[points$name]))
        radius <- sqrt(points$x^2 + points$y^2)
        expect_lt(max(radius), 1)
        levels <- split(radius, points$level)
        expect_true(all(vapply(levels[-length(levels)], max, 0) < vapply(levels[-1], min, 0)))
        # No two points in one place, and room below for the names of the levels.
        expect_gt(min(stats::dist(points[c("x", "y")])), 0.3 / n)
        expect_true(all(abs(atan2(points$x, -points$y)) > 0.1 | radius == 0))
        weights <- abs(as.matrix(dag@adjacency))[points$name, points$name]
        child <- which(!is.na(points$parent))
        expect_identical(points$name[points$parent[child]], points$name[apply(weights[, child], 2, which.max)])
    }
    # Two trees share no angle.
    trees <- graph_of_edges(c("a", "b", 1), c("a", "c", 1), c("c", "d", 1), c("p", "q", 1), c("q", "r", 1),
        c("q", "s", 1))
    points <- layer_of(cape_plot_poincare(trees), "GeomPoint")
    angle <- stats::setNames(atan2(points$x, -points$y) %% (2 * pi), points$name)
    one <- range(angle[c("a", "b", "c", "d")])
    other <- range(angle[c("p", "q", "r", "s")])
    expect_true(one[2] < other[1] || other[2] < one[1])
    # One root is the centre.
    alone <- layer_of(cape_plot_poincare(graph_of_edges(c("root", "b", 1), c("root", "c", 1))), "GeomPoint")
    expect_equal(unlist(alone[alone$name == "root", c("x", "y")], use.names = FALSE), c(0, 0))
})

test_that("the disk says what it is, what it leaves out, and takes cycles", {
    dag <- cape_simulate_dag(100, edges.per.node = 2, seed = 1)
    told <- function(...) gsub("\n", " ", cape_plot_poincare(...)$labels$caption)
    expect_match(told(dag), "made for the eye: rings are levels")
    expect_match(told(dag, max.edges = 20), "the 20 strongest of 196 edges")
    arrows <- Filter(function(layer) "effect" %in% names(layer$data) && !is.null(layer$mapping$colour),
        cape_plot_poincare(dag, max.edges = 20)$layers)[[1]]$data
    expect_length(unique(arrows$edge), 20L)
    some <- matrix(0, 4, 4)
    some[1, 2] <- 1
    expect_match(told(some), "2 features without edges not drawn")
    expect_identical(nrow(layer_of(cape_plot_poincare(some), "GeomPoint")), 2L)
    expect_identical(nrow(layer_of(cape_plot_poincare(matrix(0, 3, 3)), "GeomPoint")), 3L)
    ring <- matrix(0, 3, 3)
    ring[cbind(1:3, c(2, 3, 1))] <- c(1, 1, 0.1)
    expect_match(told(ring), "without the weakest edges of cycles")
    expect_equal(layer_of(cape_plot_poincare(ring), "GeomPoint")$level, 0:2)
    embedding <- cape_embed_dag(some, quick_embed(), seed = 1)
    # A graph whose features are in another order has the same colours.
    turned <- some[4:1, 4:1]
    dimnames(turned) <- rep(list(paste0("feature", 4:1)), 2)
    points <- layer_of(cape_plot_poincare(embedding, turned, colour.by = 1:4), "GeomPoint")
    expect_identical(points$colour[order(points$name)], c(1, 2))
    expect_error(cape_plot_poincare(embedding, matrix(0, 3, 3)), "different features", class = "capeError")
})

test_that("modules are the parts of a graph, named by their strongest regulator", {
    block <- function(hub, names, weights) data.frame(from = hub, to = names, weight = weights)
    edges <- rbind(block("A", paste0("a", 1:6), 1), block("a1", "a2", 0.5), block("B", paste0("b", 1:4), 0.9),
        block("b1", "b2", -0.9), block("A", "b1", 0.1), block("B", "c1", 0.1), block("C", c("c1", "c2"), 1))
    dag <- cape_dag_of(rbind(edges, data.frame(from = "a6", to = "b4", weight = 0.1)))
    modules <- as.data.frame(cape_modules(dag))
    expect_identical(modules$module, rep(c("A", "B", "C"), c(7, 5, 3)))
    expect_identical(substr(toupper(modules$feature), 1, 1), modules$module)
    expect_equal(modules$strength[match(c("A", "a1", "B", "b1", "C"), modules$feature)], c(6, 0.5, 3.6, 0.9, 2))
    plot <- cape_plot_modules(dag)
    discs <- layer_of(plot, "GeomPolygon")
    points <- layer_of(plot, "GeomPoint")
    centre <- stats::aggregate(discs[c("x", "y")], discs["module"], function(v) mean(range(v)))
    # Every feature within the disc of its module, the regulator in the middle; A, which only causes, above B.
    at <- match(points$module, centre$module)
    off <- sqrt((points$x - centre$x[at])^2 + (points$y - centre$y[at])^2)
    r <- tapply(discs$x, discs$module, function(x) diff(range(x)) / 2)
    expect_true(all(off < r[points$module]))
    expect_equal(off[points$feature %in% c("A", "B", "C")], c(0, 0, 0), tolerance = 1e-6)
    y <- stats::setNames(centre$y, centre$module)
    expect_gte(y[["A"]], y[["B"]])
    segments <- Filter(function(layer) inherits(layer$geom, "GeomSegment"), plot$layers)
    between <- segments[[1]]$data
    expect_setequal(pairs_of(between), c("A B", "B C"))
    expect_equal(between$weight[between$from == "A"], 0.2)
    expect_identical(nrow(segments[[2]]$data), 14L)
})

test_that("discs of modules do not overlap, and what is left out is counted", {
    dag <- cape_simulate_dag(1000, edges.per.node = 2, seed = 1)
    plot <- cape_plot_modules(dag)
    discs <- layer_of(plot, "GeomPolygon")
    at <- do.call(rbind, lapply(split(discs, discs$module), function(d) {
        data.frame(x = mean(range(d$x)), y = mean(range(d$y)), r = diff(range(d$x)) / 2)
    }))
    apart <- as.matrix(stats::dist(at[c("x", "y")])) - outer(at$r, at$r, "+")
    expect_true(all(apart[upper.tri(apart)] > 0))
    expect_identical(nrow(at), 16L)
    expect_match(plot$labels$caption, "16 modules, the largest of [0-9]+, with [0-9]+ of 1000 features")
    expect_match(gsub("\n", " ", plot$labels$caption), "the 24 widest of [0-9]+ arrows")
    expect_match(cape_plot_modules(matrix(0, 3, 3))$labels$caption, "no edges")
    expect_identical(nrow(cape_modules(matrix(0, 3, 3))), 0L)
    ring <- matrix(c(0, 1, 1, 0), 2)
    expect_identical(unique(cape_modules(ring)$module), "feature1")
    expect_error(cape_plot_modules(dag, max.modules = 0), "'max.modules' is 0", class = "capeError")
})

test_that("bars of regulators are sums of weights, by sign", {
    dag <- graph_of_edges(c("a", "b", 0.5), c("a", "c", -0.25), c("a", "d", 1), c("b", "c", 0.75), c("c", "d", -2))
    plot <- cape_plot_regulators(dag, n = 2)
    bars <- ggplot2::layer_data(plot, 1L)
    ends <- layer_of(plot, "GeomText")
    expect_identical(as.character(ends$regulator), c("c", "a"))
    expect_equal(ends$strength, c(2, 1.75))
    expect_equal(ends$effects, c(1, 3))
    length <- bars$xmax - bars$xmin
    expect_equal(length[bars$fill == "#B2182B"], 1.5) # of a; c lowers only
    expect_equal(sort(length[bars$fill == "#2166AC"]), c(0.25, 2))
    expect_match(plot$labels$caption, "the 2 strongest of 3 features with effects")
    expect_match(cape_plot_regulators(matrix(0, 2, 2))$labels$caption, "no edges")
})

test_that("two graphs are compared edge by edge", {
    a <- matrix(0, 4, 4, dimnames = rep(list(letters[1:4]), 2))
    b <- a
    a["a", "b"] <- b["a", "b"] <- 0.5
    a["b", "c"] <- 0.6
    b["c", "d"] <- 0.7
    a["a", "d"] <- 0.4
    b["a", "d"] <- -0.4
    plot <- cape_plot_comparison(a, b, labels = c("old", "young"))
    paths <- layer_of(plot, "GeomPath")
    kind <- unique(data.frame(edge = pairs_of(paths), effect = as.character(paths$effect)))
    expect_identical(kind$effect[match(c("b c", "c d", "a b", "a d"), kind$edge)],
        c("only old (1)", "only young (1)", "both (1)", "both, of opposite sign (1)"))
    expect_length(unique(ggplot2::layer_data(plot, 1L)$colour), 4L)
    reversed <- layer_of(cape_plot_comparison(a, t(a)), "GeomPath") # with cycles
    expect_setequal(pairs_of(reversed), c("a b", "b c", "a d", "b a", "c b", "d a"))
    expect_error(cape_plot_comparison(a, b, labels = "x"), "'labels' is", class = "capeError")
    expect_error(cape_plot_comparison(a, matrix(0, 3, 3)), "other features", class = "capeError")
    expect_identical(nrow(layer_of(cape_plot_comparison(0 * a, 0 * a), "GeomPath")), 0L)
})

test_that("values are drawn in causal order, scaled, by group, with every cell", {
    chain <- matrix(0, 3, 3, dimnames = rep(list(c("x3", "x1", "x2")), 2))
    chain["x1", "x2"] <- chain["x2", "x3"] <- 1
    x <- chain_data(40L)
    tiles <- cape_plot_expression(x, c("x3", "x2", "x1"), chain, limit = 100)$data
    expect_identical(levels(tiles$feature), c("x3", "x2", "x1")) # the last is on top
    values <- split(tiles$value, tiles$feature)
    for (feature in rownames(x)) expect_equal(sort(values[[feature]]), sort(as.vector(scale(x[feature, ]))))
    # Cells in the order of the first principal component.
    shown <- do.call(cbind, values)
    component <- stats::prcomp(shown)$x[, 1]
    expect_true(!is.unsorted(component) || !is.unsorted(-component))
    group <- factor(rep(c("late", "early"), 20), c("late", "early"))
    grouped <- cape_plot_expression(x, c("x1", "x2"), chain, group = group, max.cells = 11L)
    expect_identical(levels(grouped$data$group), c("late", "early"))
    expect_identical(nrow(grouped$data), 22L)
    expect_identical(grouped$labels$x, "11 of 40 cells")
    # Cells without counts in the features shown are cells all the same.
    counts <- small_counts()
    counts[1:2, 1:5] <- 0L
    sce <- SingleCellExperiment(list(counts = counts))
    dag <- matrix(0, 8, 8, dimnames = rep(list(rownames(counts)), 2))
    tiles <- suppressMessages(cape_plot_expression(sce, c("g1", "g2"), dag, limit = 100))$data
    logs <- log1p(t(t(counts) / colSums(counts)) * 1e4)
    expect_equal(sort(tiles$value[tiles$feature == "g1"]), sort(as.vector(scale(logs["g1", ]))))
    counts[, 3] <- 0L # a cell without any has no value
    empty <- cape_plot_expression(SingleCellExperiment(list(counts = counts)), "g1", dag)$data
    expect_identical(sum(is.na(empty$value)), 1L)
    expect_error(cape_plot_expression(x, "x9", chain), "'features' has 'x9'", class = "capeError")
    expect_error(cape_plot_expression(x[1:2, ], "x3", chain), "'x' lacks 1 feature of 'features': 'x3'")
    expect_error(cape_plot_expression(x, "x1"), "must be a CapeFit or the result of cape_fit", class = "capeError")
})

test_that("an experiment with a result is drawn under its name, the same each time, and leaves random numbers alone", {
    truth <- cape_simulate_dag(8, edges.per.node = 1, seed = 1)
    x <- SingleCellExperiment(list(logcounts = cape_simulate_data(truth, 100, mechanism = "linear", seed = 2)))
    sce <- suppressWarnings(cape_fit(x, dag = quick_dag(), embed = quick_embed(), seed = 1, verbose = FALSE,
        name = "run"))
    feature <- cape_edges(sce, name = "run")$from[1]
    effect <- cape_edges(sce, name = "run")$to[1]
    pictures <- list(
        function(...) cape_plot_neighbourhood(sce, feature, ...),
        function(...) cape_plot_paths(sce, feature, effect, ...),
        function(...) cape_plot_modules(sce, ...), function(...) cape_plot_regulators(sce, ...),
        function(...) cape_plot_comparison(sce, truth, ...), function(...) cape_plot_expression(sce, feature, ...),
        function(...) cape_plot_poincare(sce, ...), function(...) cape_plot_dag(sce, ...))
    set.seed(1)
    before <- .Random.seed
    for (picture in pictures) {
        expect_error(picture(), "no result 'CAPE'; it has 'run'", class = "capeError")
        once <- ggplot2::ggplot_build(picture(name = "run"))$data
        expect_identical(ggplot2::ggplot_build(picture(name = "run"))$data, once)
    }
    expect_identical(.Random.seed, before)
    # Rows in another order are the same features.
    turned <- cape_plot_expression(sce[8:1, ], truth@order, name = "run")$data
    expect_identical(turned, cape_plot_expression(sce, truth@order, name = "run")$data)
})
