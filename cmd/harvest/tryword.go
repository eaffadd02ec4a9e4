package main

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"path"
	"strings"
	"unicode"

	"harvest/fs"
	"harvest/gather/soif"
)

// titlesRead is from how many objects, at least, try chooses its query, if
// there are so many. It reads whole folders of objects/, where they stand by
// their identifiers, which are hashes: a fair sample.
const titlesRead = 2000

// In how many of them the chosen word should be: enough to see ranking, few
// enough to read, with fewer in a sample than where all was read.
const (
	goodHits   = 12
	goodSample = 3
)

// word chooses a word of the titles.
func (t *trial) word(ctx context.Context, broker string) (string, error) {
	objects := fs.IO(ctx, t.root)
	folders, err := iofs.ReadDir(objects, broker+"/objects")
	if err != nil {
		return "", err
	}
	in, seen := map[string]int{}, map[string]bool{}
	read, want := 0, goodHits
	for _, f := range folders {
		if !f.IsDir() {
			continue
		}
		if read >= titlesRead {
			want = goodSample
			break
		}
		n, err := countTitles(objects, broker+"/objects/"+f.Name(), in, seen)
		if err != nil {
			return "", err
		}
		read += n
	}
	best, bestOff := "", 0
	for w, n := range in {
		off := n - want
		if off < 0 {
			off = -off * 4
		}
		if best == "" || off < bestOff || off == bestOff && w < best {
			best, bestOff = w, off
		}
	}
	return best, nil
}

// countTitles counts in how many different titles of a folder each word is.
func countTitles(tree iofs.FS, folder string, in map[string]int, seen map[string]bool) (read int, err error) {
	files, err := iofs.ReadDir(tree, folder)
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		if path.Ext(f.Name()) != ".soif" {
			continue
		}
		b, err := iofs.ReadFile(tree, folder+"/"+f.Name())
		if errors.Is(err, iofs.ErrNotExist) {
			continue // it went meanwhile
		}
		if err != nil {
			return read, err
		}
		o, _, err := soif.Parse(b, soif.Limits{})
		if err != nil {
			return read, fmt.Errorf("%s/%s: %w", folder, f.Name(), err)
		}
		read++
		if title := o.Text("Title"); !seen[title] { // copies make a dull first answer
			seen[title] = true
			for w := range titleWords(title) {
				in[w]++
			}
		}
	}
	return read, nil
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
