#include "gpu/image_cuda.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "gpu/cuda_tables.hpp"

namespace pipeline::gpu {
namespace {

/// Parses the version at the text's beginning: 12.1 for `12.1-cudnn8`.
std::optional<Version> leading_version(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() &&
         (core::is_digit(text[end]) ||
          (text[end] == '.' && end + 1 < text.size() && core::is_digit(text[end + 1]))))
    ++end;
  return Version::parse(text.substr(0, end));
}

/// Finds `cuda12.1`, `cuda-12.1`, `cuda118` or `cu121` in an image's tag.
std::optional<Version> cuda_within(std::string_view text) {
  for (std::size_t at = 0; (at = text.find("cu", at)) != std::string_view::npos; at += 2) {
    if (at > 0 && ((text[at - 1] >= 'a' && text[at - 1] <= 'z') || core::is_digit(text[at - 1])))
      continue;
    std::string_view rest = text.substr(at + 2);
    if (rest.starts_with("da")) rest.remove_prefix(2);
    if (rest.starts_with('-') || rest.starts_with('_') || rest.starts_with(':'))
      rest.remove_prefix(1);
    const auto version = leading_version(rest);
    if (!version) continue;
    const unsigned number = version->parts.front();
    if (version->parts.size() > 1) return version;
    // `cu118` is 11.8, and `cu80` is 8.0, the oldest version that is known here; `cuda12` is 12.
    if (number >= 80 && number < 1000) return Version{{number / 10, number % 10}, {}};
    if (number < 80 && number >= 8) return Version{{number}, {}};
  }
  return std::nullopt;
}

struct Name {
  std::string repository, tag;
};

/// Splits a reference into repository and tag; a digest is dropped.
Name split(std::string_view reference) {
  reference = reference.substr(0, reference.find('@'));
  const auto colon = reference.rfind(':');
  if (colon == std::string_view::npos || reference.find('/', colon) != std::string_view::npos)
    return {std::string(reference), ""};
  return {std::string(reference.substr(0, colon)), std::string(reference.substr(colon + 1))};
}

/// Returns true if the repository has this name, on any registry.
bool is_repository(const std::string& repository, std::string_view name) {
  return repository == name || (repository.size() > name.size() && repository.ends_with(name) &&
                                repository[repository.size() - name.size() - 1] == '/');
}

/// Fills in what the image's name and tag tell.
void read_name(std::string_view reference, ImageCuda& image) {
  const auto [repository, tag] = split(reference);
  image.is_development = tag.find("devel") != std::string::npos;
  image.version = cuda_within(tag);
  if (is_repository(repository, "nvidia/cuda") || is_repository(repository, "nvidia/cuda-arm64") ||
      is_repository(repository, "nvidia/cudagl")) {
    image.has = ImageCuda::Has::yes;
    if (const auto version = leading_version(tag)) image.version = version;
  } else if (is_repository(repository, "pytorch/pytorch")) {
    image.framework = "torch";
    image.torch = leading_version(tag);
  } else if (is_repository(repository, "tensorflow/tensorflow")) {
    image.framework = "tensorflow";
    const bool is_gpu = tag.find("gpu") != std::string::npos;
    image.has = is_gpu ? ImageCuda::Has::yes : ImageCuda::Has::no;
  } else if (repository.starts_with("nvcr.io/nvidia/") || repository.starts_with("rapidsai/")) {
    image.has = ImageCuda::Has::yes;
    for (const char* framework : {"pytorch", "tensorflow", "jax"})
      if (repository.ends_with(std::string("/") + framework))
        image.framework = std::string_view(framework) == "pytorch" ? "torch" : framework;
  }
  if (image.version) {
    image.has = ImageCuda::Has::yes;
    image.source = "its tag";
  }
  const std::string official =
      repository.starts_with("docker.io/") ? repository.substr(10) : repository;
  const std::string plain = official.starts_with("library/") ? official.substr(8) : official;
  if (image.has == ImageCuda::Has::unknown &&
      std::find(tables::plain_images.begin(), tables::plain_images.end(), plain) !=
          tables::plain_images.end())
    image.has = ImageCuda::Has::no;
}

/// Fills in what the image's variables and labels tell, which take precedence.
void read_config(const ImageConfig& config, ImageCuda& image) {
  const auto value = [](const StringMap& map, const std::string& key) {
    const auto found = map.find(key);
    return found == map.end() ? std::string() : found->second;
  };
  image.require = value(config.environment, "NVIDIA_REQUIRE_CUDA");
  image.disable_require = disables_require(config.environment);
  const auto take = [&](const std::string& text, const std::string& source) {
    const auto version = leading_version(text);
    if (!version) return false;
    image.version = version;
    image.source = source;
    return true;
  };
  const bool is_known =
      take(value(config.environment, "CUDA_VERSION"), "CUDA_VERSION") ||
      take(value(config.labels, "com.nvidia.cuda.version"), "com.nvidia.cuda.version") ||
      take(value(config.environment, "NV_CUDA_CUDART_VERSION"), "NV_CUDA_CUDART_VERSION");
  const bool has_traces =
      !image.require.empty() ||
      value(config.environment, "PATH").find("/cuda") != std::string::npos ||
      value(config.environment, "LD_LIBRARY_PATH").find("/cuda") != std::string::npos ||
      config.environment.contains("NVIDIA_VISIBLE_DEVICES");
  if (is_known || has_traces)
    image.has = ImageCuda::Has::yes;
  else if (image.has == ImageCuda::Has::unknown)
    image.has = ImageCuda::Has::no;
}

}  // namespace

bool disables_require(const StringMap& environment) {
  const auto found = environment.find("NVIDIA_DISABLE_REQUIRE");
  return found != environment.end() && (found->second == "1" || found->second == "true" ||
                                        found->second == "True" || found->second == "TRUE");
}

ImageCuda image_cuda(std::string_view reference, const std::optional<ImageConfig>& config) {
  ImageCuda image;
  read_name(reference, image);
  if (config) read_config(*config, image);
  return image;
}

}  // namespace pipeline::gpu
