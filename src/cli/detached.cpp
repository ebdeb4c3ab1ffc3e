#include "cli/detached.hpp"

#include <nlohmann/json.hpp>

namespace pipeline::cli {

void keep_detached(store::RunStore& runs, const std::string& run, const Detached& detached) {
  const nlohmann::json kept{{"owner", detached.owner}, {"images", to_json(detached.images)}};
  runs.put_blob(store::detached_kind, run, kept.dump());
}

std::optional<Detached> detached_of(store::RunStore& runs, const std::string& run) {
  const auto text = runs.get_blob(store::detached_kind, run);
  const auto kept = nlohmann::json::parse(text.value_or(""), nullptr, false);
  if (!kept.is_object()) return std::nullopt;
  return Detached{kept.value("owner", std::string()),
                  orchestrators::image_lock_of(kept.value("images", nlohmann::json()))};
}

}  // namespace pipeline::cli
