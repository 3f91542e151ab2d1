# Objects that an earlier version saved.

# Without what the present version added, as readRDS() gives it.
aged <- function(object) {
    if (is(object, "CapeFit")) {
        attr(object, "dag") <- aged(object@dag)
        values <- object@embedding@param@values
        embedding <- object@embedding
        param <- embedding@param
        attr(param, "values") <- values[setdiff(names(values), "coverage")]
        attr(embedding, "param") <- param
        attr(object, "embedding") <- embedding
        return(object)
    }
    attr(object, "support") <- attr(object, "partners") <- attr(object, "bag.share") <- NULL
    object@info[c("n_bags", "false_discovery_rate", "n_tested_pairs")] <- NULL
    if (!is.null(object@param)) {
        values <- object@param@values
        attr(object@param, "values") <- values[setdiff(names(values), c("bags", "refine.fdr"))]
    }
    unserialize(serialize(object, NULL))
}

test_that("an object of an earlier version is shown and taken, and updated", {
    param <- DagParam(sem = "linear", epochs = 20L, bags = 0L, refine.fdr = 1)
    embed <- HyperbolicParam(dims = 4L, epochs = 20L, coverage = "edges")
    fit <- suppressWarnings(cape_calculate(chain_data(100L), dag = param, embed = embed,
        seed = 1, verbose = FALSE))
    old <- aged(fit)
    expect_false(.hasSlot(old@dag, "support"))
    updated <- updateObject(old)
    expect_true(validObject(updated))
    expect_true(validObject(updated@dag@param))
    expect_identical(as.list(updated@dag@param), as.list(param)) # what the earlier version did
    expect_identical(as.list(updated@embedding@param), as.list(embed))
    place <- function(dag, param) cape_embed_dag(dag, param, seed = 1, verbose = FALSE)
    expect_identical(cape_embedding(place(old@dag, old@embedding@param)), cape_embedding(place(fit@dag, embed)))
    expect_identical(capture.output(show(old)), capture.output(show(fit)))
    expect_identical(capture.output(show(old@dag)), capture.output(show(fit@dag)))
    expect_identical(capture.output(summary(old)), capture.output(summary(fit)))
    expect_identical(cape_edges(old)$weight, cape_edges(fit)$weight)
    expect_identical(cape_edges(cape_prune(old@dag, 0.3)), {
        edges <- cape_edges(cape_prune(fit@dag, 0.3))
        edges$support <- NULL
        edges
    })
    expect_error(cape_support(old), "has no support")
    expect_identical(updateObject(fit), fit)
    expect_identical(updateObject(param), param)
})

test_that("an experiment with a result of an earlier version is taken, and its rows are followed", {
    sce <- suppressWarnings(cape_fit(chain_data(100L), dag = DagParam(sem = "linear", epochs = 20L),
        embed = HyperbolicParam(dims = 4L, epochs = 20L), seed = 1, verbose = FALSE))
    S4Vectors::metadata(sce)$CAPE <- aged(cape_result(sce))
    expect_identical(cape_edges(sce)$weight, cape_edges(cape_result(sce))$weight)
    expect_length(cape_dag(sce[3:1, ]), 3L)
    expect_output(show(cape_result(sce)), "CapeFit")
    expect_identical(rownames(cape_embedding(sce[3:1, ])), rownames(sce)[3:1])
})
