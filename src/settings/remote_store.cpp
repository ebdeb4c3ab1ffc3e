#include "settings/remote_store.hpp"

#include <nlohmann/json.hpp>

namespace pipeline::settings {

using nlohmann::json;

json to_json(const RemoteStoreSettings& store) {
  if (!store.is_given()) return nullptr;
  json stored(store.options);
  stored["url"] = store.url;
  return stored;
}

RemoteStoreSettings remote_store_of(const json& stored) {
  RemoteStoreSettings store;
  if (!stored.is_object()) return store;
  // Runs that version 0.1.0 has stored have a `bucket`, a `prefix` that is empty or ends with `/`,
  // and `path_style` as a boolean.
  if (const auto bucket = stored.value("bucket", ""); !bucket.empty()) {
    store.url = "s3://" + bucket + "/" + stored.value("prefix", "");
    store.url.pop_back();  // The last `/`.
  }
  for (const auto& [key, value] : stored.items()) {
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
