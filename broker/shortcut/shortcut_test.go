package shortcut

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"harvest/gather/essence/jail"
)

func TestMain(m *testing.M) {
	jail.Main()
	os.Exit(m.Run())
}

func open(t testing.TB) *Set {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "shortcuts"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s.limit = time.Second // machines are busy
	t.Cleanup(s.Close)
	return s
}

func put(t testing.TB, s *Set, name, text string) {
	t.Helper()
	if err := s.Put(name, text); err != nil {
		t.Fatal(err)
	}
}

const (
	weather = "# of a place\nmatch (?i)^weather (?:in )?(?P<place>\\pL+)$\nscore 80\nTitle: Weather of ${place}\nPrice: 5$$\n"
	adder   = "#!/bin/sh\n# match: ^[0-9 +]+$\nwhile read -r q; do echo \"Score: 90\"; echo \"Title: $q = $(( $q ))\"; echo; done\n"
)

// ask asks until the programs have started, and answers with lines NAME SCORE TITLE.
func ask(t *testing.T, s *Set, q string) string {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		var b strings.Builder
		again := false
		for _, a := range s.Ask(t.Context(), q) {
			if errors.Is(a.Err, errSlow) && !strings.Contains(a.Err.Error(), "rests") && time.Now().Before(deadline) {
				again = true
			}
			fmt.Fprintf(&b, "%s %d", a.Name, a.Score)
			for _, attr := range a.Attrs {
				fmt.Fprintf(&b, " %s", attr.Value)
			}
			if a.Err != nil {
				fmt.Fprintf(&b, " %v", a.Err)
			}
			b.WriteString("\n")
		}
		if !again {
			return b.String()
		}
	}
}

func TestAsk(t *testing.T) {
	s := open(t)
	put(t, s, "weather", weather)
	put(t, s, "sum", adder)
	put(t, s, "late", "#!/bin/sh\n  ## match: ^1 \nwhile read -r q; do echo; done\n") // says none
	for _, tt := range []struct{ q, want string }{
		{"weather in Kiel", "weather 80 Weather of Kiel 5$\n"},
		{"WEATHER Köln", "weather 80 Weather of Köln 5$\n"},
		{"weather of today", ""},
		{"1 + 41", "sum 90 1 + 41 = 42\n"},
		{"1 + 2", "sum 90 1 + 2 = 3\n"},
		{"nothing of all that", ""},
		{"weather\nKiel", ""},
	} {
		if got := ask(t, s, tt.q); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.q, got, tt.want)
		}
	}
	if got := s.Tally("sum"); got.Answered != 2 {
		t.Errorf("got %+v, want 2 answers", got)
	}
}

// TestSlow cuts off what does not answer in time, and lets it rest; others answer.
func TestSlow(t *testing.T) {
	s := open(t)
	put(t, s, "sum", adder)
	ask(t, s, "1")
	put(t, s, "asleep", "#!/bin/sh\n# match: ^1$\nwhile read -r q; do sleep 60; done\n")
	put(t, s, "gone", "#!/bin/sh\n# match: ^1$\nread -r q; exit 3\n")
	put(t, s, "wordy", "#!/bin/sh\n# match: ^1$\nyes Title: much\n")
	put(t, s, "wrong", "#!/bin/sh\n# match: ^1$\nwhile read -r q; do echo what; echo; done\n")
	for _, name := range []string{"asleep", "gone", "wordy", "wrong"} { // until each has been asked
		for deadline := time.Now().Add(20 * time.Second); s.Tally(name).Failed == 0 && time.Now().Before(deadline); {
			s.Ask(t.Context(), "1")
		}
		if got := s.Tally(name); got.Failed == 0 || got.Answered > 0 {
			t.Errorf("%s: got %+v, want failures only", name, got)
		}
	}
	if got := ask(t, s, "1"); !strings.HasPrefix(got, "sum 90 1 = 1\n") {
		t.Errorf("got %q, want that of sum first", got)
	}
}

// TestGaveUp does not hold it against a program that who asked went away.
func TestGaveUp(t *testing.T) {
	s := open(t)
	put(t, s, "asleep", "#!/bin/sh\n# match: ^1$\nwhile read -r q; do sleep 60; done\n")
	for range 20 { // it may be started only just
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		for _, a := range s.Ask(ctx, "1") {
			if strings.Contains(a.Err.Error(), "rests") {
				t.Fatalf("got %v", a.Err)
			}
		}
		cancel()
	}
}

func TestPut(t *testing.T) {
	s := open(t)
	for _, tt := range []struct {
		name, text, want string
	}{
		{"a", "Title: x\n", "line 1: there is no line 'match EXPRESSION', which says what queries it is for"},
		{"a", "match (\nTitle: x\n", "line 1: match: error parsing regexp: missing closing ): `(`"},
		{"a", "match .*\nTitle: x\n", "line 1: match .* fits the empty query, and so any"},
		{"a", "match x\n", "line 1: there is no line 'Attribute: value', so it answers nothing"},
		{"a", "match x\nscore 101\nTitle: x\n", "line 2: score '101' is not a number from 0 to 100"},
		{"a", "match x\nwhat is this\n", "line 2: 'what is this' is none of: match EXPRESSION, score N, Attribute: value"},
		{"a", "#!/bin/sh\ncat\n", "line 1: none of the first 64 lines is '# match: EXPRESSION', which says what queries it is for"},
		{"a", "#!/bin/sh\nmatch: x\n", "line 1: none of the first 64 lines is '# match: EXPRESSION', which says what queries it is for"},
		{".a", weather, "'.a' is not the name of a shortcut, which has 1 to 64 letters, digits, '-' and '_': invalid argument"},
		{"12", weather, "'12' is not the name of a shortcut, which has 1 to 64 letters, digits, '-' and '_': invalid argument"},
	} {
		if err := s.Put(tt.name, tt.text); err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %s", tt.text, err, tt.want)
		}
	}
	put(t, s, "weather", weather)
	put(t, s, "weather", strings.Replace(weather, "80", "70", 1))
	again, err := Open(s.dir, s.log)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got := ask(t, again, "weather Kiel"); !strings.HasPrefix(got, "weather 70") {
		t.Errorf("got %q after a restart", got)
	}
	if err := s.Remove("weather"); err != nil || ask(t, s, "weather Kiel") != "" || len(s.Names()) > 0 {
		t.Errorf("removed: %v", err)
	}
	if files, _ := os.ReadDir(s.dir); len(files) > 0 {
		t.Errorf("got %v, want no file", files)
	}
}

// FuzzParse takes any text, and fills in what it takes.
func FuzzParse(f *testing.F) {
	f.Add(weather, "weather Kiel")
	f.Add(adder, "1+2")
	f.Add("match ^(a)(b)?\nX: $1 ${2} $$ ${9\n", "ab")
	f.Fuzz(func(t *testing.T, text, q string) {
		m, err := parse("a", text)
		if err != nil {
			var at *Error
			if !errors.As(err, &at) || at.Line < 1 {
				t.Fatalf("got %v, want a line", err)
			}
			return
		}
		if a, ok := m.fill(q); ok {
			if got, err := parseAnswer("a", [][]byte{}); err != nil || got.Score != 50 {
				t.Fatal(got, err)
			}
			for _, attr := range a.Attrs {
				if strings.ContainsAny(string(attr.Value), "\n\x00") {
					t.Fatalf("got %q, want a line", attr.Value)
				}
			}
		}
	})
}

// FuzzAnswer takes any lines of a program.
func FuzzAnswer(f *testing.F) {
	f.Add("Title: x\nScore: 7")
	f.Add("Score: 700\n:")
	f.Fuzz(func(t *testing.T, text string) {
		var lines [][]byte
		for line := range strings.SplitSeq(text, "\n") {
			lines = append(lines, []byte(line))
		}
		if a, err := parseAnswer("a", lines); err == nil && (a.Score < 0 || a.Score > 100) {
			t.Fatalf("got %+v", a)
		}
	})
}

// BenchmarkAsk is a query among many modules: one that is none's, and one of a template.
func BenchmarkAsk(b *testing.B) {
	for _, n := range []int{10, 1000} {
		s := open(b)
		for i := range n {
			m, err := parse(fmt.Sprintf("m%d", i), fmt.Sprintf("match (?i)^topic%d (?P<what>.+)$\nTitle: ${what}\n", i))
			if err != nil {
				b.Fatal(err)
			}
			s.modules[m.name] = s.keep(m)
		}
		s.compile()
		for _, q := range []string{"file systems in user space", "topic7 of today"} {
			b.Run(fmt.Sprintf("modules=%d/%s", n, strings.Fields(q)[0]), func(b *testing.B) {
				for b.Loop() {
					s.Ask(b.Context(), q)
				}
			})
		}
	}
}
