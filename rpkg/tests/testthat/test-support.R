# The ranking of all ordered pairs beside the graph, and what a fit knows of its own errors.

# More features than half the cells, so that fits to parts of them are made by themselves.
few_cells <- function(cells = 24L) {
    cape_simulate_data(cape_simulate_dag(14, edges.per.node = 1, seed = 1), cells, mechanism = "linear", seed = 2)
}
learn_few <- function(..., x = few_cells(), param = DagParam(sem = "linear", epochs = 40L), seed = 3) {
    suppressWarnings(cape_learn_dag(x, param, seed = seed, verbose = FALSE, ...))
}

test_that("support ranks all ordered pairs, and its entries are those of the edges", {
    x <- few_cells()
    dag <- learn_few(x = x)
    support <- cape_support(dag)
    expect_s4_class(support, "dgCMatrix")
    expect_identical(dimnames(support), list(rownames(x), rownames(x)))
    expect_true(all(is.finite(support@x) & support@x > 0)) # what is 0 is not stored
    s <- cape_support(dag, sparse = FALSE)
    expect_identical(s, as.matrix(support))
    expect_true(is.matrix(s))
    expect_true(all(diag(s) == 0))
    edges <- cape_edges(dag)
    expect_gt(nrow(edges), 0L)
    expect_identical(edges$support, s[cbind(edges$from, edges$to)])
    expect_identical(edges$share, cape_support(dag, FALSE, "share")[cbind(edges$from, edges$to)])
    expect_true(any(s > 0 & t(s) > 0)) # no graph: both ways
    expect_gt(sum(s > 0), nrow(edges))
    # The largest weights and the largest support speak for the same pairs.
    w <- abs(cape_weights(dag, FALSE, pruned = FALSE))
    expect_true(all(s[w > 0] > 0))
})

test_that("support is weights and a stability selection, each over its root mean square", {
    dag <- learn_few(x = few_cells(60L), param = DagParam(sem = "linear", epochs = 40L, bags = 0L))
    pairs <- length(dag) * (length(dag) - 1)
    weights <- abs(cape_weights(dag, FALSE, pruned = FALSE))
    rest <- cape_support(dag, FALSE) - weights / sqrt(sum(weights^2) / pairs)
    expect_true(all(rest > -1e-8))
    # 14 features and 60 cells: the selection counts in full.
    expect_equal(sqrt(sum(rest^2) / pairs), 1)
    # With 600 cells its part is 5 * 14 / 600.
    many <- learn_few(x = few_cells(600L))
    weights <- abs(cape_weights(many, FALSE, pruned = FALSE))
    rest <- cape_support(many, FALSE) - weights / sqrt(sum(weights^2) / pairs)
    expect_equal(sqrt(sum(rest^2) / pairs), 5 * 14 / 600)
})

test_that("shares are multiples of one over the number of bags, which is chosen by the shape or told", {
    dag <- learn_few()
    expect_identical(dag@info$n_bags, 10L)
    for (bags in c(1L, 3L)) {
        told <- learn_few(param = DagParam(sem = "linear", epochs = 40L, bags = bags))
        expect_identical(told@info$n_bags, bags)
        share <- cape_support(told, type = "share")
        expect_identical(dimnames(share), dimnames(cape_support(told)))
        counts <- as.matrix(share) * bags
        expect_equal(counts, round(counts))
        expect_true(all(share@x > 0 & share@x < 1 + 1e-12))
        expect_true(all(diag(counts) == 0))
        # What no fit finds has a mean of at most the threshold; what all find, one above it.
        weights <- abs(cape_weights(told, FALSE, pruned = FALSE))
        expect_true(all(weights[counts == 0] <= 0.2 + 1e-12))
        expect_true(all(weights[counts > bags - 0.5] > 0.2 - 1e-12))
    }
    none <- learn_few(param = DagParam(sem = "linear", epochs = 40L, bags = 0L))
    expect_identical(none@info$n_bags, 0L)
    expect_identical(dim(none@bag.share), c(0L, 0L))
    expect_null(cape_edges(none)$share)
    expect_false(is.null(cape_edges(none)$support))
    expect_identical(learn_few(x = few_cells(60L))@info$n_bags, 0L)
})

test_that("a graph of raw units says how far it follows the variances, and warns where it is all", {
    set.seed(5)
    causes <- matrix(rnorm(8 * 400), 8)
    x <- rbind(causes, causes + rnorm(8 * 400))
    rownames(x) <- c(paste0("a", 1:8), paste0("b", 1:8))
    expect_warning(raw <- cape_learn_dag(x, DagParam(sem = "linear"), seed = 1, verbose = FALSE),
        "100 % of the edges run from the feature of less variance to that of more")
    expect_identical(raw@info$rising_variance, 1)
    expect_output(show(raw), "not standardized: 100 % of the edges run from less to more variance (random orders: 50, sd ",
        fixed = TRUE)
    scaled <- suppressWarnings(cape_learn_dag(x, DagParam(sem = "linear", standardize = TRUE), seed = 1, verbose = FALSE))
    expect_false(any(grepl("variance to that of", scaled@warnings)))
    expect_no_match(capture.output(show(scaled)), "variance")
    expect_identical(suppressMessages(cape_prune(raw, 0.5))@info$rising_variance, NA_real_)
})

test_that("the same seed gives the same support for any number of threads, and another seed another", {
    dag <- learn_few()
    expect_identical(learn_few(num.threads = 2L), dag)
    other <- learn_few(seed = 4)
    expect_false(identical(other@support, dag@support))
    expect_false(identical(other@bag.share, dag@bag.share))
})

test_that("what is forbidden has no support, and a feature without variance none", {
    x <- few_cells()
    x["gene5", ] <- 1
    dag <- learn_few(x = x, knowledge = cape_knowledge(
        forbidden = data.frame(from = "gene2", to = c("gene1", "gene9")), roots = "gene3"))
    for (type in c("support", "share")) {
        s <- cape_support(dag, FALSE, type)
        expect_true(all(s["gene2", c("gene1", "gene9")] == 0), info = type)
        expect_true(all(s[, "gene3"] == 0), info = type)
        expect_true(all(s["gene5", ] == 0 & s[, "gene5"] == 0), info = type)
    }
    expect_gt(cape_support(dag)["gene1", "gene2"], 0)
    expect_identical(dag@info$n_tested_pairs, choose(13, 2))
})

test_that("support follows the features that an experiment has, and saveRDS()", {
    x <- few_cells()
    sce <- suppressWarnings(cape_fit(SingleCellExperiment(list(logcounts = x)),
        dag = DagParam(sem = "linear", epochs = 40L), embed = quick_embed(), seed = 1, verbose = FALSE, name = "few"))
    whole <- cape_result(sce, "few")
    expect_identical(whole@dag@support, learn_few(seed = 1)@support)
    expect_error(cape_support(sce), "no result 'CAPE'; it has 'few'")
    all_edges <- as.data.frame(cape_edges(whole))
    for (rows in list(14:1, c(5, 2, 9, 1, 10), 4, integer())) {
        part <- sce[rows, ]
        features <- rownames(x)[rows]
        for (type in c("support", "share")) {
            expect_identical(cape_support(part, type = type, name = "few"),
                cape_support(whole, type = type)[features, features, drop = FALSE])
        }
        kept <- all_edges[all_edges$from %in% features & all_edges$to %in% features, ]
        edges <- as.data.frame(cape_edges(part, "few"))
        key <- function(edges) sort(paste(edges$from, edges$to, edges$support, edges$share))
        expect_identical(key(edges), key(kept))
        expect_true(validObject(cape_dag(part, "few")))
        # A rate of the whole graph is none of a part of its edges.
        rate <- cape_dag(part, "few")@info$false_discovery_rate
        expect_identical(rate, if (length(rows) == 14L) whole@dag@info$false_discovery_rate else NA_real_)
        expect_output(show(cape_dag(part, "few")), "CapeDag")
    }
    saveRDS(sce, path <- tempfile())
    expect_identical(cape_support(readRDS(path), name = "few"), cape_support(whole))
})

test_that("pruning keeps support and shares, and drops the rate of the tested graph", {
    dag <- learn_few(x = few_cells(40L), param = DagParam(sem = "linear", epochs = 40L, bags = 2L))
    cut <- suppressMessages(cape_prune(dag, 0.1))
    expect_identical(cape_support(cut), cape_support(dag))
    expect_identical(cape_support(cut, type = "share"), cape_support(dag, type = "share"))
    expect_identical(cut@info$n_bags, 2L)
    expect_identical(cut@info$false_discovery_rate, NA_real_)
    expect_identical(cut@info$n_tested_pairs, NA_real_)
    edges <- cape_edges(cut)
    expect_identical(edges$support, cape_support(dag, FALSE)[cbind(edges$from, edges$to)])
    expect_false(any(grepl("pairs tested", capture.output(print(cut)))))
    expect_output(print(cut), "mean of 2 fits to parts of the cells")
})

test_that("graphs that were not learned have no support, and say so", {
    truth <- cape_simulate_dag(5, seed = 1)
    for (dag in list(truth, as(matrix(0, 2, 2), "CapeDag"), as(as(truth, "igraph"), "CapeDag"))) {
        expect_identical(dim(dag@support), c(0L, 0L))
        expect_error(cape_support(dag), "'x' was not learned.*no support", class = "capeError")
        expect_error(cape_support(dag, type = "share"), "'x' was not learned", class = "capeError")
        expect_error(cape_plot_dag(dag, edge.by = "support"), "'x' was not learned", class = "capeError")
        expect_false(any(c("support", "share") %in% names(cape_edges(dag))))
        expect_identical(dag@info$false_discovery_rate, NA_real_)
    }
    one <- learn_few(param = quick_dag(bags = 0L))
    expect_error(cape_support(one, type = "share"), "'x' is one fit to all cells.*DagParam\\(bags = 10L\\)",
        class = "capeError")
    expect_error(cape_support(one, type = "edges"), "'type' is \"edges\"; it must be one of \"support\", \"share\"")
    expect_error(cape_support(one, sparse = NA), "'sparse' is NA")
    expect_error(cape_support(1), "'x' is 1; it must be a CapeFit")
    expect_error(cape_compare(truth, truth, rank.by = "support"), "'estimated' was not learned", class = "capeError")
    expect_error(cape_compare(truth, truth, rank.by = "t"), "'rank.by' is \"t\"; it must be one of")
    one@support <- one@support[1:2, 1:2]
    expect_error(validObject(one), "'support' is neither empty nor features x features")
})

test_that("bags and the rate are settings with ranges", {
    expect_identical(as.list(DagParam())[c("bags", "refine.fdr")], list(bags = NA_integer_, refine.fdr = 0.1))
    expect_identical(DagParam(bags = NA), DagParam())
    expect_identical(capeOmics:::settings(DagParam(bags = NA))[["dag.bags"]], "-1")
    expect_error(DagParam(bags = 2.5), "bags.*2.5.*integer", class = "capeError")
    expect_error(DagParam(bags = -2L), "bags is -2", class = "capeError")
    expect_error(DagParam(bags = TRUE), "'bags' is TRUE; it must be a number", class = "capeError")
    expect_error(DagParam(refine.fdr = 1.5), "refine.fdr is 1.5.*\\[0, 1\\]", class = "capeError")
    expect_error(DagParam(refine.fdr = NA), "'refine.fdr' is NA", class = "capeError")
    shown <- capture.output(print(DagParam(bags = 3L, refine.fdr = 0.2)))
    expect_match(shown, "^ \\* bags +3$", all = FALSE)
    expect_match(shown, "^ \\* refine.fdr +0.2$", all = FALSE)
})

test_that("a refined graph tells the rate of its false edges, where it was limited", {
    x <- chain_data(500L)
    dag <- learn_few(x = x)
    expect_true(dag@info$refined)
    expect_gte(dag@info$false_discovery_rate, 0)
    expect_lte(dag@info$false_discovery_rate, 0.1)
    expect_identical(dag@info$n_tested_pairs, 3)
    expect_output(print(dag), "0.1 % of the edges are expected to join what is not joined \\(3 pairs tested\\)")
    strict <- learn_few(x = few_cells(40L), param = DagParam(sem = "linear", epochs = 40L, refine.fdr = 0.001))
    loose <- learn_few(x = few_cells(40L), param = DagParam(sem = "linear", epochs = 40L, refine.fdr = 1))
    expect_lte(strict@info$false_discovery_rate, 0.001)
    expect_lte(nrow(cape_edges(strict)), nrow(cape_edges(loose)))
    expect_identical(loose@info$false_discovery_rate, NA_real_) # it was not limited
    expect_false(any(grepl("pairs tested", capture.output(print(loose)))))
    lines <- function(rate, edges = 3L) {
        capeOmics:::rate_line(list(false_discovery_rate = rate, n_tested_pairs = 1e5), edges)
    }
    expect_identical(lines(0.0734),
        "at most 7.34 % of the edges are expected to join what is not joined (100000 pairs tested)")
    expect_match(lines(1e-17), "^less than 0.1 % of the edges")
    expect_null(lines(NA_real_))
    expect_null(lines(0, 0L))
})

test_that("comparison ranks by support where asked, and the picture shows it", {
    truth <- cape_simulate_dag(14, edges.per.node = 1, seed = 1)
    dag <- learn_few(x = few_cells(60L))
    by_support <- cape_compare(dag, truth, rank.by = "support")
    by_edges <- cape_compare(dag, truth)
    areas <- c("auprc", "auroc")
    expect_identical(by_support[setdiff(names(by_support), areas)], by_edges[setdiff(names(by_edges), areas)])
    # The area under the ROC curve by ranks, which is Wilcoxon's.
    s <- cape_support(dag, FALSE)
    off <- row(s) != col(s)
    is_edge <- (cape_weights(truth, FALSE) != 0)[off]
    ranks <- rank(s[off])
    expect_equal(by_support$auroc,
        (sum(ranks[is_edge]) - sum(is_edge) * (sum(is_edge) + 1) / 2) / (sum(is_edge) * sum(!is_edge)))

    plot <- cape_plot_dag(dag, edge.by = "support", max.edges = 5L)
    file <- tempfile(fileext = ".png")
    expect_silent(ggplot2::ggsave(file, plot, width = 6, height = 5, dpi = 50))
    expect_match(plot$labels$caption, "the 5 strongest of [0-9]+ edges, by support")
    edges <- cape_edges(dag)
    drawn <- unique(plot$layers[[1]]$data[c("from", "to", "size")])
    expect_identical(nrow(drawn), 5L)
    expect_equal(drawn$size, edges$support[match(paste(drawn$from, drawn$to), paste(edges$from, edges$to))])
    by_weight <- cape_plot_dag(dag, max.edges = 100L)$layers[[1]]$data
    expect_identical(by_weight$size, abs(by_weight$weight))
    expect_error(cape_plot_dag(dag, edge.by = "t"), "'edge.by' is \"t\"; it must be one of")
})

# One factor, of which the first features have part, and noise; cut so high that no edge is left.
loose_fit <- function(...) {
    set.seed(4)
    factor <- rnorm(120)
    x <- t(cbind(sapply(1:6, function(j) factor + rnorm(120)), sapply(1:2, function(j) rnorm(120))))
    rownames(x) <- paste0("g", 1:8)
    quick_fit(x, dag = quick_dag(threshold = 1e6), embed = quick_embed(...))
}

test_that("features without edges are put beside their partners, or at the origin if that is asked for", {
    wide <- loose_fit()
    narrow <- loose_fit(coverage = "edges")
    expect_identical(nrow(cape_edges(wide)), 0L)
    expect_identical(names(which(is.na(cape_generality(wide)))), c("g7", "g8"))
    expect_true(all(is.na(cape_generality(narrow))))
    expect_match(paste(capture.output(wide), collapse = "\n"), "positions: 0 features by their edges, 6 beside")
    expect_match(paste(capture.output(wide), collapse = "\n"), "2 features without a position")
    # Step II by itself puts them there too, and the order of the graph is kept where there is one.
    for (fit in list(wide, narrow)) {
        alone <- cape_embed_dag(cape_dag(fit), fit@embedding@param, seed = 1)
        expect_identical(cape_embedding(alone), cape_embedding(fit))
    }
    cut <- cape_prune(cape_dag(wide), 0.1)
    edges <- cape_edges(cut)
    expect_gt(nrow(edges), 0L)
    radius <- cape_embed_dag(cut, quick_embed(), seed = 1)@radius
    expect_true(all(radius[edges$from] < radius[edges$to]))
    # A partner is one other feature at most, by the share that it explains.
    partners <- as.matrix(cape_dag(wide)@partners)
    expect_identical(unname(colSums(partners != 0)), c(rep(1, 6), 0, 0))
    expect_true(all(partners >= 0 & partners <= 1) && all(diag(partners) == 0))
    # Of some of the features: those whose partner is gone have none.
    some <- capeOmics:::dag_at(cape_dag(wide), 1:3)
    expect_identical(as.matrix(some@partners), partners[1:3, 1:3])
    expect_error(HyperbolicParam(coverage = "all"), "'coverage' is .*all.*; it must be one of")
})
