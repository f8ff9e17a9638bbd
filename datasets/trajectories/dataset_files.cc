#include "datasets/trajectories/dataset_files.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "datasets/trajectories/part_file.h"
#include "graphs/error.h"
#include "graphs/file.h"
#include "graphs/hash.h"
#include "graphs/strict_json.h"

namespace doppler {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kVersion = 1;

void find_below(const fs::path& folder, std::vector<DatasetPaths>& found) {
  const DatasetPaths paths(folder.string());
  if (fs::exists(paths.data()) || fs::exists(paths.parts())) {
    found.push_back(paths);
    return;
  }
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    const bool is_hidden = entry.path().filename().string().starts_with(".");
    if (entry.is_directory() && !entry.is_symlink() && !is_hidden) find_below(entry.path(), found);
  }
}

// The arrays of a space as Minari serializes it. Returns false for one that is not of numbers.
bool collect_arrays(const Json& space, const std::string& path, std::vector<ArrayLayout>& arrays) {
  const std::string type = space.value("type", "");
  if (type == "Dict") {
    for (const auto& [name, part] : space.at("subspaces").items()) {
      if (!collect_arrays(part, path + "/" + name, arrays)) return false;
    }
    return true;
  }
  if (type == "Tuple") {
    std::size_t i = 0;
    for (const Json& part : space.at("subspaces")) {
      if (!collect_arrays(part, path + "/_index_" + std::to_string(i++), arrays)) return false;
    }
    return true;
  }
  ArrayLayout array;
  array.path = path;
  if (type == "MultiBinary") {
    array.type = ElementType::int8;
    const Json& n = space.at("n");
    array.shape = n.is_array() ? n.get<std::vector<std::int64_t>>()
                               : std::vector<std::int64_t>{n.get<std::int64_t>()};
  } else {
    const auto element = parse_element_type(space.value("dtype", ""));
    if (!element) return false;
    array.type = *element;
    if (type == "Box") {
      array.shape = space.at("shape").get<std::vector<std::int64_t>>();
    } else if (type == "MultiDiscrete") {
      array.shape = {static_cast<std::int64_t>(space.at("nvec").size())};
    } else if (type != "Discrete") {
      return false;
    }
  }
  arrays.push_back(std::move(array));
  return true;
}

// Reads `path` to see what is wrong with one episode; empty: nothing.
class EpisodeCheck {
 public:
  EpisodeCheck(const EpisodeFileReader& reader, const std::vector<ArrayLayout>& arrays)
      : reader_(reader), arrays_(arrays) {}

  std::string fault(std::int64_t episode) const {
    try {
      const std::int64_t n_steps = reader_.n_steps(episode);
      if (n_steps < 1) return "it has no steps";
      for (const ArrayLayout& wanted : arrays_) {
        const std::int64_t n_rows = n_steps + (wanted.path.starts_with("observations") ? 1 : 0);
        const std::string found = array_fault(episode, wanted, n_rows);
        if (!found.empty()) return found;
      }
      std::string ends;
      for (const char* name : {"rewards", "terminations", "truncations"}) {
        const auto array = reader_.array(episode, name);
        if (!array) return std::string("it has no ") + name;
        if (array->n_rows != n_steps) return rows_text(name, array->n_rows, n_steps);
        if (array->layout.row_bytes() == 1) ends = merged(ends, array->rows);
      }
      const std::size_t end = ends.find('\1');
      if (end == std::string::npos) return "it does not end";
      if (end + 1 != ends.size()) return "it goes on after its end";
      return "";
    } catch (const RunError& error) {
      return error.what();
    }
  }

 private:
  static std::string rows_text(const std::string& name, std::int64_t n, std::int64_t wanted) {
    return name + " has " + std::to_string(n) + " rows instead of " + std::to_string(wanted);
  }
  static std::string merged(std::string a, const std::string& b) {
    if (a.empty()) return b;
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<char>(a[i] | b[i]);
    return a;
  }
  [[nodiscard]] std::string array_fault(std::int64_t episode, const ArrayLayout& wanted,
                                        std::int64_t n_rows) const {
    const auto array = reader_.array(episode, wanted.path);
    if (!array) return "it has no " + wanted.path;
    if (array->n_rows != n_rows) return rows_text(wanted.path, array->n_rows, n_rows);
    if (array->layout.type != wanted.type || array->layout.shape != wanted.shape) {
      return wanted.path + " does not fit its space";
    }
    return "";
  }

  const EpisodeFileReader& reader_;
  const std::vector<ArrayLayout>& arrays_;
};

// Finished episodes of parts that can be read.
std::int64_t count_waiting(const DatasetPaths& paths, std::int64_t recorded,
                           std::vector<std::string>& faults) {
  std::int64_t n = 0;
  if (!fs::exists(paths.parts())) return n;
  for (const auto& entry : fs::directory_iterator(paths.parts())) {
    if (entry.path().extension() != ".part") continue;
    try {
      const Part part = read_part(entry.path().string());
      if (part.first >= recorded) n += static_cast<std::int64_t>(part.episodes.size());
    } catch (const RunError& error) {
      faults.push_back(std::string(error.what()) + "; repair puts it aside");
    }
  }
  return n;
}

}  // namespace

std::vector<DatasetPaths> find_datasets(const std::string& path) {
  std::vector<DatasetPaths> found;
  std::error_code code;
  if (!fs::is_directory(path, code)) throw RunError(path + ": there is no such folder");
  find_below(fs::path(path).lexically_normal(), found);
  std::sort(found.begin(), found.end(),
            [](const DatasetPaths& a, const DatasetPaths& b) { return a.folder < b.folder; });
  if (found.empty()) throw RunError(path + ": there is no data set here or below");
  return found;
}

DatasetPaths find_dataset(const std::string& path) {
  const std::vector<DatasetPaths> found = find_datasets(path);
  if (found.size() == 1) return found[0];
  std::string names;
  for (const DatasetPaths& paths : found) names += (names.empty() ? "" : ", ") + paths.folder;
  throw RunError(path + " holds several data sets; name one: " + names);
}

DatasetMetadata::DatasetMetadata(const DatasetPaths& paths) {
  const std::string path = paths.metadata();
  text_ = read_file(path);
  const auto fail = [&](const std::string& what) {
    throw RunError(path + ": cannot read: " + what);
  };
  Json document;
  try {
    document = Json::parse(text_);
    id_ = document.at("dataset_id").get<std::string>();
    if (document.value("data_format", "hdf5") != "hdf5") fail("its data are not in HDF5");
    total_episodes_ = document.value("total_episodes", std::int64_t{0});
    total_steps_ = document.value("total_steps", std::int64_t{0});
    observation_space_ = document.value("observation_space", "");
    action_space_ = document.value("action_space", "");
    if (!observation_space_.empty() && !action_space_.empty()) {
      const bool known = collect_arrays(Json::parse(observation_space_), "observations", arrays_) &&
                         collect_arrays(Json::parse(action_space_), "actions", arrays_);
      if (!known) arrays_.clear();
    }
    if (!document.contains("dopplergym")) return;
    const Json& ours = document.at("dopplergym");
    if (const auto version = ours.value("version", kVersion); version > kVersion) {
      fail("its version " + std::to_string(version) + " is newer than this library, which reads " +
           std::to_string(kVersion) + "; update doppler-gym");
    }
    for (const Json& task : ours.value("tasks", Json::array())) {
      const auto hash = parse_hash(task.value("graph_hash", ""));
      tasks_.push_back({task.at("name").get<std::string>(), hash.value_or(0)});
    }
  } catch (const Json::exception&) {
    fail("it is damaged, or no metadata of Minari");
  }
}

DatasetCheck check_dataset(const DatasetPaths& paths) {
  DatasetCheck check;
  std::int64_t recorded = 0;
  if (fs::exists(paths.data())) {
    try {
      const DatasetMetadata metadata(paths);
      const EpisodeFileReader reader(paths.main());
      recorded = reader.recorded();
      check.n_episodes = reader.n_episodes();
      const EpisodeCheck one(reader, metadata.arrays());
      for (std::int64_t i = 0; i < check.n_episodes; ++i) {
        const std::string fault = one.fault(i);
        if (fault.empty()) {
          check.n_steps += reader.n_steps(i);
        } else {
          check.faults.push_back("episode " + std::to_string(i) + ": " + fault +
                                 "; repair --out DIR copies the others");
        }
      }
      if (metadata.total_episodes() > check.n_episodes) {
        check.faults.push_back("metadata.json tells of " +
                               std::to_string(metadata.total_episodes()) +
                               " episodes, main_data.hdf5 has " + std::to_string(check.n_episodes) +
                               "; repair --out DIR copies what is there");
      } else if (metadata.total_episodes() < check.n_episodes) {
        check.faults.push_back("metadata.json is behind: it tells of " +
                               std::to_string(metadata.total_episodes()) + " of " +
                               std::to_string(check.n_episodes) + " episodes; repair mends it");
      } else if (check.faults.empty() && metadata.total_steps() != check.n_steps) {
        check.faults.push_back("metadata.json tells of " + std::to_string(metadata.total_steps()) +
                               " steps, there are " + std::to_string(check.n_steps));
      }
      if (!paths.folder.ends_with("/" + metadata.id()) && paths.folder != metadata.id()) {
        check.faults.push_back("metadata.json names the data set " + metadata.id() +
                               ", which its folder does not; Minari will not find it");
      }
    } catch (const RunError& error) {
      check.faults.push_back(error.what());
    }
  }
  check.n_waiting = count_waiting(paths, recorded, check.faults);
  if (check.n_waiting > 0) {
    check.faults.push_back(std::to_string(check.n_waiting) +
                           " finished episodes are not built in yet; repair does so");
  }
  return check;
}

DatasetStatistics dataset_statistics(const DatasetPaths& paths) {
  const DatasetMetadata metadata(paths);
  const EpisodeFileReader reader(paths.main());
  DatasetStatistics statistics{.id = metadata.id(),
                               .n_episodes = reader.n_episodes(),
                               .bytes = static_cast<std::int64_t>(fs::file_size(paths.main()))};
  for (const RecordedTask& task : metadata.tasks()) statistics.tasks.push_back(task.name);
  for (std::int64_t i = 0; i < reader.n_episodes(); ++i) {
    const std::int64_t n_steps = reader.n_steps(i);
    statistics.n_steps += n_steps;
    statistics.shortest = i == 0 ? n_steps : std::min(statistics.shortest, n_steps);
    statistics.longest = std::max(statistics.longest, n_steps);
    for (const auto& [name, value] : reader.attributes(i)) {
      const double* number = std::get_if<double>(&value);
      if (number == nullptr) continue;
      if (name == "return") statistics.returns.push_back(*number);
      if (name == "makespan") statistics.makespans.push_back(*number);
    }
  }
  return statistics;
}

}  // namespace doppler
