#include "store/cache_entries.hpp"

#include "store/database.hpp"
#include "store/record_texts.hpp"

namespace pipeline::store {

void CacheEntries::add(const CacheEntry& entry, const std::string& pipeline,
                       const std::vector<KeyPart>& parts) {
  const auto outputs = write_outputs(entry.outputs);
  const auto list = write_parts(parts);
  database_
      .prepare(
          "INSERT OR REPLACE INTO cache (key, run, pipeline, step, outputs, parts) VALUES (?1, ?2, "
          "?3, ?4, ?5, ?6)")
      .bind(entry.key, entry.run, pipeline, entry.step, outputs, list)
      .run();
}

bool CacheEntries::has_successes() {
  return database_.prepare("SELECT 1 FROM cache LIMIT 1").step();
}

std::optional<CacheEntry> CacheEntries::find(const std::string& key) {
  auto row = database_.prepare("SELECT run, step, outputs FROM cache WHERE key = ?1");
  row.bind(key);
  if (!row.step()) return std::nullopt;
  return CacheEntry{key, row.text(0), row.text(1), read_outputs(row.text(2))};
}

void CacheEntries::remove(const std::string& key) {
  database_.prepare("DELETE FROM cache WHERE key = ?1").bind(key).run();
}

std::optional<std::pair<std::string, std::vector<KeyPart>>> CacheEntries::last_key_parts(
    const std::string& pipeline, const std::string& step) {
  auto row = database_.prepare(
      "SELECT run, parts FROM cache WHERE pipeline = ?1 AND step = ?2 ORDER BY id DESC LIMIT 1");
  row.bind(pipeline, step);
  if (!row.step()) return std::nullopt;
  return std::pair{row.text(0), read_parts(row.text(1))};
}

std::vector<KeyPart> CacheEntries::key_parts(const std::string& key) {
  auto row = database_.prepare("SELECT parts FROM cache WHERE key = ?1");
  row.bind(key);
  return row.step() ? read_parts(row.text(0)) : std::vector<KeyPart>();
}

}  // namespace pipeline::store
