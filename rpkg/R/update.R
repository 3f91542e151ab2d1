# Objects that earlier versions saved.

#' Objects of earlier versions
#'
#' `updateObject()` gives an object that was saved by an earlier version what it lacks, with the meaning that its
#' absence had: no support, no partners, no fits to parts of the cells, no limit on false edges. Printing, accessors and functions
#' that take such an object do so by themselves.
#'
#' @param object a [CapeDag-class], a [CapeFit-class], a [DagParam-class] or a [HyperbolicParam-class].
#' @param ... not used.
#' @param verbose not used.
#' @return The object, of the present form. One that is of this form already comes back as it is.
#' @examples
#' dag <- cape_simulate_dag(5, seed = 1)
#' identical(updateObject(dag), dag)
#' @name updateObject
#' @aliases updateObject,CapeDag-method updateObject,CapeFit-method updateObject,DagParam-method
#'   updateObject,HyperbolicParam-method
#' @importFrom BiocGenerics updateObject
NULL

#' @rdname updateObject
#' @export
setMethod("updateObject", "CapeDag", function(object, ..., verbose = FALSE) {
    for (name in c("support", "partners", "bag.share")) {
        if (!.hasSlot(object, name)) {
            slot(object, name, check = FALSE) <- new("dgCMatrix")
        }
    }
    lacking <- list(n_bags = 0L, false_discovery_rate = NA_real_, n_tested_pairs = NA_real_,
        rising_variance = NA_real_, rising_variance_sd = NA_real_)
    object@info <- c(object@info, lacking[setdiff(names(lacking), names(object@info))])
    if (!is.null(object@param)) {
        object@param <- updateObject(object@param)
    }
    object
})

#' @rdname updateObject
#' @export
setMethod("updateObject", "CapeFit", function(object, ..., verbose = FALSE) {
    object@dag <- updateObject(object@dag)
    object@embedding@param <- updateObject(object@embedding@param)
    object
})

#' @rdname updateObject
#' @export
setMethod("updateObject", "DagParam", function(object, ..., verbose = FALSE) {
    with_lacking(object, list(bags = 0L, refine.fdr = 1))
})

#' @rdname updateObject
#' @export
setMethod("updateObject", "HyperbolicParam", function(object, ..., verbose = FALSE) {
    with_lacking(object, list(coverage = "edges"))
})

# Parameters with the values that they lack.
with_lacking <- function(param, lacking) {
    new_names <- setdiff(names(lacking), names(param@values))
    if (length(new_names) > 0L) {
        param@values <- c(param@values, lacking[new_names])[names(formals(class(param)))]
    }
    param
}
