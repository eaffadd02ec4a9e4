package gather

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"net/http"
	"strings"

	"harvest/gather/essence"
	"harvest/gather/fetch"
	"harvest/gather/soif"
)

// documentText is the text of a document whose object has none, read anew from where
// it is: a file of this machine, or, of what is from the web, what WARC files have
// of it, since a server is not to be asked by whoever reads a file. It is "" when that
// is not to be had.
func (g *Gatherer) documentText(ctx context.Context, o *soif.Object) (string, error) {
	g.mu.Lock()
	c := g.conf
	g.mu.Unlock()
	resp, err := g.documentAnew(ctx, c, o.URL)
	if resp == nil || err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", o.URL, resp.Status)
	}
	whole, _, err := essence.Summarize(ctx, essence.Input{URL: o.URL, Type: resp.Header.Get("Content-Type"), Size: resp.ContentLength, Rest: resp.Body, FullText: true})
	if err != nil {
		return "", err
	}
	text := whole.Text("Full-Text")
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text, nil
}

// documentAnew is a document as it was, nil if it is not to be had.
func (g *Gatherer) documentAnew(ctx context.Context, c *config, url string) (*http.Response, error) {
	switch scheme, _, _ := strings.Cut(url, ":"); scheme {
	case "file":
		root := ""
		for _, r := range c.roots {
			if strings.HasPrefix(url, r.URL) && len(r.URL) > len(root) {
				root = r.URL
			}
		}
		if root == "" { // it is not gathered any more
			return nil, nil
		}
		req, err := http.NewRequestWithContext(fetch.Within(ctx, root), http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		return g.rt.RoundTrip(req)
	case "http", "https":
		kept, err := g.archive.kept(ctx, c.export.replay)
		if kept == nil || err != nil {
			return nil, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		resp, err := kept.RoundTrip(req)
		if errors.Is(err, iofs.ErrNotExist) {
			return nil, nil // it was not kept
		}
		return resp, err
	}
	return nil, nil
}
