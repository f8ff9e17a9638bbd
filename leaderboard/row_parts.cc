#include "leaderboard/row_parts.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "graphs/hash.h"

namespace doppler {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLargestDevice = std::numeric_limits<std::int32_t>::max();
constexpr std::string_view kOutOfMemory = "out of memory";

}  // namespace

Json makespan_json(double makespan) {
  return std::isfinite(makespan) ? Json(makespan) : Json(kOutOfMemory);
}

double makespan_of(const JsonElement& element) {
  if (!element.is_text()) return element.quantity();
  if (element.text() == kOutOfMemory) return std::numeric_limits<double>::infinity();
  element.fail("expected a number of at least 0, or \"out of memory\"");
}

double rounded(double value) {
  if (!std::isfinite(value) || value == 0) return value;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return std::strtod(text.data(), nullptr);
}

std::uint64_t hash_of(const JsonElement& element) {
  const auto hash = parse_hash(element.text());
  if (!hash) element.fail("expected 16 hexadecimal digits");
  return *hash;
}

std::vector<Improvement> curve_of(const JsonElement& element) {
  std::vector<Improvement> curve;
  for (const JsonElement& item : element.elements()) {
    const auto parts = item.elements();
    if (parts.size() != 3) item.fail("expected [evaluations, seconds, makespan]");
    curve.push_back({parts[0].integer(1, kLargest), parts[1].quantity(), makespan_of(parts[2])});
    const bool falls = curve.size() == 1 || curve.back().makespan < curve.end()[-2].makespan;
    if (!falls) item.fail("the makespans of a curve must fall");
  }
  if (curve.empty()) element.fail("expected at least one point");
  return curve;
}

std::map<std::string, ParameterValue> parameters_of(const JsonElement& element) {
  std::map<std::string, ParameterValue> parameters;
  for (const auto& [name, value] : element.fields()) parameters[name] = value.scalar();
  return parameters;
}

Json parameters_json(const std::map<std::string, ParameterValue>& parameters) {
  Json json = Json::object();
  for (const auto& [name, value] : parameters) {
    Json& parameter = json[name];
    std::visit([&](const auto& scalar) { parameter = scalar; }, value);
  }
  return json;
}

Json assignment_json(const Assignment& assignment) {
  Json devices = Json::array();
  for (DeviceId device : assignment.devices) devices.push_back(device.value);
  return devices;
}

Assignment assignment_of(const JsonElement& element) {
  Assignment assignment;
  for (const JsonElement& device : element.elements()) {
    assignment.devices.emplace_back(device.integer(0, kLargestDevice));
  }
  return assignment;
}

Json curve_json(const std::vector<Improvement>& curve) {
  Json json = Json::array();
  for (const Improvement& point : curve) {
    json.push_back({point.evaluations, point.seconds, makespan_json(point.makespan)});
  }
  return json;
}

}  // namespace doppler
