// Package broker collects summary objects from Gatherers and other Brokers,
// keeps them, indexes them and answers queries.
//
// A Broker has four parts. The collector (collect.go) reads since/CURSOR of
// each source's tree. The registry (registry.go) knows how far it read and
// which source gave an object. The storage manager is gather/store. The query
// manager (query.go) asks an index.Engine, which follows the store by itself
// (follow.go): the index can be deleted and comes back from the objects.
//
// What it does not do: gather, summarise, or present. docs/broker.4.md is the
// manual of its files, docs/query.6.md that of the query language.
package broker

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"log/slog"
)

// An Opener opens the tree of a source by its path: gather/web here,
// tcp!host!port/gather/web there, a directory. Reading from it must end when
// ctx does.
type Opener func(ctx context.Context, path string) (iofs.FS, io.Closer, error)

// A Broker is one collection with its index.
type Broker struct{}

// Open opens the Broker in dir, which it makes if it is absent.
func Open(dir, name string, lg *slog.Logger, opt Options) (*Broker, error) {
	return nil, errors.ErrUnsupported
}

// Run collects, indexes and drops what has expired, as the config says, until
// ctx ends.
func (b *Broker) Run(ctx context.Context) error { return errors.ErrUnsupported }

// Collect reads what is new at a source of the config, and returns when it can
// be found.
func (b *Broker) Collect(ctx context.Context, source string) error { return errors.ErrUnsupported }

// Close closes the Broker; Run has returned.
func (b *Broker) Close() error { return errors.ErrUnsupported }
