package essence

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"harvest/gather/essence/jail"
	"harvest/gather/soif"
)

// # Programs
//
// A program of a user's runs in a jail, once an object:
//
//	TYPE.sum FILE        a summarizer
//	TYPE.sum URL FILE    an exploder
//
// FILE is the object, which stands at standard input as well; url, type, name
// and md5 are in the environment. It writes attributes, as SOIF or as lines
// 'Attribute: value', an exploder SOIF objects; exit status 0 is done, 2 "not
// mine", any other a failure.
//
// One that is kept gets no FILE. It reads 'URL LENGTH' in a line and the object
// after it, and answers with a line that is the length of what it writes then,
// or 'none' for "not mine", or '! why' for a failure; then comes the next.

// notMine is the exit status of a program for an object that it leaves to others.
const notMine = 2

// programCmd is how a program runs, but for what is of one object.
func (b *brought) programCmd(typ string) jail.Cmd {
	return jail.Cmd{Path: b.Path, Env: []string{"type=" + typ}}
}

// program runs a program over a content.
func (b *brought) program(w *worker, c *content) ([]soif.Object, error) {
	all, size, err := w.whole(c)
	if err != nil {
		return nil, err
	}
	if b.Bounds.Keep > 0 {
		return b.keptProgram(w, c, all, size)
	}
	f, sum, err := asFile(w, all, size)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	name := fileName(c.name)
	cmd := b.programCmd(c.typ)
	cmd.Env = append(cmd.Env, "url="+w.url, "name="+name, "md5="+sum)
	cmd.Args = []string{"{}"}
	if b.Explode {
		cmd.Args = []string{w.url, "{}"}
	}
	cmd.Stdin, cmd.Name = f, name
	cmd.Wall, cmd.Memory, cmd.Output, cmd.Procs = b.Bounds.Wall, b.Bounds.Memory, b.Bounds.Output, b.Bounds.Procs
	var out bytes.Buffer
	if err := cmd.Run(w.ctx, &out); err != nil {
		var x *jail.Exit
		if errors.As(err, &x) && x.Code == notMine {
			return nil, errNone
		}
		return nil, unnamed(err)
	}
	return b.parse(out.Bytes())
}

// unnamed is an error without the path of the program, which its file names.
func unnamed(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// parse reads what a program wrote.
func (b *brought) parse(out []byte) ([]soif.Object, error) {
	if b.Explode {
		return parseStream(out)
	}
	o, err := parseSummary(out)
	return []soif.Object{o}, err
}

// asFile gives a content as a file of its own offset, and its MD5.
func asFile(w *worker, all io.ReaderAt, size int64) (*os.File, string, error) {
	h := md5.New()
	in := io.NewSectionReader(all, 0, size)
	f, err := os.CreateTemp("", "harvest-")
	if err != nil {
		return nil, "", err
	}
	err = os.Remove(f.Name())
	if err == nil {
		_, err = io.Copy(io.MultiWriter(f, h), in)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, "", err
	}
	return f, hex.EncodeToString(h.Sum(nil)), nil
}

// fileName is a name that a file may have, of that of an object.
func fileName(name string) string {
	name = path.Base(clean(name))
	if name == "." || name == "/" || name == ".." || name == "" {
		return "object"
	}
	if strings.HasPrefix(name, ".") {
		name = "_" + name[1:]
	}
	if len(name) > 200 {
		name = strings.ToValidUTF8(name[len(name)-200:], "")
	}
	return name
}

// keptProgram asks a process that is kept.
func (b *brought) keptProgram(w *worker, c *content, all io.ReaderAt, size int64) ([]soif.Object, error) {
	k, err := b.pool.get(w.ctx)
	if err != nil {
		return nil, err
	}
	var out []byte
	err = b.pool.within(w.ctx, k, func() error {
		out, err = b.exchange(k, w.url, all, size)
		return err
	})
	switch err.(type) {
	case nil:
	case complaint:
		b.pool.put(k)
		return nil, err
	default:
		if err == errNone {
			b.pool.put(k)
			return nil, err
		}
		return nil, b.pool.drop(k, err)
	}
	b.pool.put(k)
	return b.parse(out)
}

// A complaint is a failure that a kept program told of, and lives.
type complaint string

func (t complaint) Error() string { return string(t) }

// exchange sends an object to a kept program while reading its answer, which may
// begin before it has all.
func (b *brought) exchange(k *kept, url string, all io.ReaderAt, size int64) ([]byte, error) {
	sent := make(chan error, 1)
	go func() { // ends when all is sent, or the process has ended
		_, err := fmt.Fprintf(k.p.Stdin, "%s %d\n", url, size)
		if err == nil {
			_, err = io.Copy(k.p.Stdin, io.NewSectionReader(all, 0, size))
		}
		sent <- err
	}()
	out, err := b.answer(k)
	if err != nil && err != errNone && !errors.As(err, new(complaint)) {
		stop := k.killed(err) // or the other might wait for ever
		<-sent
		stop()
		return nil, err
	}
	if serr := <-sent; serr != nil {
		return nil, serr
	}
	return out, err
}

// answer reads one answer of a kept program.
func (b *brought) answer(k *kept) ([]byte, error) {
	line, err := k.out.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) || len(line) > 1000 {
		return nil, errors.New("its answer does not begin with a length")
	}
	if err != nil {
		return nil, err
	}
	word := strings.TrimSpace(string(line))
	if word == "none" {
		return nil, errNone
	}
	if why, ok := strings.CutPrefix(word, "!"); ok {
		return nil, complaint(strings.TrimSpace(clean(why)))
	}
	n, err := strconv.ParseInt(word, 10, 64)
	switch {
	case err != nil || n < 0:
		return nil, fmt.Errorf("its answer begins with '%.40s', not with a length", clean(word))
	case n > b.Bounds.Output:
		return nil, jail.Met("killed: it wrote more than %d bytes", b.Bounds.Output)
	}
	out := make([]byte, n)
	_, err = io.ReadFull(k.out, out)
	return out, err
}
