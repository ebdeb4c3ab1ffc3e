/// @file
/// Fuzzes answers of S3 servers.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "blobs/error_document.hpp"
#include "blobs/s3/answer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pipeline::blobs;
  using namespace pipeline::blobs::s3;
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const auto* element : {"Code", "Message", "Region", "UploadId", "ETag"})
    if (xml_text(text, element).size() > size) __builtin_trap();
  for (const long status : {200, 301, 403, 404, 503}) {
    const auto error = refusal("read x from", {status, text, {}}, {"b", "https://e", "r", "o"});
    const std::string_view words = error.what();
    if (error.status() != status || words.find('\x1b') != words.npos) __builtin_trap();
    is_retryable(status, error.code());
  }
  return 0;
}
