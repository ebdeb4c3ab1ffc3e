#include "templates/templates.hpp"

#include <fstream>
#include <iterator>

#include "core/error.hpp"

namespace pipeline::templates {

std::string template_text(std::string_view name, const std::filesystem::path& template_dir) {
  if (!template_dir.empty()) {
    auto file = template_dir / name;
    std::error_code error;
    if (std::filesystem::exists(file, error)) {
      std::ifstream stream(file, std::ios::binary);
      std::string text{std::istreambuf_iterator<char>(stream), {}};
      if (!stream)
        throw core::EnvironmentError(
            "cannot read the template " + file.string(),
            {"--template-dir names a folder with templates that you can read"});
      return text;
    }
  }
  for (auto& embedded : embedded_templates())
    if (embedded.name == name) return std::string(embedded.text);
  throw core::EnvironmentError("there is no template called " + std::string(name));
}

}  // namespace pipeline::templates
