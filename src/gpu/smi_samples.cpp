#include "gpu/smi_samples.hpp"

#include <charconv>

namespace pipeline::gpu {
namespace {

constexpr std::uint64_t mebibyte = 1 << 20, max_memory = std::uint64_t{1} << 24;  // In MiB.

/// Removes the first field from `rest`, with its comma and the blanks behind, and returns the
/// field.
std::string_view take_field(std::string_view& rest) {
  const auto comma = rest.find(',');
  const std::string_view field(rest.data(), comma == rest.npos ? rest.size() : comma);
  rest.remove_prefix(comma == rest.npos ? rest.size() : comma + 1);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  return field;
}

std::optional<std::uint64_t> number_in(std::string_view field) {
  std::uint64_t number = 0;
  const char* end = field.data() + field.size();
  const auto read = std::from_chars(field.data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

/// Returns true if the field can be a part of a JSON text without escapes.
bool is_plain_field(std::string_view text) {
  for (const char c : text)
    if (c < ' ' || c > '~' || c == '"' || c == '\\') return false;
  return !text.empty() && text.size() < SmiSamples::max_text;
}

void copy_text(std::string_view from, char* to) {
  from.copy(to, SmiSamples::max_text - 1);
  to[from.size()] = '\0';
}

}  // namespace

std::optional<SmiSample> read_smi_sample(std::string_view line) {
  while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
  constexpr std::uint64_t max_percent = 100, max_index = 1000;
  const auto index = number_in(take_field(line));
  SmiSample sample;
  sample.uuid = take_field(line);
  sample.model = take_field(line);
  const auto percent = number_in(take_field(line));
  const auto used = number_in(take_field(line)), all = number_in(take_field(line));
  const bool has_index = index && *index <= max_index;
  const bool has_names = is_plain_field(sample.uuid) && is_plain_field(sample.model);
  const bool has_memory = used && all && *used <= max_memory && *all <= max_memory;
  if (!has_index || !has_names || !has_memory || !line.empty()) return std::nullopt;
  sample.index = static_cast<unsigned>(*index);
  if (percent && *percent <= max_percent)
    sample.share = static_cast<double>(*percent) / max_percent;
  sample.memory_used = *used * mebibyte;
  sample.memory = *all * mebibyte;
  return sample;
}

void SmiSamples::feed(std::string_view bytes) {
  for (const char c : bytes) {
    if (c == '\n') {
      const auto sample = read_smi_sample({line_.data(), length_});
      if (sample && !is_too_long_) take(*sample);
      length_ = 0;
      is_too_long_ = false;
    } else if (length_ < line_.size()) {
      line_[length_++] = c;
    } else {
      is_too_long_ = true;
    }
  }
}

void SmiSamples::take(const SmiSample& sample) {
  std::size_t i = 0;
  while (i < count_ && sample.uuid != gpus_[i].uuid) ++i;
  if (i == max_gpus) return;
  auto& gpu = gpus_[i];
  if (i == count_) {
    ++count_;
    gpu.index = sample.index;
    copy_text(sample.uuid, gpu.uuid);
    copy_text(sample.model, gpu.model);
  }
  gpu.sums.add(1, sample.share, sample.memory_used, sample.memory);
}

}  // namespace pipeline::gpu
