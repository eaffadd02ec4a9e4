package broker

import (
	"fmt"
	iofs "io/fs"
	"strconv"
	"strings"

	"harvest/index"
)

// Who asks several Brokers and merges their answers by score has each weigh
// words by how rare they are in all of them together. It says so in a line of a
// session, `set among='OBJECTS WORDS WORD=OBJECTS …'`: how many objects they have
// in all, how many words these have, and how many objects have each word.

// amongMax is how many words such a line may have.
const amongMax = 1000

// parseAmong reads such a text; "" is none.
func parseAmong(text string) (*index.Among, error) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return nil, nil
	}
	bad := fmt.Errorf("set among='%s': not OBJECTS WORDS WORD=OBJECTS …: %w", oneLine(text, 80), iofs.ErrInvalid)
	if len(fields) < 2 || len(fields) > 2+amongMax {
		return nil, bad
	}
	docs, err := strconv.ParseUint(fields[0], 10, 31)
	if err != nil || docs == 0 {
		return nil, bad
	}
	words, err := strconv.ParseUint(fields[1], 10, 62)
	if err != nil {
		return nil, bad
	}
	a := &index.Among{Docs: int(docs), Words: int64(words), Count: make(map[string]int, len(fields)-2)}
	for _, f := range fields[2:] {
		i := strings.LastIndexByte(f, '=')
		if i < 1 {
			return nil, bad
		}
		n, err := strconv.ParseUint(f[i+1:], 10, 31)
		if err != nil || n > docs {
			return nil, bad
		}
		a.Count[f[:i]] = int(n)
	}
	return a, nil
}

// formatAmong is the inverse of parseAmong.
func formatAmong(a *index.Among, words []string) string {
	var t strings.Builder
	fmt.Fprintf(&t, "%d %d", a.Docs, a.Words)
	for _, w := range words {
		fmt.Fprintf(&t, " %s=%d", w, a.Count[w])
	}
	return t.String()
}

// known is how many objects have a word, if there is somebody who says so.
func known(a *index.Among, word string) (n int, ok bool) {
	if a == nil {
		return 0, false
	}
	n, ok = a.Count[word]
	return n, ok
}
