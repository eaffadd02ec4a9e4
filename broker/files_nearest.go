package broker

import (
	"context"
	"io"
	"iter"
	"strings"

	"harvest/fs"
	"harvest/gather/store"
)

// The tree of a registry beside a Broker's:
//
//	register
//	nearest/
//		gatherer broker cache replica
//	gatherers/ brokers/ caches/ replicas/
//		NAME@HOST.soif
func (b *Broker) registryFiles(nodes map[string]fs.Node) {
	nearest := make(map[string]fs.Node)
	for _, k := range serviceKinds {
		nearest[k.name] = pageFile(b.id("nearest", k.name), unchanging, func() produce {
			return func(ctx context.Context, w io.Writer) error { return b.writeNearest(ctx, w, k.typ) }
		})
		nodes[k.folder] = kindDir{b, k.folder, k.typ}
	}
	nodes["nearest"] = fs.Static(b.id("nearest"), nearest)
	nodes["register"] = registerFile{b}
}

// kindDir is the services of a kind, as their objects.
type kindDir struct {
	b           *Broker
	folder, typ string
}

func (d kindDir) Stat() fs.Stat {
	h := d.b.hold()
	defer h.release()
	return fs.Stat{Path: d.b.id(d.folder, h.Mark()), Mode: 0o555}
}

// names are the objects of the kind by what they are called here: the last part
// of the path and the host; of several that would be the same, with the OID.
func (d kindDir) names(ctx context.Context) (map[string]string, error) {
	list, err := d.b.services(ctx, d.typ)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]int)
	name := make([]string, len(list))
	for i := range list {
		path := list[i].Text("Service-Path")
		if path == "" {
			path = list[i].URL
		}
		name[i] = path[strings.LastIndexByte(strings.TrimRight(path, "/"), '/')+1:]
		if host := list[i].Text("Host"); host != "" {
			name[i] += "@" + host
		}
		name[i] = escape(strings.ToValidUTF8(oneLine(name[i], 100), "_"))
		seen[name[i]]++
	}
	out := make(map[string]string, len(list))
	for i := range list {
		oid := list[i].Text("Object-ID")
		if _, err := store.ParseOID(oid); err != nil { // it came from elsewhere
			oid = store.ID(list[i].URL, registerSource).String()
		}
		if seen[name[i]] > 1 || name[i] == "" || strings.HasPrefix(name[i], ".") {
			name[i] = oid[:8] + "-" + name[i]
		}
		out[name[i]+objectSuffix] = oid
	}
	return out, nil
}

func (d kindDir) Lookup(ctx context.Context, name string) (fs.Node, error) {
	names, err := d.names(ctx)
	if err != nil {
		return nil, err
	}
	oid, ok := names[name]
	if !ok {
		return nil, notExist(name)
	}
	return d.object(ctx, oid)
}

func (d kindDir) object(ctx context.Context, oid string) (fs.Node, error) {
	id, err := store.ParseOID(oid)
	if err != nil {
		return nil, err
	}
	return results{b: d.b, file: func(_ string, f fs.File) fs.Node { return f }}.object(ctx, hit{oid: id})
}

func (d kindDir) List(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
	names, err := d.names(ctx)
	if err != nil {
		return func(yield func(fs.Entry, error) bool) { yield(fs.Entry{}, err) }
	}
	var list []fs.Entry
	for name, oid := range names {
		if n, err := d.object(ctx, oid); err == nil { // else it has lapsed meanwhile
			list = append(list, fs.Entry{Name: name, Node: n})
		}
	}
	return fs.Sorted(list, after)
}
