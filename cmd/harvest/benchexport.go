package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// gatherdLine has a Gatherer speak the old export protocol too.
const gatherdLine = "gatherd listen=127.0.0.1:0\n"

// gatherdCosts is what it takes the server to send all of a collection by the
// old protocol, a connection for each time.
func (s *benchServer) gatherdCosts(ctx context.Context, status string) (all []streamCost, err error) {
	addr, err := s.gatherdAddr(ctx, status)
	if err != nil {
		return nil, err
	}
	for _, how := range []string{"none", "zstd", "gzip"} {
		c, err := s.gatherdCost(addr, "SET compression "+how+"\nSEND-UPDATE 0\nQUIT\n")
		if err != nil {
			return nil, err
		}
		c.name = "SEND-UPDATE 0, compression " + how
		all = append(all, c)
	}
	return all, nil
}

// gatherdAddr is where a Gatherer's status says that it listens.
func (s *benchServer) gatherdAddr(ctx context.Context, status string) (string, error) {
	f, err := walkFile(ctx, s.client.Root(), status)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := copyFile(ctx, &b, f); err != nil {
		return "", err
	}
	for line := range strings.Lines(b.String()) {
		if addr, ok := strings.CutPrefix(strings.TrimSpace(line), "gatherd="); ok {
			return addr, nil
		}
	}
	return "", fmt.Errorf("%s: gatherd does not listen", status)
}

func (s *benchServer) gatherdCost(addr, lines string) (c streamCost, err error) {
	if c.bytes, err = talk(addr, lines); err != nil { // what is kept ready is so now
		return c, err
	}
	c.cpu, err = s.median(readsOf(c.bytes), func() error {
		_, err := talk(addr, lines)
		return err
	})
	return c, err
}

// talk says lines to a server and counts what it answers.
func talk(addr, lines string) (int64, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return 0, err
	}
	if _, err := io.WriteString(c, lines); err != nil {
		return 0, err
	}
	n, err := io.Copy(io.Discard, c)
	if err == nil && n < int64(len("000 - ")) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
