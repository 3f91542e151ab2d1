// h and the objectives of Step I: values against closed forms and naive loops, gradients against
// central differences.
#define BOOST_TEST_MODULE objective
#include <algorithm>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>
import cape;
#include "errors.hpp"
#include "tables.hpp"

namespace {

using cape::Constraint;
using cape::DagOptions;
using cape::Matrix;
using cape::Missing;
using cape::Rng;
using cape::Sem;
using cape::Status;
using test::fails_with;
using test::random_matrix;

const double not_a_number = std::numeric_limits<double>::quiet_NaN();
const double infinity = std::numeric_limits<double>::infinity();

Matrix cycle(const std::vector<double>& weights) {
  const auto m = static_cast<std::int64_t>(weights.size());
  Matrix a(m, m);
  for (std::int64_t i = 0; i < m; ++i) a(i, (i + 1) % m) = weights[static_cast<std::size_t>(i)];
  return a;
}

} // namespace

// ------------------------------------------------------------------------------------------ h(A)

BOOST_AUTO_TEST_SUITE(acyclicity)

BOOST_AUTO_TEST_CASE(of_a_two_cycle_is_its_closed_form) {
  // A o A has the eigenvalues +- ab.
  for (const auto& [a, b] : {std::pair{0.3, -0.5}, {1e-3, 1e-2}, {2.0, 0.4}, {-3.0, 5.0}}) {
    const double expected = 4 * std::pow(std::sinh(a * b / 2), 2); // 2 cosh(ab) - 2
    BOOST_TEST(cape::acyclicity(cycle({a, b}), Constraint::expm) == expected,
               boost::test_tools::tolerance(1e-13));
    if (std::fabs(a * b) < 1) {
      BOOST_TEST(cape::acyclicity(cycle({a, b}), Constraint::logdet) == -std::log1p(-a * a * b * b),
                 boost::test_tools::tolerance(1e-7));
    }
  }
}

BOOST_AUTO_TEST_CASE(of_longer_cycles_is_their_series) {
  // With p the product of the squared weights of an m-cycle, tr exp = m sum_k p^k / (mk)!.
  for (const auto& weights : std::vector<std::vector<double>>{
           {0.9, 0.8, 0.25}, {0.1, 0.2, 0.3, 0.4}, {1.5, 2.0, 1.0, 0.7, 3.0}}) {
    double p = 1, h = 0;
    for (const double w : weights) p *= w * w;
    const double m = static_cast<double>(weights.size());
    for (int k = 1; k < 30; ++k) h += m * std::exp(k * std::log(p) - std::lgamma(m * k + 1));
    BOOST_TEST(cape::acyclicity(cycle(weights), Constraint::expm) == h,
               boost::test_tools::tolerance(1e-12));
  }
  // The 3-cycle of the known faults: about 0.0162.
  BOOST_TEST(std::fabs(cape::acyclicity(cycle({0.9, 0.8, 0.25}), Constraint::expm) - 0.0162) <
             5e-5);
}

BOOST_AUTO_TEST_CASE(of_many_two_cycles_is_the_sum_of_their_closed_forms) {
  // Columns far enough from each other to fall into all pairs of blocks of a product.
  constexpr std::int64_t pairs = 150, m = 2 * pairs + 1;
  Rng rng(3);
  Matrix a(m, m), gradient;
  double h = 0;
  for (std::int64_t i = 0; i < pairs; ++i) {
    a(i, m - 1 - i) = rng.normal();
    a(m - 1 - i, i) = rng.normal();
    h += 4 * std::pow(std::sinh(a(i, m - 1 - i) * a(m - 1 - i, i) / 2), 2);
  }
  BOOST_TEST(cape::acyclicity(a, Constraint::expm, &gradient) == h,
             boost::test_tools::tolerance(1e-12));
  for (std::int64_t i = 0; i < pairs; ++i) {
    const double there = a(i, m - 1 - i), back = a(m - 1 - i, i);
    BOOST_TEST(gradient(i, m - 1 - i) == 2 * back * std::sinh(there * back),
               boost::test_tools::tolerance(1e-12));
    BOOST_TEST(gradient(i, (i + 1) % pairs) == 0);
  }
}

BOOST_AUTO_TEST_CASE(of_an_acyclic_matrix_is_exactly_zero) {
  Matrix a = random_matrix(30, 30, 2, 1);
  for (std::int64_t i = 0; i < 30; ++i)
    for (std::int64_t j = 0; j <= i; ++j) a(i, j) = 0;
  BOOST_TEST(cape::acyclicity(a, Constraint::expm) == 0);
  BOOST_TEST(cape::acyclicity(a, Constraint::logdet) == 0);
  BOOST_TEST(cape::acyclicity(Matrix(4, 4), Constraint::expm) == 0);
  BOOST_TEST(cape::acyclicity(Matrix(0, 0), Constraint::expm) == 0);
}

BOOST_AUTO_TEST_CASE(does_not_overflow_where_exp_does) {
  Matrix ones(100, 100), twos(200, 200);
  for (std::int64_t i = 0; i < 200; ++i)
    for (std::int64_t j = 0; j < 200; ++j) {
      if (i < 100 && j < 100) ones(i, j) = i == j ? 0 : 1;
      twos(i, j) = i == j ? 0 : 2;
    }
  // Eigenvalues of ones - I: 99 once and -1 ninety-nine times.
  Matrix gradient;
  BOOST_TEST(cape::acyclicity(ones, Constraint::expm, &gradient) ==
                 std::exp(99) + 99 * std::exp(-1) - 100,
             boost::test_tools::tolerance(1e-12));
  // exp(ones - I) off the diagonal: (e^99 - e^-1) / 100.
  BOOST_TEST(gradient(3, 8) == 2 * (std::exp(99) - std::exp(-1)) / 100,
             boost::test_tools::tolerance(1e-12));

  // The spectral radius 796 is beyond the largest exponent, 709.8.
  BOOST_TEST(cape::acyclicity(twos, Constraint::expm, &gradient) ==
             std::numeric_limits<double>::max());
  for (std::int64_t e = 0; e < gradient.size(); ++e)
    BOOST_TEST_REQUIRE(std::isfinite(gradient.data()[e]));
  BOOST_TEST(gradient(0, 1) > 0);
  BOOST_TEST(gradient(0, 1) == gradient(7, 3), boost::test_tools::tolerance(1e-9));

  for (const double size : {1e10, 1e160, 1e300}) {
    Matrix a = cycle({size, size});
    BOOST_TEST(cape::acyclicity(a, Constraint::expm, &gradient) ==
               std::numeric_limits<double>::max());
    BOOST_TEST((std::isfinite(gradient(0, 1)) && gradient(0, 1) > 0));
    a(1, 0) = 0;
    BOOST_TEST(cape::acyclicity(a, Constraint::expm, &gradient) == 0);
    BOOST_TEST(std::isfinite(gradient(0, 1)));
  }
}

BOOST_AUTO_TEST_CASE(agrees_with_the_plain_series_also_when_tiny) {
  for (const double scale : {1e-4, 0.05, 0.5, 1.5}) {
    const std::int64_t m = 6;
    const Matrix a = random_matrix(m, m, scale, 5);
    std::vector<long double> s(m * m), term(m * m), next(m * m);
    for (int e = 0; e < m * m; ++e) s[e] = term[e] = (long double)(a.data()[e]) * a.data()[e];
    long double h = 0;
    for (int k = 1; k < 120; ++k) {
      for (int i = 0; i < m; ++i) h += term[i * m + i];
      for (int j = 0; j < m; ++j)
        for (int i = 0; i < m; ++i) {
          next[j * m + i] = 0;
          for (int l = 0; l < m; ++l) next[j * m + i] += term[l * m + i] * s[j * m + l];
          next[j * m + i] /= k + 1;
        }
      term.swap(next);
    }
    BOOST_TEST(cape::acyclicity(a, Constraint::expm) == double(h),
               boost::test_tools::tolerance(1e-12));
  }
}

BOOST_AUTO_TEST_CASE(gradients_are_those_of_central_differences) {
  for (const Constraint form : {Constraint::expm, Constraint::logdet})
    for (const double scale : {0.05, 0.2, 0.35}) {
      const std::int64_t m = 7;
      Matrix a = random_matrix(m, m, scale, 11), gradient;
      cape::acyclicity(a, form, &gradient);
      for (std::int64_t e = 0; e < a.size(); ++e) {
        const double w = a.data()[e], step = 1e-5;
        a.data()[e] = w + step;
        const double up = cape::acyclicity(a, form);
        a.data()[e] = w - step;
        const double down = cape::acyclicity(a, form);
        a.data()[e] = w;
        BOOST_TEST(std::fabs(gradient.data()[e] - (up - down) / (2 * step)) <
                   1e-7 * (1 + std::fabs(gradient.data()[e])));
      }
    }
}

BOOST_AUTO_TEST_CASE(refuses_what_it_cannot_measure) {
  BOOST_TEST(fails_with(Status::dim_mismatch, "2 x 3",
                        [] { cape::acyclicity(Matrix(2, 3), Constraint::expm); }));
  Matrix a = cycle({1, 1});
  BOOST_TEST(fails_with(Status::invalid_argument, "spectral radius",
                        [&] { cape::acyclicity(a, Constraint::logdet); }));
  for (const double bad : {not_a_number, infinity, -infinity}) {
    a(0, 1) = bad;
    BOOST_TEST(fails_with(Status::invalid_argument, "row 0, column 1",
                          [&] { cape::acyclicity(a, Constraint::expm); }));
  }
}

BOOST_AUTO_TEST_SUITE_END()

// ------------------------------------------------------------------------------------- objective

namespace {

struct Case {
  Sem sem;
  Constraint constraint = Constraint::expm;
  bool standardize = false;
  bool missing = false;
};
std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << "sem " << int(c.sem) << ", constraint " << int(c.constraint) << ", standardize "
             << c.standardize << ", missing " << c.missing;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Sem sem : {Sem::mlp, Sem::linear, Sem::paper, Sem::literal})
    for (const bool standardize : {false, true})
      for (const bool missing : {false, true})
        all.push_back({sem, missing ? Constraint::logdet : Constraint::expm, standardize, missing});
  return all;
}

constexpr std::int64_t rows = 17, features = 4, hidden = 3;

DagOptions options_of(const Case& c) {
  DagOptions o;
  o.sem = c.sem;
  o.constraint = c.constraint;
  o.standardize = c.standardize;
  o.missing = c.missing ? Missing::mask : Missing::fail;
  o.hidden = hidden;
  o.lambda = 0.07;
  o.l2 = 0.03;
  return o;
}

Matrix table_of(const Case& c) {
  Matrix x = random_matrix(rows, features, 1.3, 21);
  if (c.missing) x(2, 1) = x(5, 1) = x(5, 3) = x(16, 0) = not_a_number;
  return x;
}

// Random parameters with zero self weights; the edges small enough for the log-det form.
std::vector<double> parameters_of(const Case& c) {
  const DagOptions o = options_of(c);
  const std::int64_t channels = c.sem == Sem::mlp ? hidden : 1;
  std::vector<double> p(static_cast<std::size_t>(cape::dag_parameter_count(features, o)));
  Rng rng(31);
  for (std::size_t e = 0; e < p.size(); ++e) {
    const bool edge = e < std::size_t(features * features * channels);
    p[e] = (edge ? 0.3 : 0.7) * rng.normal();
    if (edge && e % features == e / std::size_t(features * channels)) p[e] = 0;
  }
  return p;
}

// With a variance of its own, that of the marginal likelihood under its prior (docs/method.md).
double noise_score(double squares, double count, bool standardize) {
  const double r = double(features) / rows;
  return standardize ? count / rows * 0.5 * (1 + r) * std::log((squares / count + r) / (1 + r))
                     : 0.5 * squares / rows;
}

// The objective by plain loops over the formulas of the model.
double naive_loss(const Case& c, const Matrix& x, const std::vector<double>& p, double rho,
                  double alpha) {
  const DagOptions o = options_of(c);
  const std::int64_t m = features, channels = c.sem == Sem::mlp ? hidden : 1;
  const auto w = [&](std::int64_t i, std::int64_t j, std::int64_t k) {
    return p[std::size_t((j * channels + k) * m + i)];
  };
  const double* rest = p.data() + m * m * channels;
  const auto seen = [&](std::int64_t r, std::int64_t j) { return !std::isnan(x(r, j)); };
  const auto at = [&](std::int64_t r, std::int64_t j) { return seen(r, j) ? x(r, j) : 0.0; };
  const auto relu_net = [](const double* q, double v) { // w, b, v of 64 units, then c
    double y = q[192];
    for (int k = 0; k < 64; ++k) y += q[128 + k] * std::max(q[k] * v + q[64 + k], 0.0);
    return y;
  };
  const auto f = [&](double v) {
    if (c.sem == Sem::linear) return v;
    if (c.sem == Sem::literal) return relu_net(rest, v);
    double y = v + rest[48];
    for (int k = 0; k < 16; ++k) y += rest[32 + k] * std::tanh(rest[k] * v + rest[16 + k]);
    return y;
  };

  double loss = 0;
  for (std::int64_t j = 0; j < m; ++j) {
    double sum = 0, squares = 0, count = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      double z;
      if (c.sem == Sem::mlp) {
        const double *v = rest, *b = v + m * hidden, *shift = b + m * hidden;
        z = at(r, j) - shift[j];
        for (std::int64_t k = 0; k < hidden; ++k) {
          double pre = b[j * hidden + k];
          for (std::int64_t i = 0; i < m; ++i) pre += w(i, j, k) * at(r, i);
          z -= v[j * hidden + k] / (1 + std::exp(-pre));
        }
      } else {
        z = f(at(r, j));
        for (std::int64_t i = 0; i < m; ++i) z -= f(at(r, i)) * w(i, j, 0);
      }
      if (!seen(r, j)) continue;
      sum += z;
      squares += z * z;
      count += 1;
      if (c.sem == Sem::paper) {
        const double slope = (f(at(r, j) + 1e-6) - f(at(r, j) - 1e-6)) / 2e-6;
        loss -= std::log(std::fabs(slope) + 1e-3) / rows;
      }
      if (c.sem == Sem::literal)
        loss += 0.5 * std::pow(at(r, j) - relu_net(rest + 193, f(at(r, j))), 2) / rows;
    }
    if (c.missing) squares -= sum * sum / count; // about the mean of the rows that count
    loss += noise_score(squares, count, c.standardize && c.sem != Sem::literal);
  }

  Matrix a(m, m);
  for (std::int64_t j = 0; j < m; ++j)
    for (std::int64_t i = 0; i < m; ++i) {
      double s = 0;
      for (std::int64_t k = 0; k < channels; ++k) {
        loss += o.lambda * std::fabs(w(i, j, k));
        s += w(i, j, k) * w(i, j, k);
      }
      a(i, j) = std::sqrt(s);
    }
  if (c.sem == Sem::mlp)
    for (std::int64_t e = 0; e < m * m * hidden + m * hidden; ++e) loss += 0.5 * o.l2 * p[e] * p[e];
  const double h = cape::acyclicity(a, o.constraint);
  return loss + 0.5 * rho * h * h + alpha * h;
}

} // namespace

BOOST_AUTO_TEST_SUITE(loss)

BOOST_DATA_TEST_CASE(is_that_of_plain_loops, boost::unit_test::data::make(cases()), c) {
  const Matrix x = table_of(c);
  const std::vector<double> p = parameters_of(c);
  for (const auto& [rho, alpha] : {std::pair{0.0, 0.0}, {30.0, 2.0}})
    BOOST_TEST(cape::dag_loss(x, p, rho, alpha, options_of(c)) == naive_loss(c, x, p, rho, alpha),
               boost::test_tools::tolerance(c.sem == Sem::paper ? 1e-8 : 1e-12));
}

BOOST_DATA_TEST_CASE(has_the_gradient_of_central_differences, boost::unit_test::data::make(cases()),
                     c) {
  const DagOptions o = options_of(c);
  const Matrix x = table_of(c);
  const std::int64_t channels = c.sem == Sem::mlp ? hidden : 1;
  std::vector<double> p = parameters_of(c), gradient;
  cape::dag_loss(x, p, 30, 2, o, &gradient);
  BOOST_TEST_REQUIRE(gradient.size() == p.size());
  for (std::size_t e = 0; e < p.size(); ++e) {
    if (e < std::size_t(features * features * channels) &&
        e % features == e / std::size_t(features * channels)) {
      BOOST_TEST(gradient[e] == 0); // a self weight
      continue;
    }
    const double value = p[e], step = 1e-6;
    p[e] = value + step;
    const double up = cape::dag_loss(x, p, 30, 2, o);
    p[e] = value - step;
    const double down = cape::dag_loss(x, p, 30, 2, o);
    p[e] = value;
    BOOST_TEST(std::fabs(gradient[e] - (up - down) / (2 * step)) <
                   1e-6 * (1 + std::fabs(gradient[e])),
               "parameter " << e << ": " << gradient[e] << " against " << (up - down) / (2 * step));
  }
}

BOOST_DATA_TEST_CASE(in_float_is_that_in_double_up_to_rounding,
                     boost::unit_test::data::make(cases()), c) {
  DagOptions o = options_of(c);
  const Matrix x = table_of(c);
  const std::vector<double> p = parameters_of(c);
  std::vector<double> gradient, rounded;
  const double loss = cape::dag_loss(x, p, 30, 2, o, &gradient);
  o.precision = cape::Precision::float32;
  if (c.sem != Sem::mlp) {
    BOOST_TEST(fails_with(Status::invalid_argument, "dag.precision",
                          [&] { cape::dag_loss(x, p, 30, 2, o); }));
    return;
  }
  const double in_float = cape::dag_loss(x, p, 30, 2, o, &rounded);
  BOOST_TEST(in_float == loss, boost::test_tools::tolerance(1e-5));
  BOOST_TEST(in_float != loss);
  double largest = 0;
  for (const double g : gradient) largest = std::max(largest, std::fabs(g));
  for (std::size_t e = 0; e < p.size(); ++e)
    BOOST_TEST(std::fabs(rounded[e] - gradient[e]) < 1e-5 * largest);
}

BOOST_AUTO_TEST_CASE(of_the_literal_form_decodes_to_f_of_x) {
  // With the posterior at its mean, Z (I - A)^-1 is f(X) for every A: the reconstruction is the
  // same.
  const Case c{Sem::literal};
  DagOptions o = options_of(c);
  o.lambda = 0;
  const Matrix x = table_of(c);
  std::vector<double> p = parameters_of(c), empty = p, gradient, gradient_of_empty;
  std::fill_n(empty.begin(), features * features, 0.0);
  const double with = cape::dag_loss(x, p, 0, 0, o, &gradient);
  const double without = cape::dag_loss(x, empty, 0, 0, o, &gradient_of_empty);
  BOOST_TEST(std::fabs(with - without) > 1e-3); // the KL term differs ...
  const std::size_t decoder = std::size_t(features * features) + 193;
  for (std::size_t e = decoder; e < p.size(); ++e) // ... and the decoder notices nothing
    BOOST_TEST(gradient[e] == gradient_of_empty[e]);
}

BOOST_AUTO_TEST_CASE(is_finite_or_refused) {
  Matrix x(20, 3);
  for (std::int64_t e = 0; e < x.size(); ++e)
    x.data()[e] = std::sin(static_cast<double>(e)) * 1e200;
  for (const Sem sem : {Sem::mlp, Sem::linear, Sem::paper}) {
    DagOptions o;
    o.sem = sem;
    const std::vector<double> p(static_cast<std::size_t>(cape::dag_parameter_count(3, o)));
    BOOST_TEST(fails_with(Status::invalid_argument, "leaves the range",
                          [&] { cape::dag_loss(x, p, 0, 0, o); }));
  }
}

BOOST_AUTO_TEST_CASE(refuses_parameters_of_another_model) {
  const DagOptions o;
  BOOST_TEST(cape::dag_parameter_count(10, o) == 10 * 10 * 10 + 2 * 10 * 10 + 10);
  const std::vector<double> few(5);
  BOOST_TEST(fails_with(Status::dim_mismatch, "1210",
                        [&] { cape::dag_loss(Matrix(20, 10), few, 0, 0, o); }));
  BOOST_TEST(fails_with(Status::invalid_argument, "features is 0",
                        [&] { cape::dag_parameter_count(0, o); }));
  for (const Sem sem : {Sem::mlp, Sem::linear, Sem::paper, Sem::literal}) {
    DagOptions large;
    large.sem = sem;
    for (const std::int64_t features : {std::int64_t{1} << 31, std::int64_t{1} << 62})
      BOOST_TEST(fails_with(Status::invalid_argument, "the parameters of the model",
                            [&] { cape::dag_parameter_count(features, large); }));
  }
  std::vector<double> bad(1210);
  bad[3] = not_a_number;
  BOOST_TEST(fails_with(Status::invalid_argument, "parameters",
                        [&] { cape::dag_loss(Matrix(20, 10), bad, 0, 0, o); }));
}

BOOST_AUTO_TEST_SUITE_END()
