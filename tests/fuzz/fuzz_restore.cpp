// Graphs that are restored from weights, signs, order and required edges: each is like one that was
// learned.
#include "look.hpp"
#include "matrix.hpp"

using fuzz::Input;

namespace {

std::vector<char> saved(const cape_dag* dag) {
  std::int64_t bytes = 0;
  MUST(cape_dag_save_size, &bytes, dag);
  std::vector<char> out(static_cast<std::size_t>(bytes));
  MUST(cape_dag_save, out.data(), bytes, dag);
  return out;
}

// Mostly an order of m nodes.
std::vector<std::int64_t> order_of(Input& in, std::int64_t m) {
  if (in.one_in(8)) return in.indices(in.in(0, 6), m);
  std::vector<std::int64_t> order(static_cast<std::size_t>(m));
  for (std::int64_t i = 0; i < m; ++i) order[static_cast<std::size_t>(i)] = i;
  for (std::int64_t i = m - 1; i > 0; --i)
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(in.in(0, i))]);
  return order;
}

// What holds of every graph that was restored.
void use(Input& in, const cape_dag* dag) {
  const cape_dag_info info = fuzz::look(dag);
  cape_sparse_view weights{}, sign{};
  weights.struct_size = sign.struct_size = sizeof weights;
  MUST(cape_dag_weights_view, &weights, dag);
  MUST(cape_dag_sign_view, &sign, dag);
  std::vector<std::int64_t> order(static_cast<std::size_t>(info.n_nodes));
  MUST(cape_dag_order, order.data(), info.n_nodes, dag);
  cape_dag *again = nullptr, *pruned = nullptr, *loaded = nullptr;
  MUST(cape_dag_restore, &again, &weights, &sign, order.data(), info.n_nodes, nullptr, nullptr, 0,
       info.threshold, nullptr);
  fuzz::look(again);
  const double tau = std::fabs(in.mostly_ordinary());
  if (CALL(cape_dag_prune, &pruned, dag, tau, nullptr) != std::isfinite(tau))
    fuzz::fail("cape_dag_prune", "tau");
  if (pruned != nullptr) fuzz::look(pruned);
  const std::vector<char> bytes = saved(dag);
  MUST(cape_dag_load, &loaded, bytes.data(), std::ssize(bytes));
  if (saved(loaded) != bytes) fuzz::fail("cape_dag_load", "other bytes at the second time");
  for (cape_dag* d : {again, pruned, loaded}) cape_dag_free(d);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  const std::int64_t m = in.in(0, 6);
  fuzz::Sparse weights(in, m, in.one_in(24) ? in.in(0, 6) : m, true), sign(in, m, m, true);
  if (!in.one_in(8) && weights.view.n_rows == weights.view.n_cols) // both are square
    weights.view.layout = sign.view.layout = CAPE_COL_MAJOR;
  if (!in.one_in(8))
    for (double& s : sign.values) s = static_cast<double>((s > 0) - (s < 0));
  if (!in.one_in(4))
    for (double& w : weights.values) w = std::isfinite(w) ? w : 1;
  const std::vector<std::int64_t> order = order_of(in, m);
  const std::int64_t n_required = in.one_in(3) ? in.in(0, 4) : 0;
  const std::vector<std::int64_t> from = in.indices(n_required, m), to = in.indices(n_required, m);
  const double tau = in.one_in(8) ? in.number() : std::fabs(in.ordinary());
  cape_dag* dag = nullptr;
  const bool with_order = in.flip();
  if (CALL(cape_dag_restore, &dag, &weights.view, in.flip() ? &sign.view : nullptr,
           with_order ? order.data() : nullptr, with_order ? std::ssize(order) : 0, from.data(),
           to.data(), n_required, tau, nullptr))
    use(in, dag);
  cape_dag_free(dag);
  return 0;
}
