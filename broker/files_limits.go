package broker

import (
	"context"
	"io"

	"harvest/fs"
)

// userOf is who asks, as the config calls them; "" is the process itself.
func userOf(ctx context.Context) string { return fs.UserOf(ctx).Name }

// asUser has what a file produces be produced for whoever opened it: it runs
// when the call that opened the file has ended.
func asUser(ctx context.Context, write produce) produce {
	u := fs.UserOf(ctx)
	return func(ctx context.Context, w io.Writer) error { return write(fs.WithUser(ctx, u), w) }
}
