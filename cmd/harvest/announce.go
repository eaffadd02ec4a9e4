package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"harvest/fs"
	"harvest/fs/ndb"
	"harvest/gather/soif"

	iofs "io/fs"
)

// Every service of the process announces itself to the registry, for a while,
// and again while it lives.
const (
	announceEvery = 2 * time.Minute
	announceTTL   = 5 * time.Minute
	announceLook  = 5 * time.Second // for services that came
)

// announce runs until ctx ends. addrs are where the tree is served.
func (p *process) announce(ctx context.Context, addrs []string) error {
	t := time.NewTicker(announceLook)
	defer t.Stop()
	said := make(map[string]time.Time)
	for {
		if err := p.announceDue(ctx, addrs, said); err != nil && ctx.Err() == nil {
			p.lg.Warn("announce", "err", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
	}
}

// announceDue announces the services that have not been for a while.
func (p *process) announceDue(ctx context.Context, addrs []string, said map[string]time.Time) error {
	var text []byte
	now := time.Now()
	p.tree.services(func(kind, name string, st ndb.Entry) bool {
		if path := kind + "/" + name; now.Sub(said[path]) >= announceEvery {
			said[path] = now
			o := p.describe(kind, name, st, addrs)
			text = o.Append(text)
		}
		return true
	})
	if text == nil {
		return nil
	}
	return p.registry.Register(ctx, strings.NewReader(string(text)))
}

// describe is what a service says of itself.
func (p *process) describe(kind, name string, st ndb.Entry, addrs []string) soif.Object {
	typ := map[string]string{"gather": "GATHERER", "broker": "BROKER", "cache": "CACHE", "replica": "REPLICATOR"}[kind]
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	path := kind + "/" + name
	o := soif.Object{Type: typ, URL: "9p://" + host + p.dir + "/" + path}
	add := func(name, value string) {
		if value != "" {
			o.Add(name, []byte(value))
		}
	}
	add("Type", strings.ToLower(typ))
	add("Title", fmt.Sprintf("%s %s on %s", strings.ToLower(typ), name, host))
	add("Host", host)
	add("Service-Path", path)
	add("Address", strings.Join(addrs, "\n"))
	add("Software-Version", "harvest "+version)
	for _, key := range []string{"state", "objects", "last"} {
		value, _ := st.Get(key)
		add("Service-"+strings.ToUpper(key[:1])+key[1:], value)
	}
	sources, asked := p.sources(path)
	add("Source-URL", strings.Join(sources, "\n"))
	add("Backends", strings.Join(asked, "\n"))
	add("Time-to-Live", fmt.Sprint(int(announceTTL/time.Second)))
	return o
}

// sources are what a service takes from: roots and leaves of a Gatherer, sources
// of a Broker; and whom a Broker asks.
func (p *process) sources(path string) (list, asked []string) {
	text, err := iofs.ReadFile(fs.IO(context.Background(), p.root), path+"/config")
	if err != nil {
		return nil, nil
	}
	entries, err := ndb.Parse(string(text))
	if err != nil {
		return nil, nil
	}
	for _, e := range entries {
		switch e.First().Key {
		case "root", "leaf":
			if url, ok := e.Get("url"); ok {
				list = append(list, url)
			}
		case "source":
			if path, ok := e.Get("path"); ok {
				list = append(list, path)
			}
		case "backend", "route":
			for _, key := range []string{"path", "registry"} {
				if path, ok := e.Get(key); ok {
					asked = append(asked, path)
				}
			}
		}
	}
	return list, asked
}
