# Models that tell something of cells; what the training computes has tests in the core.

table_of <- function(cells, seed) {
    truth <- cape_simulate_dag(6, edges.per.node = 1, seed = 1)
    cape_simulate_data(truth, cells, mechanism = "linear", seed = seed)
}
x <- table_of(120, 2)
unseen <- table_of(80, 3)
kind <- function(x) ifelse(x[1, ] > 0, "high", "low")
start <- cape_pretrain(x, model = BackboneParam(width = 16L, blocks = 1L), training = PretrainParam(epochs = 2L), seed = 4)
quick <- FinetuneParam(epochs = 30L, learning.rate = 1e-2)
typed <- cape_finetune(start, x, kind(x), quick, seed = 5)

test_that("classes are told of cells that were not seen, and come back from a file", {
    p <- predict(typed, unseen, type = "target")
    expect_identical(dimnames(p), list(colnames(predict(typed, unseen) |> t()), c("high", "low")))
    expect_equal(unname(rowSums(p)), rep(1, 80), tolerance = 1e-6)
    told <- predict(typed, unseen, type = "class")
    expect_s3_class(told, "factor")
    expect_identical(levels(told), c("high", "low"))
    expect_gt(mean(told == kind(unseen)), 0.85)
    expect_identical(as.character(told), colnames(p)[max.col(p)])
    again <- cape_load(cape_save(typed, tempfile(fileext = ".safetensors")))
    expect_identical(predict(again, unseen, type = "target"), p)
    expect_output(show(typed), "fine-tuned on 120 cells.*tells of cells: 2 classes \\(high, low\\)")
    expect_output(show(again), "tells of cells: 2 classes")
    expect_identical(predict(typed, unseen[6:1, 3:1], type = "class"), told[3:1])
    holes <- unseen
    holes[, 2] <- NA
    expect_identical(which(is.na(predict(typed, holes, type = "class"))), c(cell2 = 2L))
    expect_true(all(is.na(predict(typed, holes, type = "target")[2, ])))
})

test_that("the same seed gives the same model on any number of threads, and goes on from it", {
    again <- cape_finetune(start, x, kind(x), quick, seed = 5, num.threads = 2L)
    expect_identical(again@model, typed@model)
    more <- cape_finetune(typed, x, kind(x), FinetuneParam(epochs = 1L), seed = 6)
    expect_gt(mean(predict(more, unseen, type = "class") == kind(unseen)), 0.85)
    head <- cape_finetune(start, x, kind(x), FinetuneParam(epochs = 2L, blocks = 0L), seed = 5)
    expect_identical(predict(head, unseen), predict(start, unseen)) # what is before the head did not move
})

test_that("numbers are told in their units, from vectors, matrices, frames and columns of colData", {
    age <- 50 + 10 * x[2, ]
    told <- cape_finetune(start, x, age, quick, seed = 5)
    p <- predict(told, unseen, type = "target")
    expect_identical(colnames(p), "target")
    expect_gt(cor(p[, 1], unseen[2, ]), 0.8)
    expect_lt(mean((p[, 1] - 50 - 10 * unseen[2, ])^2), 0.5 * 100 * var(unseen[2, ]))
    expect_error(predict(told, unseen, type = "class"), "tells numbers \\('target'\\)")
    two <- cbind(age = age, other = x[3, ])
    from_matrix <- cape_finetune(start, x, two, FinetuneParam(epochs = 2L), seed = 5)
    expect_identical(cape_finetune(start, x, as.data.frame(unname(two)) |> setNames(colnames(two)),
        FinetuneParam(epochs = 2L), seed = 5)@model, from_matrix@model)
    shuffled <- two
    rownames(shuffled) <- colnames(x) <- paste0("c", seq_len(ncol(x)))
    expect_identical(cape_finetune(start, x, shuffled[120:1, ], FinetuneParam(epochs = 2L), seed = 5)@model,
        from_matrix@model)
    sce <- SingleCellExperiment::SingleCellExperiment(list(values = x), colData = S4Vectors::DataFrame(two, row.names = colnames(x)))
    expect_identical(cape_finetune(start, sce, c("age", "other"), FinetuneParam(epochs = 2L), assay.type = "values",
        seed = 5)@model, from_matrix@model)
    expect_identical(colnames(predict(cape_finetune(start, sce, "age", FinetuneParam(epochs = 1L),
        assay.type = "values", seed = 5), sce, type = "target", assay.type = "values")), "age")
    expect_error(cape_finetune(start, sce, "weight", assay.type = "values"), "must be a column of colData\\(x\\) \\(age")
})

test_that("cells whose target is not known, or that have no values, are left out and counted", {
    some <- kind(x)
    some[1:5] <- NA
    expect_message(cape_finetune(start, x, some, FinetuneParam(epochs = 1L), seed = 1), "5 cells without a target")
    holes <- x
    holes[, 7] <- NA
    expect_warning(cape_finetune(start, holes, kind(x), FinetuneParam(epochs = 1L), seed = 1),
        "1 cell without values: left out \\('cell7'\\)")
    few <- rep(c("a", "b"), c(119, 1))
    holes[, 120] <- NA
    expect_error(suppressWarnings(cape_finetune(start, holes, few)), "'b' of cells without values alone")
})

test_that("a wrong target or setting has its error", {
    expect_error(predict(start, x, type = "class"), "cape_finetune\\(\\) trains a model")
    expect_error(predict(start, x, type = "classes"), "'type'")
    expect_error(cape_finetune(start, x, NULL), "'target' is NULL")
    expect_error(cape_finetune(start, x, kind(x)[-1]), "119 values")
    expect_error(cape_finetune(start, x, rep("a", 120)), "one class \\('a'\\)")
    expect_error(cape_finetune(start, x, rep(NA, 120)), "no class")
    expect_error(cape_finetune(start, x, rep(3, 120)), "same in all cells")
    expect_error(cape_finetune(start, x, cbind(rep(3, 120))), "a name for every column")
    expect_error(cape_finetune(start, x, cbind(a = c(Inf, 2:120))), "infinite")
    expect_error(cape_finetune(start, x, data.frame(a = kind(x), b = 1)), "not numeric")
    expect_error(cape_finetune(start, x, data.frame(a = 1:3)), "3 rows")
    named <- stats::setNames(kind(x), paste0("x", 1:120))
    y <- x
    colnames(y) <- paste0("c", 1:120)
    expect_error(cape_finetune(start, y, named), "names that the cells of 'x' do not have")
    expect_error(cape_finetune(start, x, kind(x), PretrainParam()), "FinetuneParam")
    expect_error(FinetuneParam(hidden = 0.2), "has no setting 'hidden'")
    expect_error(FinetuneParam(pooling = "sum"), "pooling")
    expect_error(cape_finetune(start, x, kind(x), FinetuneParam(blocks = 2L)), "finetune.blocks is 2")
    expect_error(cape_finetune(start, x[1:2, ], kind(x)), "lacks 4 of the model's 6")
})
