#include "spec/limits_reader.hpp"

#include "core/identifier.hpp"

namespace pipeline::spec {

unsigned read_units(const std::string& key, const core::Value& value,
                    settings::Diagnostics& diagnostics) {
  return settings::read_count(key, value, diagnostics, {1, max_units}).value_or(0);
}

std::map<std::string, unsigned> read_limits(const char* key, const core::Value& value,
                                            settings::Diagnostics& diagnostics) {
  std::map<std::string, unsigned> limits;
  if (!settings::expect_map(key, value, diagnostics)) return limits;
  for (const auto& [name, units] : value.members) {
    if (!core::is_name(name.scalar))
      settings::report(diagnostics, "bad-name",
                       "'" + name.scalar.substr(0, 60) + "' cannot be a limit's name", name.span,
                       {"a name has letters, digits, `_`, `-` and `.`, and begins with a letter or "
                        "digit"});
    else if (const auto count = read_units(name.scalar, units, diagnostics))
      limits.emplace(name.scalar, count);
  }
  return limits;
}

}  // namespace pipeline::spec
