// What units share of the ball model.
#pragma once

namespace cape {

/// Shorten e until |e| < 1 strictly.
void keep_in_ball(std::span<double> e);

} // namespace cape
