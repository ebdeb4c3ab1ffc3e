#include "oci/image_archive.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include <fcntl.h>

#include "core/bounded_json.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/excerpt.hpp"
#include "core/file.hpp"
#include "core/json_member.hpp"
#include "core/text.hpp"
#include "docker/image_identity.hpp"
#include "file_tree/tar_writer.hpp"
#include "oci/client.hpp"

namespace pipeline::oci {
namespace {

namespace fs = std::filesystem;
using core::text_at;
using nlohmann::json;

constexpr std::size_t max_archived_document = std::size_t{16} << 20,
                      copied_at_once = std::size_t{1} << 20;
constexpr std::size_t max_listed_names = 10;
constexpr unsigned max_indexes = 3;  ///< Indexes within indexes.
constexpr const char* ref_name = "org.opencontainers.image.ref.name";
constexpr const char* full_name = "io.containerd.image.name";

std::string sha256_of(std::string_view text) { return "sha256:" + core::sha256(text).hex(); }

[[noreturn]] void refuse_image(const std::string& why, std::vector<std::string> advice = {}) {
  throw core::EnvironmentError(why, std::move(advice));
}

[[noreturn]] void refuse_damaged(const std::string& why) {
  refuse_image(why + ": the archive is damaged", {"copy or save it again"});
}

std::string blob_path(const std::string& digest) {
  return "blobs/sha256/" + digest.substr(std::string_view("sha256:").size());
}

/// Returns true if both are names of the same image: `debian:12`, `docker.io/library/debian:12`.
bool is_same_name(const std::string& one, const std::string& other) {
  const auto full = [](const std::string& name) {
    const auto repository = repository_of(name);
    return repository.registry + "/" + repository.name + ":" + repository.tag;
  };
  return one == other || full(one) == full(other);
}

/// Returns N for `@N`; nothing for any other text.
std::optional<std::size_t> number_of(const std::string& image) {
  std::size_t number = 0;
  const auto *begin = image.data() + 1, *end = image.data() + image.size();
  if (!image.starts_with('@') || begin == end) return std::nullopt;
  const auto [read, error] = std::from_chars(begin, end, number);
  return error == std::errc() && read == end ? std::optional(number) : std::nullopt;
}

/// Reads one archive.
class ArchiveReader {
 public:
  ArchiveReader(const settings::ImageArchive& archive, const fs::path& root, std::string platform)
      : archive_(archive),
        platform_(std::move(platform)),
        files_(root / archive.path, archive.is_folder()) {}

  ArchivedImage read() {
    auto image = archive_.transport == "docker-archive" ? read_saved() : read_layout();
    const auto made_for =
        text_at(image.description, "Os") + "/" + text_at(image.description, "Architecture");
    if (!docker::fits_platform(image.description, platform_))
      refuse_image("it is made for " + made_for + ", not for " + platform_,
                   {"save the image of that platform (`docker pull --platform " + platform_ +
                        "`, `skopeo copy --override-arch`)",
                    "or set `docker.platform: " + made_for + "`"});
    return image;
  }

 private:
  /// An image that the archive lists.
  struct ListedImage {
    std::set<std::string> names;
    json entry;
  };

  std::string text_of(const Slice& slice) const {
    if (slice.size > max_archived_document) refuse_image("a manifest in it is larger than 16 MiB");
    return read_slice(slice, 0, max_archived_document);
  }
  /// Returns the content of a file of this name at the archive's top.
  std::string top_file(const std::string& name, const std::string& other,
                       const std::string& transport) const;
  std::string blob(const std::string& digest) const;
  ArchivedImage read_layout() const;
  ArchivedImage read_saved() const;
  ListedImage choose(std::vector<ListedImage> listed) const;
  void add_saved_layer(ArchivedImage& image, const std::string& path,
                       const std::string& unpacked) const;

  const settings::ImageArchive& archive_;
  const std::string platform_;
  const ArchiveFiles files_;
};

std::string ArchiveReader::top_file(const std::string& name, const std::string& other,
                                    const std::string& transport) const {
  if (const auto found = files_.find(name)) return text_of(*found);
  if (files_.find(other))
    refuse_image("it has no " + name,
                 {"write `" + transport + ":" + archive_.path + "`, as it has a " + other});
  refuse_image(
      "it has no " + name + ", so it is not an image's archive",
      {"`docker save -o FILE IMAGE` writes one for `docker-archive:FILE`, and `skopeo copy "
       "docker://IMAGE oci-archive:FILE` or `podman save --format oci-archive` for "
       "`oci-archive:FILE`"});
}

std::string ArchiveReader::blob(const std::string& digest) const {
  if (!is_digest(digest)) refuse_damaged("a digest in it is not a SHA-256");
  const auto found = files_.find(blob_path(digest));
  if (!found) refuse_damaged("it has no " + blob_path(digest));
  auto text = text_of(*found);
  if (sha256_of(text) != digest) refuse_damaged("it has another content than that of " + digest);
  return text;
}

/// Returns the image that the user's text names, or the only image; several names of one image
/// count as one image.
ArchiveReader::ListedImage ArchiveReader::choose(std::vector<ListedImage> listed) const {
  const auto& wanted = archive_.image;
  if (const auto number = number_of(wanted)) {
    if (*number >= listed.size())
      refuse_image("it has no image @" + std::to_string(*number) + ": it has " +
                   core::counted(listed.size(), "image") + ", counted from 0");
    return listed[*number];
  }
  std::string names;
  std::size_t named = 0;
  for (const auto& each : listed)
    for (const auto& name : each.names)
      if (named++ < max_listed_names) names += (names.empty() ? "" : ", ") + core::excerpt(name);
  if (named > max_listed_names) names += ", ...";
  if (!wanted.empty())
    std::erase_if(listed, [&](const ListedImage& each) {
      return std::ranges::none_of(
          each.names, [&](const std::string& name) { return is_same_name(name, wanted); });
    });
  if (listed.empty())
    refuse_image(
        "it has no image '" + core::excerpt(wanted) + "'" +
            (names.empty() ? std::string(", and none of its images has a name")
                           : ", only " + names),
        {"correct what follows the path, or leave it out if the archive has only one image"});
  const auto is_first = [&](const ListedImage& each) { return each.entry == listed.front().entry; };
  if (std::ranges::all_of(listed, is_first)) return listed.front();
  refuse_image("it has " + std::to_string(listed.size()) + " images" +
                   (names.empty() ? std::string() : ": " + names),
               {"say which, as in `" + archive_.transport + ":" + archive_.path + ":" +
                (listed.front().names.empty() ? "@0" : *listed.front().names.begin()) + "`"});
}

/// Reads a layout of the image-spec, image-layout.md.
ArchivedImage ArchiveReader::read_layout() const {
  auto document = core::parse_json(top_file("index.json", "manifest.json", "docker-archive"));
  if (!is_index(document) || !document.at("manifests").is_array())
    refuse_damaged("its index.json is not an index");
  std::vector<ListedImage> listed;
  std::set<std::set<std::string>> name_sets;
  std::set<std::string> platforms;
  bool has_platforms = true;
  for (const auto& each : document.at("manifests")) {
    if (!each.is_object()) refuse_damaged("its index.json has an entry that is not an object");
    ListedImage one;
    for (const auto* key : {ref_name, full_name})
      if (const auto* annotations = core::member(each, "annotations");
          annotations && annotations->is_object() && !text_at(*annotations, key).empty())
        one.names.insert(text_at(*annotations, key));
    one.entry = text_at(each, "digest");
    const auto* platform = core::member(each, "platform");
    if (platform && platform->is_object() && text_at(*platform, "os") == "unknown") continue;
    has_platforms = has_platforms && platform && platforms.insert(platform->dump()).second;
    name_sets.insert(one.names);
    listed.push_back(std::move(one));
  }
  if (listed.empty()) refuse_damaged("its index.json lists no image");
  const auto own = platform_.empty() ? own_platform() : platform_;
  // Entries with equal names and different platforms are one image.
  const bool is_one_image = has_platforms && name_sets.size() == 1 && archive_.image.empty();
  const auto digest = is_one_image && listed.size() > 1 ? choose_manifest(document, own).digest
                                                        : choose(listed).entry.get<std::string>();
  document = core::parse_json(blob(digest));
  for (unsigned i = 0; i < max_indexes && is_index(document); ++i)
    document = core::parse_json(blob(choose_manifest(document, own).digest));
  const auto manifest = read_manifest(document);
  ArchivedImage image;
  image.config = blob(manifest.config.digest);
  image.description = describe(core::parse_json(image.config), manifest);
  image.layers = manifest.layers;
  for (const auto& layer : manifest.layers) {
    const auto found = files_.find(blob_path(layer.digest));
    if (!found)
      refuse_image("it has no layer " + layer.digest,
                   {"save it again, from an engine that has pulled all of the image"});
    if (found->size != layer.size)
      refuse_damaged("its layer " + layer.digest + " has another size than its manifest says");
    image.contents.push_back(*found);
  }
  return image;
}

/// Reads what `docker save` writes: a manifest.json, which lists configurations and layers.
ArchivedImage ArchiveReader::read_saved() const {
  const auto document = core::parse_json(top_file("manifest.json", "index.json", "oci-archive"));
  if (!document.is_array()) refuse_damaged("its manifest.json is not a list");
  std::vector<ListedImage> listed;
  for (const auto& each : document) {
    if (!each.is_object()) refuse_damaged("its manifest.json has an entry that is not an object");
    ListedImage one{{}, each};
    if (const auto* tags = core::member(each, "RepoTags"); tags && tags->is_array())
      for (const auto& tag : *tags)
        if (tag.is_string()) one.names.insert(tag.get<std::string>());
    listed.push_back(std::move(one));
  }
  if (listed.empty()) refuse_damaged("its manifest.json lists no image");
  const auto entry = choose(listed).entry;
  const auto path = text_at(entry, "Config");
  const auto found = files_.find(path);
  if (!found) refuse_damaged("it has no configuration " + core::excerpt(path));
  ArchivedImage image;
  image.config = text_of(*found);
  const auto named = "sha256:" + fs::path(path).stem().string();
  Manifest manifest;
  manifest.config.digest = sha256_of(image.config);
  if (is_digest(named) && named != manifest.config.digest)
    refuse_damaged("its configuration has another content than that of " + named);
  const auto* layers = core::member(entry, "Layers");
  if (!layers || !layers->is_array()) refuse_damaged("its manifest.json lists no layers");
  manifest.layers.resize(layers->size());
  image.description = describe(core::parse_json(image.config), manifest);
  for (std::size_t i = 0; i < layers->size(); ++i) {
    const auto& layer = layers->at(i);
    add_saved_layer(image, layer.is_string() ? layer.get<std::string>() : std::string(),
                    image.description.at("RootFS").at("Layers").at(i).get<std::string>());
  }
  return image;
}

/// Adds a layer of an archive by `docker save`, which does not say how the layer is packed.
/// @param unpacked digest of the unpacked layer
void ArchiveReader::add_saved_layer(ArchivedImage& image, const std::string& path,
                                    const std::string& unpacked) const {
  using namespace std::string_view_literals;
  const auto found = files_.find(path);
  if (!found)
    refuse_image("it has no layer " + core::excerpt(path),
                 {"save it again, from an engine that has pulled all of the image"});
  Blob layer{"application/vnd.oci.image.layer.v1.tar", {}, found->size};
  const auto begin = read_slice(*found, 0, 4);
  const bool is_packed = begin.starts_with("\x1f\x8b"sv) || begin == "\x28\xb5\x2f\xfd"sv;
  if (is_packed) layer.media_type += begin.starts_with("\x1f\x8b"sv) ? "+gzip" : "+zstd";
  const auto named = "sha256:" + fs::path(path).filename().string();
  if (is_digest(named))
    layer.digest = named;
  else if (!is_packed)
    layer.digest = unpacked;
  image.layers.push_back(std::move(layer));
  image.contents.push_back(*found);
}

/// A tar, made of texts and slices of files, that is read piece by piece.
class LoadableTar {
 public:
  void add_file(const std::string& name, std::string content) {
    auto text = file_tree::tar_header({.name = name, .mode = 0644, .size = content.size()});
    text += content + file_tree::tar_padding(content.size());
    parts_.push_back({std::move(text), {}});
  }
  void add_layer(const std::string& name, const Slice& slice) {
    parts_.push_back(
        {file_tree::tar_header({.name = name, .mode = 0644, .size = slice.size}), slice});
    parts_.push_back({file_tree::tar_padding(slice.size), {}});
  }
  void add_end() { parts_.push_back({file_tree::tar_end(), {}}); }

  std::size_t read(std::span<char> buffer) {
    while (taken_ == piece_.size() && next()) {
    }
    const auto count = std::min(buffer.size(), piece_.size() - taken_);
    std::memcpy(buffer.data(), piece_.data() + taken_, count);
    taken_ += count;
    return count;
  }

 private:
  struct Part {
    std::string text;
    Slice slice;  ///< Follows the text.
  };

  /// Reads the next piece, which may be empty; returns false at the end.
  bool next() {
    taken_ = 0;
    if (part_ == parts_.size()) {
      piece_.clear();
      return false;
    }
    auto& part = parts_[part_];
    if (!part.text.empty()) {
      piece_ = std::exchange(part.text, {});
    } else {
      piece_ =
          part.slice.size > done_ ? read_slice(part.slice, done_, copied_at_once) : std::string();
      done_ += piece_.size();
    }
    if (part.slice.size == done_) {
      ++part_;
      done_ = 0;
    }
    return true;
  }

  std::vector<Part> parts_;
  std::size_t part_ = 0;    ///< Index of the part that is read next.
  std::uint64_t done_ = 0;  ///< Bytes of that part's slice that were read.
  std::string piece_;
  std::size_t taken_ = 0;  ///< Bytes of the piece that read() has returned.
};

}  // namespace

ArchivedImage read_archive(const settings::ImageArchive& archive, const fs::path& root,
                           const std::string& platform) {
  try {
    return ArchiveReader(archive, root, platform).read();
  } catch (const core::EnvironmentError& error) {
    throw core::EnvironmentError("cannot read the image " + archive.text() + ": " + error.what(),
                                 error.advice());
  }
}

void copy_layer(const ArchivedImage& image, std::size_t layer, const fs::path& to) {
  const auto& slice = image.contents.at(layer);
  const core::Descriptor file(::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) throw core::system_error("cannot write " + to.string(), errno);
  core::Hasher hasher;
  for (std::uint64_t done = 0; done < slice.size;) {
    const auto piece = read_slice(slice, done, copied_at_once);
    hasher.update(piece);
    core::write_fully(file.get(), piece, to);
    done += piece.size();
  }
  const auto& digest = image.layers.at(layer).digest;
  if (!digest.empty() && "sha256:" + hasher.finish().hex() != digest)
    throw core::EnvironmentError(slice.file.string() +
                                     " has another content than that of the layer " + digest +
                                     ": it is damaged",
                                 {"copy or save it again"});
}

net::BodySource loadable_tar(const ArchivedImage& image, const std::string& name) {
  const auto config = text_at(image.description, "Id").substr(std::string_view("sha256:").size());
  auto parts = std::make_shared<LoadableTar>();
  json entry = json::object();
  entry["Config"] = config + ".json";
  entry["RepoTags"] = json::array();
  entry["RepoTags"].push_back(name);
  entry["Layers"] = json::array();
  parts->add_file(config + ".json", image.config);
  for (std::size_t i = 0; i < image.contents.size(); ++i) {
    const auto layer = std::to_string(i) + "/layer.tar";
    entry["Layers"].push_back(layer);
    parts->add_layer(layer, image.contents[i]);
  }
  json list = json::array();
  list.push_back(entry);
  parts->add_file("manifest.json", list.dump());
  parts->add_end();
  // std::function has to be copyable; all copies read the same stream.
  return [parts](std::span<char> buffer) { return parts->read(buffer); };
}

}  // namespace pipeline::oci
