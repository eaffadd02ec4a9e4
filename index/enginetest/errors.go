package enginetest

import (
	"strings"
	"unicode/utf8"

	"harvest/index/match"
)

// A letter of an approximate pattern.
type letter struct {
	r     rune
	exact bool // must stand as it is
	first bool // of its exact part
}

// letters reads a pattern: <…> encloses what is exact, a backslash makes the
// next a letter.
func letters(text string) (out []letter) {
	exact, first, escaped := false, false, false
	for _, r := range text {
		switch {
		case escaped:
			out, escaped, first = append(out, letter{r, exact, first}), false, false
		case r == '\\':
			escaped = true
		case r == '<':
			exact, first = true, true
		case r == '>':
			exact = false
		default:
			out, first = append(out, letter{r, exact, first}), false
		}
	}
	return out
}

// costs are those of the errors, 1 where nothing is said.
func costs(c match.Costs) match.Costs {
	return match.Costs{Insert: max(c.Insert, 1), Delete: max(c.Delete, 1), Substitute: max(c.Substitute, 1), Transpose: max(c.Transpose, 1)}
}

const never = 1 << 20

// distance is the least cost of making the text of the pattern, swapped
// neighbours being one error: the table that each textbook shows. If anywhere,
// the best place in the text counts, else all of it.
func distance(pattern []letter, text []rune, c match.Costs, same func(a, b rune) bool, anywhere bool) int {
	c = costs(c)
	d, cells := make([][]int, len(pattern)+1), make([]int, (len(pattern)+1)*(len(text)+1))
	for i := range d {
		d[i], cells = cells[:len(text)+1], cells[len(text)+1:]
		for j := range d[i] {
			d[i][j] = cell(d, pattern, text, c, same, anywhere, i, j)
		}
	}
	last := d[len(pattern)]
	if !anywhere {
		return last[len(text)]
	}
	best := never
	for _, n := range last {
		best = min(best, n)
	}
	return best
}

// cell is the cost of making the first j of text of the first i of pattern.
func cell(d [][]int, pattern []letter, text []rune, c match.Costs, same func(a, b rune) bool, anywhere bool, i, j int) int {
	if i == 0 && (j == 0 || anywhere) {
		return 0
	}
	best := never
	inside := i > 0 && i < len(pattern) && pattern[i-1].exact && pattern[i].exact && !pattern[i].first
	if j > 0 && !inside {
		best = min(best, d[i][j-1]+c.Insert)
	}
	if i > 0 && !pattern[i-1].exact {
		best = min(best, d[i-1][j]+c.Delete)
	}
	if i > 0 && j > 0 {
		switch {
		case same(pattern[i-1].r, text[j-1]):
			best = min(best, d[i-1][j-1])
		case !pattern[i-1].exact:
			best = min(best, d[i-1][j-1]+c.Substitute)
		}
	}
	if i > 1 && j > 1 && !pattern[i-1].exact && !pattern[i-2].exact && same(pattern[i-1].r, text[j-2]) && same(pattern[i-2].r, text[j-1]) {
		best = min(best, d[i-2][j-2]+c.Transpose)
	}
	return best
}

func exactly(a, b rune) bool { return a == b }

func anyCase(a, b rune) bool { return a == b || strings.EqualFold(string(a), string(b)) }

// most is the greatest number of errors that a best match tries.
func most(text string) int {
	return min(match.MaxErrors, max(1, len(letters(text))/2))
}

func count(text string) int { return utf8.RuneCountInString(text) }
