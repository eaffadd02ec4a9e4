package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"harvest/fs"
	"harvest/gather/soif"
)

// titlesRead is from how many objects try chooses its query. They come in the
// order of their identifiers, which are hashes, so they are a fair sample.
const titlesRead = 2000

// goodHits is how many of them the chosen word should be in: enough to see
// ranking, few enough to read.
const goodHits = 12

// word chooses a word of the titles.
func (t *trial) word(ctx context.Context, broker string) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f, err := fs.IO(ctx, t.root).Open(broker + "/soif")
	if err != nil {
		return "", err
	}
	defer f.Close()
	in, seen := map[string]int{}, map[string]bool{}
	dec := soif.NewDecoder(f, soif.Limits{})
	for n := 0; n < titlesRead; n++ {
		var o soif.Object
		err := dec.Next(&o)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("%s/soif: %w", broker, err)
		}
		title := o.Text("Title")
		if seen[title] {
			continue // copies make a dull first answer
		}
		seen[title] = true
		for w := range titleWords(title) {
			in[w]++
		}
	}
	best, bestOff := "", 0
	for w, n := range in {
		off := n - goodHits
		if off < 0 {
			off = -off * 4
		}
		if best == "" || off < bestOff || off == bestOff && w < best {
			best, bestOff = w, off
		}
	}
	return best, nil
}

func titleWords(title string) map[string]bool {
	words := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return !unicode.IsLetter(r) }) {
		if len(w) >= 4 {
			words[w] = true
		}
	}
	return words
}

// tell says how to go on, as lines to copy.
func (t *trial) tell(addrs []string, mount, dir string, once bool) {
	w := t.std.out
	hits := "broker/" + tryName + "/q/'" + t.query + "'"
	if once {
		fmt.Fprintf(w, "\nkept in %s; to serve it again:\n\n\tharvest serve -d %s", dir, shellQuote(dir))
		if mount != "" {
			fmt.Fprintf(w, " -m %s", shellQuote(mount))
		}
		fmt.Fprintln(w)
		return
	}
	var try []string
	if mount != "" {
		fmt.Fprintf(w, "\nmounted on %s; to try:\n\n", mount)
		m := shellQuote(mount) + "/"
		try = []string{
			"cat " + m + "README",
			"cat " + m + hits + "/hits",
			"grep -il copyright " + m + hits + "/*.soif",
			"ls " + m + "gather/" + tryName + "/url/*",
			"tail " + m + "gather/" + tryName + "/events",
		}
	} else {
		fmt.Fprintf(w, "\nserving 9P on %s; to try:\n\n", strings.Join(addrs, " "))
		a := " -a " + shellQuote(addrs[0]) + " "
		try = []string{
			"harvest cat" + a + "README",
			"harvest query" + a + tryName + " '" + t.query + "'",
			"harvest query --soif" + a + tryName + " '" + t.query + "'",
			"harvest ls" + a + "gather/" + tryName + "/url",
			"harvest mount " + shellQuote(addrs[0]) + " /mnt",
		}
	}
	for _, l := range try {
		fmt.Fprintf(w, "\t%s\n", l)
	}
	fmt.Fprintf(w, "\ninterrupt to end; all is kept in %s\n", dir)
}

// shellQuote writes s as one word of a shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
