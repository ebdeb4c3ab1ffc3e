#include "orchestrators/kubernetes/staged_checkpoint.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "core/bounded_json.hpp"
#include "core/digest.hpp"
#include "orchestrators/containers/container_layout.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;
using Method = blobs::PodAccess::Method;

constexpr unsigned parts_of_slot = 64;  // Parts of at most 5 GiB each: 320 GiB.
constexpr std::size_t family_length = 32;
constexpr std::array slots{"a", "b", "c"};

std::string folder_of(const std::string& key) { return "checkpoints/" + key + "/"; }
std::string head_of(const std::string& key) { return folder_of(key) + "head.json"; }

std::string family_of(const Attempt& attempt) {
  core::Hasher hasher;
  hasher.field(attempt.run_id).field(attempt.step.name).field(std::to_string(attempt.number));
  return hasher.finish().hex().substr(0, family_length);
}

/// Returns the slot that the head names, `FAMILY/SLOT`; empty for any other text. The step could
/// have written the head, and the name becomes a part of keys.
std::string named_slot(const std::optional<std::string>& head) {
  const auto written = core::parse_json(head.value_or(""));
  if (!written.is_object() || !written.contains("slot") || !written["slot"].is_string()) return {};
  const std::string slot = written["slot"];
  if (slot.size() != family_length + 2 || slot[family_length] != '/' ||
      std::ranges::find(slots, slot.substr(family_length + 1)) == slots.end() ||
      slot.find_first_not_of("0123456789abcdef") != family_length)
    return {};
  return slot;
}

async::Task<json> signed_slot(blobs::BlobStore& store, Method method, std::string key) {
  auto urls = co_await store.pod_access()->presigned_series(method, key + ".", parts_of_slot);
  json parts;
  parts["before"] = std::move(urls.before);
  parts["after"] = std::move(urls.after);
  parts["signatures"] = std::move(urls.signatures);
  co_return parts;
}

/// Removes the blobs of the checkpoint, except those whose names begin with one of the prefixes.
async::Task<> remove_blobs(blobs::BlobStore& store, std::string key,
                           std::vector<std::string> kept_prefixes) {
  const auto folder = folder_of(key);
  const auto blobs = co_await store.list(folder);
  for (const auto& blob : blobs)
    if (std::ranges::none_of(kept_prefixes, [&](const std::string& prefix) {
          return blob.starts_with(folder + prefix);
        }))
      co_await store.remove(blob);
}

}  // namespace

async::Task<CheckpointDocuments> offer_checkpoint(blobs::BlobStore& store, const Attempt& attempt) {
  const auto& key = attempt.checkpoint_key;
  const auto& layout = containers::container_layout();
  auto& pods = *store.pod_access();
  const auto own = family_of(attempt);
  const auto head = co_await store.find_text(head_of(key), &attempt.io.cancel);
  const auto last = named_slot(head);
  std::vector<std::string> kept{"head.json", own + "/"}, families{own};
  if (!last.empty()) kept.push_back(last + ".");
  if (!last.empty() && !last.starts_with(own)) families.push_back(last.substr(0, family_length));
  co_await remove_blobs(store, key, std::move(kept));

  CheckpointDocuments documents;
  auto& restore = documents.restore;
  auto& save = documents.save;
  restore["to"] = save["path"] = layout.checkpoint;
  restore["head"] = save["seen"] = co_await pods.presigned(Method::read, head_of(key));
  for (const auto& family : families)
    for (const std::string slot : slots) {
      const auto name = family + "/" + slot;
      restore["slots"][name] = co_await signed_slot(store, Method::read, folder_of(key) + name);
    }
  save["head"] = co_await pods.presigned(Method::write, head_of(key));
  save["note"] = layout.scratch + "/.pipe-checkpoint";
  save["copy"] = layout.scratch + "/.pipe-checkpoint-copy";
  for (const std::string slot : slots) {
    const auto name = own + "/" + slot;
    auto parts = co_await signed_slot(store, Method::write, folder_of(key) + name);
    parts["name"] = name;
    save["slots"].push_back(std::move(parts));
  }
  co_return documents;
}

async::Task<> remove_checkpoint(blobs::BlobStore& store, std::string key) {
  // The head goes first, so that it never names a slot of which parts are missing.
  co_await store.remove(head_of(key));
  co_await remove_blobs(store, key, {});
}

}  // namespace pipeline::orchestrators::kubernetes
