#include "settings/image_archive.hpp"

#include <algorithm>
#include <array>

#include "core/identifier.hpp"
#include "settings/image_reference.hpp"

namespace pipeline::settings {

std::optional<ImageArchive> image_archive(std::string_view text) {
  constexpr std::array<std::string_view, 3> transports{"oci-archive", "docker-archive", "oci"};
  const auto colon = text.find(':');
  if (colon == text.npos ||
      std::ranges::find(transports, text.substr(0, colon)) == transports.end())
    return std::nullopt;
  ImageArchive archive;
  archive.transport = text.substr(0, colon);
  text.remove_prefix(colon + 1);
  const auto end = std::min(text.find(':'), text.size());
  archive.path = text.substr(0, end);
  if (end < text.size()) archive.image = text.substr(end + 1);
  return archive;
}

bool is_parent_image(std::string_view text) {
  if (const auto archive = image_archive(text))
    return !archive->path.empty() && !text.ends_with(':') && !core::has_control_characters(text);
  return is_image_reference(text);
}

}  // namespace pipeline::settings
