// Folders and episodes for the tests of recordings.
#pragma once

#include <string>
#include <vector>

#include "datasets/trajectories/episode_encoder.h"
#include "tests/support/temporary_folder.h"

namespace doppler::testing {

// An episode of `n_steps` steps whose observation counts them, on from the seed.
inline Episode counting_episode(std::uint64_t seed, int n_steps) {
  static const auto fixed = [] {
    const std::vector<float> weights = {1.5F, -2.0F};
    return std::make_shared<const FixedArrays>(FixedArrays{
        encode({"weights", ElementType::float32, {2}}, std::as_bytes(std::span(weights)))});
  }();
  EpisodeEncoder encoder({.observations = {{"observations/count", ElementType::int32, {2}},
                                           {"infos/flag", ElementType::boolean, {}}},
                          .actions = {{"actions", ElementType::int64, {}}},
                          .links = {{"infos/count", "observations/count"}}});
  std::vector<std::int32_t> count = {static_cast<std::int32_t>(seed), 0};
  const bool flag = false;
  const std::vector<std::span<const std::byte>> rows = {std::as_bytes(std::span(count)),
                                                        std::as_bytes(std::span(&flag, 1))};
  encoder.begin(rows);
  for (int t = 1; t <= n_steps; ++t) {
    const std::int64_t action = t % 3;
    const std::span<const std::byte> bytes = std::as_bytes(std::span(&action, 1));
    count[1] = t;
    encoder.step(std::span(&bytes, 1), {t * 0.5, t == n_steps, false}, rows);
  }
  Episode episode = encoder.finish();
  episode.attributes = {{"seed", seed}, {"makespan", 0.25 * static_cast<double>(seed)}};
  episode.fixed = fixed;
  return episode;
}

// Metadata that is enough for a folder.
inline std::string counting_metadata(const std::string& id, const std::string& agent = "counter") {
  return R"({"dataset_id": ")" + id +
         R"(", "data_format": "hdf5", "minari_version": "0.5.4", "observation_space": )"
         R"("{\"type\": \"Dict\", \"subspaces\": {\"count\": {\"type\": \"Box\", \"dtype\": \"int32\", )"
         R"(\"shape\": [2], \"low\": [0, 0], \"high\": [9, 9]}}}", "action_space": )"
         R"("{\"type\": \"Discrete\", \"dtype\": \"int64\", \"start\": 0, \"n\": 3}", )"
         R"("dopplergym": {"version": 1, "agent": ")" +
         agent + R"("}})";
}

}  // namespace doppler::testing
