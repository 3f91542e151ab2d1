// Counter-based random numbers, and the hashes that name their streams.
module;
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>
export module cape.core:random;

export namespace cape {

/// Counter-based random numbers (Philox 4x64-10): the stream is a pure function of the seed and the
/// key, so that work can be cut among any number of threads without changing a bit. The transforms
/// are our own (no std::*_distribution), so that the standard library does not matter.
class Rng {
public:
  /// A stream of its own for every (seed, key...).
  explicit Rng(std::uint64_t seed, std::initializer_list<std::uint64_t> key = {});

  std::uint64_t bits();
  double uniform();                        ///< in the open interval (0, 1)
  double uniform(double low, double high); ///< in (low, high)
  double normal();            ///< standard normal, by inversion: one number from one draw
  double exponential();       ///< rate 1
  double gumbel();            ///< standard Gumbel (location 0, scale 1)
  double gamma(double shape); ///< scale 1
  std::int64_t poisson(double mean);
  std::int64_t negative_binomial(double mean,
                                 double dispersion); ///< variance mean + dispersion*mean^2
  std::int64_t integer(std::int64_t n);              ///< uniform in 0 .. n-1, without bias
  std::vector<std::int64_t> permutation(std::int64_t n);

private:
  void refill();
  std::uint64_t key_[2];
  std::uint64_t counter_[4];
  std::uint64_t block_[4];
  int used_ = 4;
};

/// A 64-bit FNV-1a hash, to name streams ("dag.init") and to key them by content.
std::uint64_t hash(std::string_view text) noexcept;
std::uint64_t hash(std::span<const double> values) noexcept;
/// The hash of values that come in parts: that of all of them in one span.
class ValueHash {
public:
  ValueHash() noexcept;
  void add(std::span<const double> values) noexcept;
  std::uint64_t value() const noexcept;

private:
  std::uint64_t state_;
};

} // namespace cape
