#include "store/record_texts.hpp"
#include "store/run_store.hpp"
#include "store/run_store_implementation.hpp"

namespace pipeline::store {

void RunStore::add_cache_entry(const CacheEntry& entry, const std::string& pipeline,
                               const std::vector<KeyPart>& parts) {
  const auto outputs = write_outputs(entry.outputs);
  const auto list = write_parts(parts);
  self_->database
      .prepare(
          "INSERT OR REPLACE INTO cache (key, run, pipeline, step, outputs, parts) VALUES (?1, ?2, "
          "?3, ?4, ?5, ?6)")
      .bind(entry.key, entry.run, pipeline, entry.step, outputs, list)
      .run();
}

bool RunStore::has_successes() {
  return self_->database.prepare("SELECT 1 FROM cache LIMIT 1").step();
}

std::optional<CacheEntry> RunStore::find_cached(const std::string& key) {
  auto row = self_->database.prepare("SELECT run, step, outputs FROM cache WHERE key = ?1");
  row.bind(key);
  if (!row.step()) return std::nullopt;
  return CacheEntry{key, row.text(0), row.text(1), read_outputs(row.text(2))};
}

void RunStore::remove_cached(const std::string& key) {
  self_->database.prepare("DELETE FROM cache WHERE key = ?1").bind(key).run();
}

std::optional<std::pair<std::string, std::vector<KeyPart>>> RunStore::last_key_parts(
    const std::string& pipeline, const std::string& step) {
  auto row = self_->database.prepare(
      "SELECT run, parts FROM cache WHERE pipeline = ?1 AND step = ?2 ORDER BY id DESC LIMIT 1");
  row.bind(pipeline, step);
  if (!row.step()) return std::nullopt;
  return std::pair{row.text(0), read_parts(row.text(1))};
}

std::vector<KeyPart> RunStore::key_parts(const std::string& key) {
  auto row = self_->database.prepare("SELECT parts FROM cache WHERE key = ?1");
  row.bind(key);
  return row.step() ? read_parts(row.text(0)) : std::vector<KeyPart>();
}

void RunStore::put_blob(const std::string& kind, const std::string& key, std::string_view value) {
  self_->database.prepare("INSERT OR REPLACE INTO blobs (kind, key, value) VALUES (?1, ?2, ?3)")
      .bind(kind, key, value)
      .run();
}

std::optional<std::string> RunStore::get_blob(const std::string& kind, const std::string& key) {
  auto row = self_->database.prepare("SELECT value FROM blobs WHERE kind = ?1 AND key = ?2");
  row.bind(kind, key);
  return row.step() ? std::optional(row.text(0)) : std::nullopt;
}

void RunStore::remove_blob(const std::string& kind, const std::string& key) {
  self_->database.prepare("DELETE FROM blobs WHERE kind = ?1 AND key = ?2").bind(kind, key).run();
}

std::vector<std::string> RunStore::blob_keys(const std::string& kind) {
  std::vector<std::string> keys;
  auto row = self_->database.prepare("SELECT key FROM blobs WHERE kind = ?1 ORDER BY key");
  row.bind(kind);
  while (row.step()) keys.push_back(row.text(0));
  return keys;
}

}  // namespace pipeline::store
