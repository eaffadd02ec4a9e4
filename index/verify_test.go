package index

import (
	"testing"
	"unicode/utf8"
)

func TestRoles(t *testing.T) {
	for r := rune(utf8.RuneSelf); r < 1<<16; r++ {
		if got, want := roles()[r], roleOf(r); got != want {
			t.Fatalf("%U: got %b, want %b", r, got, want)
		}
	}
}

// Of characters that are of words but not folding, Fold makes no ASCII letters.
func TestFolding(t *testing.T) {
	for r := rune(utf8.RuneSelf); r < 0x3000; r++ {
		folded := Fold(nil, string(r))
		if !plays(r, folding) && plays(r, lettered) && simple(string(folded)) {
			t.Errorf("%U: got %q, want no ASCII", r, folded)
		}
	}
}
