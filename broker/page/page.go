// Package page makes pages for people of what a query found, by templates that
// anybody may write who may change a Broker. A template is one of html/template:
// what is put in is escaped for the place it is put in. It can call nothing but
// what stands in functions, open nothing, and is bounded in steps, time and
// output; what is wrong with it is told with line and column when it is read.
//
// docs/broker.4.md is the manual of templates.
package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	iofs "io/fs"
	"regexp"
	"strconv"
	"strings"
	"text/template/parse"
	"time"
)

// A Page is what a template shows.
type Page struct {
	Broker  string
	Query   string // as it is understood
	Failure string // why there is no answer; "" if there is one
	Total   int    // hits in all, or those that are known
	More    bool   // there may be more
	First   int    // number of the first that is shown, 0 if none is
	Last    int
	Cut     string // the limit of the index that left some unfound

	Truncated bool // not all of what was asked for is shown here
	Number    int  // of the page, from 1, of Pages
	Pages     int
	Took      time.Duration
	Time      time.Time
	Hits      []Hit
}

// Lines is how many lines match, in the hits that are shown.
func (p *Page) Lines() (n int) {
	for i := range p.Hits {
		n += len(p.Hits[i].Lines)
	}
	return n
}

// A Hit is an object that matches.
type Hit struct {
	Number                               int // 1 is the best
	Score                                float64
	Percent                              int // of the best score
	OID, Type, URL, Title, Description   string
	File                                 string // name of its summary, beside the page
	Gatherer, GathererHost               string
	Updated                              time.Time
	Size                                 int64
	Access, Host, Path, Folder, Basename string // parts of the URL
	Lines                                []Line
}

// Link is the URL as the target of a link, if it is of a kind that leads to a
// document; anything else, javascript: say, is not.
func (h Hit) Link() any {
	switch strings.ToLower(h.Access) {
	case "http", "https", "ftp", "ftps", "gopher", "news", "nntp", "file":
		return template.URL(h.URL)
	}
	return h.URL // html/template looks at it
}

// A Line is one that matches; its parts are all of its text.
type Line struct {
	Attr, Text string
	Parts      []Part
}

// A Part of a line is what matches, or what stands between.
type Part struct {
	Text  string
	Match bool
}

// Bounds of templates, and of what one makes of a page.
const (
	MaxText   = 64 << 10
	maxSteps  = 1 << 18
	maxOutput = 16 << 20
	maxValue  = 64 << 10 // bytes of what a function gives
	maxTime   = 5 * time.Second
)

// A Template is one that was found good. It may be used by many at once.
type Template struct {
	t *template.Template
}

// An Error says what is wrong with a template, and where.
type Error struct {
	Line, Col int
	Msg       string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Col, e.Msg) }

// Position gives the line and column, from 1.
func (e *Error) Position() (line, col int) { return e.Line, e.Col }

// Unwrap gives the class.
func (e *Error) Unwrap() error { return iofs.ErrInvalid }

const name = "template"

// Parse reads a template. An error is an *Error.
func Parse(text string) (*Template, error) {
	if len(text) > MaxText {
		return nil, &Error{1, 1, fmt.Sprintf("%d bytes, the limit is %d", len(text), MaxText)}
	}
	t, err := template.New(name).Funcs(functions(newMeter(context.Background()))).Parse(text)
	if err != nil {
		return nil, located(text, err)
	}
	if err := check(t, text); err != nil {
		return nil, err
	}
	for _, p := range samples() { // what html/template has against it shows when it is used
		clone, err := t.Clone()
		if err != nil {
			return nil, located(text, err)
		}
		if err := (&Template{clone}).Render(context.Background(), io.Discard, p); err != nil {
			return nil, located(text, err)
		}
	}
	return &Template{t}, nil
}

// Render writes a page. What is written before an error is a page cut off.
func (t *Template) Render(ctx context.Context, w io.Writer, p *Page) error {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	m := newMeter(ctx)
	use, err := t.t.Clone() // its functions count the steps of this page
	if err != nil {
		return err
	}
	return use.Funcs(functions(m)).Execute(&counted{w, m, maxOutput}, p)
}

// counted bounds what is written, and takes part in the bound on time.
type counted struct {
	w    io.Writer
	m    *meter
	left int
}

func (c *counted) Write(p []byte) (int, error) {
	if c.left -= len(p); c.left < 0 {
		return 0, fmt.Errorf("a page of more than %d bytes: %w", maxOutput, errBound)
	}
	if err := c.m.ctx.Err(); err != nil {
		return 0, c.m.late()
	}
	return c.w.Write(p)
}

var errBound = errors.New("the template does too much")

// A meter counts the steps that a template takes for one page.
type meter struct {
	ctx   context.Context
	steps int
}

func newMeter(ctx context.Context) *meter { return &meter{ctx: ctx} }

func (m *meter) late() error {
	if errors.Is(m.ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("more than %v: %w", maxTime, errBound)
	}
	return m.ctx.Err()
}

// step is called wherever a template may go round or into another. It is never
// true.
func (m *meter) step() (bool, error) {
	if m.steps++; m.steps > maxSteps {
		return false, fmt.Errorf("more than %d steps: %w", maxSteps, errBound)
	}
	if m.steps%256 == 0 && m.ctx.Err() != nil {
		return false, m.late()
	}
	return false, nil
}

// Functions that a template may call, with those of the language that make
// nothing large.
var allowed = map[string]bool{
	"and": true, "or": true, "not": true, "eq": true, "ne": true, "lt": true, "le": true, "gt": true, "ge": true,
	"len": true, "index": true, "add": true, "date": true, "number": true, "replace": true, "cut": true,
}

// stepName is the function that is put before each list of things to do. No template
// can name it: it is checked before.
const stepName = "step"

func functions(m *meter) template.FuncMap {
	return template.FuncMap{
		stepName:  m.step,
		"add":     func(a, b int) int { return a + b },
		"cut":     cutText,
		"date":    func(layout string, t time.Time) (string, error) { return bounded(t.UTC().Format(layout)) },
		"number":  number,
		"replace": replace,
	}
}

func bounded(s string) (string, error) {
	if len(s) > maxValue {
		return "", fmt.Errorf("a value of %d bytes: %w", len(s), errBound)
	}
	return s, nil
}

// cutText is the first n characters of text.
func cutText(n int, text string) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}

// number writes n in at least so many places.
func number(places, n int) string {
	return fmt.Sprintf("%*d", max(-20, min(places, 20)), n)
}

// maxPattern bounds a regular expression, which is compiled for each use.
const maxPattern = 500

// replace replaces all matches of a pattern, in which ${1} of the new text is
// what its first parenthesis matched.
func replace(pattern, with, text string) (string, error) {
	if len(pattern) > maxPattern || len(with) > maxPattern {
		return "", fmt.Errorf("replace: a pattern of more than %d bytes: %w", maxPattern, iofs.ErrInvalid)
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "", err
	}
	var out []byte
	last := 0
	for _, at := range re.FindAllStringSubmatchIndex(text, maxValue) {
		out = append(out, text[last:at[0]]...)
		out = re.ExpandString(out, with, text, at)
		if last = at[1]; len(out) > maxValue {
			break
		}
	}
	return bounded(string(append(out, text[last:]...)))
}

// check refuses functions that are not allowed and templates that call
// themselves, and has all steps counted.
func check(t *template.Template, text string) error {
	c := &checker{text: text, calls: make(map[string][]string), where: make(map[string][2]int)}
	for _, one := range t.Templates() {
		if one.Tree == nil || one.Tree.Root == nil {
			continue
		}
		c.in, c.tree = one.Name(), one.Tree
		c.list(one.Tree.Root)
	}
	if c.err != nil {
		return c.err
	}
	state := make(map[string]int)
	for _, one := range t.Templates() {
		if bad := c.round(one.Name(), state); bad != "" {
			at := c.where[bad]
			return &Error{at[0], at[1], fmt.Sprintf("template %q calls itself", bad)}
		}
	}
	return nil
}

type checker struct {
	text  string
	in    string // the template that is looked at
	tree  *parse.Tree
	calls map[string][]string // by name of template
	where map[string][2]int   // of a call of each
	err   *Error
}

func (c *checker) refuse(n parse.Node, format string, arg ...any) {
	if c.err == nil {
		line, col := position(c.text, int(n.Position()))
		c.err = &Error{line, col, fmt.Sprintf(format, arg...)}
	}
}

// list looks at what is done in a row, and puts a step before it.
func (c *checker) list(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		c.node(n)
	}
	l.Nodes = append([]parse.Node{c.step(l.Pos)}, l.Nodes...)
}

// step is {{if step}}{{end}}, which writes nothing wherever it stands.
func (c *checker) step(at parse.Pos) parse.Node {
	call := &parse.CommandNode{NodeType: parse.NodeCommand, Pos: at, Args: []parse.Node{parse.NewIdentifier(stepName).SetPos(at).SetTree(c.tree)}}
	pipe := &parse.PipeNode{NodeType: parse.NodePipe, Pos: at, Cmds: []*parse.CommandNode{call}}
	return &parse.IfNode{BranchNode: parse.BranchNode{NodeType: parse.NodeIf, Pos: at, Pipe: pipe, List: &parse.ListNode{NodeType: parse.NodeList, Pos: at}}}
}

func (c *checker) node(n parse.Node) {
	switch n := n.(type) {
	case *parse.ActionNode:
		c.pipe(n.Pipe)
	case *parse.IfNode:
		c.branch(&n.BranchNode)
	case *parse.WithNode:
		c.branch(&n.BranchNode)
	case *parse.RangeNode:
		c.branch(&n.BranchNode)
	case *parse.TemplateNode:
		c.pipe(n.Pipe)
		c.calls[c.in] = append(c.calls[c.in], n.Name)
		line, col := position(c.text, int(n.Pos))
		c.where[n.Name] = [2]int{line, col}
	case *parse.ListNode:
		c.list(n)
	}
}

func (c *checker) branch(b *parse.BranchNode) {
	c.pipe(b.Pipe)
	c.list(b.List)
	c.list(b.ElseList)
}

func (c *checker) pipe(p *parse.PipeNode) {
	if p == nil {
		return
	}
	for _, cmd := range p.Cmds {
		for _, arg := range cmd.Args {
			c.arg(arg)
		}
	}
}

func (c *checker) arg(n parse.Node) {
	switch n := n.(type) {
	case *parse.IdentifierNode:
		if !allowed[n.Ident] {
			c.refuse(n, "function %q is not for templates", n.Ident)
		}
	case *parse.PipeNode:
		c.pipe(n)
	case *parse.ChainNode:
		c.arg(n.Node)
	}
}

// round finds a template that leads to itself.
func (c *checker) round(name string, state map[string]int) string {
	const under, done = 1, 2
	switch state[name] {
	case under:
		return name
	case done:
		return ""
	}
	state[name] = under
	for _, to := range c.calls[name] {
		if bad := c.round(to, state); bad != "" {
			return bad
		}
	}
	state[name] = done
	return ""
}

// position is the line and column, in characters, of an offset.
func position(text string, at int) (line, col int) {
	at = max(0, min(at, len(text)))
	begin := strings.LastIndexByte(text[:at], '\n') + 1
	return strings.Count(text[:at], "\n") + 1, len([]rune(text[begin:at])) + 1
}

var (
	atLine  = regexp.MustCompile(`^(?:html/)?template: ?` + name + `:(\d+)(?::(\d+))?: (?s:(.*))$`)
	inQuote = regexp.MustCompile(`"([^"]+)"|<([^<>]+)>`)
)

// located gives an error of the library its place in the text. One about
// syntax has only a line, and often the word that is wrong.
func located(text string, err error) *Error {
	var ours *Error
	if errors.As(err, &ours) {
		return ours
	}
	e := &Error{1, 1, err.Error()}
	m := atLine.FindStringSubmatch(e.Msg)
	if m == nil {
		return e
	}
	e.Line, _ = strconv.Atoi(m[1])
	e.Msg = m[3]
	if _, what, ok := strings.Cut(e.Msg, ": "); ok && strings.HasPrefix(e.Msg, "executing ") {
		e.Msg = what
	}
	if m[2] != "" {
		e.Col, _ = strconv.Atoi(m[2])
		e.Col++ // they count from 0
		return e
	}
	lines := bytes.Split([]byte(text), []byte("\n"))
	if e.Line < 1 || e.Line > len(lines) {
		return e
	}
	line := string(lines[e.Line-1])
	if i := strings.Index(line, "{{"); i >= 0 {
		e.Col = len([]rune(line[:i])) + 1
	}
	for _, q := range inQuote.FindAllStringSubmatch(e.Msg, -1) {
		if i := strings.Index(line, q[1]+q[2]); i >= 0 {
			e.Col = len([]rune(line[:i])) + 1
			break
		}
	}
	return e
}

// samples are pages that a new template is tried on: with hits, without, and
// one that failed.
func samples() []*Page {
	hit := Hit{Number: 1, Score: 1, Percent: 100, OID: strings.Repeat("0", 32), Type: "HTML", URL: "http://host.example/folder/name.html", Title: "Title",
		Description: "A description.", File: "001.soif", Gatherer: "web", GathererHost: "host.example", Updated: time.Unix(1e9, 0), Size: 1000,
		Access: "http", Host: "host.example", Path: "/folder/name.html", Folder: "/folder/", Basename: "name.html", Lines: []Line{{"title", "Title", []Part{{"Title", true}}}, {"full-text", "A line.", []Part{{"A ", false}, {"line", true}, {".", false}}}}}
	second := hit
	second.Number, second.Percent, second.Title, second.Lines = 2, 50, "", nil
	return []*Page{
		{Broker: "papers", Query: "title : word", Total: 3, More: true, First: 1, Last: 2, Truncated: true, Number: 1, Pages: 2, Took: time.Millisecond, Time: time.Unix(1e9, 0), Cut: "time", Hits: []Hit{hit, second}},
		{Broker: "papers", Query: "title : none", Number: 1, Pages: 1, Time: time.Unix(1e9, 0)},
		{Broker: "papers", Failure: "what failed", Number: 1, Pages: 1, Time: time.Unix(1e9, 0)},
	}
}
