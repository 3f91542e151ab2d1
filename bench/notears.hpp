// The yardstick of bench/recovery: NOTEARS for linear models (X. Zheng, B. Aragam, P. Ravikumar and
// E. P. Xing, DAGs with NO TEARS, NeurIPS 2018), written from the paper: least squares with an L1
// penalty under tr exp(W o W) = d, by an augmented Lagrangian whose problems a projected L-BFGS
// solves over W = W+ - W-, W+, W- >= 0. Include after `import cape;`.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

namespace notears {

using Vector = std::vector<double>;

inline double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// Minimise f over x >= 0 from x; f returns the value and writes the gradient.
inline void minimize(const std::function<double(const Vector&, Vector&)>& f, Vector& x) {
  constexpr std::size_t memory = 10;
  constexpr int max_steps = 1000;
  struct Pair {
    Vector s, y;
    double sy;
  };
  std::deque<Pair> pairs;
  Vector gradient(x.size()), next_gradient(x.size());
  double value = f(x, gradient);
  for (int step = 0; step < max_steps; ++step) {
    // Coordinates at their bound that want to stay there are left out.
    Vector direction(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      direction[i] = x[i] > 0 || gradient[i] < 0 ? -gradient[i] : 0;
    if (std::ranges::max(direction, {}, [](double v) { return std::fabs(v); }) == 0) return;
    Vector steepest = direction;
    std::vector<double> a(pairs.size());
    for (std::size_t k = pairs.size(); k-- > 0;) {
      a[k] = dot(pairs[k].s, direction) / pairs[k].sy;
      for (std::size_t i = 0; i < x.size(); ++i) direction[i] -= a[k] * pairs[k].y[i];
    }
    if (!pairs.empty()) {
      const double scale = pairs.back().sy / dot(pairs.back().y, pairs.back().y);
      for (double& d : direction) d *= scale;
    }
    for (std::size_t k = 0; k < pairs.size(); ++k) {
      const double b = dot(pairs[k].y, direction) / pairs[k].sy;
      for (std::size_t i = 0; i < x.size(); ++i) direction[i] += (a[k] - b) * pairs[k].s[i];
    }
    for (std::size_t i = 0; i < x.size(); ++i)
      if (steepest[i] == 0) direction[i] = 0;
    if (!(dot(direction, steepest) > 0)) direction = steepest;

    Vector next(x.size());
    double next_value = value;
    bool moved = false;
    double length = pairs.empty() ? std::min(1.0, 1 / std::sqrt(dot(steepest, steepest))) : 1;
    for (int halving = 0; halving < 40 && !moved; ++halving, length /= 2) {
      double decrease = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        next[i] = std::max(0.0, x[i] + length * direction[i]);
        decrease += gradient[i] * (next[i] - x[i]);
      }
      next_value = f(next, next_gradient);
      moved = decrease < 0 && next_value <= value + 1e-4 * decrease;
    }
    if (!moved) {
      if (pairs.empty()) return;
      pairs.clear(); // once more along the gradient
      continue;
    }
    Pair p{next, next_gradient, 0};
    for (std::size_t i = 0; i < x.size(); ++i) {
      p.s[i] -= x[i];
      p.y[i] -= gradient[i];
    }
    p.sy = dot(p.s, p.y);
    if (p.sy > 1e-10 * dot(p.y, p.y)) pairs.push_back(std::move(p));
    if (pairs.size() > memory) pairs.pop_front();
    const double change = value - next_value;
    x = std::move(next);
    gradient = next_gradient;
    value = next_value;
    if (change <= 2e-9 * std::max(1.0, std::fabs(value))) return;
  }
}

/// The weights of NOTEARS with its authors' settings: lambda 0.1, rho up to 1e16, h below 1e-8.
/// They are to be cut at 0.3. x: N x d, any centre.
inline cape::Matrix fit(const cape::Matrix& x, double lambda = 0.1) {
  const std::int64_t n = x.rows(), d = x.cols();
  cape::Matrix covariance(d, d);
  Vector mean(static_cast<std::size_t>(d));
  for (std::int64_t j = 0; j < d; ++j)
    mean[static_cast<std::size_t>(j)] =
        std::accumulate(x.column(j), x.column(j) + n, 0.0) / static_cast<double>(n);
  for (std::int64_t j = 0; j < d; ++j)
    for (std::int64_t i = 0; i <= j; ++i) {
      double sum = 0;
      for (std::int64_t r = 0; r < n; ++r)
        sum += (x(r, i) - mean[static_cast<std::size_t>(i)]) *
               (x(r, j) - mean[static_cast<std::size_t>(j)]);
      covariance(i, j) = covariance(j, i) = sum / static_cast<double>(n);
    }

  const auto weights = [d](const Vector& parts) {
    cape::Matrix w(d, d);
    for (std::int64_t e = 0; e < d * d; ++e)
      w.data()[e] = parts[static_cast<std::size_t>(e)] - parts[static_cast<std::size_t>(e + d * d)];
    return w;
  };
  double rho = 1, alpha = 0, h = 0;
  const auto objective = [&](const Vector& parts, Vector& gradient) {
    const cape::Matrix w = weights(parts);
    cape::Matrix slope;
    h = cape::acyclicity(w, cape::Constraint::expm, &slope);
    double value = 0.5 * rho * h * h + alpha * h;
    for (std::int64_t j = 0; j < d; ++j) {
      Vector residual(static_cast<std::size_t>(d)); // column j of C (I - W)
      for (std::int64_t k = 0; k < d; ++k) {
        const double r = (k == j) - w(k, j);
        if (r == 0) continue;
        for (std::int64_t i = 0; i < d; ++i)
          residual[static_cast<std::size_t>(i)] += r * covariance(i, k);
      }
      for (std::int64_t i = 0; i < d; ++i) {
        const double c = residual[static_cast<std::size_t>(i)];
        value += 0.5 * ((i == j) - w(i, j)) * c;
        const auto e = static_cast<std::size_t>(j * d + i), f = e + static_cast<std::size_t>(d * d);
        const double g = -c + (rho * h + alpha) * slope(i, j);
        value += lambda * (parts[e] + parts[f]);
        gradient[e] = i == j ? 0 : g + lambda;
        gradient[f] = i == j ? 0 : -g + lambda;
      }
    }
    return value;
  };

  Vector parts(static_cast<std::size_t>(2 * d * d)), unused(parts.size());
  double h_before = INFINITY;
  for (int round = 0; round < 100; ++round) {
    for (;;) {
      Vector trial = parts;
      minimize(objective, trial);
      objective(trial, unused); // leaves h of the solution
      if (h <= 0.25 * h_before || rho >= 1e16) {
        parts = std::move(trial);
        break;
      }
      rho *= 10;
    }
    h_before = h;
    alpha += rho * h;
    if (h <= 1e-8 || rho >= 1e16) break;
  }
  return weights(parts);
}

} // namespace notears
