module;
#include "dag/kernels/node_regression.hpp"
#include "internal/arma.hpp"
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/elimination.hpp"
#include "dag/row_design.hpp"

namespace cape {
namespace {

// The squared error beyond which a row counts as an outlier: for normal errors that of three
// standard deviations, by their 95 % quantile (3.8415 is that of a squared standard normal
// variable). A lower quantile would be that of the many zeros of sparse counts; where even that one
// is, it is the mean: what a few rows do to the prediction of all zeros is not the evidence of as
// many.
double outlier_limit(std::vector<double> squared_error) {
  const auto quantile = squared_error.begin() + std::ssize(squared_error) * 95 / 100;
  std::ranges::nth_element(squared_error, quantile);
  const double n = static_cast<double>(squared_error.size());
  double mean = 0; // by parts: a sum of finite errors could overflow
  for (const double e : squared_error) mean += e / n;
  return std::max(9 * *quantile / 3.8415, mean);
}

// t of the paired differences without - with, of errors up to a limit; 0 where they do not vary. By
// a power of 2, which changes no bit of t, the differences are such that squares neither overflow
// nor vanish.
double paired_t(const std::vector<double>& without, const std::vector<double>& with, double limit) {
  const double n = static_cast<double>(with.size());
  const auto unscaled = [&](std::size_t r) {
    return std::min(without[r], limit) - std::min(with[r], limit);
  };
  double largest = 0;
  for (std::size_t r = 0; r < with.size(); ++r) largest = std::max(largest, std::fabs(unscaled(r)));
  if (largest == 0) return 0;
  const int exponent = std::ilogb(largest);
  const auto difference = [&](std::size_t r) { return std::scalbn(unscaled(r), -exponent); };
  double shift = 0, sum = 0;
  for (std::size_t r = 0; r < with.size(); ++r) shift += difference(r);
  shift /= n;
  for (std::size_t r = 0; r < with.size(); ++r) {
    const double d = difference(r) - shift;
    sum += d * d;
  }
  return sum > 0 ? shift / std::sqrt(sum / (n - 1) / n) : 0;
}

// The root of the share of the error, up to a limit, that goes with the cause: of linear relations
// the partial correlation.
double explained(const std::vector<double>& without, const std::vector<double>& with,
                 double limit) {
  const double largest = std::min(limit, std::ranges::max(without));
  if (!(largest > 0)) return 0;
  double before = 0, after = 0;
  for (std::size_t r = 0; r < with.size(); ++r) {
    before += std::min(without[r], limit) / largest;
    after += std::min(with[r], limit) / largest;
  }
  return std::sqrt(std::max(0.0, 1 - after / before));
}

// What speaks for an edge.
struct Evidence {
  double t = 0, strength = 0;
};

// An effect may be one of large values alone, or be hidden by a few outliers: the larger t counts,
// of the errors as they are and up to the limit of an outlier.
Evidence evidence_of(const std::vector<double>& without, const std::vector<double>& with) {
  if (std::ssize(with) < least_rows) return {}; // of columns with missing values
  Evidence best{-std::numeric_limits<double>::infinity(), 0};
  for (const double limit : {std::numeric_limits<double>::infinity(), outlier_limit(with)})
    if (const double t = paired_t(without, with, limit); t > best.t)
      best = {t, explained(without, with, limit)};
  return best;
}

// The errors of the rows where neither end of an edge is missing: what was drawn is as much a
// function of the other end as the draw made it.
std::vector<double> where_known(const std::vector<double>& errors, const Regressions& regressions,
                                const sem::Mask& missing, std::int64_t from, std::int64_t to) {
  if (missing.empty()) return errors;
  std::vector<double> known;
  for (std::int64_t i = 0; i < std::ssize(errors); ++i)
    if (const std::int64_t row = regressions.row(i); !missing(row, from) && !missing(row, to))
      known.push_back(errors[static_cast<std::size_t>(i)]);
  return known;
}

} // namespace

std::optional<double> recorded(const Journal* journal, std::uint64_t key) {
  return journal ? journal->find(key) : std::nullopt;
}

void record(Journal* journal, std::uint64_t key, double value) {
  if (journal && std::isfinite(value)) journal->add(key, value);
}

namespace {

// Of what the journal has beside t.
std::uint64_t strength_key(std::uint64_t key) { return hash(message(key, " strength")); }

} // namespace

TestedEdges eliminate(std::vector<Family> open, const Regressions& regressions,
                      const sem::Mask& missing, double least_t,
                      const std::function<bool(std::int64_t, std::int64_t)>& required, Run& run,
                      Journal* journal,
                      const std::function<void(std::size_t, std::size_t)>& report) {
  // Only families that may still lose a parent stay open.
  std::erase_if(open, [](const Family& f) { return f.parents.empty(); });
  std::vector<std::vector<double>> error(open.size()); // empty until a trial needs it

  struct Trial {
    std::size_t of; // which of the open families
    Family without;
    std::int64_t parent;
    std::uint64_t key;
    std::vector<double> error; // empty if the journal knows the evidence
    Evidence evidence;
  };
  const auto test = [&](Trial& trial) {
    trial.error = regressions.squared_error(trial.without);
    const auto errors = [&](const std::vector<double>& of_all) {
      return where_known(of_all, regressions, missing, trial.parent, trial.without.node);
    };
    trial.evidence = evidence_of(errors(trial.error), errors(error[trial.of]));
    // t last: where there is one, there is the other.
    record(journal, strength_key(trial.key), trial.evidence.strength);
    record(journal, trial.key, trial.evidence.t);
  };
  std::map<std::pair<std::int64_t, std::int64_t>, Evidence> evidence;
  TestedEdges result;
  while (!open.empty()) {
    std::vector<Trial> trials;
    for (std::size_t o = 0; o < open.size(); ++o)
      for (const std::int64_t parent : open[o].parents) {
        Family without = open[o];
        std::erase(without.parents, parent);
        Family tested = without; // the one that is left out comes last
        tested.parents.push_back(parent);
        const std::uint64_t key = regressions.key("dag.refine.t", tested);
        trials.push_back({o, std::move(without), parent, key, {}, {}});
      }
    // The first trial of a family comes with the family's own error, so that with every two
    // regressions something is done that need not be done again.
    std::vector<Trial*> first, others;
    std::vector<bool> begun(open.size());
    for (Trial& trial : trials) {
      const std::size_t o = trial.of;
      const std::optional<double> t = recorded(journal, trial.key),
                                  strength = recorded(journal, strength_key(trial.key));
      if (t && strength && *strength >= 0 && *strength <= 1) {
        trial.evidence = {*t, *strength};
      } else if (error[o].empty() && !begun[o]) {
        begun[o] = true;
        first.push_back(&trial);
      } else {
        others.push_back(&trial);
      }
    }
    report(2 * first.size() + others.size(), open.size());
    run.parallel_for(std::ssize(first), [&](std::int64_t i) {
      Trial& trial = *first[static_cast<std::size_t>(i)];
      error[trial.of] = regressions.squared_error(open[trial.of]);
      test(trial);
    });
    run.parallel_for(std::ssize(others),
                     [&](std::int64_t i) { test(*others[static_cast<std::size_t>(i)]); });

    std::vector<Trial*> weakest(open.size(), nullptr);
    for (Trial& trial : trials) {
      evidence[{trial.parent, trial.without.node}] = trial.evidence;
      if (required(trial.parent, trial.without.node)) continue;
      Trial*& w = weakest[trial.of];
      if (w == nullptr || trial.evidence.t < w->evidence.t) w = &trial;
    }
    std::vector<Family> next;
    std::vector<std::vector<double>> next_error;
    // With t = 0 nothing speaks for an edge, as where it could not be tested.
    const auto stays = [&](const Trial& trial) {
      return trial.evidence.t >= least_t && trial.evidence.t > 0;
    };
    for (std::size_t o = 0; o < open.size(); ++o) {
      if (weakest[o] == nullptr || stays(*weakest[o])) {
        for (const std::int64_t parent : open[o].parents)
          result.kept.push_back({parent, open[o].node, evidence[{parent, open[o].node}].t});
      } else if (!weakest[o]->without.parents.empty()) {
        next.push_back(std::move(weakest[o]->without));
        next_error.push_back(std::move(weakest[o]->error));
      }
    }
    open = std::move(next);
    error = std::move(next_error);
  }
  std::ranges::sort(result.kept, {}, [](const Edge& e) { return std::pair(e.from, e.to); });
  for (const auto& [ends, of_edge] : evidence) {
    result.tested.push_back({ends.first, ends.second, of_edge.t});
    result.strength.push_back({ends.first, ends.second, of_edge.strength});
  }
  return result;
}

} // namespace cape
