// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/tls.hpp, with OpenSSL where the component `tls` is linked and defines COHORT_WITH_TLS. Without it a
// program that is asked for TLS refuses: it must not talk in plain text instead.
#pragma once

#include <cohort/transport/tls.hpp>

#ifdef COHORT_WITH_TLS
#include <cohort/transport/impl/tls_openssl.hpp>
#else

#include <cohort/error.hpp>

namespace cohort::transport {

COHORT_DECL std::shared_ptr<const tls_context> open_tls(const tls_options& files) {
  if (!files.asked_for()) return nullptr;
  throw error(
      errc::tls_failed,
      "TLS is asked for (COHORT_TLS_CERTIFICATE, COHORT_TLS_KEY, COHORT_TLS_AUTHORITY or tls_options), and this "
      "program was built without it: link the CMake target cohort::tls, or compile with -DCOHORT_WITH_TLS and "
      "link with -lssl -lcrypto; without these names it talks in plain text");
}

COHORT_DECL std::string tls_category_type::message(int) const { return "TLS failed"; }

}  // namespace cohort::transport

#endif
