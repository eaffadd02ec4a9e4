package broker

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"harvest/fs/ndb"
	"harvest/index"
	"harvest/index/match"
	"harvest/index/query"
)

// A manner is how a query is asked: what set sets.
type manner struct {
	rank   string
	limit  int    // hits of a page; 0: all
	errors int    // in spelling, that every plain word allows
	cased  bool   // words are to stand as they are written
	inside bool   // plain words are found inside of others too
	stem   string // language, or no; "": what the config says

	costs    match.Costs // of the kinds of errors
	external string      // table of weights, or no; "": what the config says
	feedback int         // this many of the best hits name more words to look for
	among    string      // what words are rare among, as parseAmong reads it; "": this Broker's objects

	via  string // front ends that the query has come by
	dups string // show or hide copies; "": what the config says
	near string // how much hits resemble each other that are not shown, in percent, or no; "": what the config says
}

// What rank may be, beside an attribute, or one with a dash before it for the
// greatest first.
const (
	rankScore   = "score"
	rankVector  = "vector"
	rankURL     = "url"
	rankUpdated = "updated"
)

const (
	maxErrors   = 8
	maxFeedback = 100 // objects, which are read
	mannerUsage = "set rank=score|vector|url|updated|[-]ATTRIBUTE limit=N errors=0…8 costs=N,N,N,N feedback=N case=yes|no word=yes|no stem=LANGUAGE|no dups=show|hide near=N|no among='OBJECTS WORDS WORD=OBJECTS ...' external=links|recency|size|ATTRIBUTE|no fields=NAME,NAME"
)

func plain() manner { return manner{rank: rankScore} }

// set takes one key=value; it says whether the key is one of a manner.
func (m *manner) set(e ndb.Entry, p ndb.Pair) (known bool, err error) {
	switch p.Key {
	case "rank":
		if p.Value == "" || p.Value == "-" {
			return true, fmt.Errorf("set rank=%s: not score, vector, url, updated or an attribute", p.Value)
		}
		m.rank = p.Value
	case "limit":
		m.limit, err = number(p, math.MaxInt32, "from 0 (all)")
	case "errors":
		m.errors, err = number(p, maxErrors, "from 0 to 8")
	case "costs":
		m.costs, err = parseCosts(p)
	case "feedback":
		m.feedback, err = number(p, maxFeedback, "from 0 (none) to 100")
	case "among":
		m.among = p.Value
		_, err = parseAmong(p.Value)
	case "external":
		m.external = index.Attr(p.Value)
	case "via":
		m.via = p.Value
	case "case":
		m.cased, err = yes(e, p)
	case "word":
		m.inside, err = yes(e, p)
		m.inside = !m.inside
	case "stem":
		if m.stem = p.Value; p.Value != "" {
			if serr := checkStem(p.Value); serr != nil {
				err = fmt.Errorf("set %w", serr)
			}
		}
	case "dups":
		if m.dups = p.Value; p.Value != "" && p.Value != dupsShow && p.Value != dupsHide {
			err = fmt.Errorf("set dups=%s: neither show nor hide", p.Value)
		}
	case "near":
		if m.near = p.Value; p.Value != "" {
			if _, nerr := parseNear(p.Value); nerr != nil {
				err = fmt.Errorf("set %w", nerr)
			}
		}
	default:
		return false, nil
	}
	return true, err
}

func number(p ndb.Pair, most int, want string) (int, error) {
	n, err := strconv.Atoi(p.Value)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("set %s=%s: not a number %s", p.Key, p.Value, want)
	}
	return n, nil
}

// parseCosts reads the costs of a character too many, one that is missing, one
// in place of another, and two swapped.
func parseCosts(p ndb.Pair) (c match.Costs, err error) {
	if p.Value == "" {
		return c, nil
	}
	to := []*int{&c.Insert, &c.Delete, &c.Substitute, &c.Transpose}
	list := strings.Split(p.Value, ",")
	for i, text := range list {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxErrors+1 || len(list) != len(to) {
			return c, fmt.Errorf("set costs=%s: not four numbers from 1 to 9, as 1,1,2,1", p.Value)
		}
		*to[i] = n
	}
	return c, nil
}

func formatCosts(c match.Costs) string {
	if c == (match.Costs{}) {
		return ""
	}
	return fmt.Sprintf("%d,%d,%d,%d", c.Insert, c.Delete, c.Substitute, c.Transpose)
}

func yes(e ndb.Entry, p ndb.Pair) (bool, error) {
	v, err := e.Bool(p)
	if err != nil {
		return false, fmt.Errorf("set %s=%s: neither yes nor no", p.Key, p.Value)
	}
	return v, nil
}

// pairs are the manner as set takes it, but for limit, which is of pages.
func (m manner) pairs() []ndb.Pair {
	return []ndb.Pair{ndb.Of("rank", m.rank), ndb.Of("errors", m.errors), ndb.Of("costs", formatCosts(m.costs)), ndb.Of("feedback", m.feedback), ndb.Of("case", yesOrNo(m.cased)),
		ndb.Of("word", yesOrNo(!m.inside)), ndb.Of("stem", m.stem), ndb.Of("dups", m.dups), ndb.Of("near", m.near), ndb.Of("external", m.external), ndb.Of("among", m.among), ndb.Of("via", m.via)}
}

// byStore tells that the order is none that the index knows.
func (m manner) byStore() bool { return m.rank == rankURL || m.rank == rankUpdated }

// options are how the index is asked for q.
func (b *Broker) options(ctx context.Context, q query.Node, m manner) (index.Options, error) {
	opt, _, err := b.asking(ctx, q, m)
	return opt, err
}

// asking are the options, and which words of the query are left out.
func (b *Broker) asking(ctx context.Context, q query.Node, m manner) (opt index.Options, left []string, err error) {
	b.mu.Lock()
	c := b.config
	b.mu.Unlock()
	opt = index.Options{Weight: c.weight, Errors: m.errors, Costs: m.costs, Case: m.cased, Feedback: m.feedback, Plan: true}
	switch m.rank {
	case rankScore:
	case rankVector:
		opt.Rank = index.RankVector
	case rankURL, rankUpdated:
		opt.Rank = index.RankNone
	default:
		opt.Rank = index.RankValue
		opt.Sort, opt.Reverse = strings.CutPrefix(m.rank, "-")
		opt.Sort = index.Attr(opt.Sort)
	}
	stem := m.stem
	if stem == "" {
		stem = c.index.stem
	}
	if stem != "" && stem != "no" {
		if opt.Stem, err = index.Stemmer(stem); err != nil {
			return opt, nil, err
		}
	}
	if opt.External, err = b.outside(ctx, m, c); err != nil {
		return opt, nil, err
	}
	if opt.Among, err = parseAmong(m.among); err != nil {
		return opt, nil, err
	}
	if bag, ok := q.(query.Bag); ok {
		var stop map[string]bool
		if stop, err = b.stopWords(ctx, bag, c, opt.Among); len(stop) > 0 {
			opt.Stop = func(word string) bool { return stop[word] }
			if slices.ContainsFunc(bag, func(n query.Node) bool { return !stopped(n, stop) }) { // else all count
				left = slices.Sorted(maps.Keys(stop))
			}
		}
	}
	return opt, left, err
}

// outside is the table of weights that answers are mixed with, nil without one.
func (b *Broker) outside(ctx context.Context, m manner, c *config) (index.External, error) {
	name := m.external
	if name == "" {
		name = c.external.use
	}
	if name == "" || name == "no" || m.rank != rankScore && m.rank != rankVector {
		return nil, nil
	}
	return b.weightsOf(ctx, name)
}

// ask is what the index is asked when q is asked in this manner.
func (m manner) ask(q query.Node) query.Node {
	if !m.inside {
		return q
	}
	return query.Map(q, func(q query.Node, _ string) query.Node {
		if w, ok := q.(query.Word); ok && oneWord(w.Text) {
			return query.Wild{Pattern: "*" + w.Text + "*"}
		}
		return nil
	})
}

// oneWord tells that text is one word of an index, not several with something
// between them.
func oneWord(text string) bool {
	n := 0
	index.Words(text, func(w *index.Word) bool {
		n++
		return n < 2
	})
	return n == 1
}

// stopWords are the words of a query that it goes without: those of the config,
// and those that nearly all objects have.
func (b *Broker) stopWords(ctx context.Context, q query.Bag, c *config, among *index.Among) (map[string]bool, error) {
	stop := make(map[string]bool)
	for _, n := range q {
		w, ok := n.(query.Word)
		if !ok {
			continue
		}
		word := string(index.Fold(nil, w.Text))
		common, err := c.stop[word], error(nil)
		if !common && c.common > 0 && oneWord(w.Text) {
			if n, ok := known(among, word); ok {
				common = among.Docs >= fewObjects && n*100 > among.Docs*c.common
			} else {
				common, err = b.common(ctx, w, c)
			}
		}
		if err != nil {
			return nil, err
		}
		if common {
			stop[word] = true
		}
	}
	return stop, nil
}

func stopped(n query.Node, stop map[string]bool) bool {
	w, ok := n.(query.Word)
	return ok && stop[string(index.Fold(nil, w.Text))]
}

// commons are which words are common, as far as it was looked up, in an index
// with one mark.
type commons struct {
	mark  string
	words map[query.Word]bool
}

const maxCommons = 4096

// common tells whether nearly all objects have a word.
func (b *Broker) common(ctx context.Context, w query.Word, c *config) (bool, error) {
	h := b.hold()
	defer h.release()
	docs := h.Stats().Docs
	if docs < fewObjects || h.files.reads() { // which would read the text to count
		return false, nil
	}
	mark := h.Mark()
	b.mu.Lock()
	if b.commons.mark != mark || len(b.commons.words) >= maxCommons {
		b.commons = commons{mark, make(map[query.Word]bool)}
	}
	words := b.commons.words
	yes, known := words[w]
	b.mu.Unlock()
	if known {
		return yes, nil
	}
	r, err := h.Search(ctx, w, index.Options{Weight: c.weight, Limit: 1, Count: true, Rank: index.RankNone})
	if err != nil {
		b.doubt(h, err)
		return false, err
	}
	yes = r.Total*100 > docs*c.common
	b.mu.Lock()
	words[w] = yes
	b.mu.Unlock()
	return yes, nil
}
