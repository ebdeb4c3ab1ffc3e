#include "report/picture.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

namespace pipeline::report {

const char* picture_type(std::string_view bytes) {
  if (bytes.starts_with("\x89PNG\r\n")) return "image/png";
  if (bytes.starts_with("\xff\xd8\xff")) return "image/jpeg";
  if (bytes.starts_with("GIF8")) return "image/gif";
  if (bytes.starts_with("RIFF") && bytes.substr(0, 16).find("WEBP") == 8) return "image/webp";
  return nullptr;
}

bool is_picture_name(std::string_view file_name) {
  constexpr std::array<std::string_view, 5> known{".png", ".jpg", ".jpeg", ".gif", ".webp"};
  return std::ranges::find(known, std::filesystem::path(file_name).extension().string()) !=
         known.end();
}

}  // namespace pipeline::report
