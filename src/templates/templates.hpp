/// @file
/// The embedded texts of templates/, as of the build of this program.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace pipeline::templates {

struct EmbeddedTemplate {
  std::string_view name;  ///< Path below templates/.
  std::string_view text;
};

std::span<const EmbeddedTemplate> embedded_templates();

/// Returns the file `name` of `template_dir` if there is one, else the embedded text. Throws
/// EnvironmentError if the file cannot be read.
std::string template_text(std::string_view name, const std::filesystem::path& template_dir);

}  // namespace pipeline::templates
