// SPDX-License-Identifier: BSL-1.0
// Authorities and certificates for the tests of TLS, made anew for each run: no key is a part of this project.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

#include <sys/stat.h>

namespace harness {

/// A key, and a certificate of it.
struct tls_identity {
  std::shared_ptr<EVP_PKEY> key;
  std::shared_ptr<X509> certificate;
};

struct tls_wish {
  const char* name;
  bool authority = false;
  long from = -3600;  ///< seconds from now
  long until = 7 * 24 * 3600;
  const char* usage = nullptr;  ///< such as "serverAuth"; null: every one
};

namespace tls_files_detail {

inline void need(bool fine, const char* what) {
  if (!fine) throw std::runtime_error(std::string("tls_files: ") + what);
}

inline void extend(X509* certificate, X509* signer, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, signer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value);
  need(extension != nullptr, value);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

template <class Write>
void write_file(const std::string& path, const Write& write) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  need(file != nullptr, path.c_str());
  const bool written = write(file);
  need(std::fclose(file) == 0 && written, path.c_str());
}

}  // namespace tls_files_detail

/// Signed by `signer`, or by itself.
inline tls_identity make_identity(const tls_wish& wish, const tls_identity* signer = nullptr) {
  using namespace tls_files_detail;
  static long serial = 1;
  tls_identity made{{EVP_EC_gen("P-256"), &EVP_PKEY_free}, {X509_new(), &X509_free}};
  need(made.key != nullptr && made.certificate != nullptr, "no key");
  X509* const c = made.certificate.get();
  X509_set_version(c, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(c), serial++);
  X509_gmtime_adj(X509_getm_notBefore(c), wish.from);
  X509_gmtime_adj(X509_getm_notAfter(c), wish.until);
  X509_set_pubkey(c, made.key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(c), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(wish.name), -1, -1, 0);
  X509* const above = signer == nullptr ? c : signer->certificate.get();
  X509_set_issuer_name(c, X509_get_subject_name(above));
  extend(c, above, NID_basic_constraints, wish.authority ? "critical,CA:TRUE" : "CA:FALSE");
  extend(c, above, NID_subject_key_identifier, "hash");
  if (wish.usage != nullptr) extend(c, above, NID_ext_key_usage, wish.usage);
  EVP_PKEY* const with = signer == nullptr ? made.key.get() : signer->key.get();
  need(X509_sign(c, with, EVP_sha256()) > 0, "no signature");
  return made;
}

inline void write_certificates(const std::string& path, std::initializer_list<const tls_identity*> chain) {
  tls_files_detail::write_file(path, [&](std::FILE* file) {
    bool fine = true;
    for (const tls_identity* each : chain) fine = fine && PEM_write_X509(file, each->certificate.get()) == 1;
    return fine;
  });
}

/// With a passphrase if one is given.
inline void write_key(const std::string& path, const tls_identity& of, const char* passphrase = nullptr) {
  tls_files_detail::write_file(path, [&](std::FILE* file) {
    const EVP_CIPHER* const cipher = passphrase == nullptr ? nullptr : EVP_aes_128_cbc();
    void* const words = const_cast<char*>(passphrase);
    return PEM_write_PKCS8PrivateKey(file, of.key.get(), cipher, nullptr, 0, nullptr, words) == 1;
  });
  tls_files_detail::need(::chmod(path.c_str(), 0600) == 0, path.c_str());
}

/// Fills a folder: authority.pem signed rank.pem (rank.key), expired.pem, server_only.pem, and through another one
/// chain.pem; stranger_authority.pem signed stranger.pem. locked.key is rank.key with a passphrase, open.key one that
/// everybody may read.
inline void make_tls_files(const std::string& folder) {
  ::mkdir(folder.c_str(), 0700);
  const std::string at = folder + "/";
  const tls_identity authority = make_identity({.name = "authority of a job", .authority = true});
  write_certificates(at + "authority.pem", {&authority});
  const tls_identity rank = make_identity({.name = "a rank"}, &authority);
  write_certificates(at + "rank.pem", {&rank});
  write_key(at + "rank.key", rank);
  write_key(at + "locked.key", rank, "secret");
  write_key(at + "open.key", rank);
  tls_files_detail::need(::chmod((at + "open.key").c_str(), 0644) == 0, "chmod");
  const tls_identity expired =
      make_identity({.name = "a rank of yesterday", .from = -7200, .until = -3600}, &authority);
  write_certificates(at + "expired.pem", {&expired});
  write_key(at + "expired.key", expired);
  const tls_identity server = make_identity({.name = "a server", .usage = "serverAuth"}, &authority);
  write_certificates(at + "server_only.pem", {&server});
  write_key(at + "server_only.key", server);
  const tls_identity between = make_identity({.name = "between", .authority = true}, &authority);
  const tls_identity leaf = make_identity({.name = "a rank below"}, &between);
  write_certificates(at + "chain.pem", {&leaf, &between});
  write_key(at + "chain.key", leaf);
  const tls_identity other = make_identity({.name = "authority of another job", .authority = true});
  write_certificates(at + "stranger_authority.pem", {&other});
  const tls_identity stranger = make_identity({.name = "a stranger"}, &other);
  write_certificates(at + "stranger.pem", {&stranger});
  write_key(at + "stranger.key", stranger);
}

}  // namespace harness
