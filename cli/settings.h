// Engine settings as files keep them, by the names of the options: {"noise", 0.1}.
#pragma once

#include <map>
#include <string>

#include "cli/problem.h"
#include "graphs/registry.h"

namespace doppler::cli {

using StoredSettings = std::map<std::string, ParameterValue>;

// Adds those that the user gave; the name of a file is made absolute.
void put_settings(const SettingOptions& options, StoredSettings& settings);
// What put_settings() stored; a setting from a file is as strict as an option. Throws UsageError.
SettingOptions settings_of(const StoredSettings& settings);

}  // namespace doppler::cli
