package broker

import (
	"context"

	"harvest/fs"
	"harvest/gather/essence/access"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// asFiles is as/, in which objects are looked at by the methods that they have brought
// along, and in other formats. A Broker has no documents: what an object says is all
// the text there is.
func (s *shown) asFiles() fs.Dir {
	return access.Files(access.Source{
		ID: s.b.id,
		Get: func(_ context.Context, name string) (soif.Object, error) {
			oid, err := store.ParseOID(name)
			if err != nil {
				return soif.Object{}, notExist(name)
			}
			body, _, err := s.b.store.Get(oid)
			if err != nil {
				return soif.Object{}, err
			}
			o, _, err := soif.Parse(body, soif.Limits{})
			return o, err
		},
		Wrong: func(path string, err error) { s.complain(path, "", err) },
	})
}
