// Steps I to III in one call, and what they will cost.
#include "glue.hpp"

using namespace capeomics;

// assay: features x cells.
// [[Rcpp::export(rng = false)]]
Rcpp::List core_fit(const arma::mat &assay, const Rcpp::List &known,
                    const Rcpp::CharacterVector &settings, SEXP progress,
                    const Rcpp::Nullable<Rcpp::Environment> &store = R_NilValue) {
  using Rcpp::_;
  Options options(settings, progress);
  const cape_matrix_view x = table_view(assay);
  Prior prior;
  make_prior(prior, known);
  Result result;
  Checkpoint checkpoint(store, options);
  checkpoint.check_or_keep(
      cape_fit_from(result.out(), &x, prior.get(), checkpoint.get(), options.get()));
  const cape_dag *dag = nullptr;
  const cape_embedding *embedding = nullptr;
  check(cape_result_dag(&dag, result.get()));
  check(cape_result_embedding(&embedding, result.get()));
  cape_embedding_info info{};
  info.struct_size = sizeof info;
  check(cape_embedding_describe(&info, embedding));
  Rcpp::NumericMatrix angles = allocate_matrix(info.n_nodes, info.n_dims);
  check(cape_result_angles(angles.begin(), info.n_nodes, info.n_dims, result.get()));
  return Rcpp::List::create(_["dag"] = dag_to_list(dag),
                            _["embedding"] = embedding_to_list(embedding), _["angles"] = angles);
}

// [[Rcpp::export(rng = false)]]
Rcpp::NumericVector core_estimate(double n, double m, const Rcpp::CharacterVector &settings) {
  const Options options(settings, R_NilValue);
  double bytes = 0, seconds = 0;
  check(cape_estimate(&bytes, &seconds, static_cast<int64_t>(n), static_cast<int64_t>(m),
                      options.get()));
  return Rcpp::NumericVector::create(Rcpp::_["bytes"] = bytes, Rcpp::_["seconds"] = seconds);
}
