package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"harvest/gather/catalog"
	"harvest/gather/soif"
)

const soifUsage = `usage: harvest soif check [--limit BYTES] [FILE…]
       harvest soif fmt [--drop-invalid] [--drop-binary] [--keywords-limit BYTES] [--limit BYTES] [FILE…]
       harvest soif split [-d DIR] [--limit BYTES] [FILE…]
       harvest soif wrap [--url URL [--type TYPE]] [--attr NAME=VALUE]… [NAME]
       harvest soif convert [--from FORMAT] [--to FORMAT] [--url URL] [FILE…]
       harvest soif clean [FILE…]
       harvest soif schema [TYPE…]
`

// soifTool is one run of harvest soif.
type soifTool struct {
	in     io.Reader
	out    *bufio.Writer
	err    io.Writer
	limit  int64
	failed bool // something was found wrong and told
}

// soifCommand runs harvest soif and returns the exit code. docs/soif.1.md is its
// manual.
func soifCommand(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	t := &soifTool{in: stdin, out: bufio.NewWriter(stdout), err: stderr}
	err := t.run(args)
	if ferr := t.out.Flush(); err == nil {
		err = ferr
	}
	var u usageError
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case errors.As(err, &u):
		fmt.Fprintf(stderr, "harvest soif: %v\n%s", err, soifUsage)
		return 2
	case err != nil:
		fmt.Fprintf(stderr, "harvest: %v\n", err)
		return 1
	case t.failed:
		return 1
	}
	return 0
}

func (t *soifTool) run(args []string) error {
	if len(args) == 0 {
		return usagef("check, fmt, split, wrap, convert, clean or schema?")
	}
	fl := pflag.NewFlagSet("soif "+args[0], pflag.ContinueOnError)
	fl.SortFlags = false
	fl.SetOutput(io.Discard)
	fl.Usage = func() { fmt.Fprintf(t.out, "%s\n%s", soifUsage, fl.FlagUsages()) }
	var do func(args []string) error
	switch args[0] {
	case "check":
		do = t.check
	case "fmt":
		do = t.format(fl)
	case "split":
		do = t.split(fl)
	case "wrap":
		do = t.wrap(fl)
	case "schema":
		do = t.schema
	case "convert":
		do = t.convert(fl)
	case "clean":
		do = t.clean
	case "-h", "--help", "help":
		fmt.Fprint(t.out, soifUsage)
		return nil
	default:
		return usagef("%s: unknown command", args[0])
	}
	if args[0] == "check" || args[0] == "fmt" || args[0] == "split" {
		fl.Int64Var(&t.limit, "limit", 64<<20, "bytes that one object may have")
	}
	if err := fl.Parse(args[1:]); errors.Is(err, pflag.ErrHelp) {
		return err
	} else if err != nil {
		return usageError{err.Error()}
	}
	if t.limit < 0 {
		return usagef("--limit %d: less than 0", t.limit)
	}
	return do(fl.Args())
}

// A soifStream reads objects, or changes when the input is an update stream.
type soifStream struct {
	name    string
	framed  bool
	next    func(*soif.Change) error
	check   func(*soif.Change) error
	resync  func() error
	cursor  func() string
	closing io.Closer
}

func (t *soifTool) open(name string) (*soifStream, error) {
	s := &soifStream{name: "stdin", closing: io.NopCloser(nil)}
	r := bufio.NewReaderSize(t.in, 64<<10)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		s.name, s.closing = name, f
		r.Reset(f)
	}
	// A pipe gives its first bytes as they come, so ask for a few at a time.
	head, err := r.Peek(1)
	for n := 2; err == nil && n <= 4096 && !bytes.ContainsRune(head, '{'); n *= 2 {
		head, err = r.Peek(max(n, r.Buffered()))
	}
	lim := soif.Limits{Object: t.limit, Value: t.limit}
	if soif.IsUpdate(head) {
		u := soif.NewUpdateReader(r, lim)
		s.framed, s.next, s.check, s.resync, s.cursor = true, u.Next, u.Check, u.Resync, u.Cursor
		return s, nil
	}
	d := soif.NewDecoder(r, lim)
	s.next = func(c *soif.Change) error { return d.Next(&c.Object) }
	s.check = func(c *soif.Change) error { return d.Check(&c.Object) }
	s.resync = d.Resync
	return s, nil
}

// tell writes a line file:line:byte: trouble for each error in err.
func (s *soifStream) tell(w io.Writer, prefix string, err error) {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			s.tell(w, prefix, e)
		}
		return
	}
	var e *soif.Error
	if errors.As(err, &e) {
		fmt.Fprintf(w, "%s%s:%d:%d: %s\n", prefix, s.name, e.Line, e.Offset, e.Trouble())
		return
	}
	fmt.Fprintf(w, "%s%s: %v\n", prefix, s.name, err)
}

// each calls do for every object of every file, and bad for every stretch of
// input that is none; it goes on behind it if bad returns nil. Errors of do and
// bad end it, errors of opening and reading a file end the file.
func (t *soifTool) each(files []string, do func(*soifStream, *soif.Change) error, bad func(*soifStream, error) error) error {
	if len(files) == 0 {
		files = []string{"-"}
	}
	for _, file := range files {
		s, err := t.open(file)
		if err != nil {
			fmt.Fprintf(t.err, "harvest: %v\n", err)
			t.failed = true
			continue
		}
		err = t.eachOf(s, do, bad)
		s.closing.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *soifTool) eachOf(s *soifStream, do func(*soifStream, *soif.Change) error, bad func(*soifStream, error) error) error {
	var c soif.Change
	for {
		err := s.next(&c)
		if err == nil {
			if err := do(s, &c); err != nil {
				return err
			}
			continue
		}
		if err == io.EOF {
			return nil
		}
		if place := new(soif.Error); !errors.As(err, &place) {
			return t.complain(s, err) // of reading; there is no going on
		}
		if err := bad(s, err); err != nil {
			return err
		}
		if err := s.resync(); err == io.EOF {
			return nil
		} else if err != nil {
			return t.complain(s, err)
		}
	}
}

// complain tells of input that is no object and goes on.
func (t *soifTool) complain(s *soifStream, err error) error {
	t.failed = true
	s.tell(t.err, "harvest: ", err)
	return nil
}

func (t *soifTool) check(files []string) error {
	list := func(s *soifStream, err error) error {
		t.failed = true
		s.tell(t.out, "", err)
		return nil
	}
	return t.each(files, func(s *soifStream, c *soif.Change) error {
		if err := s.check(c); err != nil {
			return list(s, err)
		}
		return nil
	}, list)
}

// format is fmt.
func (t *soifTool) format(fl *pflag.FlagSet) func([]string) error {
	dropInvalid := fl.Bool("drop-invalid", false, "leave out what does not parse and objects that break their schema, and say so")
	dropBinary := fl.Bool("drop-binary", false, "leave out attributes whose values are not text")
	keywords := fl.Int64("keywords-limit", 0, "cut Keywords longer than this many bytes after the last word that fits (0: do not)")
	return func(files []string) error {
		if *keywords < 0 {
			return usagef("--keywords-limit %d: less than 0", *keywords)
		}
		plain, updates := soif.NewEncoder(t.out), soif.NewUpdateWriter(t.out)
		var last *soifStream
		var buf []byte
		err := t.each(files, func(s *soifStream, c *soif.Change) error {
			if last != nil && last != s && (s.framed || last.framed) {
				return fmt.Errorf("%s: an update stream is formatted alone", s.name)
			}
			last = s
			if *dropInvalid {
				if err := s.check(c); err != nil {
					s.tell(t.err, "harvest: dropped: ", err)
					return nil
				}
			}
			c.Object.Clean(*dropBinary, int(*keywords))
			if !s.framed {
				return plain.Encode(&c.Object)
			}
			buf = c.Object.Append(buf[:0])
			return updates.Write(c.Op, buf)
		}, func(s *soifStream, err error) error {
			last = s
			if errors.Is(err, soif.ErrNoCursor) {
				return nil // then what is written has none either
			}
			if !*dropInvalid {
				t.complain(s, err)
				return errStop
			}
			s.tell(t.err, "harvest: dropped: ", err)
			return nil
		})
		stopped := err == errStop
		if stopped {
			err = nil
		}
		if last == nil || !last.framed || err != nil {
			return err
		}
		if stopped || last.cursor() == "" {
			return updates.Flush()
		}
		return updates.Close(last.cursor())
	}
}

// errStop ends a run whose trouble has been told.
var errStop = errors.New("stop")

func (t *soifTool) split(fl *pflag.FlagSet) func([]string) error {
	dir := fl.StringP("dir", "d", ".", "where the files are made; made itself if it is not there")
	return func(files []string) error {
		if err := os.MkdirAll(*dir, 0o777); err != nil {
			return err
		}
		n := 0
		return t.each(files, func(s *soifStream, c *soif.Change) error {
			n++
			name := fmt.Sprintf("%06d.soif", n)
			if c.Op == soif.Delete || c.Op == soif.Refresh {
				name = fmt.Sprintf("%06d.%s.soif", n, strings.ToLower(c.Op.String()))
			}
			name = filepath.Join(*dir, name)
			if err := writeNew(name, c.Object.Append(nil)); err != nil {
				return err
			}
			_, err := fmt.Fprintf(t.out, "%s\t%s\n", name, c.Object.URL)
			return err
		}, t.complain)
	}
}

// writeNew makes a file that was not there.
func writeNew(name string, b []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func (t *soifTool) wrap(fl *pflag.FlagSet) func([]string) error {
	url := fl.String("url", "", "make a whole object of this URL, with an Update-Time, not only an attribute")
	typ := fl.String("type", "FILE", "template type of the object")
	attrs := fl.StringArray("attr", nil, "NAME=VALUE: an attribute to put before it")
	return func(args []string) error {
		if len(args) > 1 {
			return usagef("wrap: one name of an attribute, please")
		}
		o := soif.Object{Type: *typ, URL: *url}
		for _, a := range *attrs {
			name, value, ok := strings.Cut(a, "=")
			if !ok || soif.Name(name) != name {
				return usagef("--attr %q: not NAME=VALUE", a)
			}
			o.Add(name, []byte(value))
		}
		if _, ok := o.Get("Update-Time"); !ok && *url != "" {
			o.Add("Update-Time", strconv.AppendInt(nil, time.Now().Unix(), 10))
		}
		name := strings.Join(append(args, "Full-Text")[:1], "")
		if soif.Name(name) != name {
			return usagef("wrap: %q cannot be the name of an attribute", name)
		}
		const most = 64 << 20 // what decoders take unless told otherwise
		text, err := io.ReadAll(io.LimitReader(t.in, most+1))
		if err != nil {
			return fmt.Errorf("stdin: %w", err)
		}
		if len(text) > most {
			return fmt.Errorf("stdin: over %d bytes", most)
		}
		o.Add(name, text)
		if *url != "" {
			return soif.NewEncoder(t.out).Encode(&o)
		}
		for i := range o.Attrs {
			if _, err := t.out.Write(o.Attrs[i].Append(nil)); err != nil {
				return err
			}
		}
		return nil
	}
}

// convert reads catalogues of one format and writes one of another.
func (t *soifTool) convert(fl *pflag.FlagSet) func([]string) error {
	formats := strings.Join(catalog.Formats(), ", ")
	from := fl.String("from", "soif", "what is read: "+formats)
	to := fl.String("to", "soif", "what is written, likewise")
	base := fl.String("url", "", "URL of the catalogue: a record without its own is URL#KEY")
	return func(files []string) error {
		for _, f := range []string{*from, *to} {
			if !slices.Contains(catalog.Formats(), f) {
				return usagef("%s: there are the formats %s", f, formats)
			}
		}
		w, err := catalog.NewWriter(*to, t.out)
		if err != nil {
			return err
		}
		if len(files) == 0 {
			files = []string{"-"}
		}
		for _, name := range files {
			if err := t.records(name, *from, *base, func(o *soif.Object) error {
				if _, ok := o.Get("Update-Time"); !ok && *to == "soif" {
					o.Add("Update-Time", strconv.AppendInt(nil, time.Now().Unix(), 10))
				}
				return w.Write(o)
			}); err != nil {
				return err
			}
		}
		return w.Close()
	}
}

// records reads the records of a file. What is none of the format is told, and ends
// the file.
func (t *soifTool) records(name, format, base string, do func(*soif.Object) error) error {
	r, shown := t.in, "stdin"
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		r, shown = f, name
	}
	in, err := catalog.NewReader(format, r, catalog.Options{Base: base})
	if err != nil {
		return err
	}
	for {
		o, err := in.Next()
		if at, ok := errors.AsType[*catalog.Error](err); ok {
			t.failed = true
			fmt.Fprintf(t.err, "harvest: %s:%d:%d: %s\n", shown, at.Line, at.Col, at.Text)
			return nil
		}
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = do(&o)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", shown, err)
		}
	}
}

// clean is fmt with all that it can leave out.
func (t *soifTool) clean(files []string) error {
	e := soif.NewEncoder(t.out)
	drop := func(s *soifStream, err error) error {
		s.tell(t.err, "harvest: dropped: ", err)
		return nil
	}
	return t.each(files, func(s *soifStream, c *soif.Change) error {
		if err := s.check(c); err != nil {
			return drop(s, err)
		}
		c.Object.Clean(true, catalog.KeywordsLimit)
		return e.Encode(&c.Object)
	}, func(s *soifStream, err error) error {
		if errors.Is(err, soif.ErrNoCursor) {
			return nil
		}
		return drop(s, err)
	})
}

func (t *soifTool) schema(types []string) error {
	if len(types) == 0 {
		types = soif.Types()
	}
	for _, typ := range types {
		s, ok := soif.SchemaOf(typ)
		if !ok {
			fmt.Fprintf(t.err, "harvest: template type %s: not registered\n", typ)
			t.failed = true
			continue
		}
		fmt.Fprint(t.out, s)
	}
	return nil
}
