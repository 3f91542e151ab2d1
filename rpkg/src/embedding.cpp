// Step II: the embedding of a graph.
#include "glue.hpp"

using namespace capeomics;

Rcpp::List capeomics::embedding_to_list(const cape_embedding *embedding) {
  using Rcpp::_;
  cape_embedding_info info{};
  info.struct_size = sizeof info;
  check(cape_embedding_describe(&info, embedding));
  const int64_t n = info.n_nodes, d = info.n_dims;
  Rcpp::NumericMatrix hyperboloid = allocate_matrix(n, d + 1), poincare = allocate_matrix(n, d),
                      history = allocate_matrix(info.n_epochs, 5);
  check(cape_embedding_hyperboloid(hyperboloid.begin(), n, d + 1, embedding));
  check(cape_embedding_poincare(poincare.begin(), n, d, embedding));
  check(cape_embedding_history(history.begin(), info.n_epochs, 5, embedding));
  Rcpp::NumericVector generality = allocate<REALSXP>(n), radius = allocate<REALSXP>(n),
                      pagerank = allocate<REALSXP>(n);
  check(cape_embedding_nodes(generality.begin(), radius.begin(), pagerank.begin(), n, embedding));
  Rcpp::CharacterVector warnings = allocate<STRSXP>(info.n_warnings);
  for (int64_t i = 0; i < info.n_warnings; ++i) {
    const char *text = nullptr;
    check(cape_embedding_warning(&text, embedding, i));
    warnings[i] = text;
  }
  return Rcpp::List::create(
      _["hyperboloid"] = hyperboloid, _["poincare"] = poincare, _["generality"] = generality,
      _["radius"] = radius, _["pagerank"] = pagerank, _["history"] = history,
      _["warnings"] = warnings,
      _["info"] = Rcpp::List::create(_["converged"] = info.converged != 0,
                                     _["stopped_early"] = info.stopped_early != 0,
                                     _["n_clamped"] = static_cast<double>(info.n_clamped),
                                     _["n_out_of_order"] = static_cast<double>(info.n_out_of_order),
                                     _["truncated_mass"] = info.truncated_mass));
}

// [[Rcpp::export(rng = false)]]
Rcpp::List core_embed(int n, const Rcpp::IntegerVector &from, const Rcpp::IntegerVector &to,
                      const Rcpp::NumericVector &weight, const Rcpp::CharacterVector &settings,
                      SEXP progress, const Rcpp::Nullable<Rcpp::Environment> &store = R_NilValue) {
  Options options(settings, progress);
  Dag dag;
  make_graph(dag, n, from, to, weight);
  Embedding embedding;
  Checkpoint checkpoint(store, options);
  checkpoint.check_or_keep(
      cape_embedding_fit_from(embedding.out(), dag.get(), checkpoint.get(), options.get()));
  return embedding_to_list(embedding.get());
}
