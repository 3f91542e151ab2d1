#' Step II: embed a causal graph in hyperbolic space
#'
#' @param dag a [CapeDag-class], [CapeFit-class], SingleCellExperiment from [cape_fit()], a square
#'   matrix or sparse matrix of weights (the row is the cause), an igraph, a table of edges (columns
#'   `from`, `to` and, if not all are 1, `weight`; factors name features without edges by their levels),
#'   or a SelfHits as of [SingleCellExperiment::rowPair()]. Weights count by their absolute value; if
#'   any is above 1 all are divided by the largest. Features without edges have no position, but
#'   for those of a learned graph that have a partner (`coverage` of [HyperbolicParam()]): they are
#'   put at the origin, with `NA` generality. Along every edge that lies on no cycle the cause is put
#'   nearer the origin than its effect; cycles are allowed, with a warning that counts the edges that are not in order.
#' @param param a [HyperbolicParam()].
#' @inheritParams cape_fit
#' @param ... further arguments: `num.threads`, `verbose`, `checkpoint` and `checkpoint.every`, as of [cape_fit()].
#' @return A [CapeEmbedding-class].
#' @seealso [cape_angles()] for Step III, [cape_plot_poincare()]
#' @examples
#' chain <- matrix(0, 4, 4, dimnames = list(letters[1:4], letters[1:4]))
#' chain[cbind(1:3, 2:4)] <- 0.8
#' embedding <- cape_embed_dag(chain, HyperbolicParam(dims = 8L), seed = 1)
#' cape_generality(embedding)
#' @name cape_embed_dag
#' @aliases cape_embed_dag,ANY-method cape_embed_dag,SingleCellExperiment-method
NULL

#' @rdname cape_embed_dag
#' @export
setGeneric("cape_embed_dag", function(dag, ...) standardGeneric("cape_embed_dag"))

#' @rdname cape_embed_dag
#' @export
setMethod("cape_embed_dag", "ANY", function(dag, param = HyperbolicParam(), seed = NULL, ...) {
    embed_dag(dag, param, seed, ...)
})

#' @rdname cape_embed_dag
#' @export
setMethod("cape_embed_dag", "SingleCellExperiment", function(dag, ..., altexp = NULL) {
    if (!is.null(altexp)) {
        dag <- alternative(dag, altexp)
    }
    callNextMethod(dag, ...)
})

embed_dag <- function(dag, param, seed, num.threads = 1L, verbose = interactive(), checkpoint = NULL,
                      checkpoint.every = 3) {
    if (is(param, "HyperbolicParam")) param <- updateObject(param)
    check_class(param, "HyperbolicParam", "param")
    check_flag(verbose, "verbose")
    dag <- as_dag(dag, "dag")
    seed <- run_seed(seed)
    chosen <- c(settings(param), run_settings(seed, num.threads))
    edges <- if (param@values$coverage == "support") covered_edges(dag) else edge_table(dag)
    result <- with_checkpoint(checkpoint, checkpoint.every, function(store) {
        with_progress(verbose, function(progress) {
            with_features(dag@features, core_embed(length(dag@features), edges$from, edges$to, edges$weight,
                chosen, progress, store))
        })
    })
    if (!dag@info$acyclic) {
        result$warnings <- paste0("the graph has a cycle: ",
            if (length(result$warnings) > 0L) result$warnings
            else "on it, no cause can be nearer the origin than its effect",
            "; cape_prune(dag, 0) cuts the weakest edges of cycles")
    }
    new_embedding(result, dag@features, param, seed)
}

new_embedding <- function(result, features, param, seed) {
    for (text in name_features(r_names(as.character(result$warnings)), features)) {
        warning(text, call. = FALSE)
    }
    dimnames(result$poincare) <- list(features, paste0("e", seq_len(ncol(result$poincare))))
    dimnames(result$hyperboloid) <- list(features, paste0("p", seq_len(ncol(result$hyperboloid)) - 1L))
    named <- function(x) {
        names(x) <- features
        x
    }
    # Features of which nothing was embedded lie exactly at the origin and are neither general nor specific.
    alone <- result$radius == 0
    result$generality[alone] <- NA
    result$radius[alone] <- NA
    new("CapeEmbedding",
        features = features, hyperboloid = result$hyperboloid, poincare = result$poincare,
        generality = named(result$generality), radius = named(result$radius),
        pagerank = named(result$pagerank), info = result$info,
        history = history_table(result$history,
            c("epoch", "loss", "contrastive", "ranking", "generality")),
        param = param, seed = seed)
}
