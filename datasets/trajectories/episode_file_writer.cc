#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <system_error>

#include "datasets/trajectories/episode_file.h"
#include "datasets/trajectories/hdf5.h"
#include "graphs/error.h"

namespace doppler {
namespace {

using hdf5::Handle;
using Lock = std::lock_guard<std::recursive_mutex>;

constexpr std::size_t kSmall = 2048;       // bytes of an array that may be shared
constexpr std::size_t kMostShared = 4096;  // arrays that are remembered
constexpr std::int64_t kFormat = 1;

// What datasets of one form have in common.
struct Form {
  Handle space;
  Handle properties;
};

std::string key_of(const EncodedArray& array) {
  std::string key(to_string(array.layout.type));
  for (std::int64_t size : array.layout.shape) key += "," + std::to_string(size);
  return key + ";" + std::to_string(array.n_rows) + ";" + std::to_string(array.rows_per_chunk);
}

}  // namespace

class EpisodeFileWriter::State {
 public:
  State(const std::string& path, bool is_new) : path_(path) {
    hdf5::start_library();
    const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    // Groups of links in their headers, chunks without an index of their own: smaller and quicker.
    // Known to HDF5 1.10 and later.
    H5Pset_libver_bounds(access.id(), H5F_LIBVER_V110, H5F_LIBVER_V110);
    H5Pset_meta_block_size(access.id(), std::size_t{1} << 20);
    file_ = Handle(is_new ? H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.id())
                          : H5Fopen(path.c_str(), H5F_ACC_RDWR, access.id()),
                   H5Fclose);
    hdf5::check(file_.id(), path_, "write");
    group_properties_ = Handle(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
    H5Pset_obj_track_times(group_properties_.id(), false);
    H5Pset_link_phase_change(group_properties_.id(), 64, 32);
    scalar_ = Handle(H5Screate(H5S_SCALAR), H5Sclose);
    H5G_info_t info;
    hdf5::check(H5Gget_info(file_.id(), &info), path_, "read");
    n_episodes_ = static_cast<std::int64_t>(info.nlinks);
    if (is_new) set_attribute(file_.id(), "dopplergym_format", kFormat);
  }

  [[nodiscard]] std::int64_t n_episodes() const { return n_episodes_; }

  void add(const Episode& episode) {
    const std::string name = "episode_" + std::to_string(n_episodes_);
    Handle group = make_group(file_.id(), name);
    set_attribute(group.id(), "id", n_episodes_);
    set_attribute(group.id(), "total_steps", episode.n_steps);
    for (const auto& [key, value] : episode.attributes) set_attribute(group.id(), key, value);
    std::map<std::string, Handle> groups;
    for (const EncodedArray& array : episode.arrays) add_shared(group.id(), name, array, groups);
    for (const auto& [link, target] : episode.links) {
      const auto [folder, last] = place(group.id(), link, groups);
      hdf5::check(H5Lcreate_hard(group.id(), target.c_str(), folder, last.c_str(), H5P_DEFAULT,
                                 H5P_DEFAULT),
                  path_, "write");
    }
    if (episode.fixed) add_fixed(group.id(), name, episode.fixed);
    ++n_episodes_;
  }

  void set_recorded(std::int64_t next_number) {
    if (H5Aexists(file_.id(), "recorded") > 0) H5Adelete(file_.id(), "recorded");
    set_attribute(file_.id(), "recorded", next_number);
  }

  void close() {
    if (!file_.valid()) return;
    hdf5::check(H5Fflush(file_.id(), H5F_SCOPE_GLOBAL), path_, "write");
    forms_.clear();
    if (!file_.close()) hdf5::check(-1, path_, "write");
    const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    const bool synced = descriptor >= 0 && ::fsync(descriptor) == 0;
    const int code = errno;
    if (descriptor >= 0) ::close(descriptor);
    if (!synced) {
      throw RunError(path_ + ": cannot write: " + std::generic_category().message(code));
    }
  }

 private:
  Handle make_group(hid_t parent, const std::string& name) {
    Handle group(H5Gcreate2(parent, name.c_str(), H5P_DEFAULT, group_properties_.id(), H5P_DEFAULT),
                 H5Gclose);
    hdf5::check(group.id(), path_, "write");
    return group;
  }

  // The group that holds the last part of a path, made if need be, and that part.
  std::pair<hid_t, std::string> place(hid_t episode, const std::string& path,
                                      std::map<std::string, Handle>& groups) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return {episode, path};
    const std::string folder = path.substr(0, slash);
    auto found = groups.find(folder);
    if (found == groups.end()) {
      const auto [parent, last] = place(episode, folder, groups);
      found = groups.emplace(folder, make_group(parent, last)).first;
    }
    return {found->second.id(), path.substr(slash + 1)};
  }

  void add_shared(hid_t episode, const std::string& name, const EncodedArray& array,
                  std::map<std::string, Handle>& groups) {
    const auto [folder, last] = place(episode, array.layout.path, groups);
    const bool may_share = array.chunks.size() == 1 && array.chunks[0].size() <= kSmall;
    std::string content;
    if (may_share) {
      content = key_of(array) + ";" + array.chunks[0];
      const auto found = shared_.find(content);
      if (found != shared_.end()) {
        hdf5::check(H5Lcreate_hard(file_.id(), found->second.c_str(), folder, last.c_str(),
                                   H5P_DEFAULT, H5P_DEFAULT),
                    path_, "write");
        return;
      }
    }
    add_array(folder, last, array);
    if (!may_share) return;
    if (shared_.size() >= kMostShared) shared_.clear();
    shared_.emplace(std::move(content), name + "/" + array.layout.path);
  }

  void add_fixed(hid_t episode, const std::string& name,
                 const std::shared_ptr<const FixedArrays>& fixed) {
    const auto same = [&](const auto& known) { return *known.first == *fixed; };
    auto found = std::find_if(fixed_.begin(), fixed_.end(), same);
    if (found != fixed_.end()) {
      hdf5::check(H5Lcreate_hard(file_.id(), found->second.c_str(), episode, "static", H5P_DEFAULT,
                                 H5P_DEFAULT),
                  path_, "write");
      return;
    }
    const Handle group = make_group(episode, "static");
    for (const EncodedArray& array : *fixed) add_array(group.id(), array.layout.path, array);
    fixed_.emplace_back(fixed, name + "/static");
  }

  const Form& form_of(const EncodedArray& array) {
    std::string key = key_of(array);
    const auto found = forms_.find(key);
    if (found != forms_.end()) return found->second;
    if (forms_.size() > 256) forms_.clear();
    std::vector<hsize_t> dims = {static_cast<hsize_t>(array.n_rows)};
    for (std::int64_t size : array.layout.shape) dims.push_back(static_cast<hsize_t>(size));
    Form form;
    form.space =
        Handle(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), H5Sclose);
    form.properties = Handle(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    dims[0] = static_cast<hsize_t>(array.rows_per_chunk);
    H5Pset_obj_track_times(form.properties.id(), false);
    H5Pset_fill_time(form.properties.id(), H5D_FILL_TIME_NEVER);
    hdf5::check(H5Pset_chunk(form.properties.id(), static_cast<int>(dims.size()), dims.data()),
                path_, "write");
    hdf5::check(H5Pset_deflate(form.properties.id(), 1), path_, "write");
    return forms_.emplace(std::move(key), std::move(form)).first->second;
  }

  void add_array(hid_t folder, const std::string& name, const EncodedArray& array) {
    const Form& form = form_of(array);
    Handle dataset(H5Dcreate2(folder, name.c_str(), hdf5::type_of(array.layout.type),
                              form.space.id(), H5P_DEFAULT, form.properties.id(), H5P_DEFAULT),
                   H5Dclose);
    hdf5::check(dataset.id(), path_, "write");
    std::vector<hsize_t> offset(array.layout.shape.size() + 1, 0);
    for (const std::string& chunk : array.chunks) {
      hdf5::check(
          H5Dwrite_chunk(dataset.id(), H5P_DEFAULT, 0, offset.data(), chunk.size(), chunk.data()),
          path_, "write");
      offset[0] += static_cast<hsize_t>(array.rows_per_chunk);
    }
    if (!dataset.close()) hdf5::check(-1, path_, "write");
  }

  void set_attribute(hid_t object, const std::string& name, const AttributeValue& value) {
    std::visit([&](const auto& held) { write_attribute(object, name, held); }, value);
  }
  void write_attribute(hid_t object, const std::string& name, std::int64_t value) {
    write_attribute(object, name, H5T_NATIVE_INT64, &value);
  }
  void write_attribute(hid_t object, const std::string& name, std::uint64_t value) {
    write_attribute(object, name, H5T_NATIVE_UINT64, &value);
  }
  void write_attribute(hid_t object, const std::string& name, double value) {
    write_attribute(object, name, H5T_NATIVE_DOUBLE, &value);
  }
  void write_attribute(hid_t object, const std::string& name, const std::string& value) {
    const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(type.id(), std::max<std::size_t>(1, value.size()));
    H5Tset_strpad(type.id(), H5T_STR_NULLPAD);
    H5Tset_cset(type.id(), H5T_CSET_UTF8);
    write_attribute(object, name, type.id(), value.empty() ? "\0" : value.data());
  }
  void write_attribute(hid_t object, const std::string& name, hid_t type, const void* value) {
    const Handle attribute(
        H5Acreate2(object, name.c_str(), type, scalar_.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    hdf5::check(attribute.id(), path_, "write");
    hdf5::check(H5Awrite(attribute.id(), type, value), path_, "write");
  }

  std::string path_;
  Handle file_;
  Handle group_properties_;
  Handle scalar_;
  std::int64_t n_episodes_ = 0;
  std::map<std::string, Form> forms_;
  std::map<std::string, std::string> shared_;  // content -> path
  std::vector<std::pair<std::shared_ptr<const FixedArrays>, std::string>> fixed_;
};

EpisodeFileWriter::EpisodeFileWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
EpisodeFileWriter::EpisodeFileWriter(EpisodeFileWriter&&) noexcept = default;
EpisodeFileWriter::~EpisodeFileWriter() {
  const Lock lock(hdf5::library_mutex());
  state_.reset();
}

EpisodeFileWriter EpisodeFileWriter::create(const std::string& path) {
  const Lock lock(hdf5::library_mutex());
  return EpisodeFileWriter(std::make_unique<State>(path, true));
}
EpisodeFileWriter EpisodeFileWriter::append(const std::string& path) {
  const Lock lock(hdf5::library_mutex());
  return EpisodeFileWriter(std::make_unique<State>(path, false));
}

std::int64_t EpisodeFileWriter::n_episodes() const { return state_->n_episodes(); }

void EpisodeFileWriter::add(const Episode& episode) {
  const Lock lock(hdf5::library_mutex());
  hdf5::start_library();
  state_->add(episode);
}
void EpisodeFileWriter::set_recorded(std::int64_t next_number) {
  const Lock lock(hdf5::library_mutex());
  hdf5::start_library();
  state_->set_recorded(next_number);
}
void EpisodeFileWriter::close() {
  const Lock lock(hdf5::library_mutex());
  hdf5::start_library();
  state_->close();
}

}  // namespace doppler
