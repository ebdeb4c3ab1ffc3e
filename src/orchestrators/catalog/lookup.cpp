#include <algorithm>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/joined.hpp"
#include "orchestrators/catalog/catalog.hpp"

namespace pipeline::orchestrators {

const std::vector<std::string>& orchestrator_names() {
  static const auto names = [] {
    std::vector<std::string> all;
    for (const auto& entry : catalog()) all.push_back(entry.name);
    return all;
  }();
  return names;
}

const Entry* find_entry(std::string_view name) {
  const auto found = std::ranges::find(catalog(), name, &Entry::name);
  return found == catalog().end() ? nullptr : &*found;
}

Traits traits_of(std::string_view name) {
  const auto* entry = find_entry(name);
  return entry ? entry->traits : Traits{};
}

const Entry& entry_of(std::string_view name) {
  if (const auto* entry = find_entry(name)) return *entry;
  throw core::InputError("there is no orchestrator '" + std::string(name) +
                             "'; known are: " + core::joined(orchestrator_names(), ", "),
                         core::did_you_mean(std::string(name), orchestrator_names()));
}

std::string describe_orchestrators() {
  std::string text;
  for (const auto& entry : catalog())
    text += (text.empty() ? "" : "; ") + entry.name + ", " + entry.help;
  return text;
}

StringMap connection_of(const Entry& entry, const StringMap& all) {
  StringMap own;
  for (const auto& field : entry.connection)
    if (const auto found = all.find(field.name); found != all.end()) own.insert(*found);
  return own;
}

StringMap service_of(const Entry& entry, const StringMap& all) {
  auto own = connection_of(entry, all);
  for (const auto& field : entry.connection)
    if (!field.identifies_service) own.erase(field.name);
  return own;
}

std::string connection_field(const StringMap& connection, const std::string& name) {
  const auto found = connection.find(name);
  return found == connection.end() ? std::string() : found->second;
}

}  // namespace pipeline::orchestrators
