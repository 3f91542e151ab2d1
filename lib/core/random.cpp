module;
#include "internal/message.hpp"
#include <Random123/philox.h>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
module cape.core;

namespace cape {
namespace {

constexpr std::uint64_t fnv_offset = 0xcbf29ce484222325ULL;
constexpr std::uint64_t fnv_prime = 0x100000001b3ULL;

std::uint64_t fnv(std::uint64_t h, std::uint64_t word) noexcept {
  for (int b = 0; b < 8; ++b) h = (h ^ ((word >> (8 * b)) & 0xff)) * fnv_prime;
  return h;
}

// Spread a word over all 64 bits (the finaliser of SplitMix64).
std::uint64_t mix(std::uint64_t z) noexcept {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// Quantile of the standard normal: M. J. Wichura, Algorithm AS 241 (PPND16), Applied Statistics
// 37 (1988) 477-484; relative accuracy about 1e-16.
double normal_quantile(double p) {
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q *
           (((((((2509.0809287301226727 * r + 33430.575583588128105) * r + 67265.770927008700853) *
                    r +
                45921.953931549871457) *
                   r +
               13731.693765509461125) *
                  r +
              1971.5909503065514427) *
                 r +
             133.14166789178437745) *
                r +
            3.387132872796366608) /
           (((((((5226.495278852545925 * r + 28729.085735721942674) * r + 39307.89580009271061) *
                    r +
                21213.794301586595867) *
                   r +
               5394.1960214247511077) *
                  r +
              687.1870074920579083) *
                 r +
             42.313330701600911252) *
                r +
            1.0);
  }
  double r = std::sqrt(-std::log(q < 0 ? p : 1.0 - p));
  double x;
  if (r <= 5.0) {
    r -= 1.6;
    x = (((((((7.7454501427834140764e-4 * r + 0.0227238449892691845833) * r +
              0.24178072517745061177) *
                 r +
             1.27045825245236838258) *
                r +
            3.64784832476320460504) *
               r +
           5.7694972214606914055) *
              r +
          4.6303378461565452959) *
             r +
         1.42343711074968357734) /
        (((((((1.05075007164441684324e-9 * r + 5.475938084995344946e-4) * r +
              0.0151986665636164571966) *
                 r +
             0.14810397642748007459) *
                r +
            0.68976733498510000455) *
               r +
           1.6763848301838038494) *
              r +
          2.05319162663775882187) *
             r +
         1.0);
  } else {
    r -= 5.0;
    x = (((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r +
              0.0012426609473880784386) *
                 r +
             0.026532189526576123093) *
                r +
            0.29656057182850489123) *
               r +
           1.7848265399172913358) *
              r +
          5.4637849111641143699) *
             r +
         6.6579046435011037772) /
        (((((((2.04426310338993978564e-15 * r + 1.4215117583164458887e-7) * r +
              1.8463183175100546818e-5) *
                 r +
             7.868691311456132591e-4) *
                r +
            0.0148753612908506148525) *
               r +
           0.13692988092273580531) *
              r +
          0.59983220655588793769) *
             r +
         1.0);
  }
  return q < 0 ? -x : x;
}

} // namespace

std::uint64_t hash(std::string_view text) noexcept {
  std::uint64_t h = fnv_offset;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * fnv_prime;
  return h;
}

ValueHash::ValueHash() noexcept : state_(fnv_offset) {}

void ValueHash::add(std::span<const double> values) noexcept {
  for (const double v : values)
    state_ =
        fnv(state_, std::bit_cast<std::uint64_t>(v == 0.0 ? 0.0 : v)); // -0 and +0 are one value
}

std::uint64_t ValueHash::value() const noexcept { return mix(state_); }

std::uint64_t hash(std::span<const double> values) noexcept {
  ValueHash h;
  h.add(values);
  return h.value();
}

Rng::Rng(std::uint64_t seed, std::initializer_list<std::uint64_t> key) {
  std::uint64_t a = fnv_offset, b = ~fnv_offset;
  for (const std::uint64_t part : key) {
    a = mix(fnv(a, part));
    b = mix(fnv(b ^ a, part));
  }
  key_[0] = seed;
  key_[1] = a;
  counter_[0] = counter_[1] = 0;
  counter_[2] = b;
  counter_[3] = key.size();
}

void Rng::refill() {
  const r123::Philox4x64 philox;
  const r123::Philox4x64::ctr_type c{{counter_[0], counter_[1], counter_[2], counter_[3]}};
  const r123::Philox4x64::key_type k{{key_[0], key_[1]}};
  const auto out = philox(c, k);
  for (int i = 0; i < 4; ++i) block_[i] = out[static_cast<std::size_t>(i)];
  if (++counter_[0] == 0) ++counter_[1];
  used_ = 0;
}

std::uint64_t Rng::bits() {
  if (used_ == 4) refill();
  return block_[used_++];
}

double Rng::uniform() {
  // 52 random bits and a half: never 0, never 1, symmetric about one half.
  return (static_cast<double>(bits() >> 12) + 0.5) * 0x1p-52;
}
double Rng::uniform(double low, double high) { return low + (high - low) * uniform(); }
double Rng::normal() { return normal_quantile(uniform()); }
double Rng::exponential() { return -std::log(uniform()); }
double Rng::gumbel() { return -std::log(exponential()); }

// G. Marsaglia and W. W. Tsang, A simple method for generating gamma variables, ACM TOMS 26 (2000).
double Rng::gamma(double shape) {
  if (!(shape > 0) || !std::isfinite(shape))
    throw Error(Status::invalid_argument,
                "shape of the gamma distribution must be positive and finite");
  if (shape < 1) {
    const double boost = std::pow(uniform(), 1.0 / shape);
    return gamma(shape + 1) * boost;
  }
  const double d = shape - 1.0 / 3.0, c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double x = normal(), t = 1.0 + c * x;
    if (t <= 0) continue;
    const double v = t * t * t;
    if (std::log(uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

std::int64_t Rng::poisson(double mean) {
  if (!(mean >= 0) || mean > 1e15)
    throw Error(Status::invalid_argument, "mean of the Poisson distribution must lie in [0, 1e15]");
  // A Poisson count splits at a gamma-distributed arrival time (J. H. Ahrens and U. Dieter,
  // Computer methods for sampling from gamma, beta, Poisson and binomial distributions, 1974):
  // exact, and logarithmic in the mean.
  std::int64_t count = 0;
  while (mean > 16) {
    const auto n = static_cast<std::int64_t>(mean * 0.875);
    const double x = gamma(static_cast<double>(n));
    if (x > mean) {
      // n - 1 of the arrivals fall uniformly below x; count those below mean.
      const double p = mean / x;
      for (std::int64_t i = 1; i < n; ++i) count += uniform() < p;
      return count;
    }
    count += n;
    mean -= x;
  }
  for (double t = exponential(); t < mean; t += exponential()) ++count;
  return count;
}

std::int64_t Rng::negative_binomial(double mean, double dispersion) {
  if (!(mean >= 0) || !(dispersion >= 0))
    throw Error(Status::invalid_argument,
                "mean and dispersion of the negative binomial distribution must not be negative");
  if (mean == 0) return 0;
  if (dispersion == 0) return poisson(mean);
  return poisson(gamma(1.0 / dispersion) * mean * dispersion);
}

std::int64_t Rng::integer(std::int64_t n) {
  if (n <= 0)
    throw Error(Status::invalid_argument, message("an integer range needs n > 0; n is ", n));
  const auto range = static_cast<std::uint64_t>(n);
  const std::uint64_t limit =
      std::numeric_limits<std::uint64_t>::max() - std::numeric_limits<std::uint64_t>::max() % range;
  std::uint64_t x = bits();
  while (x >= limit) x = bits();
  return static_cast<std::int64_t>(x % range);
}

std::vector<std::int64_t> Rng::permutation(std::int64_t n) {
  if (n < 0) throw Error(Status::invalid_argument, message("a permutation needs n >= 0; n is ", n));
  std::vector<std::int64_t> p(static_cast<std::size_t>(n));
  std::iota(p.begin(), p.end(), std::int64_t{0});
  for (std::int64_t i = n - 1; i > 0; --i)
    std::swap(p[static_cast<std::size_t>(i)], p[static_cast<std::size_t>(integer(i + 1))]);
  return p;
}

} // namespace cape
