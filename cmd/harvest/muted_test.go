package main

import (
	"bytes"
	"log"
	"log/slog"
	"strings"
	"testing"
)

// TestMuted: what the standard library says of servers goes to the log, as far
// as that is asked for, and at a length of ours.
func TestMuted(t *testing.T) {
	var out bytes.Buffer
	for level, want := range map[slog.Level]int{slog.LevelInfo: 0, slog.LevelDebug: 1} {
		out.Reset()
		l := log.New(muted{slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level}))}, "", 0)
		l.Printf("Unsolicited response received on idle HTTP channel starting with %q", strings.Repeat("x", 9000))
		if n := strings.Count(out.String(), "\n"); n != want || out.Len() > 400 {
			t.Errorf("%v: got %d lines, %d bytes, want %d lines", level, n, out.Len(), want)
		}
	}
}
