// cape.optim: what stages that train take from: the steps of Adam, how their length goes over a
// training, what keeps gradients in bounds, when a loss has come to rest, and which rows come next.
module;
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>
export module cape.optim;
import cape.core;

export namespace cape::optim {

// ------------------------------------------------------------------------------------------ steps

/// The constants of Adam (D. Kingma and J. Ba, 2015).
struct AdamOptions {
  double beta1 = 0.9;    ///< decay of the mean of the gradients, in [0, 1)
  double beta2 = 0.999;  ///< decay of the mean of their squares, in [0, 1)
  double epsilon = 1e-8; ///< > 0
};

/// What draws parameters to 0 in a step, beside their gradient; both >= 0.
struct Shrinking {
  double l1 = 0; ///< weight of |p|_1, by its proximal operator in the metric of the step
  /// Decoupled weight decay (AdamW; I. Loshchilov and F. Hutter, 2019): what the rate takes from p
  double decay = 0;
};

/// Adam of a vector of parameters, and AdamW where there is decay. In step t, with gradient g,
///   m <- beta1 m + (1 - beta1) g,  v <- beta2 v + (1 - beta2) g^2,
///   d = sqrt(v / (1 - beta2^t)) + epsilon,
///   p <- soft(p (1 - rate decay) - rate m / (1 - beta1^t) / d,  rate l1 / d),
/// where soft(x, s) = sign(x) max(|x| - s, 0) is the proximal operator of s|x|. The same bits for
/// any number of threads and on all CPUs.
template <class T>
class Adam {
public:
  /// Error(invalid_argument) for parameters < 0 or constants out of range.
  explicit Adam(std::int64_t parameters, const AdamOptions& options = {});
  /// The same, polling the run while its memory is taken.
  Adam(std::int64_t parameters, const AdamOptions& options, Run& run);
  std::int64_t size() const noexcept { return std::ssize(mean_); }

  /// One step of all parameters, in parallel. Error(dim_mismatch) unless there are size() of each;
  /// Error(invalid_argument) for a rate or shrinking that is negative or not finite.
  void step(std::span<T> parameters, std::span<const T> gradient, double rate, Run& run,
            const Shrinking& shrinking = {});

  /// The same in pieces that are shrunk differently, on any threads: begin() counts the step, and
  /// move() takes the parameters first .. first + parameters.size() - 1; each once. Errors as
  /// above, and Error(bad_state) before the first begin().
  void begin(double rate);
  /// factor: of l1 for each, >= 0 and infinite where the parameter is to be 0; or empty, for 1.
  void move(std::int64_t first, std::span<T> parameters, std::span<const T> gradient,
            const Shrinking& shrinking = {}, std::span<const T> factor = {});

  /// Whether all moments are: a square may have left the range of T.
  bool finite() const;
  /// All that the next step depends on, for a Checkpoint: size_of_state() numbers, to the end of
  /// `out`; and back from the beginning of `in`, whose rest is returned. Error(invalid_argument) if
  /// they are fewer, or not the state of an Adam. Both poll the run.
  std::int64_t size_of_state() const noexcept { return 2 + 2 * size(); }
  void save(std::vector<double>& out, Run& run) const;
  std::span<const double> restore(std::span<const double> in, Run& run);

private:
  AdamOptions options_;
  std::vector<T> mean_, square_;
  double power1_ = 1, power2_ = 1; ///< beta1^t, beta2^t
  double rate_ = 0;
};

/// Adam of groups of coordinates that have one second moment each, of the squared length of their
/// gradient: the direction of a step is then that of the mean gradient in any coordinates, as
/// descent on a manifold needs it. What the group is, and how it moves, is the caller's.
class GroupAdam {
public:
  /// Error(invalid_argument) for negative sizes or constants out of range.
  GroupAdam(std::int64_t group_size, std::int64_t groups, const AdamOptions& options);
  GroupAdam(const GroupAdam&); // these, as GCC 14 does not find those that it should make
  GroupAdam& operator=(const GroupAdam&);
  ~GroupAdam();

  /// Take in the gradient of a group, `length` long in the group's metric, in step t >= 1 of the
  /// group, with t of every group counted by the caller. The group's step is -rate / (the result)
  /// times mean(group). Different groups may be on different threads.
  double update(std::int64_t group, std::span<const double> gradient, double length,
                std::int64_t t);
  /// The mean of the group's gradients; a caller that moves along a curve carries it along.
  std::span<double> mean(std::int64_t group) {
    return {mean_.column(group), static_cast<std::size_t>(mean_.rows())};
  }
  /// All that the next step depends on, to be saved and restored.
  std::vector<std::span<double>> state() {
    return {{mean_.data(), static_cast<std::size_t>(mean_.size())}, square_};
  }

private:
  AdamOptions options_;
  Matrix mean_;
  std::vector<double> square_;
};

// -------------------------------------------------------------------------------------- gradients

/// Shorten a gradient to the length `largest` if it is longer, keeping its direction; its length
/// before. If that is not finite the gradient is left as it is. Squares are summed in double and in
/// a fixed order: a length above 1e154 counts as infinite. Error(invalid_argument) unless largest
/// is positive.
template <class T>
double clip_norm(std::span<T> gradient, double largest, Run& run);

/// Every element to the nearest in [-largest, largest]; NaN stays. Error as above.
template <class T>
void clip_value(std::span<T> gradient, double largest, Run& run);

// ------------------------------------------------------------------------------------------ rates

/// The learning rate as a part of its peak: up on a line in the first warm_up steps, the last of
/// which has all of it, then down along half a cosine, to `last` after `steps`.
class CosineSchedule {
public:
  /// Error(invalid_argument) unless 0 <= warm_up < steps and last is in [0, 1].
  CosineSchedule(std::int64_t steps, double last, std::int64_t warm_up = 0);
  /// In this step, counted from 0; beyond the end as at the end. Error(invalid_argument) if
  /// negative.
  double operator()(std::int64_t step) const;

private:
  std::int64_t steps_, warm_up_;
  double last_;
};

/// The same warm-up, and then `factor` times what it was after every `interval` steps.
class StepSchedule {
public:
  /// Error(invalid_argument) unless interval >= 1, factor is in (0, 1] and warm_up >= 0.
  StepSchedule(std::int64_t interval, double factor, std::int64_t warm_up = 0);
  double operator()(std::int64_t step) const; ///< as above

private:
  std::int64_t interval_, warm_up_;
  double factor_;
};

/// Tells when a loss has stopped to fall: when the mean of `window` losses is below that of the
/// window before by less than `tolerance` of the fall from the first loss of all to it. The first
/// `burn_in` losses, of shorter steps, are in no window. A tolerance of 0: never.
class Plateau {
public:
  /// Error(invalid_argument) unless window >= 1, tolerance is in [0, 1] and burn_in >= 0.
  Plateau(std::int64_t window, double tolerance, std::int64_t burn_in = 0);
  /// After the next loss: whether it ends a window that is a plateau.
  bool reached(double loss);

private:
  std::int64_t window_, burn_in_, seen_ = 0;
  double tolerance_, first_ = 0, sum_ = 0;
  double mean_ = std::numeric_limits<double>::infinity(); ///< of the last window
};

// ------------------------------------------------------------------------------------ minibatches

/// Minibatches of rows without end. Every pass over the rows has an order of its own, and a batch
/// that reaches the end of a pass goes on with the next: all batches have the same size, and no row
/// is left out. A pure function of seed and purpose.
class Minibatches {
public:
  /// Error(invalid_argument) unless there are rows >= 1 and batch >= 1 of them at a time.
  /// `purpose` names the stream of random numbers: "dag.batch".
  Minibatches(std::int64_t rows, std::int64_t batch, std::uint64_t seed, std::string_view purpose);
  /// The numbers of the next batch's rows, from 0; they hold until the next call.
  std::span<const std::int64_t> next();
  /// Go on as if this many batches had been read since the start. O(rows).
  void skip(std::int64_t batches);

private:
  void begin_pass();
  std::int64_t rows_;
  std::uint64_t seed_, purpose_, pass_ = 0;
  std::vector<std::int64_t> order_; ///< of the rows in the present pass
  std::size_t position_ = 0;
  std::vector<std::int64_t> batch_;
};

/// The same for rows that are in random order already: a pass goes round them with a random stride
/// that is coprime to their number, a new order for the price of two random numbers and no memory.
class StridedMinibatches {
public:
  StridedMinibatches(std::int64_t rows, std::int64_t batch, Rng rng); ///< Error as above
  std::span<const std::int64_t> next();

private:
  std::int64_t rows_;
  Rng rng_;
  std::int64_t position_ = 0, stride_ = 1, left_ = 0; ///< in the present pass
  std::vector<std::int64_t> batch_;
};

} // namespace cape::optim
