#include "kubernetes_api/changes.hpp"

#include "core/bounded_json.hpp"
#include "kubernetes_api/json.hpp"

namespace pipeline::kubernetes_api {
namespace {

using nlohmann::json;

/// Maximum size of an event, bytes: a cluster's database refuses objects of more than 1.5 MiB.
constexpr std::size_t max_event = std::size_t{4} << 20;

/// Drops managedFields, which are not needed and make up half of an object: the parser leaves out
/// members for whose key this returns false.
bool is_kept(int, json::parse_event_t event, json& parsed) {
  return event != json::parse_event_t::key ||
         parsed.get_ref<const std::string&>() != "managedFields";
}

}  // namespace

void Changes::report(Change::Kind kind, json& object) {
  const auto name = text_at(object, "/metadata/name"), uid = text_at(object, "/metadata/uid"),
             version = text_at(object, "/metadata/resourceVersion");
  const auto found = known_.find(name);
  if (kind == Change::Kind::deleted) {
    if (found == known_.end() || found->second.uid != uid) return;
    known_.erase(found);
  } else if (found == known_.end()) {
    known_.emplace(name, Known{uid, version});
    kind = Change::Kind::added;
  } else if (found->second.uid != uid) {
    // Another object of the same name; the deletion of the first one was missed.
    json gone{{"metadata", {{"name", name}, {"uid", found->second.uid}}}};
    found->second = {uid, version};
    on_change_({Change::Kind::deleted, gone});
    kind = Change::Kind::added;
  } else {
    if (found->second.version == version) return;
    found->second.version = version;
    kind = Change::Kind::modified;
  }
  on_change_({kind, object});
}

void Changes::take_page(json& page) {
  if (const auto items = page.find("items"); items != page.end() && items->is_array())
    for (auto& item : *items) {
      listed_.insert(text_at(item, "/metadata/name"));
      report(Change::Kind::added, item);
    }
  listed_version_ = text_at(page, "/metadata/resourceVersion");
}

void Changes::end_list() {
  std::vector<json> gone;
  for (const auto& [name, known] : known_)
    if (!listed_.contains(name))
      gone.push_back(json{{"metadata", {{"name", name}, {"uid", known.uid}}}});
  for (auto& object : gone) report(Change::Kind::deleted, object);
  version_ = listed_version_;
}

bool Changes::take_line(std::string_view line) {
  if (line.empty() || error_) return false;
  if (!core::is_within(line, {.bytes = max_event})) return false;
  auto event = json::parse(line, is_kept, false);
  const auto type = text_at(event, "/type");
  if (!event.is_object() || !event.contains("object"))
    return false;  // The stream was interrupted within the line, which will be sent again.
  auto& object = event["object"];
  if (type == "ERROR") {
    error_.emplace(number_at(object, "/code"), text_at(object, "/reason"),
                   "the watch of " + path_ + " was ended: " + text_at(object, "/message"),
                   std::vector<std::string>());
    return true;
  }
  if (auto version = text_at(object, "/metadata/resourceVersion"); !version.empty())
    version_ = std::move(version);
  if (type == "ADDED" || type == "MODIFIED") report(Change::Kind::modified, object);
  if (type == "DELETED") report(Change::Kind::deleted, object);
  return true;
}

}  // namespace pipeline::kubernetes_api
