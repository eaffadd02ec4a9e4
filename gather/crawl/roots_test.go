package crawl

import (
	"path/filepath"
	"slices"
	"testing"
)

// TestRootsOf: the roots of a server are those on its host, and those that it
// was let in for.
func TestRootsOf(t *testing.T) {
	f := openDB(t, filepath.Join(t.TempDir(), "crawl.db"))
	all := []Root{{URL: "http://a/", Hosts: 1, Depth: -1}, {URL: "https://a/x/", Hosts: 1, Depth: -1}, {URL: "http://a:81/", Hosts: 1, Depth: -1},
		{URL: "http://b/", Hosts: 9, Depth: -1, Delay: 7}, {URL: "http://c/", Hosts: 1, Depth: -1}, {URL: "ftp://a/", Hosts: 1, Depth: -1}}
	v, err := newVisit(f, Plan{Roots: all}, nil, nil, new(Counts))
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.roots[RootID("http://b/")].hosts[f.server("https://a")] = struct{}{}
	for origin, want := range map[string][]string{
		"http://a":    {"http://a/", "https://a/x/"},
		"https://a":   {"http://a/", "http://b/", "https://a/x/"},
		"http://a:81": {"http://a:81/"},
		"ftp://a":     {"ftp://a/"},
		"http://b":    {"http://b/"},
		"http://d":    nil,
	} {
		var got []string
		for r := range v.rootsOf(&host{id: f.server(origin), origin: origin}) {
			got = append(got, r.URL)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", origin, got, want)
		}
		for other := range map[string]bool{"http://a": true, "https://a": true, "http://a:81": true, "ftp://a": true, "ftps://a": true, "http://[::1]": true} {
			if got, want := hostKey(origin) == hostKey(other), sameHost(origin, other); got != want {
				t.Errorf("%s and %s: got one key %t, want %t", origin, other, got, want)
			}
		}
	}
}
