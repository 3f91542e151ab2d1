// The likelihood of the noise of an effect.
#pragma once

namespace cape::sem {

/// What one column adds to -ELBO, z (rows) being its noise: 1/2 mean w z^2, or 1/2 log mean w z^2
/// when variances are unequal; w is `weight`, or 1 if that is null. With weights z is taken about
/// its weighted mean: columns are centred over all rows, and the noise where the equation holds may
/// have another level. z is overwritten by the gradient with respect to z.
template <class T>
double noise_score(T* z, std::int64_t rows, const T* weight, bool unequal_variances);

} // namespace cape::sem
