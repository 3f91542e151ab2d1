#include "glue.hpp"

namespace capeomics {
namespace {

std::exception_ptr failure;

void check_interrupt(void *) { R_CheckUserInterrupt(); }

// A call of R's progress function.
struct Display {
  SEXP fun;
  const cape_progress *progress;
  int failed = 0;
};

// Inside a top-level context, which an allocation that fails ends here: nothing in it has a destructor.
void show(void *display) {
  Display &d = *static_cast<Display *>(display);
  const cape_progress &p = *d.progress;
  SEXP call = PROTECT(Rf_allocVector(LANGSXP, 6)), at = call;
  SETCAR(at, d.fun);
  SETCAR(at = CDR(at), Rf_mkString(p.stage));
  SETCAR(at = CDR(at), Rf_ScalarReal(static_cast<double>(p.step)));
  SETCAR(at = CDR(at), Rf_ScalarReal(static_cast<double>(p.total)));
  SETCAR(at = CDR(at), Rf_ScalarReal(p.loss));
  SETCAR(CDR(at), Rf_ScalarReal(p.constraint));
  R_tryEvalSilent(call, R_GlobalEnv, &d.failed);
  UNPROTECT(1);
}

} // namespace

void keep_failure(std::exception_ptr why) { failure = std::move(why); }

void check(cape_status status) { check(status, cape_last_error()); }

void check(cape_status status, const char *why) {
  if (status == CAPE_OK)
    return;
  if (status == CAPE_IO && failure)
    std::rethrow_exception(std::exchange(failure, nullptr));
  if (status == CAPE_CANCELLED)
    throw Rcpp::internal::InterruptedException();
  Rcpp::Function signal = Rcpp::Environment::namespace_env("capeOmics")["signal_core_error"];
  signal(cape_status_name(status), why);
}

Options::Options(const Rcpp::CharacterVector &settings, SEXP progress) : progress_(progress) {
  check(cape_options_new(options_.out()));
  const Rcpp::CharacterVector keys = settings.size() > 0
                                         ? Rcpp::CharacterVector(settings.names())
                                         : Rcpp::CharacterVector();
  for (R_xlen_t i = 0; i < settings.size(); ++i)
    check(cape_options_set_text(options_.get(), keys[i], settings[i]));
  check(cape_options_set_progress(options_.get(), on_progress, this));
}

int Options::on_progress(const cape_progress *p, void *self) {
  if (!R_ToplevelExec(check_interrupt, nullptr))
    return 1;
  Options &options = *static_cast<Options *>(self);
  if (options.checkpoint_ != nullptr)
    options.checkpoint_->keep_if_due();
  SEXP &fun = options.progress_;
  if (Rf_isNull(fun))
    return 0;
  Display display{fun, p};
  if (!R_ToplevelExec(show, &display) || display.failed)
    fun = R_NilValue; // a display that does not work is no reason to lose the fit
  return 0;
}

std::vector<int64_t> zero_based(const Rcpp::IntegerVector &numbers) {
  std::vector<int64_t> out;
  out.reserve(static_cast<std::size_t>(numbers.size()));
  for (const int number : numbers)
    out.push_back(int64_t{number} - 1);
  return out;
}

void make_graph(Dag &out, int n, const Rcpp::IntegerVector &from, const Rcpp::IntegerVector &to,
                const Rcpp::NumericVector &weight) {
  const std::vector<int64_t> a = zero_based(from), b = zero_based(to);
  check(cape_dag_from_edges(out.out(), n, a.data(), b.data(), weight.begin(), weight.size()));
}

Checkpoint::Checkpoint(const Rcpp::Nullable<Rcpp::Environment> &store, Options &options) {
  if (store.isNull())
    return;
  store_ = Rcpp::Environment(store.get());
  seconds_ = Rcpp::as<double>(store_["seconds"]);
  options.keep(this);
  const Rcpp::RObject state = store_["state"];
  if (state.isNULL()) {
    check(cape_checkpoint_new(checkpoint_.out()));
  } else {
    const Rcpp::RawVector bytes(state);
    check(cape_checkpoint_load(checkpoint_.out(), bytes.begin(), bytes.size()));
  }
}

// Inside a top-level context, which an error of R ends here: nothing in it has a destructor.
void Checkpoint::write(void *self) {
  const Checkpoint &c = *static_cast<Checkpoint *>(self);
  int64_t bytes = 0, epochs = 0;
  if (cape_checkpoint_size(&bytes, &epochs, c.checkpoint_.get()) != CAPE_OK || epochs == 0)
    return;
  SEXP state = PROTECT(Rf_allocVector(RAWSXP, static_cast<R_xlen_t>(bytes)));
  if (cape_checkpoint_save(RAW(state), bytes, c.checkpoint_.get()) == CAPE_OK) {
    SEXP call = PROTECT(Rf_lang2(Rf_install("write"), state));
    Rf_eval(call, c.store_);
    UNPROTECT(1);
  }
  UNPROTECT(1);
}

void Checkpoint::keep_if_due() {
  const auto now = std::chrono::steady_clock::now();
  if (std::chrono::duration<double>(now - last_).count() < seconds_)
    return;
  R_ToplevelExec(write, this);
  last_ = std::chrono::steady_clock::now();
}

void Checkpoint::check_or_keep(cape_status status) {
  const std::string why = cape_last_error(); // that of the calls below comes next
  int64_t bytes = 0, epochs = 0;
  if (get() != nullptr && status != CAPE_OK &&
      cape_checkpoint_size(&bytes, &epochs, checkpoint_.get()) == CAPE_OK &&
      epochs > 0) {
    Rcpp::RawVector state = allocate<RAWSXP>(bytes);
    if (cape_checkpoint_save(state.begin(), bytes, checkpoint_.get()) == CAPE_OK) {
      store_["state"] = state;
      store_["epochs"] = static_cast<double>(epochs);
    }
  }
  check(status, why.c_str());
}

} // namespace capeomics
