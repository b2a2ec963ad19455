// SPDX-License-Identifier: BSL-1.0
// Any object as a message and back: `codec<T>`, and what it does by itself. The object functions of a communicator
// are made of `encode_objects` and `decode_objects`.
//
// By itself it takes arithmetic types, enums, strings, the standard containers, optional, variant, unique_ptr, pair,
// tuple, array, complex, bitset, chrono, half and its kin, plain structs (Boost.PFR), described classes
// (Boost.Describe), and whatever is made of these; for classes of another kind write codec<T>, or one line for
// cereal's (codec/cereal.hpp). Sizes are the same on every host: all numbers are little-endian and of fixed width.
#pragma once

#include <cohort/codec/aggregates.hpp>
#include <cohort/codec/associative.hpp>
#include <cohort/codec/chrono.hpp>
#include <cohort/codec/described.hpp>
#include <cohort/codec/message.hpp>
#include <cohort/codec/products.hpp>
#include <cohort/codec/reader.hpp>
#include <cohort/codec/refusal.hpp>
#include <cohort/codec/scalars.hpp>
#include <cohort/codec/sequences.hpp>
#include <cohort/codec/sums.hpp>
#include <cohort/codec/type_shape.hpp>
#include <cohort/codec/writer.hpp>
