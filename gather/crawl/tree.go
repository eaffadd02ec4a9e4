package crawl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

// listingType is the Content-Type under which a folder's entries come, a line
// each:
//
//	kind TAB size TAB time TAB etag TAB reference
//
// in the order of the references: kind is f for a document, d for a folder,
// whose reference ends in a slash, and anything else for what is not followed.
const listingType = "text/x-harvest-listing"

func isListing(resp *http.Response) bool {
	return resp.Header.Get("Content-Type") == listingType
}

// A tree is one walk. pending is guarded by the visit's mu.
type tree struct {
	site    *host
	pending int
}

type folder struct {
	url   string // with its slash
	depth int    // of what it holds, below the root
}

type listed struct {
	kind byte
	size int64
	time string
	etag string
	href string
}

// walk goes through a tree, folder by folder. A file that is what it was costs
// one look at the database; the others go to the file workers. It returns when
// all of them are committed, so that the root is taken off the queue last.
func (v *visit) walk(ctx context.Context, s *host, p *Page, resp *http.Response) {
	if p.root != nil && p.root.Leaf || p.root == nil && p.flags&byHand != 0 && v.covers(p.URL) == nil {
		p.Outcome, p.Why = Excluded, "a folder, not a leaf"
		return
	}
	if p.root == nil {
		p.root = v.covers(p.URL)
		p.Root = p.root.URL
	}
	top := strings.TrimSuffix(p.URL, "/") + "/"
	below := strings.TrimPrefix(top, strings.TrimSuffix(p.root.URL, "/")+"/")
	t := &tree{site: s}
	todo := []folder{{top, strings.Count(below, "/") + 1}}
	p.Outcome = Listed
	for first := true; len(todo) > 0 && ctx.Err() == nil; first = false {
		f := todo[0]
		if p.root.Search == Depth {
			f, todo = todo[len(todo)-1], todo[:len(todo)-1]
		} else {
			todo = todo[1:]
		}
		entries, err := v.list(ctx, f, p.root, first, resp)
		if err == nil && first && len(entries) == 0 && v.holds(p.root) {
			err = errors.New("the root is empty: nothing is deleted")
		}
		if err != nil {
			v.notListed(p.root, f.url)
			if ctx.Err() == nil {
				v.out <- &Page{URL: f.url, Root: p.Root, Outcome: Failed, Why: why(err), unkept: true, doc: Doc{URL: f.url}}
			}
			continue
		}
		sub := v.folder(ctx, t, p.root, f, entries)
		if p.root.Search == Depth { // the first of them is taken next
			slices.Reverse(sub)
		}
		todo = append(todo, sub...)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	id := RootID(p.root.URL)
	v.walked[id] = append(v.walked[id], top)
	for t.pending > 0 {
		v.settled.Wait() // every page that was sent is settled, stopped or not
	}
	if ctx.Err() != nil {
		p.Outcome = 0
	}
}

// covers returns the tree that a URL asked for by hand lies in, or nil.
func (v *visit) covers(u string) *Root {
	for _, r := range v.roots {
		if !r.Leaf && strings.HasPrefix(u, strings.TrimSuffix(r.URL, "/")+"/") {
			return r
		}
	}
	return nil
}

// list reads a folder's entries. Without an error they are all there are. That
// of the root has been asked for already.
func (v *visit) list(ctx context.Context, f folder, root *Root, first bool, resp *http.Response) ([]listed, error) {
	if !first {
		req, err := v.request(ctx, f.url, root.URL)
		if err != nil {
			return nil, err
		}
		if resp, err = v.rt.RoundTrip(req); err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return nil, errors.New(resp.Status)
		}
		if !isListing(resp) {
			return nil, errors.New("not a folder any more")
		}
	}
	return readListing(resp.Body, func(href string) bool { return !strings.ContainsAny(strings.TrimSuffix(href, "/"), "/?#") })
}

// readListing reads the entries of a listing whose references are allowed.
func readListing(body io.Reader, allowed func(href string) bool) (entries []listed, err error) {
	r := bufio.NewScanner(body)
	r.Buffer(make([]byte, 0, 4096), 64<<10)
	for r.Scan() {
		field := strings.Split(r.Text(), "\t")
		if len(field) < 5 || len(field) > 6 || len(field[0]) != 1 || field[4] == "" || !allowed(field[4]) {
			return nil, fmt.Errorf("bad listing line '%s'", clip(r.Text()))
		}
		size, err := strconv.ParseInt(field[1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("bad listing line '%s'", clip(r.Text()))
		}
		entries = append(entries, listed{field[0][0], size, field[2], field[3], field[4]})
	}
	return entries, r.Err()
}

// folder compares a folder's entries with what is known of it: new and changed
// files go to the workers, vanished ones are gone. It returns the folders in it.
func (v *visit) folder(ctx context.Context, t *tree, root *Root, f folder, entries []listed) []folder {
	var sub []folder
	var todo []*Page
	var there []DocID
	id := RootID(root.URL)
	err := v.f.db.View(func(tx *bbolt.Tx) error {
		for i := range entries {
			e := &entries[i]
			u := f.url + e.href
			switch {
			case e.kind == 'd':
				if why := v.excludedFolder(u, root, f.depth+1); why != "" {
					v.exclude(u, why)
				} else {
					sub = append(sub, folder{u, f.depth + 1})
				}
			case e.kind != 'f':
				v.exclude(u, notFollowed(e.kind))
			default:
				p, known := v.entry(tx, root, id, u, f.depth, e)
				if p != nil {
					todo = append(todo, p)
				}
				if known != 0 {
					there = append(there, known)
				}
			}
		}
		return nil
	})
	if err != nil {
		v.f.lg.Error("walk", "folder", f.url, "err", err)
		v.notListed(root, f.url)
		return nil
	}
	v.mu.Lock()
	for _, id := range there {
		v.found.add(id)
	}
	v.mu.Unlock()
	for _, p := range todo {
		if p.tree = t; !v.send(ctx, t, p) {
			return nil
		}
	}
	return sub
}

func notFollowed(kind byte) string {
	if kind == 'l' {
		return "a symbolic link"
	}
	return "not a regular file"
}

func (v *visit) excludedFolder(u string, root *Root, depth int) string {
	switch {
	case len(u) > maxURL:
		return fmt.Sprintf("url longer than %d", maxURL)
	case root.Depth >= 0 && depth > root.Depth:
		return fmt.Sprintf("depth=%d", root.Depth)
	case v.plan.Exclude != nil:
		return v.plan.Exclude(u, true)
	}
	return ""
}

// notListed notes that a folder could not be listed: what it holds stays.
func (v *visit) notListed(root *Root, url string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	id := RootID(root.URL)
	v.closedIn[id] = append(v.closedIn[id], url)
}

// entry decides about one file of a listing: no page when there is nothing to
// do. It returns which document it is, if that is known.
func (v *visit) entry(tx *bbolt.Tx, root *Root, id uint64, u string, depth int, e *listed) (*Page, DocID) {
	if why := v.excluded(u, root, depth); why != "" {
		v.exclude(u, why)
		return nil, 0 // the sweep drops it, if it was stored once
	}
	d, known := v.f.lookup(tx, u)
	if !known || d.Root != id {
		if !v.room(id, root) {
			v.exclude(u, fmt.Sprintf("urls=%d", root.URLs))
			return nil, 0
		}
	}
	v.c.Found.Add(1)
	moved := known && d.Root != id // found by another root than before
	if moved {
		v.f.left(&d)
	}
	if d.Root, d.Depth = id, depth; !known {
		d.URL, d.State = u, New
	}
	p := v.page(d)
	if d.ETag != e.etag || !v.current(&d) {
		return p, d.ID
	}
	v.unchanged(p)
	if p.Due || moved {
		return p, d.ID
	}
	v.c.Unchanged.Add(1)
	return nil, d.ID
}

// send gives a page of a walk to the workers, or, when it is settled already,
// to commit. It is false when the visit ends first.
func (v *visit) send(ctx context.Context, t *tree, p *Page) bool {
	v.mu.Lock()
	t.pending++
	v.walking++
	v.mu.Unlock()
	to := v.jobs
	if p.Outcome != 0 {
		to = v.out
	}
	select {
	case to <- p:
		return true
	case <-ctx.Done():
		v.mu.Lock()
		t.pending--
		v.walking--
		v.mu.Unlock()
		return false
	}
}

// fileWorker fetches what walks have found.
func (v *visit) fileWorker(ctx context.Context) {
	var buf []byte
	for p := range v.jobs {
		if ctx.Err() == nil {
			v.c.Requests.Add(1)
			if wait := v.attempt(ctx, p.tree.site, p, &buf, time.Time{}); wait >= 0 {
				p.Outcome, p.Why = Failed, "busy"
			}
		}
		if p.Outcome == Listed || p.Outcome == Moved {
			p.Outcome, p.Why = Failed, "it has become a folder"
		}
		v.out <- p
	}
}

// holds reports whether documents of a tree are known.
func (v *visit) holds(root *Root) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.f.roots[RootID(root.URL)].docs > 0
}
