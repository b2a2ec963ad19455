// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/tls.hpp, with OpenSSL where the component `tls` is linked and defines COHORT_WITH_TLS. Without it a
// program that is asked for TLS refuses: it must not talk in plain text instead.
#pragma once

#include <cohort/transport/tls.hpp>

#ifdef COHORT_WITH_TLS
#include <cohort/transport/hello.hpp>
#include <cohort/transport/impl/tls_context_openssl.hpp>
#else
#include <cohort/error.hpp>
#endif

namespace cohort::transport {

#ifdef COHORT_WITH_TLS

COHORT_DECL std::shared_ptr<const tls_context> open_tls(const tls_options& files) {
  if (!files.asked_for()) return nullptr;
  return std::make_shared<const tls_detail::context>(tls_detail::file_reader(files).read());
}

COHORT_DECL std::string tls_category_type::message(int value) const {
  const int number = value & 0xffffff;
  switch (static_cast<tls_trouble>(value - number)) {
    case tls_trouble::no_tls:
      return "it does not speak TLS, and this process expects TLS 1.3: " + std::string(tls_everywhere);
    case tls_trouble::certificate:
      return std::string("TLS: its certificate is refused: ") + X509_verify_cert_error_string(number) +
             "; expected one that is valid now and signed by the authority of this process (COHORT_TLS_AUTHORITY)";
    case tls_trouble::alert:
      return "TLS: it has refused this process: " + tls_detail::words_for(SSL_AD_REASON_OFFSET + number) +
             "; expected by it: TLS 1.3 and a certificate that is valid now and signed by the authority of its own "
             "COHORT_TLS_AUTHORITY";
    case tls_trouble::other: break;
  }
  return "TLS: " + tls_detail::words_for(number) +
         "; expected TLS 1.3, with a certificate of the job's authority at both ends";
}

#else

COHORT_DECL std::shared_ptr<const tls_context> open_tls(const tls_options& files) {
  if (!files.asked_for()) return nullptr;
  throw error(
      errc::tls_failed,
      "TLS is asked for (COHORT_TLS_CERTIFICATE, COHORT_TLS_KEY, COHORT_TLS_AUTHORITY or tls_options), and this "
      "program was built without it: link the CMake target cohort::tls, or compile with -DCOHORT_WITH_TLS and "
      "link with -lssl -lcrypto; without these names it talks in plain text");
}

COHORT_DECL std::string tls_category_type::message(int) const { return "TLS failed"; }

#endif

}  // namespace cohort::transport
