#include "driver/detached_record.hpp"

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"

namespace pipeline::driver {

void keep_detached(store::RunStore& store, const std::string& run, const DetachedRecord& detached) {
  const nlohmann::json kept{{"owner", detached.owner},
                            {"images", orchestrators::to_json(detached.images)}};
  store.key_values().put(store::detached_kind, run, kept.dump());
}

/// Catches errors of JSON, because a record that comes from a bucket may have any members.
std::optional<DetachedRecord> detached_of(store::RunStore& store, const std::string& run) try {
  const auto text = store.key_values().find(store::detached_kind, run);
  const auto kept = core::parse_json(text.value_or(""));
  if (!kept.is_object()) return std::nullopt;
  return DetachedRecord{kept.value("owner", std::string()),
                        orchestrators::image_lock_of(kept.value("images", nlohmann::json()))};
} catch (const nlohmann::json::exception&) {
  return std::nullopt;
}

}  // namespace pipeline::driver
