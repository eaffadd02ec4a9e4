package broker

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/index"
	"harvest/index/query"
)

// frontAnswer asks all back ends, and this Broker's own objects if it has any, and
// puts what they found in one order. An object that several have counts once.
func (b *Broker) frontAnswer(ctx context.Context, q query.Node, m manner, page int) (*answer, error) {
	a := &answer{b: b, q: q, manner: m, time: time.Now(), mark: b.answerMark()}
	opt := askOptions{manner: m, most: backendMost}
	opt.manner.limit = 0
	if m.limit > 0 {
		a.first = (page - 1) * m.limit
		opt.most = a.first + m.limit
	}
	key := m.sortKey()
	if key != "" {
		opt.fields = []string{key}
	}
	got, c, err := b.front.ask(ctx, q, opt)
	if err != nil {
		return nil, err
	}
	a.routed, a.back = c.routed, len(got)
	if opt.manner.among == "" {
		opt.manner.among = c.among
	}
	if b.store.Count() > 0 {
		own, err := b.ownHits(ctx, q, opt)
		if err != nil {
			return nil, err
		}
		got = append(got, outcome{reply: own})
	}
	for _, o := range got {
		a.merge(o, opt.most)
	}
	if a.back > 0 && len(a.missing) == a.back && len(got) == a.back {
		return nil, fmt.Errorf("no back end answers: %s: %w", strings.Join(a.missing, "; "), classOf(got))
	}
	a.arrange(m, opt.most)
	l := b.limitsOf(ctx)
	if n, key, value := l.most(); n > 0 && len(a.far) > n {
		a.far, a.cut = a.far[:n], fmt.Sprintf("limit %s=%v of user %s: %d hits", key, value, l.user, n)
	}
	a.hits = make([]hit, len(a.far))
	for i := range a.far {
		a.hits[i] = a.far[i].hit
	}
	a.done()
	return a, nil
}

// classOf is what is wrong if all are missing: what they refuse if one refuses, since
// that is about the query.
func classOf(got []outcome) error {
	for _, o := range got {
		for _, c := range []error{syscall.ELOOP, syscall.EINVAL} {
			if errors.Is(o.err, c) {
				return c
			}
		}
	}
	return syscall.EIO
}

// merge takes one back end's part.
func (a *answer) merge(o outcome, wanted int) {
	if o.err != nil {
		a.missing = append(a.missing, o.k.conf.path+": "+o.err.Error())
		return
	}
	r := o.reply
	a.total += r.total
	a.more = a.more || r.more
	if o.k != nil {
		for _, line := range r.missing {
			a.missing = append(a.missing, o.k.conf.path+": "+line)
			a.back++
		}
		if r.cut == "" && wanted > o.k.conf.most && r.total > len(r.hits) {
			r.cut = fmt.Sprintf("limit=%d of %d hits", o.k.conf.most, r.total)
		}
		if r.cut != "" {
			a.cut = strings.TrimPrefix(a.cut+"; "+o.k.conf.path+": "+r.cut, "; ")
		}
		a.plan = append(a.plan, fmt.Sprintf("%s: %d hits, %d read", o.k.conf.path, r.total, len(r.hits)))
	}
	a.far = append(a.far, r.hits...)
}

// arrange puts the hits in order, each object once, and leaves those of the page.
func (a *answer) arrange(m manner, most int) {
	reverse := strings.HasPrefix(m.rank, "-") || m.rank == rankUpdated
	byKey := m.rank != rankScore && m.rank != rankVector
	if byKey {
		for i := range a.far {
			a.far[i].key = m.orderKey(&a.far[i])
		}
	}
	slices.SortStableFunc(a.far, func(x, y farHit) int {
		order := cmp.Compare(y.score, x.score)
		if byKey {
			order = compareKeys(x.key, y.key, reverse)
		}
		return cmp.Or(order, bytes.Compare(x.oid[:], y.oid[:]))
	})
	seen := make(map[store.OID]bool, len(a.far))
	all := len(a.far)
	a.far = slices.DeleteFunc(a.far, func(h farHit) bool {
		was := seen[h.oid]
		seen[h.oid] = true
		return was
	})
	a.total -= all - len(a.far)
	if a.far == nil {
		a.far = []farHit{}
	}
	if m.limit > 0 {
		from := min(a.first, len(a.far))
		a.far = a.far[from:min(from+m.limit, len(a.far))]
	} else {
		if len(a.far) > most {
			a.far = a.far[:most]
		}
		if len(a.far) < a.total && a.cut == "" {
			a.cut = fmt.Sprintf("the best %d of %d hits; ask with a limit and by page", len(a.far), a.total)
		}
	}
}

// sortKey is the attribute that hits are ordered by, "" if it is the score or the
// URL.
func (m manner) sortKey() string {
	switch m.rank {
	case rankScore, rankVector, rankURL:
		return ""
	case rankUpdated:
		return "update-time"
	}
	return index.Attr(strings.TrimPrefix(m.rank, "-"))
}

// orderKey is what a hit is ordered by: the key of its value, "" without one. Of
// several values the first in the order counts, as in an index.
func (m manner) orderKey(h *farHit) (key string) {
	if m.rank == rankURL {
		return h.url
	}
	if len(h.fields) == 0 {
		return ""
	}
	for value := range strings.SplitSeq(h.fields[0], "; ") {
		if value == "" {
			continue
		}
		index.Keys(nil, value, func(k []byte) bool {
			if key == "" || compareKeys(string(k), key, strings.HasPrefix(m.rank, "-")) < 0 {
				key = string(k)
			}
			return false
		})
	}
	return key
}

// compareKeys orders keys; what has none comes last either way.
func compareKeys(x, y string, reverse bool) int {
	switch {
	case x == "" || y == "":
		return cmp.Compare(len(y), len(x))
	case reverse:
		return cmp.Compare(y, x)
	}
	return cmp.Compare(x, y)
}

// ownHits is the part of this Broker's own objects.
func (b *Broker) ownHits(ctx context.Context, q query.Node, opt askOptions) (r reply, err error) {
	m := opt.manner
	m.limit = opt.most
	own, err := b.ownAnswer(ctx, q, m, 1)
	if err != nil {
		return r, err
	}
	r.total, r.more = own.total, own.more
	p := own.all()
	err = p.each(ctx, func(i int, e store.Entry, o *soif.Object) error {
		h := farHit{hit: p.hit(i), kind: or(e.Type, o.Type), url: o.URL, title: o.Text("Title")}
		for _, name := range opt.fields {
			h.fields = append(h.fields, joined(o, name))
		}
		r.hits = append(r.hits, h)
		return nil
	})
	return r, err
}

// answerMark is the state that answers are of: that of the index and, since nobody
// tells a front end that its back ends' have moved, a part of the time.
func (b *Broker) answerMark() string {
	h := b.hold()
	mark := h.Mark()
	h.release()
	if b.front.has() {
		mark += "." + strconv.FormatInt(time.Now().Unix()/frontKeeps, 36)
	}
	return mark
}

// frontKeeps is how many seconds, at most, q/QUERY stays what it is in a front end.
const frontKeeps = 10

// farHit is where hit i of the page is, nil if it is an object of this Broker.
func (p page) farHit(i int) *farHit {
	if p.answer == nil || p.far == nil {
		return nil
	}
	return &p.far[i-p.first]
}

// object reads the hit from its back end.
func (h *farHit) object(ctx context.Context) (e store.Entry, o soif.Object, err error) {
	body, err := h.from.object(ctx, h.oid)
	if err != nil {
		return e, o, err
	}
	if o, _, err = soif.Parse(body, soif.Limits{}); err != nil {
		return e, o, fmt.Errorf("backend %s: object %s: %w", h.from.conf.path, h.oid, err)
	}
	e.Type = h.kind
	return e, o, nil
}

// body is the SOIF of a hit.
func (p page) body(ctx context.Context, i int, oid store.OID) ([]byte, error) {
	if h := p.farHit(i); h != nil && h.from != nil {
		return h.from.object(ctx, oid)
	}
	body, _, err := p.b.store.Get(oid)
	return body, err
}

// writeFar writes the lines of hits as the back ends gave them; only fields that
// they were not asked for cost a look at the object.
func (p page) writeFar(ctx context.Context, w *bufio.Writer) error {
	if len(p.fields) > 0 {
		return p.each(ctx, func(i int, e store.Entry, o *soif.Object) error {
			_, err := w.WriteString(p.line(i, e, o))
			return err
		})
	}
	for i := p.from; i < p.to; i++ {
		h := p.farHit(i)
		cols := []string{strconv.Itoa(i + 1), fmt.Sprintf("%.3f", h.score), h.oid.String(), h.kind, h.url, h.title}
		for i, c := range cols {
			cols[i] = oneLine(c, 500)
		}
		if _, err := w.WriteString(strings.Join(cols, "\t") + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// tellMissing says in a summary which back ends are not in it.
func (p page) tellMissing(w *bufio.Writer) {
	for _, who := range p.missing {
		fmt.Fprintf(w, "…\tmissing\t%s\n", oneLine(who, 500))
	}
}
