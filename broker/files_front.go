package broker

import (
	"context"
	"io"

	"harvest/fs"
)

// farFile is an object of a back end as a result: it is read from there when it is
// opened.
func (p page) farFile(i int) fs.File {
	h := *p.farHit(i)
	path := p.b.id("far", h.from.conf.path, h.oid.String())
	return atOpen{path, unchanging, func(context.Context) fs.File {
		return fs.Stream(path, 0, func(ctx context.Context, w io.Writer) error {
			body, err := h.from.object(ctx, h.oid)
			if err == nil {
				_, err = w.Write(body)
			}
			return err
		})
	}}
}
