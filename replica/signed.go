package replica

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	iofs "io/fs"
	"strings"
	"time"

	"harvest/fs/ndb"
)

// A signed text is a line that tells who signed the rest of it and when:
//
//	measured key=6f… at=2026-11-22T04:58:00.125Z sig=a0…
//
// The first word is the kind, which is signed too.
type signed struct {
	key  ed25519.PublicKey
	at   time.Time
	body string // the other lines
	text string // all
}

// signedAt is how the time is written: sheets follow each other within a second.
const signedAt = "2006-01-02T15:04:05.000Z07:00"

func (s *signed) writer() Writer { return WriterOf(s.key) }

func signedBytes(kind, at, body string) []byte {
	return []byte("harvest replica " + kind + "\n" + at + "\n" + body)
}

// signText makes a signed text.
func signText(kind string, key ed25519.PrivateKey, now time.Time, body string) string {
	at := now.UTC().Format(signedAt)
	return ndb.Format(ndb.Of(kind, ""), ndb.Of("key", hex.EncodeToString(key.Public().(ed25519.PublicKey))), ndb.Of("at", at),
		ndb.Of("sig", hex.EncodeToString(ed25519.Sign(key, signedBytes(kind, at, body))))) + "\n" + body
}

// parseSigned reads a signed text and verifies it.
func parseSigned(kind, text string) (s signed, err error) {
	line, body, _ := strings.Cut(text, "\n")
	e, err := ndb.ParseLine(line, 1)
	if err != nil {
		return s, err
	}
	if e.First().Key != kind || e.First().Value != "" {
		return s, e.Errorf(e.First(), "want %s, and who signed it", kind)
	}
	key, _ := e.Pair("key")
	at, _ := e.Pair("at")
	sig, _ := e.Pair("sig")
	if s.key, err = hex.DecodeString(key.Value); err != nil || len(s.key) != ed25519.PublicKeySize {
		return s, e.Errorf(key, "key: want %d hex digits", 2*ed25519.PublicKeySize)
	}
	if s.at, err = time.Parse(time.RFC3339, at.Value); err != nil {
		return s, e.Errorf(at, "at: want a time")
	}
	b, err := hex.DecodeString(sig.Value)
	if err != nil || !ed25519.Verify(s.key, signedBytes(kind, at.Value, body), b) {
		return s, fmt.Errorf("%s of %s: not signed by it: %w", kind, s.writer(), iofs.ErrInvalid)
	}
	s.body, s.text = body, text
	return s, nil
}
