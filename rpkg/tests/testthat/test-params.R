test_that("the defaults in R are those of the core's registry", {
    registry <- cape_defaults()
    expect_setequal(names(registry), c("key", "type", "default", "range", "doc", "source"))
    constructors <- list(dag = DagParam, embed = HyperbolicParam, rotary = RotaryParam)
    for (step in names(constructors)) {
        in_r <- capeOmics:::settings(constructors[[step]]())
        in_core <- registry[startsWith(registry$key, paste0(step, ".")), ]
        expect_setequal(names(in_r), in_core$key)
        expect_identical(
            setdiff(names(formals(constructors[[step]])), gsub("_", ".", sub("^[a-z]+.", "", in_core$key))),
            character())
        for (i in seq_len(nrow(in_core))) {
            ours <- in_r[[in_core$key[i]]]
            theirs <- in_core$default[i]
            if (in_core$type[i] %in% c("double", "integer")) {
                expect_identical(as.numeric(ours), as.numeric(theirs), info = in_core$key[i])
            } else {
                expect_identical(ours, theirs, info = in_core$key[i])
            }
        }
    }
})

test_that("the defaults of simulation and preprocessing are the registry's", {
    registry <- cape_defaults()
    default <- function(key) registry$default[registry$key == key]
    args <- formals(cape_simulate_dag)
    expect_equal(eval(args$edges.per.node, list(n = 10)), as.numeric(default("simulate.edges_per_node")))
    expect_equal(args$min.weight, as.numeric(default("simulate.min_weight")))
    expect_equal(args$max.weight, as.numeric(default("simulate.max_weight")))
    expect_equal(eval(args$model)[1], default("simulate.model"))
    expect_equal(tolower(args$signed.weights), default("simulate.signed_weights"))
    args <- formals(cape_simulate_data)
    expect_equal(eval(args$mechanism)[1], default("simulate.mechanism"))
    expect_equal(eval(args$noise)[1], default("simulate.noise"))
    expect_equal(args$noise.scale, as.numeric(default("simulate.noise_scale")))
    args <- formals(cape_preprocess)
    expect_equal(args$min.features, as.integer(default("preprocess.min_features")))
    expect_equal(args$min.cells, as.integer(default("preprocess.min_cells")))
    expect_equal(args$target.sum, as.numeric(default("preprocess.target_sum")))
})

test_that("the fixed signatures are as agreed", {
    # Of a generic (x, ...) the method for tables and experiments of any kind has the arguments.
    arguments <- function(name) names(formals(methods::unRematchDefinition(getMethod(name, "ANY"))))
    expect_identical(arguments("cape_fit"), c("x", "assay.type", "subset.row", "dag", "embed", "rotary",
        "name", "seed", "num.threads", "verbose", # and what came later behind
        "knowledge", "batch", "perturbation", "cell.weights", "covariates", "checkpoint",
        "checkpoint.every"))
    expect_identical(arguments("cape_calculate"), setdiff(arguments("cape_fit"), "name"))
    expect_identical(arguments("cape_learn_dag"), c("x", "param", "seed", "..."))
    expect_identical(arguments("cape_embed_dag"), c("dag", "param", "seed", "..."))
    expect_identical(names(formals(cape_attend)), c("query", "key", "value", "angles", "heads", "mask", "..."))
    expect_identical(names(formals(DagParam))[1:6],
        c("sem", "refine", "standardize", "lambda", "threshold", "epochs"))
})

test_that("a bad setting is refused when the object is made, by its R name, with its range", {
    expect_error(DagParam(threshold = -1), "threshold is -1.*\\[0, inf\\)", class = "capeError")
    expect_error(DagParam(batch.size = 0L), "batch.size is 0", class = "capeError")
    expect_error(DagParam(epochs = 10.5), "epochs.*10.5.*integer")
    expect_error(DagParam(sem = "quadratic"), "'sem' is \"quadratic\"; it must be one of \"mlp\"")
    expect_error(DagParam(lambda = c(1, 2)), "'lambda' is .*length 2")
    expect_error(DagParam(lambda = Inf), "lambda")
    expect_error(DagParam(refine = "yes"), "'refine'.*TRUE, FALSE or NA")
    expect_error(DagParam(standardize = NA), "'standardize' is NA")
    expect_error(HyperbolicParam(dims = 0L), "dims is 0")
    expect_error(RotaryParam(scale = 0), "scale is 0")
    error <- tryCatch(DagParam(threshold = -1), error = identity)
    expect_identical(error$status, "invalid_argument")
})

test_that("printing marks what is not the default", {
    shown <- capture.output(print(DagParam(threshold = 0.5)))
    expect_match(shown, "^ \\* threshold +0.5$", all = FALSE)
    expect_match(shown, "^   epochs +100$", all = FALSE)
    expect_identical(as.list(RotaryParam()), list(scale = pi / 4))
})
