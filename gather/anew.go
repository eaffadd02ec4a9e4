package gather

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"harvest/gather/essence"
	"harvest/gather/fetch"
	"harvest/gather/soif"
)

// documentText is the text of a document whose object has none, read anew from where
// it is: of this machine's files only, since a server is not to be asked by whoever
// reads a file. It is "" when that is not to be had.
func (g *Gatherer) documentText(ctx context.Context, o *soif.Object) (string, error) {
	if !strings.HasPrefix(o.URL, "file:") {
		return "", nil
	}
	g.mu.Lock()
	c := g.conf
	g.mu.Unlock()
	root := ""
	for _, r := range c.roots {
		if strings.HasPrefix(o.URL, r.URL) && len(r.URL) > len(root) {
			root = r.URL
		}
	}
	if root == "" { // it is not gathered any more
		return "", nil
	}
	req, err := http.NewRequestWithContext(fetch.Within(ctx, root), http.MethodGet, o.URL, nil)
	if err != nil {
		return "", err
	}
	resp, err := g.rt.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", o.URL, resp.Status)
	}
	whole, _, err := essence.Summarize(ctx, essence.Input{URL: o.URL, Size: resp.ContentLength, Rest: resp.Body, FullText: true})
	if err != nil {
		return "", err
	}
	text := whole.Text("Full-Text")
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text, nil
}
