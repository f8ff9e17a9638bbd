#include "cli/settings.h"

#include <filesystem>

#include "graphs/error.h"
#include "graphs/number_text.h"

namespace doppler::cli {

void put_settings(const SettingOptions& options, std::map<std::string, ParameterValue>& settings) {
  const auto put = [&](const char* name, const auto& value) {
    if (value) settings[name] = *value;
  };
  put("network", options.network);
  put("choice", options.choice);
  put("schedule", options.schedule);
  put("inputs", options.inputs);
  put("noise", options.noise);
  put("enforce_memory", options.enforce_memory);
  put("streams", options.streams);
  if (options.profile)
    settings["profile"] = std::filesystem::absolute(*options.profile).lexically_normal().string();
}

SettingOptions settings_of(const std::map<std::string, ParameterValue>& settings) {
  SettingOptions options;
  const auto text = [](const std::string& name, const ParameterValue& value) {
    if (const auto* found = std::get_if<std::string>(&value)) return *found;
    if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
    if (const auto* number = std::get_if<double>(&value)) return number_text(*number);
    throw UsageError("settings: " + name + " is true or false; give a number or a name");
  };
  const std::map<std::string, Accept> known = {
      {"network", into(options.network)},        {"choice", into(options.choice)},
      {"schedule", into(options.schedule)},      {"inputs", into(options.inputs)},
      {"noise", into(options.noise, 0.0, 10.0)}, {"streams", into(options.streams, 1, 1024)},
      {"profile", into(options.profile)}};
  for (const auto& [name, value] : settings) {
    if (name == "enforce_memory") {
      const bool* enforce = std::get_if<bool>(&value);
      if (enforce == nullptr) throw UsageError("settings: enforce_memory takes true or false");
      options.enforce_memory = *enforce;
      continue;
    }
    const auto found = known.find(name);
    if (found == known.end()) {
      std::vector<std::string> names = {"enforce_memory"};
      for (const auto& [known_name, accept] : known) names.push_back(known_name);
      throw_unknown_name("setting", name, names);
    }
    found->second("settings: " + name, {text(name, value)});
  }
  return options;
}

}  // namespace doppler::cli
