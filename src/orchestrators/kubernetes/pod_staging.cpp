#include "orchestrators/kubernetes/pod_staging.hpp"

#include <algorithm>

#include "core/bounded_json.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "file_tree/tree.hpp"
#include "kubernetes_api/json.hpp"
#include "orchestrators/containers/container_layout.hpp"
#include "orchestrators/kubernetes/pod_failure.hpp"
#include "orchestrators/kubernetes/sent_output.hpp"
#include "orchestrators/kubernetes/staged_checkpoint.hpp"
#include "orchestrators/kubernetes/staging_keys.hpp"

namespace pipeline::orchestrators::kubernetes {

using nlohmann::json;
using Method = blobs::PodAccess::Method;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t max_list_in_secret = 200'000;
// Conditions and pages read small outputs, which are therefore fetched at once.
constexpr std::uint64_t small_output = 1 << 20;

}  // namespace

std::string damaged_input_of(const json& pod) {
  for (const auto& status : kubernetes_api::list_at(pod, "/status/initContainerStatuses")) {
    const auto report =
        core::parse_json(kubernetes_api::text_at(status, "/state/terminated/message"));
    if (report.is_object() && report.contains("damaged"))
      return kubernetes_api::text_at(report, "/damaged");
  }
  return {};
}

async::Task<std::string> PodStaging::tree_digest_of(const fs::path& folder) {
  co_return co_await asio::co_spawn(
      pool_,
      [&folder]() -> async::Task<std::string> {
        auto nodes = file_tree::scan_tree(folder);
        file_tree::hash_tree(folder, nodes);
        co_return file_tree::tree_digest(nodes).hex();
      },
      asio::use_awaitable);
}

/// Describes one item for the pod to download, and makes sure that the store has it.
/// @param digest the artifact's; empty: not known yet
async::Task<json> PodStaging::item(const Attempt& attempt, std::string to, fs::path path,
                                   std::string digest) {
  const bool is_tree = fs::is_directory(path);
  if (digest.empty() && is_tree) digest = co_await tree_digest_of(path);
  if (digest.empty()) digest = core::sha256_file(path).hex();
  const auto key = co_await artifacts_.send(digest, path, &attempt.io.cancel);
  json made;
  made["to"] = std::move(to);
  made["kind"] = is_tree ? "tree" : "file";
  made["digest"] = std::move(digest);
  made["executable"] = !is_tree && blobs::is_executable_file(path);
  made["url"] = co_await pods_.presigned(Method::read, key);
  co_return made;
}

/// Returns the key of an artifact that this machine may not have. Throws LostInput if the store
/// does not have it.
async::Task<std::string> PodStaging::stored_key(std::string digest, bool is_tree) {
  auto key = blobs::RemoteArtifacts::key_of(digest, is_tree);
  const bool is_there = co_await artifacts_.has(key);
  if (!is_there) throw LostInput(artifacts_.url() + " no longer has " + key, digest);
  co_return key;
}

async::Task<json> PodStaging::stored_item(std::string to, std::string digest,
                                          model::Elsewhere place) {
  auto key = co_await stored_key(digest, place.is_directory);
  json made;
  made["to"] = std::move(to);
  made["kind"] = place.is_directory ? "tree" : "file";
  made["digest"] = std::move(digest);
  made["executable"] = place.is_executable;
  made["url"] = co_await pods_.presigned(Method::read, key);
  co_return made;
}

async::Task<json> PodStaging::upload(const Attempt& attempt, const AttemptOutput& output,
                                     std::string path) {
  const auto folder = folder_of(attempt), key = output_key(folder, output.name);
  const auto id = co_await pods_.begin_upload(key);
  uploads_[folder][key] = id;
  auto urls = co_await pods_.presigned_parts(key, id, blobs::max_output_parts);
  json made;
  made["name"] = output.name;
  made["path"] = std::move(path);
  made["key"] = key;
  made["whole"] = co_await pods_.presigned(Method::write, key);
  made["upload"] = id;
  made["stays"] = output.may_stay && artifacts_.is_verified_by_consumers();
  made["before"] = std::move(urls.before);
  made["after"] = std::move(urls.after);
  made["signatures"] = std::move(urls.signatures);
  co_return made;
}

/// Stores a long list beside the attempt's outputs: a Secret holds at most 1 MiB, and a URL can
/// take more than 1 KiB.
async::Task<> PodStaging::shorten(const Attempt& attempt, json& document, std::string list) {
  auto text = document.at(list).dump();
  if (text.size() <= max_list_in_secret) co_return;
  auto body = blobs::body_of(std::move(text));
  auto url =
      co_await put_document(attempt, std::move(body), document_key(folder_of(attempt), list));
  document.erase(list);
  document["lists"][list] = std::move(url);
}

async::Task<StagedFiles> PodStaging::stage_in(const Attempt& attempt) {
  const auto& layout = containers::container_layout();
  json items = json::array();
  items.push_back(co_await item(attempt, layout.code, attempt.code, attempt.code_digest));
  for (const auto& input : attempt.inputs) {
    const auto to = path_of(input, layout);
    if (input.remote) {
      items.push_back(co_await address_item(attempt, to, input));
      continue;
    }
    if (input.elsewhere) {
      items.push_back(co_await stored_item(to, input.digest, *input.elsewhere));
      continue;
    }
    if (input.pieces.empty()) {
      items.push_back(co_await item(attempt, to, input.path, input.digest));
      continue;
    }
    items.push_back(co_await pieces_item(attempt, to, input));
    items.push_back(co_await index_item(attempt, to, input));
  }
  json outputs = json::array();
  for (const auto& output : attempt.shell ? std::vector<AttemptOutput>() : attempt.output_names)
    outputs.push_back(co_await upload(attempt, output, path_of(output, layout)));

  json fetch, collect;
  fetch["items"] = std::move(items);
  if (!addresses_of(attempt).empty())
    fetch["wanted"] = co_await pods_.presigned(Method::write, wanted_key(folder_of(attempt)));
  collect["outputs"] = std::move(outputs);
  if (may_ask(attempt)) collect["question"] = co_await invite_question(attempt);
  collect["failure"] = layout.scratch + "/" + std::string(failure_file_name);
  collect["report"] = co_await pods_.presigned(Method::write, report_key(folder_of(attempt)));
  if (!attempt.checkpoint_key.empty()) {
    auto checkpoint = co_await offer_checkpoint(store_, attempt);
    fetch["checkpoint"] = std::move(checkpoint.restore);
    collect["checkpoint"] = std::move(checkpoint.save);
  }
  if (const auto authorities = pods_.authorities(); !authorities.empty())
    fetch["authorities"] = collect["authorities"] = authorities;
  co_await shorten(attempt, fetch, "items");
  co_await shorten(attempt, collect, "outputs");
  StagedFiles staged;
  staged.fetch = fetch.dump();
  staged.collect = collect.dump();
  co_return staged;
}

async::Task<> PodStaging::finish_upload(const Sent& sent) {
  if (sent.direct) co_return;  // See finish_direct().
  if (sent.at_once)
    co_await pods_.abort_upload(sent.key, sent.upload);
  else
    co_await pods_.complete_upload(sent.key, sent.upload, sent.tags);
}

/// Completes the blob from its parts and downloads it to a file or folder.
async::Task<> PodStaging::download(const Attempt& attempt, const AttemptOutput& output,
                                   const Sent& sent, core::CancelSource& cancel) {
  const auto target = attempt.outputs / output.file_name;
  core::remove_tree(target);  // Removes what an earlier driver has downloaded of it.
  co_await finish_upload(sent);
  const auto received = co_await artifacts_.receive(
      sent.key, target, blobs::RemoteArtifacts::form_of(sent.is_tree(), sent.executable),
      sent.bytes, &cancel);
  if (received != sent.digest)
    throw core::EnvironmentError(
        "the output '" + output.name +
        "' was damaged in the remote store: its SHA-256 differs from that in the pod");
}

/// Makes the blob an artifact of the store without downloading it. Returns false if it has to be
/// downloaded. A step may have invented the digest, so readers of the artifact verify it.
async::Task<bool> PodStaging::leave(const AttemptOutput& output, const Sent& sent,
                                    AttemptResult& result) {
  if (!output.may_stay || !artifacts_.is_verified_by_consumers() || sent.bytes <= small_output)
    co_return false;
  const bool is_tree = sent.is_tree();
  const auto& digest = sent.artifact_digest();
  if (!is_digest(digest)) co_return false;
  co_await finish_upload(sent);
  bool is_kept = sent.direct;
  if (!is_kept) is_kept = co_await artifacts_.keep(sent.key, digest, is_tree, sent.blob());
  // The tar of a folder has all bytes of its files: more are an invention, and would count when
  // runs are removed down to a size.
  const auto bytes = is_tree ? std::min(sent.artifact_bytes, sent.bytes) : sent.bytes;
  if (is_kept)
    result.elsewhere[output.name] = {digest,
                                     model::Elsewhere{.is_directory = is_tree,
                                                      .is_executable = sent.executable && !is_tree,
                                                      .bytes = bytes,
                                                      .store = artifacts_.settings_json()}};
  co_return is_kept;
}

void PodStaging::see_damage(const Attempt& attempt, const std::string& digest) {
  if (digest.empty()) return;
  bool is_lost = false;
  const auto invalidate = [&](bool is_elsewhere, bool is_tree) {
    is_lost |= is_elsewhere;
    artifacts_.invalidate(blobs::RemoteArtifacts::key_of(digest, is_tree));
  };
  for (const auto& input : attempt.inputs) {
    if (input.digest == digest)
      invalidate(input.elsewhere.has_value(),
                 input.elsewhere ? input.elsewhere->is_directory : fs::is_directory(input.path));
    for (std::size_t i = 0; i < input.pieces.size(); ++i)
      if (const auto piece = input.pieces[i]; piece.digest.hex() == digest)
        invalidate(piece.is_elsewhere, piece.is_directory);
  }
  if (digest == attempt.code_digest)
    artifacts_.invalidate(blobs::RemoteArtifacts::key_of(digest, true));
  if (is_lost)
    throw LostInput(artifacts_.url() + " has other content than " + digest + ", or none", digest);
}

/// Downloads an output, and makes its blob an artifact of the store.
async::Task<> PodStaging::receive(const Attempt& attempt, const AttemptOutput& output,
                                  const Sent& sent) {
  const bool is_tree = sent.is_tree();
  co_await download(attempt, output, sent, attempt.io.cancel);
  auto digest = sent.digest;
  if (is_tree) digest = co_await tree_digest_of(attempt.outputs / output.file_name);
  co_await artifacts_.adopt(sent.key, std::move(digest), is_tree, sent.bytes);
}

/// Downloads an output of a failed attempt. Errors are only logged, because nothing depends on it.
async::Task<> PodStaging::receive_failed(const Attempt& attempt, const AttemptOutput& output,
                                         const Sent& sent) {
  core::CancelSource hurry;  // The attempt itself may have been stopped.
  const core::CancelSource::Listener listener(attempt.io.cancel, [&](core::StopLevel level) {
    if (level == core::StopLevel::immediate) hurry.stop(level);
  });
  std::optional<std::string> trouble;
  try {
    co_await download(attempt, output, sent, hurry);
  } catch (const std::exception& error) {
    trouble = error.what();
  }
  if (!trouble) co_return;
  core::log::info("an output of a failed attempt is not kept: " + *trouble);
  core::remove_tree(attempt.outputs / output.file_name);
}

async::Task<std::optional<Failure>> PodStaging::stage_out(const Attempt& attempt,
                                                          AttemptResult& result) {
  const bool succeeded = !result.failure;
  const auto folder = folder_of(attempt);
  std::string text;
  bool is_there = true;
  try {
    text = co_await store_.get_text(report_key(folder));
  } catch (const blobs::BlobError& error) {
    if (error.kind() != blobs::BlobError::Kind::missing_blob) throw;
    is_there = false;
  }
  const auto report = core::parse_json(text);
  if (!is_there || !report.is_object() || !report.contains("outputs") ||
      !report["outputs"].is_array()) {
    co_await abandon(attempt);
    if (!succeeded) co_return std::nullopt;
    co_return Failure{FailureKind::infrastructure,
                      "its pod succeeded, but has left no report in the remote store",
                      {},
                      {}};
  }
  auto answers = co_await answers_to(attempt, report);
  for (const auto& reported : report["outputs"]) {
    Sent sent(reported);
    const auto output = std::ranges::find(attempt.output_names, sent.name, &AttemptOutput::name);
    if (output == attempt.output_names.end() || sent.key != output_key(folder, output->name))
      continue;
    const bool is_sent = sent.is_file() || sent.is_tree();
    if (!is_sent || sent.direct) co_await pods_.abort_upload(sent.key, sent.upload);
    if (!is_sent || (sent.direct && !succeeded)) continue;
    if (!succeeded) {
      co_await receive_failed(attempt, *output, sent);
      continue;
    }
    std::optional<std::string> lost;
    try {
      if (sent.direct) co_await finish_direct(attempt, sent, answers);
      const bool stays = co_await leave(*output, sent, result);
      if (!stays) co_await receive(attempt, *output, sent);
    } catch (const blobs::BlobError& error) {
      if (error.kind() == blobs::BlobError::Kind::other) throw;
      lost = error.what();
    }
    if (!lost) continue;
    co_await abandon(attempt);
    co_return Failure{FailureKind::infrastructure,
                      "the remote store has lost the output '" + output->name +
                          "', which the step's pod had sent: " + *lost,
                      {retry_advice},
                      {}};
  }
  co_await abort_unused(folder);
  if (const auto failure = kubernetes_api::text_at(report, "/failure");
      !succeeded && !failure.empty())
    core::write_file_atomically(attempt.scratch / failure_file_name, failure);
  co_return std::nullopt;
}

async::Task<> PodStaging::abandon(const Attempt& attempt) {
  const auto found = uploads_.extract(folder_of(attempt));
  if (!found.empty()) co_await abort_uploads(found.mapped());
}

async::Task<> PodStaging::abort_uploads(std::map<std::string, std::string> uploads) {
  for (const auto& [key, id] : uploads) {
    try {
      co_await artifacts_.abort_upload(key, id);
    } catch (const core::EnvironmentError& error) {
      core::log::info(error.what());
    }
  }
}

async::Task<> PodStaging::forget(std::string run_id, std::string step, unsigned number,
                                 std::vector<std::string> outputs,
                                 std::vector<std::string> addresses) {
  const auto folder = folder_of(run_id, step, number);
  for (const auto& name : outputs) co_await store_.remove(output_key(folder, name));
  co_await store_.remove(report_key(folder));
  for (auto found = documents_.lower_bound(folder);
       found != documents_.end() && found->starts_with(folder);
       found = documents_.lower_bound(folder)) {
    auto key = *found;
    documents_.erase(found);
    co_await store_.remove(std::move(key));
  }
  if (addresses.empty()) co_return;
  co_await store_.remove(wanted_key(folder));
  for (const auto& name : addresses) co_await store_.remove(list_key(folder, name));
}

async::Task<> PodStaging::forget_run(std::string run_id) {
  try {
    const auto keys = co_await store_.list(folder_of_run(run_id));
    for (const auto& key : keys) co_await store_.remove(key);
  } catch (const core::EnvironmentError& error) {
    core::log::info(error.what());
  }
}

async::Task<> PodStaging::forget_checkpoint(std::string key) {
  co_await remove_checkpoint(store_, std::move(key));
}

}  // namespace pipeline::orchestrators::kubernetes
