#include <algorithm>
#include <map>
#include <set>

#include "datasets/trajectories/episode_encoder.h"
#include "datasets/trajectories/episode_file.h"
#include "datasets/trajectories/hdf5.h"
#include "graphs/error.h"

namespace doppler {
namespace {

using hdf5::Handle;
using Lock = std::lock_guard<std::recursive_mutex>;

std::string name_of(std::int64_t episode) { return "episode_" + std::to_string(episode); }

// The names within a group or of an object's attributes, in the order of names.
herr_t take_link(hid_t /*group*/, const char* name, const H5L_info_t* /*info*/, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}
herr_t take_attribute(hid_t /*object*/, const char* name, const H5A_info_t* /*info*/, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

// Nothing for a type that is not recorded, such as text.
std::optional<ElementType> element_type_of(hid_t type) {
  const std::size_t size = H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_ENUM:
      if (size == 1) return ElementType::boolean;
      return std::nullopt;
    case H5T_FLOAT:
      if (size == 4) return ElementType::float32;
      if (size == 8) return ElementType::float64;
      return std::nullopt;
    case H5T_INTEGER: {
      const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
      if (size == 1) return is_signed ? ElementType::int8 : ElementType::uint8;
      if (size == 2) return is_signed ? ElementType::int16 : ElementType::uint16;
      if (size == 4) return is_signed ? ElementType::int32 : ElementType::uint32;
      if (size == 8) return is_signed ? ElementType::int64 : ElementType::uint64;
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

class EpisodeFileReader::State {
 public:
  explicit State(const std::string& path) : path_(path) {
    hdf5::start_library();
    const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    // Whole datasets are read once: a cache of chunks serves nobody.
    H5Pset_cache(access.id(), 0, 0, 0, 0);
    file_ = Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose);
    hdf5::check(file_.id(), path_, "read");
    H5G_info_t info;
    hdf5::check(H5Gget_info(file_.id(), &info), path_, "read");
    n_episodes_ = static_cast<std::int64_t>(info.nlinks);
    if (H5Aexists(file_.id(), "dopplergym_format") <= 0) return;
    const std::int64_t format = integer_attribute(file_.id(), "dopplergym_format");
    if (format > 1) {
      throw RunError(path_ + ": cannot read: its format " + std::to_string(format) +
                     " is newer than this library, which reads format 1; update doppler-gym");
    }
    if (H5Aexists(file_.id(), "recorded") > 0) {
      recorded_ = integer_attribute(file_.id(), "recorded");
    }
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::int64_t n_episodes() const { return n_episodes_; }
  [[nodiscard]] std::int64_t recorded() const { return recorded_; }

  [[nodiscard]] std::int64_t n_steps(std::int64_t episode) const {
    const Handle group = open_episode(episode);
    return integer_attribute(group.id(), "total_steps");
  }

  [[nodiscard]] Attributes attributes(std::int64_t episode) const {
    const Handle group = open_episode(episode);
    std::vector<std::string> names;
    hsize_t begin = 0;
    check(episode,
          H5Aiterate2(group.id(), H5_INDEX_NAME, H5_ITER_NATIVE, &begin, take_attribute, &names));
    Attributes result;
    for (const std::string& name : names) {
      if (auto value = attribute(group.id(), name)) result.emplace_back(name, std::move(*value));
    }
    return result;
  }

  [[nodiscard]] std::optional<DecodedArray> array(std::int64_t episode,
                                                  const std::string& path) const {
    const Handle group = open_episode(episode);
    // Every group on the way must be there before the library may be asked for the last part.
    for (std::size_t slash = path.find('/');; slash = path.find('/', slash + 1)) {
      if (H5Lexists(group.id(), path.substr(0, slash).c_str(), H5P_DEFAULT) <= 0) {
        return std::nullopt;
      }
      if (slash == std::string::npos) break;
    }
    return decode(episode, group.id(), path);
  }

  Episode read(std::int64_t number) {
    const Handle group = open_episode(number);
    Episode episode;
    episode.attributes = attributes(number);
    std::erase_if(episode.attributes, [](const auto& item) {
      return item.first == "id" || item.first == "total_steps";
    });
    episode.n_steps = integer_attribute(group.id(), "total_steps");
    std::map<haddr_t, std::string> seen;
    read_group(number, group.id(), "", episode, seen);
    return episode;
  }

 private:
  void check(std::int64_t episode, std::int64_t result) const {
    if (result >= 0) return;
    throw RunError(path_ + ": cannot read episode " + std::to_string(episode) + ": " +
                   hdf5::cause());
  }
  [[noreturn]] void fail(std::int64_t episode, const std::string& what) const {
    throw RunError(path_ + ": episode " + std::to_string(episode) + " is not whole: " + what);
  }

  [[nodiscard]] Handle open_episode(std::int64_t episode) const {
    if (episode < 0 || episode >= n_episodes_) {
      throw RunError(path_ + ": has no episode " + std::to_string(episode) + "; it has " +
                     std::to_string(n_episodes_));
    }
    Handle group(H5Gopen2(file_.id(), name_of(episode).c_str(), H5P_DEFAULT), H5Gclose);
    check(episode, group.id());
    return group;
  }

  void read_group(std::int64_t number, hid_t group, const std::string& prefix, Episode& episode,
                  std::map<haddr_t, std::string>& seen) {
    std::vector<std::string> names;
    hsize_t begin = 0;
    check(number, H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, &begin, take_link, &names));
    for (const std::string& name : names) {
      const std::string path = prefix + name;
      H5O_info_t info;
      check(number, H5Oget_info_by_name1(group, name.c_str(), &info, H5P_DEFAULT));
      if (info.type == H5O_TYPE_GROUP) {
        const Handle inner(H5Gopen2(group, name.c_str(), H5P_DEFAULT), H5Gclose);
        check(number, inner.id());
        if (path == "static") {
          read_fixed(number, inner.id(), info.addr, episode);
        } else {
          read_group(number, inner.id(), path + "/", episode, seen);
        }
        continue;
      }
      const auto [found, is_new] = seen.emplace(info.addr, path);
      if (!is_new) {
        episode.links.emplace_back(path, found->second);
        continue;
      }
      DecodedArray rows = decode(number, group, name);
      rows.layout.path = path;
      episode.arrays.push_back(encode(rows.layout, std::as_bytes(std::span(rows.rows))));
    }
  }

  void read_fixed(std::int64_t number, hid_t group, haddr_t address, Episode& episode) {
    auto& known = fixed_[address];
    if (!known) {
      Episode arrays;
      std::map<haddr_t, std::string> seen;
      read_group(number, group, "", arrays, seen);
      known = std::make_shared<const FixedArrays>(std::move(arrays.arrays));
    }
    episode.fixed = known;
  }

  [[nodiscard]] DecodedArray decode(std::int64_t episode, hid_t parent,
                                    const std::string& name) const {
    const Handle dataset(H5Dopen2(parent, name.c_str(), H5P_DEFAULT), H5Dclose);
    check(episode, dataset.id());
    const Handle type(H5Dget_type(dataset.id()), H5Tclose);
    const Handle space(H5Dget_space(dataset.id()), H5Sclose);
    const int rank = H5Sget_simple_extent_ndims(space.id());
    const auto element = element_type_of(type.id());
    if (!element || rank < 1) {
      throw RunError(path_ + ": episode " + std::to_string(episode) + ", array '" + name +
                     "': only arrays of numbers and booleans, a row a step, can be read");
    }
    std::vector<hsize_t> dims(static_cast<std::size_t>(rank));
    H5Sget_simple_extent_dims(space.id(), dims.data(), nullptr);
    DecodedArray array;
    array.layout.path = name;
    array.layout.type = *element;
    array.n_rows = static_cast<std::int64_t>(dims[0]);
    for (std::size_t i = 1; i < dims.size(); ++i) {
      if (dims[i] == 0) fail(episode, "array '" + name + "' has no elements");
      array.layout.shape.push_back(static_cast<std::int64_t>(dims[i]));
    }
    if (array.n_rows == 0) fail(episode, "array '" + name + "' has no rows");
    // The dimensions are what the file claims: more than it holds uncompressed is refused by HDF5.
    array.rows.resize(static_cast<std::size_t>(dims[0]) * array.layout.row_bytes());
    check(episode, H5Dread(dataset.id(), hdf5::type_of(*element), H5S_ALL, H5S_ALL, H5P_DEFAULT,
                           array.rows.data()));
    return array;
  }

  [[nodiscard]] std::int64_t integer_attribute(hid_t object, const char* name) const {
    std::int64_t value = 0;
    const Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose);
    hdf5::check(attribute.id(), path_, "read");
    hdf5::check(H5Aread(attribute.id(), H5T_NATIVE_INT64, &value), path_, "read");
    return value;
  }

  [[nodiscard]] std::optional<AttributeValue> attribute(hid_t object,
                                                        const std::string& name) const {
    const Handle held(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose);
    hdf5::check(held.id(), path_, "read");
    const Handle type(H5Aget_type(held.id()), H5Tclose);
    const Handle space(H5Aget_space(held.id()), H5Sclose);
    if (H5Sget_simple_extent_npoints(space.id()) != 1) return std::nullopt;
    switch (H5Tget_class(type.id())) {
      case H5T_INTEGER:
        if (H5Tget_sign(type.id()) == H5T_SGN_2)
          return number<std::int64_t>(held, H5T_NATIVE_INT64);
        return number<std::uint64_t>(held, H5T_NATIVE_UINT64);
      case H5T_FLOAT:
        return number<double>(held, H5T_NATIVE_DOUBLE);
      case H5T_STRING:
        return text(held, type);
      default:
        return std::nullopt;
    }
  }
  template <class T>
  [[nodiscard]] AttributeValue number(const Handle& attribute, hid_t type) const {
    T value = 0;
    hdf5::check(H5Aread(attribute.id(), type, &value), path_, "read");
    return value;
  }
  [[nodiscard]] AttributeValue text(const Handle& attribute, const Handle& type) const {
    if (H5Tis_variable_str(type.id()) > 0) {
      char* held = nullptr;
      hdf5::check(H5Aread(attribute.id(), type.id(), static_cast<void*>(&held)), path_, "read");
      std::string value = held == nullptr ? "" : held;
      H5free_memory(held);
      return value;
    }
    std::string value(H5Tget_size(type.id()), '\0');
    hdf5::check(H5Aread(attribute.id(), type.id(), value.data()), path_, "read");
    value.resize(std::min(value.size(), value.find('\0')));
    return value;
  }

  std::string path_;
  Handle file_;
  std::int64_t n_episodes_ = 0;
  std::int64_t recorded_ = 0;
  std::map<haddr_t, std::shared_ptr<const FixedArrays>> fixed_;
};

EpisodeFileReader::EpisodeFileReader(const std::string& path) {
  const Lock lock(hdf5::library_mutex());
  state_ = std::make_unique<State>(path);
}
EpisodeFileReader::EpisodeFileReader(EpisodeFileReader&&) noexcept = default;
EpisodeFileReader::~EpisodeFileReader() {
  const Lock lock(hdf5::library_mutex());
  state_.reset();
}

const std::string& EpisodeFileReader::path() const { return state_->path(); }
std::int64_t EpisodeFileReader::n_episodes() const { return state_->n_episodes(); }
std::int64_t EpisodeFileReader::recorded() const { return state_->recorded(); }

Episode EpisodeFileReader::read(std::int64_t episode) {
  const Lock lock(hdf5::library_mutex());
  hdf5::start_library();
  return state_->read(episode);
}
Attributes EpisodeFileReader::attributes(std::int64_t episode) const {
  const Lock lock(hdf5::library_mutex());
  hdf5::start_library();
  return state_->attributes(episode);
}
std::int64_t EpisodeFileReader::n_steps(std::int64_t episode) const {
  const Lock lock(hdf5::library_mutex());
  hdf5::start_library();
  return state_->n_steps(episode);
}
std::optional<DecodedArray> EpisodeFileReader::array(std::int64_t episode,
                                                     const std::string& path) const {
  const Lock lock(hdf5::library_mutex());
  hdf5::start_library();
  return state_->array(episode, path);
}

}  // namespace doppler
