package broker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// weighed is a Broker of five objects with the same words; the last three are of
// one site. If they link, each refers to those before it.
func weighed(t *testing.T, config string, link bool) (b *Broker, urls []string) {
	t.Helper()
	w := newWorld(t)
	g := w.gatherer("g")
	sites := []string{"http://a", "http://b", "http://c", "http://c", "http://c"}
	for i, site := range sites {
		o := object(fmt.Sprintf("%s/%d", site, i), "same", "words"+strings.Repeat(" ", 100*i)+".")
		o.Add("Quality", []byte(fmt.Sprint(10*((i+2)%5))))
		if link {
			o.Add("URL-References", []byte(strings.Join(urls, "#x\n")))
		}
		urls = append(urls, o.URL)
		apply(t, g, update(o))
	}
	b = w.broker(t.TempDir(), "source path=g\n"+config)
	must(t, b.Collect(ctx, "g"))
	return b, urls
}

// order are the hits of a session, by the digit their URLs end with.
func order(t *testing.T, b *Broker, path string) (out string) {
	t.Helper()
	for line := range strings.Lines(read(t, b.Files(), path+"/hits")) {
		u := strings.Split(line, "\t")[4]
		out += u[len(u)-1:]
	}
	return out
}

// Each table puts objects with the same words in its order.
func TestExternal(t *testing.T) {
	b, _ := weighed(t, "", false)
	d := b.Files()
	mkdir(t, d, "query/x")
	must(t, write(d, "query/x/ctl", "query words\n"))
	for _, tt := range []struct{ name, want string }{
		{"size", "43210"},
		{"quality", "21043"},
	} {
		must(t, write(d, "query/x/ctl", "set external="+tt.name+"\n"))
		if got := order(t, b, "query/x"); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
		if got := read(t, d, "query/x/why"); !strings.Contains(got, "from outside, a=") {
			t.Errorf("%s: got why %s", tt.name, got)
		}
		if got := read(t, d, "query/x/status"); !strings.Contains(got, "\nexternal="+tt.name+"\n") {
			t.Errorf("%s: got status %s", tt.name, got)
		}
	}
	must(t, write(d, "query/x/ctl", "set external=no\n"))
	if got := read(t, d, "query/x/why"); strings.Contains(got, "from outside") {
		t.Errorf("no: got why %s", got)
	}
}

// A link counts once for each site.
func TestExternalLinks(t *testing.T) {
	b, _ := weighed(t, "external use=links\n", true)
	// 0 has links from b and c, 1 and those of c from c alone, though from
	// several pages; to the last there is none.
	w, err := b.weightsOf(ctx, "links")
	must(t, err)
	for i, want := range []string{"1.00", "0.63", "0.63", "0.63", "0.00"} {
		url := []string{"http://a/0", "http://b/1", "http://c/2", "http://c/3", "http://c/4"}[i]
		if got := fmt.Sprintf("%.2f", w.Weight([16]byte(oid(url)))); got != want {
			t.Errorf("%s: got weight %s, want %s", url, got, want)
		}
	}
	if got := read(t, b.Files(), "q/words/why"); !strings.Contains(got, "from outside, a=") {
		t.Errorf("got why %s", got)
	}
}

// A page that is new to the Broker and has a link outranks an old one that has two,
// for a while.
func TestExternalYoung(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("g")
	page := func(url, text, links string) {
		o := object(url, "same", text)
		o.Add("URL-References", []byte(links))
		o.Add("File-Size", []byte("4"))
		apply(t, g, update(o))
	}
	page("http://x/old", "words", "")
	page("http://b/", "other", "http://x/old\n")
	page("http://c/", "other", "http://x/old\n")
	b := w.broker(t.TempDir(), "source path=g\nexternal use=links young=24h every=1h\n")
	must(t, b.Collect(ctx, "g"))
	page("http://x/young", "words", "")
	page("http://d/", "other", "http://x/young\n")
	must(t, b.Collect(ctx, "g"))
	must(t, b.registry.merge())
	seen := func(url string, ago time.Duration) {
		t.Helper()
		must(t, b.registry.update(func(tx *bbolt.Tx) error {
			o := oid(url)
			v, ok := parseGiven(tx.Bucket(bucketObjects).Get(o[:]))
			if at := time.Unix(int64(v.seen), 0); !ok || time.Since(at) > time.Minute {
				t.Fatalf("%s: got first seen at %s, %v, want now", url, at, ok)
			}
			v.seen = uint32(time.Now().Add(-ago).Unix())
			return tx.Bucket(bucketObjects).Put(o[:], v.append(nil))
		}))
	}
	seen("http://x/old", 100*24*time.Hour)
	first := func() string {
		return strings.Split(read(t, b.Files(), "q/words/hits"), "\t")[4]
	}
	if got := first(); got != "http://x/young" {
		t.Errorf("got %s first, want the one that is new", got)
	}
	o := object("http://x/old", "same", "words")
	o.Add("URL-References", nil)
	o.Add("File-Size", []byte("5")) // it is no newer for that
	apply(t, g, update(o))
	must(t, b.Collect(ctx, "g"))
	must(t, b.reweigh(ctx, time.Now().Add(2*time.Hour)))
	if got := first(); got != "http://x/young" {
		t.Errorf("a change later: got %s first, want the one that is new", got)
	}
	must(t, b.reweigh(ctx, time.Now().Add(60*24*time.Hour)))
	if got := first(); got != "http://x/old" {
		t.Errorf("60 days later: got %s first, want the one with two links", got)
	}
}

// What is newer weighs more, and half as much after 90 days.
func TestRecency(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("g")
	now := time.Now()
	for i, days := range []int{180, 0, 90} {
		o := object(fmt.Sprintf("http://a/%d", i), "same", "words")
		o.Attrs[0].Value = fmt.Append(nil, now.AddDate(0, 0, -days).Unix()) // Update-Time
		apply(t, g, update(o))
	}
	b := w.broker(t.TempDir(), "source path=g\nexternal use=recency\n")
	must(t, b.Collect(ctx, "g"))
	if got := order(t, b, "q/words"); got != "120" {
		t.Errorf("got %s, want the newest first", got)
	}
	table, err := b.weightsOf(ctx, "recency")
	must(t, err)
	for i, want := range []float64{.25, 1, .5} {
		if got := table.Weight([16]byte(oid(fmt.Sprintf("http://a/%d", i)))); got < want-.01 || got > want+.01 {
			t.Errorf("object %d: got weight %.3f, want %.2f", i, got, want)
		}
	}
}

// A table is made again when it is old and objects have changed, not before.
func TestReweigh(t *testing.T) {
	b, urls := weighed(t, "external every=1h\n", false)
	first, err := b.weightsOf(ctx, "size")
	must(t, err)
	again := func(after time.Duration) bool {
		t.Helper()
		must(t, b.reweigh(ctx, time.Now().Add(after)))
		w, err := b.weightsOf(ctx, "size")
		must(t, err)
		return w != first
	}
	if again(2 * time.Hour) {
		t.Error("got another table, though nothing changed")
	}
	must(t, b.delete(ctx, []string{oid(urls[4]).String()}))
	if again(time.Minute) {
		t.Error("got another table within a minute")
	}
	if !again(2 * time.Hour) {
		t.Error("got the old table after two hours")
	}
	for i := range 2 * maxExternals {
		_, err := b.weightsOf(ctx, fmt.Sprint("attribute", i))
		must(t, err)
	}
	if n := len(b.externals.all); n > maxExternals {
		t.Errorf("got %d tables kept, want %d", n, maxExternals)
	}
}

func TestExternalConfig(t *testing.T) {
	for _, text := range []string{"external\n", "external=links\n", "external use=links each=1h\n", "external every=0s\n", "external use=size young=1h\n", "external use=links young=0s\n"} {
		if _, err := parseConfig(text); err == nil {
			t.Errorf("%q: got no error", text)
		}
	}
	c, err := parseConfig("external use=Links every=24h\n")
	must(t, err)
	if c.external != (external{use: "links", every: 24 * time.Hour}) {
		t.Errorf("got %+v", c.external)
	}
	if !slices.Equal([]string{parsedUse(t, "external use=no\n"), parsedUse(t, "")}, []string{"", ""}) {
		t.Error("got a table used where none is asked for")
	}
}

func parsedUse(t *testing.T, text string) string {
	t.Helper()
	c, err := parseConfig(text)
	must(t, err)
	return c.external.use
}
