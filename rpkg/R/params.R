# A setting's key in the core's registry is the step's prefix and the argument's name with
# underscores: DagParam(batch.size) is "dag.batch_size".
settings <- function(param) {
    prefix <- switch(class(param)[1L], DagParam = "dag.", HyperbolicParam = "embed.",
        RotaryParam = "rotary.", BackboneParam = "model.", PretrainParam = "pretrain.",
        FinetuneParam = "finetune.")
    values <- param@values
    refine <- values[["refine"]]
    if (!is.null(refine)) {
        values[["refine"]] <- if (is.na(refine)) "automatic" else if (refine) "always" else "never"
    }
    settings_of(prefix, values)
}

settings_of <- function(prefix, values) {
    text <- vapply(names(values), function(name) setting_text(values[[name]], name), "")
    names(text) <- paste0(prefix, gsub(".", "_", names(values), fixed = TRUE))
    text
}

# NA asks the core for its automatic choice: -1 for integers, NaN for doubles.
setting_text <- function(value, name) {
    if (!is.atomic(value) || length(value) != 1L) {
        cape_error("'", name, "' is ", one_line(value), "; it must be a single value")
    }
    if (is.object(value)) { # a factor's code, a date's days and the bits of integer64 are not the number meant
        cape_error("'", name, "' is an object of class ", class(value)[1L], "; it must be a plain value")
    }
    if (is.character(value)) {
        value
    } else if (is.logical(value)) {
        if (is.na(value)) "nan" else if (value) "true" else "false"
    } else if (is.integer(value)) {
        if (is.na(value)) "-1" else as.character(value)
    } else if (is.numeric(value)) {
        if (is.na(value)) "nan" else sprintf("%.17g", value)
    } else {
        cape_error("'", name, "' is ", one_line(value), "; it must be a number, a flag or a string")
    }
}

# NA is of the type of the argument: an automatic choice may be asked for as NA, whatever NA stands for it.
new_param <- function(class, values) {
    for (name in names(values)) {
        default <- formals(class)[[name]]
        value <- values[[name]]
        if (is.atomic(value) && !is.object(value) && length(value) == 1L && is.na(value) && is.numeric(default)) {
            values[[name]] <- as(NA, typeof(default))
        }
    }
    new(class, values = values)
}

# The names are the constructor's arguments, text stands for choices alone, and the core takes the values.
setValidity("CapeParam", function(object) {
    values <- object@values
    if (class(object) %in% c("BackboneParam", "PretrainParam", "FinetuneParam")) { # whose defaults the core has
        core_check_options(settings(object))
        return(TRUE)
    }
    arguments <- formals(class(object))
    if (!identical(sort(names(values)), sort(names(arguments)))) {
        wrong <- c(setdiff(names(values), names(arguments)), setdiff(names(arguments), names(values)))
        return(paste0("'values' must have the arguments of ", class(object), "(), each once; see ",
            some_of(quoted(wrong))))
    }
    for (name in names(values)) {
        default <- eval(arguments[[name]])
        value <- values[[name]]
        given <- if (is.atomic(value) && length(value) == 1L && is.na(value)) is.na(default[1L])
            else if (is.character(value)) is.character(default)
            else !(is.logical(value) && is.numeric(default))
        if (!given) {
            cape_error("'", name, "' is ", one_line(value), "; it must be ",
                if (is.numeric(default)) "a number" else if (is.character(default)) "text" else "a flag")
        }
    }
    core_check_options(settings(object))
    TRUE
})

# The first of `choices` if the argument was not given.
one_of <- function(value, choices, name) {
    if (identical(value, choices)) {
        return(choices[1L])
    }
    if (!is.character(value) || length(value) != 1L || !value %in% choices) {
        cape_error("'", name, "' is ", one_line(value), "; it must be one of ",
            paste(dQuote(choices, FALSE), collapse = ", "))
    }
    value
}

#' Settings of Step I, learning the graph
#'
#' The defaults are those of the core's registry, [cape_defaults()]; `NA` means that the core chooses.
#'
#' @param sem the structural equation model. `"mlp"`: every feature is a small neural network of its
#'   causes, gated edge by edge; weights are norms, not effects per unit. `"linear"`: for linear data.
#'   `"paper"`: one transformation shared by all features, as in the paper, with its scale fixed.
#'   `"literal"`: the paper's objective word for word, which collapses to the empty graph and is kept
#'   to show that it does.
#' @param refine whether the edges are decided by held-out regressions of every feature on its possible
#'   causes and, with up to 100 features, their order too. `NA`: for up to 5,000 varying features with
#'   `sem = "mlp"`, and with `sem = "linear"` unless standardized. Fits with perturbed or weighted
#'   cells are not refined: `NA` leaves it out with a warning, `TRUE` is an error.
#' @param standardize scale features to unit variance and let their noise variances differ. Features are
#'   always centred. Without scaling, the order that raw variances imply is used: right when noise
#'   variances are alike, misleading when units are arbitrary. So printing such a graph says how many of its edges
#'   run from less to more variance, beside what random orders have, and a fit warns where nine in ten do so, or the
#'   other way round, and one in a hundred random orders at most would: directions then say no more than the
#'   variances do, which are right in simulations of equal noise and need not be for counts or arbitrary units. A
#'   standardized fit of the same cells tells which of them stand without. Cells of two perturbation screens do not
#'   decide which units are better (docs/method.md of the sources, *Perturbed cells as the truth*). The directions of linear relations with
#'   Gaussian noise of unknown variance cannot be identified by any method.
#' @param lambda weight of the L1 penalty on the graph: more gives fewer edges. `NA`: 1 for `"literal"`,
#'   else the larger of 0.45 sqrt(log(features) / cells) and 0.02 (`"mlp"`) or 0.05 (`"linear"`,
#'   `"paper"`), of the cells of one of the `bags`. With few cells every pair has a factor of its own, between
#'   0.3 and 4, by what its features have to do with each other.
#' @param threshold edges with an absolute weight of at most this are pruned; see [cape_prune()] for
#'   other values without another fit. Not used where the graph is refined. `NA`: 0.2 or, where `refine` is
#'   `NA` and there are more features than that refines, the one of [cape_suggest_threshold()].
#' @param epochs passes over the cells.
#' @param constraint how acyclicity is measured: `"expm"` (the paper's) or `"logdet"`.
#' @param missing what to do with `NA`: `"fail"`, or `"mask"`, which draws missing values from their
#'   distribution given the rest of their cell, by chained equations, before the graph is learned; an edge is
#'   tested on the cells where both its ends are known. This assumes that values are missing at random given
#'   those that are there: it may depend on values that are known, such as the batch or another feature, but
#'   not on the missing value itself. (Values below a limit of detection are not missing at random.) What is
#'   missing then costs edges, and brings few (docs/method.md of the sources has figures). One draw is used, so that
#'   tests do not know how uncertain drawn values are; the time that is told before a fit leaves the drawing out.
#'   Infinite values are always an error.
#' @param l2 ridge penalty on the networks' weights.
#' @param candidates features that may be causes of a feature, chosen by association before learning
#'   (`sem = "mlp"`); time and memory of learning then grow with features times this, which is for
#'   thousands of features. `NA`: all.
#' @param rank 0: a weight for every edge. Above: the matrix of weights is a product UV' with U and V of so
#'   many columns each (40 in the paper), whose cost grows with features times this. For graphs in which
#'   few features are causes; sparse graphs are of high rank in general and lose edges. At most the number
#'   of features that vary; needs `sem = "linear"`, `constraint = "expm"`, `candidates = NA` and no
#'   knowledge of the graph.
#' @param hidden units of a feature's network.
#' @param precision numbers that training computes with, `"double"` or `"float"` (`sem = "mlp"` only).
#'   `"automatic"`: `"float"` where it can be.
#' @param batch.size,learning.rate cells in a step of the optimiser, and its peak learning rate.
#' @param rho.growth,rho.interval,rho.max,h.tolerance the augmented Lagrangian: factor by which the
#'   penalty grows, epochs between its updates (`NA`: a twentieth of all), its largest value, and the
#'   acyclicity at which the fit has converged (`NA`: 1e-5 for every varying feature, at least 1e-4).
#' @param bags fits to 80 % of the cells each, with 30 % of the epochs, whose mean is taken; 0: one fit to all
#'   cells. `NA`: 10 where there are up to 500 features and less than twice as many cells, else 0. See
#'   [cape_support()].
#' @param refine.fdr the refined graph loses its least certain edges until at most this share of the rest is
#'   expected to join what is not joined, one way or the other, given the number of pairs of features; 1: it
#'   loses none. Edges that `knowledge` requires stay. That an edge runs the right way is not tested here.
#' @param refine.t,refine.window,refine.hidden,refine.epochs the refinement: t statistic at which a
#'   cause stays (`NA`: 3.04 - 200 / cells, but at least 1), positions tried to either side in the search for
#'   the order (`NA`: none with more than 100 features or less than twice as many cells, else all with `sem = "linear"` and 3 with `"mlp"`),
#'   and the units and epochs of its regressions, which with `sem = "linear"` are least squares.
#' @return An object of class `DagParam`.
#' @seealso [cape_learn_dag()], [cape_fit()]
#' @examples
#' DagParam()
#' DagParam(sem = "linear", threshold = 0.3)
#' @export
DagParam <- function(sem = c("mlp", "linear", "paper", "literal"), refine = NA, standardize = FALSE,
                     lambda = NA_real_, threshold = NA_real_, epochs = 100L,
                     constraint = c("expm", "logdet"), missing = c("fail", "mask"), l2 = 0.002,
                     candidates = NA_integer_, rank = 0L, hidden = 10L,
                     precision = c("automatic", "double", "float"), batch.size = 128L, learning.rate = 0.01,
                     rho.growth = 2.5, rho.interval = NA_integer_, rho.max = 1e16, h.tolerance = NA_real_,
                     bags = NA_integer_, refine.t = NA_real_, refine.fdr = 0.1, refine.window = NA_integer_,
                     refine.hidden = 32L, refine.epochs = 100L) {
    if (!is.logical(refine) || length(refine) != 1L) {
        cape_error("'refine' is ", one_line(refine), "; it must be TRUE, FALSE or NA")
    }
    new_param("DagParam", list(
        sem = one_of(sem, c("mlp", "linear", "paper", "literal"), "sem"),
        refine = refine,
        standardize = check_flag(standardize, "standardize"), lambda = lambda,
        threshold = threshold, epochs = epochs,
        constraint = one_of(constraint, c("expm", "logdet"), "constraint"),
        missing = one_of(missing, c("fail", "mask"), "missing"), l2 = l2,
        candidates = candidates, rank = rank, hidden = hidden,
        precision = one_of(precision, c("automatic", "double", "float"), "precision"),
        batch.size = batch.size,
        learning.rate = learning.rate, rho.growth = rho.growth,
        rho.interval = rho.interval, rho.max = rho.max, h.tolerance = h.tolerance,
        bags = bags, refine.t = refine.t, refine.fdr = refine.fdr,
        refine.window = refine.window, refine.hidden = refine.hidden,
        refine.epochs = refine.epochs
    ))
}

#' Settings of Step II, the hyperbolic embedding
#'
#' The defaults are those of the core's registry, [cape_defaults()]; `NA` means that the core chooses.
#'
#' @param dims dimension d of the hyperbolic space. Attention that rotates by all of it has heads of
#'   2 d features.
#' @param objective `"soft"`: soft positives over all path lengths, radii ranked along edges, and a
#'   small PageRank penalty. `"literal"`: the paper's loss, which puts general features outside.
#'   `"effect"`, `"symmetric"`: its anchor turned round, or both ways.
#' @param coverage of a learned graph, whether a feature without edges is put at the origin, where it has no
#'   position (`"edges"`), or beside its partner, the feature that it has most to do with, if that is above noise
#'   (`"support"`): farther out than its partner, on an edge that is weaker than all of the graph. The partner is
#'   the feature whose ranks, and their squares, explain most of those of the feature (or the other way round).
#'   Above noise means that of all features with a partner a tenth at most are expected to have none.
#' @param optimizer `"radam"` (Riemannian Adam) or `"rsgd"` (Riemannian gradient descent).
#' @param space `"hyperbolic"`, or `"euclidean"` for the ablation in flat space (see [cape_ablate()]).
#' @param hop.cost an edge of weight w has length `hop.cost - log(w)`.
#' @param soft.temperature,temperature temperatures of the targets and of the distances; `NA`: for
#'   `"soft"`, 0.25 with 8 or more dimensions, else 0.5; 1 for the others.
#' @param rank.weight,rank.margin,rank.temperature the ranking of radii along edges.
#' @param generality.weight weight of the PageRank penalty; `NA`: 0.01 for `"soft"`, else 0.1.
#' @param level.weight,level.spread the term that draws radii to the features' ranks by PageRank, so that
#'   they can be compared across the graph, and the difference of radius that it aims at between the
#'   most and the least general feature; `NA`: 0.15 with 8 or more dimensions, else 1.
#' @param restart restart probability of the PageRank.
#' @param k.hop neighbourhood of the objectives other than `"soft"`.
#' @param epochs most steps; `NA`: 500 for `"soft"`, else 1000.
#' @param tolerance on a plateau, when the mean loss of 20 epochs is below that of the 20 before by less than
#'   this part of the whole fall so far, the step size is cut to a quarter, and below 2 % of the first the
#'   descent ends; 0: never. Not looked at where negatives are drawn.
#' @param learning.rate step size, which falls along a cosine; `NA`: 0.1 for `"soft"`, else 0.01, and for
#'   `"rsgd"` that times the number of features.
#' @param negatives features drawn at every epoch to stand for all that are not among the nearest; 0: all
#'   pairs count; `NA`: 0 up to 5000 features, else 512.
#' @param positives where negatives are drawn: how many nearest features count exactly.
#' @param max.radius points are kept within this distance of the origin.
#' @param start where the descent starts: `"scaling"`, classical scaling of the distances in the graph
#'   (among landmarks where negatives are drawn), or `"random"`, about the origin. `"automatic"`:
#'   `"scaling"` for `"soft"`, else `"random"`.
#' @param burn.in epochs at the beginning with a tenth of the step size; `NA`: 10 for `"rsgd"`, else 0.
#' @return An object of class `HyperbolicParam`.
#' @seealso [cape_embed_dag()], [cape_fit()]
#' @examples
#' HyperbolicParam(dims = 16L)
#' @export
HyperbolicParam <- function(dims = 64L, objective = c("soft", "literal", "effect", "symmetric"),
                            coverage = c("support", "edges"), optimizer = c("radam", "rsgd"),
                            space = c("hyperbolic", "euclidean"), hop.cost = 2, soft.temperature = 3,
                            temperature = NA_real_, rank.weight = 1, rank.margin = 0.02,
                            rank.temperature = 0.01, level.weight = 1, level.spread = NA_real_,
                            generality.weight = NA_real_, restart = 0.15,
                            k.hop = 2L, epochs = NA_integer_, tolerance = 1e-3, learning.rate = NA_real_,
                            negatives = NA_integer_, positives = 64L, max.radius = 16,
                            start = c("automatic", "scaling", "random"), burn.in = NA_integer_) {
    new_param("HyperbolicParam", list(
        dims = dims,
        objective = one_of(objective, c("soft", "literal", "effect", "symmetric"), "objective"),
        coverage = one_of(coverage, c("support", "edges"), "coverage"),
        optimizer = one_of(optimizer, c("radam", "rsgd"), "optimizer"),
        space = one_of(space, c("hyperbolic", "euclidean"), "space"), hop.cost = hop.cost,
        soft.temperature = soft.temperature, temperature = temperature, rank.weight = rank.weight,
        rank.margin = rank.margin, rank.temperature = rank.temperature,
        level.weight = level.weight, level.spread = level.spread,
        generality.weight = generality.weight, restart = restart, k.hop = k.hop,
        epochs = epochs,
        tolerance = tolerance, learning.rate = learning.rate,
        negatives = negatives,
        positives = positives, max.radius = max.radius,
        start = one_of(start, c("automatic", "scaling", "random"), "start"),
        burn.in = burn.in
    ))
}

#' Settings of Step III, the rotary angles
#'
#' @param scale angles are `scale` times the coordinates in the Poincaré ball. Up to pi/4 the bounds of
#'   the attention score hold.
#' @return An object of class `RotaryParam`.
#' @seealso [cape_angles()], [cape_fit()]
#' @examples
#' RotaryParam()
#' @export
RotaryParam <- function(scale = pi / 4) {
    new_param("RotaryParam", list(scale = scale))
}

#' @export
as.list.CapeParam <- function(x, ...) x@values

#' @rdname CapeParam-class
#' @param object a parameter object.
#' @importMethodsFrom methods show
#' @export
setMethod("show", "CapeParam", function(object) {
    default <- do.call(class(object), list())@values
    cat(class(object), " (* not the default)\n", sep = "")
    for (name in names(object@values)) {
        value <- object@values[[name]]
        text <- if (is.character(value)) value
            else if (is.na(value)) "automatic"
            else format(value, digits = 7L)
        changed <- !isTRUE(all.equal(value, default[[name]], tolerance = 0))
        cat(sprintf(" %s %-18s %s\n", if (changed) "*" else " ", name, text))
    }
})
