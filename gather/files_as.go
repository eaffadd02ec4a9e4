package gather

import (
	"context"
	"fmt"
	iofs "io/fs"

	"harvest/fs"
	"harvest/gather/essence/access"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// asFiles is as/, in which objects are looked at by their methods.
func (g *Gatherer) asFiles(err *fs.Err) fs.Dir {
	return access.Files(access.Source{
		ID: g.id,
		Get: func(_ context.Context, name string) (soif.Object, error) {
			oid, err := store.ParseOID(name)
			if err != nil {
				return soif.Object{}, fmt.Errorf("as: %.64s: %w", name, iofs.ErrNotExist)
			}
			body, _, err := g.store.Get(oid)
			if err != nil {
				return soif.Object{}, err
			}
			o, _, err := soif.Parse(body, soif.Limits{})
			return o, err
		},
		Text:  g.documentText,
		Names: func() []string { tables, _ := g.types.now(); return tables.MethodNames() },
		Wrong: func(path string, e error) { err.Set(path, "", e) },
	})
}
