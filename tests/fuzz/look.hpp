// What must hold of every graph, embedding and result.
#pragma once
#include "fuzz.hpp"

namespace fuzz {

inline cape_dag_info look(const cape_dag* dag) {
  cape_dag_info info{};
  info.struct_size = sizeof info;
  MUST(cape_dag_describe, &info, dag);
  const std::int64_t m = info.n_nodes;
  std::vector<double> a(static_cast<std::size_t>(m * m)),
      weight(static_cast<std::size_t>(info.n_edges));
  std::vector<std::int64_t> from(weight.size()), to(weight.size()),
      order(static_cast<std::size_t>(m));
  MUST(cape_dag_edges, from.data(), to.data(), weight.data(), info.n_edges, dag);
  MUST(cape_dag_adjacency, a.data(), m, m, dag);
  finite(weight, "cape_dag_edges");
  if (!info.learned) return info;
  if (!info.acyclic) fail("cape_dag_learn", "a cycle");
  MUST(cape_dag_weights, a.data(), m, m, dag);
  finite(a, "cape_dag_weights");
  MUST(cape_dag_sign, a.data(), m, m, dag);
  MUST(cape_dag_order, order.data(), m, dag);
  if (info.refined) {
    MUST(cape_dag_statistic, a.data(), m, m, dag);
    finite(a, "cape_dag_statistic");
  }
  finite(std::vector<double>{info.h, info.lambda, info.threshold, info.effective_threshold},
         "cape_dag_describe");
  std::vector<double> history(static_cast<std::size_t>(info.n_epochs * 7)), center(order.size()),
      scale(order.size());
  MUST(cape_dag_history, history.data(), info.n_epochs, 7, dag);
  finite(history, "cape_dag_history");
  MUST(cape_dag_scaling, center.data(), scale.data(), m, dag);
  finite(center, "cape_dag_scaling");
  finite(scale, "cape_dag_scaling");
  for (std::int64_t i = 0; i < info.n_warnings; ++i) {
    const char* text = nullptr;
    MUST(cape_dag_warning, &text, dag, i);
  }
  return info;
}

inline cape_embedding_info look(const cape_embedding* embedding) {
  cape_embedding_info info{};
  info.struct_size = sizeof info;
  MUST(cape_embedding_describe, &info, embedding);
  const std::int64_t m = info.n_nodes, d = info.n_dims;
  const auto size = [](std::int64_t rows, std::int64_t cols) {
    return static_cast<std::size_t>(rows * cols);
  };
  std::vector<double> points(size(m, d + 1)), ball(size(m, d)), generality(size(m, 1)),
      radius(size(m, 1)), rank(size(m, 1)), history(size(info.n_epochs, 5));
  MUST(cape_embedding_hyperboloid, points.data(), m, d + 1, embedding);
  MUST(cape_embedding_poincare, ball.data(), m, d, embedding);
  MUST(cape_embedding_nodes, generality.data(), radius.data(), rank.data(), m, embedding);
  MUST(cape_embedding_history, history.data(), info.n_epochs, 5, embedding);
  for (const auto* x : {&points, &ball, &generality, &radius, &rank})
    finite(*x, "cape_embedding_fit");
  finite(history, "cape_embedding_history");
  return info;
}

inline void look(const cape_result* result) {
  const cape_dag* dag = nullptr;
  const cape_embedding* embedding = nullptr;
  MUST(cape_result_dag, &dag, result);
  MUST(cape_result_embedding, &embedding, result);
  look(dag);
  const cape_embedding_info info = look(embedding);
  std::vector<double> angles(static_cast<std::size_t>(info.n_nodes * info.n_dims)),
      by_row(angles.size());
  MUST(cape_result_angles, angles.data(), info.n_nodes, info.n_dims, result);
  MUST(cape_result_angles_by_row, by_row.data(), info.n_nodes, info.n_dims, result);
  finite(angles, "cape_result_angles");
}

} // namespace fuzz
