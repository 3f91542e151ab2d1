module;
#include <algorithm>
#include <cstdint>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <typeinfo>
#include <variant>
#include <vector>
module cape.transformer;
#include "transformer/parameters.hpp"
#include "transformer/tokens.hpp"

namespace cape {
namespace {

// Numbers that the passes keep of a token: rows of the model's width and of the feed-forward layer.
double numbers_of_token(const BackboneOptions& o, double blocks, double others) {
  return blocks * (5 * static_cast<double>(o.width) + 4 * static_cast<double>(inner_width(o)) +
                   2 * static_cast<double>(o.feed_forward)) +
         others * static_cast<double>(o.width);
}

} // namespace

double pretrain_memory(const Backbone& backbone, const TrainingOptions& options) {
  const BackboneOptions& o = backbone.options;
  const auto features = static_cast<double>(backbone.features.size());
  const double tokens = static_cast<double>(options.batch_cells) *
                        (1 + std::min(static_cast<double>(options.length), features));
  // Parameters, gradient, two moments, the best.
  return 4 * (5 * static_cast<double>(backbone.parameters.size()) +
              tokens * numbers_of_token(o, static_cast<double>(o.blocks), 20)) +
         8 * static_cast<double>(options.batch_cells) * features;
}

double encode_memory(const Backbone& backbone) {
  const auto features = static_cast<double>(backbone.features.size());
  const double tokens =
      static_cast<double>(cells_at_once(std::ssize(backbone.features))) * (features + 1);
  return 4 * tokens * numbers_of_token(backbone.options, 2, 12) + 16 * tokens;
}

} // namespace cape
