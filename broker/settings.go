package broker

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A ruling is a config with what the registry knows of its sources: all that
// may fail before it is in force.
type ruling struct {
	text string
	*config
	at map[string]place
}

// rule reads a config and enters its sources.
func (b *Broker) rule(text string) (ruling, error) {
	c, err := parseConfig(text)
	if err != nil {
		return ruling{}, err
	}
	paths := make([]string, len(c.sources))
	for i, s := range c.sources {
		paths[i] = s.path
	}
	at, err := b.registry.places(paths)
	return ruling{text, c, at}, err
}

// use puts a config in force: new sources are due at once, others when they
// were, those that are no more stop.
func (b *Broker) use(r ruling) {
	b.router.use(r.config)
	b.journal.use(r.config.log)
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.sources
	b.text, b.config, b.sources = r.text, r.config, make(map[string]*source)
	for _, conf := range r.sources {
		s := old[conf.path]
		if s == nil {
			s = &source{at: r.at[conf.path]}
			if !s.at.last.IsZero() {
				s.next = s.at.last.Add(conf.every)
			}
		} else if conf.every != s.every {
			s.next = s.at.last.Add(conf.every)
		}
		s.sourceConfig = conf
		if s.at.print != conf.print() { // what it was asked for is not this
			s.next = time.Time{}
		}
		b.sources[conf.path] = s
		delete(old, conf.path)
	}
	for _, s := range old {
		if s.cancel != nil {
			s.cancel()
		}
	}
	b.gcAt = time.Now().Add(r.gc)
	if b.index.files != r.index.files {
		b.renew()
	}
	b.poke()
}

// setConfig checks a config, keeps it and puts it in force, one writer's after
// the other's, so that the file and what is in force agree.
func (b *Broker) setConfig(ctx context.Context, text string) error {
	b.setting.Lock()
	defer b.setting.Unlock()
	return b.setText(ctx, text)
}

// setText is setConfig with setting held.
func (b *Broker) setText(_ context.Context, text string) error {
	r, err := b.rule(text)
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(b.dir, "config"), []byte(text)); err != nil {
		return err
	}
	b.use(r)
	b.queries.forget()
	b.views.poke()
	b.event("config")
	return nil
}

// writeFile replaces a file and has it on disk, or leaves the old one; after
// an error of the last sync it may be either.
func writeFile(path string, text []byte) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		os.Remove(path + ".new")
		return err
	}
	return d.Sync()
}

// clearNew removes what a crash has left of writeFile in a folder.
func clearNew(dir string) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	for _, e := range list {
		if strings.HasSuffix(e.Name(), ".new") && e.Type().IsRegular() {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

func (b *Broker) configText() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text
}
