module;
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/model.hpp"

namespace cape::sem {

template <class T>
Model<T>::~Model() = default;

template <class T>
EdgeTerms<T>::~EdgeTerms() = default;

template <class T>
std::unique_ptr<Model<T>> make_model(std::int64_t features, Causes causes, const Noise& noise,
                                     const DagOptions& options) {
  // More than the parameters of any model: their number fits into 64 bits if this does.
  constexpr std::int64_t beside_weights = 1024;
  const std::int64_t channels = options.sem == Sem::mlp ? options.hidden : 1;
  const std::string_view what = "the parameters of the model";
  const std::int64_t inputs = causes.empty() ? features : causes.rows();
  checked_size(checked_size(features, channels, what) + beside_weights, inputs + beside_weights,
               what);
  if constexpr (std::is_same_v<T, double>) switch (options.sem) {
    case Sem::linear:
      return options.rank > 0 ? make_low_rank(features, noise, options)
                              : make_linear(features, noise);
    case Sem::paper: return make_paper(features, noise);
    case Sem::literal: return make_literal(features);
    case Sem::mlp: break;
    }
  return make_mlp<T>(features, std::move(causes), noise, options);
}

template class Model<float>;
template class Model<double>;
template class EdgeTerms<float>;
template class EdgeTerms<double>;
template std::unique_ptr<Model<float>> make_model(std::int64_t, Causes, const Noise&,
                                                          const DagOptions&);
template std::unique_ptr<Model<double>> make_model(std::int64_t, Causes, const Noise&,
                                                          const DagOptions&);

} // namespace cape::sem
