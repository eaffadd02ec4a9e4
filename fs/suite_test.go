package fs_test

import (
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"testing"

	"harvest/fs"
	"harvest/fs/fstest"
)

// sample is a tree with one of every kind of node of this package.
func sample() fs.Dir {
	id := func(parts ...string) uint64 { return fs.ID(append([]string{"sample"}, parts...)...) }
	refused := fs.NewErr(id("err"))
	log := fs.NewLog(1 << 10)
	for i := range 50 {
		log.Add(fmt.Sprintf("record %d", i))
	}
	text := "root url=http://a/\n"
	nodes := map[string]fs.Node{
		"config": fs.Config(id("config"), refused, func() string { return text }, func(_ context.Context, s string) error { text = s; return nil }),
		"ctl":    fs.Ctl(id("ctl"), refused, fs.On("run", func(context.Context, []string) error { return nil })),
		"err":    refused,
		"status": fs.Text(id("status"), func() string { return "state=idle\nobjects=3\n" }),
		"empty":  fs.Text(id("empty"), func() string { return "" }),
		"object": fs.Bytes(fs.Stat{Path: id("object"), Mode: 0o444, Size: 11}, func(context.Context) ([]byte, error) { return []byte("hello world"), nil }),
		"stream": fs.Stream(id("stream"), 0, func(_ context.Context, w io.Writer) error {
			for i := range 25_000 { // more than is kept in memory
				if _, err := fmt.Fprintf(w, "line %d of it\n", i); err != nil {
					return err
				}
			}
			return nil
		}),
		"secret": fs.Hidden(fs.Text(id("secret"), func() string { return "psst\n" })),
		"clone": fs.Clone(id("clone"), func(context.Context) (fs.File, error) {
			return fs.Ctl(id("session"), nil).Reads(func() string { return "7\n" }), nil
		}),
		"objects": fs.Hex(id("objects"), 1, func(prefix string) fs.Dir { return folder(id, prefix) }),
		"fixed":   fs.Static(id("fixed"), map[string]fs.Node{}),
	}
	log.Nodes(nodes, "events", id)
	return fs.Static(fs.RootPath, nodes)
}

// folder is a directory of functions over four names.
func folder(id func(...string) uint64, prefix string) fs.Dir {
	file := func(name string) fs.Node {
		return fs.Bytes(fs.Stat{Path: id("object", name), Mode: 0o444, Size: int64(len(name))}, func(context.Context) ([]byte, error) { return []byte(name), nil })
	}
	var all []fs.Entry
	for i := range 4 {
		name := fmt.Sprintf("%s%x.soif", prefix, 3-i)
		all = append(all, fs.Entry{Name: name, Node: file(name)})
	}
	return fs.Func{
		Path: id("folder", prefix),
		Look: func(_ context.Context, name string) (fs.Node, error) {
			for _, e := range all {
				if e.Name == name {
					return e.Node, nil
				}
			}
			return nil, fs.Class(fmt.Errorf("%s: is not there", name), iofs.ErrNotExist)
		},
		Each: func(_ context.Context, after string) iter.Seq2[fs.Entry, error] { return fs.Sorted(all, after) },
	}
}

// TestSuite passes it through every door.
func TestSuite(t *testing.T) {
	build := func(testing.TB, string) (fs.Dir, func()) { return sample(), nil }
	fstest.Tree(t, build, fstest.Options{
		Hidden: []string{"secret", "events.live", "events.wait"},
		Create: []string{""},
	})
}
