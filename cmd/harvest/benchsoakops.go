package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"harvest/fs"
	"harvest/gather/store"
)

// operation does one operation at random, through a door at random.
func (k *soak) operation(ctx context.Context, r *rand.Rand) (kind string, err error) {
	d := k.doors[r.IntN(len(k.doors))]
	word := fmt.Sprintf("w%d", r.IntN(soakWords))
	switch n := r.IntN(100); {
	case n < 15:
		return "walk", k.walk(ctx, d, r)
	case n < 40:
		return "read", k.readOne(ctx, d, r)
	case n < 60:
		file := []string{"hits", "summary", "soif", "status", "why", "plan", "refine", "since/0"}[r.IntN(8)]
		return "query", k.drain(ctx, d, soakBroker+"/q/"+word+"/"+file)
	case n < 64:
		return "by", k.drain(ctx, d, fmt.Sprintf("%s/by/type/t%d/hits", soakBroker, r.IntN(5)))
	case n < 72:
		return "session", k.session(ctx, d, r, word)
	case n < 76:
		return "clone", k.clone(ctx, word)
	case n < 86:
		return "view", k.view(ctx, d, r, word)
	case n < 90:
		return "remove", k.removeOne(ctx, r)
	case n < 94:
		return "abandon", k.abandon(ctx, word)
	case n < 97:
		if err := k.change(ctx, r, 10); err != nil {
			return "change", err
		}
		return "collect", k.doors[0].write(ctx, soakBroker+"/ctl", "collect\n")
	case n < 99:
		return "status", k.drain(ctx, d, soakBroker+"/"+[]string{"status", "stats", "attributes", "events", "consistency", "digest"}[r.IntN(6)])
	}
	if r.IntN(20) == 0 {
		return "reindex", k.doors[0].write(ctx, soakBroker+"/ctl", "reindex\n")
	}
	return "gc", k.doors[0].write(ctx, soakBroker+"/ctl", "gc\n")
}

// drain reads a file to its end.
func (k *soak) drain(ctx context.Context, d door, path string) error {
	f, err := d.open(ctx, path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(io.Discard, f)
	return err
}

func (k *soak) oid(r *rand.Rand) string {
	return store.ID(fmt.Sprintf("http://soak/%d", r.IntN(k.objects)), benchName+"@here").String()
}

func objectPath(oid string) string { return soakBroker + "/objects/" + oid[:2] + "/" + oid + ".soif" }

func (k *soak) readOne(ctx context.Context, d door, r *rand.Rand) error {
	return k.drain(ctx, d, objectPath(k.oid(r)))
}

// walk lists a folder and looks at what is in it.
func (k *soak) walk(ctx context.Context, d door, r *rand.Rand) error {
	path := soakBroker + "/objects/" + k.oid(r)[:2]
	if m, ok := d.(mountDoor); ok {
		list, err := os.ReadDir(filepath.Join(string(m), path))
		for _, e := range list {
			if _, serr := e.Info(); err == nil {
				err = serr
			}
		}
		return err
	}
	dir, err := walkDir(ctx, k.s.client.Root(), path)
	if err != nil {
		return err
	}
	for e, err := range dir.List(ctx, "") {
		if err != nil {
			return err
		}
		e.Node.Stat()
	}
	return nil
}

// session makes, asks, reads and removes one.
func (k *soak) session(ctx context.Context, d door, r *rand.Rand, word string) error {
	path := fmt.Sprintf("%s/query/s%d", soakBroker, r.IntN(1000))
	if err := d.mkdir(ctx, path); err != nil {
		return err
	}
	err := d.write(ctx, path+"/ctl", "set limit=10\n")
	err = errors.Join(err, d.write(ctx, path+"/ctl", "query "+word+"\n"))
	err = errors.Join(err, k.drain(ctx, d, path+"/hits"), k.drain(ctx, d, path+"/status"))
	return errors.Join(err, k.remove(ctx, d, path))
}

func (k *soak) remove(ctx context.Context, d door, path string) error {
	if m, ok := d.(mountDoor); ok {
		return os.Remove(filepath.Join(string(m), path))
	}
	dir, name, err := parent(ctx, k.s.client.Root(), path)
	if err != nil {
		return err
	}
	return dir.(fs.Remover).Remove(ctx, name)
}

// clone has a session that ends with the file it is.
func (k *soak) clone(ctx context.Context, word string) error {
	f, err := walkFile(ctx, k.s.client.Root(), soakBroker+"/query/clone")
	if err != nil {
		return err
	}
	h, err := fs.OpenNode(ctx, f, fs.Read|fs.Write)
	if err != nil {
		return err
	}
	defer h.Close()
	buf := make([]byte, 32)
	n, err := h.ReadAt(ctx, buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if _, err := h.WriteAt(ctx, []byte("query "+word+"\n"), 0); err != nil {
		return err
	}
	return k.drain(ctx, k.doors[0], soakBroker+"/query/"+string(bytes.TrimSpace(buf[:n]))+"/hits")
}

// view makes one with a view inside, edits and removes them.
func (k *soak) view(ctx context.Context, d door, r *rand.Rand, word string) error {
	path := fmt.Sprintf("%s/views/v%d", soakBroker, r.IntN(1000))
	if err := d.mkdir(ctx, path); err != nil {
		return err
	}
	err := d.write(ctx, path+"/query", word+"\n")
	if err == nil {
		err = d.mkdir(ctx, path+"/in")
	}
	if err == nil {
		err = errors.Join(d.write(ctx, path+"/in/query", "type : t1\n"), k.drain(ctx, d, path+"/hits"), k.edit(ctx, d, r, path), k.drain(ctx, d, path+"/since/0"))
		err = errors.Join(err, k.remove(ctx, d, path+"/in"))
	}
	return errors.Join(err, k.remove(ctx, d, path))
}

// edit puts an object into a view and takes it out, by ln and rm where there is a
// mount.
func (k *soak) edit(ctx context.Context, d door, r *rand.Rand, path string) error {
	oid := k.oid(r)
	m, ok := d.(mountDoor)
	if !ok {
		return d.write(ctx, path+"/ctl", []string{"add ", "remove "}[r.IntN(2)]+oid+"\n")
	}
	to := filepath.Join(string(m), path, "results", oid+".soif")
	if err := os.Link(filepath.Join(string(m), objectPath(oid)), to); err != nil {
		return err
	}
	list, err := os.ReadDir(filepath.Dir(to))
	for _, e := range list {
		if strings.HasPrefix(e.Name(), oid) {
			return errors.Join(err, os.Remove(filepath.Join(filepath.Dir(to), e.Name())))
		}
	}
	return err
}

// removeOne removes an object; it comes back when the source changes it.
func (k *soak) removeOne(ctx context.Context, r *rand.Rand) error {
	return k.remove(ctx, k.doors[0], objectPath(k.oid(r)))
}

// abandon opens a connection, begins to read and goes.
func (k *soak) abandon(ctx context.Context, word string) error {
	t := target{addr: "unix!" + k.s.socket}
	c, err := t.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, path := range []string{"soif", "q/" + word + "/summary", "since/0", "events.live"} {
		f, err := walkFile(ctx, c.Root(), soakBroker+"/"+path)
		if err != nil {
			return err
		}
		h, err := fs.OpenNode(ctx, f, fs.Read)
		if err != nil {
			return err
		}
		if path == "events.live" {
			break // and never read
		}
		if _, err := h.ReadAt(ctx, make([]byte, 100), 0); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return nil
}
