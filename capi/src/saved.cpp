// Graphs, embeddings and results outside of memory.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "bytes.hpp"

using namespace cape::capi;

namespace {

// What an object consists of, in one order for writing and reading.
template <class Archive, class Graph>
void dag_parts(Archive& archive, Graph& g) {
  auto& d = g.dag;
  archive(g.learned, d.graph, d.weights, d.sign, d.statistic, d.support, d.partners, d.bags,
          d.bag_share, d.required, d.order, d.history, d.converged, d.refined,
          d.false_discovery_rate, d.tested_pairs, d.h, d.lambda, d.threshold, d.effective_threshold);
  auto& s = d.suggestion;
  archive(s.threshold, s.effects, s.causes, s.differing, d.n_removed_for_acyclicity, d.center,
          d.scale, d.deviation, d.constant, d.collinear, d.warnings);
}

template <class Archive, class Embedded>
void embedding_parts(Archive& archive, Embedded& e) {
  archive(e.hyperboloid, e.poincare, e.generality, e.radius, e.pagerank, e.history, e.n_clamped,
          e.n_out_of_order, e.warnings, e.converged, e.stopped_early, e.truncated_mass);
}

template <class Archive, class Result>
void result_parts(Archive& archive, Result& r) {
  dag_parts(archive, r.dag);
  embedding_parts(archive, r.embedding.embedding);
  archive(r.angles);
}

// No padding, of which the bytes would be anything.
static_assert(sizeof(cape::DagEpoch) == 7 * 8 && sizeof(cape::EmbedEpoch) == 5 * 8 &&
              sizeof(cape::Edge) == 3 * 8);

void require(bool holds, const char* what) {
  if (!holds) throw cape::Error(cape::Status::bad_format, what);
}

bool finite(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double v) { return std::isfinite(v); });
}

template <class T>
bool is_of(const std::vector<T>& values, int64_t n) {
  return static_cast<int64_t>(values.size()) == n;
}

// Every entry point relies on these.
void check(const cape_dag& g) {
  const cape::Dag& d = g.dag;
  const int64_t nodes = d.graph.size();
  const auto is_node = [nodes](int64_t m) { return m >= 0 && m < nodes; };
  const auto joins_nodes = [&](const cape::Edge& e) {
    return is_node(e.from) && is_node(e.to) && std::isfinite(e.weight);
  };
  require(d.deviation.empty() || is_of(d.deviation, nodes), "deviations are not of its nodes");
  require(std::ranges::all_of(d.constant, is_node), "a column without variance is none");
  require(std::ranges::all_of(d.required, joins_nodes) &&
              std::ranges::all_of(d.collinear, joins_nodes),
          "an edge joins nodes that there are not");
  require(d.false_discovery_rate >= 0 && d.false_discovery_rate <= 1 && d.tested_pairs >= 0,
          "its rate of false discoveries is none");
  require(std::isfinite(d.h) && std::isfinite(d.lambda) && std::isfinite(d.threshold) &&
              std::isfinite(d.effective_threshold) && std::isfinite(d.suggestion.threshold) &&
              finite(d.center) && finite(d.scale) && finite(d.deviation),
          "a number is not finite");
  for (const cape::DagEpoch& e : d.history)
    require(finite({e.loss, e.reconstruction, e.kl, e.h, e.rho, e.alpha}),
            "its history is not finite");
  if (!g.learned) {
    require(d.weights.empty() && d.sign.empty() && d.statistic.empty() && d.support.empty() &&
                d.partners.empty() && d.bags == 0 && d.bag_share.empty() && d.order.empty(),
            "a graph that was not learned has weights before pruning");
    return;
  }
  for (const cape::SparseMatrix* m : {&d.weights, &d.sign})
    require(m->rows == nodes && m->cols == nodes, "weights and signs are not of its nodes");
  require(d.statistic.empty() ? !d.refined : d.statistic.rows == nodes && d.statistic.cols == nodes,
          "statistics are not of its nodes");
  const auto is_of_pairs = [nodes](const cape::SparseMatrix& m) {
    return m.rows == nodes && m.cols == nodes &&
           std::ranges::all_of(m.values, [](double v) { return v >= 0; });
  };
  require(d.support.empty() || is_of_pairs(d.support), "the support is not of its nodes");
  require(d.partners.empty() ||
              (d.partners.rows == nodes && d.partners.cols == nodes && finite(d.partners.values)),
          "partners are not of its nodes");
  for (int64_t j = 0; j < d.partners.cols; ++j)
    require(d.partners(j, j) == 0, "a node is its own partner");
  require(d.bags == 0 ? d.bag_share.empty() : d.bags > 0 && is_of_pairs(d.bag_share),
          "shares of bags are not of its nodes");
  require(is_of(d.center, nodes) && is_of(d.scale, nodes), "the scaling is not of its nodes");
  std::vector<int64_t> sorted = d.order, all(sorted.size());
  std::ranges::sort(sorted);
  std::iota(all.begin(), all.end(), int64_t{0});
  require(is_of(d.order, nodes) && sorted == all && is_acyclic(d.graph),
          "the order is not that of its nodes");
}

void check(const cape::Embedding& e) {
  const int64_t nodes = e.poincare.rows(), dims = e.poincare.cols();
  require(e.hyperboloid.rows() == nodes && e.hyperboloid.cols() == dims + 1 &&
              is_of(e.generality, nodes) && is_of(e.radius, nodes) && is_of(e.pagerank, nodes),
          "coordinates are not of its nodes");
  for (const cape::EmbedEpoch& epoch : e.history)
    require(finite({epoch.loss, epoch.contrastive, epoch.ranking, epoch.generality}),
            "its history is not finite");
  check_finite(e.hyperboloid, "hyperboloid");
  check_finite(e.poincare, "poincare");
  require(finite(e.generality) && finite(e.radius) && finite(e.pagerank) &&
              std::isfinite(e.truncated_mass),
          "a number is not finite");
}

constexpr std::string_view dag_tag = "CAPEDAG4", embedding_tag = "CAPEEMB1",
                           result_tag = "CAPERES4";

auto dag_writer(const cape_dag& dag) {
  return [&dag](Writer& to) { dag_parts(to, dag); };
}
auto embedding_writer(const cape_embedding& embedding) {
  return [&embedding](Writer& to) { embedding_parts(to, embedding.embedding); };
}
auto result_writer(const cape_result& result) {
  return [&result](Writer& to) { result_parts(to, result); };
}

} // namespace

cape_status cape_dag_save_size(int64_t* bytes_out, const cape_dag* dag) {
  clear(bytes_out);
  return guard(
      [&] { required(bytes_out, "bytes_out") = saved_size(dag_writer(object(dag, "dag"))); });
}

cape_status cape_dag_save(void* out, int64_t capacity, const cape_dag* dag) {
  return guard([&] { save(out, capacity, dag_tag, dag_writer(object(dag, "dag"))); });
}

cape_status cape_dag_load(cape_dag** out, const void* bytes, int64_t n) {
  return create(out, [&] {
    cape_dag loaded(cape::Digraph(0));
    load(bytes, n, dag_tag, "a graph", [&](Reader& from) {
      dag_parts(from, loaded);
      check(loaded);
    });
    return loaded;
  });
}

cape_status cape_embedding_save_size(int64_t* bytes_out, const cape_embedding* embedding) {
  clear(bytes_out);
  return guard([&] {
    required(bytes_out, "bytes_out") = saved_size(embedding_writer(object(embedding, "embedding")));
  });
}

cape_status cape_embedding_save(void* out, int64_t capacity, const cape_embedding* embedding) {
  return guard([&] {
    save(out, capacity, embedding_tag, embedding_writer(object(embedding, "embedding")));
  });
}

cape_status cape_embedding_load(cape_embedding** out, const void* bytes, int64_t n) {
  return create(out, [&] {
    cape::Embedding loaded;
    load(bytes, n, embedding_tag, "an embedding", [&](Reader& from) {
      embedding_parts(from, loaded);
      check(loaded);
    });
    return loaded;
  });
}

cape_status cape_result_save_size(int64_t* bytes_out, const cape_result* result) {
  clear(bytes_out);
  return guard([&] {
    required(bytes_out, "bytes_out") = saved_size(result_writer(object(result, "result")));
  });
}

cape_status cape_result_save(void* out, int64_t capacity, const cape_result* result) {
  return guard([&] { save(out, capacity, result_tag, result_writer(object(result, "result"))); });
}

cape_status cape_result_load(cape_result** out, const void* bytes, int64_t n) {
  return create(out, [&] {
    cape_result loaded(cape::Fit{});
    load(bytes, n, result_tag, "a result", [&](Reader& from) {
      result_parts(from, loaded);
      check(loaded.dag);
      check(loaded.embedding.embedding);
      require(loaded.dag.dag.graph.size() == loaded.embedding.embedding.poincare.rows() &&
                  loaded.angles.rows() == loaded.embedding.embedding.poincare.rows() &&
                  loaded.angles.cols() == loaded.embedding.embedding.poincare.cols(),
              "its parts are of different sizes");
      check_finite(loaded.angles, "angles");
    });
    return loaded;
  });
}
