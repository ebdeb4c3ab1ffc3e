/// @file
/// The text of templates/, as it was when this was built.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace pipeline::docker {

struct EmbeddedTemplate {
  std::string_view name;  ///< Path below templates/.
  std::string_view text;
};

std::span<const EmbeddedTemplate> embedded_templates();

/// The file `name` of `template_dir` if that is given and has it, else the embedded one. Throws
/// EnvironmentError when the file cannot be read.
std::string template_text(std::string_view name, const std::filesystem::path& template_dir);

}  // namespace pipeline::docker
