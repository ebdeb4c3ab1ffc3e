#include "store/key_values.hpp"

#include "store/database.hpp"

namespace pipeline::store {

void KeyValues::put(const std::string& kind, const std::string& key, std::string_view value) {
  database_.prepare("INSERT OR REPLACE INTO blobs (kind, key, value) VALUES (?1, ?2, ?3)")
      .bind(kind, key, value)
      .run();
}

std::optional<std::string> KeyValues::find(const std::string& kind, const std::string& key) {
  auto row = database_.prepare("SELECT value FROM blobs WHERE kind = ?1 AND key = ?2");
  row.bind(kind, key);
  return row.step() ? std::optional(row.text(0)) : std::nullopt;
}

void KeyValues::remove(const std::string& kind, const std::string& key) {
  database_.prepare("DELETE FROM blobs WHERE kind = ?1 AND key = ?2").bind(kind, key).run();
}

std::vector<std::string> KeyValues::keys(const std::string& kind) {
  std::vector<std::string> keys;
  auto row = database_.prepare("SELECT key FROM blobs WHERE kind = ?1 ORDER BY key");
  row.bind(kind);
  while (row.step()) keys.push_back(row.text(0));
  return keys;
}

}  // namespace pipeline::store
