#include "orchestrators/docker/user_entry.hpp"

#include <algorithm>

#include "core/digest.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "file_tree/tar_reader.hpp"
#include "file_tree/tar_stream.hpp"
#include "orchestrators/shared_file.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* passwd_file = "/etc/passwd";
constexpr std::uint64_t max_passwd = 4 << 20;

/// Keeps the content of the only file in a tar archive.
class OneFile final : public file_tree::TarReader::Sink {
 public:
  void begin(const file_tree::TarReader::Entry& entry) override {
    constexpr char file = '0', contiguous_file = '7';  // As POSIX names these types of ustar.
    if (entry.type != file && entry.type != contiguous_file)
      file_tree::refuse("/etc/passwd is not a file");
  }
  void content(std::string_view bytes) override { text += bytes; }
  void end() override {}
  std::string text;
};

bool is_number(std::string_view text) {
  constexpr std::size_t max_digits = 10;  // Of a number of 32 bits.
  return !text.empty() && text.size() <= max_digits &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// The place of a field in a line of /etc/passwd.
enum Field : std::size_t { name_field = 0, uid_field = 2 };

std::string_view field(std::string_view line, Field wanted) {
  for (std::size_t i = 0; i < wanted; ++i) {
    const auto colon = line.find(':');
    if (colon == line.npos) return {};
    line.remove_prefix(colon + 1);
  }
  return line.substr(0, line.find(':'));
}

/// Returns the name in the first line whose field has this value; empty if none has.
std::string name_where(std::string_view passwd, Field wanted, std::string_view value) {
  while (!passwd.empty()) {
    const auto line = passwd.substr(0, passwd.find('\n'));
    if (field(line, wanted) == value) return std::string(field(line, name_field));
    passwd.remove_prefix(std::min(passwd.size(), line.size() + 1));
  }
  return {};
}

/// Returns true if a volume of the user's is mounted over /etc/passwd.
bool is_mounted_over(const DockerSettings& settings) {
  return std::ranges::any_of(settings.volumes.items(), [](const std::string& volume) {
    const auto first = volume.find(':');
    const auto target = fs::path(volume.substr(first + 1, volume.find(':', first + 1) - first - 1))
                            .lexically_normal();
    return target == "/etc" || target == "/etc/" || target == passwd_file;
  });
}

}  // namespace

std::optional<UserNumbers> user_numbers(std::string_view user) {
  const auto colon = user.find(':');
  const auto uid = user.substr(0, colon);
  const auto gid = colon == user.npos ? "0" : user.substr(colon + 1);
  if (!is_number(uid) || uid.find_first_not_of('0') == uid.npos) return std::nullopt;
  return UserNumbers{std::string(uid), is_number(gid) ? std::string(gid) : "0"};
}

std::string name_of(std::string_view passwd, std::string_view uid) {
  return name_where(passwd, uid_field, uid);
}

std::string with_entry(std::string passwd, const UserNumbers& user, const std::string& wanted) {
  const bool is_taken = !name_where(passwd, name_field, wanted).empty();
  if (!passwd.empty() && passwd.back() != '\n') passwd += '\n';
  return passwd + (is_taken ? wanted + "-" + user.uid : wanted) + ":x:" + user.uid + ":" +
         user.gid + "::" + containers::container_scratch + ":/bin/sh\n";
}

async::Task<> UserEntries::find(const Attempt& attempt, ContainerOptions& options) {
  const auto& settings = attempt.step.settings->docker;
  const auto user = user_numbers(settings.user.value_or(options.user));
  if (!user) co_return;
  const std::string wanted = settings.user ? "user" + user->uid : "pipe";
  if (!settings.user) options.user_name = wanted;
  if (is_mounted_over(settings)) co_return;
  try {
    const std::function<async::Task<std::string>()> work = [&] { return read(attempt, options); };
    const auto image = co_await read_.get(options.image, work, &attempt.io.cancel);
    options.user_name = name_of(image, user->uid);
    if (!options.user_name.empty()) co_return;
    const auto text = with_entry(image, *user, wanted);
    options.user_name = name_of(text, user->uid);
    const auto name = core::sha256(text).hex();
    write_shared_file(folder_ / name, text, 0444);
    options.passwd = folder_ / name;
  } catch (const core::EnvironmentError& error) {
    core::log::info("the user " + user->uid + " has no entry in /etc/passwd of " + options.image +
                    ": " + error.what());
  }
}

async::Task<std::string> UserEntries::read(const Attempt& attempt,
                                           const ContainerOptions& options) {
  const auto digest = options.image.substr(options.image.find(':') + 1);
  const auto known = folder_ / ("image-" + digest);
  if (auto text = core::read_untrusted_file(known, max_passwd)) co_return *text;
  nlohmann::json body;
  body["Image"] = options.image;
  body["Entrypoint"] = {"/bin/true"};
  body["Labels"] = container_labels(attempt, options);
  const auto name = container_name(attempt) + "-users";
  co_await engine_.remove_container(name);  // The container of a dead driver.
  const auto id = co_await engine_.create_container(
      name, std::move(body), attempt.step.settings->docker.platform.value_or(""),
      &attempt.io.cancel);
  OneFile file;
  file_tree::TarReader reader(file, {.bytes = max_passwd, .entries = 1});
  std::exception_ptr error;
  try {
    const std::function<void(std::string_view)> on_bytes = [&](std::string_view bytes) {
      reader.feed(bytes);
    };
    co_await engine_.get_archive(id, passwd_file, on_bytes, attempt.io.cancel);
    reader.finish();
  } catch (const docker::EngineError& refused) {
    if (refused.status() != 404) error = std::current_exception();  // 404: it has no such file.
  } catch (...) {
    error = std::current_exception();
  }
  co_await engine_.remove_container(id);
  if (error) std::rethrow_exception(error);
  core::make_folders(folder_);
  core::write_file_atomically(known, file.text, core::Durability::power);
  co_return file.text;
}

async::Task<> copy_passwd(docker::EngineApi& engine, const ContainerOptions& options,
                          std::string container, core::CancelSource& cancel) {
  file_tree::ContextFile file;
  file.path = std::string(passwd_file).substr(1);
  file.content = core::read_file(options.passwd);
  file.mode = 0444;
  std::vector<file_tree::ContextFile> files;
  files.push_back(std::move(file));
  const std::function<net::BodySource()> tar = [&files] { return file_tree::tar_stream(files); };
  try {
    co_await engine.put_archive(container, "/", tar, cancel);
  } catch (const docker::EngineError& refused) {
    core::log::info(std::string("engine: /etc/passwd stays the image's: ") + refused.what());
  }
}

}  // namespace pipeline::orchestrators::docker_engine
