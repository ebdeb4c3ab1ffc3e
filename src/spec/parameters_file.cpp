#include "spec/parameters_file.hpp"

#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "settings/decode.hpp"
#include "spec/json_text.hpp"
#include "yaml/document.hpp"

namespace pipeline::spec {
namespace {

namespace fs = std::filesystem;

void read_values(const core::Value& map, const std::string& prefix,
                 std::map<std::string, std::string>& values, settings::Diagnostics& diagnostics) {
  for (const auto& [name, value] : map.members) {
    if (value.kind == core::Value::Kind::scalar)
      values.emplace(prefix + name.scalar, value.scalar);
    else if (value.kind == core::Value::Kind::map && prefix.empty())
      read_values(value, name.scalar + ".", values, diagnostics);
    else
      settings::report_type(diagnostics, prefix + name.scalar,
                            prefix.empty() ? "a value, or a map of a step's own parameters"
                                           : "a text, a number or a boolean",
                            value);
  }
}

}  // namespace

std::map<std::string, std::string> load_parameters(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error))
    throw core::InputError("there is no file '" + file.string() + "'",
                           "`--params FILE` takes a YAML or JSON file: a map of names to values");
  const auto text = core::read_file(file);
  settings::Diagnostics diagnostics;
  std::map<std::string, std::string> values;
  const auto root =
      yaml::parse_yaml(file.extension() == ".json" ? json_as_yaml(text) : text, diagnostics);
  if (root && root->kind != core::Value::Kind::map)
    settings::report(
        diagnostics, "wrong-type",
        "a file of parameters must be a map of names to values, not " + settings::describe(*root),
        root->span);
  else if (root)
    read_values(*root, "", values, diagnostics);
  if (!diagnostics.empty()) throw core::InputError(std::move(diagnostics), file.string(), text);
  return values;
}

}  // namespace pipeline::spec
