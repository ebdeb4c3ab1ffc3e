// Reading from a bucket: objects, and lists of them.
#include <algorithm>
#include <charconv>
#include <utility>

#include "blobs/error_document.hpp"
#include "blobs/s3/bucket_call.hpp"
#include "core/file.hpp"
#include "core/page_tokens.hpp"
#include "core/quantity.hpp"
#include "core/transfer_advance.hpp"

namespace pipeline::blobs::s3 {
namespace {

// Maximum number of entries of a list; most pages have a thousand, of some 400 bytes each.
constexpr std::size_t max_entries = 1'000'000;
constexpr std::size_t max_list = std::size_t{1} << 30;  // Bytes of all pages.
// Maximum lengths of an object's name, in S3, and of its tag and of a continuation token.
constexpr std::size_t max_key = 1024, max_tag = 4096;

void check_length(const std::string& text, std::size_t max) {
  if (text.size() > max)
    throw core::EnvironmentError("the bucket's list has a name or tag of " +
                                 std::to_string(text.size()) + " bytes, which no object of S3 has");
}

}  // namespace

async::Task<bool> Bucket::has(std::string key) {
  Call head("look for " + key + " in", "HEAD", key);
  head.may_be_missing = true;
  const auto response = co_await call(std::move(head));
  co_return response.status < 300;
}

async::Task<net::Response> Bucket::head_of(std::string key) {
  Call head("look for " + key + " in", "HEAD", key);
  const bool asks = knows_checksums_;
  if (asks) head.headers["x-amz-checksum-mode"] = "ENABLED";
  head.may_be_missing = true;
  net::Response response;
  bool is_refused = false;
  try {
    response = co_await call(std::move(head));
  } catch (const S3Error& error) {
    // s3proxy refuses headers that it does not know.
    if (error.status() != 501 || !asks) throw;
    is_refused = true;
  }
  if (is_refused) {
    knows_checksums_ = false;
    response = co_await head_of(std::move(key));
  }
  co_return response;
}

async::Task<std::optional<Attestation>> Bucket::attest(std::string key) {
  const auto response = co_await head_of(std::move(key));
  std::optional<Attestation> found;
  if (response.status >= 300) co_return found;
  found.emplace();
  const auto size = response.header("content-length");
  std::from_chars(size.data(), size.data() + size.size(), found->size);
  found->tag = response.header("etag");
  std::erase(found->tag, '"');
  if (response.header("x-amz-checksum-type") != "COMPOSITE")
    found->crc64nvme = response.header("x-amz-checksum-crc64nvme");
  co_return found;
}

async::Task<> Bucket::get(std::string key, Range range,
                          std::function<void(std::string_view)> on_bytes,
                          core::CancelSource* cancel) {
  if (!cancel) cancel = &stopped_;
  auto received = range.begin;  // Offset of the next byte of the object to pass on.
  const auto end = range.size < unlimited - range.begin ? range.begin + range.size : unlimited;
  async::Backoff backoff(retry_policy_);
  core::TransferAdvance advance;
  while (received < end) {
    const bool is_part = received > 0 || end < unlimited;
    // Bytes to skip: a server that does not support ranges sends the whole object again.
    std::uint64_t again = 0;
    std::string why;
    std::optional<std::chrono::seconds> wanted;
    const auto before = received;
    const auto begun = std::chrono::steady_clock::now();
    try {
      Call get("read " + key + " from", "GET", key);
      if (is_part)
        get.headers["range"] = "bytes=" + std::to_string(received) + "-" +
                               (end < unlimited ? std::to_string(end - 1) : "");
      get.on_headers = [&](const net::Response& response) {
        const bool is_whole = response.header("content-range").empty();
        again = is_whole ? received : 0;
        if (is_part && is_whole && response.status < 300) has_ranges_ = false;
      };
      get.on_body = [&](std::string_view bytes) {
        const auto known = std::min<std::uint64_t>(again, bytes.size());
        again -= known;
        bytes.remove_prefix(known);
        bytes = bytes.substr(0, end - received);
        if (bytes.empty()) return;
        on_bytes(bytes);
        received += bytes.size();
      };
      get.cancel = cancel;
      const auto response = co_await try_once(get);
      if (response.status == 416 && is_part) co_return;  // The object ends here.
      if (response.status < 300) {
        limit_.note_success(received - before, std::chrono::steady_clock::now() - begun);
        co_return;
      }
      const RefusedResponse answer{response.status, response.body,
                                   response.header("x-amz-bucket-region")};
      const auto error = refusal(get.what, answer, identity());
      if (!is_retryable(error.status(), error.code()) || backoff.exhausted()) throw S3Error(error);
      why = error.what();
      wanted = net::wanted_pause(response);
    } catch (const net::TransportError& error) {
      if (cancel && cancel->level() != core::StopLevel::none) throw;
      if (error.is_unanswered()) backoff.count_unanswered();
      if (is_permanent(error) || backoff.exhausted())
        throw unreachable("read " + key + " from", error);
      why = error.what();
    }
    if (advance.has_advanced(received - range.begin)) backoff.reset();
    co_await pause(backoff, why, cancel, wanted);
  }
}

async::Task<std::optional<std::uint64_t>> Bucket::size_for_ranges(std::string key) {
  std::optional<std::uint64_t> size;
  if (!has_ranges_) co_return size;
  if (const auto found = co_await attest(std::move(key))) size = found->size;
  co_return size;
}

async::Task<std::optional<Tagged>> Bucket::find_tagged(std::string key, core::CancelSource* cancel,
                                                       Lookup lookup) {
  Call find("read " + key + " from", "GET", key);
  find.may_be_missing = true;
  find.is_lookup = lookup == Lookup::optional;
  find.cancel = cancel;
  std::string text;  // The response of the last try.
  find.on_headers = [&](const net::Response&) { text.clear(); };
  find.on_body = [&](std::string_view bytes) {
    if (text.size() + bytes.size() > core::max_text_bytes) throw too_large(key, url());
    text += bytes;
  };
  const auto what = find.what;
  auto response = co_await call(std::move(find));
  // The body of a 404 is a message of the server, not the content of an object.
  if (response.status == 404 && xml_text(response.body, "Code") == "NoSuchBucket") {
    const RefusedResponse answer{response.status, response.body, {}};
    throw refusal(what, answer, identity());
  }
  std::optional<Tagged> found;
  if (response.status < 300) found = Tagged{std::move(text), response.header("etag")};
  co_return found;
}

/// Passes each page of a list to `take`, which returns the number of entries found so far.
async::Task<> Bucket::read_list(std::string folder, Query query, std::size_t max,
                                std::function<std::size_t(std::string_view)> take,
                                core::CancelSource* cancel) {
  const auto refuse = [&](const std::string& why) {
    throw core::EnvironmentError("cannot list s3://" + settings_.bucket + "/" + folder + " at " +
                                 address_.origin() + ": " + why);
  };
  std::string rest;
  core::PageTokens tokens(max_tag);
  std::size_t bytes = 0;
  do {
    Call list("list " + folder + " in", "GET", "");
    list.query = query;
    list.query["list-type"] = "2";
    list.query["prefix"] = settings_.prefix + folder;
    if (!rest.empty()) list.query["continuation-token"] = rest;
    list.cancel = cancel;
    const auto response = co_await call(std::move(list));
    bytes += response.body.size();
    if (bytes > max_list) refuse("it is longer than " + core::format_bytes(max_list));
    if (take(response.body) > max)
      throw core::EnvironmentError("there are more than " + std::to_string(max) +
                                   " objects below s3://" + settings_.bucket + "/" + folder);
    const auto next = xml_text(response.body, "NextContinuationToken");
    if (!tokens.accept(next)) refuse("the server's list of objects does not end");
    if (next.empty() && xml_text(response.body, "IsTruncated") == "true")
      refuse("the server reports further objects, and sends no token to ask for them");
    rest = next;
  } while (!rest.empty());
}

async::Task<std::vector<Entry>> Bucket::entries(std::string prefix) {
  std::vector<Entry> found;
  auto all = co_await objects(std::move(prefix), max_entries);
  for (auto& object : all) found.push_back({std::move(object.key), object.size, object.modified});
  co_return found;
}

async::Task<std::vector<Object>> Bucket::objects(std::string prefix, std::size_t max,
                                                 core::CancelSource* cancel) {
  std::vector<Object> found;
  const std::function<std::size_t(std::string_view)> take = [&](std::string_view page) {
    for (const auto text : xml_elements(page, "Contents")) {
      Object object{xml_text(text, "Key"), 0, xml_text(text, "ETag")};
      // Without a time the object counts as new, so that no age makes anybody remove it.
      object.modified =
          parse_time(xml_text(text, "LastModified")).value_or(std::chrono::system_clock::now());
      check_length(object.key, max_key);
      check_length(object.etag, max_tag);
      const auto size = xml_text(text, "Size");
      std::from_chars(size.data(), size.data() + size.size(), object.size);
      if (!object.key.starts_with(settings_.prefix + prefix)) continue;
      object.key.erase(0, settings_.prefix.size());
      found.push_back(std::move(object));
    }
    return found.size();
  };
  Query query;
  co_await read_list(prefix, std::move(query), max, take, cancel);
  co_return found;
}

/// https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListMultipartUploads.html
async::Task<std::vector<OpenUpload>> Bucket::open_uploads() {
  std::vector<OpenUpload> found;
  std::string after_key, after_id;
  core::PageTokens tokens(max_key + max_tag);
  for (bool has_more = true; has_more;) {
    Call list("list the uploads in", "GET", "");
    list.query["uploads"];
    list.query["prefix"] = settings_.prefix;
    if (!after_key.empty()) {
      list.query["key-marker"] = after_key;
      list.query["upload-id-marker"] = after_id;
    }
    list.is_lookup = true;
    net::Response response;
    try {
      response = co_await call(std::move(list));
    } catch (const S3Error&) {
      break;  // Not every server lists uploads, and the access keys may not allow a list.
    }
    for (const auto text : xml_elements(response.body, "Upload")) {
      OpenUpload upload{xml_text(text, "Key"), xml_text(text, "UploadId"), {}};
      // Without a time the upload counts as new, so that no age makes anybody abort it.
      upload.begun =
          parse_time(xml_text(text, "Initiated")).value_or(std::chrono::system_clock::now());
      check_length(upload.key, max_key);
      check_length(upload.id, max_tag);
      if (upload.id.empty() || !upload.key.starts_with(settings_.prefix)) continue;
      upload.key.erase(0, settings_.prefix.size());
      found.push_back(std::move(upload));
    }
    after_key = xml_text(response.body, "NextKeyMarker");
    after_id = xml_text(response.body, "NextUploadIdMarker");
    has_more = xml_text(response.body, "IsTruncated") == "true" && !after_key.empty() &&
               tokens.accept(after_key + after_id) && found.size() < max_entries;
  }
  co_return found;
}

async::Task<net::Request> Bucket::request(std::string method, std::string key, Query query,
                                          std::map<std::string, std::string> headers) {
  Call call("read " + key + " from", std::move(method), key);
  call.query = std::move(query);
  call.headers = std::move(headers);
  auto request = co_await signed_request(call);
  co_return request;
}

S3Error Bucket::refused(const std::string& what, const net::Response& response) const {
  const RefusedResponse answer{response.status, response.body,
                               response.header("x-amz-bucket-region")};
  return refusal(what, answer, identity());
}

async::Task<std::vector<std::string>> Bucket::folders(std::string folder) {
  folder += '/';
  const auto prefix = settings_.prefix + folder;
  std::vector<std::string> names;
  const std::function<std::size_t(std::string_view)> take = [&](std::string_view page) {
    for (const auto found : xml_elements(page, "CommonPrefixes")) {
      const auto name = xml_text(found, "Prefix");
      check_length(name, max_key);
      if (name.size() > prefix.size() && name.starts_with(prefix))
        names.push_back(name.substr(prefix.size(), name.size() - prefix.size() - 1));
    }
    return names.size();
  };
  Query query{{"delimiter", "/"}};
  co_await read_list(std::move(folder), std::move(query), max_entries, take, nullptr);
  co_return names;
}

}  // namespace pipeline::blobs::s3
