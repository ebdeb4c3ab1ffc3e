/// @file
/// The disk space of an engine's images, by the sizes of their layers.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <pipeline/settings.hpp>

#include <nlohmann/json_fwd.hpp>

#include "async/task.hpp"
#include "docker/engine_api.hpp"

namespace pipeline::docker {

struct StoredLayer {
  std::string name;  ///< A digest over this layer and all layers below.
  Bytes bytes = 0;   ///< Uncompressed.
};

struct StoredImage {
  std::string id;                  ///< `sha256:...`.
  std::vector<std::string> names;  ///< References; the id of an image without a name.
  /// pipe has built the image, or has loaded it out of an archive and given it its only name.
  bool is_own = false;
  std::int64_t created = 0;  ///< Seconds since 1970.
  std::vector<StoredLayer> layers;
};

/// Returns the references of an image; none for one without a name.
/// @param image as the engine lists it
std::vector<std::string> names_of(const nlohmann::json& image);

/// Returns true for an image that pipe has built, and false for an image that pipe has only loaded
/// out of an archive. An image that users build from an image of pipe inherits the labels, but has
/// another name: the name of pipe's image contains the beginning of the digest in its label. An
/// image without any name is recognised by its label alone.
/// @param image as the engine lists it
bool is_built_by_pipe(const nlohmann::json& image);

/// Returns the references to remove. An image that pipe has built has all of its names removed. A
/// parent image that pipe has loaded out of an archive loses only the name that pipe has given it,
/// because its other names are the user's. Returns none for any other image.
/// @param image as the engine lists it
async::Task<std::vector<std::string>> own_references(EngineApi& engine, nlohmann::json image);

/// Returns all images that have a name, whoever made them, and those without a name that pipe has
/// built.
async::Task<std::vector<StoredImage>> stored_images(EngineApi& engine);

/// Sorts the images by the time of their last use, or of their creation if that was later, the
/// oldest first. A use of an image that pipe has built is also a use of the images below it, which
/// are therefore sorted behind it.
/// @param last_use returns seconds since 1970 for an image's id; 0: not known
void sort_by_use(std::vector<StoredImage>& images,
                 const std::function<std::int64_t(const std::string&)>& last_use);

/// The disk space of pipe's images.
struct ImageStorage {
  std::size_t images = 0;
  Bytes shared = 0;    ///< Bytes of layers that several of pipe's images have.
  Bytes unshared = 0;  ///< Bytes of layers that only one of pipe's images has.
  Bytes total() const { return shared + unshared; }
};

/// Returns the disk space of pipe's images, without layers that other images have, such as parents.
ImageStorage storage_of(std::span<const StoredImage> images);

}  // namespace pipeline::docker
