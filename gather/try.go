package gather

import (
	"context"
	"errors"
	"strings"

	"harvest/fs/ndb"
	"harvest/gather/essence"
)

// maxTried bounds a document that somebody wants to see summarized.
const maxTried = 64 << 20

// tryUsage is what types/try reads as before anything was tried.
const tryUsage = "a document; or, before it, a line: try [name=NAME] [url=URL] [type=MEDIA-TYPE] [fulltext=yes|no]\n"

// try summarizes a document as a visit would, and returns its object and its
// trace. Before it may stand a line that says what it is called.
func (g *Gatherer) try(ctx context.Context, text []byte) (string, error) {
	g.mu.Lock()
	full := g.conf.fullText
	g.mu.Unlock()
	in := essence.Input{FullText: full, Programs: g.bring.now()}
	line, _, _ := strings.Cut(string(text[:min(len(text), 4096)]), "\n")
	if strings.HasPrefix(line, "try ") || line == "try" {
		if err := tryLine(&in, line); err != nil {
			return "", err
		}
		text = text[min(len(text), len(line)+1):]
	}
	in.Head, in.Size = text, int64(len(text))
	in.Tables, _ = g.types.now()
	nameless := in.Name == "" && in.URL == ""
	if in.URL == "" {
		in.URL = "try:" + in.Name
	}
	o, steps, err := essence.Summarize(ctx, in)
	why := ""
	if errors.Is(err, essence.ErrRejected) || errors.Is(err, essence.ErrDeleted) {
		why, err = "rejected\t"+err.Error()+"\t\t\n", nil
	}
	if err != nil {
		return "", err
	}
	if why != "" {
		return steps.String() + why, nil
	}
	if nameless && o.Text("Title") == in.URL { // a visit would have a name to call it by
		o.Del("Title")
	}
	return string(o.Append(nil)) + steps.String(), nil
}

// tryLine reads what stands before a document.
func tryLine(in *essence.Input, line string) error {
	e, err := ndb.ParseLine(line, 1)
	if err != nil {
		return err
	}
	for _, p := range e.Pairs[1:] {
		switch p.Key {
		case "name":
			in.Name = p.Value
		case "url":
			in.URL = p.Value
		case "type":
			in.Type = p.Value
		case "fulltext":
			in.FullText, err = e.Bool(p)
		default:
			err = e.Errorf(p, "unknown key '%s'; there are name, url, type and fulltext", p.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
