/// @file
/// Finds a cluster's address and the user's identity, in kubectl's files or in the pod that this
/// program runs in (kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig).
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/http.hpp"

namespace pipeline::kubernetes_api {

/// A program that prints credentials (client.authentication.k8s.io).
struct ExecPlugin {
  std::string api_version;             ///< `client.authentication.k8s.io/v1` or `/v1beta1`.
  std::vector<std::string> command;    ///< The program and its arguments.
  std::vector<std::string> variables;  ///< `NAME=VALUE`; they replace variables of this process.
  std::string install_hint;            ///< Shown to users who lack the program.
  bool wants_cluster = false;          ///< The program is passed the cluster's address.
};

/// Authentication of requests: a plugin, else a token, else a user with a password. Certificates
/// are used in addition.
struct Identity {
  std::optional<ExecPlugin> exec;
  /// Read again every minute, because tokens in pods are replaced.
  std::filesystem::path token_file;
  std::string token;  ///< Used if `token_file` is empty or cannot be read.
  std::string username, password;
  std::vector<std::string> impersonate;  ///< Headers such as `Impersonate-User: NAME`.
};

/// A cluster's address, and how this program identifies itself there.
struct ClusterAccess {
  std::string server;   ///< `https://10.0.0.1:6443`, optionally with a path; no `/` at its end.
  net::TlsOptions tls;  ///< The server's CA, and the client's certificate.
  std::string tls_server_name;  ///< The name in the server's certificate, if it differs from that
                                ///< of `server`.
  std::string proxy;
  Identity identity;
  std::string name_space;  ///< Never empty.
  std::string context;     ///< Name of the context; empty inside a cluster.
  std::string origin;      ///< For messages: `context 'lab' of /home/u/.kube/config`.
};

struct AccessOptions {
  std::string context;     ///< If empty, the files' current context.
  std::string name_space;  ///< If empty, the context's namespace.
};

/// The process's environment; tests replace it.
struct KubeconfigEnvironment {
  std::function<const char*(const char*)> variable;  ///< Same as getenv().
  std::filesystem::path pod_folder = "/var/run/secrets/kubernetes.io/serviceaccount";
};
KubeconfigEnvironment process_environment();

/// Reads KUBECONFIG (several files separated by `:`; the first file that has a value wins), else
/// ~/.kube/config, else the service account of the pod that this program runs in. Throws InputError
/// with the position in the file, or EnvironmentError if no configuration is found.
ClusterAccess find_cluster(const AccessOptions& options,
                           const KubeconfigEnvironment& environment = process_environment());

}  // namespace pipeline::kubernetes_api
