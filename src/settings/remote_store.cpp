#include "settings/remote_store.hpp"

#include <nlohmann/json.hpp>

namespace pipeline::settings {

using nlohmann::json;

json to_json(const RemoteStoreSettings& store) {
  if (!store.is_given()) return nullptr;
  json kept(store.options);
  kept["url"] = store.url;
  return kept;
}

RemoteStoreSettings remote_store_of(const json& kept) {
  RemoteStoreSettings store;
  if (!kept.is_object()) return store;
  // Run stores of version 0.1.0 have bucket and prefix apart, and path_style as a boolean.
  if (const auto bucket = kept.value("bucket", ""); !bucket.empty()) {
    store.url = "s3://" + bucket + "/" + kept.value("prefix", "");
    store.url.pop_back();
  }
  for (const auto& [key, value] : kept.items()) {
    if (key == "bucket" || key == "prefix") continue;
    auto text = value.is_string() ? value.get<std::string>() : value.dump();
    if (key == "url")
      store.url = std::move(text);
    else if (!text.empty())
      store.options[key] = std::move(text);
  }
  return store;
}

}  // namespace pipeline::settings
