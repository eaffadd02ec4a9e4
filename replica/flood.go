package replica

import (
	"context"
	"crypto/rand"
	"fmt"
	iofs "io/fs"
	"strings"
	"time"
	"unicode/utf8"

	"harvest/fs/ndb"
	"harvest/gather/store"
)

// A flood brings what is written to send to all members, hop by hop, whoever is
// connected with whom. It is a mirror of its own, of messages that live for an hour:
// so each member has each once, from whichever neighbour told it first, and one that
// was away for less than that lacks none.
const (
	floodTTL   = time.Hour
	maxMessage = 8 << 10
)

// send floods a message, and has it on disk when it returns.
func (r *Replica) send(ctx context.Context, text string) error {
	switch {
	case len(text) > maxMessage:
		return fmt.Errorf("send: %d bytes, not %d at most: %w", len(text), maxMessage, iofs.ErrInvalid)
	case !utf8.ValidString(text):
		return fmt.Errorf("send: not UTF-8: %w", iofs.ErrInvalid)
	}
	var oid store.OID
	if _, err := rand.Read(oid[:]); err != nil {
		return err
	}
	now := time.Now()
	p := publication{oid: oid, body: []byte(text), updated: now, ttl: floodTTL}
	if _, err := r.flood.publish(ctx, []publication{p}, now); err != nil {
		return err
	}
	rec := p.record()
	r.received(r.flood.self, &rec, p.body)
	return nil
}

// received shows a message, once.
func (r *Replica) received(w Writer, rec *Record, body []byte) {
	text := strings.ToValidUTF8(string(body), "?")
	r.shown.recv.Add(ndb.Format(ndb.Of("time", time.Unix(int64(rec.Updated), 0)), ndb.Of("from", w), ndb.Of("text", text)))
}
