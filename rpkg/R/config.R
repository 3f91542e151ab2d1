#' Versions, build and settings of the core
#'
#' @param x,... see below.
#' @return
#' * `cape_config()`: a list, with a print method, of the versions of the package and the core, its build
#'   id, how it was built, the BLAS kernel in use and the best for this CPU, and the threads that
#'   `num.threads = NULL` would take.
#' * `cape_defaults()`: a data frame of every option of the core: `key`, `type`, `default`, `range`,
#'   `doc`, and `source`, the equation of the paper or the section of docs/method.md that it comes from.
#' * `cape_memory()`: what a fit will need: `bytes`, and `seconds` on one thread, a rough figure; and
#'   `attention`, the bytes that [cape_attend()] of the `m` features to each other will need beyond its
#'   arguments, result included.
#' @examples
#' cape_config()
#' subset(cape_defaults(), grepl("^rotary", key))
#' cape_memory(n = 2000, m = 500)
#' @name config
NULL

#' @rdname config
#' @export
cape_config <- function() {
    build <- core_build()
    structure(list(package = as.character(utils::packageVersion("capeOmics")), core = build$version,
        build_id = build$build_id, abi = build$abi, blas_kernel = build$blas_kernel,
        blas_best_kernel = build$blas_best_kernel, threads = run_threads(NULL), info = build$info),
        class = "cape_config")
}

#' @rdname config
#' @export
print.cape_config <- function(x, ...) {
    cat("capeOmics ", x$package, " on the CAPE core ", x$core, " (", x$build_id, ", ABI ", x$abi, ")\n",
        sep = "")
    cat("BLAS kernel: ", x$blas_kernel,
        if (x$blas_kernel != x$blas_best_kernel) paste0("; this CPU could run ", x$blas_best_kernel),
        "\nthreads for num.threads = NULL: ", x$threads, "\n", sep = "")
    writeLines(x$info)
    invisible(x)
}

#' @rdname config
#' @export
cape_defaults <- function() core_registry()

#' @rdname config
#' @param n,m numbers of cells and of features.
#' @param dag,embed settings, as for [cape_fit()].
#' @param heads,batch,num.threads of the attention; a head has two columns for each dimension of the
#'   embedding.
#' @export
cape_memory <- function(n, m, dag = DagParam(), embed = HyperbolicParam(), heads = 1L, batch = 1L,
                        num.threads = 1L) {
    check_number(n, "n", 1, 2^53, integer = TRUE)
    check_number(m, "m", 1, 2^53, integer = TRUE)
    check_class(dag, "DagParam", "dag")
    check_class(embed, "HyperbolicParam", "embed")
    check_number(heads, "heads", 1, integer = TRUE)
    check_number(batch, "batch", 1, integer = TRUE)
    head_dim <- 2 * embed@values$dims
    threads <- c(run.threads = as.character(run_threads(num.threads)))
    attention <- core_attention_memory(m, heads, head_dim, batch, threads)
    copies <- 5 * 8 * m * heads * head_dim * batch # of query, key and value, and the result twice
    c(core_estimate(n, m, c(settings(dag), settings(embed))), attention = attention + copies)
}

registry_default <- function(key) {
    registry <- core_registry()
    registry$default[registry$key == key]
}
