// The parts of PodStaging for outputs that pods upload to the keys of their artifacts. A pod asks
// for URLs of these keys after its step has ended, when it knows the digests (stager/question.hpp).
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "async/sleep.hpp"
#include "core/bounded_json.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "orchestrators/kubernetes/pod_staging.hpp"
#include "orchestrators/kubernetes/sent_output.hpp"
#include "orchestrators/kubernetes/staging_keys.hpp"

namespace pipeline::orchestrators::kubernetes {

using blobs::BlobError;
using kubernetes_api::at;
using kubernetes_api::list_at;
using kubernetes_api::text_at;
using nlohmann::json;
using Method = blobs::PodAccess::Method;

namespace {

constexpr std::chrono::seconds between_questions{1};
// A smaller output is copied on the server in less time than a question takes.
constexpr std::uint64_t min_direct = std::uint64_t{64} << 20;
// Seconds. A pod whose driver does not answer must not wait long: its node may be about to stop.
constexpr unsigned max_wait_for_answer = 30;

/// Returns the number of the parts in which a pod sends this many bytes.
std::uint64_t parts_of(std::uint64_t bytes) {
  const auto part = blobs::part_size(bytes, blobs::max_output_parts);
  return bytes / part + (bytes % part != 0);
}

/// Returns the answer on an output, if it is for this content; null otherwise.
json* answer_for(json& answers, const PodStaging::Sent& sent) {
  const auto found = answers.find(sent.name);
  if (found == answers.end() || text_at(*found, "/digest") != sent.artifact_digest() ||
      text_at(*found, "/kind") != sent.kind || at(*found, "/bytes") != sent.bytes)
    return nullptr;
  return &*found;
}

}  // namespace

bool PodStaging::may_ask(const Attempt& attempt) const {
  return !attempt.shell && artifacts_.is_verified_by_consumers() &&
         std::ranges::any_of(attempt.output_names, &AttemptOutput::may_stay);
}

async::Task<json> PodStaging::invite_question(const Attempt& attempt) {
  const auto folder = folder_of(attempt);
  json made;
  made["write"] = co_await pods_.presigned(Method::write, question_key(folder));
  made["answer"] = co_await pods_.presigned(Method::read, answer_key(folder));
  made["from"] = min_direct;
  made["seconds"] = max_wait_for_answer;
  co_return made;
}

/// Returns the answer on one output; null if the pod is to upload it as without a question.
async::Task<json> PodStaging::offer(const AttemptOutput& output, const Sent& asked) {
  json made;
  const auto digest = asked.artifact_digest();
  const bool has_content = (asked.is_file() || asked.is_tree()) && is_digest(digest);
  const bool has_valid_size = asked.bytes >= min_direct && asked.bytes <= store_.max_copy_bytes() &&
                              asked.tags.size() == parts_of(asked.bytes);
  if (!output.may_stay || !has_content || !has_valid_size) co_return made;
  const auto presence = co_await artifacts_.compare(digest, asked.is_tree(), asked.blob());
  if (presence == blobs::RemoteArtifacts::Presence::unknown) co_return made;
  if (presence == blobs::RemoteArtifacts::Presence::same) {
    made["is_there"] = true;
  } else {
    const auto id = co_await artifacts_.begin_upload(digest, asked.is_tree());
    if (id.empty()) co_return made;
    const auto key = blobs::RemoteArtifacts::key_of(digest, asked.is_tree());
    const auto count = static_cast<unsigned>(asked.tags.size());
    auto urls = co_await pods_.presigned_parts(key, id, count);
    made["key"] = key;
    made["upload"] = id;
    made["before"] = std::move(urls.before);
    made["after"] = std::move(urls.after);
    made["signatures"] = std::move(urls.signatures);
  }
  made["digest"] = digest;
  made["kind"] = asked.kind;
  made["bytes"] = asked.bytes;
  co_return made;
}

async::Task<> PodStaging::write_answers(const Attempt& attempt, json answers) {
  json document;
  document["outputs"] = std::move(answers);
  auto body = blobs::body_of(document.dump());
  co_await store_.put(answer_key(folder_of(attempt)), std::move(body), &attempt.io.cancel);
}

/// Returns the answers that this driver or one before it has given, by the outputs' names.
async::Task<json> PodStaging::given_answers(std::string folder) {
  const auto text = co_await store_.find_text(answer_key(folder));
  const auto document = core::parse_json(text.value_or(""));
  auto answers = at(document, "/outputs");
  if (!answers.is_object()) answers = json::object();
  for (const auto& given : answers)
    if (const auto id = text_at(given, "/upload"); !id.empty())
      uploads_[folder][text_at(given, "/key")] = id;
  co_return answers;
}

/// Lets forget() remove the question and its answer.
void PodStaging::note_documents(const std::string& folder) {
  documents_.insert(question_key(folder));
  documents_.insert(answer_key(folder));
}

async::Task<> PodStaging::answer(const Attempt& attempt, core::CancelSource& enough) {
  if (!may_ask(attempt)) co_return;
  try {
    const auto folder = folder_of(attempt);
    std::optional<std::string> text;
    while (!text) {
      co_await async::sleep(between_questions, &enough);
      if (enough.level() != core::StopLevel::none) co_return;
      try {
        text = co_await store_.find_text(question_key(folder), &enough, blobs::Lookup::optional);
      } catch (const core::EnvironmentError& error) {
        core::log::info(error.what());
      }
    }
    note_documents(folder);
    auto answers = co_await given_answers(folder);
    if (!answers.empty()) co_return;  // A driver that was killed has answered.
    const auto asked = core::parse_json(*text);
    const auto& rows = list_at(asked, "/outputs");
    for (const auto& output : attempt.output_names) {
      const auto row = std::ranges::find_if(
          rows, [&](const json& each) { return text_at(each, "/name") == output.name; });
      if (row == rows.end()) continue;
      const Sent sent(*row);
      auto made = co_await offer(output, sent);
      if (made.is_null()) continue;
      if (const auto id = text_at(made, "/upload"); !id.empty())
        uploads_[folder][text_at(made, "/key")] = id;
      answers[output.name] = std::move(made);
    }
    co_await write_answers(attempt, std::move(answers));
  } catch (const core::EnvironmentError& error) {
    core::log::info(error.what());  // The pod continues without an answer.
  }
}

async::Task<json> PodStaging::answers_to(const Attempt& attempt, const json& report) {
  json answers = json::object();
  if (at(report, "/asked") != true) co_return answers;
  const auto folder = folder_of(attempt);
  note_documents(folder);
  answers = co_await given_answers(folder);
  co_return answers;
}

/// Makes sure that the store has the output as an artifact, to whose key the pod has sent it, or
/// which existed before. Throws BlobError if the store does not have the artifact.
async::Task<> PodStaging::finish_direct(const Attempt& attempt, Sent& sent, json& answers) {
  auto* const given = answer_for(answers, sent);
  if (!given)
    throw BlobError(BlobError::Kind::missing_blob,
                    "no driver has allowed its pod to write " + sent.artifact_digest());
  const auto digest = sent.artifact_digest(), id = text_at(*given, "/upload");
  sent.key = blobs::RemoteArtifacts::key_of(digest, sent.is_tree());
  // `is_completed` is recorded just before the upload is completed, if the store does not have the
  // artifact then. So a driver that follows a killed one knows that an artifact that it finds comes
  // from this upload.
  const bool is_first = at(*given, "/is_completed") != true;
  if (is_first) {
    const auto presence = co_await artifacts_.compare(digest, sent.is_tree(), sent.blob());
    if (presence == blobs::RemoteArtifacts::Presence::same) co_return;
    if (presence == blobs::RemoteArtifacts::Presence::unknown || id.empty())
      throw BlobError(
          BlobError::Kind::missing_blob,
          artifacts_.url() + " has other content under " + sent.key + " than was sent, or none");
    (*given)["is_completed"] = true;
    co_await write_answers(attempt, answers);
  }
  std::optional<BlobError> refused;
  try {
    co_await artifacts_.complete_upload(id, digest, sent.is_tree(), sent.blob());
  } catch (const BlobError& error) {
    refused = error;
  }
  if (!refused) uploads_[folder_of(attempt)].erase(sent.key);
  if (!refused) co_return;
  const bool is_damaged = refused->kind() == BlobError::Kind::damaged_blob;
  if (is_first && is_damaged) co_await store_.remove(sent.key);
  throw BlobError(*refused);
}

/// Aborts uploads to artifacts' keys that the pod has not used, because the answer came too late or
/// another pod has written the same. Uploads to the attempt's own keys have been completed or
/// aborted before.
async::Task<> PodStaging::abort_unused(std::string folder) {
  auto found = uploads_.extract(folder);
  if (found.empty()) co_return;
  std::erase_if(found.mapped(), [](const auto& each) { return each.first.starts_with("runs/"); });
  co_await abort_uploads(found.mapped());
}

}  // namespace pipeline::orchestrators::kubernetes
