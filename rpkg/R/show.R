# Printing: what an analyst wants to know first.

number <- function(x) sprintf("%.3g", x)

# Names as columns of a line: no line breaks, and at most 40 columns of the screen.
brief_names <- function(names) format(short_names(names))

short_names <- function(names) {
    names <- gsub("[[:cntrl:]]", " ", enc2utf8(names))
    long <- nchar(names, "width", allowNA = TRUE) > 40L
    long <- !is.na(long) & long
    names[long] <- paste0(strtrim(names[long], 37L), "...")
    names
}

linked_features <- function(dag) {
    edges <- edge_table(dag)
    dag@features[sort(unique(c(edges$from, edges$to)))]
}

range_text <- function(weights) {
    sizes <- abs(weights@x[weights@x != 0])
    if (length(sizes) == 0L) "all 0" else paste(number(min(sizes)), "to", number(max(sizes)))
}

edge_lines <- function(dag, n) {
    edges <- cape_edges(dag)
    if (nrow(edges) == 0L) {
        return(character())
    }
    shown <- utils::head(edges, n)
    lines <- paste0("  ", brief_names(shown$from), " -> ", brief_names(shown$to), "  ",
        format(signif(shown$weight, 3L)))
    c("strongest edges:", lines,
        if (nrow(edges) > n) paste0("  and ", nrow(edges) - n, " more, see cape_edges()"))
}

dag_lines <- function(dag) {
    n <- length(dag)
    info <- dag@info
    n_edges <- length(dag@adjacency@x)
    density <- if (n > 1L) n_edges / (n * (n - 1) / 2) else 0
    c(
        paste0("edges: ", n_edges, " among ", count_of(n, "feature"), " (density ",
            number(100 * density), " % of ", n * (n - 1) / 2, " pairs)",
            if (!info$acyclic) ", WITH A CYCLE"),
        if (info$learned) c(
            paste0("|weights| before pruning: ", range_text(dag@weights)),
            paste0("model: ", dag@param@values$sem, ", lambda ", number(info$lambda), ", ",
                if (info$refined) "refined by held-out tests" else paste0("pruned at ",
                    number(info$threshold), ", not refined")),
            if (info$n_bags > 0L) {
                paste0("weights: mean of ", count_of(info$n_bags, "fit"), " to parts of the cells")
            },
            rate_line(info, n_edges),
            variance_line(info, n_edges, dag@param@values$standardize),
            suggestion_line(info),
            paste0("acyclicity h ", number(info$h), ": ",
                if (info$converged) "converged" else "NOT converged (try more epochs, or standardize)")
        ),
        if (info$n_removed_for_acyclicity > 0) {
            paste0("edges removed to break cycles: ", info$n_removed_for_acyclicity)
        },
        if (length(dag@constant) > 0L) {
            paste0("without variance, so without edges: ", some_of(dag@constant))
        }
    )
}

# How far the refinement is to be trusted, given how many pairs there were to test.
rate_line <- function(info, n_edges) {
    rate <- info$false_discovery_rate
    if (is.na(rate) || n_edges == 0L) {
        return(NULL)
    }
    paste0(if (rate < 0.001) "less than 0.1" else paste("at most", number(100 * rate)),
        " % of the edges are expected to join what is not joined (", sprintf("%.0f", info$n_tested_pairs),
        " pairs tested)")
}

# How far a graph of raw units follows the variances, which are those of the units.
variance_line <- function(info, n_edges, standardized) {
    if (isTRUE(standardized) || is.na(info$rising_variance) || n_edges == 0L) {
        return(NULL)
    }
    paste0("not standardized: ", number(100 * info$rising_variance), " % of the edges run from less to more ",
        "variance (random orders: 50, sd ", number(100 * info$rising_variance_sd), ")")
}

# Where the threshold is the one that the fit chose for itself.
suggestion_line <- function(info) {
    s <- info$suggestion
    if (length(s) > 0L && s[["tested"]] > 0 && s[["threshold"]] == info$threshold && !info$refined) {
        paste0("that threshold: held-out tests keep ", count_of(s[["causes"]], "cause"), " of ", s[["tested"]],
            " features; the graph differs in ", count_of(s[["differing"]], "edge"))
    }
}

# Of the features with a position: the others have no generality.
general_lines <- function(embedding, n) {
    top <- utils::head(sort(embedding@generality, decreasing = TRUE), n)
    if (length(top) == 0L) {
        return("no feature has an edge or a partner: all are at the origin, without a position")
    }
    c("most general features (generality 1 - |e|):",
        paste0("  ", brief_names(names(top)), "  ", formatC(top, digits = 3L, format = "f")))
}

# How many features have a position, and whether by the graph.
position_line <- function(fit) {
    placed <- sum(!is.na(fit@embedding@radius))
    linked <- length(linked_features(fit@dag))
    alone <- length(fit) - placed
    c(if (placed > linked) paste0("positions: ", linked, " features by their edges, ", placed - linked,
        " beside their partners (see 'coverage' of HyperbolicParam())"),
        if (alone > 0L) paste(count_of(alone, "feature"), "without a position, at the origin"))
}

radius_text <- function(embedding) {
    radius <- embedding@radius[!is.na(embedding@radius)]
    if (length(radius) == 0L) "0" else paste(number(min(radius)), "to", number(max(radius)))
}

#' @rdname CapeDag-class
#' @export
setMethod("show", "CapeDag", function(object) {
    object <- updateObject(object)
    cat("CapeDag, A[m, n] = m -> n\n")
    writeLines(c(dag_lines(object), edge_lines(object, 5L)))
})

#' @rdname CapeEmbedding-class
#' @param object a `CapeEmbedding`.
#' @export
setMethod("show", "CapeEmbedding", function(object) {
    cat("CapeEmbedding: ", count_of(length(object@features), "feature"), " in ",
        ncol(object@poincare), " dimensions\n", sep = "")
    writeLines(c(
        paste0("radius: ", radius_text(object),
            if (object@info$n_clamped > 0) paste0(", held at the largest ", object@info$n_clamped,
                " times")),
        if (isTRUE(object@info$n_out_of_order > 0)) paste(count_of(object@info$n_out_of_order, "edge"),
            "with a cause no nearer the origin than its effect"),
        if (!object@info$converged) "the loss was still moving at the last epoch",
        general_lines(object, 5L)))
})

fit_lines <- function(fit, n) {
    input <- fit@input
    c(
        paste0("input: ", length(fit), " of ", input$n_features, " features x ", input$n_cells - length(input$empty),
            " cells, ", if (input$assay == "x") "a matrix" else paste("assay", quoted(input$assay)),
            if (input$transformation == "none") " as it is" else paste0(" (", input$transformation, ")")),
        dag_lines(fit@dag),
        edge_lines(fit@dag, n),
        paste0("embedding: ", ncol(fit@embedding@poincare), " dimensions, radius ",
            radius_text(fit@embedding)),
        position_line(fit),
        general_lines(fit@embedding, n),
        paste0("seed ", fit@seed, ", core ", fit@versions$core, " (", fit@versions$build_id, "), BLAS ",
            fit@versions$blas_kernel)
    )
}

#' @rdname CapeFit-class
#' @export
setMethod("show", "CapeFit", function(object) {
    object <- updateObject(object)
    cat("CapeFit, A[m, n] = m -> n\n")
    writeLines(fit_lines(object, 5L))
})

#' Summaries
#'
#' @param object a [CapeFit-class] or [CapeDag-class].
#' @param n how many features and edges to show.
#' @param ... not used.
#' @return A DataFrame with a row for every feature, invisibly: numbers of causes and effects, the
#' strongest of each and, for a fit, generality, radius and PageRank. A text is printed.
#' @examples
#' summary(cape_simulate_dag(8, seed = 1))
#' @name summaries
#' @aliases summary,CapeDag-method summary,CapeFit-method
NULL

#' @rdname summaries
#' @importMethodsFrom S4Vectors summary
#' @export
setMethod("summary", "CapeDag", function(object, n = 10L, ...) {
    object <- updateObject(object)
    writeLines(c(dag_lines(object), edge_lines(object, n)))
    invisible(feature_table(object))
})

#' @rdname summaries
#' @export
setMethod("summary", "CapeFit", function(object, n = 10L, ...) {
    object <- updateObject(object)
    writeLines(fit_lines(object, n))
    invisible(node_table(object))
})

# Of a graph, or of a fit.
node_table <- function(x) {
    if (is(x, "CapeDag")) {
        return(feature_table(x))
    }
    table <- feature_table(x@dag)
    for (name in c("generality", "radius", "pagerank")) table[[name]] <- slot(x@embedding, name)
    table
}

feature_table <- function(dag) {
    a <- abs(dag@adjacency)
    strongest <- function(a) {
        edges <- as(a, "TsparseMatrix")
        out <- rep(NA_character_, ncol(a))
        rising <- order(edges@x)
        out[edges@j[rising] + 1L] <- dag@features[edges@i[rising] + 1L]
        out
    }
    S4Vectors::DataFrame(causes = as.integer(Matrix::colSums(a > 0)),
        effects = as.integer(Matrix::rowSums(a > 0)), strongest_cause = strongest(a),
        strongest_effect = strongest(Matrix::t(a)), row.names = dag@features)
}
