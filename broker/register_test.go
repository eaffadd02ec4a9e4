package broker

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"harvest/gather/store"
)

func registryAt(t testing.TB, dir string) *Broker {
	t.Helper()
	b, err := Open(dir, "registry", testLog(t), Options{Registry: true})
	must(t, err)
	t.Cleanup(func() { b.Close() })
	return b
}

const aService = "@BROKER { 9p://host/broker/%s\nType{6}:\tbroker\nTopic{7}:\tbiology\nTime-to-Live{%d}:\t%s\n}\n"

func service(name, ttl string) string { return fmt.Sprintf(aService, name, len(ttl), ttl) }

func registered(t *testing.T, b *Broker, text string, want ...string) {
	t.Helper()
	hits := read(t, b.Files(), "q/"+text+"/hits")
	if n := strings.Count(hits, "\n"); n != len(want) {
		t.Errorf("%s: got %d hits, want %d", text, n, len(want))
	}
	for _, url := range want {
		if !strings.Contains(hits, "\t"+url+"\t") {
			t.Errorf("%s: got %q, want %s", text, hits, url)
		}
	}
}

// What is registered is found, like in any Broker, and a second time renewed.
func TestRegister(t *testing.T) {
	dir := t.TempDir()
	b := registryAt(t, dir)
	for range 2 {
		must(t, write(b.Files(), "register", service("a", "60")+service("b", "7200")))
	}
	must(t, b.follow(ctx))
	registered(t, b, "type : broker and topic : biology", "9p://host/broker/a", "9p://host/broker/b")
	if n := b.store.Count(); n != 2 {
		t.Errorf("got %d objects, want 2", n)
	}
	must(t, b.gc(ctx)) // nobody gave them but themselves
	registered(t, b, "biology", "9p://host/broker/a", "9p://host/broker/b")
	must(t, b.Close())
	registered(t, registryAt(t, dir), "biology", "9p://host/broker/a", "9p://host/broker/b")
}

func TestRegisterRefuses(t *testing.T) {
	b := registryAt(t, t.TempDir())
	for text, want := range map[string]string{
		"nonsense":                       "",
		"@BROKER { -\nType{1}:\tx\n}\n":  "without a URL",
		service("a", "soon"):             `Time-to-Live "soon"`,
		service("a", "60") + "@BROKER {": "",
		service("a", "60") + strings.Repeat(" ", registerMax): "at a time",
	} {
		if err := write(b.Files(), "register", text); err == nil || !strings.Contains(b.errText(), want) {
			t.Errorf("%.40q: got %v, err %s", text, err, b.errText())
		}
	}
	if n := b.store.Count(); n != 0 {
		t.Errorf("got %d objects, want none", n)
	}
	must(t, write(b.Files(), "register", service("a", "60")))
	if got := b.errText(); strings.Contains(got, "register") {
		t.Errorf("err still has %s", got)
	}
}

// What is not renewed lapses when it said it would, and no sooner.
func TestRegistrationLapses(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := registryAt(t, dir)
		must(t, b.Register(ctx, strings.NewReader(service("a", "60")+service("b", "600"))))
		b.mu.Lock()
		at := b.gcAt
		b.mu.Unlock()
		if d := time.Until(at); d < time.Minute || d > 62*time.Second {
			t.Errorf("looks again in %v, want after a minute", d)
		}
		time.Sleep(61 * time.Second)
		must(t, b.gc(ctx))
		if _, err := b.store.Stat(store.ID("9p://host/broker/a", registerSource)); !errors.Is(err, iofs.ErrNotExist) {
			t.Errorf("a: got %v, want that it lapsed", err)
		}
		if _, err := b.store.Stat(store.ID("9p://host/broker/b", registerSource)); err != nil {
			t.Errorf("b: %v", err)
		}
		if d := time.Until(b.nextLapse()); d < 500*time.Second || d > 600*time.Second {
			t.Errorf("the next lapses in %v, want b's", d)
		}
		must(t, b.Close())
	})
}
