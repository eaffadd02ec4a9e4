package gather

import (
	"context"
	"errors"
	iofs "io/fs"

	"harvest/gather/crawl"
	"harvest/gather/dup"
)

// Documents are copies of one another when their bytes have the same MD5 and
// number. Of each such group the one with the highest score is kept, of equals
// the first in the order of URLs: so the winner depends on what is known, and not
// on who came first. What was read in part has no MD5, and no copies.
//
// Only what a selection may take has a say: a mirror that is left out is no reason
// to leave out what it is a mirror of.
//
// Unless a config says otherwise only documents of servers have copies. Two files
// of a tree that are the same are two files that somebody wants to find.

// drops reports whether the copies of a document are dropped.
func (c *config) drops(url string) bool {
	switch c.duplicates {
	case "keep":
		return false
	case "drop":
		return true
	}
	host, _ := dup.SplitHost(url)
	return host != ""
}

// mayDrop reports whether any document of this configuration may have copies.
func (c *config) mayDrop() bool {
	if c.duplicates != "" {
		return c.duplicates == "drop"
	}
	for _, r := range c.roots {
		if c.drops(r.URL) {
			return true
		}
	}
	return len(c.roots) == 0 // what was asked for by its URL
}

// A rival is one of several documents with the same content.
type rival struct {
	id    uint32
	url   string
	size  int64
	score dup.Score
}

// beats reports whether a is to be kept rather than b.
func (a *rival) beats(b *rival) bool {
	if x, y := a.score.Sum(), b.score.Sum(); x != y {
		return x > y
	}
	return a.url < b.url
}

// A group are documents that may be copies of one another: all those stored with
// one MD5.
type group struct {
	g   *Gatherer
	c   *config
	ids []crawl.DocID
}

// each calls do with the rivals of a group until it returns false. What has
// become something else meanwhile is left out.
func (gr *group) each(do func(*rival) bool) error {
	var md5 [16]byte
	for _, id := range gr.ids {
		d, err := gr.g.db.Doc(id)
		if errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if md5 == [16]byte{} {
			md5 = d.MD5
		}
		if d.State != crawl.Stored || d.MD5 != md5 || !gr.c.drops(d.URL) || !gr.c.selection.mayTake(&d) {
			continue
		}
		if r := rivalOf(&d); !do(&r) {
			return nil
		}
	}
	return nil
}

// winners finds the best of a group for each size that there is, which is one
// but by wonder.
func (gr *group) winners() (map[int64]*rival, error) {
	best := make(map[int64]*rival)
	err := gr.each(func(r *rival) bool {
		if b := best[r.size]; b == nil || r.beats(b) {
			best[r.size] = r
		}
		return true
	})
	return best, err
}

// rivalOf scores a document.
func rivalOf(d *crawl.Doc) rival {
	return rival{id: uint32(d.ID), url: d.URL, size: d.Size, score: dup.ScoreOf(d.URL, d.Inbound, d.Submitted)}
}

// markCopies gives the copies of better documents their verdict. all are the
// groups there are.
func (g *Gatherer) markCopies(ctx context.Context, c *config, all [][]crawl.DocID, to *choice) error {
	for _, ids := range all {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		best := make(map[int64]*rival)
		err := (&group{g, c, ids}).each(func(r *rival) bool {
			switch b := best[r.size]; {
			case b == nil:
				best[r.size] = r
			case r.beats(b):
				*to.cell(b.id), best[r.size] = copied, r
			default:
				*to.cell(r.id) = copied
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// copies are the groups of documents with one MD5, 4 bytes each document, if any
// of them may be dropped.
func (g *Gatherer) copies(ctx context.Context, c *config) (all [][]crawl.DocID, err error) {
	if !c.mayDrop() {
		return nil, nil
	}
	for ids, err := range g.db.Copies(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, ids)
	}
	return all, nil
}
