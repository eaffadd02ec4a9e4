package crawl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// script makes a program of shell lines.
func script(t *testing.T, lines string) []string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "enum")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+lines), 0o700); err != nil {
		t.Fatal(err)
	}
	return []string{name}
}

// enumerated runs a program and gives its roots, and the errors as lines.
func enumerated(ctx context.Context, program []string, urls ...string) (roots []Enumerated, bad []string) {
	for r, err := range Enumerate(ctx, program, urls) {
		if err != nil {
			bad = append(bad, err.Error())
			continue
		}
		roots = append(roots, r)
	}
	return roots, bad
}

func TestEnumerate(t *testing.T) {
	filter := filepath.Join(t.TempDir(), "filter")
	if err := os.WriteFile(filter, []byte("Deny /old/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	roots, bad := enumerated(t.Context(), script(t, `
while read u; do
	echo "${u}a/ 100 `+filter+` 3 `+filter+` HTTP|FTP 2.5 4 /bin/more"
	echo "$u 1 /dev/null 1 /dev/null Gopher 0 0 /bin/false"
done
# a comment
echo HTTP://Other/x
echo; echo '# no URL'
printf http://last/`), "http://site/", "http://site2/")
	if len(bad) > 0 || len(roots) != 6 {
		t.Fatalf("got %+v, %q", roots, bad)
	}
	a := roots[0]
	if a.URL != "http://site/a/" || a.Leaf || a.URLs != 100 || a.Hosts != 3 || a.Delay != 2500*time.Millisecond || a.Depth != 4 ||
		!slices.Equal(a.Access, []string{"http", "ftp"}) || !slices.Equal(a.Program, []string{"/bin/more"}) {
		t.Errorf("got %+v", a)
	}
	if ok, why := a.URLFilter.Admits("/old/"); ok || why != filter+":1: Deny /old/" || a.HostFilter != a.URLFilter {
		t.Errorf("filter: got %t, %s", ok, why)
	}
	if b := roots[1]; b.URL != "http://site/" || b.Depth != -1 || b.URLFilter != nil || b.Program != nil || b.Delay != 0 {
		t.Errorf("got %+v", b)
	}
	if c := roots[4]; c.URL != "http://other/x" || !c.Leaf || c.Delay >= 0 {
		t.Errorf("got %+v", c)
	}
	if roots[2].URL != "http://site2/a/" || roots[5].URL != "http://last/" {
		t.Errorf("got %+v", roots)
	}
}

func TestEnumerateBad(t *testing.T) {
	for lines, want := range map[string]string{
		"echo http://a/ b":  "line 1: 2 fields; a line has nine, or is a URL: invalid argument",
		"echo; echo htp:/x": "line 2: bad url",
		"echo http://a/ x /dev/null 1 /dev/null HTTP 1 1 /bin/false":   "line 1: URL-Max: 'x' is not a number",
		"echo http://a/ 1 /no/filter 1 /dev/null HTTP 1 1 /bin/false":  "line 1: open /no/filter: no such file",
		"echo http://a/ 1 /dev/null 1 /dev/null WAIS 1 1 /bin/false":   "line 1: access: 'wais' is none of",
		"echo http://a/ 1 /dev/null 1 /dev/null HTTP -1 1 /bin/false":  "line 1: delay: '-1' is not seconds",
		"echo http://a/ 1 /dev/null 1 /dev/null HTTP NaN 1 /bin/false": "line 1: delay: 'NaN' is not seconds",
		"echo http://a/ 1 /dev/null 1 /dev/null HTTP 1 -1 /bin/false":  "line 1: Depth: '-1' is not a number",
		"echo >&2 first; echo >&2 'no such table'; exit 3":             "exit status 3: no such table",
		"kill -9 $$":                           "signal: killed",
		"head -c 20000 /dev/zero | tr '\\0' a": fmt.Sprintf("line 1 is longer than %d", maxEnumLine),
		"printf 'http://a/\\n'; while :; do head -c 9000 /dev/zero | tr '\\0' a; done": "line 2 is longer than",
	} {
		_, bad := enumerated(t.Context(), script(t, lines), "http://site/")
		if len(bad) != 1 || !strings.Contains(bad[0], want) {
			t.Errorf("%s: got %q, want %q", lines, bad, want)
		}
	}
	for _, program := range [][]string{nil, {"/no/such/program"}} {
		if _, bad := enumerated(t.Context(), program); len(bad) != 1 {
			t.Errorf("%q: got %q, want one error", program, bad)
		}
	}
	// A bad line does not keep the others out.
	roots, bad := enumerated(t.Context(), script(t, "echo http://a/; echo x; echo http://b/"))
	if len(roots) != 2 || len(bad) != 1 {
		t.Errorf("got %v, %q", roots, bad)
	}
}

// alive reports whether a process with that id is there.
func alive(pid string) bool {
	b, err := os.ReadFile("/proc/" + strings.TrimSpace(pid) + "/stat")
	return err == nil && !strings.Contains(string(b), ") Z ")
}

// TestEnumerateKilled: nothing of a program is left, however it was ended and
// whatever it has started.
func TestEnumerateKilled(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("there is no /proc here")
	}
	for name, c := range map[string]struct {
		lines string
		end   func(cancel func()) bool // after the first line; false leaves the loop
	}{
		"the loop is left":            {"sleep 1000 & echo $! >$0.pid; echo http://a/; sleep 1000", func(func()) bool { return false }},
		"the context ends":            {"sleep 1000 & echo $! >$0.pid; echo http://a/; sleep 1000", func(c func()) bool { c(); return true }},
		"it ends, its child does not": {"sleep 1000 >/dev/null 2>&1 </dev/null & echo $! >$0.pid; echo http://a/", func(func()) bool { return true }},
		"it closes its output":        {"echo $$ >$0.pid; echo http://a/; exec >&- ; sleep 1000", func(c func()) bool { c(); return true }},
		"it heeds no signal":          {"trap '' TERM HUP INT; echo $$ >$0.pid; echo http://a/; while :; do sleep 1000; done", func(c func()) bool { c(); return true }},
	} {
		program := script(t, c.lines)
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		for r, err := range Enumerate(ctx, program, []string{"http://site/"}) {
			if err == nil && r.URL != "http://a/" {
				t.Errorf("%s: got %+v", name, r)
			}
			if err == nil && !c.end(cancel) {
				break
			}
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		cancel()
		pid, err := os.ReadFile(program[0] + ".pid")
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%s: took %v", name, d)
		}
		for alive(string(pid)) { // a process that is killed takes a moment to be gone
			if runtime.Gosched(); time.Since(start) > 10*time.Second {
				t.Fatalf("%s: process %s is left", name, pid)
			}
		}
	}
}

// TestEnumerateMuch: a program that writes without end is read as far as the
// reader likes.
func TestEnumerateMuch(t *testing.T) {
	n := 0
	for range Enumerate(t.Context(), script(t, "yes http://site/x"), nil) {
		if n++; n == 100_000 {
			break
		}
	}
	if n != 100_000 {
		t.Errorf("got %d", n)
	}
}

func FuzzEnumerated(f *testing.F) {
	f.Add("http://a/ 1 /dev/null 1 /dev/null HTTP|FTP 1 0 /bin/false")
	f.Fuzz(func(t *testing.T, line string) {
		e := &enumeration{filters: map[string]*Filter{}}
		fields := strings.Fields(line)
		if len(fields) == 9 {
			fields[2], fields[4] = "/dev/null", "/dev/null"
		}
		r, err := e.parse(fields)
		if err != nil {
			return
		}
		if c, err := Canonical(r.URL); err != nil || c != r.URL || r.Delay > maxDelay {
			t.Errorf("got %+v, %v", r, err)
		}
	})
}
