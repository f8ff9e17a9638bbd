#include "datasets/trajectories/recording_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>

#include "datasets/trajectories/dataset_id.h"
#include "datasets/trajectories/episode_file.h"
#include "datasets/trajectories/part_file.h"
#include "graphs/error.h"
#include "graphs/file.h"
#include "graphs/folder_lock.h"
#include "graphs/hash.h"
#include "graphs/strict_json.h"

namespace doppler {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kTotals[] = {"total_episodes", "total_steps", "dataset_size"};
constexpr std::int64_t kVersion = 1;

[[noreturn]] void fail(const std::string& path, const std::string& verb,
                       const std::error_code& code) {
  throw RunError(path + ": cannot " + verb + ": " + code.message());
}

void make_folder(const std::string& path) {
  std::error_code code;
  fs::create_directories(path, code);
  if (code) fail(path, "make this folder", code);
}

void sync_folder(const std::string& path) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;  // not every file system can
  ::fsync(folder);
  ::close(folder);
}

void rename(const std::string& from, const std::string& to) {
  std::error_code code;
  fs::rename(from, to, code);
  if (code) fail(to, "write", code);
  sync_folder(fs::path(to).parent_path().string());
}

FolderLock lock_folder(const std::string& path) {
  if (auto lock = FolderLock::try_take(path)) return *std::move(lock);
  throw RunError(path + " is being recorded by another process; wait for it, or give --id");
}

Json parse_object(const std::string& path) {
  const std::string content = read_file(path);
  try {
    Json document = Json::parse(content);
    if (document.is_object()) return document;
  } catch (const Json::exception&) {
  }
  throw RunError(path + ": cannot read: it is no JSON object, or damaged");
}

// What must be equal for a recording to go on: all but what is counted, and who wrote it.
Json identity(Json metadata) {
  for (const char* name : kTotals) metadata.erase(name);
  if (metadata.contains("dopplergym") && metadata["dopplergym"].is_object()) {
    metadata["dopplergym"].erase("code_version");
  }
  return metadata;
}

// "dopplergym/seed": the first place where two documents differ.
std::string first_difference(const Json& a, const Json& b) {
  const auto patch = nlohmann::json::diff(nlohmann::json(a), nlohmann::json(b));
  if (patch.empty()) return "";
  const auto pointer = nlohmann::json::json_pointer(patch[0]["path"].get<std::string>());
  const auto value_in = [&](const Json& json) {
    const nlohmann::json sorted = json;
    const std::string text = sorted.contains(pointer) ? sorted.at(pointer).dump() : "nothing";
    return text.size() > 60 ? text.substr(0, 60) + "..." : text;
  };
  return pointer.to_string().substr(1) + " is " + value_in(a) + " there and " + value_in(b) +
         " here";
}

}  // namespace

class RecordingFolder::State {
 public:
  explicit State(DatasetPaths its_paths) : paths(std::move(its_paths)) {}

  // What is on the disk already; nothing for a new data set.
  [[nodiscard]] std::optional<Json> stored_metadata() const {
    if (fs::exists(paths.recording())) {
      const Json document = parse_object(paths.recording());
      if (document.value("format", "") != "doppler-recording" || !document.contains("metadata")) {
        throw RunError(paths.recording() + ": cannot read: it is no recording of doppler-gym");
      }
      const auto version = document.value("version", std::int64_t{0});
      if (version > kVersion) {
        throw RunError(paths.recording() + ": cannot read: its version " + std::to_string(version) +
                       " is newer than this library; update doppler-gym");
      }
      return document["metadata"];
    }
    if (fs::exists(paths.metadata())) {
      Json document = parse_object(paths.metadata());
      for (const char* name : kTotals) document.erase(name);
      return document;
    }
    if (fs::exists(paths.data())) {
      throw RunError(paths.data() +
                     ": holds no metadata.json; this is no whole data set, and nothing is "
                     "written over it. Move it away, or give another id");
    }
    return std::nullopt;
  }

  void begin(Json its_metadata) {
    metadata = std::move(its_metadata);
    hash = Hasher().add(std::string_view(identity(metadata).dump())).digest();
  }

  void write_recording() const {
    make_folder(paths.parts());
    const Json document = {
        {"format", "doppler-recording"}, {"version", kVersion}, {"metadata", metadata}};
    write_file(paths.recording(), document.dump(1) + "\n");
  }

  // Reads the parts and the main file; files that were cut off while they were written are removed.
  void scan() {
    n_episodes = next_number = 0;
    n_built = 0;
    seeds.clear();
    parts.clear();
    if (fs::exists(paths.main())) {
      EpisodeFileReader main(paths.main());
      n_built = n_episodes = main.n_episodes();
      next_number = recorded = main.recorded();
      check_totals();
      for (std::int64_t i = 0; i < n_built; ++i) note_seed(main.attributes(i));
    }
    remove_unfinished();
    for (const std::string& path : part_paths()) {
      const Part part = read_part(path);
      if (part.recording != hash) {
        throw RunError(path + ": belongs to another recording; move it away");
      }
      const auto n = static_cast<std::int64_t>(part.episodes.size());
      if (part.first + n <= recorded) continue;  // built in, and then not removed any more
      parts.push_back(path);
      n_episodes += n;
      next_number = std::max(next_number, part.first + n);
      for (const Episode& episode : part.episodes) note_seed(episode.attributes);
    }
  }

  [[nodiscard]] std::vector<std::string> part_paths() const {
    std::vector<std::string> result;
    if (!fs::exists(paths.parts())) return result;
    for (const auto& entry : fs::directory_iterator(paths.parts())) {
      if (entry.path().extension() == ".part") result.push_back(entry.path().string());
    }
    std::sort(result.begin(), result.end());
    return result;
  }

  void build() {
    const bool is_new = !fs::exists(paths.main());
    if (is_new && parts.empty()) {
      throw RunError(paths.folder + " has no finished episode yet; there is nothing to build");
    }
    if (is_new) {
      build_new();
    } else if (!parts.empty()) {
      build_on();
    } else if (!totals_are_right()) {
      write_metadata(paths.data(), n_built, count_steps());
    }
    std::error_code ignored;
    fs::remove_all(paths.parts(), ignored);
    parts.clear();
    n_built = n_episodes;
    recorded = next_number;
  }

  DatasetPaths paths;
  FolderLock lock;
  Json metadata;
  std::uint64_t hash = 0;
  std::int64_t n_episodes = 0;
  std::int64_t next_number = 0;
  std::int64_t n_built = 0;   // in the main file
  std::int64_t recorded = 0;  // numbers below are in the main file
  std::vector<std::uint64_t> seeds;
  std::vector<std::string> parts;  // to be built in

 private:
  [[nodiscard]] std::string unfinished_data() const { return paths.folder + "/.data.new"; }
  [[nodiscard]] std::string unfinished_main() const { return paths.data() + "/.main_data.new"; }

  void remove_unfinished() const {
    std::error_code ignored;
    fs::remove_all(unfinished_data(), ignored);
    fs::remove(unfinished_main(), ignored);
    if (!fs::exists(paths.parts())) return;
    for (const auto& entry : fs::directory_iterator(paths.parts())) {
      const std::string name = entry.path().filename().string();
      // What write_file() leaves if it is killed: NAME.XXXXXX.
      const bool is_cut_off =
          name.find(".part.") != std::string::npos || name.starts_with("recording.json.");
      if (is_cut_off) fs::remove(entry.path(), ignored);
    }
  }

  void note_seed(const Attributes& attributes) {
    for (const auto& [name, value] : attributes) {
      if (name != "seed") continue;
      if (const auto* seed = std::get_if<std::uint64_t>(&value)) seeds.push_back(*seed);
      if (const auto* seed = std::get_if<std::int64_t>(&value)) {
        seeds.push_back(static_cast<std::uint64_t>(*seed));
      }
    }
  }

  // The metadata may be behind the main file, but never ahead of it.
  void check_totals() const {
    const Json stored = parse_object(paths.metadata());
    const auto claimed = stored.value("total_episodes", std::int64_t{0});
    if (claimed > n_built) {
      throw RunError(paths.folder + ": metadata.json tells of " + std::to_string(claimed) +
                     " episodes, main_data.hdf5 has " + std::to_string(n_built) +
                     "; one of them is of another time. Restore the right file, or take what is "
                     "there by doppler-gym dataset repair --out DIR");
    }
  }

  [[nodiscard]] bool totals_are_right() const {
    return parse_object(paths.metadata()).value("total_episodes", std::int64_t{-1}) == n_built;
  }

  [[nodiscard]] std::int64_t count_steps() const {
    const EpisodeFileReader main(paths.main());
    std::int64_t n = 0;
    for (std::int64_t i = 0; i < main.n_episodes(); ++i) n += main.n_steps(i);
    return n;
  }

  // Adds the parts to the file; returns their steps.
  std::int64_t add_parts(EpisodeFileWriter& writer) const {
    std::int64_t n_steps = 0;
    for (const std::string& path : parts) {
      for (const Episode& episode : read_part(path).episodes) {
        writer.add(episode);
        n_steps += episode.n_steps;
      }
    }
    writer.set_recorded(next_number);
    writer.close();
    return n_steps;
  }

  void build_new() {
    make_folder(unfinished_data());
    try {
      EpisodeFileWriter writer = EpisodeFileWriter::create(unfinished_data() + "/main_data.hdf5");
      const std::int64_t n_steps = add_parts(writer);
      write_metadata(unfinished_data(), n_episodes, n_steps);
      sync_folder(unfinished_data());
    } catch (...) {
      remove_unfinished();
      throw;
    }
    rename(unfinished_data(), paths.data());
  }

  void build_on() {
    const std::int64_t n_before =
        totals_are_right() ? parse_object(paths.metadata()).value("total_steps", std::int64_t{0})
                           : count_steps();
    std::int64_t n_steps = 0;
    try {
      std::error_code code;
      fs::copy_file(paths.main(), unfinished_main(), fs::copy_options::overwrite_existing, code);
      if (code) fail(paths.main(), "write", code);
      EpisodeFileWriter writer = EpisodeFileWriter::append(unfinished_main());
      n_steps = n_before + add_parts(writer);
    } catch (...) {
      remove_unfinished();
      throw;
    }
    rename(unfinished_main(), paths.main());
    write_metadata(paths.data(), n_episodes, n_steps);
  }

  void write_metadata(const std::string& folder, std::int64_t n, std::int64_t n_steps) const {
    Json document = metadata;
    document["total_episodes"] = n;
    document["total_steps"] = n_steps;
    const auto bytes = static_cast<double>(fs::file_size(folder + "/main_data.hdf5"));
    document["dataset_size"] = std::round(bytes / 1e5) / 10;  // MB, as Minari rounds
    write_file(folder + "/metadata.json", document.dump() + "\n");
  }
};

RecordingFolder::RecordingFolder(std::unique_ptr<State> state) : state_(std::move(state)) {}
RecordingFolder::~RecordingFolder() = default;
RecordingFolder::RecordingFolder(RecordingFolder&&) noexcept = default;

RecordingFolder RecordingFolder::create(const std::string& root, const RecordingInfo& info) {
  check_dataset_id(info.id);
  auto state = std::make_unique<State>(DatasetPaths(root, info.id));
  state->lock = lock_folder(state->paths.folder);
  if (state->stored_metadata()) {
    throw UsageError("there is a recording in " + state->paths.folder +
                     " already; --resume goes on with it, --id names another");
  }
  state->begin(Json::parse(info.metadata));
  state->write_recording();
  return RecordingFolder(std::move(state));
}

RecordingFolder RecordingFolder::resume(const std::string& root, const RecordingInfo& info) {
  check_dataset_id(info.id);
  auto state = std::make_unique<State>(DatasetPaths(root, info.id));
  state->lock = lock_folder(state->paths.folder);
  Json wanted = Json::parse(info.metadata);
  if (const auto stored = state->stored_metadata()) {
    const Json there = identity(*stored);
    if (const Json here = identity(wanted); there != here) {
      throw UsageError(state->paths.folder + " was recorded otherwise: " +
                       first_difference(there, here) + "; --id names another data set");
    }
    wanted = *stored;
  }
  state->begin(std::move(wanted));
  state->scan();
  state->write_recording();
  return RecordingFolder(std::move(state));
}

RecordingFolder RecordingFolder::open(const DatasetPaths& paths) {
  auto state = std::make_unique<State>(paths);
  if (!fs::exists(state->paths.folder)) {
    throw RunError(state->paths.folder + ": there is no such data set");
  }
  state->lock = lock_folder(state->paths.folder);
  const auto stored = state->stored_metadata();
  if (!stored) throw RunError(state->paths.folder + ": no data set, and nothing to make one of");
  state->begin(*stored);
  return RecordingFolder(std::move(state));
}

const DatasetPaths& RecordingFolder::paths() const { return state_->paths; }
std::int64_t RecordingFolder::n_episodes() const { return state_->n_episodes; }
std::int64_t RecordingFolder::n_built() const { return state_->n_built; }
const std::vector<std::uint64_t>& RecordingFolder::seeds() const { return state_->seeds; }

void RecordingFolder::save(const std::vector<Episode>& episodes) {
  if (episodes.empty()) return;
  if (!fs::exists(state_->paths.recording())) state_->write_recording();  // build() was there
  const std::string path = state_->paths.parts() + "/" + part_name(state_->next_number);
  write_part(path, {.recording = state_->hash, .first = state_->next_number, .episodes = episodes});
  state_->parts.push_back(path);
  state_->n_episodes += static_cast<std::int64_t>(episodes.size());
  state_->next_number += static_cast<std::int64_t>(episodes.size());
}

void RecordingFolder::build() { state_->build(); }

std::vector<std::string> RecordingFolder::put_damaged_parts_aside() {
  std::vector<std::string> aside;
  for (const std::string& path : state_->part_paths()) {
    try {
      static_cast<void>(read_part(path));
    } catch (const RunError&) {
      const std::string target =
          state_->paths.folder + "/" + fs::path(path).filename().string() + ".damaged";
      rename(path, target);
      aside.push_back(target);
    }
  }
  state_->scan();
  return aside;
}

}  // namespace doppler
