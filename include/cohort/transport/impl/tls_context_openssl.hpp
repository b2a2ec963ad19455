// SPDX-License-Identifier: BSL-1.0
// The files of transport/tls.hpp as OpenSSL reads them: each is held against the others, and a certificate that no rank would
// accept is refused by its own. tls_session_openssl.hpp has the connections.
#pragma once

#include <cohort/detail/printable.hpp>
#include <cohort/error.hpp>
#include <cohort/transport/impl/tls_session_openssl.hpp>
#include <cohort/transport/tls.hpp>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace cohort::transport::tls_detail {

template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* what) const noexcept {
    Free(what);
  }
};
using context_pointer = std::unique_ptr<SSL_CTX, freed_by<&SSL_CTX_free>>;
using verification_pointer = std::unique_ptr<X509_STORE_CTX, freed_by<&X509_STORE_CTX_free>>;

[[nodiscard]] inline std::string words_for(int reason) {
  const char* const words = ERR_reason_error_string(ERR_PACK(ERR_LIB_SSL, 0, static_cast<unsigned long>(reason)));
  return words == nullptr ? "OpenSSL does not say why" : words;
}

/// What OpenSSL says about the last thing that failed on this thread; its queue is empty afterwards.
[[nodiscard]] inline std::string last_words() {
  const unsigned long first = ERR_peek_error();
  ERR_clear_error();
  if (ERR_SYSTEM_ERROR(first)) return std::generic_category().message(ERR_GET_REASON(first));
  const char* const reason = ERR_reason_error_string(first);
  return reason == nullptr ? "OpenSSL does not say why" : reason;
}

/// Reads the files of one process and holds what they say against each other.
class file_reader {
 public:
  explicit file_reader(const tls_options& files) : files_(files) {}

  [[nodiscard]] context_pointer read() {
    require_all();
    // What a thread of ours still does at the exit of the process must not find OpenSSL torn down.
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
    ERR_clear_error();
    context_pointer made(SSL_CTX_new(TLS_method()));
    if (!made) throw error(errc::tls_failed, "TLS: OpenSSL gives no context: " + last_words());
    SSL_CTX* const c = made.get();
    SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION);
    // The cheapest first: none is broken.
    SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256");
    SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    // Connections last as long as the job: none is resumed.
    SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(c, 0);
    SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
    // Each record by itself, into where it is opened: what is read ahead OpenSSL moves to the front again and again.
    SSL_CTX_set_read_ahead(c, 0);
    // A program in the background has nobody to ask.
    SSL_CTX_set_default_passwd_cb(c, [](char*, int, int, void*) { return -1; });

    if (SSL_CTX_load_verify_locations(c, files_.authority.c_str(), nullptr) != 1) refuse(authority, last_words());
    if (SSL_CTX_use_certificate_chain_file(c, files_.certificate.c_str()) != 1) refuse(certificate, last_words());
    require_private();
    if (SSL_CTX_use_PrivateKey_file(c, files_.key.c_str(), SSL_FILETYPE_PEM) != 1) {
      refuse(key, last_words() + "; expected a private key without a passphrase that is the certificate's");
    }
    require_own_acceptance(c, X509_PURPOSE_SSL_SERVER);
    require_own_acceptance(c, X509_PURPOSE_SSL_CLIENT);
    ERR_clear_error();
    return made;
  }

 private:
  enum role : unsigned char { certificate, key, authority };

  [[noreturn]] void refuse(role which, const std::string& why) const {
    struct words {
      const char* what;
      const char* variable;
      const std::string& path;
    };
    const words all[] = {{"certificate", tls_options::certificate_variable, files_.certificate},
                         {"key", tls_options::key_variable, files_.key},
                         {"authority", tls_options::authority_variable, files_.authority}};
    const words& w = all[which];
    throw error(errc::tls_failed, std::string("TLS: the ") + w.what + " file " + cohort::detail::quoted(w.path) + " (" +
                                      w.variable + "): " + why);
  }

  void require_all() const {
    const char* const absent = files_.certificate.empty() ? "certificate"
                               : files_.key.empty()       ? "key"
                               : files_.authority.empty() ? "authority"
                                                          : nullptr;
    if (absent == nullptr) return;
    throw error(errc::invalid_argument, std::string("tls_options: no ") + absent +
                                            " is named; expected the files of a certificate, its key and the job's "
                                            "authority, or none of them");
  }

  void require_private() const {
    struct stat about {};
    if (::stat(files_.key.c_str(), &about) != 0) refuse(key, std::generic_category().message(errno));
    if ((about.st_mode & 07U) != 0) refuse(key, "everybody on this host may use this file: run chmod o= on it");
  }

  /// Said here, by the rank whose certificate it is, what every other rank would say later.
  void require_own_acceptance(SSL_CTX* c, int purpose) const {
    const verification_pointer trial(X509_STORE_CTX_new());
    STACK_OF(X509)* between = nullptr;
    SSL_CTX_get0_chain_certs(c, &between);
    const bool ready =
        trial && X509_STORE_CTX_init(trial.get(), SSL_CTX_get_cert_store(c), SSL_CTX_get0_certificate(c), between) == 1;
    if (!ready) refuse(certificate, last_words());
    X509_STORE_CTX_set_purpose(trial.get(), purpose);
    if (X509_verify_cert(trial.get()) == 1) return;
    const char* const why = X509_verify_cert_error_string(X509_STORE_CTX_get_error(trial.get()));
    refuse(certificate,
           std::string("no rank would accept it: ") + why +
               "; expected one that is valid now, for servers and clients, and signed by the authority in " +
               cohort::detail::quoted(files_.authority) + " (" + tls_options::authority_variable + ")");
  }

  const tls_options& files_;
};

class context final : public tls_context {
 public:
  explicit context(context_pointer c) noexcept : context_(std::move(c)) {}
  [[nodiscard]] std::unique_ptr<tls_session> open(int socket, tls_side side) const override {
    return std::make_unique<session>(context_.get(), socket, side);
  }

 private:
  context_pointer context_;
};

}  // namespace cohort::transport::tls_detail
