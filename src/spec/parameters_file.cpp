#include "spec/parameters_file.hpp"

#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "settings/decode.hpp"
#include "spec/json_text.hpp"
#include "spec/parameter_value.hpp"
#include "spec/yaml_writer.hpp"
#include "yaml/document.hpp"

namespace pipeline::spec {
namespace {

namespace fs = std::filesystem;

void read_values(const core::Value& map, const fs::path& file, FileParameters& found,
                 settings::Diagnostics& diagnostics) {
  for (const auto& [name, value] : map.members) {
    if (!read_parameter(name.scalar, value, diagnostics)) continue;
    found.values.emplace(name.scalar,
                         value.kind == core::Value::Kind::scalar ? value.scalar : to_flow(value));
    found.places.emplace(name.scalar, file.string() + ":" + std::to_string(name.span.line) + ":" +
                                          std::to_string(name.span.column));
  }
}

}  // namespace

FileParameters load_parameters(const fs::path& file) {
  std::error_code error;  // Pipes are files as well: `--params <(...)`.
  const bool is_folder = fs::is_directory(file, error);
  const std::string takes = "`--params FILE` takes a YAML or JSON file: a map of names to values";
  if (is_folder) throw core::InputError("'" + file.string() + "' is a folder, not a file", takes);
  if (!fs::exists(file, error))
    throw core::InputError("there is no file '" + file.string() + "'", takes);
  const auto text = core::read_file(file);
  settings::Diagnostics diagnostics;
  FileParameters found;
  const auto root =
      yaml::parse_yaml(file.extension() == ".json" ? json_as_yaml(text) : text, diagnostics);
  if (root && root->kind != core::Value::Kind::map)
    settings::report(
        diagnostics, "wrong-type",
        "a file of parameters must be a map of names to values, not " + settings::describe(*root),
        root->span);
  else if (root)
    read_values(*root, file, found, diagnostics);
  if (!diagnostics.empty()) throw core::InputError(std::move(diagnostics), file.string(), text);
  return found;
}

}  // namespace pipeline::spec
