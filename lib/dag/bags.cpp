// Bagging (L. Breiman, 1996): the mean of fits to parts of the rows.
module;
#include "internal/message.hpp"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <set>
#include <span>
#include <string>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/bags.hpp"
#include "dag/edge_lists.hpp"
#include "dag/options.hpp"

namespace cape::sem {
namespace {

constexpr double part_of_rows = 0.8;
constexpr std::int64_t automatic_bags = 10;
constexpr std::int64_t most_features = 500; ///< for which the time of several fits is not asked for
constexpr double part_of_epochs = 0.3;      ///< late epochs wear down what only some rows show

// Of the fits that are finished.
class Sums {
public:
  Sums(std::int64_t features, std::int64_t epochs)
      : weight_(features, features), sign_(features, features), found_(features, features),
        history_(static_cast<std::size_t>(epochs)) {}

  void add(const TrainedModel& fit, double share, double threshold) {
    for (const Edge& e : edges_of(fit.edges.weights)) {
      weight_(e.from, e.to) += share * e.weight;
      found_(e.from, e.to) += share * (std::fabs(e.weight) > threshold);
      // By its weight, so that the sign of a signed mean is its own.
      sign_(e.from, e.to) += share * fit.edges.sign(e.from, e.to) * std::fabs(e.weight);
    }
    for (std::size_t e = 0; e < history_.size(); ++e) {
      const DagEpoch& one = fit.history[e];
      DagEpoch& mean = history_[e];
      mean.epoch = one.epoch;
      // Parts of finite numbers, whose sum cannot overflow.
      for (const auto member : {&DagEpoch::loss, &DagEpoch::reconstruction, &DagEpoch::kl,
                                &DagEpoch::h, &DagEpoch::rho, &DagEpoch::alpha})
        mean.*member += share * (one.*member);
    }
    h_ = std::max(h_, fit.h);
  }

  BaggedModel result() && {
    for (double& s : std::span(sign_.data(), static_cast<std::size_t>(sign_.size())))
      s = (s > 0) - (s < 0);
    return {{{to_sparse(weight_), to_sparse(sign_)}, std::move(history_), h_}, to_sparse(found_)};
  }

  // All of it as one vector, and back.
  std::int64_t size() const { return 3 * weight_.size() + 7 * std::ssize(history_) + 1; }
  std::vector<double> save() const {
    std::vector<double> out;
    out.reserve(static_cast<std::size_t>(size()));
    for (const Matrix* m : {&weight_, &sign_, &found_})
      out.insert(out.end(), m->data(), m->data() + m->size());
    for (const DagEpoch& e : history_)
      out.insert(out.end(), {static_cast<double>(e.epoch), e.loss, e.reconstruction, e.kl, e.h,
                             e.rho, e.alpha});
    out.push_back(h_);
    return out;
  }
  void restore(const std::vector<double>& values) {
    const double* in = values.data();
    for (Matrix* m : {&weight_, &sign_, &found_}) {
      std::copy_n(in, m->size(), m->data());
      in += m->size();
    }
    std::int64_t epoch = 0;
    for (DagEpoch& e : history_) {
      e = {++epoch, in[1], in[2], in[3], in[4], in[5], in[6]};
      in += 7;
    }
    h_ = *in;
    const auto is_share = [](double v) { return v >= 0 && v <= 1 + 1e-9; };
    if (!std::all_of(found_.data(), found_.data() + found_.size(), is_share))
      throw Error(Status::invalid_argument,
                  "checkpoint is damaged: it has shares of bags that are none");
  }

private:
  Matrix weight_, sign_, found_;
  std::vector<DagEpoch> history_;
  double h_ = 0;
};

} // namespace

std::int64_t bag_count(const DagOptions& options, std::int64_t rows, std::int64_t features) {
  if (options.bags >= 0) return options.bags;
  return 2 * features > rows && features <= most_features && options.rank == 0 &&
                 options.sem != Sem::literal
             ? automatic_bags
             : 0;
}

std::int64_t bag_rows(std::int64_t rows) {
  return static_cast<std::int64_t>(std::ceil(part_of_rows * static_cast<double>(rows)));
}

std::int64_t bag_epochs(const DagOptions& options) {
  return static_cast<std::int64_t>(std::ceil(part_of_epochs * static_cast<double>(options.epochs)));
}

BaggedModel train_bags(const Table& table, std::int64_t bags, const DagOptions& options,
                       const Training& train, Run& run, Checkpoint* checkpoint) {
  const std::int64_t n = table.rows();
  const std::int64_t epochs = bag_epochs(options);
  const double share = 1 / static_cast<double>(bags);
  Sums sums(table.features(), epochs);
  // The state after some whole bags is the sums, which stay in front of that of the next one. That
  // may be at its last epoch and not be in the sums yet.
  std::int64_t first = 0;
  if (checkpoint && checkpoint->epoch > 0) {
    const bool between =
        checkpoint->epoch % epochs == 0 && std::ssize(checkpoint->values) == sums.size();
    first = between ? checkpoint->epoch / epochs : (checkpoint->epoch - 1) / epochs;
    if (first > bags || (first == bags && !between))
      throw Error(Status::invalid_argument, message("checkpoint is damaged: it is at epoch ",
                                                    checkpoint->epoch, " of ", bags * epochs));
    if (between || (first > 0 && std::ssize(checkpoint->values) < sums.size()))
      checkpoint->check(sums.size());
    if (first > 0) sums.restore(checkpoint->values);
  }
  for (std::int64_t bag = first; bag < bags; ++bag) {
    Rng rng(run.seed(), {hash("dag.bag"), static_cast<std::uint64_t>(bag)});
    std::vector<std::int64_t> rows = rng.permutation(n);
    rows.resize(static_cast<std::size_t>(bag_rows(n)));
    std::ranges::sort(rows);
    const auto forward = [&](const Progress& p) {
      if (p.total == 0) return run.poll(), true; // before its first step
      run.report({"dag", bag * p.total + p.step, bags * p.total, p.loss, p.constraint});
      return true;
    };
    Run own(rng.bits(), run.threads(), forward, std::chrono::milliseconds(0));
    sums.add(train(rows, own, {checkpoint, bag * epochs, bag > 0 ? sums.size() : 0}), share,
             threshold_of(options));
    if (!checkpoint) continue;
    std::vector<double> values = sums.save();
    checkpoint->values.swap(values);
    checkpoint->epoch = (bag + 1) * epochs;
  }
  return std::move(sums).result();
}

} // namespace cape::sem
