// Recordings of episodes: of any environment by rows, of ours by the library itself.
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "datasets/trajectories/dataset_files.h"
#include "datasets/trajectories/dataset_id.h"
#include "datasets/trajectories/env_recording.h"
#include "graphs/error.h"
#include "python/bindings/convert.h"
#include "python/bindings/rooms.h"

namespace doppler::python {
namespace {

// (path, dtype's name, shape of a row)
ArrayLayout layout_of(const py::handle& item) {
  const auto [path, type, shape] =
      item.cast<std::tuple<std::string, std::string, std::vector<std::int64_t>>>();
  const auto element = parse_element_type(type);
  if (!element) throw UsageError("array '" + path + "' is of " + type + ", which is not recorded");
  return {path, *element, shape};
}

std::vector<ArrayLayout> layouts_of(const py::list& items) {
  std::vector<ArrayLayout> layouts;
  for (const py::handle item : items) layouts.push_back(layout_of(item));
  return layouts;
}

// A contiguous array's bytes, as many as the layout wants.
std::span<const std::byte> bytes_of_row(py::handle array, const ArrayLayout& layout) {
  const py::buffer buffer = py::reinterpret_borrow<py::buffer>(array);
  const py::buffer_info info = buffer.request();
  const auto n_bytes = static_cast<std::size_t>(info.size * info.itemsize);
  if (n_bytes != layout.row_bytes()) {
    throw UsageError("array '" + layout.path + "' has " + std::to_string(n_bytes) +
                     " bytes instead of " + std::to_string(layout.row_bytes()) +
                     "; the environment does not keep to its spaces");
  }
  return {static_cast<const std::byte*>(info.ptr), n_bytes};
}

Attributes attributes_of(const py::dict& items) {
  Attributes attributes;
  for (const auto& [key, value] : items) {
    const std::string name = key.cast<std::string>();
    if (py::isinstance<py::str>(value)) {
      attributes.emplace_back(name, value.cast<std::string>());
    } else if (py::isinstance<py::float_>(value)) {
      attributes.emplace_back(name, value.cast<double>());
    } else if (name.ends_with("seed")) {
      attributes.emplace_back(name, value.cast<std::uint64_t>());
    } else {
      attributes.emplace_back(name, value.cast<std::int64_t>());
    }
  }
  return attributes;
}

// A folder and what is on its way there; shared by everything that records into it.
using Recording = TrajectoryRecorder;

std::shared_ptr<Recording> open_recording(const py::object& root, const std::string& id,
                                          const std::string& metadata, bool resume,
                                          const py::object& flush_episodes) {
  const std::string path = path_of(root);
  const RecordingInfo info{id, metadata};
  const FlushOptions options{integer_of(flush_episodes, "flush_episodes", 1)};
  const py::gil_scoped_release unlocked;
  return std::make_shared<Recording>(
      resume ? RecordingFolder::resume(path, info) : RecordingFolder::create(path, info), options);
}

// Rows of one environment on their way to an episode.
class RowRecorder {
 public:
  RowRecorder(std::shared_ptr<Recording> recording, const py::list& observations,
              const py::list& actions, std::vector<std::pair<std::string, std::string>> links)
      : recording_(std::move(recording)),
        layout_{layouts_of(observations), layouts_of(actions), std::move(links)},
        encoder_(layout_) {}

  void begin(const py::list& observation) {
    encoder_.begin(rows(observation, layout_.observations, observation_rows_));
  }
  void step(const py::list& action, double reward, bool terminated, bool truncated,
            const py::list& observation) {
    if (!encoder_.running()) {
      throw EpisodeError("the recorder does not know this episode; reset() comes first");
    }
    encoder_.step(rows(action, layout_.actions, action_rows_), {reward, terminated, truncated},
                  rows(observation, layout_.observations, observation_rows_));
  }
  // The episode is over. `fixed`: None, or ((path, type, shape), array) of what never changes.
  void finish(const py::dict& attributes, const py::object& fixed) {
    Episode episode = encoder_.finish();
    episode.attributes = attributes_of(attributes);
    if (!fixed.is_none()) {
      FixedArrays arrays;
      for (const py::handle item : fixed) {
        const auto pair = item.cast<py::tuple>();
        const ArrayLayout layout = layout_of(pair[0]);
        arrays.push_back(encode(layout, bytes_of_row(pair[1], layout)));
      }
      if (!fixed_ || *fixed_ != arrays) {
        fixed_ = std::make_shared<const FixedArrays>(std::move(arrays));
      }
      episode.fixed = fixed_;
    }
    const py::gil_scoped_release unlocked;
    recording_->add(std::move(episode));
  }
  [[nodiscard]] std::int64_t n_steps() const { return encoder_.n_steps(); }

 private:
  static Rows rows(const py::list& arrays, const std::vector<ArrayLayout>& layouts,
                   std::vector<std::span<const std::byte>>& scratch) {
    if (arrays.size() != layouts.size()) throw UsageError("the wrong number of arrays");
    scratch.clear();
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      scratch.push_back(bytes_of_row(arrays[i], layouts[i]));
    }
    return scratch;
  }

  std::shared_ptr<Recording> recording_;
  EpisodeLayout layout_;
  EpisodeEncoder encoder_;
  std::vector<std::span<const std::byte>> observation_rows_;
  std::vector<std::span<const std::byte>> action_rows_;
  std::shared_ptr<const FixedArrays> fixed_;
};

std::string metadata_of(const std::string& id, const EnvModel& model, bool full,
                        const std::string& agent) {
  return recording_metadata(id, model, {.full = full},
                            {.agent = agent, .code_version = DOPPLER_VERSION});
}

}  // namespace

void bind_recording(py::module_& module) {
  py::class_<Recording, std::shared_ptr<Recording>> recording(
      module, "Recording", "Episodes on their way to a data set; doppler_gym.Recorder uses it.");
  recording.def(py::init(&open_recording), py::arg("root"), py::arg("id"), py::arg("metadata"),
                py::kw_only(), py::arg("resume"), py::arg("flush_episodes"));
  recording.def("flush", &Recording::flush, py::call_guard<py::gil_scoped_release>());
  recording.def("build", &Recording::build, py::call_guard<py::gil_scoped_release>());
  recording.def_property_readonly(
      "n_episodes", [](const Recording& self) { return self.folder().n_episodes(); },
      "On the disk.");
  recording.def_property_readonly("seeds",
                                  [](const Recording& self) { return self.folder().seeds(); });
  recording.def_property_readonly(
      "folder", [](const Recording& self) { return to_python(self.folder().paths().folder); });

  py::class_<RowRecorder> rows(module, "RowRecorder", "The arrays of one environment, row by row.");
  rows.def(py::init<std::shared_ptr<Recording>, const py::list&, const py::list&,
                    std::vector<std::pair<std::string, std::string>>>(),
           py::arg("recording"), py::arg("observations"), py::arg("actions"), py::arg("links"));
  rows.def("begin", &RowRecorder::begin, py::arg("observation"));
  rows.def("step", &RowRecorder::step, py::arg("action"), py::arg("reward"), py::arg("terminated"),
           py::arg("truncated"), py::arg("observation"));
  rows.def("finish", &RowRecorder::finish, py::arg("attributes"), py::arg("fixed") = py::none());
  rows.def_property_readonly("n_steps", &RowRecorder::n_steps);

  module.def("recording_metadata", &metadata_of, py::arg("id"), py::arg("model"), py::arg("full"),
             py::arg("agent"));
  module.def("dataset_id_of", &dataset_id_of, py::arg("task"), py::arg("agent"),
             py::arg("version") = 0);
}

}  // namespace doppler::python
