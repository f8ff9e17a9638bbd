// Minari's metadata.json of our environments. The rules are those of Minari 0.5.4:
// minari/serialization.py (spaces), gymnasium.envs.registration.EnvSpec.to_json (env_spec).
#include <cmath>
#include <optional>

#include "datasets/tasks.h"
#include "datasets/trajectories/env_recording.h"
#include "graphs/error.h"
#include "graphs/hash.h"
#include "graphs/strict_json.h"

namespace doppler {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMinariVersion = "0.5.4";
constexpr std::int64_t kVersion = 1;

// A value that fills an array of this shape, as nested lists.
Json filled(const std::vector<std::int64_t>& shape, const Json& value, std::size_t dimension = 0) {
  if (dimension == shape.size()) return value;
  return Json::array_t(static_cast<std::size_t>(shape[dimension]),
                       filled(shape, value, dimension + 1));
}

Json bound(const ArraySpec& array, double value) {
  if (array.dtype == DType::float32) return static_cast<double>(static_cast<float>(value));
  return static_cast<std::int64_t>(value);
}

Json box(const ArraySpec& array) {
  return {{"type", "Box"},
          {"dtype", to_string(element_type(array.dtype))},
          {"shape", array.shape},
          {"low", filled(array.shape, bound(array, array.low))},
          {"high", filled(array.shape, bound(array, array.high))}};
}

Json observation_space(const EnvSpec& spec, bool full) {
  Json arrays = Json::object();
  for (const ArraySpec& array : spec.observations) {
    if (full || !array.is_static) arrays[array.name] = box(array);
  }
  return {{"type", "Dict"}, {"subspaces", std::move(arrays)}};
}

Json action_space(const ActionSpec& action) {
  if (action.discrete) {
    return {{"type", "Discrete"}, {"dtype", "int64"}, {"start", 0}, {"n", action.sizes[0]}};
  }
  return {{"type", "MultiDiscrete"},
          {"dtype", "int64"},
          {"nvec", action.sizes},
          {"start", std::vector<std::int64_t>(action.sizes.size(), 0)}};
}

// Whether a name alone gives this very task.
bool is_made_by_name(const Task& task) {
  if (task.name.find(".json") != std::string::npos) return false;  // a file of this machine
  try {
    return make_task(task.name).hash() == task.hash();
  } catch (const Error&) {
    return false;
  }
}

// The keyword arguments of doppler_gym.AssignEnv; nothing if a task has no name that makes it.
std::optional<Json> keywords(const EnvModel& model) {
  Json names = Json::array();
  for (const EnvTask& task : model.tasks()) {
    if (!is_made_by_name(task.placement->task())) return std::nullopt;
    names.push_back(task.placement->task().name);
  }
  const EnvOptions& options = model.options();
  Json result;
  if (names.size() == 1) {
    result["task"] = names[0];
  } else {
    result["tasks"] = std::move(names);
  }
  result["mode"] = options.mode;
  result["reward"] = to_string(options.reward);
  result["features"] = to_string(options.features);
  result["order"] = to_string(options.order);
  result["engine"] = options.engine;
  result["on_illegal"] = to_string(options.on_illegal);
  if (options.factored) result["factored"] = true;
  if (options.max_nodes > 0) result["max_nodes"] = options.max_nodes;
  if (options.max_edges > 0) result["max_edges"] = options.max_edges;
  if (options.max_devices > 0) result["max_devices"] = options.max_devices;
  result["memory_penalty"] = options.memory_penalty;
  if (!options.initial.empty()) {
    Json devices = Json::array();
    for (DeviceId device : options.initial) devices.push_back(device.value);
    result["initial"] = std::move(devices);
  }
  return result;
}

Json env_spec(const Json& keyword_arguments) {
  return {{"id", "DopplerGym/Assign-v0"},
          {"entry_point", "doppler_gym.environment:AssignEnv"},
          {"reward_threshold", nullptr},
          {"nondeterministic", false},
          {"max_episode_steps", nullptr},
          {"order_enforce", true},
          {"disable_env_checker", false},
          {"kwargs", keyword_arguments},
          {"additional_wrappers", Json::array()},
          {"vector_entry_point", "doppler_gym.vector:AssignVectorEnv"}};
}

Json parameter_json(const ParameterValue& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

Json task_json(const Task& task) {
  const RunOptions& options = task.options;
  return {{"name", task.name},
          {"hash", hash_text(task.hash())},
          {"graph_hash", hash_text(task.graph.hash())},
          {"network", to_string(options.network)},
          {"choice", to_string(options.choice)},
          {"schedule", to_string(options.schedule)},
          {"noise", options.noise},
          {"enforce_memory", options.enforce_memory}};
}

Json provenance_json(const EnvModel& model, const EnvRecordingOptions& options,
                     const Provenance& provenance) {
  Json result = {{"version", kVersion}};
  Json tasks = Json::array();
  for (const EnvTask& task : model.tasks()) tasks.push_back(task_json(task.placement->task()));
  result["tasks"] = std::move(tasks);
  result["agent"] = provenance.agent;
  Json parameters = Json::object();
  for (const auto& [name, value] : provenance.parameters) parameters[name] = parameter_json(value);
  result["parameters"] = std::move(parameters);
  if (provenance.first_seed) result["first_seed"] = *provenance.first_seed;
  if (provenance.max_evaluations > 0) result["max_evaluations"] = provenance.max_evaluations;
  const EnvOptions& env = model.options();
  result["engine"] = env.engine;
  result["environment"] = {
      {"hash", hash_text(model.hash())}, {"mode", env.mode},
      {"reward", to_string(env.reward)}, {"features", to_string(env.features)},
      {"order", to_string(env.order)},   {"on_illegal", to_string(env.on_illegal)}};
  result["full"] = options.full;
  result["timeline"] = options.timeline;
  result["code_version"] = provenance.code_version;
  return result;
}

}  // namespace

std::string recording_metadata(const std::string& id, const EnvModel& model,
                               const EnvRecordingOptions& options, const Provenance& provenance) {
  Json metadata = {{"dataset_id", id},
                   {"data_format", "hdf5"},
                   {"jpeg_encoding", false},
                   {"minari_version", kMinariVersion},
                   {"observation_space", observation_space(model.spec(), options.full).dump()},
                   {"action_space", action_space(model.spec().action).dump()}};
  if (const auto arguments = keywords(model)) {
    metadata["env_spec"] = env_spec(*arguments).dump();
    metadata["requirements"] = Json::array({"doppler-gym"});
  }
  metadata["algorithm_name"] = provenance.agent;
  metadata["dopplergym"] = provenance_json(model, options, provenance);
  return metadata.dump();
}

}  // namespace doppler
