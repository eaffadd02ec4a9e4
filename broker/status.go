package broker

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"harvest/fs/ndb"
	"harvest/index"
)

// status is the state and figures of the Broker, then of each source.
func (b *Broker) status() string {
	st, serr := b.store.Stats()
	mark, merr := b.indexed()
	h := b.hold()
	defer h.release()
	ix := h.Stats()
	b.mu.Lock()
	defer b.mu.Unlock()
	state := "idle"
	switch behind := merr != nil || mark.Seq < st.Seq; {
	case b.busy(), behind && b.trouble == nil && serr == nil:
		state = "running"
	case b.stopped:
		state = "stopped"
	}
	var t strings.Builder
	line := func(pairs ...ndb.Pair) { t.WriteString(ndb.Format(pairs...) + "\n") }
	line(ndb.Of("state", state))
	line(ndb.Of("objects", st.Objects))
	line(ndb.Of("indexed", ix.Docs))
	line(ndb.Of("last", b.lastDone))
	line(ndb.Of("bytes", st.Bytes))
	line(ndb.Of("disk", st.Disk+ix.Bytes))
	line(ndb.Of("seq", st.Seq), ndb.Of("indexed-seq", mark.Seq))
	line(ndb.Of("index-segments", ix.Segments), ndb.Of("index-bytes", ix.Bytes), ndb.Of("index-words", ix.Text))
	line(append([]ndb.Pair{ndb.Of("index", "")}, h.files.pairs()...)...)
	if b.rebuilding || b.reindex {
		next := append([]ndb.Pair{ndb.Of("index-next", "")}, b.config.index.files.pairs()...)
		if b.next != nil {
			next = append(next, ndb.Of("indexed", b.next.Stats().Docs))
		}
		line(next...)
	}
	if copied, hidden := b.dups.figures(); copied > 0 {
		line(ndb.Of("copied", copied), ndb.Of("hidden", hidden))
	}
	line(ndb.Of("next-gc", b.gcAt))
	if views := b.views.figures(); views != nil {
		line(views...)
	}
	for _, what := range []struct {
		name string
		err  error
	}{{"store-error", serr}, {"index-error", b.trouble}, {"merge-error", b.mergeTrouble}, {"log-error", b.journal.trouble()}} {
		if what.err != nil {
			line(ndb.Of(what.name, what.err))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(b.sources)) {
		line(b.sources[path].pairs(b.stopped)...)
	}
	for _, k := range b.front.figures() {
		line(k...)
	}
	for _, k := range b.router.figures() {
		line(k...)
	}
	for _, pairs := range append(b.config.ignoredLines(), b.template.ignoredLines()...) {
		line(pairs...)
	}
	return t.String()
}

// pairs is the source's line of status. Called with the Broker's mu held.
func (s *source) pairs(stopped bool) []ndb.Pair {
	state := "waiting"
	switch {
	case s.cancel != nil:
		state = "collecting"
	case s.asked:
		state = "due"
	case stopped:
		state = "stopped"
	case s.err != nil:
		state = "failing"
	}
	out := []ndb.Pair{ndb.Of("source", ""), ndb.Of("path", s.path), ndb.Of("is", state), ndb.Of("every", s.every),
		ndb.Of("cursor", s.at.cursor), ndb.Of("collected", s.at.last), ndb.Of("next", s.next)}
	out = append(out, s.total.pairs()...)
	if s.err != nil {
		out = append(out, ndb.Of("failed", s.fails), ndb.Of("err", s.err))
	}
	return out
}

// writeAttributes writes a line an attribute: name, documents, distinct values.
func (b *Broker) writeAttributes(ctx context.Context, w io.Writer) error {
	h := b.hold()
	defer h.release()
	list, err := h.Attributes(ctx)
	b.doubt(h, err)
	if err != nil {
		return err
	}
	kinds := make(map[string]index.Kind)
	if k, ok := h.Engine.(index.Kinder); ok {
		all, err := k.Kinds(ctx)
		b.doubt(h, err)
		if err != nil {
			return err
		}
		for _, a := range all {
			kinds[a.Name] = a
		}
	}
	for _, a := range list {
		kind, by := typed(kinds[a.Name])
		if _, err := fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\n", a.Name, a.Docs, a.Distinct, kind, by); err != nil {
			return err
		}
	}
	return nil
}

// typed is what the values of an attribute are, integer, number, date or text, and
// what finds them: range, a sorted index by which they are compared as that; hash,
// one of whole values; scan, where the engine has no index of an attribute.
func typed(k index.Kind) (kind, by string) {
	switch {
	case k.Name == "":
		return "text", "scan"
	case k.Distinct == 0:
		return "text", "hash"
	case k.Dates == k.Distinct && (k.Numbers == 0 || k.First.Year() >= 1985): // of seconds since 1970 those that can be times of a document
		return "date", "range"
	case k.Whole == k.Distinct:
		return "integer", "range"
	case k.Numbers == k.Distinct:
		return "number", "range"
	}
	return "text", "hash"
}
