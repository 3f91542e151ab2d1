#' Simulate a causal graph
#'
#' @param n number of features.
#' @param model `"barabasi_albert"` (scale-free) or `"erdos_renyi"`; edges are turned along a random
#'   order of the features.
#' @param edges.per.node edges that every new feature brings (Barabási-Albert), or their mean
#'   (Erdős-Rényi); at most n - 1.
#' @param min.weight,max.weight range of the absolute weights.
#' @param signed.weights whether weights have random signs.
#' @param features names of the features.
#' @inheritParams cape_fit
#' @return A [CapeDag-class].
#' @seealso [cape_simulate_data()]
#' @examples
#' cape_simulate_dag(10, edges.per.node = 1, seed = 1)
#' @export
cape_simulate_dag <- function(n, model = c("barabasi_albert", "erdos_renyi"), edges.per.node = min(2, max(1, n - 1)),
                              min.weight = 0.5, max.weight = 2, signed.weights = TRUE, seed = NULL,
                              features = paste0("gene", seq_len(n))) {
    check_number(n, "n", 1, .Machine$integer.max, integer = TRUE)
    check_number(edges.per.node, "edges.per.node", 0)
    if (n > 1 && edges.per.node > n - 1) {
        cape_error("'edges.per.node' is ", edges.per.node, "; with ", n, " features it must be at most ", n - 1)
    }
    check_number(min.weight, "min.weight", 0)
    check_number(max.weight, "max.weight", 0)
    features <- as.character(features)
    if (length(features) != n || anyNA(features) || anyDuplicated(features) > 0L) {
        cape_error("'features' has ", length(features), " names; it must have ", n,
            ", different from each other and none NA")
    }
    values <- list(model = one_of(model, c("barabasi_albert", "erdos_renyi"), "model"),
        edges.per.node = edges.per.node, min.weight = min.weight, max.weight = max.weight,
        signed.weights = check_flag(signed.weights, "signed.weights"))
    seed <- run_seed(seed)
    chosen <- c(settings_of("simulate.", values), run_settings(seed, 1L))
    dag <- new_dag(core_simulate_dag(n, chosen), features)
    dag@seed <- seed
    dag
}

#' Simulate data on a causal graph
#'
#' Every feature is a function of its causes and noise.
#'
#' @param dag an acyclic [CapeDag-class], matrix (the row is the cause) or igraph.
#' @param n number of cells.
#' @param mechanism `"mlp"`: a random network of the causes; `"linear"`: the weighted sum of the causes;
#'   `"gp_additive"`: a sum of smooth random functions; `"quadratic"`: a random quadratic form;
#'   `"mim"`: tanh, cos and sin of three weighted sums of the causes.
#' @param noise `"gaussian"`, `"exponential"` or `"gumbel"`.
#' @param noise.scale its standard deviation (Gaussian) or scale.
#' @param counts whether to return counts: negative binomial around the data.
#' @param mean,dispersion of the counts: their mean, and phi in the variance mean + phi mean^2.
#' @inheritParams cape_fit
#' @return A matrix of features x cells, as an assay is; of whole numbers for counts.
#' @examples
#' dag <- cape_simulate_dag(5, seed = 1)
#' cape_simulate_data(dag, 4, seed = 2)
#' cape_simulate_data(dag, 4, counts = TRUE, seed = 2)
#' @export
cape_simulate_data <- function(dag, n, mechanism = c("mlp", "linear", "gp_additive", "quadratic", "mim"),
                               noise = c("gaussian", "exponential", "gumbel"), noise.scale = 1,
                               counts = FALSE, mean = 5, dispersion = 0.2, seed = NULL) {
    dag <- as_dag(dag, "dag")
    check_number(n, "n", 1, .Machine$integer.max, integer = TRUE)
    check_flag(counts, "counts")
    check_number(noise.scale, "noise.scale", 0)
    check_number(mean, "mean", 0)
    check_number(dispersion, "dispersion", 0)
    values <- list(
        mechanism = one_of(mechanism, c("mlp", "linear", "gp_additive", "quadratic", "mim"), "mechanism"),
        noise = one_of(noise, c("gaussian", "exponential", "gumbel"), "noise"),
        noise.scale = noise.scale)
    chosen <- c(settings_of("simulate.", values), run_settings(run_seed(seed), 1L))
    edges <- edge_table(dag)
    x <- with_features(dag@features,
        core_simulate_data(n, length(dag), edges$from, edges$to, edges$weight, chosen))
    if (counts) {
        x <- with_features(dag@features, core_simulate_counts(x, mean, dispersion, chosen))
        if (max(x) <= .Machine$integer.max) storage.mode(x) <- "integer"
    }
    x <- t(x)
    dimnames(x) <- list(dag@features, paste0("cell", seq_len(n)))
    x
}
