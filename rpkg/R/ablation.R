#' The paper's ablations
#'
#' Encodings of the same features with one part of the method left out, for comparisons downstream.
#'
#' @inheritParams cape_fit
#' @param x as for [cape_fit()].
#' @param variants which to make: `"full"`; `"null"`, no positions; `"no_csl"`, the graph of the strongest
#'   absolute correlations (as many pairs as are embedded of the learned graph, both ways) instead of the
#'   learned graph; `"no_hyperbolic"`, flat space and plain gradient descent; `"no_rotary"`, the
#'   coordinates in the ball, to be added to the features' vectors instead of rotating them.
#' @param ... further arguments of [cape_learn_dag()]: `assay.type`, `subset.row`, `knowledge`, `batch`,
#'   `perturbation`, `cell.weights`, `covariates`, for the learned graph, and `num.threads`.
#' @return A list of class `cape_ablation` with an element for every variant, a list of
#' * `positions`: a matrix, features x d;
#' * `use`: how attention takes it: `"rotate"` (angles), `"add"` or `"none"`;
#' * `embedding`: the [CapeEmbedding-class], or `NULL`.
#' @examples
#' truth <- cape_simulate_dag(8, seed = 1)
#' x <- cape_simulate_data(truth, 200, mechanism = "linear", seed = 2)
#' ablation <- cape_ablate(x, dag = DagParam(sem = "linear", standardize = TRUE),
#'     embed = HyperbolicParam(dims = 8L), seed = 3)
#' ablation
#' dim(ablation$no_csl$positions)
#' @export
cape_ablate <- function(x, variants = c("full", "null", "no_csl", "no_hyperbolic", "no_rotary"),
                        dag = DagParam(), embed = HyperbolicParam(), rotary = RotaryParam(), seed = NULL, ...) {
    known <- c("full", "null", "no_csl", "no_hyperbolic", "no_rotary")
    if (!is.character(variants) || length(variants) == 0L || !all(variants %in% known)) {
        cape_error("'variants' is ", one_line(variants), "; it must be some of ", paste(dQuote(known, FALSE), collapse = ", "))
    }
    check_class(embed, "HyperbolicParam", "embed")
    check_class(rotary, "RotaryParam", "rotary")
    seed <- run_seed(seed)
    further <- list(...)
    learned <- learn_dag(x, dag, seed, verbose = FALSE, ...)
    threads <- if ("num.threads" %in% names(further)) further[["num.threads"]] else 1L
    place <- function(graph, param) suppressWarnings(embed_dag(graph, param, seed, threads, verbose = FALSE))
    # Made once for the variants that differ in what is done with it.
    embedding <- if (any(c("full", "no_rotary") %in% variants)) place(learned, embed)
    n_pairs <- length((if (embed@values$coverage == "support") covered_edges(learned) else edge_table(learned))$from)
    rotated <- function(embedding) {
        list(positions = cape_angles(embedding, rotary@values$scale), use = "rotate", embedding = embedding)
    }
    out <- lapply(variants, function(variant) switch(variant,
        full = rotated(embedding),
        null = list(positions = matrix(0, length(learned), embed@values$dims,
            dimnames = list(learned@features, NULL)), use = "none", embedding = NULL),
        no_csl = rotated(place(correlation_graph(x, learned, n_pairs, dag, further[["assay.type"]],
            further[["subset.row"]], further[["batch"]]), embed)),
        no_hyperbolic = rotated(place(learned, flat_param(embed))),
        no_rotary = list(positions = cape_embedding(embedding), use = "add", embedding = embedding)))
    structure(stats::setNames(out, variants), class = "cape_ablation", graph = learned, seed = seed)
}

#' @export
print.cape_ablation <- function(x, ...) {
    cat("Ablations, seed ", attr(x, "seed"), "\n", sep = "")
    for (name in names(x)) {
        cat(sprintf("  %-14s %s: %d x %d, to %s\n", name, if (is.null(x[[name]]$embedding)) "no positions" else "positions",
            nrow(x[[name]]$positions), ncol(x[[name]]$positions), x[[name]]$use))
    }
    invisible(x)
}

flat_param <- function(embed) {
    values <- embed@values
    values$space <- "euclidean"
    values$objective <- "soft"
    values$optimizer <- "rsgd"
    new_param("HyperbolicParam", values)
}

# So many pairs, the most correlated first, as edges both ways.
# What is to be said of the input was said when the graph was learned.
correlation_graph <- function(x, learned, n_pairs, param, assay.type, subset.row, batch) {
    values <- suppressMessages(suppressWarnings(
        cape_as_input(x, assay.type, subset.row, param, FALSE, batch)))$values
    r <- abs(suppressWarnings(stats::cor(t(values), use = "pairwise.complete.obs")))
    r[is.na(r)] <- 0
    diag(r) <- 0
    n <- min(n_pairs, sum(r[upper.tri(r)] > 0))
    strongest <- utils::head(order(-r * upper.tri(r)), n)
    kept <- matrix(0, nrow(r), ncol(r), dimnames = list(learned@features, learned@features))
    kept[strongest] <- r[strongest]
    as(kept + t(kept), "CapeDag")
}

#' How settings move the embedding
#'
#' Varies one setting at a time, as in the paper's sensitivity analysis: the pruning threshold, the
#' neighbourhood k of the paper's contrastive loss, and the weight of its generality penalty. The graph
#' is learned once.
#'
#' @param x a [CapeFit-class], SingleCellExperiment from [cape_fit()], [CapeDag-class] or another graph
#'   as for [cape_embed_dag()].
#' @param tau,k,lambda values of the threshold, of `k.hop` and of `generality.weight`; `NULL`: not varied.
#'   Thresholds need a learned graph. `k` and `lambda` are those of `objective = "effect"`, the paper's
#'   loss with its anchor turned round.
#' @param embed settings of the embedding that are not varied.
#' @param true the graph to measure against; by default that of `x`, after pruning.
#' @param seed a whole number, or `NULL`.
#' @param BPPARAM a BiocParallelParam to run the fits in parallel, or `NULL`.
#' @return A data frame of class `cape_sensitivity`: `parameter`, `value`, `edges`, and the columns of
#' [cape_embedding_quality()]. `cape_plot_sensitivity()`: a ggplot.
#' @examples
#' truth <- cape_simulate_dag(10, seed = 1)
#' swept <- cape_sensitivity(truth, k = 1:2, lambda = c(0.05, 0.1), seed = 1,
#'     embed = HyperbolicParam(dims = 8L, epochs = 50L))
#' swept
#' cape_plot_sensitivity(swept)
#' @export
cape_sensitivity <- function(x, tau = NULL, k = 1:4, lambda = c(0.01, 0.05, 0.1, 0.15, 0.3),
                             embed = HyperbolicParam(), true = NULL, seed = NULL, BPPARAM = NULL) {
    dag <- as_dag(x, "x")
    check_class(embed, "HyperbolicParam", "embed")
    truth <- if (is.null(true)) NULL else as_dag(true, "true")
    if (!is.null(BPPARAM)) check_bpparam(BPPARAM)
    seed <- run_seed(seed)
    numbers <- function(values, name) {
        if (is.null(values)) return(numeric())
        if (!is_numbers(values) || !all(is.finite(values)) || (name == "k" && any(values != round(values)))) {
            cape_error("'", name, "' is ", one_line(values), "; it must hold ", if (name == "k") "whole ", "numbers")
        }
        values
    }
    runs <- rbind(data.frame(parameter = rep("tau", length(tau)), value = numbers(tau, "tau")),
        data.frame(parameter = rep("k", length(k)), value = numbers(k, "k")),
        data.frame(parameter = rep("lambda_g", length(lambda)), value = numbers(lambda, "lambda")))
    if (nrow(runs) == 0L) {
        cape_error("'tau', 'k' and 'lambda' are all empty; at least one must have a value")
    }
    # Made, and so checked, before the first fit.
    params <- lapply(seq_len(nrow(runs)), function(i) {
        values <- embed@values
        value <- runs$value[i]
        if (runs$parameter[i] == "tau") {
            check_number(value, "tau", 0)
        } else {
            values$objective <- "effect"
            if (runs$parameter[i] == "k") values$k.hop <- value else values$generality.weight <- value
        }
        new_param("HyperbolicParam", values)
    })
    one <- function(i) {
        graph <- if (runs$parameter[i] == "tau") cape_prune(dag, runs$value[i]) else dag
        embedding <- suppressWarnings(embed_dag(graph, params[[i]], seed, verbose = FALSE))
        data.frame(runs[i, ], edges = length(graph@adjacency@x),
            cape_embedding_quality(embedding, if (is.null(truth)) graph else truth))
    }
    fits <- if (is.null(BPPARAM)) {
        lapply(seq_len(nrow(runs)), one)
    } else {
        BiocParallel::bplapply(seq_len(nrow(runs)), one, BPPARAM = BPPARAM)
    }
    out <- do.call(rbind, fits)
    rownames(out) <- NULL
    structure(out, class = c("cape_sensitivity", "data.frame"))
}

#' @rdname cape_sensitivity
#' @export
cape_plot_sensitivity <- function(x) {
    check_class(x, "cape_sensitivity", "x")
    measures <- c("distance", "strength", "parents_closer", "specificity", "precision")
    long <- do.call(rbind, lapply(measures, function(m) {
        data.frame(parameter = x$parameter, value = x$value, measure = m, score = x[[m]])
    }))
    long$measure <- factor(long$measure, measures)
    long$parameter <- factor(long$parameter, c("tau", "k", "lambda_g"))
    ggplot2::ggplot(long, ggplot2::aes(.data$value, .data$score, colour = .data$measure)) +
        ggplot2::geom_line() +
        ggplot2::geom_point(size = 1.4) +
        ggplot2::facet_wrap(ggplot2::vars(.data$parameter), scales = "free_x") +
        ggplot2::scale_colour_brewer(NULL, palette = "Dark2") +
        ggplot2::labs(x = NULL, y = "what the embedding keeps of the graph") +
        property_theme()
}
