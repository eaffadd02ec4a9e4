package index_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"

	"harvest/index"
)

// wordsOf lists the words of a text, each as text@position, a compound with =
// before it, one of a run of CJK with ~.
func wordsOf(text string) string { return list(text, index.Words) }

func list(text string, words func(string, func(*index.Word) bool)) string {
	var out []string
	words(text, func(w *index.Word) bool {
		sign := map[bool]string{true: "="}[w.Whole] + map[bool]string{true: "~"}[w.CJK]
		out = append(out, fmt.Sprintf("%s%s@%d", sign, w.Text, w.Pos))
		return true
	})
	return strings.Join(out, " ")
}

func TestWords(t *testing.T) {
	a60 := strings.Repeat("a", 60)
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"Plan 9", "plan@0 9@1"},
		{"net/http c++", "net@0 http@1 c@2"},
		{"x86_64", "x86@0 64@1 =x86_64@0"},
		{"a javax.swing b", "a@0 javax@1 swing@2 =javax.swing@1 b@3"},
		{"don't 'quoted' x", "don@0 t@1 =don't@0 quoted@2 x@3"},
		{"don’t", "don@0 t@1 =don't@0"},
		{"3.14 1,000;5 1;a a;1 a,b", "3@0 14@1 =3.14@0 1@2 000@3 5@4 =1,000;5@2 1@5 a@6 a@7 1@8 a@9 b@10"},
		{"a:b 1:2 a::b", "a@0 b@1 =a:b@0 1@2 2@3 a@4 b@5"},
		{"__init__ _a_ __ foo__bar_", "init@0 a@1 foo@2 bar@3 =foo__bar@2"},
		{"e.g. end.", "e@0 g@1 =e.g@0 end@2"},
		{"GRÖSSE Straße İ ﬁne ²", "grosse@0 strasse@1 i@2 fine@3 2@4"},
		{"e\u0301te\u0301 été", "ete@0 ete@1"},
		{"co\u00adop", "coop@0"},
		{"Ελλάς ΕΛΛΆΣ", "ελλασ@0 ελλασ@1"},
		{"日本語", "~日本@0 ~本語@1 ~語@2"},
		{"日 本", "~日@0 ~本@1"},
		{"x日本y テスト_1.", "x@0 ~日本@1 ~本@2 y@3 ~テス@4 ~スト@5 ~ト@6 1@7 =テスト_1@4"},
		{"か\u3099き ｶﾞ", "~がき@0 ~き@1 ~ガ@2"},
		{"각 한글 \u1112\u1161\u11ab", "각@0 한글@1 한@2"},
		{"हिन्दी", "हिन्दी@0"},
		{a60 + "éééé", a60 + "eeee@0"},
		{a60 + "жжж x", a60 + "жж@0 x@1"},
		{a60 + "_bcdef", a60 + "@0 bcdef@1 =" + a60 + "_bcd@0"},
		{a60 + "aaaaaa_b", a60 + "aaaa@0 b@1"},
		{"a\xff b\xe2", "a@0 b@1"},
	} {
		if got := wordsOf(tt.text); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.text, got, tt.want)
		}
	}
}

// What is folded folds to itself, whatever the character.
func TestFold(t *testing.T) {
	for r := rune(1); r < 0x20000; r++ {
		if 0x3400 <= r && r < 0xa000 || 0xac00 <= r && r < 0xd7a0 {
			continue // tens of thousands all alike
		}
		s := string(r)
		once := index.Fold(nil, s)
		if twice := index.Fold(nil, string(once)); string(twice) != string(once) {
			t.Errorf("%U: got %q, and of that %q", r, once, twice)
		}
	}
	for _, tt := range [][2]string{{"Éclair ＡＢ ½ ﷺ", "eclair ab ½ ﷺ"}, {"Å\u0327ngström", "angstrom"}, {"it’s", "it's"}, {"a\xffB", "a\xffb"}} {
		if got := string(index.Fold(nil, tt[0])); got != tt[1] {
			t.Errorf("%q: got %q, want %q", tt[0], got, tt[1])
		}
	}
}

// A sign by itself, and between letters, is what the rules for all characters
// make of it.
func TestSigns(t *testing.T) {
	for r := rune(0x80); r < 0x3100; r++ {
		text := fmt.Sprintf("%c a%c b %c1 2%c3 x.%c", r, r, r, r, r)
		if got, want := wordsOf(text), list(text, index.WordsPlain); got != want {
			t.Errorf("%U: got %s, want %s", r, got, want)
		}
	}
}

// reference says what UAX 29 makes of ASCII text: the words by position, and the compounds.
func reference(text string) string {
	var out []string
	pos := 0
	for it := words.FromString(text); it.Next(); {
		word := strings.ToLower(strings.Trim(it.Value(), "_"))
		first := pos
		parts := strings.FieldsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		for _, p := range parts {
			out = append(out, fmt.Sprintf("%s@%d", p[:min(len(p), index.MaxWord)], pos))
			pos++
		}
		if cut := word[:min(len(word), index.MaxWord)]; len(parts) > 1 && cut != parts[0][:min(len(parts[0]), index.MaxWord)] {
			out = append(out, fmt.Sprintf("=%s@%d", cut, first))
		}
	}
	return strings.Join(out, " ")
}

// FuzzWords holds the loop for ASCII against the rules for all characters, and
// what Words promises of places, lengths and finding a word again by itself.
func FuzzWords(f *testing.F) {
	for _, s := range []string{"Plan 9", "net/http x86_64 _a_.b:c 3.14,1;2 a.1 don't", "GRÖSSE İ ß Σς", "日本語 text",
		"e\u0301\xff\u0301 a.é a:b.c_日.本", strings.Repeat("ab", 40) + strings.Repeat("é", 40), "a“b” c—d.’e «f»\u00a0g a.“ →x x→_y 1,”2", "\u05d0\"\u05d1 1'2 \u00b7l·l ½ﷺ", "部首 ⺔ ⼀人"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ascii := strings.Map(func(r rune) rune { return r & 0x7f }, text)
		if got, want := wordsOf(ascii), reference(ascii); got != want {
			t.Fatalf("%q: got %s, want %s", ascii, got, want)
		}
		if got, want := wordsOf(text), list(text, index.WordsPlain); got != want && utf8.ValidString(text) {
			t.Fatalf("%q: got %s, want %s", text, got, want)
		}
		start, pos := 0, 0
		index.Words(text, func(w *index.Word) bool {
			if w.End <= w.Start || w.End > len(text) || len(w.Text) == 0 || len(w.Text) > index.MaxWord || !utf8.Valid(w.Text) {
				t.Fatalf("%q: got %+v", text, *w)
			}
			if w.Whole {
				if w.Pos >= pos || !slices.ContainsFunc(w.Text, func(c byte) bool { return strings.IndexByte("_.':,;\"", c) >= 0 }) {
					t.Fatalf("%q: got compound %+v before position %d", text, *w, pos)
				}
				return true
			}
			if w.Pos != pos || w.Start < start {
				t.Fatalf("%q: got %+v after %d, want position %d", text, *w, start, pos)
			}
			for _, r := range string(w.Text) {
				if !unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Han) { // Han's radicals are symbols
					t.Fatalf("%q: got %q in the word %q", text, r, w.Text)
				}
			}
			start, pos = w.Start, pos+1
			return true
		})
	})
}

// BenchmarkWords reads what CORPUS names, else this repository's own text.
func BenchmarkWords(b *testing.B) {
	dir := os.Getenv("CORPUS")
	if dir == "" {
		dir = ".."
	}
	var text []string
	size := 0
	filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && size < 64<<20 {
			if t, err := os.ReadFile(path); err == nil {
				text = append(text, string(t))
				size += len(t)
			}
		}
		return nil
	})
	b.SetBytes(int64(size))
	n := 0
	for b.Loop() {
		for _, t := range text {
			index.Words(t, func(*index.Word) bool { n++; return true })
		}
	}
	b.ReportMetric(float64(n)/float64(b.N)/float64(size)*100, "words/100B")
}
