module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>
#include <utility>
module cape.optim;

namespace cape::optim {
namespace {

[[noreturn]] void refuse(std::string_view name, double value, std::string_view right) {
  throw Error(Status::invalid_argument, message(name, " is ", value, "; it must ", right));
}

void check_step(std::int64_t step) {
  if (step < 0) refuse("step", static_cast<double>(step), "not be negative");
}

void check_warm_up(std::int64_t warm_up) {
  if (warm_up < 0) refuse("warm_up", static_cast<double>(warm_up), "not be negative");
}

double warming_up(std::int64_t step, std::int64_t warm_up) {
  return static_cast<double>(step + 1) / static_cast<double>(warm_up);
}

} // namespace

CosineSchedule::CosineSchedule(std::int64_t steps, double last, std::int64_t warm_up)
    : steps_(steps), warm_up_(warm_up), last_(last) {
  check_warm_up(warm_up);
  if (steps <= warm_up)
    throw Error(Status::invalid_argument,
                message("steps is ", steps, "; it must be above warm_up, ", warm_up));
  if (!(last >= 0 && last <= 1)) refuse("last", last, "lie in [0, 1]");
}

double CosineSchedule::operator()(std::int64_t step) const {
  check_step(step);
  if (step < warm_up_) return warming_up(step, warm_up_);
  const double done = static_cast<double>(std::min(step, steps_) - warm_up_) /
                      static_cast<double>(steps_ - warm_up_);
  return last_ + (1 - last_) * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

StepSchedule::StepSchedule(std::int64_t interval, double factor, std::int64_t warm_up)
    : interval_(interval), warm_up_(warm_up), factor_(factor) {
  check_warm_up(warm_up);
  if (interval < 1) refuse("interval", static_cast<double>(interval), "be at least 1");
  if (!(factor > 0 && factor <= 1)) refuse("factor", factor, "lie in (0, 1]");
}

double StepSchedule::operator()(std::int64_t step) const {
  check_step(step);
  if (step < warm_up_) return warming_up(step, warm_up_);
  return std::pow(factor_, static_cast<double>((step - warm_up_) / interval_));
}

Plateau::Plateau(std::int64_t window, double tolerance, std::int64_t burn_in)
    : window_(window), burn_in_(burn_in), tolerance_(tolerance) {
  if (window < 1) refuse("window", static_cast<double>(window), "be at least 1");
  if (!(tolerance >= 0 && tolerance <= 1)) refuse("tolerance", tolerance, "lie in [0, 1]");
  if (burn_in < 0) refuse("burn_in", static_cast<double>(burn_in), "not be negative");
}

bool Plateau::reached(double loss) {
  if (seen_++ == 0) first_ = loss;
  if (seen_ <= burn_in_) return false;
  sum_ += loss / static_cast<double>(window_);
  if ((seen_ - burn_in_) % window_ != 0) return false;
  const double before = std::exchange(mean_, std::exchange(sum_, 0.0));
  return tolerance_ > 0 && !(before - mean_ >= tolerance_ * std::max(first_ - mean_, 0.0));
}

} // namespace cape::optim
