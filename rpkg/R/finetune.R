# Models that tell something of cells.

#' Train a model to tell something of cells
#'
#' Goes on from a model of [cape_pretrain()] or [cape_load()] with what is known of some cells: of which type they are, or
#' numbers such as an age. The model gets a head, layers on the vector of a cell, and tells the same of other cells
#' by `predict(model, newdata, type = "target")`.
#'
#' Classes are learned by cross-entropy, all of them with the same weight however many cells they have
#' (`FinetuneParam(balanced = )`); numbers by their squared error, each in units of its own spread. A model that
#' tells the same already is trained on. `FinetuneParam(blocks = 0L)` trains the head alone, `blocks = 1L` the last
#' block as well, the default everything. A part of the cells (`validation`) is not trained on and tells which epoch
#' was the best; `cape_history()` has their loss, and that in units of guessing by shares of the classes or means
#' (`relative`: 1 is no better). With few cells a model without pre-training does no worse than these guesses and no
#' better than a regression on principal components: compare.
#'
#' @inheritParams cape_embed_cells
#' @inheritParams cape_pretrain
#' @param model a [CapeModel-class].
#' @param x cells, as for [cape_embed_cells()].
#' @param target what is known: a factor, texts or a logical of classes, numbers, a numeric matrix or data frame with a
#'   row for every cell; or names of columns of `colData(x)`. Where it has names they are those of the cells. `NA`
#'   is not known: such cells are left out, or the number of the cell is.
#' @param training a [FinetuneParam()].
#' @return A [CapeModel-class] that tells `target`.
#' @seealso [cape_pretrain()], [predict,CapeModel-method]
#' @examples
#' truth <- cape_simulate_dag(6, edges.per.node = 1, seed = 1)
#' x <- cape_simulate_data(truth, 200, mechanism = "linear", seed = 2)
#' kind <- ifelse(x[1, ] > 0, "high", "low")
#' model <- cape_pretrain(x[, 1:150], training = PretrainParam(epochs = 3L), seed = 4)
#' model <- cape_finetune(model, x[, 1:150], kind[1:150], FinetuneParam(epochs = 10L), seed = 5)
#' table(predict(model, x[, 151:200], type = "class"), kind[151:200])
#' @export
cape_finetune <- function(model, x, target, training = FinetuneParam(), assay.type = NULL, max.missing = 0.5,
                          seed = NULL, num.threads = 1L, verbose = interactive(), checkpoint = NULL,
                          checkpoint.every = 3) {
    check_class(model, "CapeModel", "model")
    check_class(training, "FinetuneParam", "training")
    check_flag(verbose, "verbose")
    seed <- run_seed(seed)
    target <- as_target(x, target)
    values <- model_values(model, x, assay.type, max.missing, verbose)
    silent <- !have_values(values)
    if (any(silent)) {
        target$values[silent, ] <- NA
        warning(count_of(sum(silent), "cell"), " without values: left out (", some_of(quoted(colnames(values)[silent])),
            ")", call. = FALSE)
    }
    unknown <- sum(rowSums(!is.na(target$values)) == 0) - sum(silent)
    if (unknown > 0) {
        message(count_of(unknown, "cell"), " without a target: left out.")
    }
    absent <- if (target$kind == "classes") setdiff(seq_along(target$names), target$values + 1)
    if (length(absent) > 0L) { # by missing values alone: levels without a cell are dropped before
        cape_error("'target' is ", some_of(quoted(target$names[absent])), " of cells without values alone")
    }
    if (verbose) {
        say("CAPE: ", told_targets(target$kind, target$names), " of ", ncol(values) - sum(silent) - unknown,
            " cells, seed ", seed, ".")
    }
    chosen <- c(settings(training), run_settings(seed, num.threads))
    result <- run_training(model@features, colnames(values), checkpoint, checkpoint.every, verbose,
        if (target$kind == "classes") "guessing by shares" else "guessing by means",
        function(progress, store) {
            core_model_finetune(model@model, values, target$kind, enc2utf8(target$names), target$values, chosen,
                progress, store)
        })
    initialize(model, model = result$model, history = result$history, seed = seed, versions = run_versions(),
        info = list(best_epoch = result$best_epoch, finetune = training@values, n_cells = ncol(values)))
}

told_targets <- function(kind, names) {
    paste0(length(names), if (kind == "classes") " classes" else if (length(names) == 1L) " number" else " numbers", " (",
        some_of(names), ")")
}

# What is known of the cells of x: kind, names, values (cells x 1 classes from 0, or cells x names; NA: unknown).
as_target <- function(x, target) {
    columns <- if (is(x, "SummarizedExperiment")) names(SummarizedExperiment::colData(x))
    if (is.character(target) && length(target) > 1L && length(target) != ncol(x) && all(target %in% columns)) {
        target <- SummarizedExperiment::colData(x)[target]
    }
    named <- if (is.character(target) && length(target) == 1L && ncol(x) != 1L) target else "target"
    if (is.null(target)) {
        cape_error("'target' is NULL; it must be a class or number of every cell, or name columns of colData(x)")
    }
    if (length(dim(target)) == 2L) {
        return(number_targets(x, target))
    }
    target <- per_cell(x, target, "target")
    if (is.numeric(target) && !is.factor(target)) {
        return(number_targets(x, matrix(target, dimnames = list(NULL, named))))
    }
    if (!is.factor(target) && !is.character(target) && !is.logical(target)) {
        cape_error("'target' is ", one_line(target), "; it must be classes (a factor, texts) or numbers")
    }
    classes <- droplevels(as.factor(target))
    if (nlevels(classes) < 2L) {
        cape_error("'target' has ", if (nlevels(classes) == 0L) "no class" else
            paste0("one class (", quoted(levels(classes)), ")"), "; it must have two or more")
    }
    list(kind = "classes", names = levels(classes), values = matrix(as.numeric(classes) - 1))
}

number_targets <- function(x, target) {
    numbered <- is.data.frame(target) && .row_names_info(target) <= 0L # rows without names of their own
    target <- if (is_frame(target)) frame_matrix(target, "'target'") else as.matrix(target)
    if (numbered) rownames(target) <- NULL
    if (!are_numbers(target) || ncol(target) == 0L) {
        cape_error("'target' is ", one_line(target), "; several columns must be numbers")
    }
    if (nrow(target) != ncol(x)) {
        cape_error("'target' has ", count_of(nrow(target), "row"), "; it must have one for each of ", ncol(x), " cells")
    }
    if (is.null(colnames(target)) || anyDuplicated(colnames(target))) {
        cape_error("'target' must have a name for every column, unlike each other")
    }
    infinite <- sum(is.infinite(target))
    if (infinite > 0L) {
        cape_error("'target' has ", count_of(infinite, "infinite value"), "; numbers must be finite")
    }
    rows <- match_names(rownames(target), colnames(x), "target", "the cells of 'x'")
    values <- matrix(as.numeric(target), nrow(target))[rows, , drop = FALSE]
    values[is.nan(values)] <- NA
    list(kind = "numbers", names = colnames(target), values = values)
}

# What the model tells of cells: a matrix with a column for every class (probabilities) or number, or, with
# "class", a factor of the most probable ones. NA for cells without values.
predict_target <- function(model, values, type, run, verbose) {
    about <- core_model_describe(model@model)
    if (about$target_kind == "none") {
        cape_error("'object' tells nothing of cells; cape_finetune() trains a model to, and 'type' is ", quoted(type))
    }
    if (type == "class" && about$target_kind != "classes") {
        cape_error("'type' is \"class\", and the model tells numbers (", some_of(quoted(about$targets)),
            "); ask for type = \"target\"")
    }
    speaks <- have_values(values)
    out <- matrix(NA_real_, ncol(values), length(about$targets), dimnames = list(colnames(values), about$targets))
    out[speaks, ] <- with_progress(verbose, function(progress) {
        with_features(model@features, core_model_tell(model@model, values[, speaks, drop = FALSE], run, progress),
            colnames(values)[speaks])
    })
    if (type == "target") {
        return(out)
    }
    best <- rep(NA_integer_, nrow(out))
    best[speaks] <- max.col(out[speaks, , drop = FALSE], ties.method = "first")
    stats::setNames(factor(about$targets[best], about$targets), rownames(out))
}
