#include "driver/invocation.hpp"

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "orchestrators/catalog/catalog.hpp"

namespace pipeline::driver {
namespace {

namespace fs = std::filesystem;

/// Records without a version were written before it was introduced; their fields are the same.
constexpr int invocation_version = 1;

std::string absolute_text(const fs::path& path) {
  return path.empty() ? std::string() : fs::absolute(path).string();
}

}  // namespace

void keep_invocation(store::RunStore& store, const std::string& run, const Invocation& invocation) {
  nlohmann::json record{{"version", invocation_version},
                        {"file", absolute_text(invocation.file)},
                        {"root", invocation.root.string()},
                        {"parameters", invocation.parameters},
                        {"profile", invocation.profile},
                        {"orchestrator", invocation.orchestrator},
                        {"artifact_store", settings::to_json(invocation.remote_store)},
                        {"step", invocation.step},
                        {"execution_mode", invocation.execution_mode},
                        {"jobs", invocation.jobs},
                        {"no_cache", invocation.no_cache},
                        {"force", invocation.force},
                        {"from", invocation.from},
                        {"template_dir", absolute_text(invocation.template_dir)}};
  for (const auto& [field, value] : invocation.connection) record.emplace(field, value);
  store.key_values().put(store::invocation_kind, run, record.dump());
}

/// Catches errors of JSON, because a record that comes from a bucket may have any members.
std::optional<Invocation> invocation_of(store::RunStore& store, const std::string& run) try {
  const auto text = store.key_values().find(store::invocation_kind, run);
  const auto record = core::parse_json(text.value_or(""));
  if (!record.is_object() || record.value("version", invocation_version) > invocation_version)
    return std::nullopt;
  const auto text_of = [&](const char* key) { return record.value(key, std::string()); };
  Invocation invocation;
  invocation.file = text_of("file");
  invocation.root = text_of("root");
  invocation.parameters = record.value("parameters", invocation.parameters);
  invocation.profile = text_of("profile");
  invocation.orchestrator = record.value("orchestrator", invocation.orchestrator);
  for (const auto& entry : orchestrators::catalog())
    for (const auto& field : entry.connection)
      if (auto value = text_of(field.name.c_str()); !value.empty())
        invocation.connection[field.name] = std::move(value);
  invocation.remote_store =
      settings::remote_store_of(record.value("artifact_store", nlohmann::json()));
  invocation.step = text_of("step");
  invocation.execution_mode = text_of("execution_mode");
  if (record.contains("jobs")) invocation.jobs = core::integer_of<unsigned>(record.at("jobs"));
  invocation.no_cache = record.value("no_cache", false);
  invocation.force = record.value("force", invocation.force);
  invocation.from = record.value("from", invocation.from);
  invocation.template_dir = text_of("template_dir");
  return invocation;
} catch (const nlohmann::json::exception&) {
  return std::nullopt;
}

}  // namespace pipeline::driver
