package icp

import (
	"bytes"
	"encoding/hex"
	"errors"
	iofs "io/fs"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestMessage holds messages to their octets, both ways.
func TestMessage(t *testing.T) {
	const url = "687474703a2f2f612f00" // http://a/
	for _, c := range []struct {
		hex string
		m   Message
	}{
		{"01020022000000010000000000000000" + "00000000" + "00000000" + url, Message{Op: Query, Number: 1, URL: "http://a/"}},
		{"01020022000000014000000000000000" + "00000000" + "00000000" + url, Message{Op: Query, Number: 1, URL: "http://a/", WantSource: true}},
		{"0202001efffffffe0000000000000000" + "00000000" + url, Message{Op: Hit, Number: 1<<32 - 2, URL: "http://a/"}},
		{"0302001e000000014000000000000119" + "00000000" + url, Message{Op: Miss, Number: 1, URL: "http://a/", HasSource: true, Source: 281 * time.Millisecond}},
		{"0402001e000000010000000000000000" + "00000000" + url, Message{Op: Err, Number: 1, URL: "http://a/"}},
		{"0a02001e000000010000000000000000" + "00000000" + url, Message{Op: SourceEcho, Number: 1, URL: "http://a/"}},
		{"0b02001e000000010000000000000000" + "00000000" + url, Message{Op: DumbEcho, Number: 1, URL: "http://a/"}},
		{"1502001e000000010000000000000000" + "00000000" + url, Message{Op: MissNoFetch, Number: 1, URL: "http://a/"}},
		{"1602001e000000010000000000000000" + "00000000" + url, Message{Op: Denied, Number: 1, URL: "http://a/"}},
		{"17020022000000010000000000000000" + "00000000" + url + "00026869", Message{Op: HitObject, Number: 1, URL: "http://a/", Object: []byte("hi")}},
	} {
		if got := hex.EncodeToString(c.m.Append(nil)); got != c.hex {
			t.Errorf("%v: got\n%s, want\n%s", c.m.Op, got, c.hex)
		}
		b, err := hex.DecodeString(c.hex)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Parse(b); err != nil || !reflect.DeepEqual(got, c.m) {
			t.Errorf("%v: got %+v, %v, want %+v", c.m.Op, got, err, c.m)
		}
		for n := range b {
			if _, err := Parse(b[:n]); !errors.Is(err, iofs.ErrInvalid) {
				t.Errorf("%v cut at %d: got %v, want it refused", c.m.Op, n, err)
			}
		}
		if _, err := Parse(append(b, 0)); !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("%v and an octet: got %v, want it refused", c.m.Op, err)
		}
	}
}

// TestRefused changes one thing of a sound message at a time.
func TestRefused(t *testing.T) {
	sound := Message{Op: Query, Number: 7, URL: "http://a/"}.Append(nil)
	for _, c := range []struct {
		what string
		at   int
		to   byte
	}{
		{"version 3", 1, 3}, {"opcode 0", 0, 0}, {"opcode 5", 0, 5}, {"opcode 255", 0, 255}, {"a longer length", 3, 99}, {"a shorter one", 3, 30},
		{"a blank", 26, ' '}, {"a line end", 26, '\n'}, {"a carriage return", 26, '\r'}, {"delete", 26, 0x7f}, {"two ends", 26, 0}, {"an empty url", 24, 0}, {"no end", len(sound) - 1, 'x'},
		{"an object that is not there", 0, byte(HitObject)},
	} {
		b := bytes.Clone(sound)
		b[c.at] = c.to
		if m, err := Parse(b); !errors.Is(err, iofs.ErrInvalid) || m.Op != 0 {
			t.Errorf("%s: got %+v, %v, want it refused", c.what, m, err)
		}
	}
}

// TestLongest holds the protocol's bound to both sides of it.
func TestLongest(t *testing.T) {
	m := Message{Op: Query, URL: strings.Repeat("u", MaxURL)}
	b := m.Append(nil)
	if got, err := Parse(b); err != nil || got.URL != m.URL || len(b) != MaxMessage {
		t.Errorf("got %d octets, %v, want %d and no error", len(b), err, MaxMessage)
	}
	defer func() {
		if recover() == nil {
			t.Error("got a message past the bound written, want a panic")
		}
	}()
	m.URL += "u"
	m.Append(nil)
}

// TestSource holds the round trip to its 16 bits of milliseconds.
func TestSource(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		-time.Second: 0, 1999 * time.Microsecond: time.Millisecond, 65535 * time.Millisecond: 65535 * time.Millisecond, time.Hour: 65535 * time.Millisecond,
	} {
		m, err := Parse(Message{Op: Miss, URL: "u", HasSource: true, Source: d}.Append(nil))
		if err != nil || !m.HasSource || m.Source != want {
			t.Errorf("%v: got %v, %v, want %v", d, m.Source, err, want)
		}
	}
}

// FuzzParse holds what is read to being written as it was, but for the
// addresses, options and option data that we do not keep.
func FuzzParse(f *testing.F) {
	f.Add(Message{Op: Query, Number: 1, URL: "http://a/", WantSource: true}.Append(nil))
	f.Add(Message{Op: Hit, Number: 2, URL: "http://a/", HasSource: true, Source: time.Second}.Append(nil))
	f.Add(Message{Op: HitObject, Number: 3, URL: "http://a/", Object: []byte("object")}.Append(nil))
	f.Add([]byte{1, 2, 0, 20})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil {
			if !errors.Is(err, iofs.ErrInvalid) {
				t.Fatalf("got %v, want iofs.ErrInvalid", err)
			}
			return
		}
		w := m.Append([]byte("before"))[6:]
		if len(w) != len(b) {
			t.Fatalf("got %d octets of %d", len(w), len(b))
		}
		again, err := Parse(w)
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Fatalf("got %+v, %v, want %+v", again, err, m)
		}
	})
}
