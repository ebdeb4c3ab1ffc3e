#include "store/cache_entries.hpp"

#include <algorithm>
#include <map>

#include "store/database.hpp"
#include "store/record_texts.hpp"

namespace pipeline::store {

std::optional<core::Digest> artifact_of(const KeyPart& input) {
  constexpr std::size_t digits = 64;
  const auto& text = input.value;
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_digit = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    count = is_digit ? count + 1 : 0;
    if (count == digits) return core::Digest::from_hex(text.substr(i + 1 - digits, digits));
  }
  return std::nullopt;
}

std::string write_data_origin(const DataOrigin& origin) {
  return origin.kind + " " + (origin.digest ? origin.digest->hex() : "-") + " " + origin.source;
}

std::optional<std::pair<std::string, DataOrigin>> data_input(const KeyPart& part) {
  constexpr std::string_view prefix = "data ";
  if (!part.name.starts_with(prefix)) return std::nullopt;
  auto name = part.name.substr(prefix.size());
  const bool is_folder = name.ends_with('/');
  if (is_folder) name.pop_back();
  if (name.find('/') != name.npos) return std::nullopt;  // An entry of a folder.
  DataOrigin origin;
  const auto kind_end = part.producer.find(' ');
  const auto digest_end =
      kind_end == std::string::npos ? kind_end : part.producer.find(' ', kind_end + 1);
  if (digest_end != std::string::npos) {
    origin.kind = part.producer.substr(0, kind_end);
    origin.source = part.producer.substr(digest_end + 1);
    origin.digest = artifact_of(KeyPart{{}, part.producer.substr(0, digest_end)});
  } else {
    origin.kind = is_folder ? "folder" : "file";
    origin.digest = artifact_of(part);
    const auto space = part.value.find(' ');
    origin.source =
        origin.digest && space != std::string::npos ? part.value.substr(space + 1) : part.value;
  }
  if (origin.source == "none") return std::nullopt;
  return std::pair{std::move(name), std::move(origin)};
}

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

namespace {

/// Returns the number of parts that only one of the two keys has, or that have different values.
std::size_t distance(const std::vector<KeyPart>& before,
                     const std::map<std::string_view, std::string_view>& now, bool has_inputs) {
  std::size_t same = 0, all = 0;
  for (const auto& part : before) {
    if (!has_inputs && part.name.starts_with("input ")) continue;
    ++all;
    const auto found = now.find(part.name);
    same += found != now.end() && found->second == part.value;
  }
  return all + now.size() - 2 * same;
}

}  // namespace

std::optional<std::pair<std::string, std::vector<KeyPart>>> CacheEntries::nearest_key_parts(
    const std::string& pipeline, const std::string& step, const std::vector<KeyPart>& now) {
  std::map<std::string_view, std::string_view> wanted;
  for (const auto& part : now) wanted.emplace(part.name, part.value);
  const bool has_inputs =
      std::ranges::any_of(now, [](const KeyPart& part) { return part.name.starts_with("input "); });
  auto row = database_.prepare(
      "SELECT run, parts FROM cache WHERE pipeline = ?1 AND step = ?2 ORDER BY id DESC LIMIT 100");
  row.bind(pipeline, step);
  std::optional<std::pair<std::string, std::vector<KeyPart>>> nearest;
  std::size_t least = 0;
  while (row.step()) {
    auto parts = read_parts(row.text(1));
    const auto differing = distance(parts, wanted, has_inputs);
    if (nearest && differing >= least) continue;
    least = differing;
    nearest.emplace(row.text(0), std::move(parts));
  }
  return nearest;
}

std::vector<KeyPart> CacheEntries::key_parts(const std::string& key) {
  auto row = database_.prepare("SELECT parts FROM cache WHERE key = ?1");
  row.bind(key);
  return row.step() ? read_parts(row.text(0)) : std::vector<KeyPart>();
}

}  // namespace pipeline::store
