# Classes. Everything inside is plain R data: saveRDS() and readRDS() just work.

methods::setOldClass("igraph")

#' Settings of the three steps
#'
#' A parameter object holds the settings of one step and checks them when it is made. `as.list()`
#' gives them as a list; printing marks those that are not at their default.
#'
#' @slot values a named list: the arguments of the constructor.
#' @return A parameter object, of the class that its constructor has. `show()` returns nothing, invisibly.
#' @seealso [DagParam()], [HyperbolicParam()], [RotaryParam()], [cape_defaults()]
#' @name CapeParam-class
#' @aliases CapeParam-class DagParam-class HyperbolicParam-class RotaryParam-class
#' @exportClass CapeParam
#' @exportClass DagParam
#' @exportClass HyperbolicParam
#' @exportClass RotaryParam
setClass("CapeParam", representation("VIRTUAL", values = "list"))
setClass("DagParam", contains = "CapeParam")
setClass("HyperbolicParam", contains = "CapeParam")
setClass("RotaryParam", contains = "CapeParam")

#' @rdname BackboneParam
#' @aliases BackboneParam-class PretrainParam-class FinetuneParam-class
#' @slot values a named list of all settings.
#' @exportClass BackboneParam
#' @exportClass PretrainParam
#' @exportClass FinetuneParam
setClass("BackboneParam", contains = "CapeParam")
setClass("PretrainParam", contains = "CapeParam")
setClass("FinetuneParam", contains = "CapeParam")

#' @rdname cape_knowledge
#' @slot values a named list: the arguments of [cape_knowledge()], in a standard form.
#' @exportClass CapeKnowledge
setClass("CapeKnowledge", representation(values = "list"))

setClassUnion("DagParamOrNULL", c("DagParam", "NULL"))

#' A weighted causal graph
#'
#' What Step I learns ([cape_learn_dag()]), what is simulated ([cape_simulate_dag()]), or a graph that
#' you bring: `as(adjacency, "CapeDag")` for a square matrix or an igraph. `A[m, n]` is the weight of
#' m -> n: the row is the cause.
#'
#' @slot features names of the nodes.
#' @slot adjacency a dgCMatrix: the graph, after pruning, with signed weights.
#' @slot weights a dgCMatrix: the weights before pruning (norms, without sign, for `sem = "mlp"`).
#' @slot sign a dgCMatrix of -1, 0 and 1: the direction in which the effect moves with the cause; 0
#'   where it is not known.
#' @slot statistic a dgCMatrix: t statistics of the refinement; 0 x 0 if not refined.
#' @slot support a dgCMatrix: how much speaks for each ordered pair, see [cape_support()]; 0 x 0 if not learned.
#' @slot partners a dgCMatrix: in the column of every feature that has one above noise its partner, the feature
#'   that it has most to do with, see `coverage` of [HyperbolicParam()]; 0 x 0 if not learned.
#' @slot bag.share a dgCMatrix: of the fits to parts of the cells, the share that found the edge; 0 x 0 if
#'   there were none.
#' @slot order a topological order: features, causes first; empty if there is a cycle.
#' @slot history a DataFrame with a row for every epoch.
#' @slot scaling a DataFrame of what was subtracted from every feature (`center`) and then divided into
#'   it (`scale`) before learning.
#' @slot constant features without variance, which have no edges.
#' @slot warnings what the core had to say about the fit.
#' @slot info a list: `learned`, `acyclic`, `converged`, `refined`, `h`, `lambda`, `threshold`,
#'   `effective_threshold`, `n_removed_for_acyclicity`; `n_bags`, the number of fits to parts of the cells whose
#'   mean the weights are (0: one fit to all cells); and, of the whole graph as it was refined, else `NA`,
#'   `false_discovery_rate`, the share of its edges that is expected to join what is not joined, one way or the
#'   other, and `n_tested_pairs`, the number of pairs of features that this allows for; and, of the edges as they
#'   were learned, else `NA`, `rising_variance`, the share of those from the feature of less variance, as it came,
#'   to that of more, and `rising_variance_sd`, its standard deviation where the order of the variances is a
#'   random one (its mean is then 1/2; both are 0 without edges).
#' @slot param the [DagParam()] that was used, or NULL.
#' @slot seed the seed that was used, or NA.
#' @return A `CapeDag`. `length()` is the number of features, `dim()` that number twice, `dimnames()` a list of
#'   their names, twice; `show()` returns nothing, invisibly.
#' @section Methods:
#' `show()`, `summary()`, `length()` and `dim()` (numbers of features), `dimnames()`,
#' `as(x, "igraph")` (see [conversions]), `as(x, "dgCMatrix")`.
#' @aliases coerce,CapeDag,igraph-method coerce,CapeDag,dgCMatrix-method coerce,matrix,CapeDag-method
#'   coerce,Matrix,CapeDag-method coerce,igraph,CapeDag-method coerce,CapeFit,igraph-method
#' @examples
#' chain <- matrix(0, 3, 3, dimnames = list(letters[1:3], letters[1:3]))
#' chain["a", "b"] <- 0.9
#' chain["b", "c"] <- -0.8
#' as(chain, "CapeDag")
#' @exportClass CapeDag
setClass("CapeDag", representation(
    features = "character", adjacency = "dgCMatrix", weights = "dgCMatrix", sign = "dgCMatrix",
    statistic = "dgCMatrix", support = "dgCMatrix", partners = "dgCMatrix", bag.share = "dgCMatrix",
    order = "character", history = "DataFrame", scaling = "DataFrame", constant = "character", warnings = "character",
    info = "list", param = "DagParamOrNULL", seed = "integer"
))

setValidity("CapeDag", function(object) {
    n <- length(object@features)
    square <- function(x) identical(dim(x), c(n, n))
    none_or_square <- function(x) length(x) == 0L || square(x)
    c(
        if (!square(object@adjacency)) "'adjacency' is not features x features",
        if (!square(object@weights)) "'weights' is not features x features",
        if (!square(object@sign)) "'sign' is not features x features",
        if (!none_or_square(object@statistic)) "'statistic' is neither empty nor features x features",
        if (!none_or_square(object@support)) "'support' is neither empty nor features x features",
        if (!none_or_square(object@partners)) "'partners' is neither empty nor features x features",
        if (!none_or_square(object@bag.share)) "'bag.share' is neither empty nor features x features",
        if (!all(validEnc(object@features))) {
            paste0("'features' has names that are not valid in their encoding: ",
                some_of(quoted(iconv(object@features[!validEnc(object@features)], "latin1", "ASCII", "byte"))))
        },
        if (anyDuplicated(object@features)) "'features' are not unique"
    )
})

#' Features as points of hyperbolic space
#'
#' What Step II makes of a graph ([cape_embed_dag()]): points of the hyperboloid, and the same points in
#' the Poincaré ball. Near points are causally close, points near the origin causally general.
#'
#' @slot features names of the features.
#' @slot hyperboloid,poincare matrices with a row for every feature and d + 1 and d columns.
#' @slot generality 1 - |e|, e the point in the ball; `NA` for features that have neither an edge nor a partner
#'   beside which they were put: they have no place in the causal order and lie at the origin.
#' @slot radius hyperbolic distance to the origin: causal specificity; `NA` as above.
#' @slot pagerank stationary probability of the walk from effects to causes.
#' @slot history a DataFrame with a row for every epoch.
#' @slot info a list: `converged`, `stopped_early` (on a plateau, before the last epoch), `n_clamped`,
#'   `n_out_of_order` (edges whose cause is not nearer the origin than their effect) and, where negatives were drawn, `truncated_mass`, the part of the targets that they stand for.
#' @slot param,seed the settings and the seed that were used.
#' @return A `CapeEmbedding`. `show()` returns nothing, invisibly.
#' @exportClass CapeEmbedding
setClass("CapeEmbedding", representation(
    features = "character", hyperboloid = "matrix", poincare = "matrix", generality = "numeric",
    radius = "numeric", pagerank = "numeric", history = "DataFrame", info = "list",
    param = "HyperbolicParam", seed = "integer"
))

#' The result of a run
#'
#' What [cape_calculate()] returns and [cape_fit()] stores in the metadata: the graph, the embedding,
#' the angles, and the record of how they came about. Holds plain R data, so that it can be saved with
#' [saveRDS()] and read in any session.
#'
#' @slot dag a [CapeDag-class].
#' @slot embedding a [CapeEmbedding-class].
#' @slot angles a matrix, features x d: the rotary angles.
#' @slot rotary the [RotaryParam()] that was used.
#' @slot rows rows of the input that the features are.
#' @slot input a list: `n_features`, `n_cells` of the input, the names of the cells that counted for nothing
#'   (`empty`), `assay`, `transformation`.
#' @slot seed the seed of the run.
#' @slot versions versions of the package and the core, the core's build id and its BLAS kernel.
#' @return A `CapeFit`. `length()` is the number of features, `dimnames()` a list of their names; `show()`
#'   returns nothing, invisibly.
#' @section Methods:
#' `show()`, `summary()`, `length()` (number of features), `dimnames()`, `as(x, "igraph")`.
#' @exportClass CapeFit
setClass("CapeFit", representation(
    dag = "CapeDag", embedding = "CapeEmbedding", angles = "matrix", rotary = "RotaryParam",
    rows = "integer", input = "list", seed = "integer", versions = "list"
))

#' A transformer over features
#'
#' What [cape_pretrain()] returns: a model that was trained to predict hidden values, and the record of how. Holds
#' plain R data, so that it can be saved with [saveRDS()]; [cape_save()] writes the file that other programs read.
#'
#' @slot model the bytes of a safetensors file: parameters, positions, options and names of the features.
#' @slot features names of the features.
#' @slot positions what stands in for positions.
#' @slot backbone,training the [BackboneParam()] and [PretrainParam()] that were used; `training` has no values for
#'   a model that was loaded.
#' @slot history a DataFrame with a row for every epoch of the last training: `loss`, `validation` and `relative`, the
#'   loss of the validation cells over that of guessing by means (or shares of classes).
#' @slot input a list: `assay` and `transformation` of the values, `n_cells`.
#' @slot info a list: `best_epoch`; of a fine-tuned model also `finetune`, the settings, and `n_cells`.
#' @slot seed the seed that was used, or NA.
#' @slot versions versions of the package and the core.
#' @return A `CapeModel`. `length()` is the number of features; `show()` returns nothing, invisibly.
#' @exportClass CapeModel
setClass("CapeModel", representation(
    model = "raw", features = "character", positions = "character", backbone = "BackboneParam",
    training = "list", history = "DataFrame", input = "list", info = "list", seed = "integer", versions = "list"
))
