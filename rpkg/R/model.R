# Transformers over features: training, embeddings, files.

#' Train a transformer on cells
#'
#' A transformer reads the features of a cell as tokens, which have no order; `positions` stand in for it. It is
#' trained to predict values that are hidden from it, and then gives vectors of cells ([cape_embed_cells()]) and
#' of features ([cape_embed_genes()]), and a map of which feature attends to which ([cape_attention_map()]).
#'
#' A part of the cells (`training = PretrainParam(validation = )`) is not trained on. They tell which epoch was the
#' best, whose model is returned, and when to stop; `cape_history()` has their loss in units of that of guessing
#' each feature by its mean (`relative`: 1 is no better than that).
#'
#' Missing values are left out: a cell is the features that it has. Counts are scaled and log-transformed as
#' [cape_fit()] does. `values = "fixed_bins"` (the preset `"scbert"`) takes logarithms of its own, so that it
#' needs scaled counts: name such an assay.
#'
#' A sparse or file-backed assay (dgCMatrix, DelayedMatrix) is not made dense: cells are read as they are needed, some
#' two million values (16 MB) at once, with the bits that a matrix in memory gives. Training takes cells in random
#' order, so that each such read may go through the whole file: with 2,000 features and 20,000 cells 18 times an
#' epoch.
#'
#' @inheritParams cape_fit
#' @param x as for [cape_fit()].
#' @param fit a [CapeFit-class], or a SingleCellExperiment from [cape_fit()], for `positions` that come from it; its
#'   features are used, and `x` must have them. `NULL`: that of `x`, if there is one called `"CAPE"`.
#' @param preset defaults of the model and of its training, see [BackboneParam()].
#' @param positions what stands in for an order of the features:
#'   * `"cape"` (the default with a fit): rotary attention by the angles of the fit, beside a trained vector of every
#'     feature. Angles are scaled so that the largest is pi, see `BackboneParam(angle.scale = )`;
#'   * `"cape.rotary"`: the angles alone (the paper's form);
#'   * `"cape.additive"`: the coordinates of the fit through a trained projection, added;
#'   * `"cape.distance"`: attention falls with the distance of two features in the Poincare ball of the fit, by a trained
#'     factor of every head; `"cape.distance.trained"`: that beside a trained vector of every feature;
#'   * `"trained"` (the default without a fit): a trained vector of every feature;
#'   * `"relative"`: attention knows how far two features are apart in their order, that of the fit or of `x`
#'     (Transformer-XL); `"relative.trained"`: that beside a trained vector;
#'   * `"none"`: nothing, so that features differ by their values alone;
#'   * a matrix with a row for every feature, by name: it is added through a trained projection (loadings of a
#'     principal component analysis, vectors of gene2vec).
#' @param subset.row the features, where they are not those of the fit; `NULL`: as for [cape_fit()].
#' @param model,training a [BackboneParam()] and a [PretrainParam()] in place of those of the preset. With a fit the
#'   default model is twice as wide as the fit has dimensions.
#' @return A [CapeModel-class].
#' @seealso [cape_embed_cells()], [cape_attention_map()], [cape_save()]
#' @examples
#' truth <- cape_simulate_dag(6, edges.per.node = 1, seed = 1)
#' x <- cape_simulate_data(truth, 200, mechanism = "linear", seed = 2)
#' fit <- cape_calculate(x, dag = DagParam(sem = "linear"), embed = HyperbolicParam(dims = 8L), seed = 3)
#' model <- cape_pretrain(x, fit, training = PretrainParam(epochs = 3L), seed = 4)
#' model
#' dim(predict(model, x))
#' @export
cape_pretrain <- function(x, fit = NULL, preset = c("small", "scgpt", "scbert", "methylgpt"), positions = NULL,
                          assay.type = NULL, subset.row = NULL, model = NULL, training = NULL, seed = NULL,
                          num.threads = 1L, verbose = interactive(), checkpoint = NULL, checkpoint.every = 3) {
    preset <- one_of(preset, presets, "preset")
    check_flag(verbose, "verbose")
    if (!is.null(model)) check_class(model, "BackboneParam", "model")
    if (!is.null(training)) check_class(training, "PretrainParam", "training")
    seed <- run_seed(seed)
    fit <- fit_for(x, fit, positions)
    place <- positions_for(fit, positions)
    features <- place$features
    if (is.null(features)) {
        input <- cape_as_input(x, assay.type, subset.row, DagParam(missing = "mask"), verbose, stream = TRUE)
        features <- rownames(input$values)
        place$matrix <- rows_for(place$matrix, features)
    } else {
        if (!is.null(subset.row)) {
            cape_error("'subset.row' is given beside a fit, whose ", length(features), " features are used")
        }
        input <- cape_as_input(x, assay.type, in_table(features, x), DagParam(missing = "mask"), verbose,
            stream = TRUE)
    }
    backbone <- if (is.null(model)) default_backbone(preset, place) else model
    if (is.null(training)) training <- PretrainParam(preset)

    run <- run_settings(seed, num.threads)
    shape <- c(settings(backbone), model.positions = place$kind)
    start <- with_features(features, core_model_new(features, place$matrix, c(shape, run)))
    chosen <- c(settings(training), run)
    if (verbose) {
        say("CAPE: a model of ", length(features), " features, trained on ", ncol(input$values), " cells, seed ", seed,
            "; ", size(core_model_memory(start, chosen)[["pretrain"]]), " of memory.")
    }
    result <- run_training(features, colnames(input$values), checkpoint, checkpoint.every, verbose, "guessing by means",
        function(progress, store) core_model_pretrain(start, input$values, chosen, progress, store))
    new("CapeModel", model = result$model, features = features, positions = place$name,
        backbone = backbone, training = training@values, history = result$history, input = input$input,
        info = list(best_epoch = result$best_epoch), seed = seed, versions = run_versions())
}

# Train by train(progress, store), a call of the core, and tell how it went.
run_training <- function(features, cells, checkpoint, checkpoint.every, verbose, guess, train) {
    started <- proc.time()[["elapsed"]]
    result <- with_checkpoint(checkpoint, checkpoint.every, function(store) {
        with_progress(verbose, function(progress) with_features(features, train(progress, store), cells))
    })
    result$history <- history_table(result$history, c("epoch", "loss", "validation", "relative"))
    if (verbose) {
        best <- result$history$relative[result$best_epoch]
        say("Done in ", round(proc.time()[["elapsed"]] - started, 1), " seconds: the best of ", nrow(result$history),
            " epochs is number ", result$best_epoch, if (!is.na(best)) {
                paste0(", with ", number(best), " of the loss of ", guess)
            }, ".")
    }
    result
}

fit_for <- function(x, fit, positions) {
    if (!is.null(fit)) {
        return(cape_result(fit))
    }
    from_fit <- is.character(positions) && startsWith(positions[1L], "cape")
    if ((is.null(positions) || from_fit) && is(x, "SummarizedExperiment") &&
        is(S4Vectors::metadata(x)[["CAPE"]], "CapeFit")) {
        return(cape_result(x))
    }
    if (from_fit) {
        cape_error("'positions' is ", quoted(positions[1L]), ", which needs a 'fit'; run cape_fit() first")
    }
    NULL
}

# How the core is told: kind, matrix, features (of a fit) and a name for the user.
positions_for <- function(fit, positions) {
    features <- if (!is.null(fit)) fit@dag@features
    if (is.matrix(positions)) {
        if (!are_numbers(positions) || is.null(rownames(positions))) {
            cape_error("'positions' is a matrix ", if (is.null(rownames(positions))) "without row names"
                else "that is not numeric", "; it must have a row of numbers for every feature, by name")
        }
        storage.mode(positions) <- "double"
        at <- if (is.null(features)) positions else rows_for(positions, features)
        return(list(kind = "projected", matrix = at, features = features, name = "matrix"))
    }
    known <- c("cape", "cape.rotary", "cape.additive", "cape.distance", "cape.distance.trained", "trained", "relative",
        "relative.trained", "none")
    if (is.null(positions)) positions <- if (is.null(fit)) "trained" else "cape"
    positions <- one_of(positions, known, "positions")
    switch(positions,
        cape = list(kind = "rotary_trained", matrix = fit@angles),
        cape.rotary = list(kind = "rotary", matrix = fit@angles),
        cape.additive = list(kind = "projected", matrix = fit@embedding@poincare),
        cape.distance = list(kind = "distance", matrix = fit@embedding@poincare),
        cape.distance.trained = list(kind = "distance_trained", matrix = fit@embedding@poincare),
        list(kind = sub(".", "_", positions, fixed = TRUE), matrix = NULL)
    ) |> c(list(features = features, name = positions))
}

# The rows of the user's matrix by name.
rows_for <- function(positions, features) {
    if (is.null(positions)) {
        return(NULL)
    }
    at <- match(features, rownames(positions))
    if (anyNA(at)) {
        cape_error("'positions' has no row for ", count_of(sum(is.na(at)), "feature"), " of ", length(features), ": ",
            some_of(quoted(features[is.na(at)])))
    }
    positions[at, , drop = FALSE]
}

# Features that x must have.
in_table <- function(features, x) {
    lost <- setdiff(features, rownames(x))
    if (length(lost) > 0L) {
        cape_error("'x' lacks ", count_of(length(lost), "feature"), " of the ", length(features), " of the fit: ",
            some_of(quoted(lost)))
    }
    features
}

default_backbone <- function(preset, place) {
    backbone <- BackboneParam(preset)
    if (preset == "small" && startsWith(place$kind, "rotary")) {
        backbone <- BackboneParam(preset, width = max(backbone@values$width, 2L * ncol(place$matrix)))
    }
    backbone
}

#' Vectors of cells and features from a trained transformer
#'
#' @inheritParams cape_pretrain
#' @param x,newdata cells: as for [cape_fit()], and few of them as well. Features are matched by name: their order
#'   does not matter, those that the model does not know are left out, and those that are missing are hidden, which
#'   a message counts; if more than `max.missing` of the model's features are missing that is an error.
#' @param model,object a [CapeModel-class].
#' @param pooling how the rows of its features become the vector of a cell: that of a token that stands for the cell
#'   (`"cls"`), or the `"mean"` or `"max"` over the features.
#' @param name under which the vectors are stored in `x`.
#' @param max.missing the share of the model's features that may be missing.
#' @param type vectors of `"cells"` or of `"features"`, or, from a model of [cape_finetune()], the `"target"`: the
#'   probability of every class, or the numbers; `"class"`: the most probable one.
#' @param ... not used.
#' @return `predict()`: a matrix with a row for every cell, or for every feature of the model (the mean of its row
#' over the cells that have a value; `NA` if none has); for `type = "target"` a column for every class or number, for
#' `type = "class"` a factor. `cape_embed_cells()`: `x` with `reducedDim(x, name)`.
#' `cape_embed_genes()`: `x` with `rowData(x)[[name]]`, a matrix. A cell without values, or without counts, has
#' `NA`.
#' @seealso [cape_pretrain()]
#' @examples
#' truth <- cape_simulate_dag(6, edges.per.node = 1, seed = 1)
#' x <- cape_simulate_data(truth, 60, mechanism = "linear", seed = 2)
#' model <- cape_pretrain(x, training = PretrainParam(epochs = 2L), seed = 4)
#' predict(model, x[3:1, 1:2])[, 1:4]
#' cape_embed_cells(x, model)
#' @export
cape_embed_cells <- function(x, model, pooling = c("cls", "mean", "max"), name = "CAPE", assay.type = NULL,
                             max.missing = 0.5, num.threads = 1L, verbose = FALSE) {
    check_string(name, "name")
    experiment <- as_experiment(x, assay.type)
    SingleCellExperiment::reducedDim(experiment, name) <- predict_rows(model, x, "cells", pooling, assay.type,
        max.missing, num.threads, verbose)
    experiment
}

#' @rdname cape_embed_cells
#' @export
cape_embed_genes <- function(x, model, name = "CAPE_model", assay.type = NULL, max.missing = 0.5, num.threads = 1L,
                             verbose = FALSE) {
    check_string(name, "name")
    experiment <- as_experiment(x, assay.type)
    vectors <- predict_rows(model, x, "features", "cls", assay.type, max.missing, num.threads, verbose)
    at <- match(rownames(experiment), model@features)
    SummarizedExperiment::rowData(experiment)[[name]] <- vectors[at, , drop = FALSE]
    experiment
}

#' @rdname cape_embed_cells
#' @importFrom stats predict
#' @export
setMethod("predict", "CapeModel", function(object, newdata, type = c("cells", "features", "target", "class"),
                                           pooling = c("cls", "mean", "max"), assay.type = NULL, max.missing = 0.5,
                                           num.threads = 1L, verbose = FALSE, ...) {
    check_class(object, "CapeModel", "object")
    type <- one_of(type, c("cells", "features", "target", "class"), "type")
    if (type %in% c("cells", "features")) {
        return(predict_rows(object, newdata, type, pooling, assay.type, max.missing, num.threads, verbose))
    }
    check_flag(verbose, "verbose")
    values <- model_values(object, newdata, assay.type, max.missing, verbose)
    predict_target(object, values, type, run_settings(0L, num.threads), verbose)
})

predict_rows <- function(model, x, type, pooling, assay.type, max.missing, num.threads, verbose) {
    check_class(model, "CapeModel", "model")
    type <- one_of(type, c("cells", "features"), "type")
    pooling <- one_of(pooling, c("cls", "mean", "max"), "pooling")
    check_flag(verbose, "verbose")
    values <- model_values(model, x, assay.type, max.missing, verbose)
    chosen <- run_settings(0L, num.threads)
    speaks <- have_values(values)
    out <- with_progress(verbose, function(progress) {
        with_features(model@features, if (type == "cells") {
            core_model_embed_cells(model@model, values[, speaks, drop = FALSE], pooling, chosen, progress)
        } else {
            core_model_embed_features(model@model, values[, speaks, drop = FALSE], chosen, progress)
        }, colnames(values)[speaks])
    })
    columns <- paste0("v", seq_len(ncol(out)))
    if (type == "features") {
        out[is.nan(out)] <- NA
        dimnames(out) <- list(model@features, columns)
        return(out)
    }
    all <- matrix(NA_real_, ncol(values), ncol(out), dimnames = list(colnames(values), columns))
    all[speaks, ] <- out
    all
}

# The values of the model's features in cells, features x cells; missing where x has no such feature, and in cells
# without counts.
model_values <- function(model, x, assay.type, max.missing, verbose) {
    max.missing <- check_number(max.missing, "max.missing", 0, 1)
    source <- choose_assay(x, assay.type, verbose)
    rows <- match(model@features, feature_names(x))
    lost <- is.na(rows)
    if (any(lost)) {
        told <- paste0(sum(lost), " of the model's ", count_of(length(lost), "feature"), " (",
            some_of(quoted(model@features[lost])), ")")
        if (mean(lost) > max.missing || all(lost)) {
            cape_error("'x' lacks ", told, ", which is more than max.missing = ", max.missing, " allows")
        }
        message("'x' lacks ", told, ": they are hidden.")
    }
    scan <- scan_rows(source$values, if (source$counts) NULL else rows[!lost])
    if (any(scan$infinite > 0)) {
        cape_error(source$what, " has ", count_of(sum(scan$infinite), "infinite value"), "; values must be finite")
    }
    scaling <- if (source$counts && are_counts(scan, source)) cell_scaling(x, source$values)
    made <- if (is.null(scaling)) "none" else scaling$transformation
    trained <- model@input$transformation
    if (!is.null(trained) && made != trained) {
        warning("the model was trained on values with transformation ", quoted(trained), "; these have ",
            quoted(made), call. = FALSE)
    }
    factors <- if (!is.null(scaling)) {
        replace(core_cell_factors(scaling$sizes, scaling$own, as.numeric(registry_default("preprocess.target_sum"))),
            scaling$sizes == 0, NA)
    }
    values <- cells_of(source$values, rows, factors, if (is.null(scaling$own)) "natural" else "binary",
        sum(scan$missing) == 0)
    with_dimnames(values, list(model@features,
        if (is.null(colnames(x))) paste0("cell", seq_len(ncol(x))) else as.vector(colnames(x))))
}

#' How well hidden values are predicted
#'
#' Hides a part of the values of cells, and compares what the model predicts of them with what they are. The cells
#' should not be those that it was trained on.
#'
#' @inheritParams cape_embed_cells
#' @param model a [CapeModel-class].
#' @param newdata cells, as for [cape_embed_cells()].
#' @param training a [PretrainParam()]: the share that is hidden (`hidden`), and how many values of a cell are looked
#'   at, at most (`length`). `NULL`: as in the training of the model.
#' @param seed what is hidden: a whole number; `NULL` draws it from R's random numbers.
#' @return A named vector: `loss`, the mean over the hidden values of their squared error (or of the negative
#' logarithm of the probability of their bin), and `relative`, the same over that of guessing each feature by its
#' mean (or shares of bins) in these cells: 1 is no better than that.
#' @examples
#' truth <- cape_simulate_dag(6, edges.per.node = 1, seed = 1)
#' x <- cape_simulate_data(truth, 200, mechanism = "linear", seed = 2)
#' model <- cape_pretrain(x[, 1:150], training = PretrainParam(epochs = 5L), seed = 4)
#' cape_hidden_loss(model, x[, 151:200], seed = 1)
#' @export
cape_hidden_loss <- function(model, newdata, training = NULL, seed = NULL, assay.type = NULL, max.missing = 0.5,
                             num.threads = 1L, verbose = FALSE) {
    check_class(model, "CapeModel", "model")
    check_flag(verbose, "verbose")
    if (is.null(training)) {
        training <- if (length(model@training) > 0L) new("PretrainParam", values = model@training) else PretrainParam()
    }
    check_class(training, "PretrainParam", "training")
    seed <- run_seed(seed)
    values <- model_values(model, newdata, assay.type, max.missing, verbose)
    chosen <- c(settings(training), run_settings(seed, num.threads))
    with_progress(verbose, function(progress) {
        with_features(model@features, core_model_hidden_loss(model@model, values, chosen, progress), colnames(values))
    })
}

#' Which feature attends to which
#'
#' The mean weight of attention over heads and cells.
#'
#' @inheritParams cape_embed_cells
#' @param model a [CapeModel-class].
#' @param x cells, as for [cape_embed_cells()].
#' @param group a group of every cell, or the name of a column of `colData(x)`: a map is made of each.
#' @param block of which block of the model, from 1; `NULL`: the mean over all.
#' @return A matrix: how much the feature of the row attends to that of the column, with a last row for the token
#' that stands for the cell (`"<cls>"`). With `group` a list of such matrices. Rows sum to 1 or, as the weight
#' given to `<cls>` is left out, a little less.
#' @examples
#' truth <- cape_simulate_dag(6, edges.per.node = 1, seed = 1)
#' x <- cape_simulate_data(truth, 60, mechanism = "linear", seed = 2)
#' model <- cape_pretrain(x, training = PretrainParam(epochs = 2L), seed = 4)
#' round(cape_attention_map(model, x), 2)
#' @export
cape_attention_map <- function(model, x, group = NULL, block = NULL, assay.type = NULL, max.missing = 0.5,
                               num.threads = 1L, verbose = FALSE) {
    check_class(model, "CapeModel", "model")
    check_flag(verbose, "verbose")
    blocks <- model@backbone@values$blocks
    at <- if (is.null(block)) -1L else as.integer(check_number(block, "block", 1, blocks, integer = TRUE)) - 1L
    group <- per_cell(x, group, "group")
    values <- model_values(model, x, assay.type, max.missing, verbose)
    chosen <- run_settings(0L, num.threads)
    map <- function(cells) {
        out <- with_progress(verbose, function(progress) {
            with_features(model@features, core_model_attention(model@model, values[, cells, drop = FALSE], at, chosen,
                progress), colnames(values)[cells])
        })
        dimnames(out) <- list(c(model@features, "<cls>"), model@features)
        out
    }
    speaks <- which(have_values(values))
    if (is.null(group)) map(speaks) else lapply(split(speaks, as.character(group)[speaks]), map)
}

#' Models in files
#'
#' `cape_save()` writes a model as a safetensors file, which other programs read as well: the parameters by name, and
#' as metadata its options and the names of its features. `cape_load()` reads it back. The history of the training
#' is not in the file; [saveRDS()] keeps all of a [CapeModel-class].
#'
#' `cape_load()` also makes models of the published ones: of the parameters ("state dict") of scGPT, and of MethylGPT,
#' which is of the same form (`format = "scgpt"`), and of scBERT (`format = "scbert"`). They compute what that code
#' does, to rounding, and are saved in our form. Heads of other tasks are left aside; models of scGPT with labels of batches are
#' refused. A file of PyTorch becomes a safetensors file in Python (not run by our tests):
#' ```
#' import torch; from safetensors.torch import save_file
#' state = torch.load("best_model.pt", map_location="cpu")
#' state = state.get("model_state_dict", state)
#' save_file({k.removeprefix("module."): v.contiguous().clone() for k, v in state.items()}, "model.safetensors")
#' ```
#' Such models take cells as theirs do: scGPT genes with counts alone, whose values become bins; scBERT all genes, of
#' counts scaled to 10,000 without logarithms, so name such an assay. Genes that `x` does not have are more than half
#' of a vocabulary as a rule: `max.missing = 1` allows that.
#'
#' @param model a [CapeModel-class]; for `cape_load()` of other formats a [BackboneParam()] with what their files do not
#'   say (`heads`, `dropout`; of scGPT also `norm.order`, `values`, `hidden.value`, `bins`). `NULL`: that of the preset
#'   of this name.
#' @param file name of the file.
#' @param format `"cape"`, what `cape_save()` wrote, or `"scgpt"` or `"scbert"`.
#' @param vocabulary for these two, what each row of the embedding of genes stands for, in its order. scGPT: the names in
#'   the order of their numbers in `vocab.json`, `"<cls>"` among them (with jsonlite:
#'   `v <- unlist(jsonlite::fromJSON("vocab.json")); names(sort(v))`). scBERT: the genes of gene2vec, without the last
#'   row, whose token has the place of `<cls>` here.
#' @return `cape_save()`: `file`, invisibly. `cape_load()`: a [CapeModel-class].
#' @examples
#' x <- cape_simulate_data(cape_simulate_dag(6, edges.per.node = 1, seed = 1), 60, mechanism = "linear", seed = 2)
#' model <- cape_pretrain(x, training = PretrainParam(epochs = 2L), seed = 4)
#' file <- cape_save(model, tempfile(fileext = ".safetensors"))
#' identical(predict(cape_load(file), x), predict(model, x))
#' @export
cape_save <- function(model, file) {
    check_class(model, "CapeModel", "model")
    check_string(file, "file")
    if (!dir.exists(dirname(file))) {
        cape_error("'file' is ", quoted(file), "; its folder must exist")
    }
    write_whole(stats::setNames(list(model@model), file), "file")
    invisible(file)
}

#' @rdname cape_save
#' @export
cape_load <- function(file, format = c("cape", "scgpt", "scbert"), vocabulary = NULL, model = NULL) {
    check_string(file, "file")
    format <- one_of(format, c("cape", "scgpt", "scbert"), "format")
    if (!file.exists(file) || dir.exists(file)) {
        cape_error("'file' is ", quoted(file), ", which is no file")
    }
    bytes <- readBin(file, "raw", file.size(file))
    training <- list()
    if (format == "cape") {
        if (!is.null(vocabulary) || !is.null(model)) {
            cape_error("'vocabulary' and 'model' belong to files of other formats; set 'format'")
        }
    } else {
        bytes <- loaded_state(bytes, format, vocabulary, model)
        training <- PretrainParam(format)@values
    }
    about <- core_model_describe(bytes)
    values <- values_of(about$options, "model.")
    kind <- values$positions
    values$positions <- NULL
    new("CapeModel", model = bytes, features = about$features, positions = kind,
        backbone = new("BackboneParam", values = values), training = training,
        history = history_table(matrix(0, 0L, 4L), c("epoch", "loss", "validation", "relative")), input = list(),
        info = list(best_epoch = NA_integer_), seed = NA_integer_, versions = run_versions())
}

# Our bytes of a model of others.
loaded_state <- function(bytes, format, vocabulary, model) {
    if (!is.character(vocabulary) || length(vocabulary) == 0L || anyNA(vocabulary)) {
        cape_error("'vocabulary' is ", one_line(vocabulary), "; for format = ", quoted(format),
            " it must be the names of the rows of the embedding of genes, in their order")
    }
    if (is.null(model)) model <- BackboneParam(format)
    check_class(model, "BackboneParam", "model")
    positions <- if (format == "scbert") "fixed" else "trained"
    core_model_load_state(bytes, format, enc2utf8(unname(vocabulary)), c(settings(model), model.positions = positions))
}

#' @rdname CapeModel-class
#' @param object,x a `CapeModel`.
#' @export
setMethod("show", "CapeModel", function(object) {
    about <- core_model_describe(object@model)
    backbone <- object@backbone@values
    lines <- c(
        paste0("CapeModel: a transformer of ", count_of(length(object@features), "feature"), ", ",
            format(about$n_parameters, big.mark = ","), " parameters"),
        paste0("  ", backbone$blocks, " blocks, ", backbone$heads, " heads, width ", backbone$width, "; positions: ",
            object@positions),
        if (nrow(object@history) > 0L) {
            best <- object@history[object@info$best_epoch, ]
            tells <- about$target_kind != "none"
            paste0("  ", if (tells) "fine-tuned" else "trained", " on ",
                if (tells) object@info$n_cells else object@input$n_cells, " cells, best epoch ", best$epoch, " of ",
                nrow(object@history), if (!is.na(best$relative)) {
                    paste0(": ", if (tells) "targets" else "hidden values", " predicted with ", number(best$relative),
                        " of the loss of guessing by ", if (about$target_kind == "classes") "shares" else "means")
                })
        },
        if (about$target_kind != "none") {
            paste0("  tells of cells: ", told_targets(about$target_kind, about$targets))
        })
    cat(lines, sep = "\n")
})

#' @rdname CapeModel-class
#' @export
setMethod("length", "CapeModel", function(x) length(x@features))
