// The tiles of attention in the widest instructions that the CPU has (see simd/vector_math.hpp).
// Both products of a tile, scores = Q K' and out += weights V, are of one form: a strip of rows,
// whose elements are spread over a vector one by one, times a panel of columns that stand side by
// side. docs/performance.md has a picture. All buffers start at a cache line.
#pragma once
#include <cstdint>

namespace cape::simd {

/// Rows of a strip.
inline constexpr std::int64_t strip_rows = 6;

/// Columns of a vector and of a panel, for the target in use.
struct Columns {
  std::int64_t vector, panel;
};
template <class T>
Columns attention_columns();
template <>
Columns attention_columns<double>();
template <>
Columns attention_columns<float>();

/// A tile of queries. A left factor of k columns is stored in strips: for each 6 rows, for each
/// panel of its columns, 6 x panel.
template <class T>
struct QueryTile {
  std::int64_t strips = 0;
  std::int64_t head_dim = 0;
  std::int64_t width = 0; ///< head_dim up to a multiple of a vector
  const T* q = nullptr;   ///< strips of head_dim columns; makes scores of base 2
  T* weights = nullptr;   ///< strips of the keys of a block
  T* top = nullptr;       ///< per row: the weight of a score is 2^(score - top); 0 at first
  T* limit = nullptr;     ///< per row: if score - top is above it, top must rise; -inf at first
  T* sum = nullptr;       ///< rows x vector: the weights so far, in parts; 0 at first
  T* out = nullptr;       ///< rows x width: the weighted values so far; 0 at first
};

/// The keys of a head and their values, of which a call sees a block.
template <class T>
struct KeyBlock {
  const T* k = nullptr;    ///< for each panel of keys: head_dim x panel
  const T* v = nullptr;    ///< for each panel of columns: keys x panel (the last may be narrower)
  std::int64_t keys = 0;   ///< of the head, a multiple of a panel
  std::int64_t first = 0;  ///< key of the block, a multiple of a panel
  std::int64_t panels = 0; ///< of the block
  const T* padding =
      nullptr;         ///< per key of the last panel 0, or -inf if there is none; null: all are
  bool biased = false; ///< the weights of the tile hold what is to be added to the scores
};

/// One step of the online softmax.
void attend(const QueryTile<double>& tile, const KeyBlock<double>& block);
void attend(const QueryTile<float>& tile, const KeyBlock<float>& block);

/// Afterwards: weighted values become means, and the first of the parts of a sum the whole. A row
/// without weights stays 0.
void finish(const QueryTile<double>& tile);
void finish(const QueryTile<float>& tile);

/// The scores alone, in the place of the weights; v, top, limit, sum and out are not looked at.
void score(const QueryTile<double>& tile, const KeyBlock<double>& block);
void score(const QueryTile<float>& tile, const KeyBlock<float>& block);

/// A block of queries and a block of keys of a head, whose gradients are summed. Here queries stand
/// side by side and keys are in strips: weights' = K Q'.
template <class T>
struct GradientTile {
  std::int64_t head_dim = 0;
  std::int64_t width = 0; ///< head_dim up to a multiple of a vector

  std::int64_t queries = 0;      ///< of the head, a multiple of a panel
  std::int64_t first_query = 0;  ///< of the block, a multiple of a panel
  std::int64_t panels = 0;       ///< of queries in the block
  const T* q = nullptr;          ///< for each panel of queries: head_dim x panel; base 2
  const T* q_rows = nullptr;     ///< for each panel of columns: queries x panel (or narrower)
  const T* d_out = nullptr;      ///< as q
  const T* d_out_rows = nullptr; ///< as q_rows
  const T* log_sum = nullptr;    ///< of base 2, per query; inf: it has no weights
  const T* correction = nullptr; ///< out . d_out, per query
  T* sum = nullptr;              ///< of the weights, per query
  T* d_q = nullptr;              ///< queries x width, or null

  std::int64_t keys = 0;      ///< of the head, a multiple of a strip
  std::int64_t first_key = 0; ///< of the block, a multiple of a strip
  std::int64_t strips = 0;    ///< of keys in the block
  const T* k = nullptr;       ///< strips of head_dim columns
  const T* k_rows = nullptr;  ///< as q_rows
  const T* v = nullptr;       ///< as k
  const T* padding = nullptr; ///< per key 0, or -inf if there is none
  T* d_k = nullptr;           ///< keys x width, or null
  T* d_v = nullptr;           ///< keys x width, or null

  T* weights = nullptr;  ///< strips of the queries of the block
  T* d_scores = nullptr; ///< strips of the queries of the block; null: without d_q and d_k
  bool biased = false;   ///< weights hold what is to be added to the scores
};

/// Add the block's part to the gradients and to the sums of the weights.
void add_gradients(const GradientTile<double>& tile);
void add_gradients(const GradientTile<float>& tile);

/// Turns n pairs and multiplies them: (x, y) becomes (c x - s y, s x + c y), where c is
/// cosine_factor times the cosine of the pair and s is sine_factor times its sine. to may be from.
void turn(const double* from, const double* cosine, const double* sine, double cosine_factor,
          double sine_factor, std::int64_t n, double* to);
void turn(const float* from, const float* cosine, const float* sine, float cosine_factor,
          float sine_factor, std::int64_t n, float* to);

/// to[c * to_stride + r] = from[r * from_stride + c] for the elements of a rows x columns matrix.
void transpose(const double* from, std::int64_t from_stride, std::int64_t rows,
               std::int64_t columns, double* to, std::int64_t to_stride);
void transpose(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns,
               float* to, std::int64_t to_stride);

} // namespace cape::simd
