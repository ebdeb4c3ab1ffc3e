// Copies within a bucket, large ones in parts, so that the server never works long on one request.
#include <algorithm>
#include <chrono>
#include <utility>

#include "blobs/error_document.hpp"
#include "blobs/s3/bucket_call.hpp"
#include "core/log.hpp"
#include "net/url.hpp"

namespace pipeline::blobs::s3 {
namespace {

// Bytes of an object from which a copy is made in parts.
constexpr std::uint64_t min_copy_in_parts = std::uint64_t{32} << 20;
// Bytes that S3 copies by one request, as a whole object or as a part.
constexpr std::uint64_t max_one_copy = std::uint64_t{5} << 30;

/// Returns true if the server may know CopyObject, though not UploadPartCopy.
bool is_unknown_request(const S3Error& error) {
  return error.status() == 400 || error.status() == 405 || error.status() == 501;
}

}  // namespace

std::uint64_t Bucket::max_copy_bytes() const {
  return copies_parts_ ? max_one_copy * max_output_parts : max_one_copy;
}

std::string Bucket::copy_source(const std::string& key) const {
  return "/" + settings_.bucket + "/" + net::url_encode(settings_.prefix + key, "/");
}

async::Task<> Bucket::copy(std::string from, std::string to, std::uint64_t bytes) {
  if (bytes >= min_copy_in_parts && copies_parts_) {
    const bool is_copied = co_await copy_in_parts(from, to, bytes);
    if (is_copied) co_return;
  }
  Call copy("copy " + from + " within", "PUT", to);
  copy.headers["x-amz-copy-source"] = copy_source(from);
  copy.server_bytes = bytes;
  co_await call(std::move(copy));
}

async::Task<bool> Bucket::copy_in_parts(std::string from, std::string to, std::uint64_t bytes) {
  const auto size = part_size(bytes, max_output_parts), count = (bytes + size - 1) / size;
  const WritePart copy_part = [&](std::string id, std::size_t i) -> async::Task<std::string> {
    const auto begin = i * size, end = std::min(begin + size, bytes);
    Call copy("copy " + from + " within", "PUT", to);
    copy.query["partNumber"] = std::to_string(i + 1);
    copy.query["uploadId"] = std::move(id);
    copy.headers["x-amz-copy-source"] = copy_source(from);
    copy.headers["x-amz-copy-source-range"] =
        "bytes=" + std::to_string(begin) + "-" + std::to_string(end - 1);
    copy.server_bytes = end - begin;
    const auto begun = std::chrono::steady_clock::now();
    const auto response = co_await call(std::move(copy));
    limit_.note_success(end - begin, std::chrono::steady_clock::now() - begun);
    auto tag = xml_text(response.body, "ETag");
    // rclone's server takes the request for an upload of an empty part.
    if (tag.empty())
      throw S3Error(501, "NotImplemented", address_.origin() + " does not copy parts of objects",
                    {});
    co_return tag;
  };
  bool is_copied = true;
  try {
    co_await write_in_parts(to, count, copy_part);
  } catch (const S3Error& error) {
    if (!is_unknown_request(error)) throw;
    core::log::info(std::string(error.what()) + "; the object is copied in one request");
    is_copied = copies_parts_ = false;
  }
  co_return is_copied;
}

}  // namespace pipeline::blobs::s3
