#include "kubernetes_api/kubeconfig.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "core/base64.hpp"
#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/joined.hpp"
#include "core/project.hpp"
#include "core/value.hpp"
#include "settings/decode.hpp"
#include "yaml/document.hpp"

namespace pipeline::kubernetes_api {
namespace {

namespace fs = std::filesystem;

/// A file of KUBECONFIG. Unknown keys belong to other programs and are ignored.
struct File {
  fs::path path;
  std::string source;  ///< Text for messages, without_secrets().
  core::Value root;
};

/// Throws the first error, because later errors can be its consequences.
[[noreturn]] void refuse(const File& file, std::string code, std::string message, core::Span span,
                         std::vector<std::string> notes = {}, std::string suggestion = {}) {
  std::vector<core::Diagnostic> diagnostics;
  diagnostics.push_back(
      {std::move(code), std::move(message), span, std::move(notes), std::move(suggestion)});
  throw core::InputError(std::move(diagnostics), file.path.string(), file.source);
}

/// A map of a file, with a name for messages such as `cluster 'lab'`.
struct Entry {
  const File* file = nullptr;
  const core::Value* map = nullptr;
  std::string what;

  const core::Value* find(std::string_view key) const {
    const core::Value* found = map ? map->find(key) : nullptr;
    return found && found->kind != core::Value::Kind::null ? found : nullptr;
  }
  std::string text(std::string_view key) const {
    const core::Value* value = find(key);
    if (!value) return {};
    if (value->kind != core::Value::Kind::scalar)
      refuse(*file, "wrong-type",
             key_of_entry(key) + " must be a text, not " + settings::describe(*value), value->span);
    if (!settings::formats::line.accepts(value->scalar))
      refuse(*file, "control-character",
             key_of_entry(key) + " has a line end or another control character in it", value->span);
    return value->scalar;
  }
  bool flag(std::string_view key) const {
    const core::Value* value = find(key);
    if (!value) return false;
    settings::Diagnostics diagnostics;
    const auto read = settings::read_bool(key, *value, diagnostics);
    if (!read) throw core::InputError(std::move(diagnostics), file->path.string(), file->source);
    return *read;
  }
  std::vector<const core::Value*> list(std::string_view key) const {
    std::vector<const core::Value*> items;
    const core::Value* value = find(key);
    if (!value) return items;
    if (value->kind != core::Value::Kind::list)
      refuse(*file, "wrong-type",
             key_of_entry(key) + " must be a list, not " + settings::describe(*value), value->span);
    for (const core::Value& item : value->items) items.push_back(&item);
    return items;
  }
  std::vector<std::string> texts(std::string_view key) const {
    std::vector<std::string> texts;
    for (const core::Value* item : list(key)) {
      if (item->kind != core::Value::Kind::scalar)
        refuse(
            *file, "wrong-type",
            "an item of " + key_of_entry(key) + " must be a text, not " + settings::describe(*item),
            item->span);
      texts.push_back(item->scalar);
    }
    return texts;
  }
  /// Returns a path; relative paths are resolved against the file's folder.
  std::string path(std::string_view key) const {
    const auto name = text(key);
    return name.empty() ? name : (file->path.parent_path() / name).lexically_normal().string();
  }
  /// Returns the base64-decoded value of a key such as `client-key-data`.
  std::string data(std::string_view key) const {
    const core::Value* value = find(key);
    if (!value) return {};
    auto text = value->scalar;
    std::erase_if(text, [](unsigned char c) { return std::isspace(c); });
    auto bytes = core::decode_base64(text);
    if (value->kind != core::Value::Kind::scalar || !bytes)
      refuse(*file, "bad-base64", key_of_entry(key) + " is not base64", value->span);
    return std::move(*bytes);
  }
  Entry below(std::string_view key, std::string name) const {
    const core::Value* value = find(key);
    if (value && value->kind != core::Value::Kind::map)
      refuse(*file, "wrong-type",
             key_of_entry(key) + " must be a map, not " + settings::describe(*value), value->span);
    return {file, value, std::move(name)};
  }
  /// Returns the key's name for messages: `'server' of cluster 'lab'`.
  std::string key_of_entry(std::string_view key) const {
    return "'" + std::string(key) + "' of " + what;
  }
};

/// Returns the end of the value that begins at `at`: of its line, and of the lines after it that
/// are indented more. The items of a list below its key may have the indent of the key.
std::size_t end_of_value(const std::string& text, std::size_t at) {
  const auto line = text.rfind('\n', at - 1) + 1;
  const auto depth = text.find_first_not_of(' ', line) - line;
  auto end = std::min(text.find('\n', at), text.size());
  const bool begins_below = text.find_first_not_of(' ', at) == end;
  while (end < text.size()) {
    const auto next = text.find_first_not_of(' ', end + 1);
    if (next == text.npos) return text.size();
    const auto next_depth = next - (end + 1);
    const bool is_item = begins_below && next_depth == depth && text[next] == '-';
    if (text[next] != '\n' && next_depth <= depth && !is_item) break;
    end = std::min(text.find('\n', next), text.size());
  }
  return end;
}

/// Returns the text with `*` in place of the values of secrets' keys, at equal length. The key may
/// be in quotes, as in JSON; `value` is the key of a plugin's variables.
std::string without_secrets(std::string text) {
  for (const std::string_view key :
       {"token", "password", "client-key-data", "client-secret", "value"})
    for (auto at = text.find(key); at != text.npos; at = text.find(key, at)) {
      at += key.size();
      const auto colon = text.find_first_not_of("\"' ", at);
      if (colon == text.npos || text[colon] != ':') continue;
      at = colon + 1;
      for (const auto end = end_of_value(text, at); at < end; ++at)
        if (text[at] != ' ' && text[at] != '\n') text[at] = '*';
    }
  return text;
}

std::vector<File> read_files(const std::vector<fs::path>& paths) {
  std::vector<File> files;
  for (const auto& path : paths) {
    std::error_code error;
    if (path.empty() || !fs::exists(path, error)) continue;
    const auto text = core::read_file(path);
    File file{fs::absolute(path), without_secrets(text), {}};
    settings::Diagnostics diagnostics;
    auto root = yaml::parse_yaml(text, diagnostics);
    if (!diagnostics.empty())
      throw core::InputError(std::move(diagnostics), file.path.string(), file.source);
    if (!root || root->kind == core::Value::Kind::null) continue;
    if (root->kind != core::Value::Kind::map)
      refuse(file, "wrong-type", "a kubeconfig must be a map, not " + settings::describe(*root),
             root->span, {"as `kubectl config view` shows it"});
    file.root = std::move(*root);
    files.push_back(std::move(file));
  }
  return files;
}

std::string paths_text(const std::vector<File>& files) {
  return core::joined(files, ", ", [](const File& file) { return file.path.string(); });
}

/// The result of find_named().
struct Found {
  Entry entry;
  std::vector<std::string> names;  ///< All names in the list.
};
/// Finds the entry called `name` of the list `list` (`clusters`), whose content is under `member`
/// (`cluster`), in the first file that has one.
Found find_named(const std::vector<File>& files, const std::string& list, const std::string& member,
                 const std::string& name) {
  Found found;
  for (const auto& file : files) {
    const Entry top{&file, &file.root, "the kubeconfig"};
    for (const core::Value* item : top.list(list)) {
      const Entry named{&file, item, "an entry of '" + list + "'"};
      if (item->kind != core::Value::Kind::map)
        refuse(file, "wrong-type", named.what + " must be a map, not " + settings::describe(*item),
               item->span);
      const auto own = named.text("name");
      found.names.push_back(own);
      if (own == name && !found.entry.file)
        found.entry = named.below(member, member + " '" + name + "'");
    }
  }
  return found;
}

std::string listed(const std::vector<std::string>& names) {
  return names.empty() ? "there is none" : "there are: " + core::joined(names, ", ");
}

ExecPlugin read_exec(const Entry& user, const Entry& exec) {
  ExecPlugin plugin;
  const core::Value& place = *exec.map;
  if (core::only_looks() && core::is_in_project(exec.file->path))
    throw core::EnvironmentError(
        exec.what + " in " + exec.file->path.string() +
            " names a program, and a command that only looks does not run programs that the "
            "project names",
        {"keep the kubeconfig outside of the project"});
  plugin.api_version = exec.text("apiVersion");
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    const core::Value* version = exec.find("apiVersion");
    refuse(*exec.file, "exec-version",
           exec.key_of_entry("apiVersion") +
               " must be client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1",
           version ? version->span : place.span,
           {"the program in " + user.what + " uses this version"},
           "a newer version of the program writes a newer kubeconfig");
  }
  auto command = exec.text("command");
  if (command.empty())
    refuse(*exec.file, "missing-key", exec.what + " has no 'command'", place.span);
  // Like kubectl: searches a name on the PATH; a relative path starts at the file's folder.
  if (command.find('/') != command.npos)
    command = (exec.file->path.parent_path() / command).lexically_normal().string();
  plugin.command.push_back(std::move(command));
  for (auto& argument : exec.texts("args")) plugin.command.push_back(std::move(argument));
  for (const core::Value* item : exec.list("env")) {
    const Entry variable{exec.file, item, "a variable of " + exec.what};
    const auto name = variable.text("name");
    if (!core::is_variable_name(name))
      refuse(*exec.file, "bad-name", variable.what + " has no valid 'name'", item->span);
    plugin.variables.push_back(name + "=" + variable.text("value"));
  }
  plugin.install_hint = exec.text("installHint");
  plugin.wants_cluster = exec.flag("provideClusterInfo");
  return plugin;
}

Identity read_user(const Entry& user) {
  Identity identity;
  if (!user.map) return identity;
  if (const core::Value* provider = user.find("auth-provider"))
    refuse(*user.file, "auth-provider",
           user.what + " uses 'auth-provider', which Kubernetes 1.26 has removed", provider->span,
           {},
           "write the kubeconfig again with your provider's current program (`gcloud container "
           "clusters get-credentials`, `az aks get-credentials`, "
           "kubelogin): it will use 'exec'");
  identity.token = user.text("token");
  identity.token_file = user.path("tokenFile");
  if (core::is_in_project(user.file->path) && core::is_outside_project(identity.token_file))
    throw core::EnvironmentError(
        user.key_of_entry("tokenFile") + " in " + user.file->path.string() +
            " names a file outside of the project, which is not sent to a server of the project",
        {"keep the kubeconfig outside of the project"});
  identity.username = user.text("username");
  identity.password = user.text("password");
  if (const auto name = user.text("as"); !name.empty())
    identity.impersonate.push_back("Impersonate-User: " + name);
  for (const auto& group : user.texts("as-groups"))
    identity.impersonate.push_back("Impersonate-Group: " + group);
  if (const auto exec = user.below("exec", "'exec' of " + user.what); exec.map)
    identity.exec = read_exec(user, exec);
  return identity;
}

net::TlsOptions read_tls(const Entry& cluster, const Entry& user) {
  net::TlsOptions tls;
  tls.verify = !cluster.flag("insecure-skip-tls-verify");
  tls.ca = cluster.data("certificate-authority-data");
  tls.ca_file = cluster.path("certificate-authority");
  tls.cert = user.data("client-certificate-data");
  tls.cert_file = user.path("client-certificate");
  tls.key = user.data("client-key-data");
  tls.key_file = user.path("client-key");
  for (const auto& [entry, key, data, path] :
       {std::tuple(&cluster, "certificate-authority", &tls.ca, &tls.ca_file),
        std::tuple(&user, "client-certificate", &tls.cert, &tls.cert_file),
        std::tuple(&user, "client-key", &tls.key, &tls.key_file)}) {
    std::error_code error;
    if (data->empty() && !path->empty() && !fs::is_regular_file(*path, error))
      refuse(*entry->file, "missing-file",
             entry->key_of_entry(key) + " names a file that is not there: " + *path,
             entry->find(key)->span);
  }
  const bool has_cert = !tls.cert.empty() || !tls.cert_file.empty(),
             has_key = !tls.key.empty() || !tls.key_file.empty();
  if (has_cert != has_key)
    refuse(*user.file, "missing-key",
           user.what + " has a client " +
               (has_cert ? "certificate without a key" : "key without a certificate"),
           user.map->span, {},
           has_cert ? "add 'client-key' or 'client-key-data'"
                    : "add 'client-certificate' or 'client-certificate-data'");
  return tls;
}

ClusterAccess from_files(const std::vector<File>& files, const AccessOptions& options) {
  auto name = options.context;
  Entry named_by;
  for (const auto& file : files) {
    const Entry top{&file, &file.root, "the kubeconfig"};
    if (name.empty() && !top.text("current-context").empty()) {
      name = top.text("current-context");
      named_by = top;
    }
  }
  const auto context = find_named(files, "contexts", "context", name);
  if (name.empty())
    throw core::InputError(
        "no context is chosen in " + paths_text(files) + ": " + listed(context.names),
        "`kubectl config use-context NAME` chooses one, or name one with --context");
  if (!context.entry.file) {
    const auto suggestion = core::did_you_mean(name, context.names);
    if (named_by.file)
      refuse(*named_by.file, "unknown-context", "there is no context '" + name + "'",
             named_by.find("current-context")->span, {listed(context.names)}, suggestion);
    throw core::InputError(
        "there is no context '" + name + "' in " + paths_text(files) + ": " + listed(context.names),
        suggestion);
  }
  /// Returns the entry that the context names under `key`.
  const auto follow = [&](const char* list, const char* key) {
    const auto wanted = context.entry.text(key);
    const auto found = find_named(files, list, key, wanted);
    const core::Value* value = context.entry.find(key);
    if (!wanted.empty() && !found.entry.file)
      refuse(*context.entry.file, std::string("unknown-") + key,
             "there is no " + std::string(key) + " '" + wanted + "', which " + context.entry.what +
                 " names",
             value->span, {listed(found.names)}, core::did_you_mean(wanted, found.names));
    return found.entry.file ? found.entry
                            : Entry{context.entry.file, nullptr, std::string("no ") + key};
  };
  const auto cluster = follow("clusters", "cluster"), user = follow("users", "user");
  ClusterAccess access;
  access.context = name;
  access.origin = "context '" + name + "' of " + context.entry.file->path.string();
  access.server = cluster.text("server");
  if (!access.server.starts_with("https://") && !access.server.starts_with("http://")) {
    const core::Value* server = cluster.find("server");
    const core::Span no_position{};
    refuse(*cluster.file, server ? "bad-url" : "missing-key",
           server ? cluster.key_of_entry("server") + " must be a URL such as https://10.0.0.1:6443"
                  : cluster.what + " has no 'server'",
           server        ? server->span
           : cluster.map ? cluster.map->span
                         : no_position);
  }
  while (access.server.ends_with('/')) access.server.pop_back();
  access.tls = read_tls(cluster, user);
  access.tls_server_name = cluster.text("tls-server-name");
  access.proxy = cluster.text("proxy-url");
  access.identity = read_user(user);
  access.name_space = context.entry.text("namespace");
  return access;
}

ClusterAccess from_pod(const KubeconfigEnvironment& environment) {
  ClusterAccess access;
  const std::string host = environment.variable("KUBERNETES_SERVICE_HOST");
  const char* port = environment.variable("KUBERNETES_SERVICE_PORT");
  access.server = "https://" + (host.find(':') == host.npos ? host : "[" + host + "]") + ":" +
                  (port ? port : "443");
  access.tls.ca_file = environment.pod_folder / "ca.crt";
  access.identity.token_file = environment.pod_folder / "token";
  access.origin = "the pod's service account (" + environment.pod_folder.string() + ")";
  std::error_code error;
  if (const auto own = environment.pod_folder / "namespace"; fs::exists(own, error))
    access.name_space = core::read_file(own);
  while (access.name_space.ends_with('\n')) access.name_space.pop_back();
  return access;
}

/// Splits the value of KUBECONFIG.
std::vector<fs::path> paths_of(std::string_view list) {
  std::vector<fs::path> paths;
  for (std::size_t begin = 0; begin <= list.size();) {
    const auto end = std::min(list.find(':', begin), list.size());
    paths.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return paths;
}

}  // namespace

KubeconfigEnvironment process_environment() {
  KubeconfigEnvironment environment;
  environment.variable = [](const char* name) -> const char* { return std::getenv(name); };
  return environment;
}

ClusterAccess find_cluster(const AccessOptions& options, const KubeconfigEnvironment& environment) {
  const char *named = environment.variable("KUBECONFIG"), *home = environment.variable("HOME");
  const bool is_named = named && *named;
  const std::string list = is_named ? named
                           : home   ? std::string(home) + "/.kube/config"
                                    : std::string();
  const auto files = read_files(paths_of(list));
  std::error_code error;
  ClusterAccess access;
  if (!files.empty()) {
    access = from_files(files, options);
  } else if (environment.variable("KUBERNETES_SERVICE_HOST") &&
             fs::exists(environment.pod_folder / "token", error) && options.context.empty()) {
    access = from_pod(environment);
  } else {
    throw core::EnvironmentError(
        is_named ? "no cluster is configured: none of the files in KUBECONFIG exists (" + list + ")"
        : home   ? "no cluster is configured: KUBECONFIG is not set, and there is no " + list
                 : "no cluster is configured: neither KUBECONFIG nor HOME is set",
        {"let KUBECONFIG name the file that your cluster's administrator or provider gave you; "
         "`kubectl config get-contexts` shows its contexts"});
  }
  if (!options.name_space.empty()) access.name_space = options.name_space;
  if (access.name_space.empty()) access.name_space = "default";
  return access;
}

}  // namespace pipeline::kubernetes_api
