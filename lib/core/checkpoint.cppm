// Where an interrupted computation goes on.
module;
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>
export module cape.core:checkpoint;

export namespace cape {

/// Results of finished pieces of work by their keys, in the order in which they were added. Any
/// thread may read and add at any time; only copies and assignments are the owner's alone.
class Journal {
public:
  struct Entry {
    std::uint64_t key;
    double value;
  };
  Journal();
  Journal(const Journal& other);
  Journal& operator=(const Journal& other);
  ~Journal();

  std::optional<double> find(std::uint64_t key) const;
  /// The first value of a key stays.
  void add(std::uint64_t key, double value);
  std::int64_t size() const;
  /// The first `count` entries, or all if there are fewer.
  std::vector<Entry> first(std::int64_t count) const;

private:
  struct Book;
  std::unique_ptr<Book> book_;
};

/// Where an interrupted fit can go on: its state at the end of an epoch, and what was finished
/// after the last one. Empty at the start.
struct Checkpoint {
  std::uint64_t fit = 0;     ///< stands for all of the caller's that the state depends on
  std::uint64_t build = 0;   ///< for the sources that it was computed by,
  std::uint64_t kernels = 0; ///< and for the BLAS kernel and the SIMD target, which round otherwise
  std::int64_t epoch = 0;     ///< whole epochs done
  std::vector<double> values; ///< what the fit has to know to go on
  Journal journal;            ///< of the refinement: its regressions and its decisions

  /// For this fit from now on. Error(invalid_argument) if it is that of another, which says in
  /// what; `same` is what both must have in common: "graph, options or seed".
  void claim(std::uint64_t id, std::string_view same);
  /// Error(invalid_argument) unless there are that many values, all of them finite.
  void check(std::int64_t expected) const;
};

} // namespace cape
