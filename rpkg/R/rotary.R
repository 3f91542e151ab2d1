#' Step III: rotary angles
#'
#' @param embedding a [CapeEmbedding-class], [CapeFit-class], or SingleCellExperiment from
#'   [cape_fit()].
#' @param scale angles are `scale` times the coordinates in the Poincaré ball.
#' @param name under which [cape_fit()] stored the result.
#' @return A matrix of angles in radians, features x d.
#' @seealso [cape_rotate()], [cape_attend()]
#' @examples
#' chain <- matrix(0, 3, 3)
#' chain[cbind(1:2, 2:3)] <- 0.8
#' cape_angles(cape_embed_dag(chain, HyperbolicParam(dims = 4L), seed = 1))
#' @export
cape_angles <- function(embedding, scale = pi / 4, name = "CAPE") {
    check_number(scale, "scale")
    if (scale <= 0) {
        cape_error("'scale' is ", scale, "; it must be positive")
    }
    points <- cape_embedding(embedding, name = name)
    colnames(points) <- paste0("angle", seq_len(ncol(points)))
    scale * points
}

#' Rotate vectors by angles
#'
#' Rotates the pairs (1, 2), (3, 4), ... of every row of `v` by the angles in the same row: the
#' position encoding of a query or key.
#'
#' @param v a matrix, L x D with D even, or a vector for one row.
#' @param angles a matrix of radians, L x D/2, or a vector for one row. Where its rows and those of `v`
#'   have names, these are matched.
#' @param inverse rotate back.
#' @return `v`, rotated.
#' @examples
#' cape_rotate(1:4, c(pi / 6, pi / 3))
#' @export
cape_rotate <- function(v, angles, inverse = FALSE) {
    check_flag(inverse, "inverse")
    one <- is.null(dim(v))
    rows <- number_matrix(v, "v")
    if (length(dim(angles)) == 2L && nrow(angles) == nrow(rows)) {
        angles <- angles[match_names(row_names(angles), row_names(v), "angles", "the rows of 'v'"), , drop = FALSE]
    }
    out <- core_rotate(rows, number_matrix(angles, "angles"), inverse)
    if (one) {
        return(stats::setNames(as.vector(out), names(v)))
    }
    dimnames(out) <- dimnames(v)
    out
}

# A double matrix without names; a vector is one row.
number_matrix <- function(x, name) {
    if (is(x, "Matrix") || is.data.frame(x)) {
        x <- as.matrix(x)
    }
    if (!is_numbers(x)) {
        cape_error("'", name, "' is ", one_line(x), "; it must be a matrix of numbers")
    }
    if (is.null(dim(x))) {
        x <- matrix(x, 1L)
    }
    if (length(dim(x)) != 2L) {
        cape_error("'", name, "' has ", length(dim(x)), " dimensions; it must be a matrix")
    }
    storage.mode(x) <- "double"
    unname(x)
}
