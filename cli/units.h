// Numbers for people: seconds, bytes and FLOPs in a unit that fits. Machines get --json.
#pragma once

#include <string>

namespace doppler::cli {

// A value in this unit is seconds / scale.
struct Unit {
  double scale = 1;
  std::string name;
};

// s, ms or µs, so that `largest` is at least 1 where that can be. For raw costs a power of ten
// whose exponent is a multiple of five, for raw costs have no unit: 1.73867e12 is "173.867 x 1e10".
Unit time_unit(double largest, bool raw);

// Three decimals without the unit's name; "out of memory" for infinity.
std::string in_unit(double seconds, const Unit& unit);
// The same with the name.
std::string with_unit(double seconds, const Unit& unit);
// A duration by itself, in the unit that fits it.
std::string seconds_text(double seconds);

// "1.50 GB" (powers of 1000); a plain number if the bytes are raw.
std::string bytes_text(double bytes, bool raw);
// "1.50 TFLOP"; a plain number if they are raw.
std::string flops_text(double flops, bool raw);
// printf's %.*f.
std::string fixed(double value, int decimals);

}  // namespace doppler::cli
