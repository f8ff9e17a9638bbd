// Data sets made of others: repair, merge, split.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <utility>

#include "datasets/trajectories/dataset_files.h"
#include "graphs/error.h"
#include "graphs/file.h"
#include "graphs/hash.h"
#include "graphs/strict_json.h"

namespace doppler {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kBatchBytes = std::size_t{64} << 20;  // of episodes that are saved together

// Collects episodes and saves them in parts of moderate size.
class Saver {
 public:
  explicit Saver(RecordingFolder folder) : folder_(std::move(folder)) {}
  void add(Episode episode) {
    n_bytes_ += episode.n_bytes();
    episodes_.push_back(std::move(episode));
    if (n_bytes_ >= kBatchBytes) save();
  }
  std::int64_t build() {
    save();
    folder_.build();
    return folder_.n_episodes();
  }

 private:
  void save() {
    folder_.save(episodes_);
    episodes_.clear();
    n_bytes_ = 0;
  }
  RecordingFolder folder_;
  std::vector<Episode> episodes_;
  std::size_t n_bytes_ = 0;
};

Json metadata_for(const DatasetMetadata& metadata, const std::string& id) {
  Json document = Json::parse(metadata.text());
  for (const char* name : {"total_episodes", "total_steps", "dataset_size"}) document.erase(name);
  document["dataset_id"] = id;
  return document;
}

// The main file, or a copy that HDF5 opens if the end of it is missing: zeros stand for what is
// lost, and episodes that lie there are found to be damaged one by one.
class ReadableFile {
 public:
  ReadableFile(const std::string& path, const std::string& folder) : path_(path) {
    try {
      EpisodeFileReader{path};
      return;
    } catch (const RunError&) {
    }
    // HDF5 file format 3.0, superblock of version 2 and 3: the end of the file at byte 28.
    std::string head(36, '\0');
    std::ifstream(path, std::ios::binary).read(head.data(), static_cast<std::streamsize>(36));
    std::uint64_t end = 0;
    std::memcpy(&end, head.data() + 28, sizeof end);
    const std::uint64_t size = fs::file_size(path);
    constexpr std::uint64_t kMostGrowth = std::uint64_t{1} << 40;
    if (!head.starts_with("\x89HDF\r\n\x1a\n") || end <= size || end > size + kMostGrowth) return;
    copy_ = folder + "/.readable";
    fs::copy_file(path, copy_, fs::copy_options::overwrite_existing);
    fs::resize_file(copy_, end);
  }
  ReadableFile(const ReadableFile&) = delete;
  ReadableFile& operator=(const ReadableFile&) = delete;
  ~ReadableFile() {
    std::error_code ignored;
    if (!copy_.empty()) fs::remove(copy_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return copy_.empty() ? path_ : copy_; }
  [[nodiscard]] bool is_cut_off() const { return !copy_.empty(); }

 private:
  std::string path_;
  std::string copy_;
};

// How many episodes there may be; the group of all may be damaged itself.
std::int64_t n_to_try(const EpisodeFileReader& reader, const DatasetMetadata& metadata) {
  return std::max(reader.n_episodes(), metadata.total_episodes());
}

void check_lengths(const Episode& episode) {
  for (const char* name : {"actions", "rewards", "terminations", "truncations"}) {
    bool found = false;
    for (const EncodedArray& array : episode.arrays) {
      if (array.layout.path != name && !array.layout.path.starts_with(std::string(name) + "/")) {
        continue;
      }
      found = true;
      if (array.n_rows != episode.n_steps) throw RunError(std::string(name) + " is cut off");
    }
    for (const auto& [link, target] : episode.links) found = found || link == name;
    if (!found) throw RunError(std::string("it has no ") + name);
  }
}

}  // namespace

RepairResult repair_dataset(const DatasetPaths& paths) {
  RepairResult result;
  RecordingFolder folder = RecordingFolder::open(paths);
  for (const std::string& path : folder.put_damaged_parts_aside()) {
    result.notes.push_back("a damaged part was put aside: " + path);
  }
  const std::int64_t n_before = folder.n_built();
  folder.build();
  result.n_episodes = folder.n_episodes();
  if (result.n_episodes > n_before) {
    result.notes.push_back(std::to_string(result.n_episodes - n_before) +
                           " finished episodes were built in");
  }
  return result;
}

RepairResult recover_dataset(const DatasetPaths& paths, const std::string& root) {
  RepairResult result;
  const DatasetMetadata metadata(paths);
  const std::string folder = root + "/" + metadata.id();
  if (fs::exists(folder) && fs::equivalent(folder, paths.folder)) {
    throw UsageError(root + " is where the data set is; name another root for what is whole");
  }
  Saver saver(
      RecordingFolder::create(root, {metadata.id(), metadata_for(metadata, metadata.id()).dump()}));
  {
    const ReadableFile file(paths.main(), folder);
    if (file.is_cut_off()) result.notes.push_back("main_data.hdf5 is cut off");
    EpisodeFileReader reader(file.path());
    const std::int64_t n = n_to_try(reader, metadata);
    for (std::int64_t i = 0; i < n; ++i) {
      try {
        Episode episode = reader.read(i);
        check_lengths(episode);
        saver.add(std::move(episode));
      } catch (const RunError& error) {
        result.notes.push_back("episode " + std::to_string(i) + " is lost: " + error.what());
      }
    }
  }
  result.n_episodes = saver.build();
  return result;
}

std::int64_t merge_datasets(const std::vector<DatasetPaths>& sources, const std::string& root,
                            const std::string& id) {
  if (sources.empty()) throw UsageError("no data sets to merge; name them");
  std::vector<DatasetMetadata> metadata;
  for (const DatasetPaths& paths : sources) {
    metadata.emplace_back(paths);
    const DatasetMetadata& one = metadata.back();
    const DatasetMetadata& first = metadata.front();
    if (one.observation_space() == first.observation_space() &&
        one.action_space() == first.action_space()) {
      continue;
    }
    throw UsageError(one.id() + " and " + first.id() + " have different " +
                     (one.action_space() == first.action_space() ? "observation" : "action") +
                     " spaces; only data sets of equal spaces can be merged");
  }
  Json document = metadata_for(metadata.front(), id);
  Json ids = Json::array();
  Json provenances = Json::array();
  Json names = Json::array();
  Json tasks = Json::array();
  bool is_one_environment = true;
  for (const DatasetMetadata& one : metadata) {
    const Json its = Json::parse(one.text());
    ids.push_back(one.id());
    provenances.push_back(its.value("dopplergym", Json()));
    const Json name = its.value("algorithm_name", Json());
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    is_one_environment &= its.value("env_spec", "") == document.value("env_spec", "");
    for (const Json& task : its.value("dopplergym", Json::object()).value("tasks", Json::array())) {
      if (std::find(tasks.begin(), tasks.end(), task) == tasks.end()) tasks.push_back(task);
    }
  }
  document["combined_datasets"] = std::move(ids);
  if (names.size() > 1) document.erase("algorithm_name");
  if (!is_one_environment) document.erase("env_spec");
  document["dopplergym"] = {
      {"version", 1}, {"tasks", std::move(tasks)}, {"sources", std::move(provenances)}};
  Saver saver(RecordingFolder::create(root, {id, document.dump()}));
  for (const DatasetPaths& paths : sources) {
    EpisodeFileReader reader(paths.main());
    for (std::int64_t i = 0; i < reader.n_episodes(); ++i) saver.add(reader.read(i));
  }
  return saver.build();
}

void split_dataset(const DatasetPaths& source, const std::string& root,
                   const std::vector<SplitPart>& parts, std::uint64_t seed) {
  const DatasetMetadata metadata(source);
  EpisodeFileReader reader(source.main());
  const std::int64_t n = reader.n_episodes();
  std::int64_t n_wanted = 0;
  for (const SplitPart& part : parts) {
    if (part.n_episodes < 1) throw UsageError("part " + part.id + " would have no episode");
    n_wanted += part.n_episodes;
  }
  if (n_wanted > n) {
    throw UsageError("the parts want " + std::to_string(n_wanted) + " episodes, there are " +
                     std::to_string(n));
  }
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  // Keys from a hash, not a library's shuffle: the same everywhere.
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const auto key = [&](std::int64_t i) {
      return mix64(mix64(seed) ^ (static_cast<std::uint64_t>(i) + 1));
    };
    return std::pair(key(a), a) < std::pair(key(b), b);
  });
  std::size_t begin = 0;
  for (const SplitPart& part : parts) {
    const std::size_t end = begin + static_cast<std::size_t>(part.n_episodes);
    std::sort(order.begin() + static_cast<std::ptrdiff_t>(begin),
              order.begin() + static_cast<std::ptrdiff_t>(end));
    Json document = metadata_for(metadata, part.id);
    document["combined_datasets"] = Json::array({metadata.id()});
    document["split"] = {
        {"of", metadata.id()}, {"seed", seed}, {"episodes", part.n_episodes}, {"from", n}};
    Saver saver(RecordingFolder::create(root, {part.id, document.dump()}));
    for (; begin < end; ++begin) saver.add(reader.read(order[begin]));
    saver.build();
  }
}

}  // namespace doppler
