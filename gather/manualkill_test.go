package gather

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"harvest/gather/soif"
	"harvest/gather/store"
)

// A deed is the i-th thing that is done to eight objects: the machine finds a
// title, a person writes one, or takes back what was written.
func deed(g *Gatherer, i int) error {
	url := fmt.Sprint("http://h/", i%8)
	oid := g.oid(url)
	switch i / 8 % 4 {
	case 0, 2:
		o := soif.Object{Type: "FILE", URL: url}
		o.Add("Title", fmt.Appendf(nil, "machine %d", i))
		o.Add("Update-Time", fmt.Append(nil, time.Now().Unix()))
		return g.keep(context.Background(), []store.Change{{Op: soif.Update, OID: oid, URL: url, Body: o.Append(nil)}})
	case 1:
		text := fmt.Sprintf("Title: hand %d", i)
		return g.manual.set(context.Background(), oid.String()+".soif", &text)
	}
	return g.manual.set(context.Background(), oid.String()+".soif", nil)
}

// deeds are the titles that are to be there after the first n deeds: what is
// read, and what the machine has found.
func deeds(n int) (titles, autos [8]string) {
	var hand [8]string
	for i := range n {
		switch i / 8 % 4 {
		case 0, 2:
			autos[i%8] = fmt.Sprint("machine ", i)
		case 1:
			hand[i%8] = fmt.Sprint("hand ", i)
		case 3:
			hand[i%8] = ""
		}
	}
	for k := range titles {
		if titles[k] = hand[k]; hand[k] == "" {
			titles[k] = autos[k]
			autos[k] = "" // it is not kept apart
		}
	}
	return titles, autos
}

// TestManualKill: kill -9 at any moment loses nothing that was acknowledged, of
// people's or of the machine's, and mixes nothing up.
func TestManualKill(t *testing.T) {
	if dir := os.Getenv("HARVEST_TEST_MANUAL"); dir != "" {
		g, err := Open(dir, "test", slog.New(slog.DiscardHandler), Options{})
		if err != nil {
			t.Fatal(err)
		}
		from, err := strconv.Atoi(os.Getenv("HARVEST_TEST_FROM"))
		for i := from; err == nil; i++ {
			err = deed(g, i)
			fmt.Println(i)
		}
		t.Fatal(err)
	}
	kills := 6
	if n, err := strconv.Atoi(os.Getenv("HARVEST_KILLS")); err == nil {
		kills = n
	}
	t.Logf("%d kills; HARVEST_KILLS=100 makes 100", kills)
	dir, done := t.TempDir(), 0
	for range kills {
		done = killed(t, dir, done, 1+rand.IntN(60))
		g, err := Open(dir, "test", slog.New(slog.DiscardHandler), Options{})
		if err != nil {
			t.Fatal(err)
		}
		// One more may be done than was told.
		if !agrees(g, done, nil) {
			done++
		}
		if !agrees(g, done, t.Errorf) {
			t.Fatalf("after %d deeds", done)
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// killed has a process do deeds from the first that is not done, kills it when it
// has told of some more, and returns how many it has told of.
func killed(t *testing.T, dir string, done, more int) int {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "-test.run=^TestManualKill$")
	cmd.Env = append(os.Environ(), "HARVEST_TEST_MANUAL="+dir, fmt.Sprint("HARVEST_TEST_FROM=", done))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(out)
	for n := 0; n < more && in.Scan(); n++ {
		i, err := strconv.Atoi(in.Text())
		if err != nil || i != done {
			t.Fatalf("got %q, want %d", in.Text(), done)
		}
		done++
	}
	time.AfterFunc(time.Duration(rand.IntN(20))*time.Millisecond, func() { cmd.Process.Kill() })
	for in.Scan() {
		if _, err := strconv.Atoi(in.Text()); err == nil {
			done++
		}
	}
	io.Copy(io.Discard, out)
	cmd.Wait() // killed, as it was to be
	return done
}

// agrees reports whether the collection is as n deeds leave it.
func agrees(g *Gatherer, n int, complain func(string, ...any)) bool {
	titles, autos := deeds(n)
	ok := true
	for k := range titles {
		oid := g.oid(fmt.Sprint("http://h/", k))
		b, _, err := g.store.Get(oid)
		got := title(b)
		if errors.Is(err, iofs.ErrNotExist) {
			err = nil
		}
		auto, aerr := g.manual.auto(oid)
		if errors.Is(aerr, iofs.ErrNotExist) {
			aerr = nil
		}
		if err == nil && aerr == nil && got == titles[k] && title(auto) == autos[k] {
			continue
		}
		if ok = false; complain != nil {
			complain("object %d: got %q and %q (%v, %v), want %q and %q", k, got, title(auto), err, aerr, titles[k], autos[k])
		}
	}
	return ok
}

func title(b []byte) string {
	o, _, err := soif.Parse(b, soif.Limits{})
	if err != nil {
		return ""
	}
	return o.Text("Title")
}
