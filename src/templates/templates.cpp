#include "templates/templates.hpp"

#include "core/error.hpp"
#include "core/file.hpp"

namespace pipeline::templates {

std::string template_text(std::string_view name, const std::filesystem::path& template_dir) {
  if (!template_dir.empty()) {
    auto file = template_dir / name;
    std::error_code error;
    if (std::filesystem::exists(file, error)) return core::read_file(file);
  }
  for (auto& embedded : embedded_templates())
    if (embedded.name == name) return std::string(embedded.text);
  throw core::EnvironmentError("there is no template called " + std::string(name));
}

}  // namespace pipeline::templates
