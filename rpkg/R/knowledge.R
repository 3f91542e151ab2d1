#' What is known of the graph
#'
#' Knowledge that the graph has to agree with, for [cape_fit()], [cape_calculate()] and
#' [cape_learn_dag()]. Features are given by name; those of `x` that are not used are left out, with a
#' message, and names that `x` does not have are an error.
#'
#' @param required,forbidden edges that are in the graph whatever the data say, and edges that are not: a
#'   table (matrix, data frame, tibble or DataFrame) with columns `from` and `to` (or whose first two columns are these). Required edges must not
#'   form a cycle, and `lambda` does not hold them down.
#' @param tiers a list of character vectors, the earliest tier first, or a vector of numbers (or an ordered
#'   factor) with the features as names. No edge runs from a later tier to an earlier one; features
#'   without a tier are free.
#' @param roots,leaves features without causes, and without effects.
#' @param regulators the only features that have effects, transcription factors for instance. Those that
#'   `x` does not have are left out, with a message that counts them.
#' @param penalty a matrix of factors of `lambda` (row: cause) with feature names: 2 makes an edge twice as
#'   dear, 0 free. Edges that it does not name have 1.
#' @param start an earlier graph ([CapeDag-class], [CapeFit-class], or a SingleCellExperiment from
#'   [cape_fit()]) whose edges and weights the fit starts from. A hint, not a constraint: it saves some
#'   epochs where there are few (`DagParam(epochs = )`), and does no better than a new fit with all of
#'   them.
#' @param interventions what an intervention that is told as `perturbation` (see [cape_fit()]) did. `"hard"`: it
#'   set the value of the feature, whose own equation does not hold in that cell; such graphs are not refined.
#'   `"unknown"`: it was aimed at the feature, whatever became of the value that is measured; a gene that is
#'   knocked out may keep its mRNA, and a knock-down is a weak one. The cells in which a feature was aimed
#'   at are then a cause of their own, whose effects are those of the feature in the result, directly or by what
#'   was not measured; the sign of such an effect is not known. These graphs are refined.
#' @return An object of class `CapeKnowledge`.
#' @examples
#' known <- cape_knowledge(forbidden = data.frame(from = "gene3", to = "gene1"),
#'     tiers = list("gene2", c("gene1", "gene3")))
#' known
#' x <- cape_simulate_data(cape_simulate_dag(6, edges.per.node = 1, seed = 1), 100, mechanism = "linear", seed = 2)
#' dag <- cape_learn_dag(x, DagParam(sem = "linear"), seed = 3, knowledge = known)
#' cape_weights(dag, pruned = FALSE)["gene3", "gene1"]
#' @export
cape_knowledge <- function(required = NULL, forbidden = NULL, tiers = NULL, roots = NULL,
                           leaves = NULL, regulators = NULL, penalty = NULL, start = NULL,
                           interventions = c("hard", "unknown")) {
    interventions <- match.arg(interventions)
    new("CapeKnowledge", values = list(
        required = as_ends(required, "required"), forbidden = as_ends(forbidden, "forbidden"),
        tiers = as_tiers(tiers), roots = as_names(roots, "roots"),
        leaves = as_names(leaves, "leaves"), regulators = as_names(regulators, "regulators"),
        penalty = as_penalty(penalty), start = as_start(start),
        interventions = if (interventions == "hard") character() else interventions))
}

#' @rdname cape_knowledge
#' @param object a `CapeKnowledge`.
#' @export
setMethod("show", "CapeKnowledge", function(object) {
    known <- Filter(function(value) length(value) > 0L, object@values)
    cat("CapeKnowledge:", if (length(known) == 0L) "nothing is known", "\n")
    for (name in names(known)) {
        value <- known[[name]]
        cat("  ", name, ": ", if (is.matrix(value) && is.character(value)) {
            some_of(paste(value[, 1L], "->", value[, 2L]))
        } else if (is.data.frame(value)) {
            count_of(nrow(value), "edge")
        } else if (is.matrix(value)) {
            paste(nrow(value), "x", ncol(value), "factors")
        } else if (is.null(names(value))) {
            some_of(value)
        } else {
            some_of(paste0(names(value), " (", value, ")"))
        }, "\n", sep = "")
    }
})

as_ends <- function(x, name) {
    if (is.null(x)) {
        return(matrix("", 0L, 2L))
    }
    if (!(is_table(x) || is.matrix(x)) || ncol(x) < 2L) {
        cape_error("'", name, "' is ", one_line(x), "; it must be a table with columns 'from' and 'to'")
    }
    columns <- table_columns(x)
    if (is.matrix(x) && nrow(x) == ncol(x) && !is.null(rownames(x)) && setequal(rownames(x), colnames(x))) {
        cape_error("'", name, "' is a square matrix with the same names on both sides, as of a graph; it must be a ",
            "table with columns 'from' and 'to', as which(x != 0, arr.ind = TRUE) has them")
    }
    at <- if (all(c("from", "to") %in% names(columns))) c("from", "to") else 1:2
    ends <- cbind(as_ids(columns[[at[1L]]], name), as_ids(columns[[at[2L]]], name))
    if (anyNA(ends)) {
        cape_error("'", name, "' has missing names in row ", which(is.na(ends[, 1L]) | is.na(ends[, 2L]))[1L])
    }
    ends
}

as_names <- function(x, name) {
    if (is.factor(x) || is(x, "Rle")) x <- as.character(x)
    if (!is.null(x) && (!is.character(x) || anyNA(x))) {
        cape_error("'", name, "' is ", one_line(x), "; it must hold names of features")
    }
    unique(as.character(x))
}

as_tiers <- function(x) {
    if (is.null(x)) {
        return(integer())
    }
    if (is.list(x) && !is.data.frame(x)) {
        members <- lapply(x, as_names, "tiers")
        tier <- rep(seq_along(members), lengths(members))
        names(tier) <- unlist(members)
    } else {
        x <- plain_vector(x, "tiers")
        # The alphabet is no order of tiers ("post" before "pre", "10" before "2").
        if (!is.ordered(x) && (is.factor(x) || !is.numeric(x))) {
            cape_error("'tiers' is ", one_line(x), "; text has no order: it must be a list of character ",
                "vectors, the earliest first, or hold a number for every named feature, or be an ordered factor")
        }
        tier <- if (is.factor(x)) as.integer(x) else match(x, sort(unique(x)))
        names(tier) <- names(x)
    }
    if (length(tier) != length(names(tier)) || anyNA(tier)) {
        cape_error("'tiers' is ", one_line(x), "; it must be a list of character vectors, or hold a number ",
            "for every named feature")
    }
    twice <- unique(names(tier)[duplicated(names(tier))])
    if (length(twice) > 0L) {
        cape_error("'tiers' has ", some_of(quoted(twice)), " more than once")
    }
    tier
}

as_penalty <- function(x) {
    if (is.null(x)) {
        return(matrix(0, 0L, 0L))
    }
    x <- if (is(x, "Matrix")) as.matrix(x) else x
    if (!is.matrix(x) || !is_numbers(x) || is.null(rownames(x)) || is.null(colnames(x))) {
        cape_error("'penalty' is ", one_line(x), "; it must be a matrix of numbers with feature names on ",
            "both sides")
    }
    for (names in dimnames(x)) {
        if (anyNA(names) || anyDuplicated(names) > 0L) {
            cape_error("'penalty' has ", if (anyNA(names)) "a missing name"
                else paste0("the name ", quoted(names[anyDuplicated(names)]), " twice"), " on one side")
        }
    }
    bad <- which(!is.finite(x) | x < 0)
    if (length(bad) > 0L) {
        cape_error("'penalty' has the value ", x[bad[1L]], "; factors are finite and not negative")
    }
    x
}

as_start <- function(x) {
    if (is.null(x)) {
        return(data.frame())
    }
    if (!is(x, "CapeDag") && !is(x, "CapeFit") && !is(x, "SummarizedExperiment")) {
        cape_error("'start' is ", one_line(x), "; it must be a CapeDag, a CapeFit, or a SingleCellExperiment ",
            "from cape_fit()")
    }
    as.data.frame(cape_edges(x))[c("from", "to", "weight")]
}

# For the core -------------------------------------------------------------------------------------

# What is known, as numbers of the features and cells used. `all` are the features of x.
prior_of <- function(x, features, all = features, knowledge = NULL, batch = NULL, perturbation = NULL,
                     cell.weights = NULL, cells = seq_len(ncol(x)), covariates = NULL) {
    if (!is.null(knowledge) && !is(knowledge, "CapeKnowledge")) {
        cape_error("'knowledge' is ", one_line(knowledge), "; make it with cape_knowledge()")
    }
    known <- if (is.null(knowledge)) cape_knowledge()@values else knowledge@values
    # Lists of regulators are those of a species: what a table lacks is no error.
    lacking <- setdiff(known$regulators, c(features, all))
    if (length(lacking) > 0L) {
        message("Of the ", length(known$regulators), " regulators in 'knowledge', 'x' does not have ",
            length(lacking), ": ", some_of(quoted(lacking)), ".")
        known$regulators <- setdiff(known$regulators, lacking)
        if (length(known$regulators) == 0L) cape_error("'x' has none of the regulators in 'knowledge'")
    }
    named <- c(known$required, known$forbidden, names(known$tiers), known$roots, known$leaves,
        known$regulators, unlist(dimnames(known$penalty)), known$start$from, known$start$to)
    strange <- setdiff(named, c(features, all))
    if (length(strange) > 0L) {
        cape_error("'knowledge' names ", count_of(length(strange), "feature"), " that 'x' does not have: ",
            some_of(quoted(strange)))
    }
    unused <- setdiff(named, features)
    if (length(unused) > 0L) {
        message("Of the features in 'knowledge', ", length(unused), " are not used and left out: ",
            some_of(quoted(unused)), ".")
    }
    ends <- function(edges) {
        edges <- cbind(match(edges[, 1L], features), match(edges[, 2L], features))
        unique(edges[stats::complete.cases(edges), , drop = FALSE])
    }
    numbers <- function(names) {
        at <- match(names, features)
        at[!is.na(at)]
    }
    if (length(known$regulators) > 0L && length(numbers(known$regulators)) == 0L) {
        cape_error("none of the regulators in 'knowledge' is among the features used")
    }
    penalty <- matrix(0, 0L, 0L)
    if (length(known$penalty) > 0L) {
        penalty <- matrix(1, length(features), length(features))
        rows <- rownames(known$penalty) %in% features
        cols <- colnames(known$penalty) %in% features
        penalty[match(rownames(known$penalty)[rows], features),
            match(colnames(known$penalty)[cols], features)] <- known$penalty[rows, cols]
    }
    tiers <- integer()
    if (length(known$tiers) > 0L) {
        tiers <- unname(known$tiers[features])
        tiers[is.na(tiers)] <- -1L
    }
    start <- known$start[known$start$from %in% features & known$start$to %in% features, ]
    start <- list(from = numbers(start$from), to = numbers(start$to), weight = as.numeric(start$weight))
    c(list(required = ends(known$required), forbidden = ends(known$forbidden), tiers = tiers,
        roots = numbers(known$roots), leaves = numbers(known$leaves),
        regulators = numbers(known$regulators), penalty = penalty, start = start),
        batch = list(batch_numbers(per_cell(x, batch, "batch")[cells])),
        covariates = list(covariate_values(x, covariates, cells)),
        weights = list(as_cell_weights(per_cell(x, cell.weights, "cell.weights"), cells)),
        perturbed = list(pairs_of_cells(perturbed_values(x, perturbation, features, all), cells)),
        interventions = if (length(known$interventions) > 0L) known$interventions else "hard")
}

# Pairs of cell and feature, with the cells numbered as in `cells`.
pairs_of_cells <- function(pairs, cells) {
    at <- match(pairs[, 1L], cells)
    cbind(at, pairs[, 2L], deparse.level = 0L)[!is.na(at), , drop = FALSE]
}

# What was asked for by refine = TRUE and cannot be done is refused; NA leaves it out, with a warning.
check_refinable <- function(param, prior) {
    given <- c(if (nrow(prior$perturbed) > 0L && prior$interventions == "hard") "'perturbation'",
        if (length(unique(prior$weights[prior$weights > 0])) > 1L) "'cell.weights'")
    if (isTRUE(param@values[["refine"]]) && length(given) > 0L) {
        cape_error("'refine' is TRUE, but graphs with ", paste(given, collapse = " and "), " are not refined; ",
            "use refine = NA or FALSE")
    }
}

# A value for every cell, from the name of a colData column or as given; named values go by name.
per_cell <- function(x, value, name) {
    if (is.null(value)) {
        return(NULL)
    }
    if (is.character(value) && length(value) == 1L && ncol(x) != 1L) {
        columns <- if (is(x, "SummarizedExperiment")) names(SummarizedExperiment::colData(x))
        if (!value %in% columns) {
            cape_error("'", name, "' is ", dQuote(value, FALSE), "; it must be a column of colData(x)",
                if (length(columns) > 0L) paste0(" (", some_of(columns), ")"),
                ", or have a value for each of ", ncol(x), " cells")
        }
        value <- unname(SummarizedExperiment::colData(x)[[value]])
    }
    value <- plain_vector(value, name)
    if (length(value) != ncol(x)) {
        cape_error("'", name, "' has ", length(value), " values; it must have one for each of ", ncol(x),
            " cells, or name a column of colData(x)")
    }
    value[match_names(names(value), colnames(x), name, "the cells of 'x'")]
}

batch_numbers <- function(batch) {
    if (is.null(batch)) {
        return(integer())
    }
    if (anyNA(batch)) {
        cape_error("'batch' is missing for ", count_of(sum(is.na(batch)), "cell"))
    }
    groups <- as.factor(as.character(batch))
    alone <- names(which(table(groups) < 2L))
    if (length(alone) > 0L) {
        cape_error("'batch' ", some_of(quoted(alone)), " has one cell only; each needs at least 2")
    }
    as.integer(groups)
}

as_cell_weights <- function(weights, cells) {
    if (is.null(weights)) {
        return(numeric())
    }
    if (!is_numbers(weights)) {
        cape_error("'cell.weights' is ", one_line(weights), "; it must hold numbers")
    }
    bad <- which(!is.finite(weights) | weights < 0)
    if (length(bad) > 0L) {
        cape_error("'cell.weights' is ", weights[bad[1L]], " for cell ", bad[1L],
            "; weights must be finite numbers that are not negative")
    }
    as.numeric(weights)[cells]
}

# Pairs of cell and feature: features that were set from outside in these cells.
perturbed_values <- function(x, perturbation, features, all) {
    none <- matrix(0L, 0L, 2L)
    if (is.null(perturbation)) {
        return(none)
    }
    if (is.matrix(perturbation) || is(perturbation, "Matrix")) {
        if (ncol(perturbation) != ncol(x) || is.null(rownames(perturbation))) {
            cape_error("'perturbation' is a ", nrow(perturbation), " x ", ncol(perturbation),
                " matrix; it must have feature names as row names and a column for each of ", ncol(x), " cells")
        }
        perturbation <- as.matrix(perturbation)
        perturbation <- perturbation[, match_names(colnames(perturbation), colnames(x), "perturbation",
            "the cells of 'x'"), drop = FALSE]
        if (!(is_numbers(perturbation) || is.logical(perturbation)) || !all(perturbation %in% 0:1)) {
            odd <- setdiff(as.vector(perturbation), 0:1)
            cape_error("'perturbation' is ", one_line(perturbation), if (length(odd) > 0L) paste0(" with ", odd[1L]),
                "; it must hold 0 and 1, none missing")
        }
        check_perturbed(rownames(perturbation)[rowSums(perturbation != 0) > 0], c(features, all))
        set <- which(perturbation != 0, arr.ind = TRUE)
        pairs <- unname(cbind(set[, 2L], match(rownames(perturbation)[set[, 1L]], features)))
        return(pairs[!is.na(pairs[, 2L]), , drop = FALSE])
    }
    target <- as_ids(per_cell(x, perturbation, "perturbation"), "perturbation")
    check_perturbed(target, c(features, all))
    pairs <- cbind(seq_along(target), match(target, features))
    pairs <- pairs[!is.na(pairs[, 2L]), , drop = FALSE]
    if (nrow(pairs) == 0L) {
        cape_error("'perturbation' names no feature that is used; it has ",
            some_of(quoted(unique(target[!is.na(target)]))))
    }
    pairs
}

# A label that is no feature may be a control, a misspelt name or two targets: it must be said which.
check_perturbed <- function(labels, known) {
    strange <- setdiff(labels[!is.na(labels)], known)
    if (length(strange) > 0L) {
        cape_error("'perturbation' has ", count_of(length(strange), "label"), " that ",
            if (length(strange) == 1L) "is no feature" else "are no features", " of 'x': ",
            some_of(quoted(strange)), "; NA marks cells that are not perturbed, and for cells with several ",
            "targets it must be a matrix, features x cells")
    }
}
