// scGPT once more, as plain loops over numbers of any type: with complex numbers its derivatives
// are exact to rounding (Im f(x + ihd) / h), without a backward pass. Padding, which our model does
// not have, and the heads that it leaves aside are there too.
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace test {

using Complex = std::complex<double>;
using Numbers = std::vector<Complex>;

/// The cells of a file of inputs; angles: by token and pair of a head, or empty.
struct ScgptInput {
  std::size_t cells = 3, length = 12;
  std::vector<double> gene, value, padding, masked, target, angle;
  bool zero_genes = false; ///< nothing of the genes' own
};

struct ScgptOutput {
  Numbers rows, mlm, mlm_zero, cell, classes, mvc, mvc_zero;
};

class Scgpt {
public:
  std::map<std::string, Numbers> state;
  std::size_t heads = 4, blocks = 2;
  bool stream = false; ///< pre_norm of the flash layers

  ScgptOutput operator()(const ScgptInput& in) const {
    const std::size_t n = in.gene.size(), d = get("encoder.enc_norm.weight").size();
    Numbers genes = lookup("encoder.embedding.weight", in.gene, d);
    norm(genes, "encoder.enc_norm");
    if (in.zero_genes) std::ranges::fill(genes, Complex(0));
    Numbers x;
    if (state.contains("value_encoder.embedding.weight")) {
      x = lookup("value_encoder.embedding.weight", in.value, d);
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
  const Numbers& get(const std::string& name) const { return state.at(name); }

  static void add(Numbers& x, const Numbers& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }
  static void leak(Numbers& x, double slope) {
    for (Complex& v : x) v *= v.real() > 0 ? 1 : slope;
  }
  static Numbers sigmoid(Numbers x) {
    for (Complex& v : x) v = 1.0 / (1.0 + std::exp(-v));
    return x;
  }

  Numbers lookup(const std::string& name, const std::vector<double>& index, std::size_t d) const {
    Numbers out;
    for (const double i : index)
      for (std::size_t j = 0; j < d; ++j) out.push_back(get(name)[std::size_t(i) * d + j]);
    return out;
  }

  // The rows of x times the transpose of the weight, and the bias if there is one.
  Numbers linear(const Numbers& x, const std::string& name) const {
    const std::string separator = state.contains(name + ".weight") ? "." : "_";
    const Numbers& w = get(name + separator + "weight");
    const auto bias = state.find(name + separator + "bias");
    const std::size_t out = bias == state.end() ? 32 : bias->second.size(), in = w.size() / out;
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
    for (std::size_t i = 0; i < n && !in.angle.empty(); ++i)
      for (std::size_t j = 0; j < 2 * d; j += 2) { // queries and keys
        const double angle = in.angle[i * of_head / 2 + j % of_head / 2];
        Complex &a = qkv[i * 3 * d + j], &b = qkv[i * 3 * d + j + 1];
        const Complex turned = a * std::cos(angle) - b * std::sin(angle);
        b = a * std::sin(angle) + b * std::cos(angle);
        a = turned;
      }
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

} // namespace test
