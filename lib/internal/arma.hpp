// The one place that includes Armadillo and owns its ARMA_* settings: two translation units with
// different settings would break the one-definition rule. Include it in the global module fragment
// of an implementation unit, never of an interface unit, and never install it.
#pragma once
#define ARMA_DONT_USE_WRAPPER
#define ARMA_USE_BLAS
#define ARMA_USE_LAPACK
#define ARMA_DONT_USE_ARPACK
#define ARMA_DONT_USE_SUPERLU
#define ARMA_DONT_USE_OPENMP
#define ARMA_DONT_USE_HDF5
#define ARMA_DONT_PRINT_ERRORS
#define ARMA_WARN_LEVEL 0
#define ARMA_NO_DEBUG
// libstdc++ deprecates a function that its own stable_sort calls; clang reports it to those who
// sort.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <armadillo>
#pragma GCC diagnostic pop
