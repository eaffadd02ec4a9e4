package broker

import (
	"context"
	"errors"
	"log/slog"

	"harvest/fs"
)

// Options are what a Broker is handed. The zero value collects nothing.
type Options struct {
	Open Opener
	Bus  *fs.Bus // hears what changes in the tree; may be nil
}

// Files serves b as a directory; docs/broker.4.md is its manual.
func (b *Broker) Files() fs.Dir { return nil }

// Brokers are those of one directory, a directory each.
type Brokers struct{}

// OpenAll opens the Brokers in dir, which it makes if it is absent.
func OpenAll(dir string, lg *slog.Logger, opt Options) (*Brokers, error) {
	return nil, errors.ErrUnsupported
}

// Files is the directory of all Brokers: mkdir makes one, rmdir removes one.
func (a *Brokers) Files() fs.Dir { return nil }

// Run runs all Brokers, those made meanwhile too, until ctx ends.
func (a *Brokers) Run(ctx context.Context) error { return errors.ErrUnsupported }

// Close closes all Brokers; Run has returned.
func (a *Brokers) Close() error { return errors.ErrUnsupported }
