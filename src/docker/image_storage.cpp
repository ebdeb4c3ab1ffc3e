#include "docker/image_storage.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/digest.hpp"
#include "docker/archived_parent.hpp"
#include "docker/image_identity.hpp"
#include "docker/json_text.hpp"

namespace pipeline::docker {
namespace {

using nlohmann::json;

constexpr const char* label_of_digest = "pipe.digest";

/// Reads the response of GET /images/NAME/history, whose last entry is the lowest. Entries without
/// a layer have no bytes.
std::vector<StoredLayer> layers_of(const json& history) {
  std::vector<StoredLayer> layers;
  if (!history.is_array()) return layers;
  std::string below;
  for (auto entry = history.rbegin(); entry != history.rend(); ++entry) {
    const auto size = number_at(*entry, "Size");
    below = core::Hasher()
                .field(below)
                .field(std::to_string(number_at(*entry, "Created")))
                .field(text_at(*entry, "CreatedBy"))
                .field(std::to_string(size))
                .finish()
                .hex();
    if (size > 0) layers.push_back({below, size});
  }
  return layers;
}

/// Returns true for `pipe:env-0123456789abcdef`, if the digest begins with these digits.
bool is_name_for(std::string_view name, const std::string& digest) {
  constexpr std::size_t digits = 16;
  const auto dash = name.rfind('-');
  const auto colon = name.rfind(':');
  return dash != name.npos && colon != name.npos && colon < dash &&
         name.substr(dash + 1) == std::string_view(digest).substr(0, digits);
}

/// Returns true if the image has all layers of the other one.
bool is_built_on(const StoredImage& image, const StoredImage& parent) {
  return !parent.layers.empty() && image.layers.size() >= parent.layers.size() &&
         image.layers[parent.layers.size() - 1].name == parent.layers.back().name;
}

/// Returns those of the names that pipe has given a parent image that it has loaded.
async::Task<std::vector<std::string>> names_of_loaded(EngineApi& engine, json image) {
  auto names = names_of(image);
  std::erase_if(names, [](const auto& name) { return !is_archived_reference(name); });
  if (names.empty()) co_return names;
  const auto description = co_await engine.inspect_image(names.front());
  const auto identity = description ? image_identity(*description) : std::string();
  std::erase_if(names, [&](const auto& name) { return !is_name_for(name, identity); });
  co_return names;
}

}  // namespace

std::vector<std::string> names_of(const json& image) {
  std::vector<std::string> names;
  if (const auto tags = image.find("RepoTags"); tags != image.end() && tags->is_array())
    for (const auto& tag : *tags)
      if (tag.is_string() && tag != "<none>:<none>") names.push_back(tag.get<std::string>());
  return names;
}

bool is_built_by_pipe(const json& image) {
  const auto labels = image.find("Labels");
  if (labels == image.end() || !labels->is_object() || !labels->contains(label_of_digest))
    return false;
  const auto digest = text_at(*labels, label_of_digest);
  const auto names = names_of(image);
  return names.empty() || std::ranges::any_of(names, [&](const std::string& name) {
           return is_name_for(name, digest);
         });
}

async::Task<std::vector<std::string>> own_references(EngineApi& engine, json image) {
  if (!is_built_by_pipe(image)) co_return co_await names_of_loaded(engine, std::move(image));
  auto names = names_of(image);
  if (names.empty()) names.push_back(text_at(image, "Id"));
  co_return names;
}

async::Task<std::vector<StoredImage>> stored_images(EngineApi& engine) {
  const auto list = co_await engine.call("GET", "/images/json");
  std::vector<StoredImage> images;
  if (!list.is_array()) co_return images;
  for (const auto& each : list) {
    StoredImage image;
    image.id = text_at(each, "Id");
    if (image.id.empty()) continue;
    image.created = static_cast<std::int64_t>(number_at(each, "Created"));
    auto all_names = names_of(each);
    image.names = co_await own_references(engine, each);
    image.is_own = !image.names.empty() && image.names.size() >= all_names.size();
    if (!image.is_own) image.names = std::move(all_names);
    if (image.names.empty()) continue;
    try {
      image.layers = layers_of(co_await engine.call("GET", "/images/" + image.id + "/history"));
    } catch (const EngineError& error) {
      if (error.status() != 404) throw;
      continue;  // Removed since it was listed.
    }
    images.push_back(std::move(image));
  }
  co_return images;
}

void sort_by_use(std::vector<StoredImage>& images,
                 const std::function<std::int64_t(const std::string&)>& last_use) {
  std::map<std::string, std::int64_t> uses;  // Keyed by the image's id.
  for (const auto& image : images) {
    auto& use = uses[image.id];
    use = std::max({use, image.created, last_use(image.id)});
  }
  for (const auto& parent : images)
    for (const auto& image : images)
      if (image.is_own && is_built_on(image, parent))
        uses[parent.id] = std::max(uses[parent.id], uses[image.id]);
  std::ranges::stable_sort(images, {}, [&](const StoredImage& image) {
    return std::pair(uses.at(image.id), -std::ssize(image.layers));
  });
}

ImageStorage storage_of(std::span<const StoredImage> images) {
  std::set<std::string> others;
  for (const auto& image : images)
    if (!image.is_own)
      for (const auto& layer : image.layers) others.insert(layer.name);
  ImageStorage storage;
  std::map<std::string, std::pair<Bytes, unsigned>> uses;
  for (const auto& image : images) {
    if (!image.is_own) continue;
    ++storage.images;
    for (const auto& layer : image.layers) {
      if (others.contains(layer.name)) continue;
      auto& use = uses[layer.name];
      use.first = layer.bytes;
      ++use.second;
    }
  }
  for (const auto& [name, use] : uses)
    (use.second > 1 ? storage.shared : storage.unshared) += use.first;
  return storage;
}

}  // namespace pipeline::docker
