// The likelihood of the noise of the effects.
#pragma once

namespace cape::sem {

/// The two parts of -ELBO.
struct Score {
  double reconstruction = 0;
  double kl = 0;
};

/// What is taken for known of the noise of the effects: equal variances, or for each effect one of
/// its own. That is integrated out under a scaled inverse chi-squared prior of scale 1, the
/// variance of a standardized column, with r times as many degrees of freedom as there are rows.
/// With many rows it is the likelihood of the best variance; with few, noise that is fitted away
/// gains little.
class Noise {
public:
  Noise() = default; ///< equal variances
  /// What the options say of them, r being features / rows of the fit.
  inline Noise(const DagOptions& options, std::int64_t features, std::int64_t rows)
      : equal_variances_(!options.standardize),
        moderation_(static_cast<double>(features) / static_cast<double>(rows)) {}
  /// What one column adds to -ELBO, z (rows) being its noise and s = mean w z^2: s / 2, or
  /// (1 + r)/2 log((s + r) / (1 + r)); w is `weight`, or 1 if that is null. With weights z is taken
  /// about its weighted mean: columns are centred over all rows, and the noise where the equation
  /// holds may have another level. z is overwritten by the gradient with respect to z.
  template <class T>
  double score(T* z, std::int64_t rows, const T* weight) const;
  /// The sum of these as the part of -ELBO that it is.
  inline Score part(double total) const {
    return equal_variances_ ? Score{0, total} : Score{total, 0};
  }

private:
  bool equal_variances_ = true;
  double moderation_ = 0;
};

} // namespace cape::sem
