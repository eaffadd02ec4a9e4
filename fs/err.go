package fs

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Err is the file beside ctl and config that keeps what was refused last,
// and why: a line with the message, then, indented, the line that caused it.
// What a file takes without complaint clears its own entry.
type Err struct {
	path uint64
	hide func(text string) string

	mu   sync.Mutex
	last []refusal
}

type refusal struct{ file, line, msg string }

// NewErr makes an Err with nothing in it.
func NewErr(path uint64) *Err { return &Err{path: path} }

// Hide has what must not be shown taken out of all that is told.
func (e *Err) Hide(hide func(text string) string) *Err {
	e.hide = hide
	return e
}

// Set says that the file refused the line with err, or, with a nil err, that
// all is well with it.
func (e *Err) Set(file, line string, err error) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, r := range e.last {
		if r.file == file {
			e.last = append(e.last[:i], e.last[i+1:]...)
			break
		}
	}
	if err != nil {
		r := refusal{file, line, err.Error()}
		if e.hide != nil {
			r.line, r.msg = e.hide(line), e.hide(r.msg)
		}
		r.line, r.msg = shown(r.line), shown(r.msg)
		e.last = append(e.last, r)
	}
}

// maxShown bounds what is shown of a line.
const maxShown = 1000

// shown is a text as one may see it on a terminal: what was refused may be no text,
// or be written by a stranger to move the cursor of whoever reads this.
func shown(text string) string {
	if len(text) > maxShown {
		text = text[:maxShown] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

func (e *Err) text() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var b strings.Builder
	for i := len(e.last) - 1; i >= 0; i-- {
		r := e.last[i]
		fmt.Fprintf(&b, "%s: %s\n", r.file, r.msg)
		if r.line != "" {
			fmt.Fprintf(&b, "\t%s\n", r.line)
		}
	}
	return b.String()
}

// Stat gives the length of the text that Open would show.
func (e *Err) Stat() Stat { return Text(e.path, e.text).Stat() }

// Open gives the text as it is now.
func (e *Err) Open(ctx context.Context, m Mode) (Handle, error) {
	return Text(e.path, e.text).Open(ctx, m)
}
