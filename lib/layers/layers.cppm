// cape.layers: the parts of a transformer, forward and backward, as free functions. A tensor is
// rows x width, row-major without gaps: row i holds what is known of token i. Results are the same
// bits for any number of threads: work is cut by the shape alone.
module;
#include <cstdint>
#include <span>
#include <string_view>
export module cape.layers;
import cape.core;

// Sizes are not negative and spans as long as the shapes say, else Error(dim_mismatch); what is in
// them is not looked at: NaN gives NaN. A backward function is given d_y, the gradient of a number
// with respect to y, and gives those with respect to the arguments: of rows it overwrites what was
// there, unless said otherwise, and to those of parameters it adds. An empty span of a gradient:
// it is not computed. All are O(size of the arguments) but for products.
export namespace cape::layers {

// ---------------------------------------------------------------------------------------- linear

/// y = x W' + b for every row: x is rows x in, W out x in, b out long or empty, y rows x out.
/// O(rows in out).
template <class T>
void linear(std::span<const T> x, std::int64_t rows, std::span<const T> weight,
            std::span<const T> bias, std::span<T> y, Run& run);

/// What becomes of the gradient of the rows that a backward function writes to.
enum class Into : std::int32_t { overwritten, added };

/// d_x = d_y W, d_weight += d_y' x, d_bias += the sum of the rows of d_y.
template <class T>
void linear_backward(std::span<const T> x, std::int64_t rows, std::span<const T> weight,
                     std::span<const T> d_y, std::span<T> d_x, std::span<T> d_weight,
                     std::span<T> d_bias, Run& run, Into into = Into::overwritten);

// ------------------------------------------------------------------------------------------ norm

/// Of every row: mean and 1 / sqrt(variance + epsilon), which the backward function needs.
template <class T>
struct RowMoments {
  T mean, inverse_sd;
};

/// y = (x - mean) / sqrt(variance + epsilon) gain + bias with each row's own mean and variance
/// (J. L. Ba et al., Layer normalization, 2016). If `residual` is not empty x becomes x + residual
/// first, in the same pass. gain and bias are as long as a row.
template <class T>
void layer_norm(std::span<T> x, std::span<const T> residual, std::span<const T> gain,
                std::span<const T> bias, double epsilon, std::span<T> y,
                std::span<RowMoments<T>> moments, Run& run);

/// x: that of the forward pass, after the residual was added.
template <class T>
void layer_norm_backward(std::span<const T> x, std::span<const T> gain,
                         std::span<const RowMoments<T>> moments, std::span<const T> d_y,
                         std::span<T> d_x, std::span<T> d_gain, std::span<T> d_bias, Run& run,
                         Into into = Into::overwritten);

// ----------------------------------------------------------------------------------- activations

/// relu: max(x, 0). leaky_relu: x, or x / 100 below 0. gelu: x Phi(x) with the error function.
/// gelu_tanh: x (1 + tanh(sqrt(2/pi) (x + .044715 x^3))) / 2 (D. Hendrycks and K. Gimpel, 2016).
/// sigmoid: 1 / (1 + exp(-x)).
enum class Activation : std::int32_t { relu, leaky_relu, gelu, gelu_tanh, sigmoid };

/// y = f(x); y may be x.
template <class T>
void activate(Activation activation, std::span<const T> x, std::span<T> y, Run& run);

/// d_x = d_y f'(x); d_x may be d_y.
template <class T>
void activate_backward(Activation activation, std::span<const T> x, std::span<const T> d_y,
                       std::span<T> d_x, Run& run);

// ------------------------------------------------------------------------------------------- rows

/// y_i += table[index_i], or nothing where the index is -1; table: n x width, y: indices x width.
template <class T>
void add_rows(std::span<const T> table, std::int64_t width, std::span<const std::int32_t> index,
              std::span<T> y, Run& run);
/// d_table[index_i] += d_y_i, in the order of i.
template <class T>
void add_rows_backward(std::span<const T> d_y, std::int64_t width,
                       std::span<const std::int32_t> index, std::span<T> d_table, Run& run);

/// The cosines and sines of angles by feature and pair, for turn_rows().
template <class T>
struct Turns {
  std::int64_t pairs = 0; ///< of a row, half of its width
  std::span<const T> cosine, sine;
};

/// The pairs (x[2t], x[2t+1]) of row i turned by the angles of row index_i of the table, or left as
/// they are where it is -1: R(phi) x (paper, eq_R). backward: R(phi)' x, which is the gradient with
/// respect to what was turned.
template <class T>
void turn_rows(std::span<T> x, std::span<const std::int32_t> index, const Turns<T>& turns,
               bool backward, Run& run);
/// The gradient with respect to the angles, by row and pair: y is x after turn_rows(), d_y its
/// gradient; d_angle is rows x pairs and gets x'_2t d_y_(2t+1) - x'_(2t+1) d_y_2t.
template <class T>
void turn_rows_angle_backward(std::span<const T> y, std::span<const T> d_y, std::span<T> d_angle,
                              Run& run);

/// x += y.
template <class T>
void add(std::span<const T> y, std::span<T> x, Run& run);

/// Every element is dropped (0) with probability `rate` in [0, 1) and else multiplied by
/// 1 / (1 - rate) (N. Srivastava et al., 2014): by seed, purpose and number of the element, so
/// that the gradient is the same function of d_y. The rate is rounded to 1/65536.
/// Error(invalid_argument) for another rate.
template <class T>
void drop_out(std::span<T> x, double rate, std::string_view purpose, std::uint64_t number,
              Run& run);

// ----------------------------------------------------------------------------------------- losses

/// The mean of (prediction - target)^2 over the elements that count, or 0 if none does, and its
/// gradient times `weight`, which is 0 elsewhere. What does not count may be NaN.
template <class T>
double square_loss(std::span<const T> prediction, std::span<const T> target,
                   std::span<const std::uint8_t> counts, double weight, std::span<T> d_prediction);

/// The mean over the rows with a label >= 0 of -log softmax(row)[label], or 0 if there is none, and
/// its gradient times `weight`. Logits are rows x classes. class_weight: how much a row counts, by
/// its label; empty: all alike. Error(invalid_argument) for a label beyond the classes.
template <class T>
double cross_entropy(std::span<const T> logits, std::int64_t classes,
                     std::span<const std::int32_t> label, double weight, std::span<T> d_logits,
                     std::span<const double> class_weight = {});

} // namespace cape::layers
