// Attention against a plain loop in long double, its backward pass, scores, and linear attention,
// in double and in float, with strides, angles, bias, padding and empty sides.
#include "fuzz.hpp"

using fuzz::Input;

namespace {

template <class T>
struct Functions;
template <>
struct Functions<double> {
  static constexpr auto forward = cape_attention;
  static constexpr auto backward = cape_attention_backward;
  static constexpr auto workspace = cape_attention_workspace;
  static constexpr auto linear = cape_linear_attention;
  static constexpr auto linear_backward = cape_linear_attention_backward;
  static constexpr double tolerance = 1e-13;
};
template <>
struct Functions<float> {
  static constexpr auto forward = cape_attention_f32;
  static constexpr auto backward = cape_attention_backward_f32;
  static constexpr auto workspace = cape_attention_workspace_f32;
  static constexpr auto linear = cape_linear_attention_f32;
  static constexpr auto linear_backward = cape_linear_attention_backward_f32;
  static constexpr double tolerance = 1e-5;
};

template <class T>
struct Call {
  cape_attention_shape shape;
  std::int64_t pairs; ///< per row of angles
  std::vector<T> q, k, v, q_angles, k_angles, bias;
  std::vector<std::uint8_t> mask;
  bool turned, wild; ///< has angles; has a number that may be anything

  explicit Call(Input& in) {
    const bool large = in.one_in(12);
    const std::int64_t batch = in.in(0, 2), heads = in.in(1, 3),
                       q_length = large ? in.in(30, 90) : in.in(0, 9),
                       k_length = large ? in.in(30, 90) : in.in(0, 9),
                       d = large ? in.in(10, 70) : in.in(1, 9);
    const std::int64_t width = heads * d;
    shape = CAPE_ATTENTION_SHAPE(batch, heads, q_length, k_length, d);
    shape.q_stride = width + in.in(0, 2);
    shape.k_stride = width + in.in(0, 2);
    shape.v_stride = width + in.in(0, 2);
    shape.out_stride = width + in.in(0, 2);
    shape.angle_heads = in.flip() ? 1 : heads;
    shape.bias_heads = in.flip() ? 1 : heads;
    if (in.one_in(4)) shape.scale = in.number();
    turned = d % 2 == 0 && in.flip();
    pairs = turned ? shape.angle_heads * (d / 2) : 0;
    const double size = in.flip() ? 1 : in.flip() ? 30 : 1e-3;
    wild = in.one_in(8);
    std::uint64_t state = in.bits(4);
    const auto fill = [&](std::vector<T>& x, std::int64_t n, double s) {
      x.resize(static_cast<std::size_t>(n));
      for (T& e : x) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        e = static_cast<T>(s * (static_cast<double>(state >> 11) / 4503599627370496.0 - 1));
      }
      for (std::int64_t i = wild ? in.in(0, 2) : 0; i > 0 && n > 0; --i)
        x[static_cast<std::size_t>(in.in(0, 65535) % n)] = static_cast<T>(in.number());
    };
    fill(q, reach(batch * q_length, shape.q_stride), size);
    fill(k, reach(batch * k_length, shape.k_stride), size);
    fill(v, reach(batch * k_length, shape.v_stride), 1);
    fill(q_angles, q_length * pairs, 3);
    fill(k_angles, k_length * pairs, 3);
    if (in.one_in(3)) {
      fill(bias, shape.bias_heads * q_length * k_length, 3);
      for (T& e : bias)
        if (in.one_in(8)) e = -std::numeric_limits<T>::infinity();
      shape.bias = bias.empty() ? nullptr : bias.data();
    }
    if (in.flip()) {
      mask.resize(static_cast<std::size_t>(batch * k_length));
      for (std::uint8_t& e : mask) e = in.one_in(4) ? 0 : static_cast<std::uint8_t>(in.bits(1) | 1);
    }
  }
  std::int64_t width() const { return shape.heads * shape.head_dim; }
  std::int64_t reach(std::int64_t rows, std::int64_t stride) const {
    return rows > 0 ? (rows - 1) * stride + width() : 0;
  }
  const T* turned_q() const { return turned && !q_angles.empty() ? q_angles.data() : nullptr; }
  const T* turned_k() const { return turned && !k_angles.empty() ? k_angles.data() : nullptr; }
  const std::uint8_t* padding() const { return mask.empty() ? nullptr : mask.data(); }

  // x of row i and head h, turned.
  std::vector<long double> row(const std::vector<T>& x, std::int64_t stride, const T* angles,
                               std::int64_t length, std::int64_t i, std::int64_t h) const {
    const std::int64_t d = shape.head_dim;
    std::vector<long double> out(static_cast<std::size_t>(d));
    for (std::int64_t c = 0; c < d; ++c)
      out[static_cast<std::size_t>(c)] = x[static_cast<std::size_t>(i * stride + h * d + c)];
    for (std::int64_t c = 0; angles != nullptr && c < d / 2; ++c) {
      const long double angle =
          angles[i % length * pairs + (shape.angle_heads == 1 ? 0 : h) * (d / 2) + c];
      long double &a = out[static_cast<std::size_t>(2 * c)],
                  &b = out[static_cast<std::size_t>(2 * c + 1)];
      const long double a0 = a, b0 = b;
      a = std::cos(angle) * a0 - std::sin(angle) * b0;
      b = std::sin(angle) * a0 + std::cos(angle) * b0;
    }
    return out;
  }
};

// Of ordinary input: every output within rounding of the plain loop's.
template <class T>
void compare(const Call<T>& c, const std::vector<T>& out) {
  const cape_attention_shape& s = c.shape;
  const long double scale = std::isnan(s.scale)
                                ? 1 / std::sqrt(static_cast<long double>(s.head_dim))
                                : static_cast<long double>(static_cast<T>(s.scale));
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h)
      for (std::int64_t i = 0; i < s.q_length; ++i) {
        const auto query = c.row(c.q, s.q_stride, c.turned_q(), s.q_length, b * s.q_length + i, h);
        std::vector<long double> weight(static_cast<std::size_t>(s.k_length));
        long double top = -std::numeric_limits<long double>::infinity(), size = 1, sum = 0;
        for (std::int64_t j = 0; j < s.k_length; ++j) {
          long double& z = weight[static_cast<std::size_t>(j)];
          z = -std::numeric_limits<long double>::infinity();
          if (!c.mask.empty() && c.mask[static_cast<std::size_t>(b * s.k_length + j)] == 0)
            continue;
          const auto key = c.row(c.k, s.k_stride, c.turned_k(), s.k_length, b * s.k_length + j, h);
          z = 0;
          long double length = 0;
          for (std::size_t e = 0; e < key.size(); ++e)
            z += query[e] * key[e], length += std::fabs(query[e] * key[e]);
          size = std::max(size, length * std::fabs(scale));
          z *= scale;
          if (!c.bias.empty())
            z += c.bias[static_cast<std::size_t>(
                ((s.bias_heads == 1 ? 0 : h) * s.q_length + i) * s.k_length + j)];
          top = std::max(top, z);
        }
        for (long double& z : weight) sum += z = std::isinf(top) ? 0 : std::exp(z - top);
        for (std::int64_t e = 0; e < s.head_dim; ++e) {
          long double right = 0;
          for (std::int64_t j = 0; j < s.k_length; ++j)
            if (const long double w = weight[static_cast<std::size_t>(j)]; w > 0)
              right += w / sum *
                       c.v[static_cast<std::size_t>((b * s.k_length + j) * s.v_stride +
                                                    h * s.head_dim + e)];
          const T given = out[static_cast<std::size_t>((b * s.q_length + i) * s.out_stride +
                                                       h * s.head_dim + e)];
          if (!(std::fabs(given - right) <=
                Functions<T>::tolerance * size * static_cast<long double>(s.head_dim)))
            fuzz::fail("cape_attention", "not the value of the plain loop");
        }
      }
}

template <class T>
void run(Input& in) {
  using F = Functions<T>;
  Call<T> c(in);
  const cape_attention_shape intact = c.shape;
  const std::int64_t width = c.width(),
                     out_size = c.reach(intact.batch * intact.q_length, intact.out_stride);
  const T *q = c.q.data(), *k = c.k.data(), *q_angles = c.turned_q();
  switch (in.in(0, 60)) { // a wrong call
  case 0: q = nullptr; break;
  case 1: c.shape.q_length = -1; break;
  case 2: c.shape.angle_heads = 0; break;
  case 3: c.shape.struct_size = static_cast<std::size_t>(in.in(0, 7)); break;
  case 4: c.shape.q_stride = width - 1; break;
  case 5: c.shape.k_stride = std::numeric_limits<std::int64_t>::max(); break;
  case 6: c.shape.heads = 0; break;
  case 7: c.shape.head_dim = std::numeric_limits<std::int64_t>::max() - in.in(0, 255); break;
  case 8: q_angles = nullptr; break;
  default: break;
  }
  double need[2] = {};
  FINITE(need, F::workspace, &need[0], &need[1], &c.shape, nullptr);
  if (std::memcmp(&intact, &c.shape, sizeof intact) != 0 && need[0] > 1e8) return;

  std::vector<T> out(static_cast<std::size_t>(out_size), T{-7});
  std::vector<T> lse(static_cast<std::size_t>(intact.batch * intact.heads * intact.q_length));
  const auto zeros = [](std::size_t n) { return std::vector<T>(n); };
  const auto queries = static_cast<std::size_t>(intact.batch * intact.q_length * width),
             keys = static_cast<std::size_t>(intact.batch * intact.k_length * width);
  std::vector<T> dq = zeros(queries), dk = zeros(keys), dv = zeros(keys),
                 dq_angles = zeros(c.q_angles.size()), dk_angles = zeros(c.k_angles.size()),
                 d_out(out.size());
  for (T& e : d_out) e = static_cast<T>(in.ordinary());
  const bool angles = q_angles != nullptr && c.turned_k() != nullptr && in.flip();
  const bool is_intact = std::memcmp(&intact, &c.shape, sizeof intact) == 0 && q == c.q.data();
  if (CALL(F::forward, out.data(), lse.data(), &c.shape, q, k, c.v.data(), q_angles, c.turned_k(),
           c.padding(), nullptr)) {
    fuzz::finite(out, "cape_attention");
    if (is_intact && !c.wild && std::fabs(std::isnan(intact.scale) ? 1 : intact.scale) < 100)
      compare(c, out);
    if (CALL(F::backward, dq.data(), in.one_in(6) ? nullptr : dk.data(), dv.data(),
             angles ? dq_angles.data() : nullptr, angles ? dk_angles.data() : nullptr, &c.shape, q,
             k, c.v.data(), q_angles, c.turned_k(), c.padding(), out.data(), lse.data(),
             d_out.data(), nullptr))
      for (const auto* x : {&dq, &dk, &dv, &dq_angles, &dk_angles})
        fuzz::finite(*x, "cape_attention_backward");
  }
  c.shape.bias = nullptr;
  const std::int64_t features = in.in(0, 12);
  const std::uint64_t draw = in.bits(1);
  if (CALL(F::linear, out.data(), &c.shape, features, draw, q, k, c.v.data(), q_angles,
           c.turned_k(), c.padding(), nullptr)) {
    fuzz::finite(out, "cape_linear_attention");
    if (CALL(F::linear_backward, dq.data(), dk.data(), dv.data(), nullptr, nullptr, &c.shape,
             features, draw, q, k, c.v.data(), q_angles, c.turned_k(), c.padding(), d_out.data(),
             nullptr))
      for (const auto* x : {&dq, &dk, &dv}) fuzz::finite(*x, "cape_linear_attention_backward");
  }
  if constexpr (std::is_same_v<T, double>) {
    std::vector<double> scores(lse.size() * static_cast<std::size_t>(intact.k_length));
    if (CALL(cape_attention_scores, scores.data(), &c.shape, q, k, q_angles, c.turned_k(),
             c.padding(), nullptr))
      for (const double e : scores)
        if (!(e < std::numeric_limits<double>::infinity()))
          fuzz::fail("cape_attention_scores", "NaN or infinity");
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  if (in.flip())
    run<double>(in);
  else
    run<float>(in);
  return 0;
}
