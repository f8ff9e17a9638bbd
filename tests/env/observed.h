// What a test reads of an environment and does to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "env/env.h"

namespace doppler::testing {

using Actions = std::vector<std::int64_t>;

template <class T>
std::vector<T> array(const Env& env, const std::string& name) {
  const auto values = env.observation_as<T>(env.spec().index(name));
  return {values.begin(), values.end()};
}
// In units of the diamond's time scale over 8, so that hand-computed seconds can be written.
inline std::vector<double> seconds(const Env& env, const std::string& name) {
  std::vector<double> result;
  for (float x : array<float>(env, name)) result.push_back(8.0 * static_cast<double>(x));
  return result;
}
inline std::vector<std::int8_t> mask(const Env& env) {
  return {env.action_mask().begin(), env.action_mask().end()};
}
using Bits = std::vector<std::int8_t>;
using Ids = std::vector<std::int32_t>;
using Seconds = std::vector<double>;

inline Env started(const Task& task, const EnvOptions& options) {
  Env env(task, options);
  env.reset({.seed = 1});
  return env;
}

inline std::vector<double> rewards(Env& env, const Actions& actions) {
  std::vector<double> result;
  for (std::int64_t action : actions) result.push_back(env.step(action).reward);
  return result;
}

}  // namespace doppler::testing
