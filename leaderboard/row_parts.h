// What the formats of rows share: hashes, makespans, curves, assignments and parameters in JSON.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "agents/agent.h"
#include "graphs/assignment.h"
#include "graphs/registry.h"
#include "graphs/strict_json.h"

namespace doppler {

// Of an agent, as files have them.
std::map<std::string, ParameterValue> parameters_of(const JsonElement& element);
nlohmann::ordered_json parameters_json(const std::map<std::string, ParameterValue>& parameters);

// A makespan that is infinite is "out of memory".
nlohmann::ordered_json makespan_json(double makespan);
double makespan_of(const JsonElement& element);

// Six significant digits, for what is only looked at.
double rounded(double value);

// 16 hexadecimal digits, as hash_text() writes them.
std::uint64_t hash_of(const JsonElement& element);

nlohmann::ordered_json assignment_json(const Assignment& assignment);
Assignment assignment_of(const JsonElement& element);

// [[evaluations, seconds, makespan], ...] with falling makespans; at least one point.
nlohmann::ordered_json curve_json(const std::vector<Improvement>& curve);
std::vector<Improvement> curve_of(const JsonElement& element);

}  // namespace doppler
