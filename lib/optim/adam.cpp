module;
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include "optim/kernels/adam.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <new>
#include <span>
#include <string_view>
#include <typeinfo>
#include <vector>
module cape.optim;

namespace cape::optim {
// GCC 14 crashes on a member whose imported class it has not completed before.
static_assert(sizeof(Matrix) > 0 && sizeof(std::vector<double>) > 0);

namespace {

void check_constants(const AdamOptions& o) {
  const auto check = [](double value, bool right, std::string_view name, std::string_view range) {
    if (!right)
      throw Error(Status::invalid_argument,
                  message(name, " is ", value, "; it must lie in ", range));
  };
  check(o.beta1, o.beta1 >= 0 && o.beta1 < 1, "beta1", "[0, 1)");
  check(o.beta2, o.beta2 >= 0 && o.beta2 < 1, "beta2", "[0, 1)");
  check(o.epsilon, o.epsilon > 0 && std::isfinite(o.epsilon), "epsilon", "(0, inf)");
}

// body(first, last) for the elements first .. last - 1 of so many, in pieces that take no longer
// than a callback may wait.
template <class F>
void for_pieces(std::int64_t size, Run& run, F body) {
  constexpr std::int64_t piece = 1 << 20;
  for (std::int64_t first = 0; first < size; first += piece) {
    run.poll();
    body(first, std::min(first + piece, size));
  }
}

void check_not_negative(double value, std::string_view name) {
  if (!(value >= 0 && std::isfinite(value)))
    throw Error(Status::invalid_argument,
                message(name, " is ", value, "; it must lie in [0, inf)"));
}

} // namespace

template <class T>
Adam<T>::Adam(std::int64_t parameters, const AdamOptions& options)
    : options_(options), mean_(static_cast<std::size_t>(checked_size(parameters, 1, "parameters"))),
      square_(mean_.size()) {
  check_constants(options);
}

template <class T>
Adam<T>::Adam(std::int64_t parameters, const AdamOptions& options, Run& run) : Adam(0, options) {
  const std::int64_t size = checked_size(parameters, 1, "parameters");
  resize(mean_, size, run);
  resize(square_, size, run);
}

template <class T>
void Adam<T>::begin(double rate) {
  check_not_negative(rate, "rate");
  rate_ = rate;
  power1_ *= options_.beta1;
  power2_ *= options_.beta2;
}

template <class T>
void Adam<T>::move(std::int64_t first, std::span<T> parameters, std::span<const T> gradient,
                   const Shrinking& shrinking, std::span<const T> factor) {
  const std::int64_t n = std::ssize(parameters);
  if (first < 0 || n > size() - first || gradient.size() != parameters.size() ||
      (!factor.empty() && factor.size() != parameters.size()))
    throw Error(Status::dim_mismatch, message("a step of ", n, " parameters from number ", first,
                                              " on, by ", gradient.size(), " slopes; there are ",
                                              size(), " parameters, and a slope for each"));
  if (!(power1_ < 1 && power2_ < 1))
    throw Error(Status::bad_state, "move() without a begin() before it");
  check_not_negative(shrinking.l1, "l1");
  check_not_negative(shrinking.decay, "decay");
  simd::adam_step(parameters.data(), gradient.data(), mean_.data() + first, square_.data() + first,
                  n,
                  {.beta1 = options_.beta1,
                   .beta2 = options_.beta2,
                   .epsilon = options_.epsilon,
                   .rate = rate_,
                   .correction1 = 1 / (1 - power1_),
                   .correction2 = 1 / std::sqrt(1 - power2_),
                   .l1 = shrinking.l1,
                   .decay = shrinking.decay},
                  factor.empty() ? nullptr : factor.data());
}

template <class T>
void Adam<T>::step(std::span<T> parameters, std::span<const T> gradient, double rate, Run& run,
                   const Shrinking& shrinking) {
  if (std::ssize(parameters) != size() || std::ssize(gradient) != size())
    throw Error(Status::dim_mismatch,
                message("there are ", parameters.size(), " parameters and ", gradient.size(),
                        " slopes; it must be ", size(), " of each"));
  check_not_negative(shrinking.l1, "l1");
  check_not_negative(shrinking.decay, "decay");
  begin(rate);
  constexpr std::int64_t block = 1 << 16;
  run.parallel_for(ceil_div(size(), block), [&](std::int64_t b) {
    const std::int64_t first = b * block;
    const auto at = static_cast<std::size_t>(first),
               n = static_cast<std::size_t>(std::min(block, size() - first));
    move(first, parameters.subspan(at, n), gradient.subspan(at, n), shrinking);
  });
}

template <class T>
bool Adam<T>::finite() const {
  const auto is_finite = [](T v) { return std::isfinite(v); };
  return std::ranges::all_of(mean_, is_finite) && std::ranges::all_of(square_, is_finite);
}

template <class T>
void Adam<T>::save(std::vector<double>& out, Run& run) const {
  out.insert(out.end(), {power1_, power2_});
  for (const std::vector<T>* moments : {&mean_, &square_})
    for_pieces(std::ssize(*moments), run, [&](std::int64_t first, std::int64_t last) {
      out.insert(out.end(), moments->begin() + first, moments->begin() + last);
    });
}

template <class T>
std::span<const double> Adam<T>::restore(std::span<const double> in, Run& run) {
  const auto damaged = [](const auto&... why) {
    throw Error(Status::invalid_argument, message("checkpoint is damaged: ", why...));
  };
  if (std::ssize(in) < size_of_state())
    damaged("it has ", in.size(), " values left for the optimiser, which needs ", size_of_state());
  const std::span<const double> mean = in.subspan(2, mean_.size()),
                                square = in.subspan(2 + mean_.size(), square_.size());
  for (const double power : in.first(2))
    if (!(power >= 0 && power <= 1))
      damaged("a power of the optimiser's betas is ", power, ", not in [0, 1]");
  for_pieces(size(), run, [&](std::int64_t first, std::int64_t last) {
    for (const double value :
         square.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first)))
      if (!(value >= 0)) damaged("the optimiser's mean of a square is ", value);
  });
  power1_ = in[0];
  power2_ = in[1];
  for_pieces(size(), run, [&](std::int64_t first, std::int64_t last) {
    std::copy(mean.begin() + first, mean.begin() + last, mean_.begin() + first);
    std::copy(square.begin() + first, square.begin() + last, square_.begin() + first);
  });
  return in.subspan(static_cast<std::size_t>(size_of_state()));
}

template class Adam<float>;
template class Adam<double>;

GroupAdam::GroupAdam(std::int64_t group_size, std::int64_t groups, const AdamOptions& options)
    : options_(options), mean_(group_size, groups), square_(static_cast<std::size_t>(groups)) {
  check_constants(options);
}

GroupAdam::GroupAdam(const GroupAdam&) = default;
GroupAdam& GroupAdam::operator=(const GroupAdam&) = default;
GroupAdam::~GroupAdam() = default;

double GroupAdam::update(std::int64_t group, std::span<const double> gradient, double length,
                         std::int64_t t) {
  const std::span<double> m = mean(group);
  double& v = square_[static_cast<std::size_t>(group)];
  for (std::size_t k = 0; k < m.size(); ++k)
    m[k] = options_.beta1 * m[k] + (1 - options_.beta1) * gradient[k];
  v = options_.beta2 * v + (1 - options_.beta2) * length * length;
  const auto steps = static_cast<double>(t);
  return (1 - std::pow(options_.beta1, steps)) *
         (std::sqrt(v / (1 - std::pow(options_.beta2, steps))) + options_.epsilon);
}

} // namespace cape::optim
