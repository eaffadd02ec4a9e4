package gather

import (
	"errors"
	"fmt"
	iofs "io/fs"
	neturl "net/url"
	"strings"

	"harvest/gather/essence"
)

// maxTrace bounds what is kept of how an object came about.
const maxTrace = 64 << 10

// traceNote is a trace as it is kept with a document: the type that came of it,
// and a line a step. The name of what was taken apart is the document's.
func traceNote(typ string, steps essence.Trace) string {
	text := "type\t" + typ + "\t\t\n" + steps.String()
	if len(text) <= maxTrace {
		return text
	}
	cut := strings.LastIndexByte(text[:maxTrace], '\n') + 1
	return text[:cut] + fmt.Sprintf("cut\t%d more steps\tonly %d bytes are kept\t\n", strings.Count(text[cut:], "\n"), maxTrace)
}

// traceOf is how the object of a URL came about.
func (g *Gatherer) traceOf(url string) (string, error) {
	note, err := g.db.Note(url)
	if errors.Is(err, iofs.ErrNotExist) || err == nil && note == "" {
		return "", fmt.Errorf("trace of %s: it was not summarized here, or by an older program: %w", url, iofs.ErrNotExist)
	}
	return note, err
}

// memberTrace is what the trace of a document has of a member of it. Names that
// are there twice, and have ~2 in the URL, have one trace.
func (g *Gatherer) memberTrace(url string) (string, error) {
	doc, found, err := g.containerOf(url)
	if err != nil {
		return "", err
	}
	if !found {
		return "", fmt.Errorf("trace of %s: its container is not known: %w", url, iofs.ErrNotExist)
	}
	note, err := g.traceOf(doc.URL)
	if err != nil {
		return "", err
	}
	member := strings.ReplaceAll(strings.TrimPrefix(url, essence.MembersOf(doc.URL)), "!/", "/")
	if plain, err := neturl.PathUnescape(member); err == nil {
		member = plain
	}
	var lines strings.Builder
	for line := range strings.Lines(note) {
		if at := strings.TrimSuffix(line[strings.LastIndexByte(line, '\t')+1:], "\n"); at == member || strings.HasPrefix(at, member+"/") {
			lines.WriteString(line)
		}
	}
	if lines.Len() == 0 {
		return fmt.Sprintf("cut\tnothing\tthe trace of %s has no room for it\t\n", doc.URL), nil
	}
	return lines.String(), nil
}
