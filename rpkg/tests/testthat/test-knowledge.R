chain <- function(n = 200, features = paste0("gene", 1:4), seed = 1) {
    set.seed(seed)
    x <- matrix(0, length(features), n, dimnames = list(features, paste0("cell", seq_len(n))))
    x[1, ] <- rnorm(n)
    for (j in seq_along(features)[-1]) x[j, ] <- x[j - 1, ] + rnorm(n)
    x
}
linear <- function(...) DagParam(sem = "linear", epochs = 30L, ...)
learn <- function(x, ...) suppressWarnings(cape_learn_dag(x, linear(), seed = 1, verbose = FALSE, ...))

test_that("knowledge by name holds in the graph, and pruning keeps what is required", {
    known <- cape_knowledge(required = data.frame(from = "gene4", to = "gene1"),
        forbidden = cbind("gene1", "gene2"), leaves = "gene3")
    dag <- learn(chain(), knowledge = known)
    w <- cape_weights(dag, sparse = FALSE)
    expect_true(w["gene4", "gene1"] != 0)
    expect_identical(cape_weights(dag, pruned = FALSE)["gene1", "gene2"], 0)
    expect_true(all(w["gene3", ] == 0))
    cut <- cape_prune(dag, 50)
    expect_identical(as.data.frame(cape_edges(cut))[1:2], data.frame(from = "gene4", to = "gene1"))
    expect_identical(abs(cape_edges(cut)$weight), 50)
    fit <- suppressWarnings(cape_calculate(chain(), dag = linear(), seed = 1, knowledge = known))
    expect_identical(cape_weights(fit), cape_weights(dag))
})

test_that("tiers, roots and regulators exclude what they say", {
    w <- function(...) {
        cape_weights(suppressWarnings(cape_learn_dag(chain(), linear(lambda = 0), seed = 1,
            knowledge = cape_knowledge(...))), sparse = FALSE, pruned = FALSE) != 0
    }
    all <- !diag(4)
    by_list <- w(tiers = list(c("gene2", "gene4"), "gene1"))
    expected <- all
    expected[1, c(2, 4)] <- FALSE # gene3 has no tier
    expect_identical(unname(by_list), expected)
    expect_identical(w(tiers = c(gene2 = 10, gene4 = 10, gene1 = 20)), by_list)
    expect_identical(w(tiers = ordered(c(gene2 = "early", gene4 = "early", gene1 = "late"))), by_list)
    expect_identical(unname(w(roots = "gene2")), all & col(all) != 2)
    expect_identical(unname(w(regulators = c("gene2", "gene3"))), all & row(all) %in% 2:3)
    expect_identical(unname(w(penalty = matrix(1e6, 1, 1, dimnames = list("gene1", "gene2")))),
        unname(w()))  # lambda is 0
})

test_that("a matrix of low rank takes no knowledge and no more columns than features", {
    low_rank <- function(rank, ...) suppressWarnings(cape_learn_dag(chain(), linear(rank = rank), seed = 1, ...))
    expect_identical(dim(cape_weights(low_rank(2L))), c(4L, 4L))
    expect_error(low_rank(5L), "rank is 5; it must be at most .* 4", class = "capeError")
    expect_error(low_rank(2L, knowledge = cape_knowledge(roots = "gene2")), "rank is 2; with knowledge",
        class = "capeError")
    expect_error(cape_learn_dag(chain(), DagParam(rank = 2L), seed = 1), "rank is 2; .* needs sem linear",
        class = "capeError")
})

test_that("batches of another level change nothing, as a vector or as colData", {
    x <- chain()
    batch <- rep(c("a", "b", "b", "c"), 50)
    shifted <- x
    shifted[, batch == "b"] <- shifted[, batch == "b"] + 20
    told <- learn(shifted, batch = batch)
    expect_equal(cape_weights(told), cape_weights(learn(x, batch = batch)), tolerance = 1e-6)
    expect_false(isTRUE(all.equal(cape_weights(told, pruned = FALSE), cape_weights(learn(shifted), pruned = FALSE), tolerance = 0.05)))
    sce <- SingleCellExperiment::SingleCellExperiment(list(logcounts = shifted))
    sce$donor <- batch
    expect_identical(cape_weights(learn(sce, batch = "donor")), cape_weights(told))
    expect_error(learn(sce, batch = "plate"), "'batch' is \"plate\"; it must be a column of colData\\(x\\) \\(donor\\)")
    expect_error(learn(x, batch = c("a", "b")), "'batch' has 2 values; it must have one for each of 200 cells")
    expect_error(learn(x, batch = c("z", batch[-1])), "'batch' 'z' has one cell only")
    expect_error(learn(x, batch = c(NA, batch[-1])), "'batch' is missing for 1 cell")
})

test_that("a confounder that is given as a covariate makes no edges", {
    # The phase of the cell cycle drives four genes, of which a -> b alone is an effect; e stands apart.
    set.seed(7)
    n <- 400
    phase <- runif(n)
    x <- rbind(a = rnorm(n), b = 0, c = rnorm(n), d = rnorm(n), e = rnorm(n))
    x["b", ] <- x["a", ] + rnorm(n)
    free <- x
    x[1:4, ] <- x[1:4, ] + outer(c(6, -6, 7, -5), phase)
    colnames(x) <- colnames(free) <- paste0("cell", 1:n)
    pairs <- function(dag) {
        edges <- cape_edges(dag)
        sort(paste0(pmin(edges$from, edges$to), pmax(edges$from, edges$to)))
    }
    refined <- function(...) suppressWarnings(cape_learn_dag(..., param = DagParam(sem = "linear"), seed = 1))
    expect_gt(length(pairs(refined(x))), 4)
    told <- refined(x, covariates = phase)
    expect_identical(pairs(told), "ab")
    # What a linear regression leaves of the genes is left, whatever was added to them.
    residuals <- t(apply(free, 1, function(y) lm.fit(cbind(1, phase), y)$residuals))
    expect_equal(cape_weights(told), cape_weights(refined(residuals)), tolerance = 1e-6)
    fit <- suppressWarnings(cape_calculate(x, dag = DagParam(sem = "linear"), seed = 1, covariates = phase))
    expect_identical(cape_weights(fit), cape_weights(told))
})

test_that("covariates are columns of colData, tables and vectors, matched by name", {
    x <- chain(100)
    values <- function(covariates, x. = x, cells = 1:100) capeOmics:::covariate_values(x., covariates, cells)
    age <- seq(20, 60, length.out = 100)
    sex <- rep(c("f", "m", "f", "f"), 25)
    right <- cbind(age, sex == "m", deparse.level = 0)
    table <- data.frame(age = age, sex = sex)
    sce <- SingleCellExperiment::SingleCellExperiment(list(logcounts = x), colData = S4Vectors::DataFrame(table))
    expect_identical(values(table), right)
    expect_identical(values(c("age", "sex"), sce), right)
    expect_identical(values("age", sce), cbind(age, deparse.level = 0))
    expect_identical(values(cbind(age = age, male = sex == "m")), right)
    expect_identical(values(S4Vectors::DataFrame(age = S4Vectors::Rle(age), sex = factor(sex, c("f", "x", "m")))), right)
    expect_identical(values(list(age)[[1]]), cbind(age, deparse.level = 0))
    expect_identical(values(sex), cbind(as.numeric(sex == "m")))
    p <- c(3:100, 2, 1)
    rownames(table) <- colnames(x)
    expect_identical(values(table[p, ]), right)
    expect_identical(values(stats::setNames(age, colnames(x))[p]), cbind(age, deparse.level = 0))
    expect_identical(values(table, cells = c(9, 2, 4)), cbind(age[c(9, 2, 4)], c(0, 1, 0)))
    phase <- values(rep(c("G1", "S", "G2M", "S"), 25)) # three labels
    expect_identical(phase, cbind(rep(c(0, 1, 0, 1), 25), rep(c(0, 0, 1, 0), 25)))
    expect_message(expect_identical(dim(values(data.frame(age = age, batch = "one"))), c(100L, 1L)),
        "'covariates\\$batch' is the same for all cells and explains nothing")
})

test_that("bad covariates have their error before the fit", {
    x <- chain(100)
    age <- as.numeric(1:100)
    expect_error(learn(x, covariates = age[-1]), "'covariates' has 99 values; it must have one for each of 100 cells")
    expect_error(learn(x, covariates = "age"), "'covariates' names 'age'; it must name columns of colData\\(x\\), or be")
    expect_error(learn(x, covariates = data.frame(age = age[-1])), "'covariates' has 99 rows")
    expect_error(learn(x, covariates = replace(age, 7, NA)), "'covariates\\$values' is missing for 1 cell")
    expect_error(learn(x, covariates = replace(age, 7, Inf)), "is Inf for cell 7; it must be finite")
    expect_error(learn(x, covariates = data.frame(day = as.Date("2020-01-01") + 1:100)),
        "'covariates\\$day' is .*; it must hold numbers, flags or labels")
    expect_error(learn(x, covariates = stats::setNames(age, paste0("cell", 2:101))),
        "'covariates' has names that the cells of 'x' do not have: 'cell101'")
    expect_error(learn(x, covariates = cbind(a = age, a = age)), "'covariates' has the column 'a' more than once")
    expect_error(learn(x, covariates = paste0("donor", 1:100)), "there are 99 covariates, which leave fewer than 10")
})

test_that("cells that were perturbed do not teach a feature its causes", {
    set.seed(3)
    n <- 2000
    set <- rep(c(TRUE, FALSE), n / 2)
    a <- rnorm(n)
    b <- ifelse(set, 2 + rnorm(n), a + 0.5 * rnorm(n))
    x <- rbind(a = a, b = b, c = b + 0.5 * rnorm(n))
    order <- cape_knowledge(tiers = list("a", "b", "c"))
    fit <- function(...) {
        cape_weights(suppressWarnings(cape_learn_dag(x, DagParam(sem = "linear", lambda = 0.001), seed = 1,
            knowledge = order, ...)), pruned = FALSE)
    }
    target <- ifelse(set, "b", NA)
    told <- fit(perturbation = target)
    expect_equal(told["a", "b"], 1, tolerance = 0.06)
    expect_equal(told["b", "c"], 1, tolerance = 0.06)
    expect_equal(fit()["a", "b"], 0.5, tolerance = 0.15) # least squares over all cells
    flags <- matrix(as.numeric(set), 1, dimnames = list("b", NULL))
    expect_identical(fit(perturbation = flags), told)
    expect_error(fit(perturbation = rep("NT", n)), "'NT'; NA marks cells that are not perturbed")
})

test_that("an intervention of unknown effect is found by what it does, also where the feature keeps its values", {
    set.seed(4)
    n <- 300
    aimed <- rep(c(TRUE, FALSE, FALSE), n / 3)
    a <- rnorm(n)
    b <- rnorm(n) - 1.5 * aimed
    x <- rbind(a = a, b = b, c = 0.9 * b + rnorm(n))
    target <- ifelse(aimed, "a", NA)
    fit <- function(interventions, ...) {
        suppressWarnings(cape_learn_dag(x, DagParam(sem = "linear", ...), seed = 1, perturbation = target,
            knowledge = cape_knowledge(interventions = interventions)))
    }
    hard <- fit("hard")
    expect_false(hard@info$refined)
    expect_identical(cape_weights(hard)["a", "b"], 0)
    expect_identical(suppressWarnings(cape_learn_dag(x, DagParam(sem = "linear"), seed = 1, perturbation = target)), hard)
    unknown <- fit("unknown", refine = TRUE)
    expect_true(unknown@info$refined)
    expect_identical(dim(unknown), c(3L, 3L))
    expect_gt(cape_weights(unknown)["a", "b"], 0.3)
    expect_error(fit("hard", refine = TRUE), "'perturbation'", class = "capeError")
    expect_error(cape_knowledge(interventions = "soft"))
    expect_output(show(cape_knowledge(interventions = "unknown")), "interventions: unknown")
})

test_that("a feature that was set in every cell keeps its effects and has no causes", {
    set.seed(6)
    n <- 300
    x <- rbind(a = rnorm(n), b = rnorm(n))
    x <- rbind(x, c = x["b", ] + 0.5 * rnorm(n))
    for (model in c("linear", "mlp")) {
        dag <- suppressWarnings(cape_learn_dag(x, DagParam(sem = model, epochs = 60L), seed = 1, perturbation = rep("b", n)))
        expect_identical(unlist(cape_edges(dag)[c("from", "to")]), c(from = "b", to = "c"))
        expect_match(dag@warnings, "no causes in the result.*: 'b'\\.$", all = FALSE)
    }
})

test_that("features that are flat within batches have no edges, and are named", {
    x <- chain(240)
    batch <- rep(c("p", "q", "r"), 80)
    level <- c(p = 1, q = 2, r = 3)[batch] / 7
    x <- rbind(x, flat1 = level, flat2 = 1e9 * level, flat3 = -level / 3 + 2)
    for (standardize in c(FALSE, TRUE)) {
        dag <- suppressWarnings(cape_learn_dag(x, quick_dag(standardize = standardize, refine = TRUE), seed = 1, batch = batch))
        expect_false(any(grepl("flat", unlist(cape_edges(dag)[c("from", "to")]))))
        expect_match(dag@warnings, "3 feature\\(s\\) without variance.*'flat1', 'flat2', 'flat3'", all = FALSE)
    }
})

test_that("cells of weight 0 are not there", {
    x <- chain(100)
    more <- cbind(x, matrix(5 * rnorm(80), 4))
    colnames(more) <- NULL
    all_in_one <- function(x, ...) {
        cape_weights(suppressWarnings(cape_learn_dag(x, linear(batch.size = 1000L, lambda = 0.05), seed = 1, ...)), pruned = FALSE)
    }
    expect_equal(all_in_one(more, cell.weights = rep(c(2, 0), c(100, 20))), all_in_one(x), tolerance = 1e-8)
    expect_error(learn(x, cell.weights = rep(-1, 100)), "'cell.weights' is -1 for cell 1; weights must be finite")
})

test_that("a fit starts from an earlier graph, and from its edges among the features used", {
    x <- chain()
    earlier <- cape_learn_dag(x, linear(), seed = 1)
    short <- function(...) {
        cape_weights(suppressWarnings(cape_learn_dag(x, DagParam(sem = "linear", epochs = 1L), seed = 1, ...)),
            pruned = FALSE, sparse = FALSE)
    }
    away <- function(w) max(abs(w - cape_weights(earlier, pruned = FALSE, sparse = FALSE)))
    expect_lt(away(short(knowledge = cape_knowledge(start = earlier))), away(short()))
    expect_message(learn(x, subset.row = 1:3, knowledge = cape_knowledge(start = earlier)), "left out: 'gene4'")
    expect_output(print(cape_knowledge(start = earlier)), "start: [0-9]+ edges?")
    expect_error(cape_knowledge(start = "a"), "'start' is \"a\"; it must be a CapeDag")
})

test_that("wrong knowledge is named", {
    x <- chain()
    expect_error(learn(x, knowledge = "gene1"), "'knowledge' is \"gene1\"; make it with cape_knowledge")
    expect_error(learn(x, knowledge = cape_knowledge(roots = "TP53")), "names 1 feature that 'x' does not have: 'TP53'")
    expect_message(learn(x, subset.row = c("gene1", "gene2"), knowledge = cape_knowledge(roots = "gene3")),
        "1 are not used and left out: 'gene3'")
    expect_error(cape_knowledge(required = "gene1"), "'required' is \"gene1\"; it must be a table")
    expect_error(cape_knowledge(tiers = 1:3), "'tiers'.*named feature")
    expect_error(cape_knowledge(tiers = list("a", c("b", "a"))), "'tiers' has 'a' more than once")
    expect_error(cape_knowledge(penalty = matrix(1, 2, 2)), "'penalty'.*feature names")
    expect_error(cape_knowledge(penalty = matrix(-1, 1, 1, dimnames = list("a", "b"))), "has the value -1")
    expect_error(cape_knowledge(roots = 1), "'roots' is 1; it must hold names")
    cycle <- data.frame(from = c("gene1", "gene2"), to = c("gene2", "gene1"))
    expect_error(learn(x, knowledge = cape_knowledge(required = cycle)), "cycle", class = "capeError")
    expect_output(print(cape_knowledge(roots = "a", required = cycle)), "required: gene1 -> gene2.*roots: a")
})
