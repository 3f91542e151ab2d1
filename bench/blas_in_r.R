# DGEMM 1500^3 in the core, called from inside R with no setting of the user's, against a C++ program
# that sets OPENBLAS_CORETYPE to the best kernel.
#   cmake --preset bench && cmake --build build/bench
#   R_LIBS=build/release/rlib Rscript bench/blas_in_r.R build/bench/bench/bench_blas
program <- commandArgs(trailingOnly = TRUE)[1]
if (is.na(program) || !file.exists(program)) stop("give the path of bench_blas")
# A child, since the kernel is chosen when the library is loaded.
inside_r <- function() {
  code <- shQuote("cat(capeOmics:::core_blas_rate(1500))")
  as.numeric(system2("env", c("-u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE", file.path(R.home("bin"), "Rscript"),
                              "-e", code), stdout = TRUE))
}
in_c <- function(kernel) {
  out <- suppressWarnings(system2("env", c("-u OPENBLAS_L2_SIZE", paste0("OPENBLAS_CORETYPE=", kernel),
                                           shQuote(program), "--child"), stdout = TRUE, stderr = FALSE))
  if (length(out) == 0) 0 else as.numeric(strsplit(out[1], " ")[[1]][2])
}
kernels <- c("Haswell", "SkylakeX", "Zen")
rates <- replicate(3, c(R = inside_r(), vapply(kernels, in_c, 0)))
best <- apply(rates, 1, max)
print(round(best, 1))
cat(sprintf("ratio of R to the best program: %.3f\n", best[["R"]] / max(best[kernels])))
