// What the glue files share: calls into the C interface, its handles, its options, and views of R
// matrices. The core is seen through cape/cape.h alone.
#ifndef CAPEOMICS_GLUE_HPP
#define CAPEOMICS_GLUE_HPP

// Matrices of features x features have more than 2^32 elements from 65,536 features on.
#define ARMA_64BIT_WORD 1
#include <RcppArmadillo.h>
#include <cape/cape.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace capeomics {

// Turns a failure into an R error of class capeError, and a cancellation into R's interrupt. Both
// leave by C++ unwinding, so that handles are freed.
void check(cape_status status);
void check(cape_status status, const char *why);
// Why R gave up in a callback of the core: check() of the call throws that in place of CAPE_IO.
void keep_failure(std::exception_ptr why);

template <class T, void (*Free)(T *)> class Handle {
public:
  T **out() { return &pointer_; }
  const T *get() const { return pointer_; }
  T *get() { return pointer_; }
  Handle() = default;
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  ~Handle() { Free(pointer_); }

private:
  T *pointer_ = nullptr;
};
using Dag = Handle<cape_dag, cape_dag_free>;
using Embedding = Handle<cape_embedding, cape_embedding_free>;
using Result = Handle<cape_result, cape_result_free>;
using Prior = Handle<cape_prior, cape_prior_free>;
using Scan = Handle<cape_scan, cape_scan_free>;

class Checkpoint;

// The core's options, set from a named character vector, and R's side of the progress callback:
// it looks for an interrupt and, if `progress` is a function, calls it. No R error or interrupt may
// jump over the core's frames, so both happen inside a top-level context of their own.
class Options {
public:
  Options(const Rcpp::CharacterVector &settings, SEXP progress);
  // For calls that need no settings: the user can interrupt them.
  Options() : Options(Rcpp::CharacterVector(), R_NilValue) {}
  const cape_options *get() const { return options_.get(); }
  void keep(Checkpoint *checkpoint) { checkpoint_ = checkpoint; }

private:
  static int on_progress(const cape_progress *progress, void *self);
  Handle<cape_options, cape_options_free> options_;
  SEXP progress_;
  Checkpoint *checkpoint_ = nullptr;
};

// R jumps when it cannot allocate: over our frames, so that their destructors would not run. What is
// as long as the data (or may be) comes from here, where that jump becomes an exception. The values
// are not set.
template <int Type> Rcpp::Vector<Type> allocate(int64_t n) {
  return Rcpp::Vector<Type>(Rcpp::unwindProtect([n] { return Rf_allocVector(Type, n); }));
}
inline Rcpp::NumericMatrix allocate_matrix(int64_t n_rows, int64_t n_cols) {
  return Rcpp::NumericMatrix(Rcpp::unwindProtect([=] {
    return Rf_allocMatrix(REALSXP, static_cast<int>(n_rows), static_cast<int>(n_cols));
  }));
}
template <int Type, class T> Rcpp::Vector<Type> copied(const T *values, int64_t n) {
  Rcpp::Vector<Type> out = allocate<Type>(n);
  std::copy(values, values + n, out.begin());
  return out;
}

// An R matrix as it is.
inline cape_matrix_view view(const arma::mat &x) {
  return CAPE_MATRIX_VIEW(x.memptr(), static_cast<int64_t>(x.n_rows),
                          static_cast<int64_t>(x.n_cols));
}
// The only place where an assay (features x cells, column-major) becomes the core's table
// (observations x features): the same memory, read as row-major.
inline cape_matrix_view table_view(const arma::mat &assay) {
  cape_matrix_view v = view(assay);
  std::swap(v.n_rows, v.n_cols);
  v.layout = CAPE_ROW_MAJOR;
  return v;
}

// A dgCMatrix as it is, but for its offsets, which R has in 32 bits.
class SparseColumns {
public:
  explicit SparseColumns(const Rcpp::S4 &matrix)
      : dim_(matrix.slot("Dim")), i_(matrix.slot("i")), x_(matrix.slot("x")) {
    const Rcpp::IntegerVector p = matrix.slot("p");
    offsets_.assign(p.begin(), p.end());
  }
  cape_sparse_view view() const {
    return CAPE_SPARSE_VIEW(x_.begin(), i_.begin(), offsets_.data(), dim_[0], dim_[1],
                            CAPE_COL_MAJOR);
  }

private:
  Rcpp::IntegerVector dim_, i_;
  Rcpp::NumericVector x_;
  std::vector<int64_t> offsets_;
};

// A graph on n nodes from the 1-based ends of its edges.
void make_graph(Dag &out, int n, const Rcpp::IntegerVector &from, const Rcpp::IntegerVector &to,
                const Rcpp::NumericVector &weight);

// What is known before Step I, from the list that prior_of() makes (numbers from 1).
void make_prior(Prior &out, const Rcpp::List &known);

// A checkpoint from the raw vector `state` of an environment, and back into it when a call has failed;
// or none (NULL), if there is no such environment.
class Checkpoint {
public:
  // While a call with these options runs, its state is kept whenever that is due.
  Checkpoint(const Rcpp::Nullable<Rcpp::Environment> &store, Options &options);
  cape_checkpoint *get() { return checkpoint_.get(); }
  // check(), before which the state is kept.
  void check_or_keep(cape_status status);
  // During a call: the state to the environment's write(), if that is due. Gives no error.
  void keep_if_due();

private:
  static void write(void *self);
  Rcpp::Environment store_;
  Handle<cape_checkpoint, cape_checkpoint_free> checkpoint_;
  double seconds_ = 0; // between two states
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Everything that a handle knows, as plain R data.
Rcpp::List dag_to_list(const cape_dag *dag);
Rcpp::List embedding_to_list(const cape_embedding *embedding);

std::vector<int64_t> zero_based(const Rcpp::IntegerVector &numbers);

inline Rcpp::IntegerVector one_based(const std::vector<int64_t> &numbers) {
  Rcpp::IntegerVector out = allocate<INTSXP>(static_cast<int64_t>(numbers.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    out[i] = static_cast<int>(numbers[i]) + 1;
  return out;
}

} // namespace capeomics
#endif
