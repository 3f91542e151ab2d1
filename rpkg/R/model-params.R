#' Settings of a transformer and of its training
#'
#' `BackboneParam()` says what a model is built of, `PretrainParam()` how it is trained to predict hidden values,
#' `FinetuneParam()` how it is trained to tell something of cells.
#' `preset` gives the defaults: `"small"`, for a laptop, or the sizes and forms of published models (`"scgpt"`,
#' `"scbert"`, `"methylgpt"`), which take days on a CPU at their own sizes. docs/method.md of the sources, section
#' 6, says what follows which source.
#'
#' @param preset where the defaults come from.
#' @param ... settings by name: for `BackboneParam()` `width`, `heads`, `head.width`, `blocks`, `feed.forward`, `norm.order`
#'   (`"pre"`, `"post"`, `"stream"`), `activation` (`"relu"`, `"gelu"`, `"gelu_tanh"`, ...), `attention` (`"exact"`,
#'   `"linear"`, `"performer"`), `random.features`, `attention.bias`, `zeros` (whether values of 0 are tokens), `values` (`"continuous"`, `"quantile_bins"`, `"fixed_bins"`),
#'   `bins`, `value.embedding` (`"network"`, `"table"`), `hidden.value`, `embedding.norm`, `decoder.layers`, `loss`
#'   (`"square"`, `"cross_entropy"`), `angle.scale` (`"largest"`, `"literal"`), `largest.angle`,
#'   `learn.angle.factor`, `context.blocks`, `dropout`; for `PretrainParam()` `epochs`, `batch.cells`, `length`,
#'   `hidden`, `cell.weight`, `learning.rate`, `warm.up`, `weight.decay`, `clip`, `validation`, `patience`; for
#'   `FinetuneParam()` those of `PretrainParam()` but `hidden` and `cell.weight`, and `blocks` (how many of the last
#'   blocks are trained beside the head; -1: everything), `pooling` (`"cls_mean"`, `"cls"`, `"mean"`, `"max"`),
#'   `hidden.layers` of the head, `balanced` (whether classes count alike).
#'   `subset(cape_defaults(), grepl("^(model|pretrain|finetune)", key))` explains each.
#' @return An object of class `BackboneParam`, `PretrainParam` or `FinetuneParam`.
#' @seealso [cape_pretrain()], [cape_finetune()]
#' @examples
#' BackboneParam(width = 32L, blocks = 1L)
#' PretrainParam(epochs = 5L)
#' FinetuneParam(blocks = 0L)
#' @name BackboneParam
NULL

#' @rdname BackboneParam
#' @export
BackboneParam <- function(preset = c("small", "scgpt", "scbert", "methylgpt"), ...) {
    preset_param("BackboneParam", "model.", preset, list(...))
}

#' @rdname BackboneParam
#' @export
PretrainParam <- function(preset = c("small", "scgpt", "scbert", "methylgpt"), ...) {
    preset_param("PretrainParam", "pretrain.", preset, list(...))
}

#' @rdname BackboneParam
#' @export
FinetuneParam <- function(...) {
    preset_param("FinetuneParam", "finetune.", "small", list(...))
}

presets <- c("small", "scgpt", "scbert", "methylgpt")

preset_param <- function(class, prefix, preset, given) {
    values <- values_of(core_preset(one_of(preset, presets, "preset")), prefix)
    values[["positions"]] <- NULL # an argument of cape_pretrain()
    names <- names(given)
    if (length(given) > 0L && (is.null(names) || !all(nzchar(names)))) {
        cape_error(class, "() takes settings by name, as in ", class, "(", names(values)[1L], " = ",
            format(values[[1L]]), ")")
    }
    unknown <- setdiff(names, names(values))
    if (length(unknown) > 0L || anyDuplicated(names)) {
        cape_error(class, "() has no setting ", some_of(quoted(unique(c(unknown, names[duplicated(names)])))),
            ", or has it twice; it has ", paste(names(values), collapse = ", "))
    }
    for (name in names) {
        values[[name]] <- as_setting(given[[name]], values[[name]], name)
    }
    new(class, values = values)
}

# In the type of the default: 3 stands for 3L.
as_setting <- function(value, default, name) {
    setting_text(value, name) # a single plain value
    if (is.integer(default) && is.double(value) && !is.na(value) && value == round(value) &&
        abs(value) <= .Machine$integer.max) {
        value <- as.integer(value)
    }
    kind <- if (is.character(default)) "text" else if (is.logical(default)) "a flag"
        else if (is.integer(default)) "a whole number" else "a number"
    right <- !is.na(value) && if (is.character(default)) is.character(value) else if (is.logical(default))
        is.logical(value) else if (is.integer(default)) is.integer(value) else is.numeric(value)
    if (!right) {
        cape_error("'", name, "' is ", one_line(value), "; it must be ", kind)
    }
    value
}

# Values of the core's options, by the names that they have in R.
values_of <- function(options, prefix) {
    options <- options[startsWith(names(options), prefix)]
    names(options) <- gsub("_", ".", substring(names(options), nchar(prefix) + 1L), fixed = TRUE)
    options
}
