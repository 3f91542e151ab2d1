#' Multi-head attention with causal positions
#'
#' Attention softmax(R(angles) Q (R(angles) K)' scale + bias) V, exact or by random features. Rows are
#' tokens: with the angles of a fit, one token a feature.
#'
#' The exact method never holds a matrix of tokens x tokens. The linear one (FAVOR+: positive orthogonal
#' random features) takes time and memory linear in the number of tokens: for many thousands. There the
#' positions turn the features, in the numerator only (RoFormer, eq. 19), so that without angles it tends
#' to the exact method as `features` grow, and with angles to attention without positions in which every
#' weight is multiplied by the mean cosine of the differences of the angles. For an estimate of the exact
#' method with angles rotate `query` and `key` by [cape_rotate()] before and give no angles.
#'
#' R stores matrices by columns and the core reads tokens by rows, so that inputs and output are copied
#' once, transposed; [cape_memory()] counts the copies.
#'
#' @param query,key,value matrices, tokens x D, or arrays, tokens x D x batch. D = heads x head
#'   dimension; head h takes its own block of columns. `query` may have another number of tokens than
#'   `key` and `value`. Without `value` (or with `NULL`) the scaled scores before the softmax are
#'   returned.
#' @param angles rotary angles: a matrix, tokens x (head dimension / 2), the same for every head, or
#'   tokens x (D / 2), one block of columns a head; a [CapeFit-class] or [CapeEmbedding-class]; a list
#'   of `query` and `key` if these have other tokens; or `NULL` for plain attention. Where both the
#'   angles and the tokens have row names, each token gets the angles of its name; otherwise row i gets
#'   row i.
#' @param heads number of heads.
#' @param mask which keys are real: a logical vector, or a matrix, tokens x batch. `FALSE` is padding,
#'   to which no attention is paid. A query without any real key gets zeros. Names of `mask`, of the rows
#'   of `value` and of the rows and columns of `bias` are matched to those of the tokens, where these
#'   have names.
#' @param ... further arguments: `scale`, by default 1 / sqrt(head dimension); `bias`, a matrix, query
#'   tokens x key tokens, added to the scaled scores, or an array with a third dimension for heads
#'   (-Inf shuts a pair out); `method`, `"exact"` or `"linear"`; for the latter `features`, their number,
#'   256 by default, and `seed`, which draws them (`NULL`: from R's random numbers); and `num.threads`.
#' @return A matrix, tokens x D (or an array, tokens x D x batch). Scores: query tokens x key tokens,
#' with further dimensions for heads and batch where there is more than one; -Inf at padding.
#' @examples
#' set.seed(1)
#' tokens <- matrix(rnorm(5 * 8), 5, 8)
#' angles <- matrix(runif(5 * 2, -0.5, 0.5), 5, 2)
#' cape_attend(tokens, tokens, tokens, angles, heads = 2L)
#' cape_attend(tokens, tokens, angles = angles, heads = 2L)[, , 1]
#' cape_attend(tokens, tokens, tokens, method = "linear", features = 1024L, seed = 1L)
#' @export
cape_attend <- function(query, key, value = NULL, angles = NULL, heads = 1L, mask = NULL, ...) {
    attend(query, key, value, angles, heads, mask, ...)
}

attend <- function(query, key, value, angles, heads, mask, scale = NULL, bias = NULL,
                   method = c("exact", "linear"), features = 256L, seed = NULL, num.threads = 1L) {
    method <- one_of(method, c("exact", "linear"), "method")
    q <- tokens(query, "query")
    k <- tokens(key, "key")
    v <- if (is.null(value)) NULL else tokens(value, "value")
    check_number(heads, "heads", 1, integer = TRUE)
    same <- function(x, y, what, names) {
        if (x != y) {
            cape_error("'", names[1L], "' has ", x, " ", what, " and '", names[2L], "' has ", y,
                "; they must be the same")
        }
    }
    same(dim(q)[2L], dim(k)[2L], "columns", c("query", "key"))
    same(dim(q)[3L], dim(k)[3L], "batches", c("query", "key"))
    if (!is.null(v)) {
        same(dim(v)[1L], dim(k)[1L], "tokens", c("value", "key"))
        same(dim(v)[2L], dim(k)[2L], "columns", c("value", "key"))
        same(dim(v)[3L], dim(k)[3L], "batches", c("value", "key"))
    }
    if (!is.null(v)) {
        v <- v[match_names(row_names(value), row_names(key), "value", "the keys"), , , drop = FALSE]
    }
    width <- dim(q)[2L]
    if (width %% heads != 0) {
        cape_error("'query' has ", width, " columns, which ", heads, " heads cannot share equally")
    }
    head_dim <- width %/% heads
    phi <- token_angles(angles, query, key, head_dim, heads)
    scale <- if (is.null(scale)) NaN else check_number(scale, "scale")
    keep <- key_mask(mask, dim(k)[1L], dim(k)[3L], row_names(key))

    settings <- c(run.threads = as.character(run_threads(num.threads)))
    if (method == "linear") {
        if (is.null(v)) cape_error("'value' is NULL; the linear method has no scores")
        if (!is.null(bias)) cape_error("'bias' is given; the linear method has none")
        check_number(features, "features", 1, 2^31 - 1, integer = TRUE)
        settings <- run_settings(run_seed(seed), num.threads)
    } else {
        features <- 0
        bias <- score_bias(bias, dim(q)[1L], dim(k)[1L], heads, row_names(query), row_names(key))
    }
    bias_heads <- if (length(dim(bias)) == 3L) dim(bias)[3L] else 1L

    out <- core_attend(row_major(q), row_major(k), if (!is.null(v)) row_major(v), phi$query, phi$key,
        keep, bias, c(dim(q)[3L], heads, dim(q)[1L], dim(k)[1L], head_dim, phi$heads, bias_heads,
            features), scale, settings)
    if (!is.null(v)) {
        out <- aperm(array(out, dim(q)[c(2L, 1L, 3L)]), c(2L, 1L, 3L))
        out <- named(out, list(rownames(query), colnames(value), NULL))
        return(if (length(dim(query)) == 3L) out else matrix_of(out))
    }
    out <- aperm(array(out, c(dim(k)[1L], dim(q)[1L], heads, dim(q)[3L])), c(2L, 1L, 3L, 4L))
    out <- named(out, list(rownames(query), rownames(key), NULL, NULL))
    if (length(dim(query)) == 3L) {
        out
    } else if (heads > 1) {
        named(array(out, dim(out)[1:3]), dimnames(out)[1:3])
    } else {
        matrix_of(out)
    }
}

named <- function(x, names) {
    if (!all(vapply(names, is.null, NA))) dimnames(x) <- names
    x
}

matrix_of <- function(x) named(matrix(x, dim(x)[1L], dim(x)[2L]), dimnames(x)[1:2])

# tokens x D x batch.
tokens <- function(x, name) {
    if (length(dim(x)) != 3L) {
        x <- number_matrix(x, name)
        return(array(x, c(dim(x), 1L)))
    }
    if (!is.numeric(x)) {
        cape_error("'", name, "' is ", one_line(x), "; it must hold numbers")
    }
    storage.mode(x) <- "double"
    unname(x)
}

row_major <- function(x) aperm(x, c(2L, 1L, 3L))

# Angles of the tokens in their order: by name where both have names.
by_name <- function(phi, token_names, which) {
    if (is.null(rownames(phi)) || is.null(token_names) || identical(rownames(phi), token_names)) {
        return(phi)
    }
    at <- match(token_names, rownames(phi))
    if (anyNA(at)) {
        cape_error("'angles' has row names but no row for '", token_names[is.na(at)][1L], "' of '", which,
            "'; remove the names to match by position")
    }
    if (anyDuplicated(rownames(phi)) > 0L) {
        cape_error("'angles' has two rows named '", rownames(phi)[anyDuplicated(rownames(phi))], "'")
    }
    phi[at, , drop = FALSE]
}

token_angles <- function(angles, query, key, head_dim, heads) {
    if (is.null(angles)) {
        return(list(query = NULL, key = NULL, heads = 1L))
    }
    n_query <- dim(query)[1L]
    n_key <- dim(key)[1L]
    if (is(angles, "CapeFit")) {
        angles <- angles@angles
    } else if (is(angles, "CapeEmbedding")) {
        angles <- cape_angles(angles)
    }
    if (!is.list(angles) || is.data.frame(angles)) {
        angles <- list(query = angles, key = angles)
    }
    if (!setequal(names(angles), c("query", "key"))) {
        cape_error("'angles' is a list without 'query' and 'key'")
    }
    if (head_dim %% 2 != 0) {
        cape_error("a head has ", head_dim, " columns; to rotate pairs they must be even in number")
    }
    names <- list(query = row_names(query), key = row_names(key))
    angles <- sapply(c("query", "key"), function(which) {
        phi <- angles[[which]]
        rows <- row_names(phi)
        phi <- number_matrix(phi, "angles")
        rownames(phi) <- rows
        by_name(phi, names[[which]], which)
    }, simplify = FALSE)
    check <- function(phi, n, name) {
        if (nrow(phi) != n || !ncol(phi) %in% c(head_dim / 2, heads * head_dim / 2)) {
            cape_error("the angles of the ", name, " are ", nrow(phi), " x ", ncol(phi), "; for ", n,
                " tokens and ", heads, " heads of ", head_dim, " columns they must be ", n, " x ",
                head_dim / 2, if (heads > 1) paste0(" or ", n, " x ", heads * head_dim / 2))
        }
    }
    check(angles$query, n_query, "query")
    check(angles$key, n_key, "key")
    if (ncol(angles$query) != ncol(angles$key)) {
        cape_error("the angles of the query have ", ncol(angles$query), " columns and those of the key ",
            ncol(angles$key))
    }
    list(query = t(angles$query), key = t(angles$key),
        heads = if (ncol(angles$query) == head_dim / 2) 1L else heads)
}

# Key tokens x query tokens (x heads): the core's rows are queries.
score_bias <- function(bias, n_query, n_key, heads, queries = NULL, keys = NULL) {
    if (is.null(bias)) {
        return(NULL)
    }
    d <- dim(bias)
    good <- is_numbers(bias) && length(d) %in% 2:3 && all(d[1:2] == c(n_query, n_key)) &&
        (length(d) == 2L || d[3L] %in% c(1L, heads))
    if (!good) {
        cape_error("'bias' is ", one_line(bias), "; it must be numbers, ", n_query, " x ", n_key,
            if (heads > 1) paste0(", or ", n_query, " x ", n_key, " x ", heads))
    }
    rows <- match_names(rownames(bias), queries, "bias", "the queries")
    columns <- match_names(colnames(bias), keys, "bias", "the keys")
    bias <- if (length(d) == 3L) bias[rows, columns, , drop = FALSE] else bias[rows, columns, drop = FALSE]
    storage.mode(bias) <- "double"
    aperm(bias, c(2L, 1L, if (length(d) == 3L) 3L))
}

key_mask <- function(mask, n_key, batch, keys = NULL) {
    if (is.null(mask)) {
        return(NULL)
    }
    if (!is.logical(mask) || anyNA(mask) || !length(mask) %in% c(n_key, n_key * batch)) {
        cape_error("'mask' is ", one_line(mask), "; it must be TRUE (a real key) or FALSE (padding) for ",
            "each of ", n_key, " keys", if (batch > 1) paste0(", or of ", n_key, " x ", batch))
    }
    if (is.matrix(mask) && length(mask) > n_key && !identical(dim(mask), as.integer(c(n_key, batch)))) {
        cape_error("'mask' is ", nrow(mask), " x ", ncol(mask), "; it must be keys x batch: ", n_key, " x ",
            batch)
    }
    given <- if (is.null(dim(mask))) names(mask) else rownames(mask)
    if (length(given) > n_key) given <- NULL # one long vector over the batches
    mask <- matrix(mask, n_key, batch)
    mask[match_names(given, keys, "mask", "the keys"), , drop = FALSE]
}
