#' Learn causal positions of features
#'
#' The whole way: a causal graph over the features (Step I), its hyperbolic embedding (Step II) and
#' rotary angles (Step III). `cape_fit()` returns a SingleCellExperiment that carries the result,
#' `cape_calculate()` the result alone.
#'
#' @section Input:
#' Features are rows, cells (or samples) are columns. `x` is a SingleCellExperiment, a
#' SummarizedExperiment, a matrix, a data frame of numbers, a matrix of the Matrix package, or a
#' DelayedMatrix, of which only the chosen rows are read, in blocks of cells
#' ([DelayedArray::setAutoBlockSize()]). At least 10 cells and 2 features with variance are needed.
#'
#' With more than 500 features and no `subset.row`, the 500 of largest variance are used, which a
#' message says; with `batch` it is the variance within batches. Features without variance stay in the result
#' without edges.
#'
#' Raw counts are scaled to 10,000 a cell (over all features) and log-transformed, or, where `x` has
#' `sizeFactors()`, divided by them (scaled to a mean of 1), and log2(x + 1) is taken, as scuttle's
#' `logNormCounts()` does; everything else is used as it is. A matrix is taken for counts with
#' `assay.type = "counts"` only.
#'
#' A cell without counts in the features used (in `"logcounts"` and `"exprs"`: that has only zeros there), or whose
#' values are all missing, counts for nothing: a warning says how many and which, and the result is that of a table
#' without them. In the SingleCellExperiment they stay in their places, and `cape_result(x)@input$empty` names them.
#'
#' @param x see section Input.
#' @param ... of the generics: the arguments of the methods.
#' @param altexp name or number of an alternative experiment of `x`, such as the proteins beside the genes, that is
#'   fitted in place of `x`. Columns of `colData(x)` may be named for it; its size factors are its own. `cape_fit()`
#'   stores the result in it: `cape_result(altExp(x, altexp))`.
#' @param assay.type name or number of the assay. `NULL`: `"logcounts"` if there is one, else `"exprs"`
#'   (as of CATALYST), else `"counts"`.
#' @param subset.row names, numbers or flags of the features to use.
#' @param dag,embed,rotary settings of the three steps: [DagParam()], [HyperbolicParam()],
#'   [RotaryParam()].
#' @param name under which the result is stored in `x`. It replaces an older result of that name; anything else
#'   that `x` has there is an error before the work.
#' @param seed a whole number. The same seed gives the same result, to the bit, on any number of
#'   threads. `NULL` draws it from R's random numbers, so that [set.seed()] works; with a seed R's
#'   random numbers are left alone.
#' @param num.threads number of threads; `NULL`: as many as this process may use.
#' @param verbose show progress.
#' @param knowledge what is known of the graph: see [cape_knowledge()].
#' @param batch the batch (donor, plate) of every cell, or the name of a column of `colData(x)`. Features are
#'   centred within each batch, so that differences of level between batches cause no edges.
#' @param perturbation which feature was perturbed in every cell (names; `NA`: none;
#'   labels that are no features of `x` are refused), or the name of a column of `colData(x)`, or a matrix of 0 and 1, features x cells,
#'   where a cell has several. What that did is told by `interventions` of [cape_knowledge()]: unless it says
#'   otherwise, it set the feature from outside. Then its own equation is left out there; its
#'   effects count. One that was set in all cells but nine, or whose values in the others do not vary, has no causes
#'   in the result.
#' @param checkpoint name of a file. The state of the fit (its last whole epoch of Step I or Step II, the finished
#'   regressions of the refinement) is saved there every `checkpoint.every` minutes, and when the fit is interrupted
#'   (Ctrl-C) or fails. The same call, with the same seed, goes on from it, also after the process was killed, and
#'   its result is that of a fit that was not interrupted. The file is written under another name (with `.new` at
#'   its end) and renamed, so that it is whole at any moment; on a full disk the old one stays. It serves this call
#'   with this build of the library on a CPU with the same kernels; another is refused. The file is removed when
#'   the fit is done.
#' @param checkpoint.every minutes between two states that are saved; 0: as often as possible; `Inf`: only when the
#'   fit ends early.
#' @param cell.weights the weight of every cell in the fit, or the name of a column of `colData(x)`.
#' @param covariates what may drive features from outside and is known of every cell (scores of the cell cycle, age,
#'   sex): names of columns of `colData(x)`, or a matrix or data frame with a row, or a vector with a value, for every
#'   cell; rows and values with names are matched. Numbers, flags or labels, none missing. Of every feature what a
#'   linear regression on them explains, within batches, is taken out. Features are chosen by their variance before
#'   that. Give few beside the cells: tests do not take their number from the degrees of freedom.
#' @return `cape_calculate()`: a [CapeFit-class]. `cape_fit()`: `x` (a matrix is wrapped in a
#' SingleCellExperiment first) with
#' * `rowPair(x, name)`: the edges, from the cause to the effect, with `weight` and `sign`;
#' * `rowData(x)[[name]]`: a DataFrame with `selected`, `feature`, `generality`, `radius`, `pagerank` and
#'   `poincare` (a matrix) of every feature, `NA` where it was not used. It
#'   travels with the rows: when they are chosen, doubled, reordered or renamed, the accessors follow;
#' * `metadata(x)[[name]]`: the [CapeFit-class], which the accessors find.
#' @seealso [cape_result()], [cape_edges()], [cape_generality()], [cape_embedding()],
#'   [cape_plot_dag()], [cape_attend()]
#' @examples
#' truth <- cape_simulate_dag(6, edges.per.node = 1, seed = 1)
#' x <- cape_simulate_data(truth, 200, mechanism = "linear", seed = 2)
#' sce <- cape_fit(x, dag = DagParam(sem = "linear"), embed = HyperbolicParam(dims = 8L), seed = 3)
#' cape_result(sce)
#' SummarizedExperiment::rowData(sce)$CAPE
#' @name cape_fit
#' @aliases cape_fit,ANY-method cape_fit,SummarizedExperiment-method cape_fit,SingleCellExperiment-method
#'   cape_calculate,ANY-method cape_calculate,SingleCellExperiment-method
NULL

#' @rdname cape_fit
#' @export
setGeneric("cape_fit", function(x, ...) standardGeneric("cape_fit"))

#' @rdname cape_fit
#' @export
setGeneric("cape_calculate", function(x, ...) standardGeneric("cape_calculate"))

#' @rdname cape_fit
#' @export
setMethod("cape_fit", "ANY", function(x, assay.type = NULL, subset.row = NULL, dag = DagParam(),
                     embed = HyperbolicParam(), rotary = RotaryParam(), name = "CAPE", seed = NULL,
                     num.threads = 1L, verbose = interactive(), knowledge = NULL, batch = NULL,
                     perturbation = NULL, cell.weights = NULL, covariates = NULL, checkpoint = NULL,
                     checkpoint.every = 3) {
    check_string(name, "name")
    # Before the work: a result that cannot be stored would be lost.
    experiment <- as_experiment(x, assay.type)
    check_free(experiment, name)
    fit <- cape_calculate(x, assay.type = assay.type, subset.row = subset.row, dag = dag,
        embed = embed, rotary = rotary, seed = seed, num.threads = num.threads, verbose = verbose,
        knowledge = knowledge, batch = batch, perturbation = perturbation, cell.weights = cell.weights, covariates = covariates,
        checkpoint = checkpoint, checkpoint.every = checkpoint.every)
    store_fit(experiment, fit, name)
})

#' @rdname cape_fit
#' @export
setMethod("cape_fit", "SummarizedExperiment", function(x, ...) {
    callNextMethod(as(x, "SingleCellExperiment"), ...)
})

#' @rdname cape_fit
#' @export
setMethod("cape_fit", "SingleCellExperiment", function(x, ..., altexp = NULL) {
    if (is.null(altexp)) {
        return(callNextMethod(x, ...))
    }
    inner <- alternative(x, altexp)
    joined <- with_columns_of(inner, x)
    fitted <- cape_fit(joined, ...)
    SummarizedExperiment::colData(fitted) <- SummarizedExperiment::colData(inner)
    SingleCellExperiment::altExp(x, altexp) <- fitted
    x
})

#' @rdname cape_fit
#' @export
setMethod("cape_calculate", "SingleCellExperiment", function(x, ..., altexp = NULL) {
    x <- experiment_of(x, altexp) # here, or its errors would be those of a dispatch
    callNextMethod(x, ...)
})

# The experiment that is fitted: x, or one of its alternatives with what x knows of the cells.
experiment_of <- function(x, altexp) {
    if (is.null(altexp)) {
        return(x)
    }
    inner <- alternative(x, altexp)
    with_columns_of(inner, x)
}

alternative <- function(x, altexp) {
    known <- SingleCellExperiment::altExpNames(x)
    if (length(altexp) != 1L || !(altexp %in% known || altexp %in% seq_along(known))) {
        cape_error("'altexp' is ", one_line(altexp), "; it must be one of altExpNames(x)",
            if (length(known) > 0L) paste0(" (", some_of(quoted(known)), ")") else ", which are none")
    }
    SingleCellExperiment::altExp(x, altexp)
}

# (Size factors are those of the experiment itself: they are of its own counts.)
with_columns_of <- function(inner, x) {
    all <- SummarizedExperiment::colData(x)
    own <- SummarizedExperiment::colData(inner)
    SummarizedExperiment::colData(inner) <- cbind(own, all[setdiff(names(all), c(names(own), "sizeFactor"))])
    inner
}

#' @rdname cape_fit
#' @export
setMethod("cape_calculate", "ANY", function(x, assay.type = NULL, subset.row = NULL, dag = DagParam(),
                           embed = HyperbolicParam(), rotary = RotaryParam(), seed = NULL,
                           num.threads = 1L, verbose = interactive(), knowledge = NULL,
                           batch = NULL, perturbation = NULL, cell.weights = NULL,
                           covariates = NULL, checkpoint = NULL, checkpoint.every = 3) {
    check_class(dag, "DagParam", "dag")
    check_class(embed, "HyperbolicParam", "embed")
    check_class(rotary, "RotaryParam", "rotary")
    check_flag(verbose, "verbose")
    seed <- run_seed(seed)
    input <- cape_as_input(x, assay.type, subset.row, dag, verbose, batch)
    prior <- prior_of(x, rownames(input$values), rownames(x), knowledge, batch, perturbation, cell.weights,
        input$cells, covariates)
    check_refinable(dag, prior)
    chosen <- c(settings(dag), settings(embed), settings(rotary), run_settings(seed, num.threads))
    heard <- verbose && say_start(input$values, chosen)
    started <- proc.time()[["elapsed"]]
    result <- with_checkpoint(checkpoint, checkpoint.every, function(store) {
        with_progress(heard, function(progress) {
            with_features(rownames(input$values), core_fit(input$values, prior, chosen, progress, store),
                colnames(input$values))
        })
    })
    if (verbose) {
        say("Done in ", round(proc.time()[["elapsed"]] - started, 1), " seconds.")
    }

    features <- rownames(input$values)
    fit <- new("CapeFit",
        dag = new_dag(result$dag, features, dag, seed, prior$required),
        embedding = new_embedding(result$embedding, features, embed, seed),
        angles = result$angles, rotary = rotary, rows = input$rows, input = input$input, seed = seed,
        versions = run_versions())
    dimnames(fit@angles) <- list(features, paste0("angle", seq_len(ncol(fit@angles))))
    repeat_warnings(fit@dag)
    fit
})

say_start <- function(values, chosen) {
    cost <- core_estimate(ncol(values), nrow(values), chosen)
    say("CAPE: ", nrow(values), " features x ", ncol(values), " cells, seed ", chosen[["run.seed"]],
        "; about ", duration(cost[["seconds"]]), " on one thread and ", size(cost[["bytes"]]),
        " of memory.")
}

run_versions <- function() {
    build <- core_build()
    list(capeOmics = as.character(utils::packageVersion("capeOmics")), core = build$version,
        build_id = build$build_id, blas_kernel = build$blas_kernel)
}

repeat_warnings <- function(dag) {
    for (text in dag@warnings) {
        warning(text, call. = FALSE)
    }
}

as_experiment <- function(x, assay.type) {
    if (is(x, "SingleCellExperiment")) {
        return(x)
    }
    check_table(x, "'x'")
    if (is_frame(x) || !(is.matrix(x) || is(x, "Matrix") || is(x, "DelayedMatrix"))) {
        x <- standard_form(x, "'x'")
    }
    dimnames(x) <- lapply(dimnames(x), function(names) if (is.null(names)) NULL else as.vector(names))
    assays <- list(x)
    names(assays) <- if (is.null(assay.type)) "values" else assay.type
    SingleCellExperiment::SingleCellExperiment(assays)
}

# A result may replace an older one, but nothing that is the user's own.
check_free <- function(x, name) {
    stored <- S4Vectors::metadata(x)
    refit <- is(stored[[name]], "CapeFit")
    table <- SummarizedExperiment::rowData(x)[[name]]
    taken <- c(
        if (!is.null(table) && !(refit && is(table, "DataFrame") && "selected" %in% names(table))) "rowData(x)",
        if (!refit && name %in% SingleCellExperiment::rowPairNames(x)) "rowPairs(x)",
        if (!refit && name %in% names(stored)) "metadata(x)")
    if (length(taken) > 0L) {
        cape_error(some_of(taken), " already has ", quoted(name), ", which is not a result of cape_fit(); ",
            "give the result another 'name'")
    }
}

# Edges become a rowPair, per-feature results a nested DataFrame, the fit itself metadata.
store_fit <- function(x, fit, name) {
    n <- nrow(x)
    rows <- fit@rows
    edges <- edge_table(fit@dag)
    SingleCellExperiment::rowPair(x, name) <- S4Vectors::SelfHits(
        rows[edges$from], rows[edges$to], nnode = n, weight = edges$weight, sign = edges$sign)

    spread <- function(values) {
        out <- rep(NA_real_, n)
        out[rows] <- values
        out
    }
    points <- fit@embedding@poincare
    ball <- matrix(NA_real_, n, ncol(points), dimnames = list(NULL, colnames(points)))
    ball[rows, ] <- points
    feature <- rep(NA_character_, n) # says which row is which, wherever the row goes
    feature[rows] <- fit@dag@features
    table <- S4Vectors::DataFrame(selected = seq_len(n) %in% rows, feature = feature,
        generality = spread(fit@embedding@generality), radius = spread(fit@embedding@radius),
        pagerank = spread(fit@embedding@pagerank))
    table$poincare <- ball
    SummarizedExperiment::rowData(x)[[name]] <- table
    S4Vectors::metadata(x)[[name]] <- fit
    x
}
