package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// A registry of servers is a Broker whose objects describe services, and come
// by themselves: who writes one says with it how long that holds.

// registerSource is what the registry calls who wrote an object; it is no path.
const registerSource = "register"

// Lifetimes of what is registered, and how much is taken at a time.
const (
	registerTTL = time.Hour
	registerMax = 1 << 20
)

// Register adds the objects of a SOIF stream, or renews them: all or, with an
// error, none. One without a Time-to-Live lapses after an hour.
func (b *Broker) Register(ctx context.Context, text io.Reader) error {
	changes, err := registrations(text)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		return fmt.Errorf("no object: %w", iofs.ErrInvalid)
	}
	at, err := b.registry.places([]string{registerSource})
	if err != nil {
		return err
	}
	if err := b.put(ctx, at[registerSource].id, func() error {
		_, err := b.store.Apply(ctx, changes)
		return err
	}, changes); err != nil {
		return err
	}
	for i := range changes {
		b.event("registered", ndb.Of("url", changes[i].URL), ndb.Of("oid", changes[i].OID))
	}
	b.lapse(changes)
	return nil
}

// registrations reads objects, up to the first error.
func registrations(text io.Reader) (changes []store.Change, err error) {
	now, d := time.Now(), soif.NewDecoder(text, soif.Limits{})
	for {
		var o soif.Object
		if err := d.Next(&o); err == io.EOF {
			return changes, nil
		} else if err != nil {
			return changes, err
		}
		c, err := registration(&o, now)
		if err != nil {
			line, _ := d.Pos()
			return changes, fmt.Errorf("line %d: %w", line, err)
		}
		changes = append(changes, c)
	}
}

// checkRegistrations tells what is wrong with a text that may go on.
func (b *Broker) checkRegistrations(text []byte) error {
	if _, err := registrations(bytes.NewReader(text)); !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return nil
}

func registration(o *soif.Object, now time.Time) (store.Change, error) {
	if o.URL == "" || o.URL == "-" {
		return store.Change{}, fmt.Errorf("object without a URL: %w", iofs.ErrInvalid)
	}
	o.Set("Update-Time", fmt.Append(nil, now.Unix()))
	ttl := registerTTL
	if text, ok := o.Get("Time-to-Live"); ok {
		if ttl = seconds(string(text)); ttl <= 0 && string(text) != "0" {
			return store.Change{}, fmt.Errorf("%s: Time-to-Live %q is no time: %w", o.URL, text, iofs.ErrInvalid)
		}
	}
	o.Set("Time-to-Live", fmt.Append(nil, int64(ttl/time.Second)))
	oid := registeredID(o.URL)
	o.Set("Object-ID", []byte(oid.String()))
	return store.Change{Op: soif.Update, OID: oid, URL: o.URL, Body: o.Append(nil)}, nil
}

// registeredID is the OID of what is registered under a URL.
func registeredID(url string) store.OID { return store.ID(url, registerSource) }

// lapse has what has outlived its time to live dropped when the first of some
// objects does.
func (b *Broker) lapse(changes []store.Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range changes {
		e, err := b.store.Stat(changes[i].OID)
		if err == nil && e.TTL > 0 && e.Expires().Before(b.gcAt) {
			b.gcAt = e.Expires().Add(time.Second)
		}
	}
	b.poke()
}

// nextLapse is when the first object that somebody registered lapses, zero if
// none does or this is no registry.
func (b *Broker) nextLapse() (first time.Time) {
	if !b.registers {
		return first
	}
	for e, err := range b.store.Scan(context.Background(), "", "") {
		if err != nil {
			return first
		}
		if at := e.Expires(); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if first.IsZero() {
		return first
	}
	return first.Add(time.Second)
}
