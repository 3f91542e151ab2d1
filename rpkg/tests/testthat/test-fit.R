test_that("A4: cause and effect keep their places from a 2 x 3 table to the printed edge", {
    # Features x cells in R is cells x features in the core, the same memory.
    x <- rbind(c(1, 2, 3, 4, 5, 6, 7, 8, 9, 12), c(20, 30, 40, 10, 10, 30, 30, 10, 10, 10))
    scaling <- capeOmics:::core_learn_dag(x, nothing_known(x), capeOmics:::settings(quick_dag()), NULL)
    expect_equal(scaling$center, c(5.7, 20))
    # A[1, 2] = 1 is gene1 -> gene2, everywhere.
    a <- matrix(c(0, 0, 1, 0), 2, 2, dimnames = rep(list(c("gene1", "gene2")), 2))
    dag <- as(a, "CapeDag")
    expect_identical(as.data.frame(cape_edges(dag)), data.frame(from = "gene1", to = "gene2", weight = 1, sign = 1))
    expect_identical(cape_weights(dag, sparse = FALSE), a)
    expect_match(capture.output(print(dag)), "gene1 -> gene2", all = FALSE)
    expect_identical(dag@order, c("gene1", "gene2"))
    expect_identical(igraph::as_edgelist(as(dag, "igraph")), matrix(c("gene1", "gene2"), 1))
})

test_that("A4: a nonlinear effect is not taken for its cause", {
    set.seed(3)
    cause <- rnorm(2000)
    x <- rbind(effect = cause^2 + 0.1 * rnorm(2000), cause = cause)
    edges <- as.data.frame(cape_edges(suppressWarnings(cape_learn_dag(x, seed = 1, verbose = FALSE))))
    expect_identical(edges[c("from", "to")], data.frame(from = "cause", to = "effect"))
})

test_that("A5: constant and collinear features stay, named in a warning, without any NaN", {
    set.seed(2)
    x <- matrix(rnorm(200), 5, 40, dimnames = list(paste0("gene", 1:5), NULL))
    x[3, ] <- 0
    x[5, ] <- 2 * x[4, ]
    warned <- capture_warnings(fit <- cape_calculate(x, dag = quick_dag(), embed = quick_embed(), seed = 1, verbose = FALSE))
    expect_match(warned, "without variance.*'gene3'", all = FALSE)
    expect_match(warned, "collinear.*'gene4' and 'gene5'", all = FALSE)
    expect_identical(dimnames(fit)[[1]], paste0("gene", 1:5))
    expect_false("gene3" %in% unlist(as.list(cape_edges(fit)[c("from", "to")])))
    expect_identical(fit@dag@constant, "gene3")
    numbers <- c(cape_weights(fit, FALSE, FALSE), cape_embedding(fit), cape_embedding(fit, "hyperboloid"),
        fit@angles, unlist(as.list(cape_history(fit))))
    expect_true(all(is.finite(numbers)))
})

test_that("A6: an empty graph is told with the knob to turn, and can be embedded", {
    set.seed(4)
    x <- matrix(rnorm(6 * 500), 6)
    warned <- capture_warnings(suppressMessages(fit <- cape_calculate(x, embed = quick_embed(), seed = 1, verbose = FALSE)))
    if (nrow(cape_edges(fit)) == 0) expect_match(warned, "no edges.*lambda", all = FALSE)
    expect_lte(nrow(cape_edges(fit)), 3)
    expect_true(all(is.finite(cape_embedding(fit))))
    shown <- capture.output(print(fit))
    for (what in c("edges: ", "density", "weights\\| before pruning", "lambda 0.02", "refined|pruned at")) {
        expect_match(shown, what, all = FALSE)
    }
})

test_that("A6, A1: another threshold needs no new fit and always gives a DAG", {
    a <- matrix(0, 3, 3, dimnames = rep(list(letters[1:3]), 2))
    a["a", "b"] <- 0.9
    a["b", "c"] <- 0.8
    a["c", "a"] <- 0.25
    cyclic <- as(a, "CapeDag")
    expect_false(cyclic@info$acyclic)
    pruned <- cape_prune(cyclic, 0.2)
    expect_identical(as.data.frame(cape_edges(pruned))[c("from", "to")], data.frame(from = c("a", "b"), to = c("b", "c")))
    expect_identical(pruned@info$n_removed_for_acyclicity, 1)
    expect_identical(pruned@info$effective_threshold, 0.8)
    expect_match(capture.output(print(pruned)), "to break cycles: 1", all = FALSE)

    fit <- quick_fit(chain_data())
    expect_identical(nrow(cape_edges(cape_prune(fit, 10))), 0L)
    expect_identical(cape_edges(cape_prune(fit, fit@dag@info$threshold)), cape_edges(fit))
    all <- cape_prune(fit, 0)
    expect_gte(nrow(cape_edges(all)), nrow(cape_edges(fit)))
    expect_true(igraph::is_dag(as(all, "igraph")))
    expect_error(cape_prune(fit, -1), "'tau' is -1")

    sparse <- suppressWarnings(cape_learn_dag(chain_data(), DagParam(sem = "linear", epochs = 5L, threshold = 10, refine = FALSE),
        seed = 1))
    expect_match(sparse@warnings, "no edges", all = FALSE)
    pruned <- cape_prune(sparse, 0.1)
    expect_gt(nrow(cape_edges(pruned)), 0L)
    expect_identical(pruned@warnings, character(0)) # of another graph
})

test_that("A7: a permutation of the features permutes the graph, and names change nothing", {
    x <- chain_data()
    fit <- quick_fit(x)
    shuffled <- quick_fit(x[c(3, 1, 2), ])
    order <- rownames(x)
    expect_identical(cape_weights(shuffled, FALSE, FALSE)[order, order], cape_weights(fit, FALSE, FALSE))
    expect_identical(cape_weights(shuffled, FALSE)[order, order], cape_weights(fit, FALSE))
    renamed <- quick_fit(structure(x, dimnames = list(c("z", "y", "x"), NULL)))
    expect_identical(unname(cape_weights(renamed, FALSE)), unname(cape_weights(fit, FALSE)))
    expect_identical(unname(cape_embedding(renamed)), unname(cape_embedding(fit)))
})

test_that("A2: units do not matter when features are standardised", {
    x <- chain_data()
    plain <- quick_fit(x, dag = quick_dag(standardize = TRUE))
    scaled <- quick_fit(x * c(100, 1, 0.01), dag = quick_dag(standardize = TRUE))
    expect_equal(cape_weights(scaled, FALSE), cape_weights(plain, FALSE), tolerance = 1e-6)
})

test_that("A8: a plain matrix is enough, in an empty read-only directory, and no file is written", {
    folder <- tempfile("readonly")
    dir.create(folder)
    Sys.chmod(folder, "0555")
    old <- setwd(folder)
    on.exit({
        setwd(old)
        Sys.chmod(folder, "0755")
    })
    set.seed(1)
    x <- matrix(rpois(600, 3), 20, 30)
    sce <- suppressWarnings(suppressMessages(cape_fit(x)))
    expect_s4_class(sce, "SingleCellExperiment")
    expect_identical(list.files(folder, all.files = TRUE, no.. = TRUE), character())
})

test_that("cape_fit() stores edges, positions and the run where they belong", {
    truth <- cape_simulate_dag(6, seed = 1)
    x <- cape_simulate_data(truth, 300, mechanism = "linear", seed = 2)
    x <- rbind(other = rnorm(300), x)
    sce <- SingleCellExperiment(list(logcounts = x), rowData = DataFrame(kept = 1:7))
    fitted <- suppressWarnings(cape_fit(sce, subset.row = 2:7, dag = quick_dag(epochs = 100L),
        embed = quick_embed(), seed = 1, name = "run", verbose = FALSE))
    fit <- cape_result(fitted, "run")
    pairs <- rowPair(fitted, "run")
    expect_identical(names(mcols(pairs)), c("weight", "sign"))
    edges <- cape_edges(fit)
    stored <- data.frame(from = rownames(sce)[S4Vectors::queryHits(pairs)],
        to = rownames(sce)[S4Vectors::subjectHits(pairs)], weight = mcols(pairs)$weight, sign = mcols(pairs)$sign)
    stored <- stored[order(-abs(stored$weight)), ]
    expect_equal(stored, as.data.frame(edges)[names(stored)], ignore_attr = "row.names")
    expect_gt(nrow(stored), 0)
    expect_equal(as.matrix(rowPair(fitted, "run", asSparse = TRUE))[2:7, 2:7], cape_weights(fit, sparse = FALSE),
        ignore_attr = TRUE)

    table <- rowData(fitted)$run
    expect_identical(names(table), c("selected", "feature", "generality", "radius", "pagerank", "poincare"))
    expect_identical(table$selected, c(FALSE, rep(TRUE, 6)))
    expect_true(all(is.na(unlist(as.list(table[1, c("generality", "radius", "pagerank")])))))
    expect_equal(table$poincare[2:7, ], cape_embedding(fit), ignore_attr = TRUE)
    linked <- rowSums(cape_embedding(fit)^2) > 0
    expect_equal(table$generality[-1], ifelse(linked, 1 - sqrt(rowSums(cape_embedding(fit)^2)), NA),
        ignore_attr = TRUE)
    expect_identical(rowData(fitted)$kept, 1:7)

    part <- fitted[c(3, 2, 5), 1:10]
    expect_equal(rowData(part)$run$radius, rowData(fitted)$run$radius[c(3, 2, 5)])
    expect_s4_class(cape_result(part, "run"), "CapeFit")
    expect_error(cape_result(fitted), "no result 'CAPE'; it has 'run'")
    expect_error(cape_result(sce), "run cape_fit\\(\\) first")
    expect_error(cape_result(1), "must be a CapeFit")
})

test_that("every form of input is wrapped, and a SummarizedExperiment becomes a SingleCellExperiment", {
    x <- chain_data(100)
    fit <- function(x, ...) {
        suppressWarnings(cape_fit(x, dag = quick_dag(), embed = quick_embed(), seed = 1, verbose = FALSE, ...))
    }
    from_matrix <- fit(x)
    expect_identical(assayNames(from_matrix), "values")
    expect_identical(assay(from_matrix), x)
    from_frame <- fit(as.data.frame(t(x)[1:50, ]) |> t() |> as.data.frame())
    expect_s4_class(from_frame, "SingleCellExperiment")
    from_se <- fit(SummarizedExperiment(list(logcounts = x)))
    expect_s4_class(from_se, "SingleCellExperiment")
    expect_identical(cape_edges(from_se), cape_edges(from_matrix))
    from_sparse <- fit(as(x, "CsparseMatrix"))
    expect_s4_class(assay(from_sparse), "dgCMatrix")
    expect_identical(cape_weights(from_sparse), cape_weights(from_matrix))
})

test_that("the steps by themselves give what the whole gives", {
    x <- chain_data(500)
    fit <- quick_fit(x, seed = 5)
    dag <- suppressWarnings(cape_learn_dag(x, quick_dag(), seed = 5, verbose = FALSE))
    expect_identical(dag, fit@dag)
    embedding <- cape_embed_dag(dag, quick_embed(), seed = 5, verbose = FALSE)
    expect_identical(embedding, fit@embedding)
    expect_identical(cape_angles(embedding), fit@angles)
    expect_identical(cape_angles(fit, scale = 1), structure(cape_embedding(fit), dimnames = dimnames(fit@angles)))
    expect_identical(cape_params(fit), list(dag = quick_dag(), embed = quick_embed(), rotary = RotaryParam()))
    expect_error(cape_learn_dag(x, nonsense = 1), "unused argument")
    expect_error(cape_learn_dag(x, list()), "'param'.*DagParam\\(\\)")
    expect_error(cape_calculate(x, dag = HyperbolicParam()), "'dag'.*DagParam\\(\\)")
    for (fit in list(cape_fit, cape_calculate)) {
        expect_error(fit(list(counts = x)), "'x' is .*list.*; it must be a matrix \\(features x cells\\)")
    }
    expect_error(cape_calculate(x, num.threads = 0), "'num.threads' is 0")
    expect_error(cape_calculate(x, verbose = NA), "'verbose' is NA")
})

test_that("E5: nothing is printed when not verbose, and suppressMessages() silences the rest", {
    x <- chain_data(100)
    expect_identical(capture.output(invisible(quick_fit(x))), character())
    expect_identical(capture.output(invisible(quick_fit(x)), type = "message"), character())
    expect_message(quick_fit(x, verbose = TRUE), "3 features x 100 cells, seed 1")
    expect_identical(capture.output(suppressMessages(quick_fit(x, verbose = TRUE)), type = "message"), character())
})

test_that("an analyst can read what is printed", {
    fit <- quick_fit(chain_data())
    shown <- capture.output(print(fit))
    for (what in c("m -> n", "input: 3 of 3 features x 2000 cells", "strongest edges", "x1 -> x2",
        "acyclicity h", "most general", "seed 1")) {
        expect_match(shown, what, all = FALSE)
    }
    capture.output(table <- summary(fit))
    expect_identical(rownames(table), c("x1", "x2", "x3"))
    expect_equal(sum(table$causes), nrow(cape_edges(fit)))
    expect_match(capture.output(print(fit@embedding)), "3 features in 4 dimensions", all = FALSE)
    expect_match(capture.output(print(cape_config())), "BLAS kernel", all = FALSE)
})

test_that("saveRDS() in one process and readRDS() in another gives the same results", {
    sce <- suppressWarnings(cape_fit(chain_data(100), dag = quick_dag(), embed = quick_embed(), seed = 1, verbose = FALSE))
    file <- tempfile(fileext = ".rds")
    saveRDS(sce, file)
    out <- run_child(c(sprintf("sce <- readRDS(%s)", deparse(file)),
        "pruned <- cape_prune(sce, 0.1)",
        "again <- cape_embed_dag(sce, cape_params(sce)$embed, seed = cape_result(sce)@seed, verbose = FALSE)",
        "stopifnot(identical(again, cape_result(sce)@embedding))",
        # A seed is given everywhere, so no random state has been made.
        "stopifnot(!exists('.Random.seed', globalenv()))",
        "cat(format(cape_embedding(sce), digits = 17), sep = '\\n')"))
    expect_identical(out, as.vector(format(cape_embedding(sce), digits = 17)))
})

test_that("pbmc_small runs from counts to finite positions", {
    skip_if_not_installed("SeuratObject")
    env <- new.env()
    utils::data("pbmc_small", package = "SeuratObject", envir = env)
    counts <- SeuratObject::GetAssayData(env$pbmc_small[["RNA"]], "counts")
    sce <- SingleCellExperiment(list(counts = counts))
    sce <- suppressWarnings(suppressMessages(cape_fit(sce, subset.row = 1:40, dag = quick_dag(),
        embed = quick_embed(), seed = 1)))
    expect_true(all(is.finite(cape_embedding(sce))))
    # By an edge, or as a partner or beside one.
    placed <- unique(unlist(capeOmics:::covered_edges(cape_dag(sce))[c("from", "to")]))
    expect_identical(which(unname(is.finite(cape_generality(sce)))), sort(placed))
    expect_true(all(match(unlist(cape_edges(sce)[c("from", "to")]), rownames(counts)[1:40]) %in% placed))
    expect_identical(names(cape_generality(sce)), rownames(counts)[1:40])
})

test_that("an alternative experiment is fitted in its place, with what is known of its cells", {
    proteins <- chain_data(100L)
    genes <- matrix(seq_len(500), 5L, 100L, dimnames = list(paste0("g", 1:5), paste0("cell", 1:100)))
    colnames(proteins) <- colnames(genes)
    donor <- rep(c("a", "b"), 50L)
    x <- SingleCellExperiment::SingleCellExperiment(list(logcounts = genes),
        colData = S4Vectors::DataFrame(donor = donor, sizeFactor = 0),
        altExps = list(ADT = SummarizedExperiment::SummarizedExperiment(list(logcounts = proteins))))
    fit <- function(x, ...) suppressWarnings(cape_calculate(x, dag = DagParam(sem = "linear", epochs = 10L),
        embed = HyperbolicParam(dims = 4L, epochs = 10L), seed = 1, ...))
    expected <- fit(proteins, assay.type = "logcounts", batch = donor)
    found <- fit(x, altexp = "ADT", batch = "donor")
    expect_identical(found@dag@weights, expected@dag@weights)
    expect_identical(cape_edges(fit(x, altexp = 1L, batch = "donor")), cape_edges(expected))
    expect_identical(suppressWarnings(cape_learn_dag(x, DagParam(sem = "linear", epochs = 10L), 1, altexp = "ADT",
        batch = "donor"))@weights, expected@dag@weights)
    sce <- suppressWarnings(cape_fit(x, dag = DagParam(sem = "linear", epochs = 10L), altexp = "ADT",
        embed = HyperbolicParam(dims = 4L, epochs = 10L), seed = 1, batch = "donor"))
    expect_s4_class(sce, "SingleCellExperiment")
    expect_identical(rownames(sce), rownames(x))
    inner <- SingleCellExperiment::altExp(sce, "ADT")
    expect_identical(cape_edges(inner), cape_edges(expected))
    expect_identical(names(SummarizedExperiment::colData(inner)), character())
    expect_identical(cape_embed_dag(sce, HyperbolicParam(dims = 4L, epochs = 10L), seed = 2, altexp = "ADT"),
        cape_embed_dag(inner, HyperbolicParam(dims = 4L, epochs = 10L), seed = 2))
    expect_error(cape_fit(x, altexp = "RNA"), "'altexp'.*altExpNames\\(x\\) \\('ADT'\\)", class = "capeError")
    expect_error(cape_calculate(inner, altexp = 1L), "which are none", class = "capeError")
    expect_error(cape_calculate(proteins, altexp = 1L), "unused argument")
})

test_that("the steps are generics, and objects of any kind have a method", {
    for (name in c("cape_fit", "cape_calculate", "cape_learn_dag", "cape_embed_dag")) {
        expect_true(isGeneric(name))
        for (class in c("ANY", "SummarizedExperiment", "SingleCellExperiment")) {
            expect_true(hasMethod(name, class))
        }
    }
})
