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
	now, here := time.Now(), make(map[string]bool)
	p.tree.services(func(kind, name string, st ndb.Entry) bool {
		path := kind + "/" + name
		if here[path] = true; now.Sub(said[path]) >= announceEvery {
			said[path] = now
			o := p.describe(kind, name, st, addrs)
			text = o.Append(text)
		}
		return true
	})
	var gone []string
	for path := range said {
		if !here[path] {
			gone = append(gone, p.serviceURL(path))
			delete(said, path)
		}
	}
	if err := p.registry.Withdraw(ctx, gone); err != nil {
		return err
	}
	if text == nil {
		return nil
	}
	return p.registry.Register(ctx, strings.NewReader(string(text)))
}

// describe is what a service says of itself.
func (p *process) describe(kind, name string, st ndb.Entry, addrs []string) soif.Object {
	typ := map[string]string{"gather": "GATHERER", "broker": "BROKER", "cache": "CACHE", "replica": "REPLICATOR"}[kind]
	host := hostname()
	path := kind + "/" + name
	o := soif.Object{Type: typ, URL: p.serviceURL(path)}
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
	s := p.sources(path)
	add("Source-URL", strings.Join(s.all, "\n"))
	add("Root-URL", strings.Join(s.roots, "\n"))
	add("Backends", strings.Join(s.asked, "\n"))
	add("Time-to-Live", fmt.Sprint(int(announceTTL/time.Second)))
	return o
}

func hostname() string {
	host, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return host
}

// serviceURL is what a service is registered under.
func (p *process) serviceURL(path string) string { return "9p://" + hostname() + p.dir + "/" + path }

// covered asks the registry who gathers a URL already, but for a Gatherer here.
func (p *process) covered(ctx context.Context, own, url string) (string, error) {
	if p.registry == nil { // they are being opened
		return "", nil
	}
	return p.registry.Covers(ctx, url, func(o *soif.Object) bool { return o.URL == p.serviceURL("gather/"+own) })
}

// A sourcing is what a service takes from: roots and leaves of a Gatherer, sources
// of a Broker; and whom a Broker asks.
type sourcing struct{ all, roots, asked []string }

func (p *process) sources(path string) (s sourcing) {
	text, err := iofs.ReadFile(fs.IO(context.Background(), p.root), path+"/config")
	if err != nil {
		return s
	}
	entries, err := ndb.Parse(string(text))
	if err != nil {
		return s
	}
	for _, e := range entries {
		url, _ := e.Get("url")
		from, _ := e.Get("path")
		registry, _ := e.Get("registry")
		switch e.First().Key {
		case "root":
			s.all, s.roots = appendSome(s.all, url), appendSome(s.roots, url)
		case "leaf":
			s.all = appendSome(s.all, url)
		case "source":
			s.all = appendSome(s.all, from)
		case "backend":
			s.asked = appendSome(s.asked, from)
		case "route":
			s.asked = appendSome(s.asked, registry)
		}
	}
	return s
}

func appendSome(list []string, text string) []string {
	if text == "" {
		return list
	}
	return append(list, text)
}
