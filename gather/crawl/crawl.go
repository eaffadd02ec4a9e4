// Package crawl finds the documents below some roots and hands them on: it
// keeps a durable database, enumerates file trees by their listings and web
// sites by their links, obeys robots.txt, waits between two requests to a
// server, and asks again only for what may have changed.
//
// It speaks HTTP to a RoundTripper it is given, whatever the scheme, and so
// knows no protocol; it has no idea what becomes of a document. A Handler makes
// something of each and keeps it; only then is the document off the queue, so
// that a process killed at any moment loses none.
package crawl

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"harvest/gather/dup"
)

// A Root is where documents come from.
type Root struct {
	URL    string        // a file URL is a tree; http and https, a host
	Leaf   bool          // only the URL itself
	Depth  int           // links, or folders, that lead from the root to a document at most; < 0 is no limit
	URLs   int           // documents at most; <= 0 is no limit
	Delay  time.Duration // between two requests to the server at least; < 0 is DefaultDelay
	Search Search

	Hosts       int      // servers at most, whose documents count for it; <= 1 is its own only
	HostFilter  *Filter  // of other servers, those that may count; nil lets all in
	URLFilter   *Filter  // of its documents, by path and query
	Access      []string // schemes of them; none is that of the URL, http and https being one
	Enumeration []string // a program and its arguments, which names the documents in place of links
	Sitemaps    bool     // those that robots.txt names are read, or /sitemap.xml
	Feeds       bool     // those that its pages name are read
	Outside     bool     // a stranger asked for it: private addresses are refused
}

// Search is an order: near documents first, or those behind the newest link.
type Search uint8

const (
	Breadth Search = iota
	Depth
)

// DefaultDelay is kept between two requests to an http or https server unless a
// root, or the server's robots.txt, says otherwise.
const DefaultDelay = time.Second

// A Plan says what a visit covers and how.
type Plan struct {
	Roots []Root

	// Exclude returns the rule that keeps a URL out, or "". A folder (of a file
	// tree) is kept out only with all that is in it. Roots are not asked for, nor
	// what was added by its URL. May be nil.
	Exclude func(url string, folder bool) string
	// Context is given the context of each request, and the root it is made for.
	// May be nil.
	Context func(ctx context.Context, root string) context.Context
	// Public makes of the context of a request one under which no private
	// address is asked; it is for roots and documents from outside. May be nil.
	Public func(ctx context.Context) context.Context
	// Address returns the address of a host, "" when it cannot tell; servers of
	// one address wait for one another. Without it their first connection tells.
	Address func(ctx context.Context, host string) string
	// Excluded hears of URLs that were kept out, from any goroutine. May be nil.
	Excluded func(url, why string)
	// Trapped hears of places that make up pages for ever, from one goroutine. May
	// be nil.
	Trapped func(url, why string)
	// Unnamed hears of an enumeration program of a root that failed, or of a line
	// of its that names nothing. May be nil.
	Unnamed func(root, why string)
	// Left hears of servers that are left to the next visit. It must not call the
	// DB. May be nil.
	Left func(origin, why string)

	Agent   string        // User-Agent
	From    string        // From, a mail address, or ""
	Print   uint64        // stands for how documents are handled: one handled under another is fetched anew
	Refresh time.Duration // an unchanged document is marked Due after this long; 0 is never
	Life    time.Duration // one not handed on for this long is fetched anew, as the Handler has dropped it; 0 is never
	// Revisit says from when a document of a server is to be asked for again.
	// With nil, each visit asks for it.
	Revisit func(*Doc) time.Time
	Strip   []string // parameters that links lose (Strip)
	Force   bool     // fetch everything anew
	Queued  bool     // take what is in the queue and seed nothing

	GoneAfter time.Duration // a web document that is missing goes when it was missing this long before, too
	MaxGone   Guard         // of the deletions of a visit
	Delete    bool          // MaxGone does not count

	Limits Limits
}

// A Guard bounds the deletions of a visit: when it would delete more than the
// share of what is stored, and more than the floor, it deletes nothing and says
// so. A share of 0 is no bound.
type Guard struct {
	Share float64
	Floor int
}

// Limits bound a visit. A field of zero means its default.
type Limits struct {
	Head    int           // bytes of a document that are in memory at once, 4 MiB
	Memory  int64         // bytes of documents that are in memory at once, 64 MiB
	Body    int64         // bytes read of one document of a web server, 256 MiB
	Time    time.Duration // for one document, 2m; half of it to read one of a tree, whatever its size
	Wait    time.Duration // a server that asks for more is left to the next visit, 5m
	Tries   int           // of a document whose server says 429 or 503, 4
	Pages   int           // documents of http and https servers in hand at once, 32
	Files   int           // documents of file trees in hand at once, GOMAXPROCS
	Servers int           // connections to one server, when its delay is 0, 8
}

// maxURL is the longest URL that is gathered; longer ones are traps.
const maxURL = 2048

// maxHops bounds a chain of redirects.
const maxHops = 10

// Outcome is what became of a document.
type Outcome uint8

const (
	_         Outcome = iota
	Fetched           // here it is
	Unchanged         // it is what it was
	Gone              // it is no more
	Moved             // it is elsewhere now, and gathered from there
	Excluded          // it may not be gathered: a rule, robots.txt, the page itself
	Failed            // it could not be had this time
	Listed            // a folder, whose entries have been dealt with
)

var outcomes = [...]string{"", "fetched", "unchanged", "gone", "moved", "excluded", "failed", "listed"}

func (o Outcome) String() string { return outcomes[o] }

// A Page is one document of a visit.
type Page struct {
	URL     string
	Root    string // "" when it was asked for by its URL
	Depth   int
	Outcome Outcome
	Why     string // of Moved, Excluded, Failed
	Stored  bool   // a Handler has kept something of it before
	Due     bool   // Unchanged, and not handed on for Plan.Refresh

	// For Fetched. A Handler may make it Unchanged by the MD5, or Excluded or
	// Failed with a Why.
	Type          string        // Content-Type, "" when the server did not say
	Modified      time.Time     // zero: unknown
	Head          []byte        // the first bytes; valid only while Handle runs
	Rest          io.Reader     // what follows Head, nil if nothing does; valid as Head is
	Size          int64         // of the document as its server says, -1 while unknown
	Old           [16]byte      // what Handle set MD5 to when it was stored last
	MD5           [16]byte      // for Handle to set
	Result        any           // for Handle to set, and Commit to use
	Weight        int           // for Handle to set: bytes that Result keeps from the heap
	Note          string        // for Handle to set: a text that is kept with the document, see DB.Note
	Life, Refresh time.Duration // for Handle to set: Plan.Life and Plan.Refresh of this document, in seconds; 0 is the Plan's

	NoArchive bool // Fetched: it asks that its text not be kept

	doc       Doc
	root      *Root
	flags     byte
	tries     int                  // how often its server was too busy
	links     []string             // canonical
	dates     map[string]time.Time // when those of them were changed, if it was told
	original  string               // the page it says it is a copy of, canonical, or ""
	says      *dup.Signature
	entries   []listed // of a folder, those that are new or have changed,
	kept      []string // ... and the others
	taken     bool     // from its site, which has to hear of its end
	tree      *tree    // the walk that found it
	unkept    bool     // told of, not remembered
	silent    bool     // not even told of: only its links count
	condemned bool     // to be deleted at the end of the visit
	final     bool     // it is the end of the visit
	rest      *body
}

// Cut reports whether the document is longer than what was read, by Limits.Body
// or Limits.Time, once Rest is at its end.
func (p *Page) Cut() bool { return p.rest != nil && p.rest.cut }

// A Handler makes something of documents and keeps it.
type Handler interface {
	// Handle is called for each Fetched page, by several goroutines at once.
	// A panic makes the page Failed.
	Handle(ctx context.Context, p *Page)
	// Commit is called with every page, by one goroutine. When it returns nil
	// their documents are taken off the queue for good; an error ends the visit.
	Commit(ctx context.Context, pages []*Page) error
}

// Counts are what a visit has done. They may be read at any time.
type Counts struct {
	Found     atomic.Int64 // URLs met, those kept out included
	Queued    atomic.Int64 // documents and folders still to be dealt with
	Fetched   atomic.Int64
	Unchanged atomic.Int64
	Gone      atomic.Int64
	Failed    atomic.Int64
	Excluded  atomic.Int64 // URLs kept out; one met twice, far apart, may count twice
	In        atomic.Int64 // bytes read of documents
	Out       atomic.Int64 // bytes that the Handler has made of them, by their Weight
	Requests  atomic.Int64
	Spared    atomic.Int64 // documents that were to be deleted, and were not: Plan.MaxGone
}

// all lists the counts in the order in which a DB keeps them.
func (c *Counts) all() []*atomic.Int64 {
	return []*atomic.Int64{&c.Found, &c.Queued, &c.Fetched, &c.Unchanged, &c.Gone, &c.Failed, &c.Excluded, &c.In, &c.Out, &c.Requests, &c.Spared}
}

func (c *Counts) add(o Outcome) {
	switch o {
	case Fetched:
		c.Fetched.Add(1)
	case Unchanged:
		c.Unchanged.Add(1)
	case Gone:
		c.Gone.Add(1)
	case Failed:
		c.Failed.Add(1)
	case Excluded:
		c.Excluded.Add(1)
	}
}

// Visit goes once over everything the plan covers and returns when it is done.
// A visit that was cut off, by ctx or by a kill, is taken up where it stopped,
// with the plan as it is now. One visit of a DB runs at a time.
func (f *DB) Visit(ctx context.Context, p Plan, rt http.RoundTripper, h Handler, c *Counts) error {
	v, err := newVisit(f, p, rt, h, c)
	if err != nil {
		return err
	}
	return v.run(ctx)
}
