package fetch

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxPlus bounds the servers that are known to have Gopher+.
const maxPlus = 10000

// plusServers are the servers known to have Gopher+.
type plusServers struct {
	mu sync.Mutex
	m  map[string]bool
}

func newPlusServers() *plusServers { return &plusServers{m: make(map[string]bool)} }

func (s *plusServers) has(server string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m[server]
}

func (s *plusServers) put(server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.m) >= maxPlus { // they are found out again
		clear(s.m)
	}
	s.m[server] = true
}

// attributes asks for the attributes of one object (!) or of all in a menu ($).
func (g *gopherRequest) attributes(what, path string) ([]gopherItem, error) {
	b, err := g.fetch(g.selector + "\t" + what)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	in := bufio.NewReaderSize(io.LimitReader(b, maxMenu), 4<<10)
	status, err := in.ReadString('\n')
	if err != nil {
		return nil, unexpected(err)
	}
	var r io.Reader = in
	switch status = strings.TrimSpace(status); {
	case strings.HasPrefix(status, "--"):
		return nil, plusError(in)
	case status == "+-1" || status == "+-2": // to a line with a dot, to the end
	default:
		n, err := strconv.ParseInt(strings.TrimPrefix(status, "+"), 10, 64)
		if err != nil || n < 0 || !strings.HasPrefix(status, "+") {
			return nil, gopherError{http.StatusBadGateway, "not an answer of Gopher+"}
		}
		r = io.LimitReader(in, n)
	}
	items, err := parseAttributes(r)
	if what == "!" && len(items) > 0 {
		x := &items[0]
		if f, ok := x.fact(); ok {
			g.t.facts.put(g.server, path, f)
		}
		g.t.facts.say(g.server, path, x.title, x.abstract)
	}
	return items, err
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// plusError reads what follows --: a number and a text.
func plusError(r *bufio.Reader) error {
	text, err := r.ReadSlice('\n')
	if err != nil && err != io.EOF {
		return fmt.Errorf("error of Gopher+: %w", err)
	}
	if strings.HasPrefix(string(text), "2") {
		return gopherError{http.StatusServiceUnavailable, "try again later"}
	}
	return newGopherError(string(text))
}

// parseAttributes reads blocks of attributes, those of each item after its own
// +INFO:
//
//	+INFO: 0About this TAB /about TAB host TAB 70 TAB +
//	+ADMIN:
//	 Mod-Date: Wed Jul 28 17:02:01 1993 <19930728170201>
//	+VIEWS:
//	 Text/plain: <10k>
//	+ABSTRACT:
//	 What it is about.
func parseAttributes(r io.Reader) (items []gopherItem, err error) {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 4<<10), maxLine)
	var block string
	var x *gopherItem // nil: of an item that is none
	for in.Scan() {
		text := strings.TrimSuffix(in.Text(), "\r")
		if text == "." {
			break
		}
		if strings.HasPrefix(text, "+") {
			name, rest, _ := strings.Cut(text, ":")
			block = strings.ToUpper(name)
			if block == "+INFO" {
				x = nil
				if i, ok := parseItem(strings.TrimPrefix(rest, " ")); ok {
					items = append(items, i)
					x = &items[len(items)-1]
				}
			}
			continue
		}
		if x != nil {
			x.attribute(block, strings.TrimPrefix(text, " "))
		}
	}
	return items, in.Err()
}

// maxAbstract bounds what is kept of a description, in bytes.
const maxAbstract = 1 << 10

func (i *gopherItem) attribute(block, text string) {
	switch block {
	case "+ADMIN":
		if _, stamp, ok := strings.Cut(text, "<"); ok && strings.HasPrefix(text, "Mod-Date:") {
			stamp, _, _ = strings.Cut(stamp, ">")
			if t, err := time.Parse("20060102150405", stamp); err == nil {
				i.modified = t
			}
		}
	case "+VIEWS":
		if _, size, ok := strings.Cut(text, "<"); ok && i.size == 0 {
			i.size = plusSize(size)
		}
	case "+ABSTRACT":
		if room := maxAbstract - len(i.abstract); room > 1 && text != "" {
			if i.abstract != "" {
				i.abstract += " "
				room--
			}
			i.abstract += text[:min(len(text), room)]
		}
	}
}

// plusSize reads "10k>" or "1.5M>", 0 for what is no size.
func plusSize(s string) int64 {
	s, _, _ = strings.Cut(s, ">")
	unit := 1.0
	switch {
	case strings.HasSuffix(s, "k") || strings.HasSuffix(s, "K"):
		unit = 1 << 10
	case strings.HasSuffix(s, "m") || strings.HasSuffix(s, "M"):
		unit = 1 << 20
	}
	n, err := strconv.ParseFloat(strings.TrimRight(s, "kKmM"), 64)
	if err != nil || !(n >= 0 && n < 1<<40) {
		return 0
	}
	return int64(n * unit)
}
