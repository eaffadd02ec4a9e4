package gathertest

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// TestBombs opens the bombs a little: they are what they say they are.
func TestBombs(t *testing.T) {
	const enough = 8 << 20
	for name, c := range map[string]struct {
		bomb func(io.Writer)
		open func(io.Reader) (io.Reader, error)
	}{
		"gzip": {gzipBomb, func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
		"zstd": {zstdBomb, func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) }},
		"br":   {brotliBomb, func(r io.Reader) (io.Reader, error) { return brotli.NewReader(r), nil }},
	} {
		pr, pw := io.Pipe()
		go func() { c.bomb(pw) }() // ends when the pipe is closed
		in := &counter{r: pr}
		r, err := c.open(in)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n, err := io.CopyN(io.Discard, r, enough); err != nil {
			t.Errorf("%s: after %d bytes: %v", name, n, err)
		}
		if n := in.n.Load(); n > enough/500 {
			t.Errorf("%s: %d bytes make %d: want fewer", name, n, enough)
		}
		pr.Close()
	}
}

type counter struct {
	r io.Reader
	n atomic.Int64 // decoders read ahead
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// TestHostile asks for the beginning of every trick: each is served, and Close
// lets go of those that hang.
func TestHostile(t *testing.T) {
	h := NewHostile()
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := client.Get(h.Roots()[0])
	if err != nil {
		t.Fatal(err)
	}
	home, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, trick := range h.Tricks {
		if names[trick.Name] {
			t.Errorf("%s: twice", trick.Name)
		}
		names[trick.Name] = true
		if !trick.Server && !strings.Contains(string(home), "/"+trick.Name+"/") {
			t.Errorf("%s: not on the home page", trick.Name)
		}
		if trick.Name == "silent" || trick.Name == "interim" || trick.Name == "slowheader" {
			continue // no answer comes
		}
		if r, err := client.Get(h.URL(trick.Name)); err == nil {
			_, err = io.CopyN(io.Discard, r.Body, 1)
			r.Body.Close()
			if err != nil && errors.Is(err, http.ErrHandlerTimeout) {
				t.Errorf("%s: %v", trick.Name, err)
			}
		}
		if h.Requests(trick.Name) == 0 {
			t.Errorf("%s: got no request", trick.Name)
		}
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if h.Sent() == 0 {
		t.Error("got nothing sent")
	}
}
