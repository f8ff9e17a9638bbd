// Parts, main file and metadata: what is on the disk after whatever happened.
#include "datasets/trajectories/recording_folder.h"

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "datasets/trajectories/dataset_files.h"
#include "datasets/trajectories/dataset_id.h"
#include "datasets/trajectories/episode_file.h"
#include "datasets/trajectories/part_file.h"
#include "datasets/trajectories/trajectory_recorder.h"
#include "graphs/error.h"
#include "graphs/file.h"
#include "tests/datasets/trajectories/support.h"
#include "tests/support/catch.h"

namespace doppler::testing {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

const std::string kId = "test/count-v0";

RecordingInfo info_of(const std::string& agent = "counter") {
  return {kId, counting_metadata(kId, agent)};
}

std::vector<Episode> episodes(std::uint64_t first, std::uint64_t n) {
  std::vector<Episode> list;
  for (std::uint64_t i = first; i < first + n; ++i) {
    list.push_back(counting_episode(i, 1 + static_cast<int>(i % 4)));
  }
  return list;
}

// That the main file holds the episodes of seeds 0 to n - 1.
void check_built(const std::string& root, std::int64_t n) {
  const DatasetPaths paths(root, kId);
  EpisodeFileReader reader(paths.main());
  REQUIRE(reader.n_episodes() == n);
  for (std::int64_t i = 0; i < n; ++i) {
    const Episode expected = counting_episode(static_cast<std::uint64_t>(i), 1 + int(i % 4));
    const Episode found = reader.read(i);
    CHECK(found.n_steps == expected.n_steps);
    CHECK(*found.fixed == *expected.fixed);
    CHECK(*found.attribute("seed") == *expected.attribute("seed"));
    CHECK(*found.attribute("makespan") == *expected.attribute("makespan"));
    for (const EncodedArray& array : expected.arrays) {
      const auto rows = reader.array(i, array.layout.path);
      REQUIRE(rows);
      CHECK(rows->n_rows == array.n_rows);
      CHECK(rows->layout.type == array.layout.type);
      CHECK(rows->layout.shape == array.layout.shape);
      CHECK(rows->rows == array.decode());
    }
    CHECK(reader.array(i, "infos/count")->rows == reader.array(i, "observations/count")->rows);
    CHECK_FALSE(reader.array(i, "infos/nothing"));
    CHECK_FALSE(reader.array(i, "nothing/at/all"));
  }
  const DatasetCheck check = check_dataset(paths);
  for (const std::string& fault : check.faults) UNSCOPED_INFO(fault);
  CHECK(check.faults.empty());
  CHECK(check.n_episodes == n);
}

void damage(const std::string& path, std::size_t at) {
  std::string content = read_file(path);
  content.at(at) = static_cast<char>(content[at] ^ 0x10);
  std::ofstream(path, std::ios::binary) << content;
}

TEST_CASE("Ids of data sets are those of Minari") {
  CHECK_NOTHROW(check_dataset_id("dopplergym/llama-layer_p100x4/critical-path-v0"));
  CHECK_NOTHROW(check_dataset_id("name-v12"));
  for (const char* bad : {"", "name", "name-v", "-v0", "a/name-v0", "x/data/name-v0", "ns//n-v0",
                          "/n-v0", "ns/n-v0/", "ns/../n-v0", "a@b/n-v0", "ns/n.x-v0"}) {
    INFO(bad);
    CHECK_THROWS_AS(check_dataset_id(bad), UsageError);
  }
  CHECK(dataset_id_of("llama-layer@p100x4", "critical-path", 0) ==
        "dopplergym/llama-layer_p100x4/critical-path-v0");
  CHECK(dataset_id_of("ffnn(n=4)@uniform(2)", "annealing(moves=all)", 3) ==
        "dopplergym/ffnn_n_4_uniform_2/annealing_moves_all-v3");
  CHECK(dataset_name_of("@()") == "x");
  CHECK_NOTHROW(check_dataset_id(dataset_id_of("@", "data", 0)));
}

TEST_CASE("Episodes are the same after their way through bytes") {
  std::vector<Episode> list = episodes(0, 5);
  list[1].attributes.emplace_back("text", std::string("out of memory\0!", 15));
  list[2].fixed = nullptr;
  const std::string bytes = to_bytes(list);
  const std::vector<Episode> read = episodes_from_bytes(bytes);
  REQUIRE(read.size() == list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    CHECK(read[i].n_steps == list[i].n_steps);
    CHECK(read[i].attributes == list[i].attributes);
    CHECK(read[i].arrays == list[i].arrays);
    CHECK(read[i].links == list[i].links);
    CHECK((read[i].fixed == nullptr) == (list[i].fixed == nullptr));
  }
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    CHECK_THROWS_AS(episodes_from_bytes(bytes.substr(0, n)), InvalidError);
  }
}

TEST_CASE("A part with any bit changed is refused") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/x.part";
  write_part(path, {.recording = 7, .first = 3, .episodes = episodes(0, 1)});
  const std::string content = read_file(path);
  CHECK(read_part(path).first == 3);
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (i >= 28 && i < 32) continue;  // what stands there means nothing
    std::string changed = content;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    std::ofstream(path, std::ios::binary) << changed;
    CHECK_THROWS_AS(read_part(path), RunError);
  }
  for (const std::size_t n : {0UL, 3UL, 20UL, content.size() - 1}) {
    std::ofstream(path, std::ios::binary) << content.substr(0, n);
    CHECK_THROWS_AS(read_part(path), RunError);
  }
  std::string newer = content;
  newer[4] = 2;
  std::ofstream(path, std::ios::binary) << newer;
  CHECK_THROWS_WITH(read_part(path), Contains("newer"));
}

TEST_CASE("A recording goes on after each possible stop") {
  const TemporaryFolder root;
  {
    RecordingFolder folder = RecordingFolder::create(root.path(), info_of());
    folder.save(episodes(0, 2));
    CHECK_THROWS_WITH(RecordingFolder::resume(root.path(), info_of()), Contains("another process"));
  }
  const DatasetPaths paths(root.path(), kId);
  // As if killed while it wrote a part.
  std::ofstream(paths.parts() + "/" + part_name(2) + ".Ab12Cd") << "half a part";
  CHECK(check_dataset(paths).n_waiting == 2);
  {
    RecordingFolder folder = RecordingFolder::resume(root.path(), info_of());
    CHECK(folder.n_episodes() == 2);
    CHECK(folder.seeds() == std::vector<std::uint64_t>{0, 1});
    folder.save(episodes(2, 3));
    fs::copy(paths.parts(), root.path() + "/kept", fs::copy_options::recursive);
    folder.build();
  }
  check_built(root.path(), 5);
  CHECK_FALSE(fs::exists(paths.parts()));
  // As if killed before the parts were removed: they are not built in twice.
  fs::copy(root.path() + "/kept", paths.parts(), fs::copy_options::recursive);
  {
    RecordingFolder folder = RecordingFolder::resume(root.path(), info_of());
    CHECK(folder.n_episodes() == 5);
    folder.save(episodes(5, 1));
    folder.save(episodes(6, 2));
    folder.build();
  }
  check_built(root.path(), 8);
  // As if killed between main file and metadata.
  std::string metadata = read_file(paths.metadata());
  const std::string claim = "\"total_episodes\":8";
  REQUIRE(metadata.find(claim) != std::string::npos);
  write_file(paths.metadata(),
             metadata.replace(metadata.find(claim), claim.size(), "\"total_episodes\":5"));
  CHECK_THAT(check_dataset(paths).faults.at(0), Contains("behind"));
  CHECK(repair_dataset(paths).n_episodes == 8);
  check_built(root.path(), 8);
  CHECK_THROWS_WITH(RecordingFolder::create(root.path(), info_of()), Contains("already"));
  CHECK_THROWS_WITH(RecordingFolder::resume(root.path(), info_of("other")),
                    Contains("dopplergym/agent is \"counter\" there and \"other\" here"));
}

TEST_CASE("What is damaged, foreign, newer or ahead is told and never written over") {
  const TemporaryFolder root;
  const DatasetPaths paths(root.path(), kId);
  {
    RecordingFolder folder = RecordingFolder::create(root.path(), info_of());
    folder.save(episodes(0, 6));
    folder.build();
  }
  const std::string main = read_file(paths.main());
  const std::string metadata = read_file(paths.metadata());
  const auto check_refused = [&](const char* word) {
    const std::string main_before = read_file(paths.main());
    const std::string metadata_before = read_file(paths.metadata());
    INFO(word);
    CHECK_THROWS_WITH(RecordingFolder::resume(root.path(), info_of()), Contains(word));
    CHECK_THROWS_AS(repair_dataset(paths), Error);
    CHECK_FALSE(check_dataset(paths).faults.empty());
    CHECK(read_file(paths.main()) == main_before);
    CHECK(read_file(paths.metadata()) == metadata_before);
  };
  for (const std::size_t n : {std::size_t{0}, std::size_t{30}, main.size() / 2, main.size() - 1}) {
    write_file(paths.main(), main.substr(0, n));
    check_refused("cannot read");
  }
  write_file(paths.main(), "a foreign file, which is no HDF5 at all");
  check_refused("cannot read");
  write_file(paths.main(), main);
  write_file(paths.metadata(), "{\"dataset_id\": ");
  check_refused("damaged");
  std::string ahead = metadata;
  ahead.replace(ahead.find("\"total_episodes\":6"), 18, "\"total_episodes\":7");
  write_file(paths.metadata(), ahead);
  check_refused("metadata.json tells of 7 episodes, main_data.hdf5 has 6");
  const TemporaryFolder recovered;
  CHECK(recover_dataset(paths, recovered.path()).n_episodes == 6);
  check_built(recovered.path(), 6);
  std::string newer = metadata;
  newer.replace(newer.find("\"version\":1"), 11, "\"version\":2");
  write_file(paths.metadata(), newer);
  CHECK_THROWS_WITH(DatasetMetadata(paths), Contains("newer"));
  write_file(paths.metadata(), metadata);
  check_built(root.path(), 6);
}

TEST_CASE("Damaged parts are put aside, whole ones are built in") {
  const TemporaryFolder root;
  const DatasetPaths paths(root.path(), kId);
  {
    RecordingFolder folder = RecordingFolder::create(root.path(), info_of());
    for (std::uint64_t i = 0; i < 4; ++i) folder.save(episodes(i, 1));
  }
  damage(paths.parts() + "/" + part_name(2), 100);
  CHECK_THROWS_WITH(RecordingFolder::resume(root.path(), info_of()), Contains("damaged"));
  const RepairResult result = repair_dataset(paths);
  CHECK(result.n_episodes == 3);
  CHECK_THAT(result.notes.at(0), Contains("put aside"));
  CHECK(fs::exists(paths.folder + "/" + part_name(2) + ".damaged"));
  CHECK(check_dataset(paths).faults.empty());
  RecordingFolder folder = RecordingFolder::resume(root.path(), info_of());
  CHECK(folder.seeds() == std::vector<std::uint64_t>{0, 1, 3});
}

TEST_CASE("Of a main file that is cut off, whole episodes are recovered") {
  const TemporaryFolder root;
  const DatasetPaths paths(root.path(), kId);
  {
    RecordingFolder folder = RecordingFolder::create(root.path(), info_of());
    folder.save(episodes(0, 40));
    folder.build();
  }
  const std::string main = read_file(paths.main());
  write_file(paths.main(), main.substr(0, main.size() - 10));
  const TemporaryFolder recovered;
  const RepairResult result = recover_dataset(paths, recovered.path());
  CHECK_THAT(result.notes.at(0), Contains("cut off"));
  CHECK(result.n_episodes > 0);
  CHECK(check_dataset(DatasetPaths(recovered.path(), kId)).faults.empty());
}

TEST_CASE("A full disk loses no earlier episode") {
  const TemporaryFolder root;
  struct Limit {
    rlimit before{};
    void (*handler)(int) = std::signal(SIGXFSZ, SIG_IGN);
    Limit() { getrlimit(RLIMIT_FSIZE, &before); }
    void set(rlim_t bytes) const {
      const rlimit limit{bytes, before.rlim_max};
      setrlimit(RLIMIT_FSIZE, &limit);
    }
    ~Limit() {
      setrlimit(RLIMIT_FSIZE, &before);
      std::signal(SIGXFSZ, handler);
    }
  };
  {
    const Limit limit;
    TrajectoryRecorder recorder(RecordingFolder::create(root.path(), info_of()));
    for (Episode& episode : episodes(0, 3)) recorder.add(std::move(episode));
    limit.set(100);
    CHECK_THROWS_WITH(recorder.add(counting_episode(3, 4)), Contains("cannot write"));
    CHECK_THROWS_AS(recorder.build(), RunError);
    limit.set(limit.before.rlim_cur);
  }
  {
    const Limit limit;
    RecordingFolder folder = RecordingFolder::resume(root.path(), info_of());
    CHECK(folder.n_episodes() == 3);
    limit.set(4000);
    CHECK_THROWS_WITH(folder.build(), Contains("cannot write"));
    limit.set(limit.before.rlim_cur);
    CHECK_FALSE(fs::exists(DatasetPaths(root.path(), kId).data()));
    folder.build();
  }
  check_built(root.path(), 3);
}

TEST_CASE("At most flush_episodes finished episodes are not on the disk") {
  const TemporaryFolder root;
  const DatasetPaths paths(root.path(), kId);
  CHECK_THROWS_AS(
      TrajectoryRecorder(RecordingFolder::create(root.path(), info_of()), {.flush_episodes = 0}),
      UsageError);
  TrajectoryRecorder recorder(RecordingFolder::resume(root.path(), info_of()),
                              {.flush_episodes = 8});
  for (std::int64_t n = 1; n <= 50; ++n) {
    recorder.add(counting_episode(static_cast<std::uint64_t>(n - 1), 1 + int((n - 1) % 4)));
    std::int64_t saved = 0;
    for (const auto& entry : fs::directory_iterator(paths.parts())) {
      if (entry.path().extension() == ".part") {
        saved += static_cast<std::int64_t>(read_part(entry.path().string()).episodes.size());
      }
    }
    CHECK(n - saved <= 8);
  }
  recorder.build();
  check_built(root.path(), 50);
}

TEST_CASE("Merging keeps the order, splitting keeps each episode once") {
  const TemporaryFolder root;
  const DatasetPaths paths(root.path(), kId);
  {
    RecordingFolder folder = RecordingFolder::create(root.path(), info_of());
    folder.save(episodes(0, 20));
    folder.build();
  }
  split_dataset(paths, root.path(), {{"test/a-v0", 14}, {"test/b-v0", 6}}, 5);
  const DatasetPaths a(root.path(), "test/a-v0");
  const DatasetPaths b(root.path(), "test/b-v0");
  CHECK(dataset_statistics(a).n_episodes == 14);
  CHECK(find_datasets(root.path()).size() == 3);
  CHECK_THROWS_WITH(find_dataset(root.path()), Contains("several"));
  CHECK(merge_datasets({a, b}, root.path(), "test/both-v1") == 20);
  const DatasetPaths both(root.path(), "test/both-v1");
  CHECK(check_dataset(both).faults.empty());
  EpisodeFileReader reader(both.main());
  std::vector<std::uint64_t> seeds;
  for (std::int64_t i = 0; i < 20; ++i) {
    seeds.push_back(std::get<std::uint64_t>(*reader.read(i).attribute("seed")));
  }
  CHECK(std::is_sorted(seeds.begin(), seeds.begin() + 14));
  CHECK(std::is_sorted(seeds.begin() + 14, seeds.end()));
  CHECK_FALSE(std::is_sorted(seeds.begin(), seeds.end()));
  std::sort(seeds.begin(), seeds.end());
  for (std::uint64_t i = 0; i < 20; ++i) CHECK(seeds[i] == i);
  CHECK_THROWS_AS(split_dataset(paths, root.path(), {{"test/c-v0", 21}}, 0), UsageError);
  std::vector<double> makespans = dataset_statistics(both).makespans;
  CHECK(*std::max_element(makespans.begin(), makespans.end()) == 0.25 * 19);
}

}  // namespace
}  // namespace doppler::testing
