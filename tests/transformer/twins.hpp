// scGPT and scBERT once more, as plain loops over numbers of any type: with complex numbers its
// derivatives are exact to rounding (Im f(x + ihd) / h), without a backward pass. Padding, which
// our model does not have, and the heads that it leaves aside are there too.
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <map>
#include <numbers>
#include <string>
#include <vector>

namespace test {

using Complex = std::complex<double>;
using Numbers = std::vector<Complex>;

/// What both need; `state` has the names of their code.
class Twin {
public:
  std::map<std::string, Numbers> state;
  std::size_t heads = 1, blocks = 2;

protected:
  std::size_t width = 0;

  const Numbers& get(const std::string& name) const { return state.at(name); }

  static void add(Numbers& x, const Numbers& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }
  static void leak(Numbers& x, double slope) {
    for (Complex& v : x) v *= v.real() > 0 ? 1 : slope;
  }
  static void gelu(Numbers& x) { // the error function to first order in the imaginary part
    for (Complex& v : x) {
      const double z = v.real() / std::numbers::sqrt2;
      const Complex erf(std::erf(z), v.imag() / std::numbers::sqrt2 * 2 * std::numbers::inv_sqrtpi *
                                         std::exp(-z * z));
      v *= 0.5 * (1.0 + erf);
    }
  }
  static Numbers sigmoid(Numbers x) {
    for (Complex& v : x) v = 1.0 / (1.0 + std::exp(-v));
    return x;
  }

  Numbers lookup(const std::string& name, const std::vector<double>& index) const {
    Numbers out;
    for (const double i : index)
      for (std::size_t j = 0; j < width; ++j) out.push_back(get(name)[std::size_t(i) * width + j]);
    return out;
  }

  // The rows of x times the transpose of the weight, and the bias; without one x is as wide as the
  // model.
  Numbers linear(const Numbers& x, const std::string& name) const {
    const std::string separator = state.contains(name + ".weight") ? "." : "_";
    const Numbers& w = get(name + separator + "weight");
    const auto bias = state.find(name + separator + "bias");
    const std::size_t out = bias == state.end() ? w.size() / width : bias->second.size(),
                      in = w.size() / out;
    Numbers y;
    for (std::size_t i = 0; i < x.size() / in; ++i)
      for (std::size_t o = 0; o < out; ++o) {
        Complex sum = bias == state.end() ? 0 : bias->second[o];
        for (std::size_t j = 0; j < in; ++j) sum += w[o * in + j] * x[i * in + j];
        y.push_back(sum);
      }
    return y;
  }

  void norm(Numbers& x, const std::string& name) const {
    const Numbers &gain = get(name + ".weight"), &bias = get(name + ".bias");
    const std::size_t d = gain.size();
    for (std::size_t i = 0; i < x.size(); i += d) {
      Complex mean = 0, square = 0;
      for (std::size_t j = 0; j < d; ++j) mean += x[i + j] / double(d);
      for (std::size_t j = 0; j < d; ++j)
        square += (x[i + j] - mean) * (x[i + j] - mean) / double(d);
      for (std::size_t j = 0; j < d; ++j)
        x[i + j] = (x[i + j] - mean) / std::sqrt(square + 1e-5) * gain[j] + bias[j];
    }
  }

  // The pairs of rows of `row` numbers, the first `turned` of them, by token and pair of a head.
  static void turn(Numbers& x, std::size_t row, std::size_t turned, std::size_t pairs,
                   const std::vector<double>& angles) {
    for (std::size_t i = 0; i < x.size() / row && !angles.empty(); ++i)
      for (std::size_t j = 0; j < turned; j += 2) {
        const double angle = angles[i * pairs + j / 2 % pairs];
        Complex &a = x[i * row + j], &b = x[i * row + j + 1];
        const Complex before = a;
        a = before * std::cos(angle) - b * std::sin(angle);
        b = before * std::sin(angle) + b * std::cos(angle);
      }
  }
};

// ------------------------------------------------------------------------------------------ scGPT

/// The cells of a file of inputs; angles: by token and pair of a head, or empty.
struct ScgptInput {
  std::size_t cells = 3, length = 12;
  std::vector<double> gene, value, padding, masked, target, angle;
  bool zero_genes = false; ///< nothing of the genes' own
};

struct ScgptOutput {
  Numbers rows, mlm, mlm_zero, cell, classes, mvc, mvc_zero;
};

class Scgpt : public Twin {
public:
  bool stream = false; ///< pre_norm of the flash layers

  ScgptOutput operator()(const ScgptInput& in) {
    width = get("encoder.enc_norm.weight").size();
    const std::size_t n = in.gene.size(), d = width;
    Numbers genes = lookup("encoder.embedding.weight", in.gene);
    norm(genes, "encoder.enc_norm");
    if (in.zero_genes) std::ranges::fill(genes, Complex(0));
    Numbers x;
    if (state.contains("value_encoder.embedding.weight")) {
      x = lookup("value_encoder.embedding.weight", in.value);
      norm(x, "value_encoder.enc_norm");
    } else {
      x = linear(Numbers(in.value.begin(), in.value.end()), "value_encoder.linear1");
      leak(x, 0);
      x = linear(x, "value_encoder.linear2");
      norm(x, "value_encoder.norm");
    }
    add(x, genes);
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::string name = "transformer_encoder.layers." + std::to_string(b) + ".";
      if (stream) norm(x, name + "norm1");
      add(x, attention(x, name + "self_attn.", in));
      norm(x, name + (stream ? "norm2" : "norm1"));
      Numbers middle = linear(x, name + "linear1");
      leak(middle, 0);
      add(x, linear(middle, name + "linear2"));
      if (!stream) norm(x, name + "norm2");
    }
    ScgptOutput out;
    out.mlm = decode(x, "decoder.fc.");
    out.mlm_zero = sigmoid(decode(x, "decoder.zero_logit."));
    for (std::size_t c = 0; c < in.cells; ++c)
      out.cell.insert(out.cell.end(), x.begin() + std::ptrdiff_t(c * in.length * d),
                      x.begin() + std::ptrdiff_t((c * in.length + 1) * d));
    Numbers classes = out.cell;
    for (const char* layer : {"0", "3"}) {
      classes = linear(classes, std::string("cls_decoder._decoder.") + layer);
      leak(classes, 0);
      norm(classes, std::string("cls_decoder._decoder.") + (*layer == '0' ? "2" : "5"));
    }
    out.classes = linear(classes, "cls_decoder.out_layer");
    const Numbers query = sigmoid(linear(genes, "mvc_decoder.gene2query"));
    const Numbers key = linear(query, "mvc_decoder.W"),
                  zero = linear(query, "mvc_decoder.W_zero_logit");
    for (std::size_t i = 0; i < n; ++i) {
      Complex sum = 0, zero_sum = 0;
      for (std::size_t j = 0; j < d; ++j) {
        sum += key[i * d + j] * out.cell[i / in.length * d + j];
        zero_sum += zero[i * d + j] * out.cell[i / in.length * d + j];
      }
      out.mvc.push_back(sum);
      out.mvc_zero.push_back(zero_sum);
    }
    out.mvc_zero = sigmoid(out.mvc_zero);
    out.rows = x;
    return out;
  }

private:
  Numbers decode(Numbers x, const std::string& name) const {
    for (const char* layer : {"0", "2", "4"}) {
      x = linear(x, name + layer);
      if (*layer != '4') leak(x, 0.01);
    }
    return x;
  }

  Numbers attention(const Numbers& x, const std::string& name, const ScgptInput& in) const {
    const bool flash = state.contains(name + "Wqkv.weight");
    const std::size_t n = in.gene.size(), d = x.size() / n, of_head = d / heads;
    Numbers qkv = linear(x, name + (flash ? "Wqkv" : "in_proj")), out(n * d);
    turn(qkv, 3 * d, 2 * d, of_head / 2, in.angle); // queries and keys
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t h = 0; h < heads; ++h) {
        const std::size_t first = i / in.length * in.length;
        Numbers weight;
        Complex sum = 0;
        for (std::size_t k = first; k < first + in.length; ++k) {
          Complex score = 0;
          for (std::size_t j = h * of_head; j < (h + 1) * of_head; ++j)
            score += qkv[i * 3 * d + j] * qkv[k * 3 * d + d + j];
          weight.push_back(in.padding[k] != 0 ? 0 : std::exp(score / std::sqrt(double(of_head))));
          sum += weight.back();
        }
        for (std::size_t k = 0; k < in.length; ++k)
          for (std::size_t j = h * of_head; j < (h + 1) * of_head; ++j)
            out[i * d + j] += weight[k] / sum * qkv[(first + k) * 3 * d + 2 * d + j];
      }
    return linear(out, name + "out_proj");
  }
};

// ----------------------------------------------------------------------------------------- scBERT

struct ScbertInput {
  std::size_t length = 31;
  std::vector<double> token, keep, angle; ///< keep: by token, 0 where values count as 0; or empty
};

struct ScbertOutput {
  Numbers rows, logits;
  std::vector<Numbers> of_attention; ///< what each block adds to its rows
  std::vector<Numbers> into_block;
};

class Scbert : public Twin {
public:
  ScbertOutput operator()(const ScbertInput& in) {
    width = get("norm.weight").size();
    ScbertOutput out;
    Numbers x = lookup("token_emb.weight", in.token);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] += get("pos_emb.emb.weight")[i % (in.length * width)];
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::string name = "performer.net.layers." + std::to_string(b) + ".";
      out.into_block.push_back(x);
      Numbers normed = x;
      norm(normed, name + "0.norm");
      out.of_attention.push_back(attention(normed, name + "0.fn.", in));
      add(x, out.of_attention.back());
      normed = x;
      norm(normed, name + "1.norm");
      Numbers middle = linear(normed, name + "1.fn.fn.w1");
      gelu(middle);
      add(x, linear(middle, name + "1.fn.fn.w2"));
    }
    norm(x, "norm");
    out.logits = linear(x, "to_out");
    out.rows = x;
    return out;
  }

private:
  static const Complex& larger(const Complex& a, const Complex& b) {
    return a.real() < b.real() ? b : a;
  }

  Numbers attention(const Numbers& x, const std::string& name, const ScbertInput& in) const {
    Numbers q = linear(x, name + "to_q"), k = linear(x, name + "to_k"),
            v = linear(x, name + "to_v");
    const std::size_t n = in.token.size(), inner = q.size() / n, d = inner / heads;
    turn(q, inner, inner, d / 2, in.angle);
    turn(k, inner, inner, d / 2, in.angle);
    for (std::size_t i = 0; i < v.size(); ++i)
      if (!in.keep.empty() && in.keep[i / inner] == 0) v[i] = 0;
    const Numbers& directions = get(name + "fast_attention.projection_matrix");
    const std::size_t m = directions.size() / d;
    // Products with the directions, and half the squared lengths, by token, head and direction.
    const auto products = [&](const Numbers& of) {
      Numbers out;
      for (std::size_t row = 0; row < n * heads; ++row)
        for (std::size_t t = 0; t < m; ++t) {
          Complex sum = 0;
          for (std::size_t j = 0; j < d; ++j) sum += directions[t * d + j] * of[row * d + j];
          out.push_back(sum / std::pow(double(d), 0.25));
        }
      return out;
    };
    const auto half_square = [&](const Numbers& of, std::size_t row) {
      Complex sum = 0;
      for (std::size_t j = 0; j < d; ++j) sum += of[row * d + j] * of[row * d + j];
      return sum / std::sqrt(double(d)) / 2.0;
    };
    Numbers f_q = products(q), f_k = products(k), out(q.size());
    Complex largest_key = f_k[0];
    for (const Complex& v_k : f_k) largest_key = larger(largest_key, v_k);
    for (std::size_t row = 0; row < n * heads; ++row) {
      Complex largest = f_q[row * m];
      for (std::size_t t = 0; t < m; ++t) largest = larger(largest, f_q[row * m + t]);
      for (std::size_t t = row * m; t < (row + 1) * m; ++t) {
        f_q[t] = std::exp(f_q[t] - half_square(q, row) - largest) + 1e-4;
        f_k[t] = std::exp(f_k[t] - half_square(k, row) - largest_key) + 1e-4;
      }
    }
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t h = 0; h < heads; ++h) {
        Complex weights = 0;
        const std::size_t first = i / in.length * in.length;
        for (std::size_t j = first; j < first + in.length; ++j) {
          Complex weight = 0;
          for (std::size_t t = 0; t < m; ++t)
            weight += f_q[(i * heads + h) * m + t] * f_k[(j * heads + h) * m + t];
          weights += weight;
          for (std::size_t c = h * d; c < (h + 1) * d; ++c)
            out[i * inner + c] += weight * v[j * inner + c];
        }
        for (std::size_t c = h * d; c < (h + 1) * d; ++c) out[i * inner + c] /= weights;
      }
    return linear(out, name + "to_out");
  }
};

} // namespace test
