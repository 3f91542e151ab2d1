// What the paper proves about attention scores.
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "handle.hpp"

using namespace cape::capi;

namespace {

void copy_if_wanted(double* out, int64_t n, const std::vector<double>& values,
                    std::string_view name) {
  if (out != nullptr) copy_vector(out, n, values, name);
}

} // namespace

cape_status cape_score_envelopes(double* amplitude_out, double* offset_out, int64_t n,
                                 const cape_matrix_view* q, const cape_matrix_view* k) {
  return guard([&] {
    const cape::MatrixView queries = rows_view(q, n, "q"), keys = rows_view(k, n, "k");
    std::vector<double> amplitude, offset;
    for (int64_t i = 0; i < n; ++i) {
      const cape::ScoreEnvelope e =
          in_row(i, [&] { return cape::score_envelope(row_of(queries, i), row_of(keys, i)); });
      amplitude.push_back(e.amplitude);
      offset.push_back(e.offset);
    }
    copy_if_wanted(amplitude_out, n, amplitude, "amplitude_out");
    copy_if_wanted(offset_out, n, offset, "offset_out");
  });
}

cape_status cape_envelope_at(double* upper_out, double* slope_distance_out,
                             double* slope_generality_out, double* limit_out, int64_t n,
                             double amplitude, double offset, int64_t pairs, const double* distance,
                             const double* norm_m, const double* norm_n, double scale) {
  return guard([&] {
    const auto d = values(distance, n, "distance"), m = values(norm_m, n, "norm_m"),
               e = values(norm_n, n, "norm_n");
    if (pairs < 1)
      throw cape::Error(cape::Status::invalid_argument,
                        "pairs is " + std::to_string(pairs) + "; it must be at least 1");
    const double both[] = {amplitude, offset};
    cape::check_finite({both, 1, 2, 2, cape::Layout::row_major}, "the envelope");
    const cape::ScoreEnvelope envelope{.amplitude = amplitude, .offset = offset, .pairs = pairs};
    std::vector<double> upper, by_distance, by_generality, limit;
    for (std::size_t i = 0; i < d.size(); ++i) {
      const cape::BallPair pair{.distance = d[i], .norm_m = m[i], .norm_n = e[i]};
      upper.push_back(envelope_at(envelope, pair, scale));
      by_distance.push_back(envelope_slope_distance(envelope, pair, scale));
      by_generality.push_back(envelope_slope_generality(envelope, pair, scale));
      limit.push_back(envelope_limit(envelope, d[i], scale));
    }
    copy_if_wanted(upper_out, n, upper, "upper_out");
    copy_if_wanted(slope_distance_out, n, by_distance, "slope_distance_out");
    copy_if_wanted(slope_generality_out, n, by_generality, "slope_generality_out");
    copy_if_wanted(limit_out, n, limit, "limit_out");
  });
}

cape_status cape_expected_scores(double* out, int64_t n, const cape_matrix_view* q,
                                 const cape_matrix_view* k, const cape_matrix_view* phi_m,
                                 const cape_matrix_view* phi_n, const cape_matrix_view* sd_m,
                                 const cape_matrix_view* sd_n) {
  return guard([&] {
    const cape::MatrixView queries = rows_view(q, n, "q"), keys = rows_view(k, n, "k"),
                           from = rows_view(phi_m, n, "phi_m"), to = rows_view(phi_n, n, "phi_n"),
                           s = rows_view(sd_m, n, "sd_m"), t = rows_view(sd_n, n, "sd_n");
    check_output(out, n, n);
    std::vector<double> scores;
    for (int64_t i = 0; i < n; ++i)
      scores.push_back(in_row(i, [&] {
        return cape::expected_score(row_of(queries, i), row_of(keys, i), row_of(from, i),
                                    row_of(to, i), row_of(s, i), row_of(t, i));
      }));
    copy_vector(out, n, scores, "out");
  });
}

cape_status cape_expected_margin(double* out, const cape_matrix_view* covariance,
                                 const double* phi_m, const double* phi_n, int64_t n) {
  clear(out);
  return guard([&] {
    double& margin = required(out, "out");
    margin = expected_margin(view_of(covariance, "covariance"), values(phi_m, n, "phi_m"),
                             values(phi_n, n, "phi_n"));
  });
}

cape_status cape_approximation_accuracy(double* out, double sd_m, double sd_n) {
  clear(out);
  return guard([&] {
    double& accuracy = required(out, "out");
    accuracy = cape::approximation_accuracy(sd_m, sd_n);
  });
}

cape_status cape_average_bias(double* out, int64_t n_repeats, const cape_matrix_view* q,
                              const cape_matrix_view* k, const double* phi_m, const double* phi_n,
                              int64_t n_angles, double sd, int64_t n, const cape_options* options) {
  return guard(options, [&](const cape_options& o) {
    const cape::MatrixView queries = view_of(q, "q"), keys = view_of(k, "k");
    const auto from = values(phi_m, n_angles, "phi_m"), to = values(phi_n, n_angles, "phi_n");
    check_output(out, n_repeats, cape::checked_size(n_repeats, 1, "n_repeats"));
    constexpr int64_t most_pairs = int64_t{1} << 31;
    if (n > most_pairs)
      throw cape::Error(cape::Status::invalid_argument,
                        cape::message("n is ", n, "; it must be at most ", most_pairs));
    cape::Run run = make_run(o);
    const auto seed = static_cast<std::uint64_t>(o.values.run.seed);
    std::vector<double> biases;
    for (int64_t i = 0; i < n_repeats; ++i) {
      run.report({"average_bias", i, n_repeats});
      cape::Rng rng(seed, {cape::hash("average_bias"), static_cast<std::uint64_t>(i)});
      biases.push_back(average_bias(queries, keys, from, to, sd, n, rng));
    }
    copy_vector(out, n_repeats, biases, "out");
  });
}

cape_status cape_mean_square_product(double* out, const cape_matrix_view* q,
                                     const cape_matrix_view* k) {
  clear(out);
  return guard([&] {
    double& mean = required(out, "out");
    mean = mean_square_product(view_of(q, "q"), view_of(k, "k"));
  });
}

cape_status cape_hoeffding_bound(double* out, double epsilon, int64_t n, double second_moment) {
  clear(out);
  return guard([&] {
    double& bound = required(out, "out");
    bound = cape::hoeffding_bound(epsilon, n, second_moment);
  });
}
