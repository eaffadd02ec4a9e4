package essence

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/essence/jail"
	"harvest/gather/essence/star"
	"harvest/gather/soif"
)

// starCmd is how Starlark runs: package star, by this program, in a jail.
func (b *brought) starCmd() jail.Cmd { return jail.Cmd{Path: star.Name, Inside: true} }

// starCall is the function of a file that is called.
func starCall(explode bool) string {
	if explode {
		return "explode"
	}
	return "summarize"
}

// starBegin has a process read its file.
func (b *brought) starBegin(k *kept) error {
	err := sendLine(k, star.Program{File: b.File, Source: b.Text, Call: starCall(b.Explode), Time: b.Bounds.Wall * 4 / 5})
	if err != nil {
		return err
	}
	r, err := b.reply(k)
	if err == nil && r.Err != nil {
		err = r.Err
	}
	return err
}

func sendLine(k *kept, v any) error {
	line, err := json.Marshal(v)
	if err == nil {
		_, err = k.p.Stdin.Write(append(line, '\n'))
	}
	return err
}

// reply reads a line of JSON, as long as what is written may be.
func (b *brought) reply(k *kept) (r star.Reply, err error) {
	var line []byte
	for {
		part, err := k.out.ReadSlice('\n')
		if line = append(line, part...); int64(len(line)) > b.Bounds.Output {
			return r, jail.Met("killed: it wrote more than %d bytes", b.Bounds.Output)
		}
		if err == nil {
			return r, json.Unmarshal(line, &r)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return r, err
		}
	}
}

// star calls a file's function with a content: the beginning of it, as text
// where it is that.
func (b *brought) star(w *worker, c *content) ([]soif.Object, error) {
	text := c.head
	if looksText(text) {
		text = decode(text, c.declared)
	}
	size := int64(len(c.head))
	if c.full != nil {
		size = c.size
	} else if more(c.rest) {
		size = -1
	}
	k, err := b.pool.get(w.ctx)
	if err != nil {
		return nil, err
	}
	var r star.Reply
	err = b.pool.within(w.ctx, k, func() error {
		err := sendLine(k, star.Doc{URL: w.url, Name: c.name, Type: c.typ, Size: size, Length: len(text)})
		if err == nil {
			_, err = io.Copy(k.p.Stdin, bytes.NewReader(text))
		}
		if err == nil {
			r, err = b.reply(k)
		}
		return err
	})
	if err != nil {
		return nil, b.pool.drop(k, err)
	}
	b.pool.put(k)
	return starObjects(&r)
}

func starObjects(r *star.Reply) ([]soif.Object, error) {
	switch {
	case r.Err != nil:
		return nil, r.Err
	case r.None:
		return nil, errNone
	}
	all := make([]soif.Object, 0, len(r.Objects))
	for _, from := range r.Objects {
		o := soif.Object{Type: "FILE"}
		for _, a := range from.Attrs {
			if a[0] == "URL" {
				o.URL = a[1]
			} else if name := soif.Name(a[0]); name != "" && a[1] != "" {
				o.Add(name, []byte(a[1]))
			}
		}
		all = append(all, o)
	}
	return all, nil
}

// checkStar has a jailed process read a file, and no more: what reads it may be
// driven out of its bounds by what is in it.
func checkStar(ctx context.Context, file string, explode bool, text string) error {
	if len(text) > star.MaxSource {
		return &ndb.Error{Line: 1, Col: 1, Msg: "longer than 65536 bytes"}
	}
	b := &brought{Brought: Brought{File: file, Explode: explode, Text: text}, form: "star"}
	b.defaults()
	b.Bounds.Wall, b.Bounds.Keep = 5*time.Second, 1
	p := newPool(b.starCmd(), b.Bounds, b.starBegin)
	k, err := p.get(ctx)
	var at *star.Error
	switch {
	case errors.As(err, &at) && at.Line > 0:
		return &ndb.Error{Line: at.Line, Col: at.Col, Msg: at.Msg}
	case err != nil:
		return err
	}
	p.put(k)
	return nil
}
