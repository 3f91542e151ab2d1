#' capeOmics: causality-aware positional encoding of omics features
#'
#' Start with [cape_fit()]. The three steps are also functions of their own: [cape_learn_dag()],
#' [cape_embed_dag()], [cape_angles()]; [cape_attend()] is attention with their result.
#'
#' @references Xu K, Du Y, Liu M, Yu Z, Sun X (2025). Causality-Induced Positional Encoding for
#' Transformer-Based Representation Learning of Non-Sequential Features. NeurIPS 2025.
#' @keywords internal
#' @useDynLib capeOmics, .registration = TRUE
#' @import methods
#' @importFrom ggplot2 .data
#' @importFrom Rcpp evalCpp
#' @importFrom Matrix Matrix
#' @importClassesFrom Matrix Matrix sparseMatrix dgCMatrix
#' @importClassesFrom S4Vectors DataFrame
#' @importClassesFrom DelayedArray DelayedMatrix
#' @importClassesFrom SummarizedExperiment SummarizedExperiment
#' @importClassesFrom SingleCellExperiment SingleCellExperiment
"_PACKAGE"

.onLoad <- function(libname, pkgname) {
    build <- core_build()
    if (build$abi != build$header_abi) {
        stop("the CAPE core that was found has ABI version ", build$abi, ", but capeOmics was built for ",
            build$header_abi, ": install capeOmics again, or set LD_LIBRARY_PATH to the right core",
            call. = FALSE)
    }
}
