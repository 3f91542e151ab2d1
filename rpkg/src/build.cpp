// The library: its versions, its build, and the registry of options.
#include "glue.hpp"

using namespace capeomics;

// [[Rcpp::export(rng = false)]]
Rcpp::List core_build() {
  using Rcpp::_;
  return Rcpp::List::create(
      _["version"] = cape_version_string(), _["build_id"] = cape_build_id(),
      _["abi"] = static_cast<double>(cape_abi_version()),
      _["header_abi"] = static_cast<double>(CAPE_ABI_VERSION), _["info"] = cape_build_info(),
      _["blas_kernel"] = cape_blas_kernel(), _["blas_best_kernel"] = cape_blas_best_kernel());
}

// [[Rcpp::export(rng = false)]]
void core_self_test() { check(cape_self_test()); }

// DGEMM of n x n matrices in the core, GF/s on one thread.
// [[Rcpp::export(rng = false)]]
double core_blas_rate(double n) {
  double rate = 0;
  check(cape_blas_rate(&rate, static_cast<std::int64_t>(n)));
  return rate;
}

// [[Rcpp::export(rng = false)]]
Rcpp::DataFrame core_registry() {
  using Rcpp::_;
  const std::size_t n = cape_option_count();
  Rcpp::CharacterVector key(n), type(n), value(n), range(n), doc(n), source(n);
  for (std::size_t i = 0; i < n; ++i) {
    cape_option_desc d{};
    d.struct_size = sizeof d;
    check(cape_option_info(&d, i));
    key[i] = d.key;
    type[i] = d.type;
    value[i] = d.default_value;
    range[i] = d.range;
    doc[i] = d.doc;
    source[i] = d.source;
  }
  return Rcpp::DataFrame::create(_["key"] = key, _["type"] = type, _["default"] = value,
                                 _["range"] = range, _["doc"] = doc, _["source"] = source,
                                 _["stringsAsFactors"] = false);
}

// Throws if a setting is unknown, of another type or out of range.
// [[Rcpp::export(rng = false)]]
void core_check_options(const Rcpp::CharacterVector &settings) {
  Options options(settings, R_NilValue);
}
