// Package dup tells which documents are copies of one another, or nearly, and
// which of several copies is the one to keep: the score of a URL (score.go),
// signatures of 64 bytes that tell a crawler that pages repeat (signature.go),
// and sketches of 128 bytes that a Broker finds near duplicates by (sketch.go).
// It keeps nothing and reads nothing.
package dup
