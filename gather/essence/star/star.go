// Package star runs summarizers and exploders written in Starlark, a small
// Python without input or output, in a jail: what bounds them is that they see
// nothing but the document, may take so many steps and so long, and hold so
// much memory, which the language itself does not bound.
//
// A file defines summarize(doc), which returns a dict of attributes or None for
// "not mine", or explode(doc), which returns a list of such dicts, in each of
// which URL names the object. Serve is the jailed half: it reads a Program, then
// a Doc and its text at a time, and answers each with a Reply, a line of JSON.
package star

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"harvest/gather/essence/jail"
)

// Name is that of Serve among what jail.Main is given.
const Name = "star"

// Inside is Serve, for jail.Main.
func Inside() jail.Inside {
	return jail.Inside{Name: Name, Run: func([]string) error { return Serve(os.Stdin, os.Stdout) }}
}

// Bounds of a file and of what one call may do and return.
const (
	MaxSource = 64 << 10
	maxSteps  = 20_000_000
	maxResult = 1 << 20
	maxText   = 64 << 20 // of a document; the caller sends less
)

// A Program is the first line that Serve reads.
type Program struct {
	File, Source string
	Call         string        // summarize or explode
	Time         time.Duration // of a call
}

// A Doc is a document to come; Length bytes of text follow its line.
type Doc struct {
	URL, Name, Type, MD5 string
	Size                 int64
	Length               int
}

// A Reply is the answer to a Program or a Doc.
type Reply struct {
	None    bool     `json:",omitempty"` // not mine
	Objects []Object `json:",omitempty"`
	Err     *Error   `json:",omitempty"`
}

// An Object is what a dict comes to, in its order.
type Object struct {
	Attrs [][2]string
}

// An Error is one of the file's, where it is known in line and column.
type Error struct {
	Line, Col int
	Msg       string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Msg
	}
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Col, e.Msg)
}

// Position is where the error is, for those who show the line.
func (e *Error) Position() (line, col int) { return e.Line, e.Col }

// options are the language: Starlark as Bazel has it, and sets. What makes
// programs that end by themselves is left as it is: no recursion, no while.
var options = &syntax.FileOptions{Set: true}

// Serve answers until the end of r.
func Serve(r io.Reader, w io.Writer) error {
	in := bufio.NewReaderSize(r, 64<<10)
	out := json.NewEncoder(w)
	var p Program
	if err := readLine(in, &p); err != nil {
		return err
	}
	m, bad := compile(&p)
	if err := out.Encode(Reply{Err: bad}); err != nil || bad != nil {
		return err
	}
	for {
		var d Doc
		err := readLine(in, &d)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if d.Length < 0 || d.Length > maxText {
			return fmt.Errorf("a document of %d bytes", d.Length)
		}
		text := make([]byte, d.Length)
		if _, err := io.ReadFull(in, text); err != nil {
			return err
		}
		if err := out.Encode(m.run(&d, string(text))); err != nil {
			return err
		}
	}
}

func readLine(in *bufio.Reader, v any) error {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, v)
}

// A machine is a compiled file.
type machine struct {
	Program
	call  starlark.Callable
	texts *patterns
}

// compile reads a file and runs what stands at its top.
func compile(p *Program) (*machine, *Error) {
	if len(p.Source) > MaxSource {
		return nil, &Error{Msg: fmt.Sprintf("longer than %d bytes", MaxSource)}
	}
	m := &machine{Program: *p, texts: newPatterns()}
	predeclared := m.texts.module()
	_, prog, err := starlark.SourceProgramOptions(options, p.File, p.Source, predeclared.Has)
	if err != nil {
		return nil, located(err)
	}
	thread, stop := m.thread()
	defer stop()
	globals, err := prog.Init(thread, predeclared)
	if err != nil {
		return nil, located(err)
	}
	globals.Freeze()
	f, ok := globals[p.Call].(*starlark.Function)
	if !ok {
		return nil, &Error{Line: 1, Col: 1, Msg: fmt.Sprintf("no function %s is defined", p.Call)}
	}
	if f.NumParams() != 1 || f.HasVarargs() || f.HasKwargs() || f.NumKwonlyParams() > 0 {
		pos := f.Position()
		return nil, &Error{int(pos.Line), int(pos.Col), fmt.Sprintf("%s takes one parameter, the document", p.Call)}
	}
	m.call = f
	return m, nil
}

// thread makes a thread that is ended when its time or its steps are over.
func (m *machine) thread() (*starlark.Thread, func()) {
	t := &starlark.Thread{Name: m.File, Print: func(_ *starlark.Thread, msg string) { fmt.Fprintln(os.Stderr, msg) }}
	t.SetMaxExecutionSteps(maxSteps)
	t.OnMaxSteps = func(t *starlark.Thread) { t.Cancel(fmt.Sprintf("it took more than %d steps", maxSteps)) }
	limit := m.Time
	if limit <= 0 {
		limit = time.Second
	}
	clock := time.AfterFunc(limit, func() { t.Cancel(fmt.Sprintf("it took longer than %v", limit)) })
	return t, func() { clock.Stop() }
}

// run calls the file's function.
func (m *machine) run(d *Doc, text string) Reply {
	thread, stop := m.thread()
	defer stop()
	v, err := starlark.Call(thread, m.call, starlark.Tuple{document(d, text)}, nil)
	if err != nil {
		return Reply{Err: located(err)}
	}
	if v == starlark.None {
		return Reply{None: true}
	}
	objects, err := m.objects(v)
	if err != nil {
		pos := m.call.(*starlark.Function).Position()
		return Reply{Err: &Error{int(pos.Line), int(pos.Col), err.Error()}}
	}
	return Reply{Objects: objects}
}

// located gives an error its place in the file.
func located(err error) *Error {
	var syn syntax.Error
	var names resolve.ErrorList
	var eval *starlark.EvalError
	at := func(p syntax.Position, msg string) *Error { return &Error{int(p.Line), int(p.Col), msg} }
	switch {
	case errors.As(err, &syn):
		return at(syn.Pos, syn.Msg)
	case errors.As(err, &names) && len(names) > 0:
		return at(names[0].Pos, names[0].Msg)
	case errors.As(err, &eval):
		for i := range eval.CallStack {
			if p := eval.CallStack.At(i).Pos; p.Line > 0 { // a builtin has no lines
				return at(p, eval.Msg)
			}
		}
		return &Error{Msg: eval.Msg}
	}
	return &Error{Msg: err.Error()}
}
