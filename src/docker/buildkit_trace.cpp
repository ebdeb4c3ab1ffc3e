#include "docker/buildkit_trace.hpp"

#include <cstdint>

namespace pipeline::docker {

namespace {

/// Reads the fields of one message. `failed` stays set after an invalid field.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}

  /// Reads the next field: its number is then in number(), its value in text() or integer().
  /// Returns false at the end or after an error.
  bool next() {
    if (bytes_.empty() || failed_) return false;
    auto key = varint();
    number_ = key >> 3;
    text_ = {};
    integer_ = 0;
    switch (key & 7) {
      case 0: integer_ = varint(); break;
      case 1: take(8); break;
      case 2: text_ = take(varint()); break;
      case 5: take(4); break;
      default: failed_ = true;
    }
    if (number_ == 0) failed_ = true;
    return !failed_;
  }
  std::uint64_t number() const { return number_; }
  std::string_view text() const { return text_; }
  std::uint64_t integer() const { return integer_; }
  bool failed() const { return failed_; }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    failed_ = true;
    return 0;
  }
  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size()) {
      failed_ = true;
      return {};
    }
    auto part = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return part;
  }

  std::string_view bytes_, text_;
  std::uint64_t number_ = 0, integer_ = 0;
  bool failed_ = false;
};

bool decode(std::string_view bytes, TraceVertex& vertex) {
  Fields fields(bytes);
  while (fields.next()) switch (fields.number()) {
      case 1: vertex.digest = fields.text(); break;
      case 3: vertex.name = fields.text(); break;
      case 4: vertex.cached = fields.integer() != 0; break;
      case 5: vertex.started = true; break;
      case 6: vertex.completed = true; break;
      case 7: vertex.error = fields.text(); break;
      default: break;
    }
  return !fields.failed();
}

bool decode(std::string_view bytes, TraceLog& log) {
  Fields fields(bytes);
  while (fields.next()) switch (fields.number()) {
      case 1: log.vertex = fields.text(); break;
      case 4: log.text = fields.text(); break;
      default: break;
    }
  return !fields.failed();
}

}  // namespace

std::optional<TraceUpdate> decode_trace(std::string_view bytes) {
  TraceUpdate update;
  Fields fields(bytes);
  bool good = true;
  while (good && fields.next()) switch (fields.number()) {
      case 1: good = decode(fields.text(), update.vertexes.emplace_back()); break;
      case 3: good = decode(fields.text(), update.logs.emplace_back()); break;
      default: break;
    }
  if (!good || fields.failed()) return std::nullopt;
  return update;
}

}  // namespace pipeline::docker
