/// @file
/// The entry in a container's /etc/passwd for a user whom its image does not know. Without one,
/// getpass, ssh, whoami and torch's caches fail.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "async/single_flight.hpp"
#include "docker/engine_api.hpp"
#include "orchestrators/docker/container_spec.hpp"

namespace pipeline::orchestrators::docker_engine {

/// Name of the folder in the state folder with the /etc/passwd of images, and the copies with an
/// added entry.
inline constexpr const char* users_folder = "users";

/// A user by number, as engines accept it: `UID` or `UID:GID`.
struct UserNumbers {
  std::string uid, gid;
};
/// Returns the numbers in `user`; nothing for root, and for a name, which the image must know.
std::optional<UserNumbers> user_numbers(std::string_view user);

/// Returns the name that this text of /etc/passwd gives to the number; empty if it has none.
std::string name_of(std::string_view passwd, std::string_view uid);

/// Returns the text with an entry for the user, whose name is `wanted` or, if another user has
/// that, `wanted-UID`.
std::string with_entry(std::string passwd, const UserNumbers& user, const std::string& wanted);

/// Adds the entries of users. Reads each image's /etc/passwd once, from a container that is not
/// started, and keeps it in the state folder by the image's digest.
class UserEntries {
 public:
  UserEntries(asio::io_context& loop, docker::EngineApi& engine, std::filesystem::path state)
      : engine_(engine), folder_(std::move(state) / users_folder), read_(loop) {}

  /// Sets `options.user_name` and `options.passwd` for a step whose user has a number. An image
  /// whose /etc/passwd cannot be read stays as it is.
  async::Task<> find(const Attempt& attempt, ContainerOptions& options);

 private:
  async::Task<std::string> read(const Attempt& attempt, const ContainerOptions& options);

  docker::EngineApi& engine_;
  const std::filesystem::path folder_;
  async::SingleFlight<std::string> read_;  ///< Keyed by image.
};

/// Copies `options.passwd` into a container that has not been started, whose engine does not see
/// this machine's files. A container with a read-only root keeps the image's file.
async::Task<> copy_passwd(docker::EngineApi& engine, const ContainerOptions& options,
                          std::string container, core::CancelSource& cancel);

}  // namespace pipeline::orchestrators::docker_engine
