#' Multi-head attention with causal positions
#'
#' Exact attention softmax(R(angles) Q (R(angles) K)' scale) V. Rows are tokens: with the angles of a
#' fit, one token a feature, in the order of [cape_angles()].
#'
#' @param query,key,value matrices, tokens x D, or arrays, tokens x D x batch. D = heads x head
#'   dimension; head h takes its own block of columns. `query` may have another number of tokens than
#'   `key` and `value`. Without `value` (or with `NULL`) the scaled scores before the softmax are
#'   returned.
#' @param angles rotary angles: a matrix, tokens x (head dimension / 2), the same for every head, or
#'   tokens x (D / 2), one block of columns a head; a [CapeFit-class] or [CapeEmbedding-class]; a list
#'   of `query` and `key` if these have other tokens; or `NULL` for plain attention.
#' @param heads number of heads.
#' @param mask which keys are real: a logical vector, or a matrix, tokens x batch. `FALSE` is padding,
#'   to which no attention is paid. A query without any real key gets zeros.
#' @param ... further arguments: `scale`, by default 1 / sqrt(head dimension), and `num.threads`.
#' @return A matrix, tokens x D (or an array, tokens x D x batch). Scores: query tokens x key tokens,
#' with further dimensions for heads and batch where there is more than one; -Inf at padding.
#' @examples
#' set.seed(1)
#' tokens <- matrix(rnorm(5 * 8), 5, 8)
#' angles <- matrix(runif(5 * 2, -0.5, 0.5), 5, 2)
#' cape_attend(tokens, tokens, tokens, angles, heads = 2L)
#' cape_attend(tokens, tokens, angles = angles, heads = 2L)[, , 1]
#' @export
cape_attend <- function(query, key, value = NULL, angles = NULL, heads = 1L, mask = NULL, ...) {
    attend(query, key, value, angles, heads, mask, ...)
}

attend <- function(query, key, value, angles, heads, mask, scale = NULL, num.threads = 1L) {
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
    width <- dim(q)[2L]
    if (width %% heads != 0) {
        cape_error("'query' has ", width, " columns, which ", heads, " heads cannot share equally")
    }
    head_dim <- width %/% heads
    phi <- token_angles(angles, dim(q)[1L], dim(k)[1L], head_dim, heads)
    scale <- if (is.null(scale)) NaN else check_number(scale, "scale")
    keep <- key_mask(mask, dim(k)[1L], dim(k)[3L])

    out <- core_attend(row_major(q), row_major(k), if (!is.null(v)) row_major(v), phi$query, phi$key,
        keep, c(dim(q)[3L], heads, dim(q)[1L], dim(k)[1L], head_dim, phi$heads), scale,
        c(run.threads = as.character(run_threads(num.threads))))
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

token_angles <- function(angles, n_query, n_key, head_dim, heads) {
    if (is.null(angles)) {
        return(list(query = NULL, key = NULL, heads = 1L))
    }
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
    angles <- lapply(angles[c("query", "key")], number_matrix, name = "angles")
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

key_mask <- function(mask, n_key, batch) {
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
    matrix(mask, n_key, batch)
}
