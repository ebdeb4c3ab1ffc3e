#include "core/notebook.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"

namespace pipeline::core {

std::optional<std::vector<std::string>> notebook_code(const std::filesystem::path& file) try {
  const auto notebook = parse_json(read_file(file));
  std::vector<std::string> cells;
  for (const auto& cell : notebook.at("cells")) {
    if (cell.at("cell_type") != "code") continue;
    auto& text = cells.emplace_back();
    if (const auto tags =
            cell.value(nlohmann::json::json_pointer("/metadata/tags"), nlohmann::json());
        !tags.empty())
      text = "# tags: " + tags.dump() + "\n";
    const auto& source = cell.at("source");
    if (source.is_string())
      text += source.get<std::string>();
    else
      for (const auto& line : source) text += line.get<std::string>();
  }
  return cells;
} catch (const nlohmann::json::exception&) {
  return std::nullopt;
} catch (const EnvironmentError&) {
  return std::nullopt;
}

std::string python_of(const std::vector<std::string>& cells) {
  std::string text;
  for (const auto& cell : cells)
    for (const auto each : lines_of(cell)) {
      std::string line(each);
      if (line.starts_with("%run ") && line.ends_with(".py")) {
        // `%run lib/train.py` becomes `import lib.train`, because both need the same file.
        line = "import " + line.substr(5, line.size() - 8);
        std::ranges::replace(line, '/', '.');
      } else if (line.starts_with('%') || line.starts_with('!')) {
        line.clear();  // A magic or a shell command. The empty line keeps the line numbers.
      }
      text += line + "\n";
    }
  return text;
}

}  // namespace pipeline::core
