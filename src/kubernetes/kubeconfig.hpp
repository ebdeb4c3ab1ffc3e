/// @file
/// Where a cluster is and who we are there, from kubectl's files or from the pod that this program
/// runs in (kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig).
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/http.hpp"

namespace pipeline::kubernetes {

/// A program that gives credentials (client.authentication.k8s.io).
struct ExecPlugin {
  std::string api_version;             ///< `client.authentication.k8s.io/v1` or `/v1beta1`.
  std::vector<std::string> command;    ///< The program and its arguments.
  std::vector<std::string> variables;  ///< `NAME=VALUE`, over the caller's own.
  std::string install_hint;            ///< For people who lack it.
  bool wants_cluster = false;          ///< It is told which cluster it is asked for.
};

/// How requests say who they are from. The first of these that is there counts: a plugin, a token,
/// a user with a password; certificates beside them.
struct Identity {
  std::optional<ExecPlugin> exec;
  std::filesystem::path token_file;  ///< Read again every minute: tokens in pods are replaced.
  std::string token;                 ///< Where the file cannot be read, or there is none.
  std::string username, password;
  std::vector<std::string> impersonate;  ///< Headers, `Impersonate-User: NAME`.
};

struct ClusterAccess {
  std::string server;   ///< `https://10.0.0.1:6443`, a path may follow; no `/` at its end.
  net::TlsOptions tls;  ///< The server's authority, and the client's certificate.
  std::string
      tls_server_name;  ///< The name in the server's certificate, if it is not that of `server`.
  std::string proxy;
  Identity identity;
  std::string name_space;  ///< Never empty.
  std::string context;     ///< Its name; empty in a cluster.
  std::string origin;      ///< For messages: `context 'lab' of /home/u/.kube/config`.
};

struct AccessOptions {
  std::string context;     ///< Empty: the files' current one.
  std::string name_space;  ///< Empty: the context's.
};

/// What the world is like, for tests.
struct KubeconfigEnvironment {
  std::function<const char*(const char*)> variable;  ///< getenv()
  std::filesystem::path pod_folder = "/var/run/secrets/kubernetes.io/serviceaccount";
};
KubeconfigEnvironment this_process();

/// KUBECONFIG (several files, `:` between: the first that has something counts), else
/// ~/.kube/config, else the pod that we are in. Throws InputError with the place in the file, or
/// EnvironmentError if there is nothing to go by.
ClusterAccess find_cluster(const AccessOptions& options,
                           const KubeconfigEnvironment& environment = this_process());

}  // namespace pipeline::kubernetes
