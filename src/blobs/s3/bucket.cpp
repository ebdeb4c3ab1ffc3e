#include "blobs/s3/bucket.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "async/parallel.hpp"
#include "async/sleep.hpp"
#include "blobs/error_document.hpp"
#include "blobs/s3/bucket_call.hpp"
#include "core/diagnostic.hpp"
#include "core/digest.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "core/project.hpp"
#include "core/user_environment.hpp"
#include "net/silence.hpp"
#include "net/trust.hpp"
#include "net/url.hpp"

namespace pipeline::blobs::s3 {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t max_parts = 10'000;  // Maximum number of parts of an upload.
constexpr unsigned few_tries = 4;            // Tries without an answer of lookups and probe().
// Bytes that a slow server copies in a second; it sends nothing meanwhile.
constexpr std::uint64_t server_pace = std::uint64_t{16} << 20;
// Codes of libcurl: CURLE_UNSUPPORTED_PROTOCOL and so on.
constexpr int unsupported_protocol = 1, malformed_url = 3, unknown_host = 6, failed_handshake = 35,
              untrusted_certificate = 60, unusable_ca_file = 77;

/// Returns the tag as text of an XML element, without `<`, `>` and `&`, which no tag has.
std::string quoted_tag(std::string tag) {
  std::string text;
  for (const char c : tag)
    if (c == '"')
      text += "&quot;";
    else if (c != '<' && c != '>' && c != '&')
      text += c;
  return text;
}

/// Fills unset settings from the environment or ~/.aws.
BucketSettings completed(BucketSettings settings) {
  if (!settings.endpoint.empty() && !core::is_named_server(settings.endpoint))
    throw core::EnvironmentError(
        "credentials for " + settings.endpoint +
            " are not sent: only a file of the project names this server",
        {"if it is yours, name it: `export AWS_ENDPOINT_URL_S3=" + settings.endpoint +
         "`, or put the profile into ~/.config/pipe/profiles.yaml"});
  for (const char* name : {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"})
    if (settings.endpoint.empty()) settings.endpoint = core::variable(name);
  if (settings.region.empty()) settings.region = region_of(settings.aws_profile);
  if (settings.region.empty()) settings.region = "us-east-1";
  return settings;
}

}  // namespace

bool is_permanent(const net::TransportError& error) {
  return error.curl_code() == unsupported_protocol || error.curl_code() == malformed_url ||
         net::is_about_trust(error);
}

Bucket::Bucket(asio::io_context& loop, BucketSettings settings, async::RetryPolicy retry_policy)
    : loop_(loop),
      settings_(completed(std::move(settings))),
      retry_policy_(retry_policy),
      credentials_(loop, settings_.aws_profile),
      address_(settings_.endpoint, settings_.bucket, settings_.region, settings_.path_style),
      pod_address_(settings_.pod_endpoint.empty() ? settings_.endpoint : settings_.pod_endpoint,
                   settings_.bucket, settings_.region, settings_.path_style),
      http_(loop) {
  if (!settings_.certificate_authority.empty())
    authorities_ = core::read_file(settings_.certificate_authority);
}
Bucket::~Bucket() = default;

BucketIdentity Bucket::identity() const {
  return {settings_.bucket, address_.origin(), settings_.region, origin_of_keys_};
}

async::Task<FoundKeys> Bucket::keys() {
  auto found = co_await credentials_.find();
  origin_of_keys_ = found.origin;
  co_return found;
}

async::Task<net::Request> Bucket::signed_request(const Call& call) {
  const auto found = co_await keys();
  SignedCall to_sign;
  to_sign.method = call.method;
  to_sign.host = address_.host();
  to_sign.path = address_.path(call.key.empty() ? "" : settings_.prefix + call.key);
  to_sign.query = call.query;
  to_sign.headers = call.headers;
  to_sign.payload_hash =
      call.payload_hash.empty() ? core::sha256(call.text).hex() : call.payload_hash;
  const CredentialScope scope{
      settings_.region, std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now())};
  net::Request request;
  request.method = call.method;
  request.url = address_.origin() + net::url_encode(to_sign.path, "/") +
                (call.query.empty() ? "" : "?" + query_text(call.query));
  for (const auto& [name, value] : sign(to_sign, found.keys, scope))
    request.headers.push_back(name + ": " + value);
  request.headers.emplace_back("User-Agent: pipe");
  request.tls.ca = authorities_;
  if (core::log::debug_enabled()) core::log::debug("s3: " + call.method + " " + to_sign.path);
  co_return request;
}

async::Task<net::Response> Bucket::try_once(Call& call) {
  auto request = co_await signed_request(call);
  if (call.body) {
    request.headers.emplace_back("Content-Type: application/octet-stream");
    request.headers.push_back("Content-Length: " + std::to_string(call.size));
    request.body_source = [&call, sent = std::uint64_t{0}](std::span<char> into) mutable {
      const auto left = std::min<std::uint64_t>(into.size(), call.size - sent);
      const auto count = left == 0 ? 0 : call.body->read(call.offset + sent, into.first(left));
      if (left > 0 && count == 0)
        throw core::EnvironmentError(
            "cannot " + call.what + " the remote store: the file became shorter while it was sent");
      sent += count;
      return count;
    };
    if (call.size == 0) request.body_source = nullptr;
  } else if (!call.text.empty()) {
    request.headers.emplace_back("Content-Type: application/xml");
    request.body = call.text;
  } else if (call.method == "PUT") {
    request.headers.emplace_back("Content-Length: 0");
  }
  // A transfer may take long, but a server that sends nothing for too long is considered gone. A
  // download has an hour, an upload a second for each 64 KiB.
  const std::chrono::seconds work(call.server_bytes / server_pace);
  request.silence = net::max_silence() + work;
  request.timeout =
      call.is_lookup
          ? 10s
          : 60s + work + std::chrono::seconds((call.on_body ? 3600 : 0) + call.size / (64 << 10));
  co_return co_await http_.send(std::move(request), call.on_body, call.cancel, call.on_headers);
}

async::Task<> Bucket::pause(async::Backoff& backoff, const std::string& why,
                            core::CancelSource* cancel,
                            std::optional<std::chrono::seconds> wanted) {
  limit_.note_failure();
  const auto time = backoff.next(wanted);
  core::log::info("s3: " + why + "; once more in " + std::to_string(time.count()) + " ms");
  co_await async::sleep(time, cancel);
  if (cancel && cancel->level() != core::StopLevel::none)
    throw core::EnvironmentError("stopped while the remote store did not answer: " + why);
}

core::EnvironmentError Bucket::unreachable(const std::string& what,
                                           const net::TransportError& error) const {
  std::vector<std::string> advice;
  const auto code = error.curl_code();
  if (code == untrusted_certificate || code == unusable_ca_file ||
      (code == failed_handshake && net::is_about_trust(error)))
    advice = {
        "its certificate is from a CA that this machine does not know: name that CA's file, "
        "`certificate_authority: ca.pem`, under `artifact_store`"};
  else if (code == unknown_host)
    advice = {
        "there is no host of that name: correct `endpoint`; if only HOST itself has an address, "
        "and not BUCKET.HOST, write `path_style: true`"};
  else
    advice = {"check `endpoint` under `artifact_store`, the address of the server" +
              std::string(address_.is_amazon() ? "; without it, the server is Amazon's" : "")};
  return core::EnvironmentError(
      "cannot " + what + " s3://" + settings_.bucket + ": " + error.what(), std::move(advice));
}

void Bucket::stop_calls_by(core::CancelSource& run, core::StopLevel from) {
  run_ = &run;
  listener_.reset();
  stopped_.rearm();
  listener_.emplace(run, [this, from](core::StopLevel level) {
    if (level >= from) stopped_.stop(level);
  });
}

async::Task<net::Response> Bucket::call(Call call) {
  if (!call.cancel) call.cancel = &stopped_;
  async::Backoff backoff(call.is_lookup ? retry_policy_.for_short_wait(few_tries) : retry_policy_);
  for (;;) {
    std::string why;
    std::optional<std::chrono::seconds> wanted;
    try {
      auto response = co_await try_once(call);
      // Amazon's server answers 200 before it knows the result of a copy or a completion. Other
      // responses are not searched, because an object can contain any text.
      const bool may_fail_late = call.method == "POST" || call.method == "PUT";
      const bool is_refused = response.status >= 300 ||
                              (may_fail_late && response.body.find("<Error>") != std::string::npos);
      if (!is_refused || (response.status == 404 && call.may_be_missing)) co_return response;
      const RefusedResponse answer{response.status, response.body,
                                   response.header("x-amz-bucket-region")};
      const auto error = refusal(call.what, answer, identity());
      const bool is_transient = is_retryable(error.status(), error.code()) ||
                                (response.status < 300 && error.code() == "InternalError");
      if (!is_transient || backoff.exhausted()) throw S3Error(error);
      why = error.what();
      wanted = net::wanted_pause(response);
    } catch (const net::TransportError& error) {
      if (call.cancel && call.cancel->level() != core::StopLevel::none) throw;
      if (error.is_unanswered()) backoff.count_unanswered();
      if (is_permanent(error) || backoff.exhausted()) throw unreachable(call.what, error);
      why = error.what();
    }
    co_await pause(backoff, why, call.cancel, wanted);
  }
}

async::Task<> Bucket::probe() {
  // Another object, so that concurrent calls of this one keep their retry policy.
  Bucket bucket(loop_, settings_, retry_policy_.for_short_wait(few_tries));
  if (run_) bucket.stop_calls_by(*run_, core::StopLevel::graceful);
  const auto key = "pipe-probe-" + std::to_string(std::random_device{}());
  const std::string text = "written to see whether it can be\n";
  co_await bucket.put(key, body_of(text));
  const auto read = co_await bucket.get_text(key);
  if (read != text)
    throw core::EnvironmentError("an object that was written to s3://" + settings_.bucket + " at " +
                                 address_.origin() + " was read with other content");
  co_await bucket.remove(key);
}

async::Task<std::string> Bucket::put_part(std::string key, Query query, BodyPart part,
                                          core::CancelSource* cancel) {
  core::Hasher hasher;
  std::array<char, 64 << 10> piece;
  for (std::uint64_t done = 0; done < part.size;) {
    const auto wanted = std::min<std::uint64_t>(piece.size(), part.size - done);
    const auto count = part.body.read(part.offset + done, std::span(piece).first(wanted));
    if (count == 0)
      throw core::EnvironmentError(
          "cannot write " + key +
          " to the remote store: the file became shorter while it was read");
    hasher.update(std::string_view(piece.data(), count));
    done += count;
  }
  Call put("write " + key + " to", "PUT", key);
  put.query = std::move(query);
  put.payload_hash = hasher.finish().hex();  // The server compares it.
  put.body = &part.body;
  put.offset = part.offset;
  put.size = part.size;
  put.cancel = cancel;
  const auto begin = std::chrono::steady_clock::now();
  const auto response = co_await call(std::move(put));
  limit_.note_success(part.size, std::chrono::steady_clock::now() - begin);
  co_return response.header("etag");
}

async::Task<> Bucket::put(std::string key, Body body, core::CancelSource* cancel) {
  if (body.size <= min_part) {
    Query none;
    const BodyPart whole{body, 0, body.size};
    co_await put_part(key, std::move(none), whole, cancel);
    co_return;
  }
  const auto size = part_size(body.size, max_parts), count = (body.size + size - 1) / size;
  const WritePart put_one = [&](std::string id, std::size_t i) -> async::Task<std::string> {
    Query query{{"partNumber", std::to_string(i + 1)}, {"uploadId", std::move(id)}};
    const BodyPart part{body, i * size, std::min(size, body.size - i * size)};
    co_return co_await put_part(key, std::move(query), part, cancel);
  };
  co_await write_in_parts(key, count, put_one);
}

async::Task<> Bucket::write_in_parts(std::string key, std::size_t count, WritePart write_part) {
  const auto id = co_await begin_upload(key);
  std::vector<std::string> tags(count);
  const std::function<std::size_t()> limit = [this] { return limit_.value(); };
  const std::function<async::Task<>(std::size_t)> write_one = [&](std::size_t i) -> async::Task<> {
    tags[i] = co_await write_part(id, i);
  };
  std::exception_ptr error;
  try {
    co_await async::for_each(count, limit, write_one);
    co_await complete_upload(key, id, tags);
  } catch (...) {
    error = std::current_exception();
  }
  if (!error) co_return;
  try {
    co_await abort_upload(key, id);
  } catch (const core::EnvironmentError& failed) {
    core::log::info(failed.what());
  }
  std::rethrow_exception(error);
}

async::Task<std::optional<std::string>> Bucket::put_if(std::string key, std::string text,
                                                       std::string tag) {
  Call put("write " + key + " to", "PUT", key);
  put.payload_hash = core::sha256(text).hex();
  const auto body = body_of(std::move(text));
  put.body = &body;
  put.size = body.size;
  if (tag.empty())
    put.headers["if-none-match"] = "*";
  else
    put.headers["if-match"] = std::move(tag);
  std::optional<std::string> written;
  bool knows_conditions = true;
  try {
    const auto response = co_await call(std::move(put));
    written = response.header("etag");
  } catch (const S3Error& error) {
    // https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
    knows_conditions = error.status() != 501;
    const bool is_unmet = error.status() == 412 || error.code() == "ConditionalRequestConflict" ||
                          (error.status() == 404 && error.code() == "NoSuchKey");
    if (knows_conditions && !is_unmet) throw;
  }
  if (!knows_conditions) {
    co_await this->put(std::move(key), body);
    written.emplace();
  }
  co_return written;
}

async::Task<> Bucket::remove(std::string key) {
  Call removal("remove " + key + " from", "DELETE", key);
  removal.may_be_missing = true;
  co_await call(std::move(removal));
}

async::Task<std::string> Bucket::begin_upload(std::string key) {
  Call begin("begin to write " + key + " to", "POST", key);
  begin.query["uploads"];
  const auto response = co_await call(std::move(begin));
  auto id = xml_text(response.body, "UploadId");
  if (id.empty())
    throw core::EnvironmentError(
        "the server at " + address_.origin() +
        " does not support uploads in parts: " + core::printable(response.body.substr(0, 200)));
  co_return id;
}

async::Task<> Bucket::complete_upload(std::string key, std::string upload,
                                      std::vector<std::string> tags) {
  Call complete("complete " + key + " in", "POST", key);
  complete.server_bytes = tags.size() * min_part;  // Some servers write the object only now.
  complete.query["uploadId"] = std::move(upload);
  complete.text = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (std::size_t i = 0; i < tags.size(); ++i)
    complete.text += "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>" +
                     quoted_tag(tags[i]) + "</ETag></Part>";
  complete.text += "</CompleteMultipartUpload>";
  std::optional<S3Error> refused;
  try {
    co_await call(std::move(complete));
  } catch (const S3Error& error) {
    refused = error;
  }
  if (!refused) co_return;
  // The upload was completed before, and the response was lost.
  bool is_there = refused->code() == "NoSuchUpload";
  if (is_there) is_there = co_await has(key);
  if (!is_there) throw S3Error(*refused);
}

async::Task<> Bucket::abort_upload(std::string key, std::string upload) {
  Call abort("give up " + key + " in", "DELETE", key);
  abort.query["uploadId"] = std::move(upload);
  // A stop does not cancel this call, so that no part stays in the bucket. As a lookup, the call is
  // not retried for long.
  core::CancelSource never;
  abort.cancel = &never;
  abort.may_be_missing = abort.is_lookup = true;
  co_await call(std::move(abort));
}

settings::RemoteStoreSettings Bucket::settings_in_pod(
    const std::filesystem::path& authorities) const {
  auto settings = settings_;
  if (!settings.pod_endpoint.empty()) settings.endpoint = settings.pod_endpoint;
  settings.aws_profile.clear();
  if (!settings.certificate_authority.empty()) settings.certificate_authority = authorities;
  return store_settings(settings);
}

async::Task<PodAccess::Keys> Bucket::keys_for_pod() {
  const auto found = co_await keys();
  Keys keys{.variables = {{"AWS_ACCESS_KEY_ID", found.keys.id},
                          {"AWS_SECRET_ACCESS_KEY", found.keys.secret}},
            .origin = found.origin,
            .expiry = found.expiry};
  if (!found.keys.session_token.empty())
    keys.variables["AWS_SESSION_TOKEN"] = found.keys.session_token;
  co_return keys;
}

const Kind& kind() {
  static const Kind kind{
      .scheme = scheme,
      .example = "s3://team/pipe",
      .can_presign = true,
      .options = bucket_options(),
      .read_address = [](const std::string& text,
                         const std::filesystem::path&) -> std::optional<std::string> {
        BucketSettings settings;
        return read_bucket(text, settings) ? std::optional(url_of(settings)) : std::nullopt;
      },
      .open = [](asio::io_context& loop, const settings::RemoteStoreSettings& settings,
                 async::RetryPolicy retry_policy) -> std::unique_ptr<BlobStore> {
        return std::make_unique<Bucket>(loop, bucket_settings(settings), retry_policy);
      }};
  return kind;
}

}  // namespace pipeline::blobs::s3
