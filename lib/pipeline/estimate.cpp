module;
#include <algorithm>
#include <cstdint>
module cape.pipeline;

namespace cape {

Estimate estimate(std::int64_t n, std::int64_t m, const Options& options) {
  const double table = 8 * static_cast<double>(checked_size(n, m, "the table"));
  return {.bytes = std::max(learn_dag_memory(n, m, options.dag),
                            table + embed_dag_memory(m, options.embed)),
          .seconds = learn_dag_seconds(n, m, options.dag) + embed_dag_seconds(m, options.embed)};
}

} // namespace cape
