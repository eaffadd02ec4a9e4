package broker

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"math"
	"strconv"

	"harvest/broker/near"
	"harvest/fs"
	"harvest/gather/dup"
	"harvest/gather/store"
)

// Of duplicates there are
//
//	duplicates   copies, and of what
//	near/
//		80       objects that resemble others by 80 %, and which; any from 25 to 100 can be walked to
//		OID      what resembles an object
//	…/dups       of an answer: what is not shown, and for which hit

func (b *Broker) duplicatesFile() fs.File {
	return fs.Stream(b.id("duplicates"), 0, b.writeDuplicates)
}

// writeDuplicates writes a line a copy, as a Gatherer's duplicates: its URL, that
// of the one that is shown, their scores, where the other has more, both OIDs.
func (b *Broker) writeDuplicates(ctx context.Context, w io.Writer) error {
	buf := bufio.NewWriterSize(w, 16<<10)
	var bad error
	err := b.dups.eachCopies(ctx, func(_ near.Bytes, list []rival) bool {
		for _, r := range list[1:] {
			if _, bad = buf.WriteString(rivalLine(r, list[0]) + "\n"); bad != nil {
				return false
			}
		}
		return true
	})
	if err != nil || bad != nil {
		return cmp.Or(err, bad)
	}
	return buf.Flush()
}

func rivalLine(r, shown rival) string {
	return fmt.Sprintf("%s\t%s\t%d\t%d\t%s\t%s\t%s", oneLine(r.url, math.MaxInt), oneLine(shown.url, math.MaxInt),
		r.score.Sum(), shown.score.Sum(), shown.score.Over(r.score), r.oid, shown.oid)
}

// nearDir is near/: groups by how much they resemble, and what resembles an
// object.
type nearDir struct{ b *Broker }

// nearShown is what is listed, of all that can be walked to.
const nearShown = "80"

func (d nearDir) Stat() fs.Stat { return fs.Stat{Path: d.b.id("near"), Mode: 0o555} }

func (d nearDir) file(name string, write produce) fs.Node {
	return fs.Stream(d.b.id("near", name), 0, write)
}

func (d nearDir) Lookup(_ context.Context, name string) (fs.Node, error) {
	if by, err := parseNear(name); err == nil && by > 0 {
		return d.file(name, func(ctx context.Context, w io.Writer) error { return d.b.writeNear(ctx, w, by) }), nil
	}
	oid, err := store.ParseOID(name)
	if err != nil {
		return nil, notExist(name)
	}
	if _, ok, err := d.b.dups.sketchOf(oid); err != nil || !ok {
		if err == nil {
			err = fmt.Errorf("object %s has no words: %w", name, iofs.ErrNotExist)
		}
		return nil, fmt.Errorf("near: %w", err)
	}
	return d.file(name, func(ctx context.Context, w io.Writer) error { return d.b.writeNearTo(ctx, w, oid) }), nil
}

func (d nearDir) List(_ context.Context, after string) iter.Seq2[fs.Entry, error] {
	n, err := d.Lookup(context.Background(), nearShown)
	if err != nil {
		return func(yield func(fs.Entry, error) bool) { yield(fs.Entry{}, err) }
	}
	return fs.Sorted([]fs.Entry{{Name: nearShown, Node: n}}, after)
}

// writeNear writes a line an object that is near others of its group: as
// duplicates, and how much it resembles the one that is kept, in percent.
func (b *Broker) writeNear(ctx context.Context, w io.Writer, by float64) error {
	groups, err := b.dups.now().Groups(ctx, by)
	if err != nil {
		return err
	}
	buf := bufio.NewWriterSize(w, 16<<10)
	walk := groupWalk{d: b.dups, ctx: ctx, yield: func(_ near.Bytes, list []rival) bool {
		err = b.writeGroup(buf, list)
		return err == nil
	}}
	for _, ids := range groups {
		walk.bytes = append(walk.bytes, near.Bytes{})
		if more, werr := walk.add(ids); werr != nil || !more {
			return cmp.Or(werr, err)
		}
	}
	if _, werr := walk.flush(); werr != nil || err != nil {
		return cmp.Or(werr, err)
	}
	return buf.Flush()
}

func (b *Broker) writeGroup(w io.Writer, list []rival) error {
	kept, _, err := b.dups.sketchOf(list[0].oid)
	if err != nil {
		return err
	}
	for _, r := range list[1:] {
		s, _, err := b.dups.sketchOf(r.oid)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\t%s\n", rivalLine(r, list[0]), percent(dup.Resemblance(&kept, &s))); err != nil {
			return err
		}
	}
	return nil
}

// percent is a resemblance in whole percent; 100 only of what is the same.
func percent(by float64) string {
	if by == 1 {
		return "100"
	}
	return strconv.Itoa(min(int(math.Round(100*by)), 99))
}

// leastNear is from where on near/OID tells of others.
const leastNear = 0.5

// writeNearTo writes what resembles an object: percent, OID, URL, the most alike
// first.
func (b *Broker) writeNearTo(ctx context.Context, w io.Writer, of store.OID) error {
	s, ok, err := b.dups.sketchOf(of)
	if err != nil || !ok {
		return err
	}
	list, err := b.dups.now().Near(ctx, &s, leastNear)
	if err != nil {
		return err
	}
	oids, urls := make([]store.OID, len(list)), make([]string, len(list))
	for i, m := range list {
		oids[i] = store.OID(m.ID)
	}
	err = b.store.Entries(ctx, oids, func(i int, e *store.Entry) bool {
		urls[i] = e.URL
		return true
	})
	for i, m := range list {
		if oids[i] == of || urls[i] == "" {
			continue
		}
		if err != nil {
			break
		}
		_, err = fmt.Fprintf(w, "%s\t%s\t%s\n", percent(m.By), oids[i], oneLine(urls[i], math.MaxInt))
	}
	return err
}

// writeDups writes what is not shown of the page's hits: rank and OID of the
// hit, how much it resembles it in percent, its own OID and URL.
func (p page) writeDups(ctx context.Context, w io.Writer) error {
	return p.write(w, func(w *bufio.Writer) error {
		for i := p.from; i < p.to; i++ {
			list, err := p.doubles(ctx, p.hit(i).oid)
			if err != nil {
				return err
			}
			for _, d := range list {
				if _, err := fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", i+1, p.hit(i).oid, percent(d.by), d.oid, oneLine(d.url, math.MaxInt)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
