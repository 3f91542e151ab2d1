module;
#include "internal/message.hpp"
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>
module cape.hyperbolic;
#include "hyperbolic/options.hpp"

namespace cape {

OptionFields fields(EmbedOptions& o) {
  return {
      {.name = "embed.dims",
       .value = &o.dims,
       .min = 1,
       .max = 4096,
       .doc = "Dimensions d of the hyperbolic space; a transformer's features have 2d",
       .source = "paper, sec_hyperbolic"},
      {.name = "embed.coverage",
       .value = choice(o.coverage, {"edges", "support"}),
       .doc = "What of a learned graph is embedded. edges: the graph; features without edges are put "
              "at the origin. support: each of these beside the feature that it has most to do with, "
              "if that is above noise",
       .source = "docs/method.md, section 3"},
      {.name = "embed.objective",
       .value = choice(o.objective, {"soft", "literal", "effect", "symmetric"}),
       .doc =
           "soft: targets over all path lengths, radii ranked along edges, PageRank penalty. The "
           "paper's contrastive loss with k-hop positives: literal (anchor = cause; puts causes "
           "farther out than effects), effect (anchor = effect), symmetric (both)",
       .source = "paper, eq_losscon; docs/method.md, section 3"},
      {.name = "embed.optimizer",
       .value = choice(o.optimizer, {"radam", "rsgd"}),
       .doc = "Riemannian Adam with one second moment a node, or Riemannian gradient descent",
       .source = "paper, Eq_euc_rieman to eq_exp; docs/method.md, section 3"},
      {.name = "embed.space",
       .value = choice(o.space, {"hyperbolic", "euclidean"}),
       .doc = "Where distances are taken; euclidean is the ablation without hyperbolic space (soft "
              "objective, all pairs)",
       .source = "paper, tab_ablation (w/o-hyperbolic)"},
      {.name = "embed.hop_cost",
       .value = &o.hop_cost,
       .min = 0,
       .max = 100,
       .doc = "Cost c of a hop: an edge is c - ln|A| long. Larger follows hops, smaller strengths",
       .source = "docs/method.md, section 3"},
      {.name = "embed.soft_temperature",
       .value = &o.soft_temperature,
       .min = 0.01,
       .max = 1000,
       .doc = "Temperature of the targets exp(-distance in the graph / this); soft objective",
       .source = "docs/method.md, section 3"},
      {.name = "embed.temperature",
       .value = &o.temperature,
       .min = 0.01,
       .max = 100,
       .automatic = true,
       .doc =
           "Temperature of the hyperbolic distances; automatic: 0.25 from 8 dimensions on and 0.5 "
           "below (soft), 1 (others)",
       .source = "paper, eq_losscon; docs/method.md, section 3"},
      {.name = "embed.rank_weight",
       .value = &o.rank_weight,
       .min = 0,
       .max = 1000,
       .doc =
           "Weight of the term that puts a cause nearer the origin than its effect; soft objective",
       .source = "docs/method.md, section 3"},
      {.name = "embed.rank_margin",
       .value = &o.rank_margin,
       .min = 0,
       .max = 10,
       .doc = "Difference of radii along an edge below which the ranking term acts; on deep graphs "
              "at most 4 over the edges of the longest path",
       .source = "docs/method.md, section 3"},
      {.name = "embed.rank_temperature",
       .value = &o.rank_temperature,
       .min = 1e-4,
       .max = 10,
       .doc = "Softness of the ranking term",
       .source = "docs/method.md, section 3"},
      {.name = "embed.level_weight",
       .value = &o.level_weight,
       .min = 0,
       .max = 1000,
       .doc =
           "Weight of the term that draws radii to the nodes' ranks by PageRank, so that they are "
           "comparable across the graph; soft objective",
       .source = "docs/method.md, section 3"},
      {.name = "embed.level_spread",
       .value = &o.level_spread,
       .min = 0,
       .max = 10,
       .automatic = true,
       .doc =
           "Difference of radius between the least and the most general node that this term aims "
           "at; automatic: 0.15 from 8 dimensions on and 1 below",
       .source = "docs/method.md, section 3"},
      {.name = "embed.generality_weight",
       .value = &o.generality_weight,
       .min = 0,
       .max = 1000,
       .automatic = true,
       .doc =
           "Weight lambda_g of the PageRank penalty; automatic: 0.01 (soft, of M pi), 0.1 (others, "
           "of pi)",
       .source = "paper, eq_regularization; docs/method.md, section 3"},
      {.name = "embed.restart",
       .value = &o.restart,
       .min = 0,
       .max = 1,
       .open_min = true,
       .open_max = true,
       .doc = "Restart probability w of the PageRank",
       .source = "paper, eq_gregariousness"},
      {.name = "embed.k_hop",
       .value = &o.k_hop,
       .min = 1,
       .max = 1000,
       .doc = "Positives are within this many hops; literal, effect and symmetric objectives",
       .source = "paper, eq_losscon"},
      {.name = "embed.epochs",
       .value = &o.epochs,
       .min = 1,
       .max = 1e7,
       .automatic = true,
       .doc = "Most steps of the optimiser on all nodes; automatic: 500 (soft), 1000 (others)",
       .source = "paper, Step II settings; docs/method.md, section 3"},
      {.name = "embed.tolerance",
       .value = &o.tolerance,
       .min = 0,
       .max = 1,
       .doc = "When the mean loss of 20 epochs is below that of the 20 before by less than this "
              "part of the whole fall so far, the learning rate is cut to a quarter, and below 2 % "
              "of the first the descent ends; 0: never. Not looked at where negatives are drawn",
       .source = "docs/method.md, section 3"},
      {.name = "embed.learning_rate",
       .value = &o.learning_rate,
       .min = 0,
       .max = 1e6,
       .open_min = true,
       .automatic = true,
       .doc = "First learning rate, falling to 2 % along a cosine; automatic: 0.1 (soft), 0.01 "
              "(others); times the number of nodes for rsgd, whose steps are as small as the mean "
              "over nodes makes its gradient",
       .source = "docs/method.md, section 3"},
      {.name = "embed.negatives",
       .value = &o.negatives,
       .min = 0,
       .max = 65536, // more cost more than all pairs of most graphs
       .automatic = true,
       .doc =
           "Nodes drawn at every epoch to stand for all that are not among a node's positives; 0: "
           "all pairs count; automatic: 0 up to 5000 nodes, else 512. Soft objective",
       .source = "docs/method.md, section 3"},
      {.name = "embed.positives",
       .value = &o.positives,
       .min = 1,
       .max = 10000,
       .doc = "Where negatives are drawn: how many nearest nodes of a node count exactly",
       .source = "docs/method.md, section 3"},
      {.name = "embed.max_radius",
       .value = &o.max_radius,
       .min = 0,
       .max = 30,
       .open_min = true,
       .doc = "Points are held within this distance of the origin",
       .source = "not in the paper: keeps distances within range"},
      {.name = "embed.start",
       .value = choice(o.start, {"automatic", "scaling", "random"}),
       .doc = "Where the descent starts: classical scaling of the distances in the graph (among "
              "landmarks where negatives are drawn), or at random about the origin; automatic: "
              "scaling (soft), random (others)",
       .source = "docs/method.md, section 3"},
      {.name = "embed.burn_in",
       .value = &o.burn_in,
       .min = 0,
       .max = 1e7,
       .automatic = true,
       .doc = "Epochs at the beginning with a tenth of the learning rate; automatic: 10 for rsgd, "
              "else 0",
       .source = "M. Nickel and D. Kiela, NeurIPS 2017, section 3.1"},
  };
}

EmbedOptions settled(EmbedOptions o, std::int64_t nodes) {
  constexpr std::int64_t most_nodes_exact = 5000;
  check_options(fields(o));
  const bool soft = o.objective == Objective::soft;
  if (std::isnan(o.temperature)) o.temperature = !soft ? 1.0 : o.dims >= 8 ? 0.25 : 0.5;
  if (std::isnan(o.level_spread)) o.level_spread = o.dims >= 8 ? 0.15 : 1.0;
  if (std::isnan(o.generality_weight)) o.generality_weight = soft ? 0.01 : 0.1;
  if (o.negatives == -1) o.negatives = soft && nodes > most_nodes_exact ? 512 : 0;
  if (o.space == Space::euclidean && (!soft || o.negatives > 0))
    throw Error(
        Status::invalid_argument,
        "embed.space is euclidean; it must be hyperbolic unless embed.objective is soft and "
        "embed.negatives 0");
  if (o.negatives > 0 && !soft)
    throw Error(Status::invalid_argument, message("embed.negatives is ", o.negatives,
                                                  "; it must be 0 unless embed.objective is soft"));
  if (o.epochs == -1) o.epochs = soft ? 500 : 1000;
  if (o.start == Start::automatic) o.start = soft ? Start::scaling : Start::random;
  if (o.burn_in == -1) o.burn_in = o.optimizer == Optimizer::rsgd ? 10 : 0;
  if (o.negatives > 0) o.tolerance = 0; // a plateau cannot be told from the noise of the draws
  if (std::isnan(o.learning_rate)) {
    o.learning_rate = soft ? 0.1 : 0.01;
    if (o.optimizer == Optimizer::rsgd) o.learning_rate *= static_cast<double>(nodes);
  }
  const double lowest = 2 * o.max_radius / 650; // exp(-650) is a normal number, its inverse too
  if (o.temperature < lowest)
    throw Error(Status::invalid_argument,
                message("embed.temperature is ", o.temperature, "; with embed.max_radius ",
                        o.max_radius, " it must be at least ", lowest));
  return o;
}

} // namespace cape
