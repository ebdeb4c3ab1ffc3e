/// @file
/// What an API server sends of a list and a watch: pages of a list before an empty line, the
/// stream's lines after it. What is told fits together: only what was added is modified or deleted.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/bounded_json.hpp"
#include "core/lines.hpp"
#include "kubernetes_api/changes.hpp"
#include "kubernetes_api/json.hpp"
#include "kubernetes_api/time.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pipeline::kubernetes_api;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::map<std::string, std::string> there;
  Changes changes("/api/v1/pods", [&](const Change& change) {
    const auto name = text_at(change.object, "/metadata/name"),
               uid = text_at(change.object, "/metadata/uid");
    const auto known = there.find(name);
    if ((change.kind == Change::Kind::added) != (known == there.end())) __builtin_trap();
    if (known != there.end() && known->second != uid) __builtin_trap();
    if (change.kind == Change::Kind::deleted)
      there.erase(name);
    else
      there[name] = uid;
  });
  bool lists = true;
  changes.begin_list();
  pipeline::core::Lines lines;
  const auto take = [&](std::string_view line) {
    parse_time(line);
    if (lists && line.empty()) {
      lists = false;
      changes.end_list();
    } else if (lists) {
      if (auto page = pipeline::core::parse_json(line); page.is_object()) changes.take_page(page);
    } else {
      changes.take_line(line);
    }
  };
  for (; !text.empty(); text.remove_prefix(std::min<std::size_t>(5, text.size())))
    lines.feed(text.substr(0, 5), take);
  take(lines.rest());
  return 0;
}
