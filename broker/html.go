package broker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	html "harvest/broker/page"
	"harvest/fs/ndb"
	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/index"
)

// templateName is the file that keeps a template that was written.
const templateName = "template"

// A template is how answers are shown to people: that of html.Default until
// another is written, or a BrokerQuery.cf of the first Harvest.
type template struct {
	mu      sync.Mutex
	text    string // as it was written; "" if none was
	made    string // what it is in the language of templates
	ignored []html.Ignored
	t       *html.Template
	vers    uint32 // moves with each change
}

// read reads a text as a template.
func readTemplate(text string) (t *html.Template, made string, ignored []html.Ignored, err error) {
	made = text
	switch {
	case strings.TrimSpace(text) == "":
		made = html.Default
	case html.IsOld(text):
		if made, ignored, err = html.Translate(text); err != nil {
			return nil, "", nil, err
		}
	}
	t, err = html.Parse(made)
	if err != nil && made != text {
		err = fmt.Errorf("what it becomes is no template: %w", err)
	}
	return t, made, ignored, err
}

// loadTemplate reads the template that was kept.
func (b *Broker) loadTemplate() error {
	text, err := os.ReadFile(filepath.Join(b.dir, templateName))
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	return b.template.use(string(text), func() error { return nil })
}

// setTemplate checks a template, keeps it and puts it in force.
func (b *Broker) setTemplate(_ context.Context, text string) error {
	b.setting.Lock()
	defer b.setting.Unlock()
	err := b.template.use(text, func() error { return writeFile(filepath.Join(b.dir, templateName), []byte(text)) })
	if err == nil {
		b.event("template")
	}
	return err
}

func (t *template) use(text string, keep func() error) error {
	n, made, ignored, err := readTemplate(text)
	if err != nil {
		return err
	}
	if err := keep(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text, t.made, t.ignored, t.t = text, made, ignored, n
	t.vers++
	return nil
}

// source is the template as it was written, or the default.
func (t *template) source() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if strings.TrimSpace(t.text) == "" {
		return t.made
	}
	return t.text
}

// translated is the template in the language of templates.
func (t *template) translated() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.made
}

func (t *template) version() uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.vers
}

func (t *template) now() *html.Template {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.t
}

func (t *template) ignoredLines() (lines [][]ndb.Pair) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range t.ignored {
		lines = append(lines, []ndb.Pair{ndb.Of("ignored", i.Name), ndb.Of("of", templateName), ndb.Of("line", i.Line), ndb.Of("reason", i.Why)})
	}
	return lines
}

// How much of an answer a page for people has. What is left out it says.
const (
	htmlHits  = 1000
	htmlTitle = 500
	htmlText  = 500 // of a description
)

// writeHTML writes a page for people; folder is where its objects stand.
func (b *Broker) writeHTML(ctx context.Context, w io.Writer, p page, folder string) error {
	shown := &html.Page{Broker: b.name, Number: 1, Pages: 1, Time: time.Now(), Failure: "nothing was asked yet"}
	if p.answer != nil {
		var err error
		if shown, err = p.forPeople(ctx, folder); err != nil {
			return err
		}
	}
	buf := bufio.NewWriterSize(w, 16<<10)
	if err := b.template.now().Render(ctx, buf, shown); err != nil {
		return err
	}
	return buf.Flush()
}

// forPeople is what a template gets to see.
func (p page) forPeople(ctx context.Context, folder string) (*html.Page, error) {
	h := &html.Page{Broker: p.b.name, Query: p.asked().Value, Total: p.total, More: p.more, Cut: p.cut, Took: p.took, Time: p.time, Number: 1, Pages: p.pages()}
	if p.mark == "" && p.cut != "" { // a session that could not be asked again
		h.Failure, h.Cut = p.cut, ""
		return h, nil
	}
	if p.manner.limit > 0 {
		h.Number = p.from/p.manner.limit + 1
	}
	few := p
	few.to = min(p.to, p.from+htmlHits)
	h.First, h.Last = min(few.from+1, few.to), few.to
	h.Truncated = few.to < p.total || p.more || p.cut != ""
	lines, err := p.lines(ctx)
	if err != nil {
		return nil, err
	}
	best := p.best()
	err = few.each(ctx, func(i int, e store.Entry, o *soif.Object) error {
		h.Hits = append(h.Hits, p.hitForPeople(i, e, o, best, folder, lines))
		return nil
	})
	return h, err
}

// best is the score of the first hit, or of the first that is known of.
func (p page) best() float32 {
	if len(p.hits) == 0 {
		return 0
	}
	return p.hits[0].score
}

func (p page) hitForPeople(i int, e store.Entry, o *soif.Object, best float32, folder string, lines func([]index.Field, func(index.Line) bool)) html.Hit {
	h := html.Hit{Number: i + 1, Score: float64(p.hit(i).score), OID: p.hit(i).oid.String(), Type: oneLine(or(e.Type, o.Type), htmlTitle),
		URL: o.URL, Title: oneLine(o.Text("Title"), htmlTitle), File: folder + p.name(i),
		Gatherer: oneLine(o.Text("Gatherer-Name"), htmlTitle), GathererHost: oneLine(o.Text("Gatherer-Host"), htmlTitle), Updated: e.Updated, Size: e.Size}
	for _, name := range []string{"Description", "Abstract"} {
		if h.Description == "" {
			h.Description = oneLine(o.Text(name), htmlText)
		}
	}
	if best > 0 {
		h.Percent = int(100*p.hit(i).score/best + .5)
	}
	if u, err := url.Parse(o.URL); err == nil {
		h.Access, h.Host, h.Path = u.Scheme, u.Host, u.Path
		h.Folder, h.Basename = path.Split(u.Path)
	}
	lines(document(p.hit(i).oid, o).Fields, func(l index.Line) bool {
		h.Lines = append(h.Lines, lineForPeople(l))
		return len(h.Lines) < summaryLines
	})
	return h
}

// lineForPeople parts a line where it matches.
func lineForPeople(l index.Line) html.Line {
	out := html.Line{Attr: l.Attr, Text: strings.ToValidUTF8(l.Text, "\ufffd")}
	last := 0
	part := func(to int, match bool) {
		if to > last {
			out.Parts = append(out.Parts, html.Part{Text: strings.ToValidUTF8(l.Text[last:to], "\ufffd"), Match: match})
			last = to
		}
	}
	for _, r := range l.Ranges {
		part(min(r[0], len(l.Text)), false)
		part(min(r[1], len(l.Text)), true)
	}
	part(len(l.Text), false)
	return out
}
